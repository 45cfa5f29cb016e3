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

from epochgate.runtime.api.coordinator import (
    BATCH_CHECKPOINT,
    OperatorCoordinator,
    SubtaskGateway,
)
from epochgate.runtime.api.coordinator_store import CoordinatorStore
from epochgate.runtime.api.malformed_event import MalformedEvent
from epochgate.runtime.api.operator import FatalTaskError
from epochgate.runtime.api.raised import in_words, let_pass, quoted
from epochgate.runtime.api.receipts import Receipt, RegisteredEvent
from epochgate.runtime.api.reports import shortened
from epochgate.runtime.api.send_future import EventLost, SendFuture
from epochgate.runtime.api.state_versions import upgraded
from epochgate.runtime.shell.asyncio_loop import CoroutineRunner
from epochgate.runtime.shell.batch_snapshots import BatchSnapshotRefused, BatchSnapshotRequest
from epochgate.runtime.shell.client_requests import (
    ClientRequest,
    ClientRequests,
    CoordinatorUnavailable,
    JobOver,
)
from epochgate.runtime.shell.coordinator_context import BoundGateway, HeldContext
from epochgate.runtime.shell.fenced_context import QuiescableContext
from epochgate.runtime.shell.futures import SnapshotFuture, reject
from epochgate.runtime.shell.watchdog import CallWatch

if TYPE_CHECKING:
    from epochgate.runtime.shell.job_master import JobMaster

Request = ClientRequest | BatchSnapshotRequest

RAISED = object()
"""What a guarded call returns when user code has raised."""


class MalformedPassed:
    """A call whose MalformedEvent is its outcome; warnings name what is inside."""

    __slots__ = ("func",)

    def __init__(self, call: Callable[..., Any]) -> None:
        self.func = call

    def __call__(self, *arguments: Any) -> Any:
        try:
            return self.func(*arguments)
        except MalformedEvent as error:
            return error


