"""A coordinator made anew at every reset, for those whose threads and clients cannot be taken back.

Decides that a reset puts a fresh coordinator in the place of the old one, in this order: the old
one is fenced, so that nothing it does from then on reaches anybody; it is closed on another thread,
within a time limit; then its successor is created, restored and, if the job has begun, started.
What the job tells the coordinator meanwhile is *deferred*, and once the successor is restored it is
*caught up* in order; from then on calls are passed on directly.

A close that takes too long or raises fails the job, because what it holds may still be in use; the
successor is made nevertheless, and the next reset makes another. A successor that cannot be made is
*broken*: that fails the job too, and calls come to nothing until the next reset.

The first coordinator is made with the job, and restored itself when a reset comes before the start.
Everything but the closing happens on the queue's thread. Source: Apache Flink's
RecreateOnResetOperatorCoordinator.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from enum import Enum
from functools import partial
from typing import Any, Final

from epochgate.errors import EpochgateError
from epochgate.runtime.coordinator import (
    CoordinatorContext,
    CoordinatorProvider,
    OperatorCoordinator,
    SubtaskGateway,
)
from epochgate.runtime.futures import follow, reject, resolve
from epochgate.runtime.quiesced_context import CoordinatorReplaced, QuiescableContext

CLOSE_TIMEOUT_S: Final = 60.0


class CoordinatorNotClosed(EpochgateError):
    """A coordinator that was replaced did not close in time, or failed to."""


class RecreateOnReset(CoordinatorProvider):
    """Makes what `provider` makes, anew at every reset.

    `provider.create` is called on the queue's thread; a coordinator's `close` on another one, and
    it has `close_timeout_s` seconds before the job fails and goes on without waiting.
    """

    def __init__(
        self, provider: CoordinatorProvider, *, close_timeout_s: float = CLOSE_TIMEOUT_S
    ) -> None:
        self._provider, self._close_timeout_s = provider, close_timeout_s

    @property
    def operator_id(self) -> str:
        """The operator id of the provider inside."""
        return self._provider.operator_id

    def create(self, context: CoordinatorContext) -> RecreatedCoordinator:
        """Make the coordinator that makes the others."""
        return RecreatedCoordinator(self._provider, context, self._close_timeout_s)


class Phase(Enum):
    """What becomes of calls for a coordinator."""

    DEFERRED = "deferred"
    CAUGHT_UP = "caught up"
    BROKEN = "broken"


class Inner:
    """One of the coordinators that follow each other: fenced context, and what waits for it."""

    def __init__(self, context: CoordinatorContext, phase: Phase) -> None:
        self.context = QuiescableContext(context)
        self.phase = phase
        self.is_fresh = phase is Phase.CAUGHT_UP
        """Nothing has happened to it but its creation."""
        self.coordinator: OperatorCoordinator | None = None
        self.restore: tuple[int, bytes | None] | None = None
        self.deferred: deque[Callable[[OperatorCoordinator], None]] = deque()
        self.unanswered: dict[Future[Any], None] = {}
        """Futures of others that end with it: deferred checkpoints and clients' requests."""

    def give_up(self, reason: str) -> None:
        """Drop what waits, and fail who waits for it."""
        self.deferred.clear()
        for future in list(self.unanswered):
            reject(future, CoordinatorReplaced(reason))


