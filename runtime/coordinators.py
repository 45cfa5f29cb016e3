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
from functools import partial
from typing import TYPE_CHECKING, Any

from epochgate.runtime.coordinator import CoordinatorContext, OperatorCoordinator, SubtaskGateway
from epochgate.runtime.operator import FatalTaskError
from epochgate.runtime.send_future import EventLost, SendFuture

if TYPE_CHECKING:
    from epochgate.runtime.job_master import JobMaster


class BoundGateway:
    """The SubtaskGateway of one attempt; `send_event` enqueues the gateway machine's `send`."""

    __slots__ = ("_post", "_send", "attempt", "subtask")

    def __init__(self, master: JobMaster, coordinator: int, subtask: int, attempt: int) -> None:
        self.subtask, self.attempt = subtask, attempt
        self._post = master.queue.post
        self._send = master.job.gateway[coordinator, subtask].send

    def send_event(self, event: Any) -> SendFuture:
        """Enqueue the event; any thread."""
        future = SendFuture(event)
        self._post(self._send, self.attempt, future)
        return future


class BoundContext:
    """The CoordinatorContext of one coordinator."""

    def __init__(self, master: JobMaster, coordinator: int, operator_id: str) -> None:
        self._master, self._coordinator = master, coordinator
        self.operator_id = operator_id
        self.parallelism = master.configuration.parallelism

    def fail_job(self, cause: BaseException | str) -> None:
        """Take the job back to its last completed checkpoint."""
        self._master.queue.post(self._master.coordinators.fail_job, self._coordinator, cause)

    def post(self, call: Callable[..., None], *arguments: Any) -> None:
        """Run `call` in its turn; what it raises fails the job."""
        self._master.queue.post(self._guarded, call, arguments)

    def post_later(self, delay_s: float, call: Callable[..., None], *arguments: Any) -> None:
        """Run `call` after `delay_s` seconds."""
        self._master.queue.post_later(delay_s, self._guarded, call, arguments)

    def run_async(
        self, work: Callable[[], Any], then: Callable[[Any, BaseException | None], None]
    ) -> None:
        """Run `work` elsewhere and `then` in its turn."""
        self._master.blocking.submit(
            f"coordinator-{self.operator_id}",
            work,
            lambda result, error: self._guarded(then, (result, error)),
        )

    def _guarded(self, call: Callable[..., None], arguments: tuple[Any, ...]) -> None:
        self._master.coordinators.guarded(self._coordinator, call, *arguments)


class Coordinators:
    """All coordinators of a job; handler of the ports `user`, `results` and `sender`."""

    def __init__(self, master: JobMaster) -> None:
        self._master = master
        job = master.job
        self._contexts: list[CoordinatorContext] = []
        self._coordinators: list[OperatorCoordinator] = []
        for number, provider in enumerate(master.configuration.providers):
            context = BoundContext(master, number, provider.operator_id)
            self._contexts.append(context)
            self._coordinators.append(provider.create(context))
        self.on_wire: dict[tuple[int, int], deque[SendFuture]] = {g: deque() for g in job.gateway}
        job.bind("holder", "user", self)
        job.bind("snapshot", "results", self)
        job.bind("gateway", "sender", self)

    def __getitem__(self, number: int) -> OperatorCoordinator:
        return self._coordinators[number]

    def operator_id(self, number: int) -> str:
        return self._contexts[number].operator_id

    def guarded(self, number: int, call: Callable[..., Any], *arguments: Any) -> None:
        """Call user code; what it raises fails the job."""
        try:
            call(*arguments)
        except Exception as error:  # noqa: BLE001  # user code may raise anything
            self.fail_job(number, error)

    def fail_job(self, number: int, cause: BaseException | str) -> None:
        """Note the cause and let the holder decide, unless trying again cannot help."""
        if isinstance(cause, FatalTaskError):
            self._master.fail(f"coordinator {self.operator_id(number)!r}: {cause}")
            return
        self._master.note_failure(
            None, None, f"coordinator {self.operator_id(number)!r}: {cause!r}"
        )
        self._master.queue.post(self._master.job.holder[number].fail_job)

    # port `user`

    def start(self, number: int) -> None:
        try:
            self._coordinators[number].start()
        except Exception as error:  # noqa: BLE001  # user code may raise anything
            self._master.fail(
                f"coordinator {self.operator_id(number)!r} could not start: {error!r}"
            )

    def close(self, number: int) -> None:
        try:
            self._coordinators[number].close()
        except Exception as error:  # noqa: BLE001  # the job is over; the others must be closed too
            self._master.warn(
                f"coordinator {self.operator_id(number)!r} failed to close: {error!r}"
            )

    def reset_to(self, number: int, checkpoint: int) -> None:
        state = self._master.checkpoints.coordinator_state(self.operator_id(number), checkpoint)
        self.guarded(number, self._coordinators[number].reset_to_checkpoint, checkpoint, state)

    def checkpoint(self, number: int, checkpoint: int, lane: int) -> None:
        result: Future[bytes] = Future()
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

    def complete(self, number: int, checkpoint: int) -> None:
        self.guarded(number, self._coordinators[number].notify_checkpoint_complete, checkpoint)

    def aborted(self, number: int, checkpoint: int) -> None:
        self.guarded(number, self._coordinators[number].notify_checkpoint_aborted, checkpoint)

    def ready(self, number: int, subtask: int, attempt: int) -> None:
        gateway: SubtaskGateway = BoundGateway(self._master, number, subtask, attempt)
        self.guarded(
            number, self._coordinators[number].execution_attempt_ready, subtask, attempt, gateway
        )

    def failed(self, number: int, subtask: int, attempt: int) -> None:
        reason = self._master.tasks.reason(subtask)
        self.guarded(
            number, self._coordinators[number].execution_attempt_failed, subtask, attempt, reason
        )

    def subtask_reset(self, number: int, subtask: int, checkpoint: int) -> None:
        self.guarded(number, self._coordinators[number].subtask_reset, subtask, checkpoint)

    def event(self, number: int, subtask: int, attempt: int, event: Any) -> None:
        self.guarded(
            number, self._coordinators[number].handle_event_from_operator, subtask, attempt, event
        )

    # port `results`

    def keep(self, number: int, lane: int, checkpoint: int, state: bytes) -> None:
        self._master.checkpoints.keep_coordinator(self.operator_id(number), checkpoint, state)

    # port `sender`

    def confirmed(self, number: int, subtask: int, count: int) -> None:
        on_wire = self.on_wire[number, subtask]
        for _ in range(count):
            on_wire.popleft().complete()

    def lost(self, number: int, subtask: int, count: int) -> None:
        on_wire = self.on_wire[number, subtask]
        for _ in range(count):
            future = on_wire.popleft()
            future.complete(_lost(future.event, subtask, self._master.tasks.reason(subtask)))

    def lose_all(self, reason: str) -> None:
        """No process is left: what was on the wire, after a crash of the queue, will not arrive."""
        for (_, subtask), on_wire in self.on_wire.items():
            while on_wire:
                future = on_wire.popleft()
                future.complete(_lost(future.event, subtask, reason))

    def turned_away(self, number: int, subtask: int, future: SendFuture) -> None:
        future.complete(_lost(future.event, subtask, "its attempt is not running"))


def _lost(event: Any, subtask: int, reason: str) -> EventLost:
    return EventLost(f"event {event!r} for subtask {subtask} was lost: {reason}")
