"""The speed of an ingestion beside what else brings files into files on the same Spark session.

All run in turn, several times, over the same files (`contenders` has them); what each has written
is compared with the source before its time counts. The disk is at rest before each, since only the
ingestion waits until its files are on it.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from epochgate.benchmarks.contenders import (
    CHECKPOINT_EVERY_S,
    CONTENDERS,
    PARALLELISM,
    Contender,
    RowsMissing,
    bench_session,
    sums_of,
    sums_of_source,
    write_source,
)
from epochgate.benchmarks.figures import Table, number, percentile, spread
from epochgate.benchmarks.processor import ProcessorTime

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

RUNS = 3
ROWS = 40_000_000
FILES = 32
OURS = "ingest"
AIMS = {"in tasks": "0.9", "map": "0.9"}
"""Below these ratios the coordination would be called too dear: they do the same without it."""


@dataclass
class Samples:
    """The figures of the runs of one contender."""

    rows_per_s: list[float] = field(default_factory=list)
    processor_us_per_row: list[float] = field(default_factory=list)


@dataclass
class Comparison:
    """All contenders on one set of files, in one session."""

    spark: SparkSession
    folder: Path
    rows: int
    samples: dict[str, Samples] = field(
        default_factory=lambda: {name: Samples() for name in CONTENDERS}
    )
    checkpoints_ms: list[float] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._expected = sums_of_source(self.folder / "source")

    def warm_up(self) -> None:
        """Run each once on a few rows, so that what is compiled at first use is there."""
        for contender in CONTENDERS.values():
            contender.run(self.spark, self.folder / "small", self.folder / "target")
            self._clear()

    def run(self, name: str) -> None:
        """Run one; RowsMissing unless it has done its work."""
        contender = CONTENDERS[name]
        seconds, processor_s = self._measured(contender)
        if (found := sums_of(self.folder / "target")) != self._expected:
            raise RowsMissing(
                f"{contender.title} has written {found} rows, cents and open orders instead of "
                f"{self._expected}"
            )
        self._clear()
        samples = self.samples[name]
        samples.rows_per_s.append(self.rows / seconds)
        samples.processor_us_per_row.append(processor_s / self.rows * 1e6)

    def _measured(self, contender: Contender) -> tuple[float, float]:
        os.sync()
        with ProcessorTime() as used:
            started_s = time.perf_counter()
            result = contender.run(self.spark, self.folder / "source", self.folder / "target")
            seconds = time.perf_counter() - started_s
        if result is not None:
            done = [one for one in result.report.checkpoints if one.is_completed]
            self.checkpoints_ms += [one.duration_s * 1000 for one in done]
        return seconds, used.seconds

    def _clear(self) -> None:
        for path in self.folder.glob("*target*"):
            shutil.rmtree(path)

    def table_rows(self) -> list[tuple[str, ...]]:
        """Return a row for each contender."""
        ours = self.samples[OURS]
        rows: list[tuple[str, ...]] = []
        for name, samples in self.samples.items():
            paired = zip(ours.rows_per_s, samples.rows_per_s, strict=True)
            ratios = "" if name == OURS else spread([our / their for our, their in paired])
            processor_us = percentile(samples.processor_us_per_row, 50)
            rows.append(
                (
                    CONTENDERS[name].title,
                    spread(samples.rows_per_s),
                    number(processor_us),
                    ratios,
                    AIMS.get(name, ""),
                )
            )
        return rows


def measure(
    runs: int = RUNS,
    rows: int = ROWS,
    files: int = FILES,
    note: Callable[[str], None] = lambda text: None,
) -> Table:
    """Run all in turn, `runs` times, after one run of each that does not count."""
    with tempfile.TemporaryDirectory(prefix="epochgate-bench-") as name:
        folder = Path(name)
        note(f"writing {rows:,} rows")
        write_source(folder / "source", rows, files)
        write_source(folder / "small", rows // 20, PARALLELISM)
        with bench_session(f"local[{PARALLELISM}]") as spark:
            comparison = Comparison(spark, folder, rows)
            comparison.warm_up()
            for run in range(runs):
                for name in CONTENDERS:
                    note(f"run {run + 1} of {runs}: {name}")
                    comparison.run(name)
    checkpoints_ms = comparison.checkpoints_ms
    return Table(
        question="ingest",
        title=f"Parquet files into Parquet files, {PARALLELISM} tasks at a time",
        header=(
            "",
            "rows/s, median (least to greatest)",
            "processor time, µs a row",
            "ingestion against it, run by run",
            "aim",
        ),
        rows=tuple(comparison.table_rows()),
        notes=(
            f"{runs} runs of each in turn over {rows:,} rows in {files} files, in one "
            f"`local[{PARALLELISM}]` session; the rows of each target were counted and summed up. "
            f"The ingestion took a checkpoint every {CHECKPOINT_EVERY_S:g} s, "
            f"{len(checkpoints_ms)} in all, the last one and its commit included: "
            f"{number(percentile(checkpoints_ms, 50))} ms each (p50), "
            f"{number(percentile(checkpoints_ms, 99))} ms (p99)."
        ),
    )
