"""A coordinator's context that can be taken away from it: the one fence around an old coordinator,
both of one that its holder rebuilds and of one that `RecreateOnReset` replaces.

Decides nothing but that a quiesced context has no effect any more: what is read still reads, and
whatever would reach tasks, checkpoints, other coordinators, figures or the job is left out. For
what is run in its turn the check is made on the queue's thread, in the event in which the effect
would happen, so that no thread of an old coordinator gets in between; a checkpoint that was asked
for before is still taken. Source: the QuiesceableContext of Apache Flink's
RecreateOnResetOperatorCoordinator, which fences `failJob` alone.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterable
from concurrent.futures import Future
from typing import Any

from epochgate.errors import EpochgateError
from epochgate.runtime.api.coordinator import (
    CheckpointAccess,
    CoordinatorContext,
    RunningCoroutine,
    SubtaskGateway,
)
from epochgate.runtime.api.send_future import EventLost, SendFuture, Together

Then = Callable[[Any, BaseException | None], None]


class CoordinatorReplaced(EpochgateError):
    """The job went back to a checkpoint, and another coordinator has taken the place of the one
    that was asked.
    """


class JobFailedByCoordinator(EpochgateError):
    """A coordinator has called `fail_job` with something that cannot be raised."""

    def __repr__(self) -> str:
        return repr(self.args[0])


class QuiescableContext:
    """The CoordinatorContext of one coordinator among several that follow each other."""

    def __init__(self, context: CoordinatorContext) -> None:
        self._context = context
        self._coroutines: dict[_CoroutineEnd, RunningCoroutine] = {}
        self.is_quiesced = False
        self.operator_id, self.parallelism = context.operator_id, context.parallelism
        self.job_id, self.run_id = context.job_id, context.run_id
        self.concurrent_attempts_max = context.concurrent_attempts_max
        self.metrics = context.metrics.fenced(self._is_open)
        self.coordinator_store = context.coordinator_store.fenced(self._is_open)
        self.checkpoints: CheckpointAccess = _FencedCheckpoints(context.checkpoints, self)

    def _is_open(self) -> bool:
        return not self.is_quiesced

    def quiesce(self) -> None:
        """Let nothing through from now on; coroutines are cancelled. Queue thread."""
        self.is_quiesced = True
        for coroutine in list(self._coroutines.values()):
            coroutine.cancel()

    def gateway(self, gateway: SubtaskGateway) -> SubtaskGateway:
        """Return a gateway that is fenced with this context."""
        return _FencedGateway(gateway, self)

    def load(self, name: str) -> Any:
        """Return what the name stands for in the driver's Python."""
        return self._context.load(name)

    def fail_job(self, cause: BaseException | str) -> None:
        """Fail the job, unless this coordinator has been replaced when its turn comes."""
        error = cause if isinstance(cause, BaseException) else JobFailedByCoordinator(cause)
        self.post(_raise, error)

    def _while_open(self, call: Callable[..., None]) -> Callable[..., None]:
        """Return a call that is left out once this context is quiesced."""
        return _WhileOpen(self, call)

    def post(self, call: Callable[..., None], *arguments: Any) -> None:
        """Run `call` in its turn, unless this coordinator has been replaced by then."""
        self._context.post(_WhileOpen(self, call), *arguments)

    def post_later(self, delay_s: float, call: Callable[..., None], *arguments: Any) -> None:
        """Run `call` after `delay_s` seconds, unless this coordinator has been replaced by then."""
        self._context.post_later(delay_s, _WhileOpen(self, call), *arguments)

    def run_async(self, work: Callable[[], Any], then: Then, *, lane: str = "") -> None:
        """Run `work` elsewhere, and `then` unless this coordinator has been replaced by then."""
        if not self.is_quiesced:
            self._context.run_async(work, _WhileOpen(self, then), lane=lane)

    def run_coroutine(self, coroutine: Coroutine[Any, Any, Any], then: Then) -> RunningCoroutine:
        """Run `coroutine`, which ends with this coordinator, and `then` unless it has ended."""
        if self.is_quiesced:
            coroutine.close()
            return _Ended()

        end = _CoroutineEnd(self, then)
        running = self._coroutines[end] = self._context.run_coroutine(coroutine, end)
        return running

    def forget(self, end: _CoroutineEnd) -> None:
        """The coroutine has ended."""
        self._coroutines.pop(end, None)


class _WhileOpen:
    """A call that is left out once the context is quiesced; warnings name what is inside."""

    __slots__ = ("_context", "func")

    def __init__(self, context: QuiescableContext, call: Callable[..., None]) -> None:
        self._context, self.func = context, call

    def __call__(self, *arguments: Any) -> None:
        if not self._context.is_quiesced:
            self.func(*arguments)


class _CoroutineEnd(_WhileOpen):
    """The end of a coroutine: what it came to."""

    __slots__ = ()

    def __call__(self, *arguments: Any) -> None:
        self._context.forget(self)
        super().__call__(*arguments)


class _FencedGateway:
    """The SubtaskGateway of one attempt for one of several coordinators."""

    __slots__ = ("_context", "_gateway", "attempt", "subtask")

    def __init__(self, gateway: SubtaskGateway, context: QuiescableContext) -> None:
        self._gateway, self._context = gateway, context
        self.subtask, self.attempt = gateway.subtask, gateway.attempt

    def send_event(self, event: Any) -> SendFuture:
        """Send; what is on its way when the coordinator is replaced belongs to an attempt that is
        gone with it, and is turned away by the attempt's gateway.
        """
        if not self._context.is_quiesced:
            return self._gateway.send_event(event)
        return self._unsent(event)

    def send_events(self, events: Iterable[Any]) -> SendFuture:
        """Send them as one, as `send_event` does."""
        if not self._context.is_quiesced:
            return self._gateway.send_events(events)
        return self._unsent(Together(events))

    def when_room(self) -> SendFuture:
        """Say when there is room for more, as the gateway inside does."""
        return self._gateway.when_room()

    def _unsent(self, event: Any) -> SendFuture:
        future = SendFuture(event)
        future.complete(
            EventLost(
                f"event {event!r} for subtask {self.subtask} was not sent: another coordinator has "
                f"taken the place of the one that sends it"
            )
        )
        return future


class _FencedCheckpoints:
    """The CheckpointAccess of one of several coordinators."""

    def __init__(self, checkpoints: CheckpointAccess, context: QuiescableContext) -> None:
        self._checkpoints, self._context = checkpoints, context
        self.interval_s, self.is_periodic = checkpoints.interval_s, checkpoints.is_periodic

    @property
    def last_completed_id(self) -> int:
        return self._checkpoints.last_completed_id

    def request(self) -> Future[int]:
        if not self._context.is_quiesced:
            return self._checkpoints.request()
        refused: Future[int] = Future()
        refused.set_exception(
            CoordinatorReplaced("no checkpoint was asked for: the coordinator has been replaced")
        )
        return refused


class _Ended:
    """A coroutine that never began."""

    def cancel(self) -> None:
        """There is nothing to cancel."""


def _raise(error: Exception) -> None:
    raise error