class RecreatedCoordinator(OperatorCoordinator):
    """Passes every call on to the coordinator of the time."""

    def __init__(
        self, provider: CoordinatorProvider, context: CoordinatorContext, close_timeout_s: float
    ) -> None:
        self._provider, self._context = provider, context
        self._close_timeout_s = close_timeout_s
        self._is_started = self._is_over = False
        self._closing = 0
        """Replaced coordinators whose close is waited for."""
        self._lane = 0
        """Closes run on one thread, and on another once one does not end."""
        self._inner = Inner(context, Phase.CAUGHT_UP)
        self._inner.coordinator = provider.create(self._inner.context)

    @property
    def inner(self) -> OperatorCoordinator | None:
        """The coordinator that calls are passed on to; None while there is none."""
        return self._inner.coordinator if self._inner.phase is Phase.CAUGHT_UP else None

    def start(self) -> None:
        """Start the coordinator, as soon as there is one. One that fails in it is replaced at the
        next reset, and counts as not started.
        """
        if self._inner.phase is Phase.CAUGHT_UP:
            self._inner.is_fresh = False
            self._call(lambda coordinator: coordinator.start())
        self._is_started = True

    def reset_to_checkpoint(self, checkpoint_id: int, state: bytes | None) -> None:
        """Replace the coordinator by a fresh one, which goes back to `state`."""
        old = self._inner
        if old.is_fresh and old.phase is Phase.CAUGHT_UP:
            old.is_fresh = False
            self._call(lambda coordinator: coordinator.reset_to_checkpoint(checkpoint_id, state))
            return
        old.context.quiesce()
        old.give_up(f"the job has gone back to checkpoint {checkpoint_id}")
        self._inner = Inner(self._context, Phase.DEFERRED)
        self._inner.restore = (checkpoint_id, state)
        if old.coordinator is not None:
            self._close_elsewhere(old.coordinator)
        elif self._closing == 0:
            self._context.post(self._bring_up, self._inner)

    def _close_elsewhere(self, coordinator: OperatorCoordinator) -> None:
        self._closing += 1
        closing = _Closing()

        def closed(_: Any, error: BaseException | None) -> None:
            self._closed(closing, None if error is None else f"failed to close: {error!r}")

        def timed_out() -> None:
            if not closing.is_over:
                self._lane += 1
                self._closed(closing, f"did not close within {self._close_timeout_s:g} s")

        lane = "close" + (f" {self._lane}" if self._lane else "")
        self._context.run_async(coordinator.close, closed, lane=lane)
        self._context.post_later(self._close_timeout_s, timed_out)

    def _closed(self, closing: _Closing, problem: str | None) -> None:
        if closing.is_over:
            return
        closing.is_over = True
        self._closing -= 1
        if self._closing == 0:
            self._bring_up(self._inner)
        if problem is not None and not self._is_over:
            raise CoordinatorNotClosed(
                f"a coordinator that was replaced {problem}; its successor is not held up, but "
                f"threads, files and connections of the old one may still be in use"
            )

    def _bring_up(self, inner: Inner) -> None:
        """Create, restore, start and catch up; raises the first error, after everything was tried
        that can be.
        """
        if inner is not self._inner or inner.phase is not Phase.DEFERRED or self._is_over:
            return
        try:
            coordinator = inner.coordinator = self._provider.create(inner.context)
            if inner.restore is not None:
                coordinator.reset_to_checkpoint(*inner.restore)
            if self._is_started:
                coordinator.start()
        except Exception as error:
            inner.phase = Phase.BROKEN
            inner.give_up(f"its coordinator could not be made anew: {error!r}")
            raise
        errors = []
        while inner.deferred:
            call = inner.deferred.popleft()
            try:
                call(coordinator)
            except Exception as error:  # noqa: BLE001  # those behind it are due as well
                errors.append(error)
        inner.phase = Phase.CAUGHT_UP
        if errors:
            raise errors[0]

    def _call(self, call: Callable[[OperatorCoordinator], None]) -> None:
        inner = self._inner
        if inner.phase is Phase.DEFERRED:
            inner.deferred.append(call)
        elif inner.phase is Phase.CAUGHT_UP and inner.coordinator is not None:
            call(inner.coordinator)

    # every call but those above

    def checkpoint(self, checkpoint_id: int, result: Future[bytes]) -> None:
        """Ask for a snapshot, once the coordinator is there."""
        inner = self._inner
        if inner.phase is Phase.BROKEN:
            reject(result, CoordinatorReplaced("there is no coordinator to take a snapshot of"))
        elif inner.phase is Phase.CAUGHT_UP:
            self._call(lambda coordinator: coordinator.checkpoint(checkpoint_id, result))
        else:
            inner.unanswered[result] = None

            def ask(coordinator: OperatorCoordinator) -> None:
                inner.unanswered.pop(result, None)
                coordinator.checkpoint(checkpoint_id, result)

            self._call(ask)

    def handle_event_from_operator(
        self, subtask: int, attempt: int, event: Any
    ) -> Future[Any] | None:
        """Pass it on; a receipt waits until the coordinator of the time has handled it."""
        inner = self._inner
        if inner.phase is Phase.CAUGHT_UP and inner.coordinator is not None:
            return inner.coordinator.handle_event_from_operator(subtask, attempt, event)
        handled: Future[Any] = Future()

        def handle(coordinator: OperatorCoordinator) -> None:
            outcome = coordinator.handle_event_from_operator(subtask, attempt, event)
            if outcome is None:
                resolve(handled, None)
            else:
                follow(handled, outcome)

        self._call(handle)
        return handled

    def execution_attempt_ready(self, subtask: int, attempt: int, gateway: SubtaskGateway) -> None:
        """Pass it on, with a gateway that is taken away together with the coordinator."""
        fenced = self._inner.context.gateway(gateway)
        self._call(
            lambda coordinator: coordinator.execution_attempt_ready(subtask, attempt, fenced)
        )

    def execution_attempt_failed(self, subtask: int, attempt: int, reason: str) -> None:
        """Pass it on."""
        self._call(
            lambda coordinator: coordinator.execution_attempt_failed(subtask, attempt, reason)
        )

    def subtask_reset(self, subtask: int, checkpoint_id: int) -> None:
        """Pass it on."""
        self._call(lambda coordinator: coordinator.subtask_reset(subtask, checkpoint_id))

    def notify_checkpoint_complete(self, checkpoint_id: int) -> None:
        """Pass it on."""
        self._call(lambda coordinator: coordinator.notify_checkpoint_complete(checkpoint_id))

    def notify_checkpoint_aborted(self, checkpoint_id: int) -> None:
        """Pass it on."""
        self._call(lambda coordinator: coordinator.notify_checkpoint_aborted(checkpoint_id))

    def handle_client_request(self, request: Any) -> Any:
        """Pass it on; the answer fails with CoordinatorReplaced when a reset comes first."""
        inner = self._inner
        if inner.phase is Phase.CAUGHT_UP and inner.coordinator is not None:
            answer = inner.coordinator.handle_client_request(request)
            return self._pending(inner, answer) if isinstance(answer, Future) else answer
        if inner.phase is Phase.BROKEN:
            raise CoordinatorReplaced("there is no coordinator to answer until the next reset")
        waiting: Future[Any] = Future()
        self._call(partial(_answer_late, request, waiting))
        return self._pending(inner, waiting)

    def _pending(self, inner: Inner, answer: Future[Any]) -> Future[Any]:
        pending: Future[Any] = Future()
        inner.unanswered[pending] = None
        pending.add_done_callback(lambda done: inner.unanswered.pop(done, None))
        follow(pending, answer)
        return pending

    def supports_batch_snapshot(self) -> bool:
        """Say what the coordinator says; no while there is none."""
        inner = self._inner.coordinator
        return inner is not None and inner.supports_batch_snapshot()

    def close(self) -> None:
        """Close the coordinator; those replaced before are waited for elsewhere."""
        self._is_over = True
        inner = self._inner
        inner.context.quiesce()
        inner.give_up("the job is over")
        if inner.coordinator is not None:
            inner.coordinator.close()


class _Closing:
    """The close of one replaced coordinator."""

    is_over = False


def _answer_late(request: Any, waiting: Future[Any], coordinator: OperatorCoordinator) -> None:
    try:
        answer = coordinator.handle_client_request(request)
    except Exception as error:  # noqa: BLE001  # it is handed to the one who asked
        reject(waiting, error)
        return
    if isinstance(answer, Future):
        follow(waiting, answer)
    else:
        waiting.set_result(answer)
