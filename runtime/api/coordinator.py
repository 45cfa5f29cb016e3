"""The coordinator API: the user's code for an operator on the driver, and its context.

Source: Apache Flink's OperatorCoordinator, its Context, Provider and SubtaskGateway (section 5 of
docs/protocol.md); docs/contract.md lists the counterpart of each name. All methods of a
coordinator are called on the event queue's thread, one at a time, and must not block: the job
warns of a call that takes longer than `coordinator_call_warn_s`. For each subtask the order of
calls is: ready, failed, reset of the subtask or of the whole job, ready again.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Coroutine, Iterable, Mapping
from concurrent.futures import Future
from typing import Any, Final, Protocol

from epochgate.errors import UsageError
from epochgate.runtime.api.coordinator_metrics import CoordinatorMetrics
from epochgate.runtime.api.coordinator_store import CoordinatorStore
from epochgate.runtime.api.malformed_event import MalformedEvent
from epochgate.runtime.api.rescaling import keep_nothing
from epochgate.runtime.api.send_future import SendFuture
from epochgate.runtime.api.state_versions import StateNotUpgraded

NO_CHECKPOINT: Final = 0
"""The checkpoint id for "no checkpoint": a reset to it is a reset to the beginning."""
BATCH_CHECKPOINT: Final = -1
"""The checkpoint id of a snapshot taken without a checkpoint; see `supports_batch_snapshot`."""


class RequestNotHandled(UsageError):
    """A client sent a request to a coordinator that does not handle requests."""


class SubtaskGateway(Protocol):
    """Sends events to one execution attempt of a subtask. After the attempt has failed, every send
    fails. Source: Flink's OperatorCoordinator.SubtaskGateway.
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

        An event that is sent before the coordinator completes its checkpoint belongs to the
        subtask's state of that checkpoint; a later event does not. May be called from any thread;
        events of one thread keep their order. The returned future completes when the task has
        confirmed the event. It fails if the attempt does not run; nothing else fails then. Raises
        GatewayFull if more than the job's `unconfirmed_bytes_max` would wait for the task: nothing
        is sent, and `when_room` says when to try again. Raises ValueNotPlain if `event` is of
        another type. A value inside it of another type fails the job when the event is packed.
        """
        ...

    def send_events(self, events: Iterable[Any]) -> SendFuture:
        """Send several plain values as one: they keep their order, all of them belong to the
        subtask's state of a checkpoint or none does, and one future completes when the task has
        handled all. If the operator raises in one of them, the attempt fails and the future fails.

        A hundred events cost little more than one, but form one message: together they must fit
        into one message of the wire. Without events the future is done at once. Otherwise as
        `send_event`.
        """
        ...

    def when_room(self) -> SendFuture:
        """Return a future that is done when at most half of `unconfirmed_bytes_max` waits for the
        attempt and the largest event that was refused would be sent. Any thread; the future's
        callbacks run on the queue's thread, and may send what was refused again.
        """
        ...


class CheckpointAccess(Protocol):
    """The job's checkpoints, for its coordinators; thread-safe. Source: Flink's
    OperatorCoordinator.Context.getCheckpointCoordinator.
    """

    @property
    def interval_s(self) -> float | None:
        """Seconds between periodic checkpoints; None if they are taken on request only."""
        ...

    @property
    def is_periodic(self) -> bool:
        """True if the job takes checkpoints periodically."""
        ...

    @property
    def last_completed_id(self) -> int:
        """The id of the last completed checkpoint, NO_CHECKPOINT before the first."""
        ...

    def request(self) -> Future[int]:
        """Request a checkpoint that begins after this call; the future gives its id when it is
        completed.

        The future fails with CheckpointAborted, with CheckpointOutcomeUnknown if the store cannot
        tell whether it holds the checkpoint, with NoCheckpointAmongAttempts or JobOver. Do not wait
        for it on the queue's thread.
        """
        ...


class RunningCoroutine(Protocol):
    """A coroutine that `run_coroutine` runs."""

    def cancel(self) -> None:
        """Raise CancelledError in it at its next await. Thread-safe; a no-op after its end."""
        ...


class CoordinatorContext(Protocol):
    """The services of the job for a coordinator. They may be used from `CoordinatorProvider.create`
    on, and are no-ops after the end of the job. Source: Flink's OperatorCoordinator.Context.
    """

    @property
    def operator_id(self) -> str:
        """The id that the coordinator, its operator and their state share."""
        ...

    @property
    def job_id(self) -> str:
        """The id of the job in its checkpoints; the same after a restart."""
        ...

    @property
    def run_id(self) -> str:
        """The id of this start of the driver."""
        ...

    @property
    def parallelism(self) -> int:
        """The number of subtasks."""
        ...

    @property
    def concurrent_attempts_max(self) -> int:
        """The maximum number of concurrent attempts of a subtask; 1 by default.

        With more, each attempt is announced with a gateway of its own, and a subtask is reset when
        all of its attempts have ended.
        """
        ...

    @property
    def coordinator_store(self) -> CoordinatorStore:
        """Values that the coordinators of this job share, by key."""
        ...

    @property
    def metrics(self) -> CoordinatorMetrics:
        """This coordinator's metrics, shown as `JobReport.coordinator_metrics[operator_id]`."""
        ...

    @property
    def checkpoints(self) -> CheckpointAccess:
        """The job's checkpoints."""
        ...

    def load(self, name: str) -> Any:
        """Import and return the object "package.module:name" in the driver's Python; see
        `user_code`. Raises CannotLoad.
        """
        ...

    def fail_job(self, cause: BaseException | str) -> None:
        """Fail the job, which restores its last completed checkpoint. Further calls before the
        restore are ignored. Thread-safe.
        """
        ...

    def post(self, call: Callable[..., None], *arguments: Any) -> None:
        """Run `call(*arguments)` on the queue's thread, behind earlier events. Thread-safe: use it
        from the coordinator's own threads.
        """
        ...

    def post_later(self, delay_s: float, call: Callable[..., None], *arguments: Any) -> None:
        """Run `call(*arguments)` on the queue's thread after `delay_s` seconds. Call this on the
        queue's thread only.
        """
        ...

    def run_async(
        self,
        work: Callable[[], Any],
        then: Callable[[Any, BaseException | None], None],
        *,
        lane: str = "",
    ) -> None:
        """Run blocking `work` on another thread, then `then(result, error)` on the queue's thread.

        Each lane of a coordinator has a thread, which runs its work in order; lanes run
        concurrently. Call this on the queue's thread only. At the end of the job, running work is
        waited for a few seconds and then abandoned.
        """
        ...

    def run_coroutine(
        self,
        coroutine: Coroutine[Any, Any, Any],
        then: Callable[[Any, BaseException | None], None],
    ) -> RunningCoroutine:
        """Run `coroutine` on the job's event loop, then `then(result, error)` on the queue's
        thread.

        All coordinators of the job share the loop and its thread. At the end of the job the loop is
        closed and running coroutines are cancelled. In a simulation the loop uses the simulated
        clock. Call this on the queue's thread only.
        """
        ...


