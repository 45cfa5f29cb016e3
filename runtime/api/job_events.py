"""The events of a job, for logs, metrics and listeners.

Decides which events there are, which figures they carry, and their text in a log. Logging, the
history on disk, metrics and the command line's display listen to them, and so may a user's own
`JobListener`. Events follow the decisions of the machines; nothing is decided from them. There is
one for each start, end, checkpoint, commit, failure and restart; none for a control event or a row.

    class Pager(JobListener):
        def on_event(self, event: JobEvent) -> None:
            if isinstance(event, SubtaskFailed):
                page(str(event))

    run_job(spark, configuration, program, store=store, listeners=[Pager()])
"""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any, ClassVar, Literal

from epochgate.runtime.api.own_frames import split_frames
from epochgate.runtime.api.reports import JobReport, counted, one_line, size

Outcome = Literal["completed", "aborted", "unknown"]
Number = int | float


@dataclass(frozen=True)
class JobEvent:
    """An event of a job. `str(event)` is its line in the log.

    at: seconds since 1970, by the driver's clock. topic: the logger is `epochgate.job.TOPIC`.
    level: the level of the module `logging`.
    """

    at: float
    topic: ClassVar[str] = ""

    @property
    def level(self) -> int:
        """A level of the module `logging`."""
        return logging.INFO

    @property
    def details(self) -> str:
        """Further lines for the log, such as a traceback of user code; empty if there are none."""
        return ""

    def to_json(self) -> dict[str, Any]:
        """Return plain values by name; `event` is the name of the class."""
        values = {one.name: _plain(getattr(self, one.name)) for one in fields(self)}
        return {"event": type(self).__name__, **values}


@dataclass(frozen=True)
class JobStarted(JobEvent):
    """The driver has started. checkpoint_id: the restored one, or 0. pid and host: the driver's.
    topology: the steps of the commits in words, "" without a committer. commit_on_input: whether
    the committer on the driver commits without waiting for a notice.
    """

    job_id: str
    run_id: str
    parallelism: int
    checkpoint_id: int
    pid: int
    host: str
    topology: str = ""
    commit_on_input: bool = False

    def __str__(self) -> str:
        return (
            f"job {self.job_id} starts {_whence(self.checkpoint_id)}: "
            f"{counted(self.parallelism, 'subtask')}, run {self.run_id}"
        )


@dataclass(frozen=True)
class SubtasksUp(JobEvent):
    """All subtasks run, `after_s` seconds after the start or after a failure of the whole job."""

    subtasks: int
    checkpoint_id: int
    after_s: float

    def __str__(self) -> str:
        who = "the subtask is" if self.subtasks == 1 else f"all {self.subtasks:,} subtasks are"
        return f"{who} up after {self.after_s:.1f} s, {_whence(self.checkpoint_id)}"


@dataclass(frozen=True)
class CheckpointEnded(JobEvent):
    """A checkpoint was completed or aborted, or the outcome of storing it is unknown.

    All durations are in seconds. duration_s: since the trigger. coordinators_s: until all
    coordinators had completed their state and the barriers were sent. subtasks_s: from then until
    the acknowledgement of each subtask, for the slowest `SUBTASKS_MAX`. missing: the subtasks that
    did not acknowledge, at most `SUBTASKS_MAX`. store_s: for storing. figures: the tasks' metrics,
    summed over the subtasks. coordinators: the metrics of each coordinator, by operator id. Both
    are as of the newest completed checkpoint of this run, so that a failover does not lower them;
    before the first one, as of now.
    """

    topic: ClassVar[str] = "checkpoints"
    SUBTASKS_MAX: ClassVar[int] = 32

    checkpoint_id: int
    outcome: Outcome
    duration_s: float
    stored_bytes: int = 0
    coordinators_s: float = 0.0
    subtasks_s: Mapping[int, float] = field(default_factory=dict)
    missing: tuple[int, ...] = ()
    store_s: float = 0.0
    reason: str = ""
    figures: Mapping[str, Number] = field(default_factory=dict)
    coordinators: Mapping[str, Mapping[str, Number]] = field(default_factory=dict)

    @property
    def slowest(self) -> int | None:
        """The subtask that acknowledged last."""
        return max(self.subtasks_s, key=self.subtasks_s.__getitem__, default=None)

    def __str__(self) -> str:
        if self.outcome != "completed":
            what = "aborted" if self.outcome == "aborted" else "in doubt"
            missing = ", ".join(map(str, self.missing))
            late = f" (without subtask {missing})" if self.missing else ""
            return (
                f"checkpoint {self.checkpoint_id} {what} after {self.duration_s:.2f} s{late}: "
                f"{one_line(self.reason)}"
            )
        slowest = self.slowest
        last = (
            ""
            if slowest is None
            else f", subtask {slowest} last after {self.subtasks_s[slowest]:.2f} s"
        )
        return (
            f"checkpoint {self.checkpoint_id} completed in {self.duration_s:.2f} s: "
            f"{size(self.stored_bytes)} stored in {self.store_s:.2f} s{last}"
        )


