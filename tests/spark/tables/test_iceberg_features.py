"""Each cell of the table of Iceberg's features in docs/tables.md: written so that readers find each
row, or refused at the start by name. The tables are made as other engines make them.
"""

from __future__ import annotations

import datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from epochgate.errors import UsageError
from epochgate.spark.iceberg_sink import IcebergSink
from epochgate.spark.ingest.targets import sink_of
from epochgate.spark.parquet_sink.partitions import PartitionUnusable
from epochgate.spark.tables.errors import TableUnusable
from epochgate.spark.tables.transforms import require_transformable, transforms_of
from tests.runtime.objects.stores import Memory
from tests.spark.ingest.simulated import SimulatedIngest, options_for
from tests.spark.tables.iceberg_replay import active_files, avro, catalog, metadata, rows, snapshots
from tests.spark.tables.test_iceberg_evolution import Writing, library

catalogs = pytest.importorskip("pyiceberg.catalog", reason="the extra `iceberg` is not installed")
DAY = datetime.datetime(2024, 2, 29, 12, tzinfo=datetime.UTC)
COLUMNS = pa.table({"id": [1, 2, 30], "name": ["ada", "bob", "adam"], "at": [DAY, None, DAY]})


def made(place: Path, **changes: Any) -> Any:
    from pyiceberg.schema import Schema
    from pyiceberg.types import LongType, NestedField, StringType

    fields = [NestedField(1, "x", LongType(), required=True), NestedField(2, "y", StringType())]
    known = catalogs.load_catalog("test", **catalog(place))
    known.create_namespace("sales")
    schema = Schema(*fields, identifier_field_ids=[1])
    return known.create_table("sales.events", **{"schema": schema, **changes})


def batch(*values: int) -> pa.Table:
    return pa.table({"x": list(values), "y": [str(one) for one in values]})


def entries(place: Path) -> list[dict[str, Any]]:
    """The data files of the newest snapshot, as its manifests have them."""
    (newest,) = snapshots(place)[-1:]
    manifests = avro(Path(newest["manifest-list"].removeprefix("file://")))
    return [
        entry["data_file"]
        for manifest in manifests
        for entry in avro(Path(manifest["manifest_path"].removeprefix("file://")))
    ]


@pytest.mark.parametrize("version", ["1", "2"])
def test_tables_of_both_versions_are_written(tmp_path: Path, version: str) -> None:
    made(tmp_path, properties={"format-version": version})
    writing = Writing(tmp_path, "none")
    writing.write(batch(1))
    writing.write(batch(2))
    assert writing.committer.target.rows() == 2
    writing.committer.close()
    assert rows(tmp_path) == [1, 2]
    assert (metadata(tmp_path) or {})["format-version"] == int(version)
    assert library(tmp_path).schema().identifier_field_ids == [1]


def test_files_of_a_sorted_table_do_not_say_that_they_are_sorted(tmp_path: Path) -> None:
    from pyiceberg.table.sorting import SortField, SortOrder
    from pyiceberg.transforms import IdentityTransform

    order = SortOrder(SortField(source_id=1, transform=IdentityTransform()))
    made(tmp_path, sort_order=order)
    writing = Writing(tmp_path, "none")
    writing.write(batch(3, 1, 2))
    writing.committer.close()
    assert rows(tmp_path) == [1, 2, 3]
    assert [one["sort_order_id"] for one in entries(tmp_path)] == [None]
    assert library(tmp_path).sort_order().fields == order.fields


def test_rows_that_others_have_deleted_stay_deleted(tmp_path: Path) -> None:
    table = made(tmp_path)
    writing = Writing(tmp_path, "none")
    writing.write(batch(0, 1, 2, 3))
    (file,) = active_files(tmp_path)
    delete(table.refresh(), file, [1, 3])
    found = library(tmp_path).scan().to_arrow()
    assert sorted(found["x"].to_pylist()) == [0, 2], "as another engine has deleted them"
    for value in range(4, 8):
        writing.write(batch(value))
    assert writing.committer.target.rows() == 6
    writing.committer.close()
    assert sorted(library(tmp_path).scan().to_arrow()["x"].to_pylist()) == [0, 2, 4, 5, 6, 7]


def positions_at(file: Path, positions: list[int]) -> Path:
    """Write a file of positions, as engines do."""
    ids = {"file_path": 2147483546, "pos": 2147483545}
    columns = {"file_path": [str(file)] * len(positions), "pos": positions}
    schema = pa.schema(
        [
            pa.field(name, kind, metadata={"PARQUET:field_id": str(ids[name])})
            for name, kind in (("file_path", pa.string()), ("pos", pa.int64()))
        ]
    )
    place = file.parent / "deletes.parquet"
    pq.write_table(pa.table(columns, schema), place)
    return place