class OperatorCoordinator(ABC):
    """The user's code for an operator on the driver. Only the abstract methods are required.

    Subtasks and the attempts of each count from 0; checkpoint ids count from 1. Unless a method
    says otherwise, an exception makes the whole job restore its last completed checkpoint, and a
    FatalTaskError ends the job. Source: Flink's OperatorCoordinator and CoordinationRequestHandler.
    """

    @abstractmethod
    def start(self) -> None:
        """Start. Called once, after a restore if there is one and before any other method.

        If it raises, or calls `fail_job`, this coordinator is closed and a new one is created and
        started, as often as the restart strategy allows.
        """

    @abstractmethod
    def checkpoint(self, checkpoint_id: int, result: Future[bytes]) -> None:
        """Take a snapshot of the state, and complete `result` with it.

        The completion is the coordinator's point in the checkpoint: events sent before it belong to
        the tasks' states, events sent after it do not. `result` may be completed later and from any
        thread. Failing, cancelling or garbage-collecting it aborts the checkpoint, and so does
        completing it with anything but bytes (or None, for no state); if it is never completed, the
        checkpoint times out. Completing it after the checkpoint was aborted is a no-op.
        `checkpoint_id` is BATCH_CHECKPOINT for a snapshot without a checkpoint.
        """

    @abstractmethod
    def reset_to_checkpoint(self, checkpoint_id: int, state: bytes | None) -> None:
        """Restore `state`; None means the initial state. All subtasks restore the same checkpoint,
        and none of them is ready.

        `checkpoint_id` is NO_CHECKPOINT if there is no checkpoint, and BATCH_CHECKPOINT if `state`
        is a snapshot that was taken without a checkpoint.
        """

    def handle_event_from_operator(
        self, subtask: int, attempt: int, event: Any
    ) -> Future[Any] | None:
        """Handle an event of an operator, a plain value.

        If the operator requested a receipt, it is sent when this method returns, or when the future
        that it returns is done. From then on the event must be part of the coordinator's state. An
        exception, or a failed future, fails the job; MalformedEvent fails only the attempt that
        sent the event. Raises MalformedEvent unless it is overridden.
        """
        raise MalformedEvent(
            f"{type(self).__name__} got an event from subtask {subtask} but handles none; "
            f"override handle_event_from_operator"
        )

    def execution_attempt_ready(self, subtask: int, attempt: int, gateway: SubtaskGateway) -> None:
        """Called when `attempt` of `subtask` can receive events, through `gateway`."""

    def execution_attempt_failed(self, subtask: int, attempt: int, reason: str) -> None:
        """Called when `attempt` has failed. Events sent to it since the last checkpoint are lost;
        the following reset names that checkpoint.
        """

    def subtask_reset(self, subtask: int, checkpoint_id: int) -> None:
        """Called when the subtask restores `checkpoint_id` (NO_CHECKPOINT: the initial state).
        Undo the effect of later events on the coordinator's record of this subtask.
        """

    def notify_checkpoint_complete(self, checkpoint_id: int) -> None:
        """Called when the checkpoint is durable.

        The call may be missed; a later one, or a restore, then subsumes it. After
        `reset_to_checkpoint(checkpoint_id, ...)` the checkpoint is completed, and no call follows.
        A later start restores this checkpoint or a newer one, unless it is damaged;
        `reset_to_checkpoint` names the restored one.
        """

    def notify_checkpoint_aborted(self, checkpoint_id: int) -> None:
        """Called when the checkpoint is aborted: no later start will restore it.

        Not called if the store cannot tell whether it holds the checkpoint. The job then fails, and
        `reset_to_checkpoint` of the next start names the restored checkpoint.
        """

    def handle_client_request(self, request: Any) -> Any:
        """Answer a client's request (`JobHandle.request`).

        Request and answer are plain values. The answer may be a Future, completed later and from
        any thread. An exception is passed to the client, and does not fail the job. Raises
        RequestNotHandled unless it is overridden.
        """
        raise RequestNotHandled(
            f"{type(self).__name__} cannot handle the request {request!r}; override "
            f"handle_client_request"
        )

    def supports_batch_snapshot(self) -> bool:
        """Return whether a job without checkpoints may call `checkpoint(BATCH_CHECKPOINT, result)`
        (`JobHandle.request_batch_snapshot`).
        """
        return False

    def close(self) -> None:
        """Release all resources, at the end of the job or after `start` has failed.

        Called once, on the queue's thread; a coordinator that `RecreateOnReset` replaces is closed
        on another thread. An exception is logged as a warning, since the other coordinators must be
        closed too.
        """


