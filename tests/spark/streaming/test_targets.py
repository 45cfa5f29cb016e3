"""The targets of batches without Spark: a process that dies at any of its operations is followed by
one that replays the batch, with files of its own, and each row is there once.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Literal

import pyarrow as pa
import pyarrow.dataset
import pyarrow.parquet as pq
import pytest

from epochgate.errors import EpochgateError
from epochgate.runtime import OperatorContext
from epochgate.runtime.filesystem import LocalFileSystem
from epochgate.runtime.objects.log import ObjectLog
from epochgate.runtime.testing.faulty_filesystem import Fault, FaultyFileSystem, SimulatedCrash
from epochgate.spark.parquet_sink.errors import TargetNotEmpty
from epochgate.spark.parquet_sink.object_target import INITIAL, fold
from epochgate.spark.streaming import DeltaLedger, DirectoryLedger, once
from epochgate.spark.streaming.batch_commit import BatchCommit
from epochgate.spark.streaming.errors import (
    BatchesAhead,
    ColumnsDiffer,
    CountedElsewhere,
    LocationEmptied,
    LocationMoved,
    TargetOfAnotherQuery,
)
from epochgate.spark.streaming.identity import BatchIdentity, run_id
from epochgate.spark.streaming.noted_target import NotedTarget
from epochgate.spark.streaming.options import Accepted
from epochgate.spark.streaming.targets.parquet import (
    TRIED_EVERY,
    ObjectBatches,
    ParquetBatches,
)
from epochgate.spark.streaming.targets.target import BatchTarget, Staged, told_of
from tests.runtime.objects.faulty_objects import FaultyObjects
from tests.runtime.objects.stores import Memory
from tests.spark.tables import delta_replay

Whens = tuple[Literal["before", "during", "after"], ...]
WHENS: Whens = ("before", "during", "after")
QUERY, LOCATION = "5f0c12", "/check"


def staged(target: BatchTarget, batch: int, values: list[int], nonce: str) -> Staged:
    """Return what two tasks have staged, one of them nothing; and what a third has left that
    failed.
    """
    run = run_id(QUERY, batch, nonce)
    committables: dict[int, list[Any]] = {}
    agreed = target.prepare()
    for task, rows in enumerate([values, [], [-1]]):
        wishes: list[Any] = []
        context = OperatorContext("sink", task, 7 + task, 3, run, wishes.append)
        writer = target.sink.create_writer(context, None)
        if rows:
            batch_of_rows = pa.RecordBatch.from_pydict({"x": rows})
            if not writer.may_write(batch_of_rows):
                schema = agreed.schema or wishes[-1][1]
                writer.handle_event(["schema", schema, *agreed.told])
            writer.write(batch_of_rows)
        committables[task] = writer.prepare_commit(batch + 1)
    del committables[2]
    return Staged(QUERY, batch, run, committables)


def commit(
    target: BatchTarget,
    part: Staged,
    *,
    query: str = QUERY,
    location: str = LOCATION,
    accepts: tuple[int, int] = (0, 0),
) -> None:
    """Commit as Spark's call of `commit` does."""
    identity = BatchIdentity(query, part.batch, location, f"offsets of {part.batch}")
    place = NotedTarget(target, target.notes(), identity, lambda own: target.apply(part, own))
    BatchCommit(place, pause=lambda seconds: None).commit(part.batch, *accepts)


def parquet_rows(path: Path) -> list[int]:
    if not path.exists():
        return []
    table = pyarrow.dataset.dataset(str(path), format="parquet").to_table()
    return sorted(table["x"].to_pylist()) if table.num_rows else []


def object_rows(memory: Memory) -> list[int]:
    """Return what the log names."""
    objects = memory.open("s3://bucket/out")
    log = ObjectLog(objects, fold, INITIAL)
    log.refresh()
    files = [pa.BufferReader(objects.get(path)) for path in log.state["files"]]
    return sorted(x for file in files for x in pq.read_table(file)["x"].to_pylist())


