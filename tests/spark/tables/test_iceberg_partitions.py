"""Partitioned Iceberg tables: each file holds rows of the one partition that its manifest names, by
another implementation of the transforms than that of the tasks, and every row is there once.
"""

from __future__ import annotations

import datetime
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from hypothesis import given, strategies as st

from epochgate.runtime import OperatorContext, SinkStart
from epochgate.spark.iceberg_sink import IcebergSink
from epochgate.spark.parquet_sink import CommittableDamaged, StagingWriter
from epochgate.spark.tables.errors import TableUnusable
from epochgate.spark.tables.transforms import TAKEN, split_by
from tests.spark.ingest.simulated import SimulatedIngest, options_for, random_kills
from tests.spark.tables.iceberg_replay import active_files, avro, catalog, rows, snapshots

pytest.importorskip("pyiceberg", reason="the extra `iceberg` is not installed")
pytest.importorskip("mmh3", reason="the extra `iceberg` is not installed")

SCHEMA = pa.schema(
    {
        "whole": pa.int64(),
        "short": pa.int32(),
        "text": pa.string(),
        "day": pa.date32(),
        "at": pa.timestamp("us", "UTC"),
        "local": pa.timestamp("us"),
        "flag": pa.bool_(),
        "fraction": pa.float64(),
    }.items()
)
ROWS = [
    {
        "whole": number,
        "short": -number,
        "text": text,
        "day": day,
        "at": None
        if day is None
        else datetime.datetime(day.year, 2, 3, 4, number % 60, 6, number % 9),
        "local": None if day is None else datetime.datetime(day.year, 12, 31, 23, 59, 59, 999_999),
        "flag": flag,
        "fraction": number / 2,
    }
    for number, (text, day, flag) in enumerate(
        [
            ("", datetime.date(1969, 12, 31), True),
            ("a text of more than sixteen characters, one", datetime.date(1970, 1, 1), False),
            ("a text of more than sixteen characters, two", datetime.date(2024, 2, 29), None),
            ("\u00e9\U0001f600 and more", datetime.date(1901, 1, 1), True),
            (None, None, True),
            ("a/b=c %", datetime.date(2024, 2, 29), False),
        ],
        start=-2,
    )
]
SPECS = [
    [("whole", "bucket[16]"), ("text", "bucket[4]")],
    [("whole", "truncate[3]"), ("text", "truncate[2]"), ("short", "truncate[10]")],
    [("day", "year"), ("local", "month")],
    [("day", "month"), ("at", "day")],
    [("day", "day"), ("at", "hour"), ("local", "year")],
    [("text", "identity"), ("day", "identity"), ("flag", "identity"), ("at", "identity")],
    [("whole", "identity"), ("day", "bucket[3]"), ("at", "bucket[7]"), ("short", "bucket[5]")],
]


def made(place: Path, spec: list[tuple[str, str]], of: str = "test", **properties: str) -> Any:
    """The table of this catalog, as another engine makes it."""
    from pyiceberg.catalog import load_catalog
    from pyiceberg.transforms import parse_transform

    known = load_catalog(of, **catalog(place))
    known.create_namespace("sales")
    table = known.create_table("sales.events", SCHEMA, properties=properties)
    with table.update_spec() as update:
        for column, transform in spec:
            update.add_field(column, parse_transform(transform), f"{column}_part")
    return known.load_table("sales.events")


def written(place: Path, *batches: list[dict[str, Any]]) -> None:
    sink = IcebergSink("test", "sales.events", catalog(place))
    committer = sink.create_committer(SinkStart("job", "r1"))
    schema = committer.target.schema()
    assert schema is not None
    for number, batch in enumerate(batches, 1):
        context = OperatorContext("sink", 0, number, 1, "r1", lambda event: None)
        writer = sink.create_writer(context, None)
        told = committer.target.told()
        writer.handle_event(["schema", schema.serialize().to_pybytes(), *told])
        writer.write(pa.RecordBatch.from_pylist(batch, SCHEMA))
        passed = {0: writer.prepare_commit(number)}
        committer.check(passed)
        assert committer.commit(number, passed)
        assert not committer.commit(number, passed)
    committer.close()


def manifested(place: Path) -> Iterator[tuple[Path, dict[str, Any]]]:
    """Each file with its partition, as the manifests have it."""
    (newest,) = snapshots(place)[-1:]
    for manifest in avro(Path(newest["manifest-list"].removeprefix("file://"))):
        for entry in avro(Path(manifest["manifest_path"].removeprefix("file://"))):
            file = entry["data_file"]
            yield Path(file["file_path"].removeprefix("file://")), file["partition"]