@dataclass(frozen=True)
class SavepointWritten(JobEvent):
    """A savepoint was written: a copy of a completed checkpoint, from which a job can start."""

    topic: ClassVar[str] = "checkpoints"

    checkpoint_id: int
    path: str
    size_bytes: int

    def __str__(self) -> str:
        return f"savepoint of checkpoint {self.checkpoint_id}, {size(self.size_bytes)}: {self.path}"


@dataclass(frozen=True)
class Committed(JobEvent):
    """The committables of these checkpoints have taken effect.

    duration_s: of the last try. tries: failed tries before it. committables: their number. figures:
    the committer's metrics since the start of this run. committed_before: the checkpoints whose
    earlier commit had already taken effect.
    """

    topic: ClassVar[str] = "commits"

    checkpoint_ids: tuple[int, ...]
    duration_s: float
    tries: int
    committables: int
    figures: Mapping[str, Number] = field(default_factory=dict)
    committed_before: tuple[int, ...] = ()

    @property
    def level(self) -> int:
        """DEBUG for a commit without committables."""
        return logging.INFO if self.committables else logging.DEBUG

    def __str__(self) -> str:
        again = f" at try {self.tries + 1}" if self.tries else ""
        figures = "".join(f", {name} {value:,}" for name, value in sorted(self.figures.items()))
        return (
            f"{_named(self.checkpoint_ids)} committed in {self.duration_s:.2f} s{again}: "
            f"{counted(self.committables, 'committable')}{figures}"
        )


@dataclass(frozen=True)
class CommitFailed(JobEvent):
    """A commit has failed. is_tried_again: whether it will be retried. is_left_out: whether the job
    goes on without the checkpoint that failed. Otherwise the job fails.
    """

    topic: ClassVar[str] = "commits"

    checkpoint_ids: tuple[int, ...]
    duration_s: float
    tries: int
    is_tried_again: bool
    reason: str
    is_left_out: bool = False

    @property
    def level(self) -> int:
        """WARNING: the operator may have to act."""
        return logging.WARNING

    def __str__(self) -> str:
        then = "is tried again" if self.is_tried_again else "fails the job"
        if self.is_left_out:
            then = "is left out"
        return (
            f"the commit of {_named(self.checkpoint_ids)} {then} after try {self.tries + 1}: "
            f"{one_line(self.reason)}"
        )


class Failure(JobEvent):
    """A failure, and its restart in `delay_s` seconds.

    delay_s: None if the restart strategy allows no restart; the job then fails. restarts_left: the
    number of further restarts that the strategy allows, if it counts them. is_new: since the last
    checkpoint no failure at the same lines of user code was reported; `details` has those lines.
    """

    topic: ClassVar[str] = "failover"

    reason: str
    delay_s: float | None
    restarts_left: int | None
    is_new: bool

    @property
    def level(self) -> int:
        """WARNING for an exception of user code, which is likely to be raised again; INFO for a
        lost process, and for a failure that ends the job, which says the same.
        """
        is_told = self.delay_s is not None and split_frames(self.reason)[1]
        return logging.WARNING if is_told else logging.INFO

    @property
    def details(self) -> str:
        """The traceback within user code, if the failure is new and does not end the job."""
        is_told = self.delay_s is not None and self.is_new
        return split_frames(self.reason)[1] if is_told else ""

    def _told(self, what: str, restarts: str) -> str:
        said = one_line(self.reason)
        if self.delay_s is None:
            return f"{what}, no restart is left: {said}"
        left = "" if self.restarts_left is None else f" ({self.restarts_left:,} more left)"
        return f"{what}, {restarts} in {self.delay_s:g} s{left}: {said}"


@dataclass(frozen=True)
class SubtaskFailed(Failure):
    """An attempt has failed, and only its subtask restarts."""

    subtask: int
    attempt: int
    reason: str
    delay_s: float | None
    restarts_left: int | None = None
    is_new: bool = True

    def __str__(self) -> str:
        return self._told(f"subtask {self.subtask} failed in attempt {self.attempt}", "restarts")


