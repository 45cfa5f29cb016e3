"""The objects that the runtime hands to a coordinator: its context, and a gateway for each attempt.

Decides nothing: whatever a coordinator does with them becomes an event of the queue, and what its
calls raise there fails the job.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Coroutine, Iterable
from concurrent.futures import Future
from functools import partial
from typing import TYPE_CHECKING, Any

from epochgate.runtime.api.coordinator import RunningCoroutine
from epochgate.runtime.api.coordinator_metrics import CoordinatorMetrics
from epochgate.runtime.api.plain_values import PLAIN_TYPES, insist_on_plain_type
from epochgate.runtime.api.raised import let_pass
from epochgate.runtime.api.send_future import SendFuture, Together
from epochgate.runtime.api.user_code import load
from epochgate.runtime.shell.blocking_work import in_lane
from epochgate.runtime.shell.fenced_context import QuiescableContext
from epochgate.runtime.shell.futures import handed_out
from epochgate.runtime.shell.send_window import SendWindow

if TYPE_CHECKING:
    from epochgate.runtime.shell.coordinators import Coordinators
    from epochgate.runtime.shell.job_master import JobMaster

Then = Callable[[Any, BaseException | None], None]
_log = logging.getLogger(__name__)


class BoundGateway(SendWindow):
    """The SubtaskGateway of one attempt, whose methods enqueue the gateway machine's `send`."""

    __slots__ = ("_coordinator", "_master", "_post", "_send", "attempt")

    def __init__(self, master: JobMaster, coordinator: int, place: int, attempt: int) -> None:
        super().__init__(master.subtask_of[place], master.configuration.unconfirmed_bytes_max)
        self._master, self._coordinator, self.attempt = master, coordinator, attempt
        self._post = master.queue.post
        self._send = master.job.gateway[coordinator, place].send

    def send_event(self, event: Any) -> SendFuture:
        """Enqueue the event; any thread. Looks at its own type only: looking at everything in it
        would cost about a quarter of a send, and the transport, which packs it, names what is left.
        """
        # A call for each of these lines would cost a tenth of a send.
        if (
            self._sent >= self._looks_at
            or type(event) is not self._kind
            or len(event) != self._length
        ):
            sent = self._look(event)
        else:
            # Without a lock, since no other thread runs between loading the sum and storing it.
            self._sent = sent = self._sent + self._event_bytes
        future = SendFuture(event, self, sent)
        self._post(self._send, self.attempt, future)
        return future

    def send_events(self, events: Iterable[Any]) -> SendFuture:
        """Enqueue the events as one; any thread."""
        together = Together(events)
        for event in together:
            if type(event) not in PLAIN_TYPES:
                insist_on_plain_type(f"an event for subtask {self.subtask}", event)
        if together:
            return self.send_event(together)
        future = SendFuture(together)
        future.complete()
        return future

    def call_back(self, callback: Callable[[SendFuture], None], sent: SendFuture) -> None:
        """Call what a coordinator has added to the future of its send; what that raises fails the
        job, and is logged once the job is over.
        """
        if not self._master.is_over:
            self._master.coordinators.guarded(self._coordinator, callback, sent)
            return
        try:
            callback(sent)
        except BaseException as error:  # noqa: BLE001  # user code may raise anything
            let_pass(error)
            _log.exception("a callback of a sent event has raised after the job's end")


class BoundCheckpoints:
    """The CheckpointAccess of one job."""

    def __init__(self, master: JobMaster, coordinator: int) -> None:
        self._master, self._coordinator = master, coordinator
        self.interval_s = master.configuration.checkpoint_interval_s

    @property
    def is_periodic(self) -> bool:
        """True if checkpoints are taken without being asked for."""
        return self.interval_s is not None

    @property
    def last_completed_id(self) -> int:
        """The id of the last completed checkpoint."""
        latest = self._master.checkpoints.latest
        return 0 if latest is None else latest.checkpoint_id

    def request(self) -> Future[int]:
        """Ask for a checkpoint; the watchdog sees a callback of the future that hangs."""
        watched = partial(self._master.coordinators.watched, self._coordinator)
        return handed_out(self._master.request_checkpoint(), watched)


class BoundContext:
    """The CoordinatorContext of one coordinator; `HeldContext` fences it."""

    def __init__(
        self, master: JobMaster, coordinators: Coordinators, coordinator: int, operator_id: str
    ) -> None:
        self._master, self._coordinators, self._coordinator = master, coordinators, coordinator
        self.operator_id = operator_id
        self.job_id = master.configuration.job_id
        self.run_id = master.configuration.run_id
        self.parallelism = master.configuration.parallelism
        self.concurrent_attempts_max = master.configuration.concurrent_attempts_max
        self.coordinator_store = coordinators.store
        self.metrics = CoordinatorMetrics()
        self.checkpoints = BoundCheckpoints(master, coordinator)
        master.report.coordinator_metrics[operator_id] = self.metrics

    def load(self, name: str) -> Any:
        """Return what the name stands for in the driver's Python."""
        return load(name)

    def fail_job(self, cause: BaseException | str) -> None:
        """Take the job back to its last completed checkpoint."""
        self._master.queue.post(self.fail_now, cause)

    def fail_now(self, cause: BaseException | str) -> None:
        """Do so in the event under way."""
        if isinstance(cause, BaseException):
            let_pass(cause)
        self._coordinators.fail_job_now(self._coordinator, cause)

    def post(self, call: Callable[..., None], *arguments: Any) -> None:
        """Run `call` in its turn; what it raises fails the job."""
        self._master.queue.post(self._guarded, call, arguments)

    def post_later(self, delay_s: float, call: Callable[..., None], *arguments: Any) -> None:
        """Run `call` after `delay_s` seconds."""
        self._master.queue.post_later(delay_s, self._guarded, call, arguments)

    def run_async(self, work: Callable[[], Any], then: Then, *, lane: str = "") -> None:
        """Run `work` elsewhere and `then` in its turn."""
        where = f"coordinator-{self.operator_id}" + (f"-{lane}" if lane else "")
        what = f"what coordinator {self.operator_id!r} has handed to run_async"

        def done(_: str, *came: Any) -> None:
            self._guarded(then, came)

        in_lane(self._master, where, work, done, what, what="{}")

    def run_coroutine(self, coroutine: Coroutine[Any, Any, Any], then: Then) -> RunningCoroutine:
        """Run `coroutine` on the job's event loop and `then` in its turn."""
        return self._coordinators.event_loop.submit(
            coroutine, lambda result, error: self._guarded(then, (result, error))
        )

    def _guarded(self, call: Callable[..., None], arguments: tuple[Any, ...]) -> None:
        self._coordinators.guarded(self._coordinator, call, *arguments)


class HeldContext(QuiescableContext):
    """The context that a holder hands to its coordinator: the job's own, fenced."""

    def __init__(self, master: JobMaster, coordinators: Coordinators, coordinator: int) -> None:
        operator_id = master.configuration.providers[coordinator].operator_id
        bound = BoundContext(master, coordinators, coordinator, operator_id)
        super().__init__(bound)
        self._post, self._fail_now = master.queue.post, self._while_open(bound.fail_now)

    def fail_job(self, cause: BaseException | str) -> None:
        """Fail the job in its turn, as what user code raises does, and without raising it."""
        self._post(self._fail_now, cause)