@pytest.mark.parametrize("spec", SPECS, ids=str)
def test_each_file_has_rows_of_the_partition_that_its_manifest_names(
    tmp_path: Path, spec: list[tuple[str, str]]
) -> None:
    """Also where the table keeps no statistics, of which the library makes partitions."""
    from pyiceberg.transforms import parse_transform

    table = made(tmp_path, spec, **{"write.metadata.metrics.default": "none"})
    written(tmp_path, ROWS[:4], ROWS[3:])
    kinds = {name: table.schema().find_type(name) for name, _ in spec}
    seen = set()
    for file, partition in manifested(tmp_path):
        seen.add(tuple(map(str, partition.values())))
        for row in pq.read_table(file).select([name for name, _ in spec]).to_pylist():
            for name, transform in spec:
                function = parse_transform(transform).transform(kinds[name])
                expected = function(_as_kept(row[name]))
                assert partition[f"{name}_part"] == expected, (file.name, name, transform)
    assert len(seen) > 1
    expected = sorted(one["whole"] for one in [*ROWS[:4], *ROWS[3:]])
    assert rows(tmp_path, "whole") == expected
    for one in ROWS:
        for name, _ in spec:
            pruned = table.refresh().scan(row_filter=_equal(name, one[name])).to_arrow()
            assert one["whole"] in pruned["whole"].to_pylist(), (name, one[name])


@pytest.mark.parametrize("transform", ["identity", "bucket[4]", "truncate[5000]"])
def test_a_long_text_has_its_partition(tmp_path: Path, transform: str) -> None:
    """Parquet files keep no least and greatest value of texts of more than 4 KiB."""
    from pyiceberg.transforms import parse_transform

    table = made(tmp_path, [("text", transform)])
    texts = ["l" * 5000, None, "s"]
    written(tmp_path, [{"whole": number, "text": text} for number, text in enumerate(texts)])
    function = parse_transform(transform).transform(table.schema().find_type("text"))
    partitions = [partition["text_part"] for _, partition in manifested(tmp_path)]
    assert sorted(map(str, partitions)) == sorted(map(str, map(function, texts)))
    for number, text in enumerate(texts):
        found = table.refresh().scan(row_filter=_equal("text", text)).to_arrow()
        assert found["whole"].to_pylist() == [number]


def test_a_partitioning_that_changes_ends_the_job_and_is_set_back(tmp_path: Path) -> None:
    """A bucket of the least value and of the greatest may be one, and those between others."""
    table = made(tmp_path, [("flag", "identity")])
    sink = IcebergSink("test", "sales.events", catalog(tmp_path))
    first = sink.create_committer(SinkStart("job", "r1"))
    schema = first.target.schema()
    assert schema is not None
    writer = sink.create_writer(OperatorContext("sink", 0, 1, 1, "r1", lambda event: None), None)
    writer.handle_event(["schema", schema.serialize().to_pybytes(), *first.target.told()])
    writer.write(pa.RecordBatch.from_pylist([{"whole": one} for one in range(5)], SCHEMA))
    passed = {0: writer.prepare_commit(1)}
    with table.update_spec() as update:
        update.add_field("whole", "bucket[2]", "whole_part")
    with pytest.raises(TableUnusable, match=r"identity flag, and it is by .*bucket"):
        first.commit(1, passed)
    with pytest.raises(TableUnusable, match=r"Set the partitioning .* back"):
        sink.create_committer(SinkStart("job", "r2", 1))
    with table.refresh().update_spec() as update:
        update.remove_field("whole_part")
    again = sink.create_committer(SinkStart("job", "r2", 1))
    assert again.commit(1, passed)
    assert rows(tmp_path, "whole") == list(range(5))
    again.close()


def _equal(name: str, value: Any) -> Any:
    """The predicate by which an engine prunes files."""
    expressions: Any = pytest.importorskip("pyiceberg.expressions")
    if value is None:
        return expressions.IsNull(name)
    if isinstance(value, datetime.datetime):
        text = value.isoformat() + ("+00:00" if name == "at" else "")
        return expressions.EqualTo(name, text)
    return expressions.EqualTo(
        name, value.isoformat() if isinstance(value, datetime.date) else value
    )


def _as_kept(value: Any) -> Any:
    """A value as Iceberg keeps it: days and microseconds since 1970."""
    if isinstance(value, datetime.datetime):
        since = value.replace(tzinfo=None) - datetime.datetime(1970, 1, 1)
        return since // datetime.timedelta(microseconds=1)
    return (value - datetime.date(1970, 1, 1)).days if isinstance(value, datetime.date) else value


NUMBERS = st.integers(-(2**63) + 10, 2**63 - 1)
VALUES: dict[str, Any] = {
    "int": (pa.int32(), st.integers(-(2**31), 2**31 - 1)),
    "long": (pa.int64(), NUMBERS),
    "string": (pa.string(), st.text(max_size=40)),
    "date": (pa.date32(), st.dates()),
    "timestamp": (pa.timestamp("us"), st.datetimes()),
}


