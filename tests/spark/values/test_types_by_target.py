"""The tables of types by target in the guide, cell by cell: each is written, and read by others."""

from __future__ import annotations

import datetime as dt
import itertools
import uuid
from collections import Counter
from collections.abc import Callable
from itertools import repeat
from pathlib import Path
from typing import Any

import psycopg
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from epochgate.runtime import OperatorContext, SinkStart
from epochgate.spark.postgres_sink import PostgresSink, RowsLeftOut
from epochgate.spark.postgres_sink.database import Relation, types_of
from epochgate.spark.streaming.identity import run_id
from epochgate.spark.streaming.targets.delta import DeltaBatches
from epochgate.spark.streaming.targets.iceberg import IcebergBatches
from epochgate.spark.streaming.targets.parquet import ParquetBatches
from epochgate.spark.streaming.targets.postgres import PostgresBatches
from epochgate.spark.streaming.targets.target import BatchTarget, Staged
from epochgate.spark.values.errors import ColumnNeverFits, RowsUnfit, ValueDoesNotFit
from epochgate.spark.values.fitting import is_of, is_text
from epochgate.spark.values.formats import FORMATS
from epochgate.spark.values.relations import ColumnType, sent, verdict
from tests.spark.ingest.simulated import SimulatedIngest, make_older
from tests.spark.tables import iceberg_replay
from tests.spark.values import page
from tests.spark.values.cells import Cell, of_scalar
from tests.spark.values.samples import RELATIONS, VALUES, array_of
from tests.spark.values.targets import Delta, Iceberg, Objects, Parquet, Target, as_given

TARGETS: dict[str, tuple[Callable[[Path], Target], ...]] = {
    "Parquet": (Parquet, Objects),
    "Delta": (Delta,),
    "Iceberg": (Iceberg,),
}
CELLS = [
    pytest.param(make, name, id=make.__name__)
    for name, makers in TARGETS.items()
    for make in makers
]


def test_the_guide_has_the_tables_of_the_rules() -> None:
    text = page.PAGE.read_text(encoding="utf-8")
    assert page.page(text) == text, "python -m tests.spark.values.page --write"


def is_taken(name: str, kind: pa.DataType, value: Any = None) -> bool:
    """Return whether the table says that a value arrives."""
    told = page.cell(FORMATS[name], kind)
    if not told.endswith("if it fits"):
        return told != "refused"
    day_ms, microsecond_ns = 86_400_000, 1000
    return value is not None and value % (day_ms if kind == pa.date64() else microsecond_ns) == 0


def ingested(target: Target, table: pa.Table) -> tuple[str, str | None]:
    """The state in which an ingestion ends whose transform makes this table, and the reason."""
    folder = target.place / "in"
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "one.parquet"
    pq.write_table(pa.table({"id": [1]}), path)
    make_older(path)
    simulated: SimulatedIngest = target.start("one", transform=lambda _: table)
    simulated.run()
    result = simulated.leave()
    assert result.report.regional_restarts + result.report.global_restarts == 0, result.reason
    return result.state, result.reason


def wide(name: str) -> pa.Table:
    """A column for each type, with the values that arrive; the first value again and again."""
    columns = {}
    for number, kind in enumerate(VALUES):
        values = [value for value in VALUES[kind] if is_taken(name, kind, value)]
        if is_taken(name, kind) or values:
            array = array_of(kind, *values)
            one = [array.slice(at % len(array), 1) for at in range(10)]
            columns[f"c{number}"] = pa.concat_arrays(one)
    return pa.table(columns)


@pytest.mark.parametrize(("make", "name"), CELLS)
def test_what_the_table_says_arrives_does(
    tmp_path: Path, make: Callable[[Path], Target], name: str
) -> None:
    target = make(tmp_path)
    # A transform is refused a column without a type.
    table = wide(name).drop_columns([f"c{list(VALUES).index(pa.null())}"])
    assert table.num_columns > 30
    assert ingested(target, table) == ("finished", None)
    compare(target.rows(), table)


def compare(found: Counter[Any], table: pa.Table) -> None:
    expected: Counter[Any] = Counter()
    for number in range(table.num_rows):
        cells = ((name, of_scalar(table[name][number])) for name in table.column_names)
        expected[tuple(sorted((name, cell) for name, cell in cells if cell is not None))] += 1
    assert found == expected


REFUSED = [
    pytest.param(make, name, kind, id=f"{make.__name__}-{page.name(kind)}")
    for name, makers in TARGETS.items()
    for make in makers
    for kind in VALUES
    if not is_taken(name, kind)
]


@pytest.mark.parametrize(("make", "name", "kind"), REFUSED)
def test_what_the_table_says_is_refused_is_at_once(
    tmp_path: Path, make: Callable[[Path], Target], name: str, kind: pa.DataType
) -> None:
    table = pa.table({"odd": array_of(kind)})
    state, reason = ingested(make(tmp_path), table)
    assert state == "failed"
    assert "'odd'" in str(reason)
    assert "one.parquet" in str(reason)
    if page.cell(FORMATS[name], kind) == "refused":
        with pytest.raises(RowsUnfit, match="'odd'"):
            FORMATS[name].accepts(table.schema)


TRIES = itertools.count()


