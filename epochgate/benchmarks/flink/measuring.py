"""The measurements of each system, and their order: one system runs at a time, in turn.

Each turn starts the system, lets it get warm, measures and ends it, so that neither shares the
machine with the other. Leaves to `tables` what is made of the samples.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import psutil

from epochgate.benchmarks.figures import percentile
from epochgate.benchmarks.flink.cluster import flink_job, scratch
from epochgate.benchmarks.flink.contender import CheckpointTime, Contender, Streamed
from epochgate.benchmarks.flink.spark_job import our_job

EPOCHGATE, FLINK, ONE_PROCESS = "epochgate", "flink", "flink in one process"
NAMES = (EPOCHGATE, FLINK, ONE_PROCESS)
SUBTASKS = (4, 100, 500)
ROUNDS = 3
QUIET_S = 0.3
"""Before each failure, so that the processor time of cleaning up after the one before, whose end
neither system tells, does not count for it.
"""
SNMP = Path("/proc/net/snmp")


@dataclass(frozen=True)
class Effort:
    """The effort of each turn; of checkpoints less at the greater parallelisms, where Flink takes
    seconds for one.
    """

    events: int = 200_000
    warming_events: int = 300_000
    trips: int = 2_000
    checkpoints: int = 40
    checkpoints_of_many: int = 15
    loaded_checkpoints: int = 15
    loaded_checkpoints_of_many: int = 5
    failures: int = 10
    warming_failures: int = 5


@dataclass
class Samples:
    """The measurements of one system at one parallelism, over all turns."""

    in_calls_per_s: list[float] = field(default_factory=list)
    by_thread_per_s: list[float] = field(default_factory=list)
    handled_per_s: list[float] = field(default_factory=list)
    confirmed_p50_us: list[float] = field(default_factory=list)
    confirmed_p99_us: list[float] = field(default_factory=list)
    answered_p50_us: list[float] = field(default_factory=list)
    answered_p99_us: list[float] = field(default_factory=list)
    raised_ms: list[float] = field(default_factory=list)
    failed_ms: list[float] = field(default_factory=list)
    idle: list[CheckpointTime] = field(default_factory=list)
    loaded: list[CheckpointTime] = field(default_factory=list)
    loaded_per_s: list[float] = field(default_factory=list)
    driver_us: list[float] = field(default_factory=list)
    others_us: list[float] = field(default_factory=list)
    segments: list[float] = field(default_factory=list)
    raised_processor_ms: list[float] = field(default_factory=list)
    failed_processor_ms: list[float] = field(default_factory=list)
    checkpoint_driver_ms: list[float] = field(default_factory=list)
    checkpoint_others_ms: list[float] = field(default_factory=list)


Found = dict[tuple[str, int], Samples]
"""By the name of the system and the number of subtasks."""


class Used:
    """The use of a block: processor time of driver and others, and TCP segments that were sent by
    anything in this network namespace.
    """

    def __init__(self, job: Contender) -> None:
        self._driver, self._others = job.driver, job.others()
        self.driver_s = self.others_s = self.segments = 0.0

    def __enter__(self) -> Used:
        self._before = self._now()
        return self

    def __exit__(self, *error: object) -> None:
        now = self._now()
        self.driver_s, self.others_s, self.segments = (
            after - before for after, before in zip(now, self._before, strict=True)
        )

    def _now(self) -> tuple[float, float, float]:
        segments = sent_segments(SNMP.read_text()) if SNMP.exists() else 0
        return _processor_s([self._driver]), _processor_s(self._others), segments


def _processor_s(processes: list[psutil.Process]) -> float:
    times = [process.cpu_times() for process in processes]
    return sum(time.user + time.system for time in times)


def sent_segments(snmp: str) -> int:
    r"""Return the TCP segments that were sent so far, as Linux counts them.

    >>> sent_segments("Ip: A\nTcp: InSegs OutSegs RetransSegs\nTcp: 7 12 0\n")
    12
    """
    names, numbers = (line.split() for line in re.findall(r"(?m)^Tcp: .*$", snmp))
    return int(numbers[names.index("OutSegs")])


@contextmanager
def job_of(name: str, subtasks: int) -> Iterator[Contender]:
    """Run the job on the system of this name, in a folder of its own."""
    with scratch() as folder:
        if name == EPOCHGATE:
            with our_job(subtasks, folder) as ours:
                yield ours
        else:
            with flink_job(subtasks, folder, in_one_process=name == ONE_PROCESS) as theirs:
                yield theirs


def measure(
    sizes: tuple[int, ...] = SUBTASKS,
    rounds: int = ROUNDS,
    effort: Effort = Effort(),
    note: Callable[[str], None] = lambda text: None,
) -> Found:
    """Measure each system at each parallelism in turn, `rounds` times; events, round trips and
    failures at the first parallelism alone.
    """
    found: Found = {(name, subtasks): Samples() for subtasks in sizes for name in NAMES}
    for turn in range(rounds):
        for subtasks in sizes:
            for name in NAMES if turn % 2 == 0 else reversed(NAMES):
                note(f"round {turn + 1} of {rounds}: {name}, {subtasks} subtasks")
                with job_of(name, subtasks) as job:
                    samples = found[name, subtasks]
                    if subtasks == sizes[0]:
                        _first_parallelism(job, samples, effort, subtasks)
                    else:
                        _greater_parallelism(job, samples, effort)
    return found


def _first_parallelism(job: Contender, samples: Samples, effort: Effort, subtasks: int) -> None:
    job.stream_in_calls(effort.warming_events)
    job.stream_by_thread(effort.warming_events)
    job.confirmed_trips_us(effort.trips)
    job.answered_trips_us(effort.trips)
    job.checkpoints(effort.checkpoints)
    _failures(job, Samples(), effort.warming_failures, subtasks)
    _failures(job, samples, effort.failures, subtasks)
    _checkpoints(job, samples, effort.checkpoints, effort.loaded_checkpoints)
    # Last: a stream gets quicker for longest while Java compiles what it runs.
    _events(job, samples, effort)


def _greater_parallelism(job: Contender, samples: Samples, effort: Effort) -> None:
    job.stream_in_calls(effort.warming_events)
    job.checkpoints(effort.checkpoints_of_many)
    _checkpoints(job, samples, effort.checkpoints_of_many, effort.loaded_checkpoints_of_many)


def _events(job: Contender, samples: Samples, effort: Effort) -> None:
    with Used(job) as used:
        streamed = job.stream_in_calls(effort.events)
    samples.in_calls_per_s.append(effort.events / streamed.confirmed_s)
    samples.handled_per_s.append(effort.events / _until_all_is_done_s(streamed))
    samples.driver_us.append(used.driver_s / effort.events * 1e6)
    samples.others_us.append(used.others_s / effort.events * 1e6)
    samples.segments.append(used.segments / effort.events)
    samples.by_thread_per_s.append(effort.events / job.stream_by_thread(effort.events).confirmed_s)
    confirmed_us = job.confirmed_trips_us(effort.trips)
    samples.confirmed_p50_us.append(percentile(confirmed_us, 50))
    samples.confirmed_p99_us.append(percentile(confirmed_us, 99))
    answered_us = job.answered_trips_us(effort.trips)
    samples.answered_p50_us.append(percentile(answered_us, 50))
    samples.answered_p99_us.append(percentile(answered_us, 99))


def _until_all_is_done_s(streamed: Streamed) -> float:
    return max(streamed)


def _failures(job: Contender, samples: Samples, times: int, subtasks: int) -> None:
    raised_s = failed_s = 0.0
    for number in range(times):
        _come_to_rest(job)
        with Used(job) as used:
            samples.raised_ms.append(job.raise_ms(number % subtasks))
        raised_s += used.driver_s + used.others_s
        _come_to_rest(job)
        with Used(job) as used:
            samples.failed_ms.append(job.fail_all_ms())
        failed_s += used.driver_s + used.others_s
    samples.raised_processor_ms.append(raised_s / times * 1e3)
    samples.failed_processor_ms.append(failed_s / times * 1e3)


def _come_to_rest(job: Contender) -> None:
    """Let a checkpoint complete, as in a job that works, and both systems clean up."""
    job.checkpoints(1)
    time.sleep(QUIET_S)


def _checkpoints(job: Contender, samples: Samples, idle: int, loaded: int) -> None:
    with Used(job) as used:
        samples.idle += job.checkpoints(idle)
    samples.checkpoint_driver_ms.append(used.driver_s / idle * 1e3)
    samples.checkpoint_others_ms.append(used.others_s / idle * 1e3)
    begun_s = time.perf_counter()
    job.begin_load()
    job.checkpoints(1)  # the stream has its full number of events in flight behind it
    samples.loaded += job.checkpoints(loaded)
    samples.loaded_per_s.append(job.end_load() / (time.perf_counter() - begun_s))