class Coordinators:
    """All coordinators of a job; handler of the ports `user` and `sender`. A place is a
    subtask, or one of several if it has concurrent attempts.
    """

    def __init__(self, master: JobMaster) -> None:
        self._master, self._subtask_of = master, master.subtask_of
        job = master.job
        self.store = CoordinatorStore()
        self.watch = CallWatch()
        self.relay: Callable[..., None] = master.queue.post
        """Posts from where no lock may be taken; a watchdog beside the queue's thread sets it."""
        self._contexts: list[QuiescableContext] = []
        self._coordinators: dict[int, OperatorCoordinator] = {}
        """By number; one that could not be made again is missing."""
        self.versions = [one.state_version for one in master.configuration.providers]
        for number, provider in enumerate(master.configuration.providers):
            self._contexts.append(self._context(number))
            self._coordinators[number] = provider.create(self._contexts[number])
        self.requests = ClientRequests(
            {self.operator_id(n): holder.client_request for n, holder in enumerate(job.holder)},
            master.queue.post,
        )
        self.on_wire: dict[tuple[int, int], deque[SendFuture]] = {g: deque() for g in job.gateway}
        self.waiting: dict[tuple[int, int], deque[SendFuture]] = {}
        """What waits in front of closed gateways, as these have said."""
        job.bind("holder", "user", self)
        job.bind("snapshot", "user", self)
        job.bind("gateway", "sender", self)

    def _context(self, number: int) -> QuiescableContext:
        return HeldContext(self._master, self, number)

    def __getitem__(self, number: int) -> OperatorCoordinator:
        return self._coordinators[number]

    def operator_id(self, number: int) -> str:
        return self._contexts[number].operator_id

    def freeze_metrics(self) -> None:
        """Keep the figures as they are; the coordinators are closed."""
        for number, context in enumerate(self._contexts):
            self.watched(number, context.metrics.freeze)

    @cached_property
    def event_loop(self) -> CoroutineRunner:
        """The loop in which coroutines run, from the first one on."""
        return self._master.blocking.open_loop(self._master.queue)

    def guarded(self, number: int, call: Callable[..., Any], *arguments: Any) -> Any:
        """Call user code; what it raises fails the job before any other event, and RAISED is
        returned.
        """
        watch = self.watch
        watch.running = (watch.clock_s(), number, call)
        try:
            return call(*arguments)
        except BaseException as error:  # noqa: BLE001  # user code may raise anything
            let_pass(error)
            self.fail_job_now(number, error)
            return RAISED
        finally:
            watch.running = None

    def fail_job_now(self, number: int, cause: BaseException | str) -> None:
        """Let the holder decide what the failure means; as an event of its own."""
        self._master.job.holder[number].fail_job(*self._cause(number, cause))

    def _cause(self, number: int, cause: BaseException | str, what: str = "") -> tuple[str, bool]:
        """The reason to report, and whether trying again cannot help."""
        name = f"coordinator {self.operator_id(number)!r}{what}"
        if isinstance(cause, FatalTaskError):
            return f"{name}: {in_words(cause)}", True
        said = quoted(cause) if isinstance(cause, BaseException) else repr(cause)
        return f"{name}: {said}", False

    def watched(self, number: int, call: Callable[..., Any], *arguments: Any) -> Any:
        """Call user code in the sight of the watchdog; raises what it raises."""
        watch = self.watch
        outer, watch.running = watch.running, (watch.clock_s(), number, call)
        try:
            return call(*arguments)
        finally:
            watch.running = outer

    # port `user`

    def start(self, number: int) -> None:
        holder = self._master.job.holder[number]
        start = self._coordinators[number].start
        started = partial(self._master.queue.post, holder.started)
        self._answered(number, start, started, holder.start_failed, " could not start")

    def _answered(
        self,
        number: int,
        call: Callable[[], None],
        done: Callable[..., Any],
        failed: Callable[..., Any],
        what: str,
    ) -> None:
        """Call user code, and fire the trigger that says how that has ended."""
        watch = self.watch
        watch.running = (watch.clock_s(), number, call)
        try:
            call()
        except BaseException as error:  # noqa: BLE001  # user code may raise anything
            let_pass(error)
            failed(*self._cause(number, error, what))
        else:
            done()
        finally:
            watch.running = None

    def unfit(self, number: int) -> None:
        reason = f"coordinator {self.operator_id(number)!r} has failed the job before it started"
        self._master.queue.post(self._master.job.holder[number].start_failed, reason, False)

    def rebuild(self, number: int, checkpoint: int) -> None:
        self._restore(number, partial(self._made_again, number, checkpoint))

    def rebuild_from_batch_snapshot(self, number: int) -> None:
        self._restore(number, partial(self._made_again, number, BATCH_CHECKPOINT))

    def _restore(self, number: int, restore: Callable[[], None]) -> None:
        holder, what = self._master.job.holder[number], " could not be restored"
        self._answered(number, restore, holder.restored, holder.restore_failed, what)

    def _made_again(self, number: int, checkpoint: int) -> None:
        self._contexts[number].quiesce()
        self.close(number)
        self._coordinators.pop(number, None)
        self._contexts[number] = self._context(number)
        provider = self._master.configuration.providers[number]
        self._coordinators[number] = provider.create(self._contexts[number])
        if checkpoint:
            self._go_back(number, checkpoint)

    def close(self, number: int) -> None:
        if number not in self._coordinators:
            return
        close = self._coordinators[number].close
        try:
            self.watched(number, close)
        except BaseException as error:  # noqa: BLE001  # the others must be closed too
            let_pass(error)
            self._master.warn(
                f"coordinator {self.operator_id(number)!r} failed to close: {quoted(error)}"
            )

    def reset_to(self, number: int, checkpoint: int) -> None:
        self._restore(number, partial(self._go_back, number, checkpoint))

    def reset_to_batch_snapshot(self, number: int) -> None:
        self._restore(number, partial(self._go_back, number, BATCH_CHECKPOINT))

    def _go_back(self, number: int, checkpoint: int) -> None:
        if checkpoint == BATCH_CHECKPOINT:
            state: bytes | None = self._master.batch_states[self.operator_id(number)]
        else:
            state = self._restored(number, checkpoint)
        self._master.batch_snapshots.cancel(number, "the coordinator went back to a checkpoint")
        self._coordinators[number].reset_to_checkpoint(checkpoint, state)

    def _restored(self, number: int, checkpoint: int) -> bytes | None:
        """A coordinator's state in a checkpoint, in the version of its code."""
        provider = self._master.configuration.providers[number]
        name, checkpoints = provider.operator_id, self._master.checkpoints
        state = checkpoints.coordinator_state(name, checkpoint)
        if state is None:
            return None
        return upgraded(
            f"the state of coordinator {name!r} in checkpoint {checkpoint}",
            checkpoints.coordinator_version(name, checkpoint),
            self.versions[number],
            state,
            provider.upgrade_state,
        )

    def cancel_batch_snapshot(self, number: int) -> None:
        self._master.batch_snapshots.cancel(number, "it has failed the job")

    def client_request(self, number: int, request: ClientRequest) -> None:
        handle = self._coordinators[number].handle_client_request
        self.requests.answer(
            self.operator_id(number), partial(self.watched, number, handle), request
        )

    def batch_snapshot(self, number: int, request: BatchSnapshotRequest) -> None:
        self._master.batch_snapshots.begin(number, request)

    def refuse_early(self, number: int, request: Request) -> None:
        self._refuse(number, request, "has not started; ask again once the job has begun")

    def refuse_broken(self, number: int, request: Request) -> None:
        self._refuse(
            number,
            request,
            f"could not start and is not rebuilt yet; ask again after the restart. The last "
            f"failure: {self._master.last_failure()}",
        )

    def refuse_failing(self, number: int, request: Request) -> None:
        self._refuse(
            number, request, "has failed the job and is not restored yet; ask again after the reset"
        )

    def _refuse(self, number: int, request: Request, why: str) -> None:
        text = f"the {request} was refused: coordinator {self.operator_id(number)!r} {why}"
        reject(request, CoordinatorUnavailable(text))

    def refuse_periodic(self, number: int, request: Request) -> None:
        interval_s = self._master.configuration.checkpoint_interval_s
        text = (
            f"the {request} of coordinator {self.operator_id(number)!r} was refused: this job "
            f"takes a checkpoint every {interval_s:g} s; ask for one of these, which holds what a "
            f"snapshot without a checkpoint would"
        )
        reject(request, BatchSnapshotRefused(text))

    def refuse_late(self, number: int, request: Request) -> None:
        reject(request, JobOver(f"the {request} came too late: the job is over"))

    # port `user` of the snapshots

    def checkpoint(self, number: int, checkpoint: int) -> None:
        snapshot, name = self._master.job.snapshot[number], self.operator_id(number)
        reason = f"coordinator {name!r} has dropped its future uncompleted"
        result = SnapshotFuture()
        result.dropped = partial(self.relay, snapshot.fail, checkpoint, reason)
        result.add_done_callback(partial(self._snapshot_done, number, checkpoint))
        self.guarded(number, self._coordinators[number].checkpoint, checkpoint, result)

    def _snapshot_done(self, number: int, checkpoint: int, result: Future[Any]) -> None:
        snapshot = self._master.job.snapshot[number]
        if result.cancelled():
            why = "its future was canceled"
        elif (error := result.exception()) is not None:
            why = quoted(error)
        elif (state := result.result()) is None or type(state) is bytes:
            self._master.queue.post(snapshot.succeed, checkpoint, state)
            return
        else:
            why = quoted(_not_bytes(state, checkpoint))
        reason = f"coordinator {self.operator_id(number)!r} has no snapshot: {why}"
        self._master.queue.post(snapshot.fail, checkpoint, reason)

    # port `user` of the holders

    def complete(self, number: int, checkpoint: int) -> None:
        self.guarded(number, self._coordinators[number].notify_checkpoint_complete, checkpoint)

    def aborted(self, number: int, checkpoint: int) -> None:
        self.guarded(number, self._coordinators[number].notify_checkpoint_aborted, checkpoint)

    def ready(self, number: int, place: int, attempt: int) -> None:
        gateway: SubtaskGateway = BoundGateway(self._master, number, place, attempt)
        ready = self._coordinators[number].execution_attempt_ready
        self.guarded(number, ready, gateway.subtask, attempt, gateway)

    def failed(self, number: int, place: int, attempt: int, reason: str) -> None:
        failed = self._coordinators[number].execution_attempt_failed
        self.guarded(number, failed, self._subtask_of[place], attempt, reason)

    def subtask_reset(self, number: int, place: int, checkpoint: int) -> None:
        reset = self._coordinators[number].subtask_reset
        self.guarded(number, reset, self._subtask_of[place], checkpoint)

    def event(self, number: int, place: int, attempt: int, event: Any) -> None:
        handle, subtask = (
            self._coordinators[number].handle_event_from_operator,
            self._subtask_of[place],
        )
        value = event.value if isinstance(event, RegisteredEvent) else event
        outcome = self.guarded(number, MalformedPassed(handle), subtask, attempt, value)
        if isinstance(outcome, Future):
            outcome.add_done_callback(partial(self._handled, number, place, attempt, event))
        elif isinstance(outcome, MalformedEvent):
            self._blame(number, place, attempt, outcome)
        elif outcome is not RAISED and isinstance(event, RegisteredEvent):
            self._send_receipt(number, place, attempt, event)

    def _handled(
        self, number: int, place: int, attempt: int, event: Any, done: Future[Any]
    ) -> None:
        cause = None if done.cancelled() else done.exception()
        if isinstance(cause, MalformedEvent):
            self._blame(number, place, attempt, cause)
        elif not isinstance(event, RegisteredEvent):
            return
        elif done.cancelled() or cause is not None:
            self._contexts[number].fail_job(cause or "it has canceled the handling of an event")
        else:
            self._send_receipt(number, place, attempt, event)

    def _blame(self, number: int, place: int, attempt: int, error: MalformedEvent) -> None:
        reason = f"coordinator {self.operator_id(number)!r} has refused its event: {error}"
        malformed = self._master.job.holder[number].event_malformed
        self._master.queue.post(malformed, place, attempt, shortened(reason))

    def _send_receipt(self, number: int, place: int, attempt: int, event: RegisteredEvent) -> None:
        receipt = SendFuture(Receipt(event.number))
        self._master.queue.post(self._master.job.holder[number].handled, place, attempt, receipt)

    # port `sender`

    def pending(self, number: int) -> list[SendFuture]:
        """Return what a coordinator has sent that is neither confirmed nor lost, held events
        included.
        """
        return [
            future
            for waiting in (self.on_wire, self.waiting)
            for (coordinator, _), futures in waiting.items()
            if coordinator == number
            for future in futures
        ]

    def is_on_wire(self, number: int) -> bool:
        """Return whether anything that a coordinator has sent is under way; held events are not."""
        return any(futures for (c, _), futures in self.on_wire.items() if c == number)

    def held(self, number: int, place: int, future: SendFuture) -> None:
        self.waiting.setdefault((number, place), deque()).append(future)

    def release(self, number: int, place: int, future: SendFuture) -> None:
        """The event waits no longer in front of its gateway, if it did."""
        held = self.waiting.get((number, place))
        if held and held[0] is future:
            held.popleft()
            if not held:
                del self.waiting[number, place]

    def confirmed(self, number: int, place: int, count: int) -> None:
        on_wire = self.on_wire[number, place]
        on_wire[count - 1].free()
        oldest = on_wire.popleft
        for _ in range(count):
            oldest().complete()

    def lost(self, number: int, place: int, count: int, reason: str) -> None:
        on_wire = self.on_wire[number, place]
        on_wire[count - 1].free()
        for _ in range(count):
            future = on_wire.popleft()
            future.complete(_lost(future.event, self._subtask_of[place], reason))

    def lose_all(self, reason: str) -> None:
        """No process is left: what was on the wire, after a crash of the queue, will not arrive."""
        for (_, place), on_wire in self.on_wire.items():
            while on_wire:
                future = on_wire.popleft()
                future.free()
                future.complete(_lost(future.event, self._subtask_of[place], reason))

    def turned_away(self, number: int, place: int, future: SendFuture) -> None:
        self.release(number, place, future)
        subtask = self._subtask_of[place]
        future.free()
        future.complete(_lost(future.event, subtask, "its attempt is not running"))


def _lost(event: Any, subtask: int, reason: str) -> EventLost:
    return EventLost(f"event {event!r} for subtask {subtask} was lost: {reason}")


def _not_bytes(state: object, checkpoint: int) -> TypeError:
    """The error of a coordinator whose snapshot no checkpoint can hold."""
    kind = type(state).__name__
    return TypeError(
        f"it has completed the result of checkpoint {checkpoint} with a {kind}, expected bytes; "
        "encode the state, as in result.set_result(json.dumps(state).encode())"
    )
