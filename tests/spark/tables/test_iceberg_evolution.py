"""The columns of an Iceberg table grow by the promotions of its specification, in the commit of the
rows that need them; what it demands of values stays demanded.
"""

from __future__ import annotations

import random
from decimal import Decimal
from pathlib import Path
from typing import Any, get_args

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from epochgate.errors import UsageError
from epochgate.runtime import OperatorContext, SinkStart
from epochgate.runtime.testing.faulty_filesystem import Fault
from epochgate.spark.files.evolution import SchemaEvolution, evolved
from epochgate.spark.iceberg_sink import IcebergCommitter, IcebergSink
from epochgate.spark.tables.errors import TableUnusable
from epochgate.spark.values.errors import ValueDoesNotFit, ValueMissing
from epochgate.spark.values.formats import ICEBERG
from tests.spark.ingest.simulated import SimulatedIngest, options_for, random_kills
from tests.spark.ingest.test_simulated import When
from tests.spark.tables.iceberg_replay import active_files, catalog, metadata, rows

catalogs = pytest.importorskip("pyiceberg.catalog", reason="the extra `iceberg` is not installed")
SMALL = pa.decimal128(5, 2)
LARGE = pa.decimal128(12, 2)


def library(place: Path, of: str = "test") -> Any:
    return catalogs.load_catalog(of, **catalog(place)).load_table("sales.events")


def made(place: Path, schema: pa.Schema, of: str = "test") -> Any:
    """The table as another engine makes it."""
    known = catalogs.load_catalog(of, **catalog(place))
    known.create_namespace("sales")
    return known.create_table("sales.events", schema)


class Writing:
    """A job of one subtask, whose coordinator agrees on what its writer asks for."""

    def __init__(
        self,
        place: Path,
        evolution: SchemaEvolution = "widen",
        restored: int | None = None,
        **changes: Any,
    ) -> None:
        self.sink = IcebergSink(
            "test", "sales.events", catalog(place), evolution=evolution, **changes
        )
        self.committer: IcebergCommitter = self.sink.create_committer(
            SinkStart("job", "r1" if restored is None else "r2", restored)
        )
        self.number = restored or 0
        self.agreed = self.committer.target.schema()

    def staged(self, *tables: pa.Table) -> dict[int, list[Any]]:
        """Return what a task hands over that has these batches."""
        self.number += 1
        asked: list[Any] = []
        context = OperatorContext("sink", 0, self.number, 1, "r1", asked.append)
        writer = self.sink.create_writer(context, None)
        self._tell(writer)
        for batch in (one for table in tables for one in table.to_batches()):
            if not writer.may_write(batch):
                self._agree(asked[-1][1])
                self._tell(writer)
                assert writer.may_write(batch)
            writer.write(batch)
        return {0: writer.prepare_commit(self.number)}

    def _agree(self, packed: bytes) -> None:
        wish = pa.ipc.read_schema(pa.py_buffer(packed))
        held = self.agreed
        self.agreed = (
            wish if held is None else evolved(held, wish, self.sink.evolution, ICEBERG.rules)
        )

    def _tell(self, writer: Any) -> None:
        if self.agreed is not None:
            packed = self.agreed.serialize().to_pybytes()
            writer.handle_event(["schema", packed, *self.committer.target.told()])

    def write(self, *tables: pa.Table) -> None:
        passed = self.staged(*tables)
        self.committer.check(passed)
        assert self.committer.commit(self.number, passed)
        assert not self.committer.commit(self.number, passed)


def test_types_become_wider_as_the_specification_has_it(tmp_path: Path) -> None:
    table = made(
        tmp_path, pa.schema({"x": pa.int32(), "f": pa.float32(), "d": SMALL, "s": pa.string()})
    )
    writing = Writing(tmp_path)
    narrow = pa.table({"x": pa.array([1], pa.int32()), "f": pa.array([0.1], pa.float32())})
    writing.write(narrow.append_column("d", pa.array([Decimal("1.25")], SMALL)))
    writing.write(
        pa.table({"x": [2**40], "f": [0.1], "d": pa.array([Decimal("1234567890.25")], LARGE)})
    )
    writing.write(narrow)
    writing.committer.close()
    kinds = {one.name: str(one.field_type) for one in table.refresh().schema().fields}
    assert kinds == {"x": "long", "f": "double", "d": "decimal(12, 2)", "s": "string"}
    found = sorted(table.scan().to_arrow().to_pylist(), key=lambda row: (row["x"], row["d"] or 0))
    single = pa.scalar(0.1, pa.float32()).as_py()
    assert [(row["x"], row["f"], row["d"]) for row in found] == [
        (1, single, None),
        (1, single, Decimal("1.25")),
        (2**40, 0.1, Decimal("1234567890.25")),
    ]
    assert rows(tmp_path) == [1, 1, 2**40]


