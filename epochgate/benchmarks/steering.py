"""The cost of a control to each batch of a streaming query, beside a plain foreachBatch, in turn.

Two queries of the same kind on one session, one after the other: a function that does nothing, and
the same function with the values of a control, which decides for each batch and makes that durable.
"""

from __future__ import annotations

import statistics
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from epochgate.benchmarks.figures import Table, number, spread
from epochgate.spark.session import local_session
from epochgate.spark.streaming import Control

PAIRS = 5
BATCHES = 40
ROWS_PER_BATCH = 1000
NAMES = ("plain", "with a control")
AIM_MS = 5.0


@dataclass
class Samples:
    """Of one kind of query: milliseconds of each batch, and of each decision."""

    trigger_ms: list[float] = field(default_factory=list)
    function_ms: list[float] = field(default_factory=list)
    decisions_ms: list[float] = field(default_factory=list)


def measure(
    pairs: int = PAIRS, batches: int = BATCHES, note: Callable[[str], None] = lambda text: None
) -> Table:
    """Measure both kinds in turn, `pairs` times, in one session."""
    samples = {name: Samples() for name in NAMES}
    with (
        tempfile.TemporaryDirectory(prefix="epochgate-bench-") as folder,
        local_session("local[2]") as spark,
    ):
        _run(spark, Path(folder) / "warm", NAMES[1], batches, Samples())
        for pair in range(pairs):
            note(f"pair {pair + 1} of {pairs}")
            for name in NAMES if pair % 2 else reversed(NAMES):
                _run(spark, Path(folder) / f"{pair}-{name}", name, batches, samples[name])
    return _table(samples, pairs, batches)


def _run(spark: Any, folder: Path, name: str, batches: int, samples: Samples) -> None:
    """One query, until it has run its batches; the first of them loads what the others use."""
    control = Control("bench", {"limit": 900}, store=str(folder / "controls"))
    plain = name == NAMES[0]
    function = _do_nothing if plain else control.apply(_do_nothing)
    numbers = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", ROWS_PER_BATCH)
    query = (
        numbers.load()
        .writeStream.foreachBatch(function)
        .option("checkpointLocation", str(folder / "checkpoint"))
        .trigger(processingTime="0 seconds")
        .start()
    )
    try:
        while query.lastProgress is None or query.lastProgress.batchId < batches:
            query.awaitTermination(timeout=1)
        progress = [one for one in query.recentProgress if 0 < one.batchId <= batches]
    finally:
        query.stop()
    samples.trigger_ms += [float(one.durationMs["triggerExecution"]) for one in progress]
    samples.function_ms += [float(one.durationMs["addBatch"]) for one in progress]
    if not plain:
        decided = control.metrics()
        samples.decisions_ms.append(1000 * decided["total_s"] / decided["decided"])


def _do_nothing(frame: Any, values: Any) -> None:
    """Do nothing: the work around it is measured."""


def _table(samples: dict[str, Samples], pairs: int, batches: int) -> Table:
    plain, steered = (samples[name] for name in NAMES)
    added = statistics.median(steered.trigger_ms) - statistics.median(plain.trigger_ms)
    return Table(
        question="steering",
        title="What a control costs a batch of a streaming query",
        header=("", *NAMES),
        rows=(
            ("whole batch, ms", spread(plain.trigger_ms), spread(steered.trigger_ms)),
            ("its function (`addBatch`), ms", *_both(plain.function_ms, steered.function_ms)),
            ("longer batches, ms, of the medians", "", number(max(0.0, added))),
            ("a decision alone, ms", "", spread(steered.decisions_ms)),
        ),
        notes=(
            f"{pairs} pairs of queries of {batches} batches on `local[2]`, with a function that "
            "does nothing and the control in a directory: each decision is two fsyncs. Spark "
            f"itself tells whole milliseconds. The aim is {number(AIM_MS)} ms at most."
        ),
    )


def _both(plain: list[float], steered: list[float]) -> tuple[str, str]:
    return spread(plain), spread(steered)
