"""The measured job on epochgate: its operator, and the coordinator that measures.

The counterpart of java/ beside this, method for method: the same events, as many of them in flight,
a callback for the future of each. The coordinator's calls are on the queue's thread.
"""

from __future__ import annotations

import functools
import time
from collections import deque
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from typing import Any

from epochgate.benchmarks.flink.contender import IN_FLIGHT, Streamed
from epochgate.benchmarks.watching import OPERATOR, Watcher
from epochgate.runtime import (
    CoordinatorContext,
    Operator,
    Program,
    SendFuture,
    SubtaskGateway,
    Work,
)

WAIT_S = 300.0
SPLIT, ANSWER, RAISE = (
    [kind, "/data/part-00017.parquet", {"row_group": 12, "rows": 65_536}, b"x" * 80]
    for kind in ("split", "answer", "raise")
)


class ToldToRaise(Exception):
    """The operator was told to raise."""


class CountingOperator(Operator):
    """Counts its events, which is its state; answers those that ask for it, or raises."""

    def __init__(self) -> None:
        self.events = 0

    def open(self, context: Any, state: bytes | None) -> None:
        """Go on from the count."""
        super().open(context, state)
        self.events = int(state or b"0")

    def handle_event(self, event: Any) -> None:
        """Count it, and do what it says."""
        self.events += 1
        kind = event[0]
        if kind == "raise":
            raise ToldToRaise
        if kind == "answer":
            self.context.send_to_coordinator(event)

    def snapshot(self, checkpoint_id: int) -> bytes:
        """Return the count."""
        return str(self.events).encode()


class CountingProgram(Program):
    """Does nothing between events."""

    def __init__(self) -> None:
        self._operator = CountingOperator()

    @property
    def operators(self) -> Mapping[str, Operator]:
        """The one operator."""
        return {OPERATOR: self._operator}

    def work(self) -> Work:
        """Wait for events."""
        return Work.IDLE


def counting_program(subtask: int) -> Program:
    """Make the program of one subtask."""
    return CountingProgram()


class Stream:
    """A stream to all subtasks, whose last event to each asks for an answer."""

    def __init__(self, gateways: Mapping[int, SubtaskGateway], events: int | None) -> None:
        self.over: Future[float] = Future()
        self.confirmed = 0
        self._gateways = gateways
        self._unsent = events
        self._under_way = 0

    def begin(self) -> None:
        """Send as many events as may be in flight; each confirmed one is followed by another."""
        subtasks = len(self._gateways)
        for number in range(IN_FLIGHT):
            self._send_to(number % subtasks)

    def end(self) -> None:
        """Send no more."""
        self._unsent = 0
        self._see_whether_it_is_over()

    def _send_to(self, subtask: int) -> None:
        unsent, event, target = self._unsent, SPLIT, subtask
        if unsent == 0:
            return
        if unsent is not None:
            if unsent <= len(self._gateways):
                event, target = ANSWER, unsent - 1
            self._unsent = unsent - 1
        self._under_way += 1
        sent = self._gateways[target].send_event(event)
        sent.add_done_callback(functools.partial(self._next, subtask))

    def _next(self, subtask: int, done: SendFuture) -> None:
        self._under_way -= 1
        self.confirmed += 1
        if (error := done.exception()) is not None:
            if not self.over.done():
                self.over.set_exception(error)
            return
        self._send_to(subtask)
        self._see_whether_it_is_over()

    def _see_whether_it_is_over(self) -> None:
        if self._unsent == 0 and self._under_way == 0 and not self.over.done():
            self.over.set_result(time.perf_counter())