def crashes_of_files() -> Iterator[FaultyFileSystem]:
    """A file system for each operation, and for each way of dying there."""
    at, more = 0, True
    while more:
        more = False
        for when in WHENS:
            files = FaultyFileSystem(LocalFileSystem(), Fault(at, "crash", when))
            yield files
            more = more or files.has_struck
        at += 1


def of_kind(kind: str, root: Path, files: Any = None) -> BatchTarget:
    if kind == "parquet":
        return ParquetBatches(str(root / "out"), files=files)
    pytest.importorskip("deltalake", reason="the extra `delta` is not installed")
    from epochgate.spark.streaming.targets.delta import DeltaBatches

    return DeltaBatches(str(root / "out"), files=files)


READERS: dict[str, Callable[[Path], list[int]]] = {
    "parquet": parquet_rows,
    "delta": lambda path: delta_replay.rows(path) if path.exists() else [],
}


@pytest.mark.parametrize("kind", READERS)
def test_a_commit_that_dies_at_any_operation_is_repeated_without_a_row_lost_or_doubled(
    tmp_path: Path, kind: str
) -> None:
    outcomes = set()
    for number, files in enumerate(crashes_of_files()):
        root = tmp_path / str(number)
        root.mkdir()
        target = of_kind(kind, root)
        commit(target, staged(target, 0, [1, 2], "aa"))
        first = staged(target, 1, [3, 4], "bb")
        dead = False
        try:
            commit(of_kind(kind, root, files), first)
        except SimulatedCrash:
            dead = True
        seen = READERS[kind](root / "out")
        assert seen in ([1, 2], [1, 2, 3, 4])
        outcomes.add((dead, len(seen)))
        commit(target, staged(target, 1, [3, 4], "cc"))
        commit(target, staged(target, 2, [5], "dd"))
        assert READERS[kind](root / "out") == [1, 2, 3, 4, 5]
        assert not [path for path in root.rglob("staged/*/*") if "part-" in path.name]
    assert outcomes == {(True, 2), (True, 4), (False, 4)}


@pytest.mark.parametrize(("batch", "changes"), [(0, 6), (1, 3)])
def test_the_same_in_an_object_store_whose_answers_are_lost(batch: int, changes: int) -> None:
    at, struck = 0, True
    while struck:
        struck = False
        for kind in ("crash", "error"):
            memory = Memory()
            target = ObjectBatches("s3://bucket/out", open_objects=memory.open)
            for before in range(batch):
                commit(target, staged(target, before, [1, 2], "aa"))
            had = object_rows(memory)
            part = staged(target, batch, [3, 4], "bb")
            faulty = FaultyObjects(memory.open, Fault(at, kind, "after"))
            through = ObjectBatches("s3://bucket/out", open_objects=faulty.open)
            try:
                commit(through, part)
            except (SimulatedCrash, OSError, EpochgateError):
                assert object_rows(memory) in (had, [*had, 3, 4])
            struck = struck or len(faulty.operations) > at
            commit(target, staged(target, batch, [3, 4], "cc"))
            assert object_rows(memory) == [*had, 3, 4]
        at += 1
    assert at > changes, "trying the store takes three, and a note, a claim and an entry one each"


def test_the_first_batch_tries_the_store_and_the_next_ones_spare_it() -> None:
    memory, changed = Memory(), []
    for batch in range(TRIED_EVERY + 1):
        counted = FaultyObjects(memory.open)
        through = ObjectBatches("s3://bucket/out", open_objects=counted.open)
        commit(
            through,
            staged(
                ObjectBatches("s3://bucket/out", open_objects=memory.open), batch, [batch], "aa"
            ),
        )
        changed.append(sum("probes" in one.path for one in counted.operations))
    assert changed == [3, *[0] * (TRIED_EVERY - 1), 3]
    assert object_rows(memory) == list(range(TRIED_EVERY + 1))


