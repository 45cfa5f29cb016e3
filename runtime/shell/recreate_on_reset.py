"""A coordinator recreated at every reset, for those whose threads and clients cannot be taken back.

Decides nothing: the machine `Recreation` says which coordinator a call is for, when it has to wait,
and when the successor is made. What the shell adds is what each of that means: an old coordinator
is fenced first, so that nothing it does from then on reaches anybody, and closed on another thread,
within a time limit; a successor is created, restored and, if the job has begun, started.

A close that takes too long or raises fails the job, because what it holds may still be in use; the
successor is made nevertheless, and the next reset makes another. So does a successor that cannot be
made, and a call that raises; until then calls are dropped. Everything but the closing happens on
the queue's thread.
Source: Apache Flink's RecreateOnResetOperatorCoordinator.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Collection, Iterator, Mapping
from concurrent.futures import Future
from typing import Any, Final

from epochgate.errors import EpochgateError
from epochgate.fsm import Handles
from epochgate.fsm.inside import shown
from epochgate.models.recreation import CAUGHT_UP, FRESH, Recreations
from epochgate.runtime.api.coordinator import (
    CoordinatorContext,
    CoordinatorProvider,
    OperatorCoordinator,
    SubtaskGateway,
)
from epochgate.runtime.api.malformed_event import MalformedEvent
from epochgate.runtime.api.raised import let_pass, quoted
from epochgate.runtime.shell.fenced_context import CoordinatorReplaced, QuiescableContext
from epochgate.runtime.shell.futures import follow, reject, resolve

CLOSE_TIMEOUT_S: Final = 60.0


class CoordinatorNotClosed(EpochgateError):
    """A coordinator that was replaced did not close in time, or failed to."""


class RecreateOnReset(CoordinatorProvider):
    """Makes the coordinator of `provider`, and another one at every reset.

    `provider.create` is called on the queue's thread; a coordinator's `close` on another one, and
    it has `close_timeout_s` seconds before the job fails and goes on without waiting.
    """

    def __init__(
        self, provider: CoordinatorProvider, *, close_timeout_s: float = CLOSE_TIMEOUT_S
    ) -> None:
        self._provider, self._close_timeout_s = provider, close_timeout_s
        self.state_version = provider.state_version

    @property
    def operator_id(self) -> str:
        """The operator id of the provider inside."""
        return self._provider.operator_id

    def redistribute(
        self, states: Mapping[int, bytes], parallelism: int
    ) -> Mapping[int, bytes | None]:
        """Redistribute by the provider inside."""
        return self._provider.redistribute(states, parallelism)

    def upgrade_state(self, version: int, state: bytes) -> bytes:
        """Upgrade by the provider inside."""
        return self._provider.upgrade_state(version, state)

    def files_of(self, state: bytes) -> Collection[str]:
        """Those that the provider inside names."""
        return self._provider.files_of(state)

    def create(self, context: CoordinatorContext) -> RecreatedCoordinator:
        """Make the coordinator that makes the others."""
        return RecreatedCoordinator(self._provider, context, self._close_timeout_s)


class Inner:
    """One of the coordinators that follow each other, and the futures that end with it."""

    def __init__(self, context: CoordinatorContext) -> None:
        self.context = QuiescableContext(context)
        self.coordinator: OperatorCoordinator | None = None
        self._unanswered: dict[Future[Any], None] = {}

    @property
    def there(self) -> OperatorCoordinator:
        """The coordinator, which has been created."""
        assert self.coordinator is not None
        return self.coordinator

    def answer(self, request: Any) -> Any:
        """Ask it what a client asks; an answer to come is given up with the coordinator."""
        answer = self.there.handle_client_request(request)
        if not isinstance(answer, Future):
            return answer
        pending: Future[Any] = Future()
        self._unanswered[pending] = None
        pending.add_done_callback(lambda done: self._unanswered.pop(done, None))
        follow(pending, answer)
        return pending

    def fence(self, reason: str) -> None:
        """Let nothing of it through any more, and fail who waits for it."""
        self.context.quiesce()
        for future in list(self._unanswered):
            reject(future, CoordinatorReplaced(reason))


class Call:
    """A call of the job: made at once, later, or, when it is dropped, never.

    `is_asked` by a client, which is told the outcome instead of the job; `told`: the errors that
    who calls is told.
    """

    def __init__(
        self,
        make: Callable[[Inner], Any],
        *,
        dropped: Callable[[], None] = lambda: None,
        is_asked: bool = False,
        told: tuple[type[BaseException], ...] = (),
    ) -> None:
        self._make, self._dropped, self._is_asked = make, dropped, is_asked
        self._told = (BaseException,) if is_asked else told
        self._is_made = self._is_dropped = False
        self._value: Any = None
        self._error: BaseException | None = None
        """What who calls is told."""
        self._promise: Future[Any] | None = None

    def make(self, inner: Inner) -> None:
        """Make it; raises what the coordinator raises, unless who calls is told that."""
        try:
            self._value = self._make(inner)
        except self._told as error:
            let_pass(error)
            self._error = error
            if self._promise is not None:
                reject(self._promise, error)
            return
        self._is_made = True
        if self._promise is not None and isinstance(self._value, Future):
            follow(self._promise, self._value)
        elif self._promise is not None:
            resolve(self._promise, self._value)

    def drop(self) -> None:
        """Never make it."""
        self._is_dropped = True
        self._dropped()
        self._tell_client()

    def outcome(self) -> Any:
        """Return what the function has returned, or a future of that; raises what the caller is
        told.
        """
        if self._error is not None:
            raise self._error
        if self._is_made:
            return self._value
        self._promise = Future()
        if self._is_dropped:
            self._tell_client()
        return self._promise

    def _tell_client(self) -> None:
        if self._promise is not None and self._is_asked:
            text = "there is no coordinator to answer, or another one has taken over"
            reject(self._promise, CoordinatorReplaced(text))


class Inners:
    """The coordinators themselves: does what the machine asks for; handler of its port."""

    def __init__(
        self, provider: CoordinatorProvider, context: CoordinatorContext, close_timeout_s: float
    ) -> None:
        self._provider, self._context = provider, context
        self._close_timeout_s = close_timeout_s
        self._system = Handles(Recreations)
        self.machine = self._system.recreation
        self._system.bind("recreation", "inner", self)
        self.to_restore: tuple[int, bytes | None] | None = None
        """What the next coordinator goes back to."""
        self.current = Inner(context)
        self.current.coordinator = provider.create(self.current.context)
        self._problem = ""
        self._error: BaseException | None = None
        """What fails the job."""
        self._lane = 0
        """Closes run on one thread, and on another once one does not end."""

    def fire(self, trigger: Callable[..., Any], *arguments: Any) -> None:
        """Let the machine decide, and do everything that it asks for; raises the first error."""
        trigger(*arguments)
        self._system.settle()
        error, self._error = self._error, None
        if error is not None:
            raise error

    # port `inner`

    def restore(self, generation: int) -> None:
        if self.to_restore is not None:
            self.current.there.reset_to_checkpoint(*self.to_restore)

    def start(self, generation: int) -> None:
        self.current.there.start()

    def replace(self, generation: int) -> None:
        old, machine = self.current, self.machine
        old.fence("the job went back to a checkpoint, and its coordinator is recreated")
        self.current = Inner(self._context)
        if old.coordinator is None:
            self._context.post(self.fire, machine.closed, generation)
            return

        def ended(_: Any, error: BaseException | None) -> None:
            if error is None:
                self.fire(machine.closed, generation)
            else:
                self._problem = f"failed to close: {quoted(error)}"
                self.fire(machine.close_failed, generation)

        lane = "close" + (f" {self._lane}" if self._lane else "")
        self._context.run_async(old.coordinator.close, ended, lane=lane)
        self._context.post_later(self._close_timeout_s, self._late, generation)

    def _late(self, generation: int) -> None:
        self._problem = f"did not close within {self._close_timeout_s:g} s"
        self.fire(self.machine.close_late, generation)

    def fail_job(self, generation: int) -> None:
        self._lane += 1
        self._error = CoordinatorNotClosed(
            f"a coordinator that was replaced {self._problem}; its successor is not held up, but "
            f"threads, files and connections of the old one may still be in use"
        )

    def make(self, generation: int, is_started: bool) -> None:
        inner = self.current
        with self._answered(self.machine.made, self.machine.unmade):
            inner.coordinator = self._provider.create(inner.context)
            self.restore(generation)
            if is_started:
                inner.coordinator.start()

    def pass_on(self, generation: int, call: Call) -> None:
        with self._answered(self.machine.passed, self.machine.raised):
            call.make(self.current)

    @contextlib.contextmanager
    def _answered(self, done: Callable[[], Any], failed: Callable[[], Any]) -> Iterator[None]:
        try:
            yield
        except BaseException as error:  # noqa: BLE001  # user code may raise anything
            let_pass(error)
            self._error = self._error or error
            failed()
        else:
            done()

    def drop(self, call: Call) -> None:
        call.drop()

    def close(self, generation: int) -> None:
        self.current.fence("the job is over")
        if self.current.coordinator is not None:
            self.current.coordinator.close()


class RecreatedCoordinator(OperatorCoordinator):
    """Hands every call to the machine, which passes it on to the coordinator of the time."""

    def __init__(
        self, provider: CoordinatorProvider, context: CoordinatorContext, close_timeout_s: float
    ) -> None:
        self._inners = Inners(provider, context, close_timeout_s)
        self._machine = self._inners.machine

    @property
    def inner(self) -> OperatorCoordinator | None:
        """The coordinator that calls are passed on to; None while they have to wait."""
        is_there = shown(self._machine)["state"] in (FRESH, CAUGHT_UP)
        return self._inners.current.coordinator if is_there else None

    def _call(self, call: Call) -> Any:
        self._inners.fire(self._machine.call, call)
        return call.outcome()

    def _tell(self, make: Callable[[OperatorCoordinator], None]) -> None:
        self._inners.fire(self._machine.call, Call(lambda inner: make(inner.there)))

    def start(self) -> None:
        """Start the coordinator, as soon as there is one."""
        self._inners.fire(self._machine.start)

    def reset_to_checkpoint(self, checkpoint_id: int, state: bytes | None) -> None:
        """Replace the coordinator by a fresh one, which goes back to `state`."""
        self._inners.to_restore = (checkpoint_id, state)
        self._inners.fire(self._machine.reset)

    def checkpoint(self, checkpoint_id: int, result: Future[bytes]) -> None:
        """Ask for a snapshot, once the coordinator is there."""

        def ask(inner: Inner) -> None:
            inner.there.checkpoint(checkpoint_id, result)

        error = CoordinatorReplaced("there is no coordinator to take a snapshot of")
        self._inners.fire(self._machine.call, Call(ask, dropped=lambda: reject(result, error)))

    def handle_event_from_operator(
        self, subtask: int, attempt: int, event: Any
    ) -> Future[Any] | None:
        """Pass it on; a receipt waits until the coordinator of the time has handled it."""

        def handle(inner: Inner) -> Future[Any] | None:
            return inner.there.handle_event_from_operator(subtask, attempt, event)

        outcome: Future[Any] | None = self._call(Call(handle, told=(MalformedEvent,)))
        return outcome

    def execution_attempt_ready(self, subtask: int, attempt: int, gateway: SubtaskGateway) -> None:
        """Pass it on, with a gateway that is taken away together with the coordinator."""

        def announce(inner: Inner) -> None:
            fenced = inner.context.gateway(gateway)
            inner.there.execution_attempt_ready(subtask, attempt, fenced)

        self._inners.fire(self._machine.call, Call(announce))

    def execution_attempt_failed(self, subtask: int, attempt: int, reason: str) -> None:
        """Pass it on."""
        self._tell(lambda it: it.execution_attempt_failed(subtask, attempt, reason))

    def subtask_reset(self, subtask: int, checkpoint_id: int) -> None:
        """Pass it on."""
        self._tell(lambda it: it.subtask_reset(subtask, checkpoint_id))

    def notify_checkpoint_complete(self, checkpoint_id: int) -> None:
        """Pass it on."""
        self._tell(lambda it: it.notify_checkpoint_complete(checkpoint_id))

    def notify_checkpoint_aborted(self, checkpoint_id: int) -> None:
        """Pass it on."""
        self._tell(lambda it: it.notify_checkpoint_aborted(checkpoint_id))

    def handle_client_request(self, request: Any) -> Any:
        """Pass it on; the answer fails with CoordinatorReplaced when a reset comes first."""
        return self._call(Call(lambda inner: inner.answer(request), is_asked=True))

    def supports_batch_snapshot(self) -> bool:
        """Say what the coordinator says; no while there is none."""
        coordinator = self._inners.current.coordinator
        return coordinator is not None and coordinator.supports_batch_snapshot()

    def close(self) -> None:
        """Close the coordinator; those replaced before are waited for elsewhere."""
        self._inners.fire(self._machine.close)
