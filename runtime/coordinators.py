"""The shell around the user's coordinators: calls them as the holders say, and takes their answers
to the queue.

Listens to the ports of holders, snapshots and gateways. It decides nothing: an exception of user
code becomes a failure of the job, the outcome of a snapshot's future a trigger, and a send's future
is completed as its gateway says.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

from epochgate.runtime.client_requests import ClientRequests
from epochgate.runtime.coordinator import (
    BATCH_CHECKPOINT,
    NO_CHECKPOINT,
    OperatorCoordinator,
    SubtaskGateway,
)
from epochgate.runtime.coordinator_context import BoundContext, BoundGateway
from epochgate.runtime.coordinator_store import CoordinatorStore
from epochgate.runtime.event_loop import CoroutineRunner
from epochgate.runtime.operator import FatalTaskError
from epochgate.runtime.receipts import Receipt, RegisteredEvent
from epochgate.runtime.send_future import EventLost, SendFuture
from epochgate.runtime.snapshot_future import SnapshotFuture
from epochgate.runtime.watchdog import CallWatch

if TYPE_CHECKING:
    from epochgate.runtime.job_master import JobMaster

RAISED = object()
"""What a guarded call returns when user code has raised."""


class Unmade(OperatorCoordinator):
    """Stands for a coordinator that its provider failed to make: it cannot start."""

    def __init__(self, error: Exception) -> None:
        self._error = error

    def start(self) -> None:
        raise self._error

    def checkpoint(self, checkpoint_id: int, result: Future[bytes]) -> None:
        raise self._error

    def reset_to_checkpoint(self, checkpoint_id: int, state: bytes | None) -> None:
        pass


class Coordinators:
    """All coordinators of a job; handler of the ports `user`, `results` and `sender`. A place is a
    subtask, or one of several if it has concurrent attempts.
    """

    def __init__(self, master: JobMaster) -> None:
        self._master, self._subtask_of = master, master.subtask_of
        job = master.job
        self.store = CoordinatorStore()
        self.watch = CallWatch()
        self.relay: Callable[..., None] = master.queue.post
        """Posts from where no lock may be taken; a watchdog beside the queue's thread sets it."""
        self._contexts: list[BoundContext] = []
        self._coordinators: list[OperatorCoordinator] = []
        for number, provider in enumerate(master.configuration.providers):
            self._contexts.append(self._context(number))
            self._coordinators.append(provider.create(self._contexts[number]))
        self.requests = ClientRequests(
            {self.operator_id(n): partial(self._ask, n) for n in range(len(self._contexts))},
            master.queue.post,
        )
        self.on_wire: dict[tuple[int, int], deque[SendFuture]] = {g: deque() for g in job.gateway}
        job.bind("holder", "user", self)
        job.bind("snapshot", "results", self)
        job.bind("gateway", "sender", self)

    def _context(self, number: int) -> BoundContext:
        operator_id = self._master.configuration.providers[number].operator_id
        return BoundContext(self._master, self, number, operator_id)

    def __getitem__(self, number: int) -> OperatorCoordinator:
        return self._coordinators[number]

    def operator_id(self, number: int) -> str:
        return self._contexts[number].operator_id

    def freeze_metrics(self) -> None:
        """Keep the figures as they are; the coordinators are closed."""
        for context in self._contexts:
            context.metrics.freeze()

    @cached_property
    def event_loop(self) -> CoroutineRunner:
        """Where coroutines run, from the first one on."""
        return self._master.blocking.open_loop(self._master.queue)

    def guarded(self, number: int, call: Callable[..., Any], *arguments: Any) -> Any:
        """Call user code as an effect of a step; what it raises fails the job in a later one, and
        RAISED is returned.
        """
        self.watch.enter(number, call)
        try:
            return call(*arguments)
        except Exception as error:  # noqa: BLE001  # user code may raise anything
            if self._may_try_again(number, error):
                self._master.queue.post(self._master.job.holder[number].fail_job)
            return RAISED
        finally:
            self.watch.leave()

    def guarded_event(self, number: int, call: Callable[..., Any], *arguments: Any) -> None:
        """Call user code as an event of its own; what it raises fails the job in the same event,
        so that nothing comes between.
        """
        self.watch.enter(number, call)
        try:
            call(*arguments)
        except Exception as error:  # noqa: BLE001  # user code may raise anything
            self.fail_job_now(number, error)
        finally:
            self.watch.leave()

    def fail_job_now(self, number: int, cause: BaseException | str) -> None:
        """Let the holder decide, unless trying again cannot help; as an event of its own."""
        if self._may_try_again(number, cause):
            self._master.job.holder[number].fail_job()

    def _may_try_again(self, number: int, cause: BaseException | str, what: str = "") -> bool:
        name = f"coordinator {self.operator_id(number)!r}{what}"
        if isinstance(cause, FatalTaskError):
            self._master.fail(f"{name}: {cause}")
            return False
        self._master.note_failure(None, None, f"{name}: {cause!r}")
        return True

    def _ask(self, number: int, request: Any) -> Any:
        handle = self._coordinators[number].handle_client_request
        self.watch.enter(number, handle)
        try:
            return handle(request)
        finally:
            self.watch.leave()

    # port `user`

    def start(self, number: int) -> None:
        holder, post = self._master.job.holder[number], self._master.queue.post
        coordinator = self._coordinators[number]
        self.watch.enter(number, coordinator.start)
        try:
            self._begin_from_batch_snapshot(number)
            coordinator.start()
        except Exception as error:  # noqa: BLE001  # user code may raise anything
            if self._may_try_again(number, error, " could not start"):
                post(holder.start_failed)
        else:
            post(holder.started)
        finally:
            self.watch.leave()

    def unfit(self, number: int) -> None:
        self._master.queue.post(self._master.job.holder[number].start_failed)

    def rebuild(self, number: int) -> None:
        self._contexts[number].fence()
        self.close(number)
        self._contexts[number] = self._context(number)
        provider = self._master.configuration.providers[number]
        try:
            self._coordinators[number] = provider.create(self._contexts[number])
        except Exception as error:  # noqa: BLE001  # user code may raise anything
            self._coordinators[number] = Unmade(error)

    def _begin_from_batch_snapshot(self, number: int) -> None:
        state = self._master.batch_states.get(self.operator_id(number))
        if state is not None and self._master.job.checkpoint.completed == NO_CHECKPOINT:
            self._coordinators[number].reset_to_checkpoint(BATCH_CHECKPOINT, state)

    def close(self, number: int) -> None:
        try:
            self._coordinators[number].close()
        except Exception as error:  # noqa: BLE001  # the job is over; the others must be closed too
            self._master.warn(
                f"coordinator {self.operator_id(number)!r} failed to close: {error!r}"
            )

    def reset_to(self, number: int, checkpoint: int) -> None:
        self._master.batch_snapshots.cancel(number, "the coordinator went back to a checkpoint")
        state = self._master.checkpoints.coordinator_state(self.operator_id(number), checkpoint)
        if checkpoint == NO_CHECKPOINT:
            state = self._master.batch_states.get(self.operator_id(number))
            checkpoint = NO_CHECKPOINT if state is None else BATCH_CHECKPOINT
        self.guarded(number, self._coordinators[number].reset_to_checkpoint, checkpoint, state)

    def checkpoint(self, number: int, checkpoint: int, lane: int) -> None:
        dropped = (self.relay, self._snapshot_dropped, number, checkpoint, lane)
        result: Future[bytes] = SnapshotFuture(*dropped)
        result.add_done_callback(partial(self._snapshot_done, number, checkpoint, lane))
        self.guarded(number, self._coordinators[number].checkpoint, checkpoint, result)

    def _snapshot_done(
        self, number: int, checkpoint: int, lane: int, result: Future[bytes]
    ) -> None:
        snapshot = self._master.job.snapshot[number, lane]
        error = None if result.cancelled() else result.exception()
        if result.cancelled() or error is not None:
            cause = f"coordinator {self.operator_id(number)!r} has no snapshot: {error!r}"
            self._master.queue.post(self._master.checkpoints.note_reason, checkpoint, cause)
            self._master.queue.post(snapshot.fail, checkpoint)
        else:
            self._master.queue.post(snapshot.succeed, checkpoint, result.result())

    def _snapshot_dropped(self, number: int, checkpoint: int, lane: int) -> None:
        cause = f"coordinator {self.operator_id(number)!r} has dropped its future uncompleted"
        self._master.checkpoints.note_reason(checkpoint, cause)
        self._master.job.snapshot[number, lane].fail(checkpoint)

    def complete(self, number: int, checkpoint: int) -> None:
        self.guarded(number, self._coordinators[number].notify_checkpoint_complete, checkpoint)

    def aborted(self, number: int, checkpoint: int) -> None:
        self.guarded(number, self._coordinators[number].notify_checkpoint_aborted, checkpoint)

    def ready(self, number: int, place: int, attempt: int) -> None:
        gateway: SubtaskGateway = BoundGateway(self._master, number, place, attempt)
        ready = self._coordinators[number].execution_attempt_ready
        self.guarded(number, ready, gateway.subtask, attempt, gateway)

    def failed(self, number: int, place: int, attempt: int) -> None:
        reason, subtask = self._master.tasks.reason(place), self._subtask_of(place)
        self.guarded(
            number, self._coordinators[number].execution_attempt_failed, subtask, attempt, reason
        )

    def subtask_reset(self, number: int, place: int, checkpoint: int) -> None:
        reset = self._coordinators[number].subtask_reset
        self.guarded(number, reset, self._subtask_of(place), checkpoint)

    def event(self, number: int, place: int, attempt: int, event: Any) -> None:
        handle, subtask = (
            self._coordinators[number].handle_event_from_operator,
            self._subtask_of(place),
        )
        if not isinstance(event, RegisteredEvent):
            self.guarded(number, handle, subtask, attempt, event)
            return
        handled = partial(self._handled, number, place, attempt, event.number)
        outcome = self.guarded(number, handle, subtask, attempt, event.value)
        if isinstance(outcome, Future):
            outcome.add_done_callback(handled)
        elif outcome is not RAISED:
            handled(None)

    def _handled(
        self, number: int, place: int, attempt: int, event: int, done: Future[Any] | None
    ) -> None:
        if done is not None and (done.cancelled() or done.exception() is not None):
            cause = None if done.cancelled() else done.exception()
            self._contexts[number].fail_job(cause or "it has canceled the handling of an event")
            return
        receipt = SendFuture(Receipt(event))
        self._master.queue.post(self._master.job.holder[number].handled, place, attempt, receipt)

    # port `results`

    def keep(self, number: int, lane: int, checkpoint: int, state: bytes) -> None:
        self._master.checkpoints.keep_coordinator(self.operator_id(number), checkpoint, state)

    # port `sender`

    def pending(self, number: int) -> list[SendFuture]:
        """What a coordinator has sent that is neither confirmed nor lost, held events included."""
        found: list[SendFuture] = []
        for (coordinator, subtask), gateway in self._master.job.gateway.items():
            if coordinator == number:
                found += self.on_wire[coordinator, subtask]
                found += [event for held in gateway.held for event in held]
        return found

    def confirmed(self, number: int, place: int, count: int) -> None:
        on_wire = self.on_wire[number, place]
        for _ in range(count):
            on_wire.popleft().complete()

    def lost(self, number: int, place: int, count: int) -> None:
        on_wire, reason = self.on_wire[number, place], self._master.tasks.reason(place)
        for _ in range(count):
            future = on_wire.popleft()
            future.complete(_lost(future.event, self._subtask_of(place), reason))

    def lose_all(self, reason: str) -> None:
        """No process is left: what was on the wire, after a crash of the queue, will not arrive."""
        for (_, place), on_wire in self.on_wire.items():
            while on_wire:
                future = on_wire.popleft()
                future.complete(_lost(future.event, self._subtask_of(place), reason))

    def turned_away(self, number: int, place: int, future: SendFuture) -> None:
        subtask = self._subtask_of(place)
        future.complete(_lost(future.event, subtask, "its attempt is not running"))


def _lost(event: Any, subtask: int, reason: str) -> EventLost:
    return EventLost(f"event {event!r} for subtask {subtask} was lost: {reason}")
