"""The number of control events a second from the driver to four tasks, and how long one takes.

The job master, its queue's thread, the wire and the workers are the real ones; only Spark is
missing. Every event is confirmed, and counts when its future is done. The tasks are processes, so
driver and tasks share the machine's cores as they would in `local` mode.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future
from contextlib import contextmanager

import psutil

from epochgate.benchmarks.figures import Table, number, percentile, spread
from epochgate.benchmarks.loopback import LoopbackTransport
from epochgate.runtime import (
    CoordinatorContext,
    CoordinatorProvider,
    JobConfiguration,
    JobLoop,
    JobMaster,
    Operator,
    OperatorCoordinator,
    Program,
    SendFuture,
    SubtaskGateway,
    Work,
)
from epochgate.runtime.shell.blocking_work import ThreadedWork
from epochgate.runtime.shell.clock import MonotonicClock
from epochgate.runtime.store import CheckpointShelf, InMemoryCheckpointStore
from epochgate.runtime.tracing.file_journal import tracing_of

TASKS = 4
RUNS = 7
EVENTS_PER_RUN = 400_000
ROUND_TRIPS_PER_RUN = 2_000
IN_FLIGHT_PER_TASK = 2_048
EVENTS_PER_PORTION = 64
WAIT_S = 60.0
OPERATOR = "reader"
EVENT = ["split", "/data/part-00017.parquet", {"row_group": 12, "rows": 65_536}, b"x" * 80]
"""About 150 bytes on the wire."""


class CountingOperator(Operator):
    """Counts its events."""

    def __init__(self) -> None:
        self.events = 0

    def handle_event(self, event: object) -> None:
        """Count it."""
        self.events += 1

    def snapshot(self, checkpoint_id: int) -> bytes:
        """Return the count."""
        return str(self.events).encode()


class CountingProgram(Program):
    """Waits for events."""

    def __init__(self) -> None:
        self._operators = {OPERATOR: CountingOperator()}

    @property
    def operators(self) -> Mapping[str, Operator]:
        """The one operator."""
        return self._operators

    def work(self) -> Work:
        """Nothing but events."""
        return Work.IDLE


def counting_program(subtask: int) -> Program:
    """Make the program of one task; a task's process imports this."""
    return CountingProgram()


