"""The coordinator API: what a user writes for the driver's side of an operator, and what it is
given to work with.

Source: Apache Flink's OperatorCoordinator, its Context, Provider and SubtaskGateway (section 5 of
docs/protocol.md); docs/contract.md lists the counterpart of each name. All calls of a
coordinator are made on the event queue's thread, one at a time; what it does in them must not
block: a call that takes longer than `coordinator_call_warn_s` is named in the job's warnings. Per
subtask the order is: ready, failed, then reset of the subtask or of everything, then ready again.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Coroutine, Mapping
from concurrent.futures import Future
from typing import Any, Final, Protocol

from epochgate.errors import UsageError
from epochgate.runtime.api.coordinator_metrics import CoordinatorMetrics
from epochgate.runtime.api.coordinator_store import CoordinatorStore
from epochgate.runtime.api.rescaling import keep_nothing
from epochgate.runtime.api.send_future import SendFuture
from epochgate.runtime.api.state_versions import StateNotUpgraded

NO_CHECKPOINT: Final = 0
"""The checkpoint id that stands for none: a reset to it is a reset to the beginning."""
BATCH_CHECKPOINT: Final = -1
"""The checkpoint id of a snapshot taken without a checkpoint; see `supports_batch_snapshot`."""


class RequestNotHandled(UsageError):
    """A client asked a coordinator that does not answer requests."""


class SubtaskGateway(Protocol):
    """Sends events to one execution attempt of a subtask; useless once that has failed. Source:
    Flink's OperatorCoordinator.SubtaskGateway.
    """

    @property
    def subtask(self) -> int:
        """The index of the subtask, from 0."""
        ...

    @property
    def attempt(self) -> int:
        """The number of the attempt, from 0 for each subtask."""
        ...

    def send_event(self, event: Any) -> SendFuture:
        """Send a plain value (none, bool, int, float, str, bytes, and lists and dicts of these).

        An event sent before the coordinator completes its checkpoint is part of the subtask's state
        in that checkpoint, an event sent later is not. Any thread; events of one thread keep their
        order. A send to an attempt that is not running fails its future and nothing else. Raises
        ValueNotPlain when `event` itself is of another type; what is inside it is looked at where
        it is packed, and there fails the job.
        """
        ...


class CheckpointAccess(Protocol):
    """What a coordinator may know of the job's checkpoints; any thread. Source: Flink's
    OperatorCoordinator.Context.getCheckpointCoordinator.
    """

    @property
    def interval_s(self) -> float | None:
        """Seconds between periodic checkpoints; None when they are taken on request only."""
        ...

    @property
    def is_periodic(self) -> bool:
        """Whether checkpoints are taken without being asked for."""
        ...

    @property
    def last_completed_id(self) -> int:
        """The id of the last completed checkpoint, NO_CHECKPOINT before the first."""
        ...

    def request(self) -> Future[int]:
        """Ask for a checkpoint that begins from now on: its id once it is completed.

        The future fails with CheckpointAborted, with CheckpointOutcomeUnknown if the store cannot
        tell whether it holds the checkpoint, with NoCheckpointAmongAttempts or JobOver. Not to be
        waited for on the queue's thread.
        """
        ...


class RunningCoroutine(Protocol):
    """A coroutine that `run_coroutine` has taken over."""

    def cancel(self) -> None:
        """Raise CancelledError in it at its next await; any thread, nothing if it has ended."""
        ...


class CoordinatorContext(Protocol):
    """What a coordinator may use. Every method may be called from `CoordinatorProvider.create` on;
    nothing has an effect once the job is over. Source: Flink's OperatorCoordinator.Context.
    """

    @property
    def operator_id(self) -> str:
        """The name that ties coordinator, operator and their state together."""
        ...

    @property
    def job_id(self) -> str:
        """The name under which this job's checkpoints are kept; the same after a restart."""
        ...

    @property
    def run_id(self) -> str:
        """Tells the starts of the driver apart."""
        ...

    @property
    def parallelism(self) -> int:
        """The number of subtasks."""
        ...

    @property
    def concurrent_attempts_max(self) -> int:
        """How many attempts of one subtask there may be at once; 1 unless the job says otherwise.

        With more, each attempt is announced with a gateway of its own, and a subtask is reset once
        all its attempts are gone.
        """
        ...

    @property
    def coordinator_store(self) -> CoordinatorStore:
        """What this job's coordinators share, by key."""
        ...

    @property
    def metrics(self) -> CoordinatorMetrics:
        """This coordinator's figures, shown as `JobReport.coordinator_metrics[operator_id]`."""
        ...

    @property
    def checkpoints(self) -> CheckpointAccess:
        """The job's checkpoints."""
        ...

    def load(self, name: str) -> Any:
        """Return what "package.module:name" stands for in the driver's Python; see `user_code`.
        Raises CannotLoad.
        """
        ...

    def fail_job(self, cause: BaseException | str) -> None:
        """Take the whole job back to its last completed checkpoint; the first call counts until
        then. Any thread.
        """
        ...

    def post(self, call: Callable[..., None], *arguments: Any) -> None:
        """Run `call` on the queue's thread, in its turn; how a thread of the coordinator comes
        back. Any thread.
        """
        ...

    def post_later(self, delay_s: float, call: Callable[..., None], *arguments: Any) -> None:
        """Run `call` on the queue's thread after `delay_s` seconds; queue thread only."""
        ...

    def run_async(
        self,
        work: Callable[[], Any],
        then: Callable[[Any, BaseException | None], None],
        *,
        lane: str = "",
    ) -> None:
        """Run blocking `work` elsewhere, then call `then(result, error)` on the queue's thread.

        Work of one lane of one coordinator runs in order, one after the other, on a thread of its
        own; lanes run beside each other. Queue thread only. What still runs when the job is over is
        waited for a few seconds and then left alone.
        """
        ...

    def run_coroutine(
        self,
        coroutine: Coroutine[Any, Any, Any],
        then: Callable[[Any, BaseException | None], None],
    ) -> RunningCoroutine:
        """Run `coroutine` on the job's event loop, then call `then(result, error)` on the queue's
        thread.

        The loop has one thread, which all coordinators of the job share; it is closed with the job,
        and what runs then is cancelled. In simulation it is stepped like other work, and its time
        is the simulated clock's. Queue thread only.
        """
        ...