@pytest.mark.parametrize(
    ("transform", "kind"),
    [(one, kind) for one in sorted(TAKEN) for kind in sorted(TAKEN[one] & VALUES.keys())],
)
def test_rows_are_split_as_the_library_would(transform: str, kind: str) -> None:
    from pyiceberg.transforms import parse_transform
    from pyiceberg.types import DateType, IntegerType, LongType, StringType, TimestampType

    kinds = {
        "int": IntegerType(),
        "long": LongType(),
        "string": StringType(),
        "date": DateType(),
        "timestamp": TimestampType(),
    }
    full = f"{transform}[7]" if transform in ("bucket", "truncate") else transform
    function = parse_transform(full).transform(kinds[kind])
    arrow, values = VALUES[kind]

    @given(st.lists(st.none() | values, min_size=1, max_size=8))
    def alike(column: list[Any]) -> None:
        parts = list(split_by([f"{full} x"], pa.table({"x": pa.array(column, arrow)})))
        named = [{function(_as_kept(v)) for v in part["x"].to_pylist()} for _, part in parts]
        assert all(len(one) == 1 for one in named)
        assert len(set().union(*named)) == len(parts)
        assert sum(part.num_rows for _, part in parts) == len(column)

    alike()


def test_a_number_whose_truncated_value_is_none_of_64_bits_is_refused() -> None:
    with pytest.raises(pa.ArrowInvalid, match="-9223372036854775808 cannot be truncated"):
        list(split_by(["truncate[7] x"], pa.table({"x": [1, -(2**63)]})))


def test_rows_arrive_once_in_a_partitioned_table_although_processes_die(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in catalog(tmp_path).items():
        monkeypatch.setenv(f"PYICEBERG_CATALOG__LAKE__{name.upper()}", value)
    made(tmp_path, [("whole", "bucket[4]"), ("day", "month")], "lake")
    (tmp_path / "in").mkdir()
    for file in range(3):
        lines = [f"{x},2024-0{x % 9 + 1}-01\n" for x in range(file * 20, file * 20 + 20)]
        (tmp_path / "in" / f"{file}.csv").write_text("whole,day\n" + "".join(lines))
    options = options_for(
        tmp_path,
        target="iceberg:lake.sales.events",
        checkpoint_directory=str(tmp_path / "checkpoints"),
        schema_evolution="add",
    )
    simulated = SimulatedIngest(options)
    simulated.run(random_kills(simulated, 4, share=0.05))
    assert simulated.leave().state == "finished"
    assert rows(tmp_path, "whole") == list(range(60))
    assert len(list(active_files(tmp_path))) > 10


def test_new_files_go_by_the_newest_spec_and_old_ones_stay(tmp_path: Path) -> None:
    from pyiceberg.transforms import parse_transform

    table = made(tmp_path, [("day", "year")])
    written(tmp_path, ROWS[:3])
    with table.refresh().update_spec() as update:
        update.add_field("whole", parse_transform("bucket[8]"), "whole_part")
        update.remove_field("day_part")
    sink = IcebergSink("test", "sales.events", catalog(tmp_path))
    again = sink.create_committer(SinkStart("job", "r2", 1))
    assert again.target.told()[1:] == ("bucket[8] whole",)
    again.close()
    assert sorted(pc.unique(table.refresh().scan().to_arrow()["whole"]).to_pylist()) == [-2, -1, 0]


@pytest.mark.parametrize(
    ("column", "transform", "told"),
    [("fraction", "identity", "identity of 'fraction', which is double")],
)
def test_a_table_is_refused_whose_partitions_cannot_be_told(
    tmp_path: Path, column: str, transform: str, told: str
) -> None:
    made(tmp_path, [(column, transform)])
    with pytest.raises(TableUnusable, match=told):
        written(tmp_path)


def test_a_file_of_rows_of_two_partitions_is_never_added(tmp_path: Path) -> None:
    made(tmp_path, [("whole", "bucket[16]")])
    sink = IcebergSink("test", "sales.events", catalog(tmp_path))
    committer = sink.create_committer(SinkStart("job", "r1"))
    writer = StagingWriter(f"{committer.target.directory}/_epochgate", "r1", 0, 1)
    writer.write(pa.RecordBatch.from_pylist(ROWS, SCHEMA))
    with pytest.raises(CommittableDamaged, match="rows of one partition by whole_part"):
        committer.commit(1, {0: [one.to_list() for one in writer.prepare_commit(1)]})
    committer.close()
    assert rows(tmp_path, "whole") == []
