"""The cost of a private wire: control events and round trips with and without TLS, in turn.

The jobs of `events`, one of them with a certificate; and how long a task takes to connect.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass, field

from epochgate.benchmarks.events import EVENTS_PER_RUN, ROUND_TRIPS_PER_RUN, LoopbackJob
from epochgate.benchmarks.figures import Table, number, percentile, spread
from epochgate.spark.wire import Connection, TaskChannel, TaskServer, new_key
from epochgate.spark.wire.certificate import new_credentials

RUNS = 15
CONNECTIONS_PER_RUN = 40
NAMES = ("plain", "private")


@dataclass
class Samples:
    """Of one kind of wire."""

    events_per_s: list[float] = field(default_factory=list)
    driver_us: list[float] = field(default_factory=list)
    tasks_us: list[float] = field(default_factory=list)
    halves_us: list[float] = field(default_factory=list)
    tails_us: list[float] = field(default_factory=list)
    connected_ms: list[float] = field(default_factory=list)


def measure(
    runs: int = RUNS,
    events: int = EVENTS_PER_RUN,
    round_trips: int = ROUND_TRIPS_PER_RUN,
    note: Callable[[str], None] = lambda text: None,
) -> Table:
    """Measure both kinds in turn, `runs` times."""
    samples = {name: Samples() for name in NAMES}
    with closing(LoopbackJob()) as plain, closing(LoopbackJob(is_private=True)) as private:
        jobs = dict(zip(NAMES, (plain, private), strict=True))
        for job in jobs.values():
            job.stream_from_coordinator(events // 4)
        for run in range(runs):
            note(f"run {run + 1} of {runs}")
            for name in NAMES if run % 2 else reversed(NAMES):
                _measure_one(jobs[name], samples[name], events, round_trips)
                samples[name].connected_ms.append(_connecting_ms(is_private=name == "private"))
    return _table(samples, runs, events)


def _measure_one(job: LoopbackJob, samples: Samples, events: int, round_trips: int) -> None:
    driver_s, tasks_s = time.process_time(), job.task_processor_s()
    samples.events_per_s.append(events / job.stream_from_coordinator(events))
    samples.driver_us.append((time.process_time() - driver_s) / events * 1e6)
    samples.tasks_us.append((job.task_processor_s() - tasks_s) / events * 1e6)
    trips_us = job.round_trips_us(round_trips)
    samples.halves_us.append(percentile(trips_us, 50))
    samples.tails_us.append(percentile(trips_us, 99))


class _Silent:
    """A driver that has nothing to say."""

    def connected(self, connection: Connection, hello: dict[str, object]) -> None:
        """A task is there."""

    def received(self, connection: Connection, messages: list[list[object]]) -> None:
        """Nothing is expected of it."""

    def lost(self, connection: Connection, reason: str) -> None:
        """It is gone again."""


def _connecting_ms(*, is_private: bool) -> float:
    """The median of some connections, each from the first packet to the proof of the key."""
    key, credentials = new_key(), new_credentials() if is_private else None
    certificate = None if credentials is None else credentials.certificate
    took_ms = []
    server = TaskServer(key=key, credentials=credentials, host="127.0.0.1", listener=_Silent())
    with server:
        for _ in range(CONNECTIONS_PER_RUN):
            began_s = time.perf_counter()
            channel = TaskChannel.connect(server.address, key, {}, certificate=certificate)
            took_ms.append((time.perf_counter() - began_s) * 1e3)
            channel.close()
    return statistics.median(took_ms)


def _table(samples: dict[str, Samples], runs: int, events: int) -> Table:
    plain, private = (samples[name] for name in NAMES)
    pairs = zip(plain.events_per_s, private.events_per_s, strict=True)
    costs = [100 * (1 - with_it / without) for without, with_it in pairs]
    return Table(
        question="wire",
        title="What a private wire costs, control events to 4 tasks",
        header=("", *NAMES),
        rows=(
            ("events/s", spread(plain.events_per_s), spread(private.events_per_s)),
            _both("driver's processor time per event, µs", plain.driver_us, private.driver_us),
            _both("tasks' processor time per event, µs", plain.tasks_us, private.tasks_us),
            ("fewer events/s, %, median of pairs", "", number(statistics.median(costs))),
            _both("round trip of a single event, p50, µs", plain.halves_us, private.halves_us),
            _both("round trip of a single event, p99, µs", plain.tails_us, private.tails_us),
            _both("a task connects, ms", plain.connected_ms, private.connected_ms),
        ),
        notes=(
            f"{runs} pairs of runs of {number(events)} events of about 150 bytes, sent by a "
            "coordinator in its calls, 64 to a task at a time; a round trip ends when the event's "
            "future is done. Private: TLS 1.3 with the run's own certificate."
        ),
    )


def _both(what: str, plain: list[float], private: list[float]) -> tuple[str, str, str]:
    return what, spread(plain), spread(private)
