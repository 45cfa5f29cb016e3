"""The configuration of a job: identity, coordinators, intervals and limits."""

from __future__ import annotations

import uuid
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from numbers import Integral, Real

from epochgate.errors import UsageError
from epochgate.runtime.api.commit_topology import CommitTopology
from epochgate.runtime.api.coordinator import CoordinatorProvider
from epochgate.runtime.api.rescaling import Redistribution
from epochgate.runtime.api.restart_strategies import FixedDelay, RestartStrategy

DOUBLINGS_MAX = 32
"""Of a pause; a float cannot be doubled without end."""


class JobMisconfigured(UsageError):
    """A value of a job's configuration is not valid."""


@dataclass(frozen=True)
class JobConfiguration:
    """The configuration of one job.

    A start with the same `job_id` and checkpoint directory restores the newest checkpoint. `run_id`
    identifies one start. Times are in seconds (`_s`). Raises JobMisconfigured.
    """

    job_id: str
    parallelism: int
    providers: tuple[CoordinatorProvider, ...] = ()
    run_id: str = field(default_factory=lambda: uuid.uuid4().hex)
    checkpoint_interval_s: float | None = 2.0
    """Seconds between checkpoints; None: on request only."""
    checkpoint_timeout_s: float = 600.0
    attempt_start_timeout_s: float = 600.0
    """An attempt that has a process and does not run after this time counts as failed."""
    tolerable_checkpoint_failures: int = 3
    restart_strategy: RestartStrategy = field(default_factory=lambda: FixedDelay(10, 1.0))
    commit_retries_max: int = 10
    commit_retry_delay_s: float = 0.2
    """Delay before the first retry of a commit; it doubles with each further retry."""
    commit_retry_delay_max_s: float = 10.0
    concurrent_attempts_max: int = 1
    """Maximum number of concurrent attempts of a subtask, as Spark's speculation starts them. The
    first one that reaches the end of its input ends the others. More than 1 needs
    `checkpoint_interval_s=None`.
    """
    redistribute: Mapping[str, Redistribution] = field(default_factory=dict)
    """Operator id -> function that redistributes its states over another parallelism, for operators
    without a provider, or whose provider does not do it.
    """
    allow_dropped_state: Collection[str] = ()
    """Ids of removed operators whose state in the restored checkpoint is dropped. State of any
    other operator that the job lacks refuses the start.
    """
    task_operators: Collection[str] = ()
    """The ids of the operators in the tasks, if they are known. State of any other operator is
    then refused before the job begins, and otherwise by the tasks.
    """
    topology: CommitTopology = field(default_factory=CommitTopology)
    """The steps of the sink's commits, `CommitTopology.of(sink, committer)`; without it the
    committables go straight to the committer on the driver. A pipeline sets it.
    """
    commit_on_input: bool | None = None
    """Whether the committer on the driver commits a checkpoint once all its committables have come,
    or on the notice that it is completed; None, and the only other value that is accepted: as
    `commits_on_input` says. Source: `commitOnInput` of Flink's GlobalCommitterOperator.
    """
    unconfirmed_bytes_max: int = 64 * 1024 * 1024
    """Bytes of events that a coordinator has sent to an attempt and that it has not confirmed; a
    send beyond it raises GatewayFull.
    """
    coordinator_call_warn_s: float | None = 1.0
    """The job warns of a coordinator's call that takes longer; None: never."""
    coordinator_call_timeout_s: float = 600.0
    """A coordinator's call that takes longer ends the job as failed; its thread is left behind."""
    store_timeout_s: float = 600.0
    """A save that takes longer leaves its checkpoint in doubt and ends the job as failed; the next
    start reads the store.
    """
    commit_timeout_s: float = 3600.0
    """A commit that takes longer ends the job as failed, and the next start commits again; work
    after a commit that takes longer waits for the next commit or the next start.
    """
    end_timeout_s: float = 10.0
    """A job that fails or is canceled waits no longer for its store, and a job that is over no
    longer for what its store, committer and coordinators have under way, their `close` included.
    """
    work_warn_s: float | None = 60.0
    """The job warns of a save, a commit, work after a commit, and work in `run_async` that takes
    longer, and again each time that its duration has doubled; None: never.
    """

    def __post_init__(self) -> None:
        if not self.job_id:
            raise JobMisconfigured(
                "job_id is empty; give the job a name, under which its checkpoints are kept"
            )
        for name in ("parallelism", "concurrent_attempts_max", "unconfirmed_bytes_max"):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, Integral) or value < 1:
                raise JobMisconfigured(f"{name} is {value!r}; give a whole number from 1 on")
        self._check_concurrent_attempts()
        self._check_topology()
        ids = self.operator_ids
        if twice := sorted({i for i in ids if ids.count(i) > 1}):
            raise JobMisconfigured(
                f"operator ids {twice} are used twice; state is kept by operator id"
            )
        if isinstance(self.allow_dropped_state, str):
            raise JobMisconfigured(
                f"allow_dropped_state is {self.allow_dropped_state!r}; give a list of operator ids"
            )
        for name in (
            "checkpoint_interval_s",
            "checkpoint_timeout_s",
            "coordinator_call_warn_s",
            "coordinator_call_timeout_s",
            "store_timeout_s",
            "commit_timeout_s",
            "end_timeout_s",
            "work_warn_s",
            "commit_retry_delay_s",
            "commit_retry_delay_max_s",
        ):
            value = getattr(self, name)
            is_number = isinstance(value, Real) and not isinstance(value, bool)
            if value is not None and not (is_number and value > 0):
                raise JobMisconfigured(
                    f"{name} is {value!r}; give a number of seconds, more than 0"
                )

    def _check_concurrent_attempts(self) -> None:
        if self.concurrent_attempts_max > 1 and self.checkpoint_interval_s is not None:
            raise JobMisconfigured(
                f"concurrent_attempts_max is {self.concurrent_attempts_max} and "
                f"checkpoint_interval_s is {self.checkpoint_interval_s}: concurrent attempts of a "
                "subtask have no common state. Set checkpoint_interval_s=None (the job starts "
                "its lost subtasks from the beginning, and takes a checkpoint when it ends), or "
                "leave concurrent_attempts_max at 1"
            )

    def _check_topology(self) -> None:
        if self.concurrent_attempts_max > 1 and self.topology.in_tasks:
            raise JobMisconfigured(
                f"concurrent_attempts_max is {self.concurrent_attempts_max}, and the sink commits "
                "in the tasks: two attempts of a subtask would commit at once. Leave "
                "concurrent_attempts_max at 1, or take a sink that commits on the driver"
            )
        if self.commit_on_input not in (None, self.commits_on_input):
            why = (
                "the tasks commit first, and what they pass on implies that the checkpoint is "
                "completed"
                if self.topology.in_tasks
                else "the job takes no checkpoints by itself, so all committables come at its end"
                if self.checkpoint_interval_s is None
                else "the committer on the driver stands right behind the writers of a job with "
                "checkpoints, and must not commit what may be aborted"
            )
            raise JobMisconfigured(
                f"commit_on_input is {self.commit_on_input}, and must be "
                f"{self.commits_on_input} here: {why}. Leave commit_on_input out"
            )

    @property
    def commits_on_input(self) -> bool:
        """True if the committer on the driver commits without waiting for a notice: behind
        committers in the tasks, and in a job that takes no checkpoints by itself. False where it
        performs both phases itself: behind the writers of a job with checkpoints.
        """
        return self.topology.in_tasks or self.checkpoint_interval_s is None

    def commit_pause_s(self, tries: int) -> float:
        """Return the delay in seconds before a commit that has failed `tries` times is tried again.

        >>> job = JobConfiguration("job", 1, commit_retry_delay_s=0.5, commit_retry_delay_max_s=3.0)
        >>> [job.commit_pause_s(tries) for tries in (1, 2, 3, 4, 99)]
        [0.5, 1.0, 2.0, 3.0, 3.0]
        """
        doubled_s = self.commit_retry_delay_s * 2.0 ** min(tries - 1, DOUBLINGS_MAX)
        return min(doubled_s, max(self.commit_retry_delay_s, self.commit_retry_delay_max_s))

    @property
    def operator_ids(self) -> list[str]:
        """The ids of the operators with a coordinator, in the job's order."""
        return [provider.operator_id for provider in self.providers]
