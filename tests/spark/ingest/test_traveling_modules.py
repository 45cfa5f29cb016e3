"""Which modules travel to the tasks with a transform."""

from __future__ import annotations

from epochgate.benchmarks.ingest import cleaning_step
from epochgate.spark.ingest.transform_function import traveling_modules


def test_epochgate_itself_never_travels_a_second_time() -> None:
    assert traveling_modules(cleaning_step()) == []