@pytest.mark.parametrize("kind", ["parquet", "delta"])
def test_a_zombie_is_skipped_or_refused_and_removes_nothing_of_its_successor(
    tmp_path: Path, kind: str
) -> None:
    target = of_kind(kind, tmp_path)
    zombie = staged(target, 0, [1], "aa")
    commit(target, staged(target, 0, [1], "bb"))
    next_one = staged(target, 1, [2], "cc")
    commit(target, zombie)
    commit(target, next_one)
    with pytest.raises(BatchesAhead, match="taken for dead"):
        commit(target, zombie)
    assert READERS[kind](tmp_path / "out") == [1, 2]


def test_the_first_batch_is_swept_too_and_late_files_by_the_next_one(tmp_path: Path) -> None:
    target = of_kind("parquet", tmp_path)
    commit(target, staged(target, 0, [1], "aa"))
    working = tmp_path / ".out.epochgate"
    assert not list(working.glob("staged/*/*"))
    staged(target, 0, [1], "late")
    kept = staged(target, 2, [3], "early")
    commit(target, staged(target, 1, [2], "bb"))
    assert {path.parent.name for path in working.glob("staged/*/*")} == {kept.run}


def test_what_was_empty_counts_as_long_as_the_target_is_the_one_of_before(tmp_path: Path) -> None:
    target = of_kind("parquet", tmp_path)
    commit(target, staged(target, 0, [], "aa"))
    commit(target, staged(target, 1, [1], "bb"))
    commit(target, staged(target, 2, [], "cc"))
    commit(target, staged(target, 2, [], "dd"))
    commit(target, staged(target, 3, [2], "ee"))
    assert parquet_rows(tmp_path / "out") == [1, 2]


def test_a_query_that_replaces_another_writes_its_batches_beside_those_that_are_there(
    tmp_path: Path,
) -> None:
    target = of_kind("delta", tmp_path)
    commit(target, staged(target, 0, [1], "aa"))
    code = Accepted(replaces=QUERY).code(target.notes().read(), "77aa", LOCATION, 0)
    for nonce in ("bb", "cc"):
        part = replace(staged(target, 0, [2], nonce), query="77aa")
        commit(target, part, query="77aa", accepts=code)
        code = (0, 0)
    assert delta_replay.rows(tmp_path / "out") == [1, 2]


def test_a_target_and_a_location_that_were_emptied_together_may_begin_again(tmp_path: Path) -> None:
    target = of_kind("parquet", tmp_path)
    commit(target, staged(target, 0, [1], "aa"))
    shutil.rmtree(tmp_path / "out")
    again = of_kind("parquet", tmp_path)
    part = replace(staged(again, 0, [1], "bb"), query="77aa")
    with pytest.raises(LocationEmptied, match="has no batch") as refused:
        commit(again, part, query="77aa")
    assert f'.option("replaces", "{QUERY}")' in str(refused.value)
    code = Accepted(replaces=QUERY).code(again.notes().read(), "77aa", LOCATION, 0)
    commit(again, replace(staged(again, 0, [1], "cc"), query="77aa"), query="77aa", accepts=code)
    assert parquet_rows(tmp_path / "out") == [1]


def test_batches_that_a_ledger_alone_has_recorded_are_counted_where_a_location_is_emptied(
    tmp_path: Path,
) -> None:
    frame: Any = SimpleNamespace(sparkSession=object())
    ledger = DirectoryLedger(str(tmp_path / "ledger"))
    once(ledger, lambda df, batch: None, query=QUERY, checkpoint=LOCATION)(frame, 0)
    with pytest.raises(LocationEmptied, match="has committed 1 batch"):
        once(ledger, lambda df, batch: None, query="77aa", checkpoint=LOCATION)(frame, 0)


def by_ledger(path: Path, batch: int) -> None:
    """The same query with a function, as another program of it may have it."""
    deltalake = pytest.importorskip("deltalake", reason="the extra `delta` is not installed")

    def write(df: Any, batch: int, transaction: Any) -> None:
        deltalake.write_deltalake(
            str(path),
            pa.table({"x": [batch]}),
            mode="append",
            commit_properties=transaction.properties(),
        )

    frame: Any = SimpleNamespace(sparkSession=object())
    once(DeltaLedger(str(path)), write, query=QUERY, checkpoint=LOCATION)(frame, batch)