class EventSource(OperatorCoordinator):
    """Sends on the queue's thread, a portion of events whenever one has been confirmed."""

    def __init__(self, context: CoordinatorContext) -> None:
        self.context = context
        self.gateways: dict[int, SubtaskGateway] = {}
        self.is_ready, self.is_over = threading.Event(), threading.Event()
        self._unsent = self._unconfirmed = 0
        self.send_portion = send_portion

    def start(self) -> None:
        """Nothing to begin."""

    def checkpoint(self, checkpoint_id: int, result: Future[bytes]) -> None:
        """Nothing to keep."""
        result.set_result(b"")

    def reset_to_checkpoint(self, checkpoint_id: int, state: bytes | None) -> None:
        """Nothing to take back."""

    def execution_attempt_ready(self, subtask: int, attempt: int, gateway: SubtaskGateway) -> None:
        """Be ready when all are."""
        self.gateways[subtask] = gateway
        if len(self.gateways) == self.context.parallelism:
            self.is_ready.set()

    def stream(self, portions: int) -> None:
        """Send as many portions, spread over the tasks; `is_over` is set when all are handled."""
        self._unsent = self._unconfirmed = portions
        for gateway in self.gateways.values():
            for _ in range(IN_FLIGHT_PER_TASK // EVENTS_PER_PORTION):
                self._send_portion(gateway)

    def _send_portion(self, gateway: SubtaskGateway) -> None:
        if self._unsent > 0:
            self._unsent -= 1
            last = self.send_portion(gateway)
            last.add_done_callback(lambda done: self._confirmed(gateway, done))

    def _confirmed(self, gateway: SubtaskGateway, done: SendFuture) -> None:
        self._unconfirmed -= 1
        if done.exception() is not None or self._unconfirmed == 0:
            self.is_over.set()
        self._send_portion(gateway)

    def round_trips(self, times: int, seconds: list[float]) -> None:
        """Send one event after the other, and append how long each took."""
        sent_s = time.perf_counter()

        def done(future: SendFuture) -> None:
            seconds.append(time.perf_counter() - sent_s)
            if times > 1 and future.exception() is None:
                self.context.post(self.round_trips, times - 1, seconds)
            else:
                self.is_over.set()

        self.gateways[times % len(self.gateways)].send_event(EVENT).add_done_callback(done)


def send_portion(gateway: SubtaskGateway) -> SendFuture:
    """Send one portion of events, and return the future of the last."""
    for _ in range(EVENTS_PER_PORTION - 1):
        gateway.send_event(EVENT)
    return gateway.send_event(EVENT)


def send_together(gateway: SubtaskGateway) -> SendFuture:
    """Send one portion of events as one."""
    return gateway.send_events([EVENT] * EVENTS_PER_PORTION)


class EventSourceProvider(CoordinatorProvider):
    """Makes the source of events."""

    operator_id = OPERATOR

    def create(self, context: CoordinatorContext) -> EventSource:
        """Make it, and remember it."""
        self.made = EventSource(context)
        return self.made


class LoopbackJob:
    """A running job of four task processes; `journal` is a directory for their traces,
    `is_private` whether its wire is encrypted.
    """

    def __init__(
        self, tasks: int = TASKS, journal: str | None = None, *, is_private: bool = False
    ) -> None:
        provider = EventSourceProvider()
        configuration = JobConfiguration("bench", tasks, (provider,), checkpoint_interval_s=None)
        tracing = tracing_of(journal, configuration)
        self._transport = LoopbackTransport(
            counting_program,
            parallelism=tasks,
            coordinators=[OPERATOR],
            run_id=configuration.run_id,
            tracing=tracing,
            is_private=is_private,
        )
        self.master = JobMaster(
            configuration,
            transport=self._transport,
            store=InMemoryCheckpointStore(CheckpointShelf(), job_id="bench"),
            clock=MonotonicClock(),
            blocking=ThreadedWork,
            journal=None if tracing is None else tracing.driver,
        )
        self._loop = JobLoop(self.master)
        self._loop.start()
        self.source = provider.made
        wait_for(self.source.is_ready)

    def close(self) -> None:
        """End the job and its processes."""
        self.master.stop()
        self._loop.join(WAIT_S)

    def stream_from_coordinator(self, events: int) -> float:
        """Return the seconds that as many events took, sent by the coordinator."""
        self.source.is_over.clear()
        started_s = time.perf_counter()
        self.source.context.post(self.source.stream, events // EVENTS_PER_PORTION)
        wait_for(self.source.is_over)
        return time.perf_counter() - started_s

    def stream_together(self, events: int) -> float:
        """Return the seconds that as many events took, sent by the coordinator a portion as one."""
        self.source.send_portion = send_together
        try:
            return self.stream_from_coordinator(events)
        finally:
            self.source.send_portion = send_portion

    def stream_from_thread(self, events: int) -> float:
        """Return the seconds that as many events took, sent by this thread."""
        gateways = list(self.source.gateways.values())
        in_flight: deque[SendFuture] = deque()
        started_s = time.perf_counter()
        for portion in range(events // EVENTS_PER_PORTION):
            in_flight.append(send_portion(gateways[portion % len(gateways)]))
            if len(in_flight) * EVENTS_PER_PORTION > IN_FLIGHT_PER_TASK * len(gateways):
                in_flight.popleft().result(WAIT_S)
        for future in in_flight:
            future.result(WAIT_S)
        return time.perf_counter() - started_s

    def round_trips_us(self, times: int) -> list[float]:
        """Return how many microseconds each of as many events took from sending to its future."""
        seconds: list[float] = []
        self.source.is_over.clear()
        self.source.context.post(self.source.round_trips, times, seconds)
        wait_for(self.source.is_over)
        return [second * 1e6 for second in seconds]

    def task_processor_s(self) -> float:
        """Return the processor time that the task processes have used."""
        times = [psutil.Process(p.pid).cpu_times() for p in self._transport.processes]
        return sum(time.user + time.system for time in times)


def wait_for(event: threading.Event) -> None:
    """Wait for the end of a measurement; TimeoutError when it does not come."""
    if not event.wait(WAIT_S):
        raise TimeoutError(f"the measurement did not end within {WAIT_S} s")


@contextmanager
def loopback_job() -> Iterator[LoopbackJob]:
    """Run a job for the time of a measurement."""
    job = LoopbackJob()
    try:
        yield job
    finally:
        job.close()


def measure(
    runs: int = RUNS,
    events: int = EVENTS_PER_RUN,
    round_trips: int = ROUND_TRIPS_PER_RUN,
    note: Callable[[str], None] = lambda text: None,
) -> Table:
    """Measure throughput and round trips in turn, `runs` times, on one job."""
    coordinator, together, thread, halves, tails = [], [], [], [], []
    driver_us, tasks_us = [], []
    with loopback_job() as job:
        job.stream_from_coordinator(events // 4)
        for run in range(runs):
            note(f"run {run + 1} of {runs}")
            driver_s, tasks_s = time.process_time(), job.task_processor_s()
            coordinator.append(events / job.stream_from_coordinator(events))
            driver_us.append((time.process_time() - driver_s) / events * 1e6)
            tasks_us.append((job.task_processor_s() - tasks_s) / events * 1e6)
            together.append(events / job.stream_together(events))
            thread.append(events / job.stream_from_thread(events))
            trips_us = job.round_trips_us(round_trips)
            halves.append(percentile(trips_us, 50))
            tails.append(percentile(trips_us, 99))
    return Table(
        question="events",
        title="Control events from the driver to 4 tasks, each confirmed",
        header=("", "median (least to greatest)", "aim"),
        rows=(
            ("events/s, sent by a coordinator in its calls", spread(coordinator), "200,000"),
            (f"events/s, {EVENTS_PER_PORTION} sent as one", spread(together), "500,000"),
            ("events/s, sent by a thread of its own", spread(thread), ""),
            ("driver's processor time per event, µs", spread(driver_us), ""),
            ("tasks' processor time per event, µs", spread(tasks_us), ""),
            ("round trip of a single event, p50, µs", spread(halves), ""),
            ("round trip of a single event, p99, µs", spread(tails), ""),
        ),
        notes=(
            f"{runs} runs of {number(events)} events of about 150 bytes, 4 task processes on the "
            "loopback address; a round trip ends when the event's future is done."
        ),
    )
