"""A merge that cannot be is refused by name, at the start or before a checkpoint completes; another
writer in between changes nothing of what is right afterwards.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import psycopg
import pyarrow as pa
import pytest

from epochgate.errors import UsageError
from epochgate.runtime import OperatorContext, RetryLater, SinkStart
from epochgate.spark.counting_sink import CountingSink
from epochgate.spark.ingest.options import IngestOptions
from epochgate.spark.postgres_sink import PostgresSink
from epochgate.spark.tables.merge import Merge
from tests.spark.tables import delta_replay, iceberg_replay
from tests.spark.tables.merged import (
    COLUMNS,
    Change,
    Place,
    check_some,
    delta_place,
    iceberg_place,
    make_partitioned,
    postgres_place,
    rows_of,
)

BY_AT = {"merge_order": ("at",)}


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"merge_order": ("at",)}, "no column of a key is named"),
        ({"merge_delete": "op = 'D'"}, "no column of a key is named"),
        ({"merge_on": ("id", "id")}, "the column 'id' is named twice"),
        ({"merge_on": ("",)}, "the name of a column is empty"),
        ({"merge_on": ("id",), "merge_delete": "op == 'D'"}, "'=' stands where a value should be"),
        ({"merge_on": ("id",), "merge_delete": "op = :x"}, "has a parameter :x"),
        ({"merge_on": ("id",), "commit_in": "tasks"}, "--commit-in tasks .* leave it out"),
        ({"merge_on": ("id",), "schema_evolution": "add"}, "--schema-evolution add .* leave it"),
        ({"merge_on": ("id",), "target": "out"}, "Parquet files in .* give a target delta:PATH"),
    ],
)
def test_what_cannot_be_meant_is_refused_before_anything_starts(
    given: dict[str, Any], told: str
) -> None:
    with pytest.raises(UsageError, match=told):
        IngestOptions(**{"source": "in", "target": "delta:out", **given})


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"merge_on": ("nr",)}, "names 'nr', and the rows .* have id, region, at, text, op"),
        ({"merge_order": ("when",)}, "names 'when', and the rows"),
        ({"merge_delete": "kind = 'D'"}, "names 'kind', and the rows"),
        ({"merge_delete": "id = 'D'"}, "column 'id' is BIGINT, and cannot be compared with 'D'"),
        ({"schema": "id double, region string, at bigint, text string, op string"}, "id.* DOUBLE"),
    ],
)
def test_columns_that_the_rows_lack_or_that_do_not_compare_are_refused_at_the_start(
    tmp_path: Path, given: dict[str, Any], told: str
) -> None:
    place = delta_place(tmp_path, **given)
    place.deliver([Change(1, "", 1, "a")])
    with pytest.raises(UsageError, match=told):
        place.run()
    assert not (tmp_path / "out" / "_delta_log").exists()


def test_a_null_type_and_a_missing_value_delete_nothing() -> None:
    rows = pa.table({"op": pa.nulls(2)}).to_batches()[0]
    assert Merge(("id",), delete="op = 'D'").deleted(rows).to_pylist() == [False, False]
    rows = pa.table({"op": ["D", None, "U"]}).to_batches()[0]
    assert Merge(("id",), delete="op = 'D'").deleted(rows).to_pylist() == [True, False, False]


def test_a_delta_table_that_is_append_only_is_refused(tmp_path: Path) -> None:
    deltalake = pytest.importorskip("deltalake", reason="the extra `delta` is not installed")
    place = delta_place(tmp_path)
    place.deliver([Change(1, "", 1, "a")])
    rows = pa.table({"id": [1], "region": [""], "at": [1], "text": [""], "op": ["U"]})
    deltalake.write_deltalake(tmp_path / "out", rows, configuration={"delta.appendOnly": "true"})
    with pytest.raises(UsageError, match=r"append-only.*without --merge-on"):
        place.run()


@pytest.mark.parametrize("kind", ["delta", "iceberg"])
def test_rows_that_another_writer_adds_meanwhile_are_replaced_once_the_merge_is_made_again(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place, add = other_writer(kind, tmp_path, monkeypatch)
    place.deliver([Change(1, "", 1, "a"), Change(2, "", 1, "b")])
    assert place.run().state == "finished"
    calls = strike(kind, monkeypatch, add, [Change(3, "", 1, "other"), Change(4, "", 9, "newer")])
    place.deliver([Change(one, "", 2, "new") for one in (1, 3, 4)])
    # An Iceberg table is claimed by a commit of its own, which writes no files.
    result = place.run()
    assert result.state == "finished", result.reason
    assert len(calls) >= 2
    assert place.read() == [
        (1, "", 2, "new"),
        (2, "", 1, "b"),
        (3, "", 2, "new"),
        (4, "", 9, "newer"),
    ]


def strike(
    kind: str,
    monkeypatch: pytest.MonkeyPatch,
    add: Callable[[list[Change]], None],
    rows: list[Change],
) -> list[int]:
    """Let another writer add rows just before the first commit of a merge; one entry for each."""
    calls: list[int] = []

    def struck(real: Callable[..., None]) -> Callable[..., None]:
        def call(*given: Any, **named: Any) -> None:
            calls.append(1)
            if len(calls) == 1:
                add(rows)
            real(*given, **named)

        return call

    if kind == "delta":
        from epochgate.spark.delta_sink import DeltaLog

        monkeypatch.setattr(DeltaLog, "merge", struck(DeltaLog.merge))
    else:
        from epochgate.spark.iceberg_sink.merging import MergingIcebergTarget

        real = MergingIcebergTarget._commit_files
        monkeypatch.setattr(MergingIcebergTarget, "_commit_files", struck(real))
    return calls


def other_writer(
    kind: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> tuple[Place, Callable[[list[Change]], None]]:
    """A place, and another writer of its table."""

    def as_rows(some: list[Change], *, with_op: bool) -> pa.Table:
        columns = ["id", "region", "at", "text", *(["op"] if with_op else [])]
        return pa.table({name: [getattr(one, name) for one in some] for name in columns})

    if kind == "delta":
        deltalake = pytest.importorskip("deltalake", reason="the extra `delta` is not installed")

        def add(some: list[Change]) -> None:
            rows = as_rows(some, with_op=True)
            deltalake.write_deltalake(folder / "out", rows, mode="append")

        return delta_place(folder, **BY_AT), add
    pytest.importorskip("pyiceberg", reason="the extra `iceberg` is not installed")
    from pyiceberg.catalog import load_catalog

    described = iceberg_replay.catalog(folder)
    for name, value in described.items():
        monkeypatch.setenv(f"PYICEBERG_CATALOG__LAKE__{name.upper()}", value)

    def add_to_iceberg(some: list[Change]) -> None:
        lake = load_catalog("lake", **described)
        lake.load_table("sales.events").append(as_rows(some, with_op=True))
        lake.close()

    return iceberg_place(folder, **BY_AT), add_to_iceberg


def test_files_without_a_key_that_came_stay_as_they_are_and_staged_ones_go(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place, _ = other_writer("iceberg", tmp_path, monkeypatch)
    for number in range(3):
        place.deliver([Change(10 * number + at, "", 1, "a") for at in range(3)])
        place.run()
    before = set(iceberg_replay.active_files(tmp_path))
    place.deliver([Change(10, "", 2, "b")])
    place.run()
    after = set(iceberg_replay.active_files(tmp_path))
    assert (len(before), len(before & after)) == (3, 2)
    operations = [one["summary"]["operation"] for one in iceberg_replay.snapshots(tmp_path)]
    assert operations.count("overwrite") == 1
    assert not list(tmp_path.glob("warehouse/**/*.staged"))


def test_a_start_of_the_other_kind_is_refused_while_a_checkpoint_waits_for_its_commit(
    tmp_path: Path,
) -> None:
    pytest.importorskip("deltalake", reason="the extra `delta` is not installed")
    from epochgate.spark.counting_sink import CommittableUnreadable
    from epochgate.spark.delta_sink import DeltaSink

    table = str(tmp_path / "out")
    adding = DeltaSink(table).create_committer(SinkStart("job", "r1"))
    with pytest.raises(CommittableUnreadable, match="no committable"):
        adding.check({0: [["merge", [0, 1, 2, "x", 1, 1, 1, "s"]]]})
    adding.close()
    merging = DeltaSink(table, merge=Merge(("id",))).create_committer(SinkStart("job", "r2"))
    with pytest.raises(CommittableUnreadable, match="without --merge-on"):
        merging.check({0: [[0, 1, 2, "x", 1, 1, 1, "s"]]})
    merging.close()


UNFIT = {
    "create table changed (id bigint, region text, at bigint, text text)": "no unique constraint",
    "create table changed (id bigint, region text, at bigint, text text, unique (id))": "on id, r",
    "create table changed (id bigint, region text, at bigint, text text,"
    " unique (id, region) deferrable)": "no unique constraint",
    "create table changed (id bigint, region text, at bigint, text text);"
    " create unique index on changed (id, region) where at > 0": "no unique constraint",
    "create table changed (id bigint, region text, text text, unique (id, region))": "no column 'a",
}


@pytest.mark.parametrize("statement", UNFIT)
def test_a_table_of_postgresql_without_the_constraint_is_refused(
    statement: str, tmp_path: Path, dsn: str
) -> None:
    with (
        psycopg.connect(dsn, autocommit=True) as connection,
        postgres_place(tmp_path, dsn, **BY_AT) as place,
    ):
        connection.execute("create table epochgate_staged_changed ()")
        connection.execute("drop table changed")
        connection.execute(statement.encode())
        place.deliver([Change(1, "", 1, "a")])
        with pytest.raises(UsageError, match=UNFIT[statement]):
            place.run()


TRIGGERS = {
    "left out": ("insert or update", "return null", "leaves out 1 of 1 rows"),
    "changed": ("update", "new.text := 'x'; return new", "changes 1 of 1 rows"),
    "stays": ("delete", "return null", "leaves out"),
}


@pytest.mark.parametrize("case", TRIGGERS)
def test_a_trigger_that_leaves_out_or_changes_what_replaces_is_told_before_the_checkpoint(
    case: str, tmp_path: Path, dsn: str
) -> None:
    event, body, told = TRIGGERS[case]
    with (
        psycopg.connect(dsn, autocommit=True) as connection,
        postgres_place(tmp_path, dsn, **BY_AT) as place,
    ):
        place.deliver([Change(1, "", 1, "a")])
        place.run()
        function = f"begin {body}; end"
        connection.execute(
            "create function meddle() returns trigger language plpgsql"
            f" as $$ {function} $$".encode()
        )
        connection.execute(
            f"create trigger meddling before {event} on changed"
            " for each row execute function meddle()".encode()
        )
        place.deliver([Change(1, "", 2, "b", "D" if case == "stays" else "U")])
        result = place.run()
        assert result.state == "failed"
        assert told in (result.reason or "")
        assert "trigger meddling" in (result.reason or "")
        assert place.read() == [(1, "", 1, "a")]
        connection.execute("drop function meddle cascade")


MERGE = Merge(("id", "region"), ("at",), "op = 'D'")


def merged_by(sink: CountingSink, job: int, told: list[Any] | None = None) -> None:
    """Merge five checkpoints of rows of the same keys; `told`: how writers hear of the schema."""
    committer = sink.create_committer(SinkStart(f"job{job}", f"run{job}"))
    for checkpoint in range(1, 6):
        context = OperatorContext("sink", 0, checkpoint, 1, f"run{job}", lambda event: None)
        writer: Any = sink.create_writer(context, None)
        if told is not None:
            writer.handle_event(told)
        ids = random.Random(job).sample(range(50), 50)
        at = checkpoint * 10 + job
        rows = [{"id": one, "region": "", "at": at, "text": f"{at}", "op": "U"} for one in ids]
        writer.write(pa.RecordBatch.from_pylist(rows))
        staged = {0: writer.prepare_commit(checkpoint)}
        committer.check(staged)
        while True:
            try:
                assert committer.commit(checkpoint, staged)
                break
            except RetryLater:  # a deadlock, of which the server ends one side, or another commit
                continue
    committer.close()


AT_LAST = [(one, "", 52, "52") for one in range(50)]


def test_jobs_that_merge_into_one_table_of_postgresql_lose_and_double_nothing(
    tmp_path: Path, dsn: str
) -> None:
    sink = PostgresSink(dsn, "changed", merge=MERGE)
    with postgres_place(tmp_path, dsn) as place, ThreadPoolExecutor(3) as pool:
        list(pool.map(lambda job: merged_by(sink, job), range(3)))
        assert place.read() == AT_LAST


def test_jobs_that_merge_into_one_delta_table_lose_and_double_nothing(tmp_path: Path) -> None:
    deltalake = pytest.importorskip("deltalake", reason="the extra `delta` is not installed")
    from epochgate.spark.delta_sink import DeltaSink

    place = str(tmp_path / "out")
    schema = pa.schema(
        [(name, pa.int64() if name in ("id", "at") else pa.string()) for name in COLUMNS]
    )
    deltalake.write_deltalake(place, schema.empty_table())
    told = ["schema", schema.serialize().to_pybytes(), place]
    with ThreadPoolExecutor(3) as pool:
        # The writer stages below the table, which each job has for its own checkpoints.
        list(pool.map(lambda job: merged_by(DeltaSink(place, merge=MERGE), job, told), range(3)))
    assert rows_of(delta_replay.active_files(tmp_path / "out")) == AT_LAST


def test_columns_that_the_rows_lack_stay_in_postgresql(tmp_path: Path, dsn: str) -> None:
    with (
        psycopg.connect(dsn, autocommit=True) as connection,
        postgres_place(tmp_path, dsn, **BY_AT) as place,
    ):
        connection.execute("alter table changed add made serial not null")
        place.deliver([Change(1, "", 1, "a"), Change(2, "", 1, "a")])
        place.run()
        before = connection.execute("select id, made from changed order by id").fetchall()
        place.deliver([Change(2, "", 2, "b")])
        place.run()
        after = connection.execute("select id, made from changed order by id").fetchall()
        assert before == after
        assert place.read() == [(1, "", 1, "a"), (2, "", 2, "b")]


def test_the_newest_file_counts_where_its_time_name_and_row_are_the_order(tmp_path: Path) -> None:
    pytest.importorskip("deltalake", reason="the extra `delta` is not installed")
    place = delta_place(
        tmp_path,
        add_columns=("file.modified", "file.name", "file.row"),
        merge_order=("file_modified", "file_name", "file_row"),
    )
    place.deliver([Change(1, "", 9, "a"), Change(1, "", 8, "b"), Change(2, "", 9, "c")])
    place.deliver([Change(2, "", 1, "d")])
    assert place.run().state == "finished"
    assert place.read() == [(1, "", 8, "b"), (2, "", 1, "d")]


def test_rows_of_which_none_changes_the_table_are_a_checkpoint_of_its_log(tmp_path: Path) -> None:
    pytest.importorskip("deltalake", reason="the extra `delta` is not installed")
    place = delta_place(tmp_path, **BY_AT)
    place.deliver([Change(1, "", 9, "a")])
    place.run()
    place.deliver([Change(1, "", 8, "late")])
    result = place.run()
    job = place.options.job_id
    said = delta_replay.numbers(tmp_path / "out", job)
    assert said[-1] == result.last_checkpoint_id
    assert len(said) == len(set(said))
    assert place.read() == [(1, "", 9, "a")]


@pytest.mark.parametrize("kind", ["delta", "iceberg"])
def test_a_merge_that_changes_nothing_is_made_again_behind_another_writer(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A row that deletes finds none, and one of its key comes before the entry is made."""
    place, add = other_writer(kind, tmp_path, monkeypatch)
    place.deliver([Change(1, "", 1, "a")])
    assert place.run().state == "finished"
    calls = strike(kind, monkeypatch, add, [Change(3, "", 1, "other")])
    place.deliver([Change(3, "", 2, "", "D")])
    result = place.run()
    assert result.state == "finished", result.reason
    assert len(calls) >= 2
    assert place.read() == [(1, "", 1, "a")]


