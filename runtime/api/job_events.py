"""What a job reports while it runs: values that say what has happened, for those who watch it.

Decides what is worth telling, with which figures, and the one line of text that a person reads of
it. Logging, the history on disk, metrics and the command line's display all listen to these values,
and so may a user's own `JobListener`. They follow what the machines have decided; no decision is
taken from them. One comes with each start, end, checkpoint, commit, failure and restart; none with
a control event or a row.

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
    """Something that has happened to a job; `str(event)` is one line that says so.

    at: seconds since 1970, by the driver's clock. topic: below which logger it is logged,
    `epochgate.job.TOPIC`; level: at which level of the module `logging`.
    """

    at: float
    topic: ClassVar[str] = ""

    @property
    def level(self) -> int:
        """A level of the module `logging`."""
        return logging.INFO

    @property
    def details(self) -> str:
        """Lines that belong below that line for who has to mend something, or nothing."""
        return ""

    def to_json(self) -> dict[str, Any]:
        """Plain values by name; `event` says of which kind it is."""
        values = {one.name: _plain(getattr(self, one.name)) for one in fields(self)}
        return {"event": type(self).__name__, **values}


@dataclass(frozen=True)
class JobStarted(JobEvent):
    """The driver has begun; checkpoint_id: from which, 0 for none. pid and host: the driver's."""

    job_id: str
    run_id: str
    parallelism: int
    checkpoint_id: int
    pid: int
    host: str

    def __str__(self) -> str:
        return (
            f"job {self.job_id} starts {_whence(self.checkpoint_id)}: "
            f"{counted(self.parallelism, 'subtask')}, run {self.run_id}"
        )


@dataclass(frozen=True)
class SubtasksUp(JobEvent):
    """Each subtask has a process, `after_s` after the start or after everything went down."""

    subtasks: int
    checkpoint_id: int
    after_s: float

    def __str__(self) -> str:
        who = "the subtask is" if self.subtasks == 1 else f"all {self.subtasks:,} subtasks are"
        return f"{who} up after {self.after_s:.1f} s, {_whence(self.checkpoint_id)}"


@dataclass(frozen=True)
class CheckpointEnded(JobEvent):
    """A checkpoint is completed or aborted, or the store does not know which.

    duration_s: from its trigger on; coordinators_s: until all coordinators had completed it, and
    the barriers went out; subtasks_s: from then until the subtask had acknowledged, the slowest
    `SUBTASKS_MAX` of them; missing: those that had not, the first `SUBTASKS_MAX`; store_s: of its
    storing. figures: the tasks' metrics, summed over the subtasks, and coordinators: those of
    each coordinator, by operator id; as of the newest completed checkpoint of this run, so that
    what a failover takes back is in none of them, or as of now before the first.
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
    """A completed checkpoint was written to a place of its own, from which a job can be started."""

    topic: ClassVar[str] = "checkpoints"

    checkpoint_id: int
    path: str
    size_bytes: int

    def __str__(self) -> str:
        return f"savepoint of checkpoint {self.checkpoint_id}, {size(self.size_bytes)}: {self.path}"


@dataclass(frozen=True)
class Committed(JobEvent):
    """The committables of these checkpoints have taken effect. committables: how many;
    figures: the committer's metrics, which count from the start of this run; committed_before: the
    checkpoints of which the committer has found that an earlier commit had taken effect.
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
        """A commit of nothing is worth no line of a log."""
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
    """A commit has failed; is_tried_again: whether the committer wants another try."""

    topic: ClassVar[str] = "commits"

    checkpoint_ids: tuple[int, ...]
    duration_s: float
    tries: int
    is_tried_again: bool
    reason: str

    @property
    def level(self) -> int:
        """A person may have to do something."""
        return logging.WARNING

    def __str__(self) -> str:
        then = "is tried again" if self.is_tried_again else "fails the job"
        return (
            f"the commit of {_named(self.checkpoint_ids)} {then} after try {self.tries + 1}: "
            f"{one_line(self.reason)}"
        )


