"""The history of an Iceberg table holds together: one driver, each checkpoint once, whatever the
library does of its own accord.
"""

from __future__ import annotations

import itertools
import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgpack
import pyarrow as pa
import pytest

from epochgate.runtime import BehindCheckpoint, RetryLater, SinkStart
from epochgate.spark.extras import ExtraMissing
from epochgate.spark.iceberg_sink import (
    CatalogUnusable,
    IcebergSink,
    IcebergTable,
    IcebergTarget,
    OutcomeUnknown,
    TableAhead,
    TableBehind,
    TableOvertaken,
    TableRolledBack,
    TableTakenOver,
    TableUnusable,
)
from epochgate.spark.parquet_sink import (
    Committable,
    CommittableDamaged,
    CommittableMissing,
    OutputSchemaChanged,
    StagingWriter,
)
from tests.spark.tables.iceberg_replay import (
    active_files,
    avro,
    catalog,
    metadata,
    numbers,
    rows,
    snapshots,
)

catalogs = pytest.importorskip("pyiceberg.catalog", reason="the extra `iceberg` is not installed")
ATTEMPTS = itertools.count(10)
TABLE = "sales.events"
CHECKPOINT = "epochgate.checkpoint"


def stage(place: Path, run: str, columns: Any, subtask: int = 0) -> list[Committable]:
    directory = place / "warehouse" / "sales" / "events" / "_epochgate"
    writer = StagingWriter(directory, run, subtask, attempt=next(ATTEMPTS))
    columns = {"x": columns} if isinstance(columns, list) else columns
    writer.write(pa.RecordBatch.from_pydict(columns))
    plain = msgpack.unpackb(msgpack.packb([one.to_list() for one in writer.prepare_commit(1)]))
    return [Committable.from_list(value) for value in plain]


class TroubledTable(IcebergTable):
    """Lets something happen around the next commit."""

    before: Callable[[], Any] | None = None
    after: Callable[[], Any] | None = None

    def commit(self, *arguments: Any) -> None:
        before, TroubledTable.before = TroubledTable.before, None
        after, TroubledTable.after = TroubledTable.after, None
        if before is not None:
            before()
        super().commit(*arguments)
        if after is not None:
            after()


def opened(place: Path, kind: type[IcebergTable] = IcebergTable) -> IcebergTable:
    return kind("test", TABLE, catalog(place))


def claimed(place: Path, run: str, restored: int | None = None) -> IcebergTarget:
    target = IcebergTarget(lambda: opened(place, TroubledTable), "job", run)
    target.claim(restored)
    return target


def library(place: Path) -> Any:
    """The table as another writer has it."""
    return catalogs.load_catalog("test", **catalog(place)).load_table(TABLE)


@pytest.fixture
def target(tmp_path: Path) -> Iterator[IcebergTarget]:
    target = claimed(tmp_path, "r1")
    yield target
    target.release()