def test_a_table_that_the_job_makes_is_partitioned_as_asked(tmp_path: Path) -> None:
    pytest.importorskip("deltalake", reason="the extra `delta` is not installed")
    place = delta_place(tmp_path, partition_by=("region",), **BY_AT)
    place.deliver([Change(1, "north", 1, "a"), Change(1, "s\u00fcd", 1, "a")])
    assert place.run().state == "finished"
    place.deliver([Change(1, "north", 2, "b")])
    assert place.run().state == "finished"
    assert place.read() == [(1, "north", 2, "b"), (1, "s\u00fcd", 1, "a")]
    entries = [json.dumps(one) for one in delta_replay.entries(tmp_path / "out")]
    last = [entry for entry in entries if '"MERGE"' in entry][-1]
    assert "region=north" in last
    assert "region=s" not in last


def test_an_iceberg_table_that_the_job_makes_is_partitioned_as_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place, _ = other_writer("iceberg", tmp_path, monkeypatch)
    place.options = replace(place.options, partition_by=("region", "bucket(2,id)"))
    check_some(place)
    assert any(one.parent.name == "data" for one in iceberg_replay.active_files(tmp_path))


def test_a_partitioned_iceberg_table_lacks_the_column_of_the_condition(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place, _ = other_writer("iceberg", tmp_path, monkeypatch)
    make_partitioned(tmp_path)
    place.deliver([Change(1, "north", 1, "a")])
    assert place.run().state == "finished"
    place.deliver([Change(1, "north", 2, "", "D"), Change(2, "north", 2, "c")])
    assert place.run().state == "finished"
    assert place.read() == [(2, "north", 2, "c")]