@pytest.mark.parametrize("last", [0, 1])
def test_a_query_that_changes_between_the_sink_and_a_ledger_writes_no_batch_twice(
    tmp_path: Path, last: int
) -> None:
    sink, ledger = of_kind("delta", tmp_path / "sink"), tmp_path / "ledger" / "out"
    for batch in range(last + 1):
        commit(sink, staged(sink, batch, [batch], "aa"))
        by_ledger(ledger, batch)
    then_sink = of_kind("delta", tmp_path / "ledger")
    for batch in (last, last + 1):
        with pytest.raises(CountedElsewhere, match=f"has written {last + 1} batches"):
            commit(then_sink, staged(then_sink, batch, [batch], "bb"))
        with pytest.raises(CountedElsewhere, match=f"has written {last + 1} batches"):
            by_ledger(tmp_path / "sink" / "out", batch)
    with pytest.raises(LocationEmptied, match=f"{QUERY} has committed {last + 1} batches"):
        commit(then_sink, staged(then_sink, 0, [9], "cc"), query="77aa")
    for place in (ledger, tmp_path / "sink" / "out"):
        assert delta_replay.rows(place) == list(range(last + 1))


def columns(target: BatchTarget, **values: list[Any]) -> Any:
    """Return what a task raises that stages these columns."""
    writer = target.sink.create_writer(OperatorContext("sink", 0, 7, 1, "r", [].append), None)
    agreed = target.prepare()
    writer.handle_event(["schema", agreed.schema, *agreed.told])
    with pytest.raises(ColumnsDiffer) as raised, told_of(target.shown):
        writer.write(pa.RecordBatch.from_pydict(values))
    return str(raised.value)


def test_other_columns_are_told_with_the_table_and_what_to_select(tmp_path: Path) -> None:
    target = of_kind("delta", tmp_path)
    commit(target, staged(target, 0, [1], "aa"))
    told = columns(target, x=[1], y=[2])
    assert f"not those of {tmp_path / 'out'}" in told
    assert 'df.select("id", "amount")' in told
    assert "subtask" not in told


@pytest.mark.parametrize(("before", "then"), [("parquet", "delta"), ("delta", "parquet")])
def test_a_table_and_files_do_not_share_a_directory_and_are_told_as_what_they_are(
    tmp_path: Path, before: str, then: str
) -> None:
    target = of_kind(before, tmp_path)
    commit(target, staged(target, 0, [1], "aa"))
    other = of_kind(then, tmp_path)
    told = "Parquet files of another sink" if before == "parquet" else "a Delta or Iceberg table"
    with pytest.raises(TargetNotEmpty, match=told):
        commit(other, staged(other, 0, [1], "bb"))
    assert READERS[before](tmp_path / "out") == [1]


def test_files_of_another_query_are_told_as_those_of_a_query(tmp_path: Path) -> None:
    target = of_kind("parquet", tmp_path)
    commit(target, staged(target, 0, [1], "aa"))
    part = replace(staged(target, 0, [2], "bb"), query="77aa")
    with pytest.raises(
        TargetOfAnotherQuery, match=f"files of query {QUERY}, and this is query 77aa"
    ):
        target.apply(part, 0)


def test_a_refusal_says_what_was_found_and_what_to_do(tmp_path: Path) -> None:
    target = of_kind("delta", tmp_path)
    commit(target, staged(target, 0, [1], "aa"))
    with pytest.raises(LocationMoved) as moved:
        commit(target, staged(target, 1, [2], "bb"), location="/copy")
    assert ".option(\"movedFrom\", '/check')" in str(moved.value)
    with pytest.raises(LocationEmptied) as emptied:
        commit(target, staged(target, 0, [1], "cc"), query="77aa")
    assert f'.option("replaces", "{QUERY}")' in str(emptied.value)
    assert "has committed 1 batches" in str(emptied.value)
