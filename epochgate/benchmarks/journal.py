"""The cost of a journal to a job: control events a second with and without, in turn.

The jobs of `events`, one of them with traces of driver and tasks on disk.
"""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack, closing
from dataclasses import dataclass, field
from pathlib import Path

from epochgate.benchmarks.events import EVENTS_PER_RUN, LoopbackJob
from epochgate.benchmarks.figures import Table, number, spread
from epochgate.runtime.tracing.validation import validated

RUNS = 15
NAMES = ("without", "with a journal")


@dataclass
class Samples:
    """Of one job."""

    events_per_s: list[float] = field(default_factory=list)
    driver_us: list[float] = field(default_factory=list)
    tasks_us: list[float] = field(default_factory=list)


def measure(
    runs: int = RUNS,
    events: int = EVENTS_PER_RUN,
    note: Callable[[str], None] = lambda text: None,
) -> Table:
    """Measure both jobs in turn, `runs` times, and check the traces."""
    with ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="epochgate-bench-"))
        with closing(LoopbackJob()) as plain, closing(LoopbackJob(journal=folder)) as traced:
            jobs = dict(zip(NAMES, (plain, traced), strict=True))
            samples = {name: Samples() for name in jobs}
            for job in jobs.values():
                job.stream_from_coordinator(events // 4)
            for run in range(runs):
                note(f"run {run + 1} of {runs}")
                for name in NAMES if run % 2 else reversed(NAMES):
                    _measure_one(jobs[name], samples[name], events)
        written = sum(path.stat().st_size for path in Path(folder).rglob("*.jsonl"))
        began_s = time.perf_counter()
        validation = validated([folder])
        validated_s = time.perf_counter() - began_s
    if not validation.is_accepted():
        raise AssertionError(f"a trace of the benchmark is refused: {validation.to_json()}")
    return _table(samples, runs, events, written, validation.events, validated_s)


def _measure_one(job: LoopbackJob, samples: Samples, events: int) -> None:
    driver_s, tasks_s = time.process_time(), job.task_processor_s()
    samples.events_per_s.append(events / job.stream_from_coordinator(events))
    samples.driver_us.append((time.process_time() - driver_s) / events * 1e6)
    samples.tasks_us.append((job.task_processor_s() - tasks_s) / events * 1e6)


def _table(
    samples: dict[str, Samples],
    runs: int,
    events: int,
    written: int,
    validated_events: int,
    validated_s: float,
) -> Table:
    plain, traced = (samples[name] for name in NAMES)
    pairs = zip(plain.events_per_s, traced.events_per_s, strict=True)
    costs = [100 * (1 - with_it / without) for without, with_it in pairs]
    return Table(
        question="journal",
        title="What a journal of driver and tasks costs, control events to 4 tasks",
        header=("", *NAMES),
        rows=(
            ("events/s", spread(plain.events_per_s), spread(traced.events_per_s)),
            ("driver's processor time per event, µs", *_both(plain.driver_us, traced.driver_us)),
            ("tasks' processor time per event, µs", *_both(plain.tasks_us, traced.tasks_us)),
            ("fewer events/s, %, median of pairs", "", number(statistics.median(costs))),
            ("bytes written per event of a machine", "", number(written / validated_events)),
            (
                "events/s that `epochgate validate` checks",
                "",
                number(validated_events / validated_s),
            ),
        ),
        notes=(
            f"{runs} pairs of runs of {number(events)} events of about 150 bytes, sent by a "
            "coordinator in its calls, 64 to a task at a time. The aim is a cost of 5 % at most."
        ),
    )


def _both(plain: list[float], traced: list[float]) -> tuple[str, str]:
    return spread(plain), spread(traced)