class MeasuringCoordinator(Watcher):
    """Sends events to its subtasks, and tells how long what took."""

    def __init__(self, context: CoordinatorContext) -> None:
        super().__init__(context)
        self.gateways: dict[int, SubtaskGateway] = {}
        self._on_answer: Callable[[], None] = _nothing
        self._load: Stream | None = None

    def execution_attempt_ready(self, subtask: int, attempt: int, gateway: SubtaskGateway) -> None:
        """Ask it for an answer."""
        self.gateways[subtask] = gateway
        gateway.send_event(ANSWER)

    def handle_event_from_operator(self, subtask: int, attempt: int, event: Any) -> None:
        """Note the answer."""
        super().handle_event_from_operator(subtask, attempt, event)
        self._on_answer()

    def all_since(self, begun_s: float) -> float:
        """Wait until every subtask has answered after this moment; return the last one's."""
        return self.wait_for(range(self.context.parallelism), begun_s, WAIT_S)

    def stream_in_calls(self, events: int) -> Streamed:
        """Send events on the queue's thread."""
        begun_s = time.perf_counter()
        stream = Stream(self.gateways, events)
        self.context.post(stream.begin)
        confirmed_s = stream.over.result(WAIT_S)
        return Streamed(confirmed_s - begun_s, self.all_since(begun_s) - begun_s)

    def stream_by_thread(self, events: int) -> Streamed:
        """Send events from the thread that calls."""
        gateways = [self.gateways[subtask] for subtask in range(len(self.gateways))]
        subtasks = len(gateways)
        in_flight: deque[SendFuture] = deque()
        begun_s = time.perf_counter()
        for sent in range(events):
            if len(in_flight) == IN_FLIGHT:
                in_flight.popleft().result(WAIT_S)
            event = ANSWER if events - sent <= subtasks else SPLIT
            in_flight.append(gateways[sent % subtasks].send_event(event))
        for future in in_flight:
            future.result(WAIT_S)
        confirmed_s = time.perf_counter()
        return Streamed(confirmed_s - begun_s, self.all_since(begun_s) - begun_s)

    def confirmed_trips_us(self, times: int) -> list[float]:
        """Send single events, each when the future of the one before is done."""
        took_us: list[float] = []
        over: Future[None] = Future()
        self.context.post(self._trip, times, took_us, over)
        over.result(WAIT_S)
        return took_us

    def _trip(self, times: int, took_us: list[float], over: Future[None]) -> None:
        if len(took_us) == times:
            over.set_result(None)
            return
        begun_s = time.perf_counter()

        def done(future: SendFuture) -> None:
            took_us.append((time.perf_counter() - begun_s) * 1e6)
            if (error := future.exception()) is not None:
                over.set_exception(error)
            else:
                self.context.post(self._trip, times, took_us, over)

        gateway = self.gateways[len(took_us) % len(self.gateways)]
        gateway.send_event(SPLIT).add_done_callback(done)

    def answered_trips_us(self, times: int) -> list[float]:
        """Send single events, each when the one before has been answered."""
        took_us: list[float] = []
        over: Future[None] = Future()
        self.context.post(self._ask, times, took_us, over)
        try:
            over.result(WAIT_S)
        finally:
            self._on_answer = _nothing
        return took_us

    def _ask(self, times: int, took_us: list[float], over: Future[None]) -> None:
        if len(took_us) == times:
            over.set_result(None)
            return
        begun_s = time.perf_counter()

        def answered() -> None:
            took_us.append((time.perf_counter() - begun_s) * 1e6)
            self._ask(times, took_us, over)

        self._on_answer = answered
        self.gateways[len(took_us) % len(self.gateways)].send_event(ANSWER)

    def begin_load(self) -> None:
        """Begin to send events without end."""
        self._load = Stream(self.gateways, None)
        self.context.post(self._load.begin)

    def end_load(self) -> int:
        """End it; return the number of events that were confirmed."""
        if self._load is None:
            raise ValueError("no load was begun; call begin_load first")
        self.context.post(self._load.end)
        self._load.over.result(WAIT_S)
        return self._load.confirmed

    def raise_ms(self, subtask: int) -> float:
        """Let an operator raise; return the time until its successor has answered."""
        begun_s = time.perf_counter()
        self.gateways[subtask].send_event(RAISE)
        return (self.wait_for([subtask], begun_s) - begun_s) * 1e3

    def fail_all_ms(self) -> float:
        """Fail the job; return the time until all successors have answered."""
        begun_s = time.perf_counter()
        self.context.fail_job("the benchmark takes the job back")
        return (self.all_since(begun_s) - begun_s) * 1e3


def _nothing() -> None:
    """An answer that is not waited for."""
