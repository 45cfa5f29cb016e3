"""A driver that ingests into an object store and kills itself (-9) at a named request, or stops
itself there until it is told to go on.

python -m tests.spark.sink.killed_object_driver SOURCE URL [REQUEST KEY WHEN [SIGSTOP]]
"""

from __future__ import annotations

import fnmatch
import signal
import sys
from collections.abc import Callable
from dataclasses import replace

import epochgate
from epochgate.runtime.objects.client import open_url
from epochgate.spark.ingest.options import IngestOptions
from epochgate.spark.ingest.plan import plan_ingest
from epochgate.spark.ingest.run import start_plan
from epochgate.spark.parquet_sink import ParquetSink
from epochgate.spark.session import local_session
from tests.runtime.objects.faulty_objects import FaultyObjects


class DeadlyObjects(FaultyObjects):
    """Kills its process before or after the first such request for a key of that pattern."""

    def __init__(self, request: str, key: str, when: str, by: str = "SIGKILL") -> None:
        super().__init__(open_url)
        self._request, self._key, self._when = request, key, when
        # Of this thread: one to the process lets it go on until another thread has heard of it.
        self._signal = signal.Signals[by]

    def change(self, name: str, key: str, do: Callable[[], None]) -> None:
        is_it = name == self._request and fnmatch.fnmatch(key, self._key)
        if is_it:
            self._request = ""  # the first alone: one that is stopped goes on
        if is_it and self._when == "before":
            signal.raise_signal(self._signal)
        super().change(name, key, do)
        if is_it and self._when == "after":
            signal.raise_signal(self._signal)


def main(source: str, url: str, *step: str) -> None:
    """Ingest to the end, or to the step; then read the target on Spark, and print the numbers."""
    options = IngestOptions(
        source, url, parallelism=2, checkpoint_every_s=0.2, rows_per_second=4000
    )
    plan = plan_ingest(options, open_objects=DeadlyObjects(*step).open if step else open_url)
    # Tasks have clients of their own.
    plan.program_factory = replace(
        plan.program_factory, sink=ParquetSink(url), open_objects=open_url
    )
    with local_session("local[2]") as spark:
        with start_plan(spark, plan) as handle:
            result = handle.wait()
        sys.stdout.write(f"{result.state} from {result.resumed_from}: {result.reason}\n")
        frame = epochgate.read(url, spark=spark)
        assert frame.columns == ["x", "name", "checkpoint"], frame.columns
        numbers = sorted(row.x for row in frame.select("x").collect())
        sys.stdout.write(",".join(map(str, numbers)) + "\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
