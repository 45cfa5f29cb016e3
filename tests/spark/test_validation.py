"""Many traces are checked on Spark as one process checks them, each alone."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from epochgate.runtime.tracing.validation import validated
from epochgate.spark.validation import spread_by_size, validated_on_spark
from tests.traces.stories import told


@pytest.mark.spark
@pytest.mark.extended
@pytest.mark.timeout(300)
def test_the_verdicts_on_spark_are_those_of_one_process(spark: Any, tmp_path: Path) -> None:
    run = told(tmp_path, segment_bytes=1)
    damaged = run / "task-1-2.000001.jsonl"
    damaged.write_bytes(damaged.read_bytes().replace(b"barrier", b"burrier", 1))
    alone = validated([run])
    on_spark = validated_on_spark(spark, [run])
    assert [one.to_json() for one in on_spark.verdicts] == [one.to_json() for one in alone.verdicts]
    assert [one.is_accepted() for one in on_spark.verdicts] == [True, True, True, False]
    assert on_spark.events == alone.events


def test_traces_are_spread_so_that_the_largest_stand_alone(tmp_path: Path) -> None:
    traces = []
    for name, size in (("a", 10), ("b", 100), ("c", 10), ("d", 60), ("e", 10)):
        (tmp_path / name).write_bytes(os.urandom(size))
        traces.append([str(tmp_path / name)])
    assert spread_by_size(traces, 2) == [[1], [3, 0, 2, 4]]
    assert len(spread_by_size(traces, 99)) == 5