@dataclass(frozen=True)
class SubtaskRestarted(JobEvent):
    """A subtask runs again, `down_s` seconds after its failure, in the same process or in another.
    host and pid: those of the process, if they are known.
    """

    topic: ClassVar[str] = "failover"

    subtask: int
    attempt: int
    checkpoint_id: int
    down_s: float
    host: str | None = None
    pid: int | None = None

    def __str__(self) -> str:
        where = "" if self.pid is None else f" in process {self.pid} on {self.host}"
        return (
            f"subtask {self.subtask} restarted {_whence(self.checkpoint_id)} as attempt "
            f"{self.attempt}{where}, {self.down_s:.2f} s after its failure"
        )


@dataclass(frozen=True)
class AttemptOutlived(JobEvent):
    """One of several concurrent attempts of a subtask has ended, and another continues."""

    topic: ClassVar[str] = "failover"

    subtask: int
    attempt: int
    reason: str

    def __str__(self) -> str:
        return (
            f"attempt {self.attempt} of subtask {self.subtask} ended, and another continues: "
            f"{one_line(self.reason)}"
        )


@dataclass(frozen=True)
class JobRestarts(Failure):
    """The whole job restores its last completed checkpoint."""

    reason: str
    delay_s: float | None
    restarts_left: int | None = None
    is_new: bool = True

    def __str__(self) -> str:
        return self._told("the whole job failed", "all subtasks restart")


@dataclass(frozen=True)
class Warned(JobEvent):
    """A warning for the operator of the job."""

    text: str

    @property
    def level(self) -> int:
        """WARNING: the operator may have to act."""
        return logging.WARNING

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True)
class JobEnded(JobEvent):
    """The job has ended: "finished" (or stopped), "failed" or "canceled". figures and coordinators:
    as in `CheckpointEnded`; of a finished job, as of its end.
    """

    state: str
    reason: str | None
    checkpoint_id: int
    duration_s: float
    checkpoints_completed: int
    checkpoints_aborted: int
    regional_restarts: int
    global_restarts: int
    figures: Mapping[str, Number] = field(default_factory=dict)
    coordinators: Mapping[str, Mapping[str, Number]] = field(default_factory=dict)

    @property
    def level(self) -> int:
        """ERROR for a failed job."""
        return logging.ERROR if self.state == "failed" else logging.INFO

    @property
    def details(self) -> str:
        """The traceback within user code, of a failed job."""
        return split_frames(self.reason or "")[1] if self.state == "failed" else ""

    def __str__(self) -> str:
        why = "" if self.reason is None else f": {one_line(self.reason)}"
        return (
            f"job {self.state} after {self.duration_s:.1f} s, last checkpoint "
            f"{self.checkpoint_id or 'none'} ({self.checkpoints_completed} completed, "
            f"{self.checkpoints_aborted} aborted; failovers: {self.regional_restarts} of one "
            f"subtask, {self.global_restarts} of all){why}"
        )


EVENTS: tuple[type[JobEvent], ...] = (
    JobStarted,
    SubtasksUp,
    CheckpointEnded,
    SavepointWritten,
    Committed,
    CommitFailed,
    SubtaskFailed,
    SubtaskRestarted,
    AttemptOutlived,
    JobRestarts,
    Warned,
    JobEnded,
)
"""Every kind of event."""


class JobListener(ABC):
    """Receives the events of a job.

    `run_job` calls it on a thread of its own, one event at a time and in order, so it may block. An
    exception that it raises is logged and does not affect the job.
    """

    def begin(self, report: JobReport) -> None:
        """Called once before the first event, on the thread that starts the job; `report` holds
        the figures of the job from now on.
        """

    @abstractmethod
    def on_event(self, event: JobEvent) -> None:
        """Called for each event."""

    def close(self) -> None:
        """Called once after the last event, also for a job that could not be started."""


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(key): _plain(held) for key, held in value.items()}
    return list(value) if isinstance(value, tuple) else value


def _whence(checkpoint_id: int) -> str:
    return f"from checkpoint {checkpoint_id}" if checkpoint_id else "from the beginning"


def _named(checkpoint_ids: tuple[int, ...]) -> str:
    numbers = ", ".join(map(str, checkpoint_ids))
    return f"checkpoint {numbers}" if len(checkpoint_ids) == 1 else f"checkpoints {numbers}"