class CoordinatorProvider(ABC):
    """Creates the coordinator of one operator. Source: Flink's OperatorCoordinator.Provider."""

    @property
    @abstractmethod
    def operator_id(self) -> str:
        """The id that the coordinator, its operator and their state share; unique in a job."""

    @abstractmethod
    def create(self, context: CoordinatorContext) -> OperatorCoordinator:
        """Create the coordinator. Called when the job is created, and again if `start` failed.

        An exception of the first call is raised to the caller that starts the job. An exception of
        a later call counts as another failed start.
        """

    def redistribute(
        self, states: Mapping[int, bytes], parallelism: int
    ) -> Mapping[int, bytes | None]:
        """Return the state of each subtask from 0 to `parallelism` - 1, made from `states`, those
        of the old subtasks.

        Called on the driver if a start restores a checkpoint with another parallelism. Put each
        part of the old states into exactly one new state. None: the subtask begins without a state.
        A subtask that is left out refuses the start as NotRescalable. The coordinator's own state
        is restored unchanged. Raises NotRescalable for a state that is not empty, unless it is
        overridden.
        """
        return keep_nothing(states, parallelism)

    state_version: int = 1
    """The version of the form of the coordinator's state, from 1. Write `state_version = 2` in the
    provider's class when the form changes.
    """

    def upgrade_state(self, version: int, state: bytes) -> bytes:
        """Return the coordinator's state, which has an older version, in the form of
        `state_version`.

        Called on the queue's thread, before `reset_to_checkpoint`, which gets the result. Raises
        StateNotUpgraded unless it is overridden.
        """
        whose = f"the coordinator of operator {self.operator_id!r}"
        raise StateNotUpgraded(whose, version, self.state_version)

    def files_of(self, state: bytes) -> Collection[str]:
        """Return the names of the files beside the checkpoints to which a coordinator's state
        refers, such as "known-files/known-1.segment": in a folder, and in none that the runtime
        uses (`checkpoints`, `history`, `parts`, `requests`). A savepoint contains copies
        of them.

        Empty unless it is overridden. Not called on the queue's thread.
        """
        return ()