def test_narrower_and_wider_files_are_committed_together(tmp_path: Path) -> None:
    """As after a failure, when files of an attempt that went on are older than those of another."""
    writing = Writing(tmp_path)
    narrow = writing.staged(pa.table({"x": pa.array([1], pa.int32())}))
    wide = writing.staged(pa.table({"x": [2**40]}))
    writing.committer.check({0: narrow[0], 1: wide[0]})
    assert writing.committer.commit(3, {0: narrow[0] + wide[0]})
    writing.committer.close()
    table = library(tmp_path)
    assert sorted(table.scan().to_arrow()["x"].to_pylist()) == [1, 2**40]
    pruned = table.scan(row_filter="x >= 2").to_arrow()
    assert pruned["x"].to_pylist() == [2**40]


def test_a_change_that_is_no_promotion_leaves_the_column_which_takes_what_fits(
    tmp_path: Path,
) -> None:
    made(tmp_path, pa.schema({"x": pa.int32(), "d": SMALL}))
    writing = Writing(tmp_path)
    writing.write(pa.table({"x": [2.0], "d": pa.array([Decimal("1.500")], pa.decimal128(9, 3))}))
    for name, value in (("x", 2.5), ("d", Decimal("1.505"))):
        with pytest.raises(ValueDoesNotFit, match=f"column '{name}'.*{value}"):
            writing.staged(pa.table({name: [value]}))
    writing.committer.close()
    kinds = [str(one.field_type) for one in library(tmp_path).schema().fields]
    assert kinds == ["int", "decimal(5, 2)"]


def test_fields_within_a_column_come_and_become_wider(tmp_path: Path) -> None:
    writing = Writing(tmp_path)
    narrow = pa.table({"s": pa.array([{"a": 1}], pa.struct({"a": pa.int32()}))})
    writing.write(narrow)
    writing.write(pa.table({"s": [{"a": 2**40, "b": "text"}]}))
    writing.write(narrow)
    writing.committer.close()
    found = library(tmp_path).scan().to_arrow()["s"].to_pylist()
    assert sorted(found, key=str) == [
        {"a": 1, "b": None},
        {"a": 1, "b": None},
        {"a": 2**40, "b": "text"},
    ]


def test_a_partitioned_table_is_widened_too(tmp_path: Path) -> None:
    writing = Writing(tmp_path, partition_by=("bucket(4,x)", "truncate(10,y)", "z"))
    small = {name: pa.array([7], pa.int32()) for name in "xyz"}
    writing.write(pa.table(small))
    writing.write(pa.table({name: [2**40 + number] for number, name in enumerate("xyz")}))
    writing.write(pa.table(small))
    writing.committer.close()
    table = library(tmp_path)
    for name, values in {"x": (7, 2**40), "y": (7, 2**40 + 1), "z": (7, 2**40 + 2)}.items():
        for value in values:
            found = table.scan(row_filter=f"{name} == {value}").to_arrow()
            assert set(found[name].to_pylist()) == {value}, (name, value)
    assert rows(tmp_path) == [7, 7, 2**40]


