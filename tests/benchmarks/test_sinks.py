"""The cost of a commit is measured by sink; it does not depend on how much was committed before,
nor on its own size more than linearly.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from epochgate.benchmarks import sink_places, sinks
from epochgate.runtime.api.sink import SinkStart
from epochgate.runtime.objects.log import STATE_EVERY, ObjectLog
from epochgate.spark.parquet_sink.object_target import INITIAL, fold
from epochgate.spark.postgres_sink.part import Part
from tests.runtime.objects.stores import Memory

URL = "memory://target"


@contextlib.contextmanager
def local(folder: Path, note: Callable[[str], None]) -> Iterator[sink_places.Kinds]:
    """The kinds that need no server."""
    yield {
        sink_places.PARQUET: sink_places.parquet_place,
        sink_places.DELTA: sink_places.delta_place,
        sink_places.ICEBERG: sink_places.iceberg_place,
    }


def test_a_checkpoint_and_its_commit_are_measured_for_each_sink() -> None:
    pytest.importorskip("deltalake", reason="the extra `delta` is not installed")
    pytest.importorskip("pyiceberg", reason="the extra `iceberg` is not installed")
    table = sinks.measure((2, 4), (1_000,), (3,), samples_most=1, made=local, in_tasks=(8,))
    factors = [
        row for row in table.rows if row[0] in ("factor of the last", "times faster in tasks")
    ]
    measured = [row for row in table.rows if row not in factors]
    assert [row[0] for row in measured] == [
        "2 committables",
        "4 committables",
        "1,000 bytes of state",
        "3 earlier commits",
        "8 committables, by the driver",
        "8 committables, by 4 tasks",
    ]
    assert all("(" in cell for row in measured[:4] for cell in row[1:])
    assert ["×" in row[1] for row in factors] == [True, False, False, True]
    for row in measured[4:]:
        assert ["(" in cell for cell in row[1:]] == [True, True, False], "Iceberg's driver commits"


def test_more_files_are_staged_than_one_file_may_have_links(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sink_places, "LINKS_MOST", 3)
    place = sink_places.parquet_place(tmp_path)
    staged = place.stage("run-1", 0, 10)
    files = sorted((tmp_path / ".target.epochgate").rglob("*.staged"))
    assert len(staged) == len(files) == 10
    assert {file.read_bytes() for file in files} == {place.content}
    assert max(file.stat().st_nlink for file in files) <= 4


def commit(log: ObjectLog, checkpoint: int) -> None:
    """As a target in an object store records one."""
    file = {f"data/run/part-{checkpoint}.parquet": [checkpoint, 1, 100, "00000000", ""]}
    entry = {"kind": "commit", "checkpoint": checkpoint, "run": "run", "digest": 0, "files": file}
    log.append(entry)


def test_a_commit_to_an_object_store_copies_no_list_of_what_was_committed() -> None:
    memory = Memory()
    log = ObjectLog(memory.open(URL), fold, INITIAL)
    log.claim("writer", {"run": "run", "epoch": 0, "job": "job", "product": "test"})
    files = log.state["files"]
    for checkpoint in range(1, 2 * STATE_EVERY):
        commit(log, checkpoint)
    assert log.state["files"] is files
    assert INITIAL["files"] == {}
    reader = ObjectLog(memory.open(URL), fold, INITIAL)
    reader.refresh()
    assert reader.state == log.state
    assert len(reader.state["files"]) == 2 * STATE_EVERY - 1


class CountedPart(Part):
    """Counts how often it is asked for its rows."""

    asked = 0

    def __getattribute__(self, name: str) -> object:
        if name == "rows":
            CountedPart.asked += 1
        return super().__getattribute__(name)


def test_parts_are_divided_into_statements_in_one_pass() -> None:
    pytest.importorskip("psycopg", reason="the extra `postgres` is not installed")
    from epochgate.spark.postgres_sink.target import PostgresTarget

    target = PostgresTarget("dbname=none", "events", "job", "run", rows_per_statement=400)
    parts = [CountedPart(f"run/0/1/{number}", 1, ("number",)) for number in range(1_000)]
    CountedPart.asked = 0
    assert [len(some) for some in target._statements(parts)] == [400, 400, 200]
    assert CountedPart.asked < 2 * len(parts)


def test_a_delta_table_looks_at_one_file_of_each_schema(tmp_path: Path) -> None:
    pytest.importorskip("deltalake", reason="the extra `delta` is not installed")
    place = sink_places.delta_place(tmp_path)
    committer = place.sink.create_committer(SinkStart("job", "run-1"))
    (staged,) = place.stage("run-1", 1, 1)
    not_there = [place.committable("run-1", number) for number in range(2, 100)]
    committer.check({0: [staged, *(one.to_list() for one in not_there)]})
    with pytest.raises(FileNotFoundError):
        committer.check({0: [not_there[0].to_list()]})
    committer.close()