class Failure(JobEvent):
    """Something has failed, and is to restart in `delay_s` seconds; None: the restart strategy does
    not allow it, and the job ends. restarts_left: how many more the strategy allows after that, if
    it counts them. is_new: no failure at the same lines of user code was told since the last
    checkpoint, and `details` has those lines.
    """

    topic: ClassVar[str] = "failover"

    reason: str
    delay_s: float | None
    restarts_left: int | None
    is_new: bool

    @property
    def level(self) -> int:
        """What user code raises it is likely to raise again; a process that is lost is no fault of
        a program.
        """
        return logging.WARNING if split_frames(self.reason)[1] else logging.INFO

    @property
    def details(self) -> str:
        """The lines of user code, once."""
        return split_frames(self.reason)[1] if self.is_new else ""

    def _told(self, what: str, restarts: str) -> str:
        said = one_line(self.reason)
        if self.delay_s is None:
            return f"{what}, no restart is left: {said}"
        left = "" if self.restarts_left is None else f" ({self.restarts_left:,} more left)"
        return f"{what}, {restarts} in {self.delay_s:g} s{left}: {said}"


@dataclass(frozen=True)
class SubtaskFailed(Failure):
    """An attempt has failed, and the subtask restarts alone."""

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
    """Another process has the subtask, `down_s` after its failure. host and pid: where, if that is
    known.
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
            f"subtask {self.subtask} goes on {_whence(self.checkpoint_id)} as attempt "
            f"{self.attempt}{where}, {self.down_s:.2f} s after its failure"
        )


@dataclass(frozen=True)
class AttemptOutlived(JobEvent):
    """One of several attempts of a subtask at once has ended, and another goes on."""

    topic: ClassVar[str] = "failover"

    subtask: int
    attempt: int
    reason: str

    def __str__(self) -> str:
        return (
            f"attempt {self.attempt} of subtask {self.subtask} is outlived by another: "
            f"{one_line(self.reason)}"
        )


@dataclass(frozen=True)
class JobRestarts(Failure):
    """Everything goes back to the last completed checkpoint."""

    reason: str
    delay_s: float | None
    restarts_left: int | None = None
    is_new: bool = True

    def __str__(self) -> str:
        return self._told("all subtasks go down", "restart")


@dataclass(frozen=True)
class Warned(JobEvent):
    """What a person should know."""

    text: str

    @property
    def level(self) -> int:
        """A person may have to do something."""
        return logging.WARNING

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True)
class JobEnded(JobEvent):
    """The job is "finished" (or was stopped), "failed" or "canceled"; figures and coordinators: as
    in `CheckpointEnded`, and at the end where the job has finished.
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
        """That a job has failed is an error."""
        return logging.ERROR if self.state == "failed" else logging.INFO

    @property
    def details(self) -> str:
        """The lines of user code that a failed job has failed at."""
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
"""Every kind that is told."""


class JobListener(ABC):
    """Hears what happens to a job. In `run_job` it is called on a thread of its own, one event at a
    time and in order, so that it may take its time; what it raises is logged and changes nothing.
    """

    def begin(self, report: JobReport) -> None:
        """The job is about to start, and `report` holds its figures from now on; called once,
        before the first event, on the thread that starts the job.
        """

    @abstractmethod
    def on_event(self, event: JobEvent) -> None:
        """Something has happened."""

    def close(self) -> None:
        """Nothing will happen any more; called once, after the last event, and also for a job that
        could not be started.
        """


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(key): _plain(held) for key, held in value.items()}
    return list(value) if isinstance(value, tuple) else value


def _whence(checkpoint_id: int) -> str:
    return f"from checkpoint {checkpoint_id}" if checkpoint_id else "from the beginning"


def _named(checkpoint_ids: tuple[int, ...]) -> str:
    numbers = ", ".join(map(str, checkpoint_ids))
    return f"checkpoint {numbers}" if len(checkpoint_ids) == 1 else f"checkpoints {numbers}"