@pytest.mark.parametrize("seed", range(3))
def test_rows_and_types_arrive_once_while_processes_die(
    tmp_path: Path, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    from tests.spark.ingest.test_evolution import write_growing

    for name, value in catalog(tmp_path).items():
        monkeypatch.setenv(f"PYICEBERG_CATALOG__LAKE__{name.upper()}", value)
    expected = write_growing(tmp_path, "parquet")
    options = options_for(
        tmp_path,
        target="iceberg:lake.sales.events",
        checkpoint_directory=str(tmp_path / "checkpoints"),
        schema_evolution="widen",
        partition_by=("bucket(2,x)",) if seed else (),
    )
    chance = random.Random(seed)
    whens: tuple[When, ...] = get_args(When)
    faults = [Fault(chance.randrange(60), when=chance.choice(whens)) for _ in range(4)]
    simulated = SimulatedIngest(options, faults)
    simulated.run(random_kills(simulated, seed, share=0.02))
    result = simulated.leave()
    assert result.state == "finished", result.reason
    found = library(tmp_path, "lake").scan().to_arrow().sort_by("x").to_pylist()
    assert [(row["x"], row["name"], row["price"]) for row in found] == expected


REQUIRED = pa.schema(
    [
        pa.field("x", pa.int64(), nullable=False),
        pa.field("s", pa.struct([pa.field("a", pa.int64(), nullable=False)])),
        pa.field("l", pa.list_(pa.field("element", pa.int64(), nullable=False))),
    ]
)


def test_a_required_column_takes_values_and_nothing_else(tmp_path: Path) -> None:
    made(tmp_path, REQUIRED)
    writing = Writing(tmp_path, "none")
    writing.write(
        pa.Table.from_pylist(
            [{"x": 1, "s": {"a": 1}, "l": [1]}, {"x": 2, "s": None, "l": None}],
            pa.schema([(one.name, one.type) for one in REQUIRED]),
        )
    )
    kinds: dict[str, Any] = {"s": pa.struct({"a": pa.int64()}), "l": pa.list_(pa.int64())}
    bad: list[tuple[dict[str, Any], type[Exception], str]] = [
        ({"x": None, "s": None, "l": None}, ValueMissing, "'x' of the table is declared not null"),
        ({"x": 3, "s": {"a": None}, "l": None}, ValueDoesNotFit, "'s' cannot be written"),
        ({"x": 3, "s": None, "l": [1, None]}, ValueDoesNotFit, "'l' cannot be written"),
    ]
    for row, error, told in bad:
        table = pa.Table.from_pylist([row], pa.schema({"x": pa.int64(), **kinds}))
        with pytest.raises(error, match=told):
            writing.staged(table)
    writing.committer.close()
    assert rows(tmp_path) == [1, 2]
    found = library(tmp_path).scan().to_arrow().sort_by("x")
    assert found["l"].to_pylist() == [[1], None]
    assert not found.schema.field("x").nullable


def test_a_missing_value_of_a_required_column_is_told_with_its_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in catalog(tmp_path).items():
        monkeypatch.setenv(f"PYICEBERG_CATALOG__LAKE__{name.upper()}", value)
    columns = [pa.field("x", pa.int64(), nullable=False), ("y", pa.int64())]
    made(tmp_path, pa.schema(columns), "lake")
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.csv").write_text("x,y\n1,1\n,2\n")
    options = options_for(
        tmp_path,
        target="iceberg:lake.sales.events",
        checkpoint_directory=str(tmp_path / "checkpoints"),
    )
    simulated = SimulatedIngest(options)
    simulated.run()
    result = simulated.leave()
    assert result.state == "failed"
    for part in ("column 'x'", "a.csv", "not null"):
        assert part in str(result.reason)
    assert rows(tmp_path) == []


def test_a_column_stays_required_while_others_come(tmp_path: Path) -> None:
    made(tmp_path, pa.schema([pa.field("x", pa.int32(), nullable=False)]))
    writing = Writing(tmp_path)
    writing.write(pa.table({"x": [2**40], "y": ["new"]}))
    (x, y) = library(tmp_path).schema().fields
    assert (x.required, str(x.field_type), y.required) == (True, "long", False)
    with pytest.raises(ValueMissing, match="'x'"):
        writing.staged(pa.table({"x": pa.array([None], pa.int64()), "y": ["more"]}))
    with pytest.raises(ValueMissing, match="'x'"):
        writing.staged(pa.table({"y": ["more"]}))
    writing.committer.close()


def test_a_table_with_a_required_field_within_a_column_does_not_grow(tmp_path: Path) -> None:
    made(tmp_path, REQUIRED)
    with pytest.raises(TableUnusable, match=r"within 's' is required.*Leave --schema-evolution"):
        Writing(tmp_path, "add")


KINDS: dict[pa.DataType, Any] = {
    pa.int16(): st.integers(-(2**15), 2**15 - 1),
    pa.int32(): st.integers(-(2**31), 2**31 - 1),
    pa.int64(): st.integers(-(2**63), 2**63 - 1),
    pa.float32(): st.floats(width=32, allow_nan=False),
    pa.float64(): st.floats(allow_nan=False),
    SMALL: st.decimals(-999, 999, places=2),
    LARGE: st.decimals(-(10**9), 10**9, places=2),
    pa.decimal128(9, 4): st.decimals(-99999, 99999, places=4),
    pa.date32(): st.dates(),
    pa.timestamp("us"): st.datetimes(),
    pa.string(): st.text(st.characters(exclude_categories=["Cs"])),
}

FAMILIES = [list(KINDS)[:5], [*list(KINDS)[:3], *list(KINDS)[5:8]], list(KINDS)[8:]]
"""Between a decimal and a floating-point number, the shortest digits count."""


@settings(
    max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(st.data(), st.sampled_from(FAMILIES))
def test_each_value_is_the_one_that_was_given_or_is_refused(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject, kinds: list[pa.DataType]
) -> None:
    place = tmp_path_factory.mktemp("table")
    writing = Writing(place, data.draw(st.sampled_from(["add", "widen"])))
    expected: list[Any] = []
    for kind in kinds:
        values = data.draw(st.lists(st.none() | KINDS[kind], min_size=1, max_size=3))
        table = pa.table({"v": pa.array(values, kind), "n": [len(expected)] * len(values)})
        try:
            passed = writing.staged(table)
        except UsageError:
            continue
        writing.committer.check(passed)
        assert writing.committer.commit(writing.number, passed)
        expected += table.to_pylist()
    writing.committer.close()
    found = library(place).scan().to_arrow().to_pylist()
    assert sorted(map(_cell, found)) == sorted(map(_cell, expected))
    assert len(active_files(place)) == len({row["n"] for row in expected})
    assert (metadata(place) or {})["format-version"] == 2


def _cell(row: dict[str, Any]) -> tuple[int, str]:
    value = row["v"]
    if isinstance(value, int | float | Decimal) and abs(value) != float("inf"):
        value = Decimal(value).normalize()
    elif type(value).__name__ == "date":
        value = f"{value} 00:00:00"
    return row["n"], str(value)