def test_a_local_table_needs_no_profile_of_amazon(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One of single sign-on has no keys of its own."""
    (tmp_path / "config").write_text("[profile work]\nsso_session = company\n")
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "config"))
    monkeypatch.setenv("AWS_PROFILE", "work")
    for name in ("AWS_ACCESS_KEY_ID", "AWS_WEB_IDENTITY_TOKEN_FILE"):
        monkeypatch.delenv(name, raising=False)
    table = IcebergTable("test", TABLE, catalog(tmp_path))
    assert not table.load()
    table.close()


def test_rows_are_seen_from_their_commit_on_and_committing_again_changes_nothing(
    target: IcebergTarget, tmp_path: Path
) -> None:
    files = stage(tmp_path, "r1", [1, 2]) + stage(tmp_path, "r1", [3], subtask=1)
    assert rows(tmp_path) == []
    assert target.commit(1, files)
    assert rows(tmp_path) == [1, 2, 3]
    before = metadata(tmp_path)
    assert not target.commit(1, files)
    assert metadata(tmp_path) == before
    assert sorted(library(tmp_path).scan().to_arrow()["x"].to_pylist()) == [1, 2, 3]
    assert target.rows() == 3


def test_a_commit_without_rows_is_recorded_and_numbers_only_grow(
    target: IcebergTarget, tmp_path: Path
) -> None:
    assert target.commit(1, [])
    assert target.commit(4, stage(tmp_path, "r1", [1]))
    assert not target.commit(3, stage(tmp_path, "r1", [2])), "the maximum counts"
    assert target.commit(5, [])
    assert not target.commit(5, [])
    assert numbers(tmp_path, CHECKPOINT) == [1, 4, 5]
    assert rows(tmp_path) == [1]


def test_the_library_itself_puts_a_stale_commit_on_top_of_others(
    target: IcebergTarget, tmp_path: Path
) -> None:
    """Retries are switched off, since they would let a replaced driver commit, too."""
    target.commit(1, stage(tmp_path, "r1", [1]))
    stale, refused = library(tmp_path), opened(tmp_path)
    assert refused.load()
    target.commit(2, [])
    stale.append(pa.table({"x": [7]}))
    assert rows(tmp_path) == [1, 7]
    with pytest.raises(TableOvertaken, match="branch main has changed"):
        refused.commit([], [], {"a": "b"}, {}, "snapshot")
    retries = (metadata(tmp_path) or {})["properties"].get("commit.retry.num-retries")
    assert retries is None, "other writers keep theirs"
    refused.close()


def test_a_driver_that_was_replaced_cannot_commit_any_more(
    target: IcebergTarget, tmp_path: Path
) -> None:
    target.commit(1, stage(tmp_path, "r1", [1]))
    successor = claimed(tmp_path, "r2", 1)
    for late in ([], stage(tmp_path, "r1", [2])):
        with pytest.raises(TableTakenOver, match="run r1 may not commit"):
            target.commit(2, late)
    assert successor.commit(2, stage(tmp_path, "r2", [2]))
    assert rows(tmp_path) == [1, 2]
    successor.release()


@pytest.mark.parametrize("values", [[2], None], ids=["with rows", "empty"])
def test_the_table_refuses_a_driver_that_is_replaced_between_its_look_and_its_commit(
    target: IcebergTarget, tmp_path: Path, values: Any
) -> None:
    target.commit(1, stage(tmp_path, "r1", [1]))
    late, successors = stage(tmp_path, "r1", values) if values else [], list[IcebergTarget]()
    TroubledTable.before = lambda: successors.append(claimed(tmp_path, "r2", 1))
    with pytest.raises(RetryLater, match="branch main has changed"):
        target.commit(2, late)
    with pytest.raises(TableTakenOver):
        target.commit(2, late)
    assert numbers(tmp_path, CHECKPOINT) == [1]
    assert rows(tmp_path) == [1]
    assert successors[0].commit(2, stage(tmp_path, "r2", [5]))
    assert rows(tmp_path) == [1, 5]
    successors[0].release()


def test_a_commit_that_another_writer_overtakes_is_left_to_the_next_try(
    target: IcebergTarget, tmp_path: Path
) -> None:
    target.commit(1, stage(tmp_path, "r1", [1]))
    files = stage(tmp_path, "r1", [2])
    TroubledTable.before = lambda: library(tmp_path).append(pa.table({"x": [8]}))
    with pytest.raises(RetryLater, match="branch main has changed"):
        target.commit(2, files)
    assert rows(tmp_path) == [1, 8]
    assert target.commit(2, files)
    assert rows(tmp_path) == [1, 2, 8]
    assert target.rows() == 3


@pytest.mark.parametrize("when", ["before", "after"])
def test_a_commit_whose_outcome_is_unknown_is_made_once(
    target: IcebergTarget, tmp_path: Path, when: str
) -> None:
    target.commit(1, stage(tmp_path, "r1", [1]))
    files = stage(tmp_path, "r1", [2])

    def no_answer() -> None:
        raise OutcomeUnknown(TABLE, "504 Gateway Timeout")

    setattr(TroubledTable, when, staticmethod(no_answer))
    with pytest.raises(RetryLater, match="504"):
        target.commit(2, files)
    assert target.commit(2, files) == (when == "before")
    assert rows(tmp_path) == [1, 2]


@pytest.mark.parametrize("error", ["CommitStateUnknownException", "ServerError", "OSError"])
def test_an_error_of_the_catalog_is_an_unknown_outcome(
    target: IcebergTarget, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: str
) -> None:
    from pyiceberg import exceptions
    from pyiceberg.catalog.sql import SqlCatalog

    files, real = stage(tmp_path, "r1", [1]), SqlCatalog.commit_table

    def answer_lost(*arguments: Any) -> None:
        real(*arguments)
        monkeypatch.undo()
        raise getattr(exceptions, error, OSError)("the answer is lost")

    monkeypatch.setattr(SqlCatalog, "commit_table", answer_lost)
    with pytest.raises(RetryLater, match="the answer is lost"):
        target.commit(1, files)
    assert not target.commit(1, files)
    assert rows(tmp_path) == [1]


def test_what_was_committed_is_recognized_when_its_snapshots_have_expired(
    target: IcebergTarget, tmp_path: Path
) -> None:
    files = stage(tmp_path, "r1", [1])
    target.commit(1, files)
    for value in range(3):
        library(tmp_path).append(pa.table({"x": [10 + value]}))
    old = [one["snapshot-id"] for one in snapshots(tmp_path)[:-1]]
    library(tmp_path).maintenance.expire_snapshots().by_ids(old).commit()
    assert len(snapshots(tmp_path)) == 1
    assert not target.commit(1, files)
    successor = claimed(tmp_path, "r2", 1)
    assert not successor.commit(1, files)
    assert successor.commit(2, stage(tmp_path, "r2", [2]))
    assert rows(tmp_path) == [1, 2, 10, 11, 12]
    successor.release()


def test_manifests_are_merged_so_that_a_commit_does_not_read_one_for_each_before(
    target: IcebergTarget, tmp_path: Path
) -> None:
    with library(tmp_path).transaction() as transaction:
        transaction.set_properties({"commit.manifest.min-count-to-merge": "3"})
    for number in range(1, 8):
        assert target.commit(number, stage(tmp_path, "r1", [number]))
    listed = snapshots(tmp_path)[-1]["manifest-list"].removeprefix("file://")
    assert len(avro(Path(listed))) < 4
    assert rows(tmp_path) == list(range(1, 8))


def test_a_table_that_was_set_back_behind_a_commit_is_refused(
    target: IcebergTarget, tmp_path: Path
) -> None:
    target.commit(1, stage(tmp_path, "r1", [1]))
    before = library(tmp_path).current_snapshot().snapshot_id
    target.commit(2, stage(tmp_path, "r1", [2]))
    table = library(tmp_path)
    table.manage_snapshots().rollback_to_snapshot(before).commit()
    with pytest.raises(TableRolledBack, match="checkpoint 2 of this job"):
        target.commit(3, [])
    with pytest.raises(BehindCheckpoint, match="after 1, up to 2"):
        claimed(tmp_path, "r2", 2)
    assert rows(tmp_path) == [1]


def test_a_state_older_or_newer_than_the_table_is_refused(
    target: IcebergTarget, tmp_path: Path
) -> None:
    target.commit(4, stage(tmp_path, "r1", [1]))
    before = metadata(tmp_path)
    with pytest.raises(TableAhead, match=r"checkpoint 4 .* from checkpoint 3"):
        claimed(tmp_path, "r2", 3)
    with pytest.raises(TableAhead, match="from no checkpoint"):
        claimed(tmp_path, "r2")
    assert metadata(tmp_path) == before
    catalogs.load_catalog("test", **catalog(tmp_path)).drop_table(TABLE)
    with pytest.raises(TableBehind, match="restores checkpoint 4"):
        claimed(tmp_path, "r3", 4)
    claimed(tmp_path, "other").release()
    with pytest.raises(TableBehind):
        target.commit(5, [])


def test_what_a_dead_run_has_staged_is_removed_and_what_a_checkpoint_holds_is_not(
    target: IcebergTarget, tmp_path: Path
) -> None:
    target.commit(1, stage(tmp_path, "r1", [1]))
    held, orphan = stage(tmp_path, "r1", [2], subtask=1), stage(tmp_path, "r1", [3], subtask=2)
    successor = claimed(tmp_path, "r2", 2)
    removed = successor.remove_orphans(held)
    assert [Path(path).name for path in removed] == [Path(orphan[0].path).name]
    successor.commit(2, held)
    assert rows(tmp_path) == [1, 2]
    assert sorted(tmp_path.rglob("*.parquet")) == sorted(active_files(tmp_path))
    successor.release()


def test_columns_that_are_new_become_columns_of_the_table_with_their_rows(
    target: IcebergTarget, tmp_path: Path
) -> None:
    target.commit(1, stage(tmp_path, "r1", [1]))
    wider = stage(tmp_path, "r1", {"x": [2], "name": ["two"]})
    target.require_one_schema(wider)
    assert target.commit(2, wider)
    assert target.commit(3, stage(tmp_path, "r1", [3]))
    found = library(tmp_path).scan().to_arrow().sort_by("x").to_pylist()
    assert [row["name"] for row in found] == [None, "two", None]
    with pytest.raises(OutputSchemaChanged, match="subtask 1, attempt"):
        target.require_one_schema(stage(tmp_path, "r1", ["one"], subtask=1))


def test_a_file_that_is_gone_or_damaged_is_named_and_nothing_is_seen(
    target: IcebergTarget, tmp_path: Path
) -> None:
    files = stage(tmp_path, "r1", [1]) + stage(tmp_path, "r1", [2], subtask=1)
    staged = tmp_path / "warehouse/sales/events/_epochgate" / files[1].path
    content = staged.read_bytes()
    staged.write_bytes(content[:-1])
    with pytest.raises(CommittableDamaged):
        target.commit(1, files)
    staged.unlink()
    with pytest.raises(CommittableMissing):
        target.commit(1, files)
    staged.write_bytes(content)
    target.commit(1, files)
    assert rows(tmp_path) == [1, 2]


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"columns": [("x", pa.list_(pa.field("e", pa.binary(16))))]}, r"'x.element' is fixed\[16"),
        (
            {"columns": [("x", pa.map_(pa.string(), pa.binary(4)))]},
            r"'x.value' is fixed\[4",
        ),
        ({"location": "hdfs://host/table"}, "it lies at hdfs://host/table.*Give a table"),
    ],
)
def test_a_table_with_a_property_that_cannot_be_honoured_is_refused(
    tmp_path: Path, changes: dict[str, Any], reason: str
) -> None:
    known = catalogs.load_catalog("test", **catalog(tmp_path))
    known.create_namespace("sales")
    columns = changes.pop("columns", [pa.field("x", pa.int64())])
    properties = {"write.metadata.path": f"{tmp_path}/metadata"}
    known.create_table(TABLE, pa.schema(columns), properties=properties, **changes)
    with pytest.raises(TableUnusable, match=reason):
        claimed(tmp_path, "r1")
    assert snapshots(tmp_path) == []
    known.close()


def test_a_table_of_a_version_that_the_library_cannot_write_is_refused(tmp_path: Path) -> None:
    claimed(tmp_path, "r1").release()
    for file in tmp_path.rglob("*.metadata.json"):
        later = json.loads(file.read_text()) | {"format-version": 3, "next-row-id": 0}
        file.write_text(json.dumps(later))
    with pytest.raises(
        TableUnusable, match="it is of format version 3, and the library pyiceberg writes up to 2"
    ):
        claimed(tmp_path, "r2")


def test_a_catalog_that_is_not_described_is_named_with_the_way_to_describe_it() -> None:
    with pytest.raises(CatalogUnusable, match="PYICEBERG_CATALOG__NOSUCH__URI"):
        IcebergSink("nosuch", TABLE).create_committer(SinkStart("job", "r1"))


def test_without_the_library_the_error_names_the_extra(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pyiceberg.catalog", None)
    with pytest.raises(ExtraMissing, match=r"pip install epochgate\[iceberg\]"):
        IcebergSink("test", TABLE, catalog(tmp_path)).create_committer(SinkStart("job", "r1"))
    assert list(tmp_path.iterdir()) == []