class OperatorCoordinator(ABC):
    """The driver's side of an operator. Only the abstract methods must be written.

    Subtasks count from 0, and so do the attempts of each; checkpoint ids count from 1. What a
    method raises takes the whole job back to its last completed checkpoint, unless it says
    otherwise, and a FatalTaskError ends the job. Source: Flink's OperatorCoordinator and
    CoordinationRequestHandler.
    """

    @abstractmethod
    def start(self) -> None:
        """Called once, after a restore if there is one, before anything else. If it raises, or
        fails the job meanwhile, this coordinator is closed and another is made and started, as
        often as the restart strategy allows.
        """

    @abstractmethod
    def checkpoint(self, checkpoint_id: int, result: Future[bytes]) -> None:
        """Take a snapshot and complete `result` with it; the moment of completing is the moment of
        the checkpoint.

        `checkpoint_id` counts from 1; it is BATCH_CHECKPOINT for a snapshot without a checkpoint.
        `result` may be completed later and from any thread. Failing or cancelling it fails the
        checkpoint, and so does dropping it uncompleted; if it is kept and never completed, the
        checkpoint times out. Completing it after its checkpoint was aborted does nothing.
        """

    @abstractmethod
    def reset_to_checkpoint(self, checkpoint_id: int, state: bytes | None) -> None:
        """Go back to `state`, or with None to the beginning: all subtasks do too, and none is
        ready.

        `checkpoint_id` is NO_CHECKPOINT when there is none to go back to, and BATCH_CHECKPOINT when
        `state` is a snapshot that was taken without a checkpoint.
        """

    def handle_event_from_operator(
        self, subtask: int, attempt: int, event: Any
    ) -> Future[Any] | None:
        """An operator has sent `event`, a plain value.

        If it asked for a receipt, that is sent once this has returned, or once the future that this
        returns is done: from then on the event is part of the coordinator's state. A future that
        fails fails the job, and so does raising. Raises TypeError unless it is overridden.
        """
        raise TypeError(
            f"{type(self).__name__} got an event from subtask {subtask} but handles none; "
            f"override handle_event_from_operator"
        )

    def execution_attempt_ready(self, subtask: int, attempt: int, gateway: SubtaskGateway) -> None:
        """`attempt` of `subtask` can be sent events from now on."""

    def execution_attempt_failed(self, subtask: int, attempt: int, reason: str) -> None:
        """What was sent to `attempt` since the last checkpoint is lost; wait for the reset to learn
        which that is.
        """

    def subtask_reset(self, subtask: int, checkpoint_id: int) -> None:
        """The subtask goes back to `checkpoint_id` (NO_CHECKPOINT: to the beginning): take back
        what it was told after.
        """

    def notify_checkpoint_complete(self, checkpoint_id: int) -> None:
        """The checkpoint is durable; this notice may be missed, and is then subsumed by a later
        one, or by the restore: `reset_to_checkpoint(checkpoint_id, ...)` says that the checkpoint
        is completed, and no notice of it follows. A later start does not go back behind a completed
        checkpoint, unless it is damaged; which one it goes back to, `reset_to_checkpoint` says.
        """

    def notify_checkpoint_aborted(self, checkpoint_id: int) -> None:
        """The checkpoint will never be: no later start restores it.

        Nothing is said of a checkpoint if the store cannot tell whether it exists: the job then
        fails, and `reset_to_checkpoint` of the next start says whether it does.
        """

    def handle_client_request(self, request: Any) -> Any:
        """A client of the job asks something (`JobHandle.request`); return the answer.

        Both are plain values. The answer may be a Future of one, completed later and from any
        thread. What this raises is the client's to see and does not fail the job. Raises
        RequestNotHandled unless it is overridden.
        """
        raise RequestNotHandled(
            f"{type(self).__name__} cannot handle the request {request!r}; override "
            f"handle_client_request"
        )

    def supports_batch_snapshot(self) -> bool:
        """Whether `checkpoint(BATCH_CHECKPOINT, result)` may be asked of it, in a job that takes no
        checkpoints (`JobHandle.request_batch_snapshot`).
        """
        return False

    def close(self) -> None:
        """The job is over, or `start` has failed and another is made: release everything. Called
        once, on the queue's thread; one that `RecreateOnReset` replaces is closed on another. What
        it raises is a warning of the job, since the others must be closed too.
        """


