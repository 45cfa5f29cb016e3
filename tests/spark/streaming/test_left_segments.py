"""The files that a source keeps beside its plans do not grow in number with the restarts of a
query.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql.types import LongType, StructField, StructType

from epochgate.spark.files.known import RECENT_MAX
from epochgate.spark.streaming.source import StreamReader
from epochgate.spark.streaming.source_options import parse_source

datasource = pytest.importorskip("pyspark.sql.streaming.datasource", reason="Spark before 4.2")
SCHEMA = StructType([StructField("id", LongType())])


def driver(folder: Path) -> StreamReader:
    """A process that asks for offsets."""
    options = {"source": str(folder / "landing"), "state": str(folder / "state"), "settle": "0"}
    return StreamReader(parse_source({**options, "format": "jsonl"}), SCHEMA)


def latest(reader: StreamReader, offset: Any) -> Any:
    return reader.latestOffset(offset, datasource.ReadMaxFiles(10_000))


def land(folder: Path, first: int, count: int) -> None:
    landing = folder / "landing"
    landing.mkdir(exist_ok=True)
    for number in range(first, first + count):
        (landing / f"{number:05}.jsonl").write_text(f'{{"id": {number}}}\n')


def segments(folder: Path, stream: str) -> set[str]:
    return {path.name for path in (folder / "state" / stream / "known-files").glob("*")}


def files_of(reader: StreamReader, start: Any, end: Any) -> int:
    return sum(len(one.splits) for one in reader.partitions(start, end))


def test_a_start_removes_segments_that_no_plan_refers_to_and_no_other(tmp_path: Path) -> None:
    reader = driver(tmp_path)
    begin = offset = reader.initialOffset()
    stream, landed = offset["stream"], 0
    for _ in range(5):
        land(tmp_path, landed, RECENT_MAX + 1)
        landed += RECENT_MAX + 1
        offset = latest(reader, offset)
    (tmp_path / "state" / stream / "known-files" / "known-left.segment").write_bytes(b"left")
    before = segments(tmp_path, stream)

    reader = driver(tmp_path)
    assert latest(reader, offset) == offset, "nothing is new"
    assert segments(tmp_path, stream) == before, "no plan was made by this process"
    land(tmp_path, landed, 1)
    end = latest(reader, offset)
    assert "known-left.segment" not in segments(tmp_path, stream)
    assert files_of(reader, begin, end) == landed + 1

    for plan in sorted((tmp_path / "state" / stream / "plans").iterdir()):
        if int(plan.stem) > 2:
            plan.unlink()
    assert files_of(again := driver(tmp_path), begin, second := {**end, "batch": 2})
    assert files_of(again, second, latest(again, second)) == landed + 1 - 2 * (RECENT_MAX + 1)


def test_streams_that_share_a_state_leave_each_others_segments_alone(tmp_path: Path) -> None:
    one, other = driver(tmp_path), driver(tmp_path)
    land(tmp_path, 0, RECENT_MAX + 1)
    of_one = latest(one, one.initialOffset())
    of_other = latest(other, other.initialOffset())
    theirs = segments(tmp_path, of_other["stream"])
    assert theirs
    land(tmp_path, RECENT_MAX + 1, 1)
    assert latest(driver(tmp_path), of_one)["batch"] == 2
    assert segments(tmp_path, of_other["stream"]) == theirs