def committed(target: BatchTarget, table: pa.Table) -> None:
    """Commit a batch of this table as a streaming query does, in a try of its own."""
    run, wishes, agreed = run_id("5f0c12", 0, str(next(TRIES))), list[Any](), target.prepare()
    writer = target.sink.create_writer(OperatorContext("sink", 0, 7, 1, run, wishes.append), None)
    (batch,) = table.combine_chunks().to_batches()
    if not writer.may_write(batch):
        writer.handle_event(["schema", agreed.schema or wishes[-1][1], *agreed.told])
    writer.write(batch)
    target.apply(Staged("5f0c12", 0, run, {0: writer.prepare_commit(1)}), 0)


def streamed(name: str, place: Path) -> tuple[BatchTarget, Target]:
    if name == "Parquet":
        return ParquetBatches(str(place / "out")), Parquet(place)
    if name == "Delta":
        return DeltaBatches(str(place / "out")), Delta(place)
    catalog = iceberg_replay.catalog(place)
    return IcebergBatches("lake", "sales.events", catalog), Iceberg(place)


@pytest.mark.parametrize("name", TARGETS)
def test_the_sinks_of_streams_have_the_same_table(tmp_path: Path, name: str) -> None:
    table = wide(name)
    batches, target = streamed(name, tmp_path)
    committed(batches, table)
    compare(target.rows(), table)
    (tmp_path / "other").mkdir()
    for kind in VALUES:
        if page.cell(FORMATS[name], kind) == "refused":
            with pytest.raises(RowsUnfit, match="'odd'"):
                committed(streamed(name, tmp_path / "other")[0], pa.table({"odd": array_of(kind)}))


def test_the_sink_of_streams_into_postgresql_has_its_rules(dsn: str) -> None:
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute("create table t (c numeric(10, 2))")
        connection.execute(
            "create function nothing() returns trigger language plpgsql"
            " as $$ begin return null; end $$"
        )
    batches = PostgresBatches(dsn, "t")
    with pytest.raises(ValueDoesNotFit, match=r"column 'c' .*numeric\(10,2\).* 2\.675"):
        committed(batches, pa.table({"c": [1.5, 2.675]}))
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute(
            "create trigger keeps before insert on t for each row execute function nothing()"
        )
    with pytest.raises(RowsLeftOut, match=r"leaves out 2 of 2 rows .*by trigger keeps"):
        committed(batches, pa.table({"c": [1.5, 2.5]}))
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute("drop trigger keeps on t")
    committed(batches, pa.table({"c": [1.5, 2.5]}))
    with psycopg.connect(dsn) as connection:
        assert connection.execute("select count(*) from t").fetchone() == (2,)


@pytest.mark.parametrize("kind", RELATIONS, ids=lambda kind: kind.shown)
def test_a_column_of_postgresql_takes_what_the_table_says(dsn: str, kind: ColumnType) -> None:
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute(f"create table t (n int, c {kind.shown})".encode())
    assert types_of(dsn, Relation("t"))["c"] == kind
    taken: list[tuple[pa.DataType, pa.Array]] = []
    for found in VALUES:
        array = texts_of(kind) if is_texts(found) and kind.is_text_alone else array_of(found)
        says = verdict(found, kind)
        if pa.types.is_null(found):
            continue
        arriving = [
            one for one in map(array.slice, range(len(array)), repeat(1)) if fits(one, kind)
        ]
        assert says != "exact" or len(arriving) == len(array), found
        if says == "refused":
            assert not arriving, found
            with pytest.raises(ColumnNeverFits):
                sent(array, "c", kind, "")
        taken += [(found, one) for one in arriving]
    sink = PostgresSink(dsn, "t")
    committer = sink.create_committer(SinkStart("job", "r1", None))
    writer = sink.create_writer(OperatorContext("sink", 0, 0, 1, "r1", lambda _: None), None)
    for number, (_, one) in enumerate(taken):
        writer.write(pa.RecordBatch.from_arrays([pa.array([number]), one], ["n", "c"]))
    committer.commit(1, {0: writer.prepare_commit(1)})
    committer.close()
    with psycopg.connect(dsn) as connection:
        connection.execute("set timezone = 'UTC'")
        rows = (
            connection.cursor(binary=True).execute("select c, c::text from t order by n").fetchall()
        )
    assert len(rows) == len(taken)
    for (value, text), (found, one) in zip(rows, taken, strict=True):
        given = one[0].as_py() if is_texts(found) else None
        if given is not None and kind.is_text_alone:
            assert text == given
        elif given is not None and kind.base in ("time", "bytea"):
            assert value == (READ[kind.base])(given)
        else:
            assert told_alike(found, kind, value) == of_scalar(one[0]), (found, value)


READ: dict[str, Callable[[str], Any]] = {
    "time": dt.time.fromisoformat,
    "bytea": lambda text: bytes.fromhex(text[2:]),
}
NOTATION = {
    "uuid": "00010203-0405-0607-0809-0a0b0c0d0e0f",
    "jsonb": '{"a": [1, null]}',
    "integer[]": "{1,2}",
    "interval": "1 day",
}


def texts_of(kind: ColumnType) -> pa.Array:
    """Text in the notation of a type that Arrow does not have."""
    return pa.array([NOTATION.get(kind.shown, "{1.50}")])


def is_texts(found: pa.DataType) -> bool:
    return is_of(is_text, found.value_type if pa.types.is_dictionary(found) else found)


def fits(one: pa.Array, kind: ColumnType) -> bool:
    try:
        sent(one, "c", kind, "")
    except (ValueDoesNotFit, ColumnNeverFits):
        return False
    return True


def told_alike(found: pa.DataType, kind: ColumnType, value: Any) -> Cell:
    if isinstance(value, uuid.UUID):
        value = value.bytes
    return as_given(found, kind.shown, value)