class CoordinatorProvider(ABC):
    """Makes the coordinator of one operator. Source: Flink's OperatorCoordinator.Provider."""

    @property
    @abstractmethod
    def operator_id(self) -> str:
        """The name that ties coordinator, operator and their state together; unique in a job."""

    @abstractmethod
    def create(self, context: CoordinatorContext) -> OperatorCoordinator:
        """Make the coordinator; called when the job is made, and again for one that could not
        start. What it raises the first time passes to who starts the job; later it counts as
        another start that failed.
        """

    def redistribute(self, states: Mapping[int, bytes], parallelism: int) -> Mapping[int, bytes]:
        """Make the states of the operator's new subtasks of `states`, those of the old ones, by
        subtask; called on the driver when a start resumes with another parallelism.

        Each byte of the old states must be in exactly one new state, or in none that matters; a
        subtask that is left out begins from nothing. The coordinator's own state is restored as it
        is. Raises NotRescalable for a state that is not empty, unless it is overridden.
        """
        return keep_nothing(states, parallelism)

    @property
    def state_version(self) -> int:
        """Which form of its state the coordinator's `checkpoint` gives, from 1: write
        `state_version = 2` in the provider's class when the form changes.
        """
        return 1

    def upgrade_state(self, version: int, state: bytes) -> bytes:
        """The coordinator's state of an older version in the form of `state_version`;
        `reset_to_checkpoint` gets what this returns. Called on the queue's thread.

        Refuses every version unless it is overridden: raises StateNotUpgraded.
        """
        whose = f"the coordinator of operator {self.operator_id!r}"
        raise StateNotUpgraded(whose, version, self.state_version)

    def files_of(self, state: bytes) -> Collection[str]:
        """The names of the files beside the checkpoints that a coordinator's state refers to, such
        as "known-files/known-1.segment"; a savepoint takes copies of them with it.

        None, unless it is overridden. Called off the queue's thread.
        """
        return ()