def delete(table: Any, file: Path, positions: list[int]) -> None:
    """Add a file of positions, which the library does not write by itself."""
    from pyiceberg.manifest import (
        DataFile,
        DataFileContent,
        FileFormat,
        ManifestContent,
        ManifestEntry,
        ManifestEntryStatus,
        ManifestWriterV2,
    )
    from pyiceberg.table.snapshots import Operation
    from pyiceberg.table.update.snapshot import _FastAppendFiles
    from pyiceberg.typedef import Record

    place = positions_at(file, positions)

    class Deletes(ManifestWriterV2):
        def content(self) -> ManifestContent:
            return ManifestContent.DELETES

        @property
        def _meta(self) -> dict[str, str]:
            return {**super()._meta, "content": "deletes"}

    class Deleting(_FastAppendFiles):
        def _existing_manifests(self) -> list[Any]:
            metadata = self._transaction.table_metadata
            output = self._io.new_output(f"{table.location()}/metadata/deletes-m0.avro")
            data_file = DataFile.from_args(
                content=DataFileContent.POSITION_DELETES,
                file_path=f"file://{place}",
                file_format=FileFormat.PARQUET,
                partition=Record(),
                record_count=len(positions),
                file_size_in_bytes=place.stat().st_size,
            )
            with Deletes(
                metadata.spec(), metadata.schema(), output, self._snapshot_id, "deflate"
            ) as writer:
                writer.add_entry(
                    ManifestEntry.from_args(
                        status=ManifestEntryStatus.ADDED,
                        snapshot_id=self._snapshot_id,
                        sequence_number=None,
                        data_file=data_file,
                    )
                )
            return [*super()._existing_manifests(), writer.to_manifest_file()]

        def _summary(self, *arguments: Any) -> Any:
            made = super()._summary(*arguments)
            made.additional_properties["total-position-deletes"] = str(len(positions))
            return made

    transaction = table.transaction()
    producer = Deleting(
        operation=Operation.APPEND,
        transaction=transaction,
        io=table.io,
        branch="main",
    )
    producer.commit()
    transaction.commit_transaction()


def test_rows_go_by_the_newest_spec_of_a_table_whose_partitions_have_changed(
    tmp_path: Path,
) -> None:
    from pyiceberg.transforms import BucketTransform, IdentityTransform

    table = made(tmp_path)
    with table.update_spec() as update:
        update.add_field("y", IdentityTransform(), "y_part")
    writing = Writing(tmp_path, "none")
    writing.write(batch(1, 2))
    writing.committer.close()
    with library(tmp_path).update_spec() as update:
        update.remove_field("y_part")
        update.add_field("x", BucketTransform(8), "x_part")
    again = Writing(tmp_path, "none", 1)
    assert again.committer.target.told()[1:] == ("bucket[8] x",)
    again.write(batch(*range(3, 20)))
    again.committer.close()
    assert rows(tmp_path) == list(range(1, 20))
    assert sorted(library(tmp_path).scan().to_arrow()["x"].to_pylist()) == list(range(1, 20))
    for value in (1, 2, 7, 19):
        found = library(tmp_path).scan(row_filter=f"x == {value} and y == '{value}'").to_arrow()
        assert found["x"].to_pylist() == [value]


BY = ["name", "day(at)", "bucket(4, id)", "truncate(10,id)", "truncate(2,name)", "month(at)"]


@pytest.mark.parametrize("by", [BY[:2], BY[2:3], BY[3:5], BY[5:], ["year(at)"], ["hour(at)"]])
def test_a_new_table_is_partitioned_as_asked(tmp_path: Path, by: list[str]) -> None:
    writing = Writing(tmp_path, "none", partition_by=tuple(by))
    writing.write(COLUMNS)
    writing.write(COLUMNS)
    writing.committer.close()
    spec = library(tmp_path).spec()
    kinds = [str(one.transform).partition("[")[0] for one in spec.fields]
    assert kinds == [one.partition("(")[0] if "(" in one else "identity" for one in by]
    assert rows(tmp_path, "id") == [1, 1, 2, 2, 30, 30]
    assert len(active_files(tmp_path)) > 2
    found = library(tmp_path).scan(row_filter="id == 30").to_arrow().to_pylist()
    assert found == [{"id": 30, "name": "adam", "at": DAY}] * 2
    Writing(tmp_path, "none", 2, partition_by=tuple(by)).committer.close()
    Writing(tmp_path, "none", 2).committer.close()
    with pytest.raises(TableUnusable, match=r"this start asks for identity at.*Leave --partition"):
        Writing(tmp_path, "none", 2, partition_by=("at",))


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ("week(at)", "the transforms of Iceberg are a column's name, bucket"),
        ("bucket(id)", "the transforms of Iceberg are"),
        ("bucket(0,id)", "the transforms of Iceberg are"),
        ("day(4,at)", "the transforms of Iceberg are"),
        ("day(name)", "'name': it is string, and day is made of date, timestamp"),
        ("hour(nothing)", "'nothing': the output has id, name, at"),
    ],
)
def test_what_is_no_partition_is_refused_with_what_could_be(given: str, told: str) -> None:
    schema = pa.schema({"id": pa.int64(), "name": pa.string(), "at": pa.timestamp("us", "UTC")})
    with pytest.raises(PartitionUnusable, match=told):
        require_transformable(schema, transforms_of([given]))


def test_a_first_file_without_the_column_of_the_partitions_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.csv").write_text("x\n1\n")
    for evolution in ("none", "add"):
        place = tmp_path / evolution
        for name, value in catalog(place).items():
            monkeypatch.setenv(f"PYICEBERG_CATALOG__LAKE__{name.upper()}", value)
        place.mkdir()
        options = options_for(
            tmp_path,
            target="iceberg:lake.sales.events",
            checkpoint_directory=str(place / "checkpoints"),
            partition_by=("day(at)",),
            schema_evolution=evolution,
        )
        try:
            simulated = SimulatedIngest(options)
            simulated.run()
            reason = simulated.leave().reason or ""
        except UsageError as error:
            reason = str(error)
        assert "cannot partition by 'at': the output has x" in reason


def test_the_option_has_commas_within_parentheses(tmp_path: Path) -> None:
    from epochgate.commands.ingest import _names

    by = _names("country, bucket(16, id),day(at)")
    assert by == ("country", "bucket(16, id)", "day(at)")
    options = options_for(
        tmp_path,
        target="iceberg:lake.sales.events",
        checkpoint_directory=str(tmp_path / "checkpoints"),
        partition_by=by,
    )
    sink = sink_of(options, None, Memory().open)
    assert isinstance(sink, IcebergSink)
    assert transforms_of(sink.partition_by) == ("identity country", "bucket[16] id", "day at")
