"""The columns of a PostgreSQL table grow with the commit that needs them: until then the table is
as it was, a commit that is repeated changes nothing, and every value is the one that was read.
"""

from __future__ import annotations

import contextlib
import random
from decimal import Decimal
from pathlib import Path
from typing import Any, Literal, get_args

import psycopg
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from epochgate.errors import UsageError
from epochgate.runtime import OperatorContext, SinkStart
from epochgate.runtime.testing.faulty_filesystem import Fault, SimulatedCrash
from epochgate.spark.files.evolution import EvolutionRefused, SchemaEvolution
from epochgate.spark.parquet_sink.gathered import CommitIn
from epochgate.spark.postgres_sink import PostgresCommitter, PostgresSink, RowsRefused
from epochgate.spark.postgres_sink.growing import changes, type_of
from epochgate.spark.tables.errors import TableUnusable
from epochgate.spark.values.errors import TypeNotInTable, ValueDoesNotFit
from epochgate.spark.values.relations import ColumnType, verdict
from tests.spark.ingest.simulated import SimulatedIngest, options_for, random_kills
from tests.spark.ingest.test_evolution import write_growing
from tests.spark.ingest.test_simulated import When
from tests.spark.tables.test_postgres import Fate, query

NARROW = "create table events (x integer, price real, amount numeric(5, 2))"
OF_THE_TABLE = """
    select attname, format_type(atttypid, atttypmod) from pg_attribute
    where attrelid = 'events'::regclass and attnum > 0 and not attisdropped order by attnum"""


def columns(dsn: str, table: str = "events") -> dict[str, str]:
    return dict(query(dsn, OF_THE_TABLE.replace("'events'", f"'{table}'")))


def sink_of(dsn: str, evolution: SchemaEvolution = "widen", **changes: Any) -> PostgresSink:
    return PostgresSink(dsn, "events", evolution=evolution, **changes)


def claimed(sink: PostgresSink, run: str = "r1", restored: int | None = None) -> PostgresCommitter:
    return sink.create_committer(SinkStart("job", run, restored))


def staged(sink: PostgresSink, *tables: Any, run: str = "r1", number: int = 0) -> dict[int, Any]:
    """Return what a task hands over that has these batches."""
    context = OperatorContext("sink", 0, number, 1, run, lambda event: None)
    with contextlib.closing(sink.create_writer(context, None)) as writer:
        for table in tables:
            for batch in pa.table(table).to_batches():
                writer.write(batch)
        return {0: writer.prepare_commit(1)}


@pytest.fixture
def table(dsn: str) -> str:
    query(dsn, NARROW)
    return dsn


def test_the_commit_that_moves_the_rows_gives_the_table_their_columns(table: str) -> None:
    sink = sink_of(table)
    committer = claimed(sink)
    narrow = staged(sink, {"x": pa.array([1], pa.int32()), "price": pa.array([0.5], pa.float32())})
    wide = staged(
        sink,
        {"x": [2**40], "price": [0.1], "amount": [Decimal("12345.678")], "name": ["n"]},
        number=1,
    )
    before = columns(table)
    committer.check(wide)
    assert columns(table) == before
    assert committer.commit(1, narrow)
    assert columns(table)["x"] == "bigint", "what is staged has the type by now"
    assert "name" not in columns(table)
    assert committer.commit(2, wide)
    assert columns(table) == {
        "x": "bigint",
        "price": "double precision",
        "amount": "numeric(8,3)",
        "name": "text",
    }
    found = query(table, "select * from events order by x")
    assert found == [(1, 0.5, None, None), (2**40, 0.1, Decimal("12345.678"), "n")]
    after = columns(table)
    assert not committer.commit(2, wide)
    assert (columns(table), len(query(table, "select 1 from events"))) == (after, 2)
    committer.close()


@pytest.mark.parametrize("commit_in", get_args(CommitIn))
@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_rows_and_columns_arrive_once_while_processes_die(
    tmp_path: Path, dsn: str, kind: str, commit_in: CommitIn
) -> None:
    expected = write_growing(tmp_path, kind)
    query(dsn, "create table events (x integer)")
    options = options_for(
        tmp_path,
        target=f"postgres:{dsn}#events",
        checkpoint_directory=str(tmp_path / "checkpoints"),
        schema_evolution="widen",
        commit_in=commit_in,
    )
    chance = random.Random(kind + commit_in)
    whens: tuple[When, ...] = get_args(When)
    faults = [Fault(chance.randrange(60), when=chance.choice(whens)) for _ in range(4)]
    simulated = SimulatedIngest(options, faults)
    simulated.run(random_kills(simulated, 3, share=0.03))
    result = simulated.leave()
    assert result.state == "finished", result.reason
    assert query(dsn, "select x, name, price from events order by x") == expected
    assert columns(dsn)["x"] == "bigint"


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("at", range(6))
def test_a_driver_may_die_at_each_transaction(table: str, at: int, when: str) -> None:
    fate = Fate(at, when)
    sink = sink_of(table, open_connection=fate.connect)
    rows = [{"x": [1]}, {"x": [2], "y": ["two"]}, {"x": [2**40], "y": [None], "z": [0.5]}]
    restored, passed = 0, dict[int, Any]()
    for start in range(1, 5):
        try:
            committer = claimed(sink, f"r{start}", restored or None)
            committer.open(f"r{start}", {key: passed[key] for key in passed})
            for number, batch in enumerate(rows, 1):
                if number not in passed:
                    passed[number] = staged(sink, batch, run=f"r{start}", number=number)
                    committer.check(passed[number])
                restored = max(restored, number)
                committer.commit(number, passed[number])
            break
        except SimulatedCrash:
            passed = {key: value for key, value in passed.items() if key <= restored}
    committer.close()
    found = query(table, "select x, y, z from events order by x")
    assert found == [(1, None, None), (2, "two", None), (2**40, None, 0.5)]


def test_what_is_staged_is_committed_by_a_start_that_lets_columns_grow(table: str) -> None:
    sink = sink_of(table)
    claimed(sink).close()
    passed = staged(sink, {"x": [2**40], "name": ["n"]})
    for other in (sink_of(table, "none"), sink_of(table, "add")):
        with pytest.raises(TableUnusable, match="give the --schema-evolution"):
            claimed(other, "r2", 1)
    committer = claimed(sink, "r3", 1)
    assert committer.commit(1, passed)
    assert query(table, "select x, name from events") == [(2**40, "n")]
    committer.close()


def test_two_subtasks_agree_by_the_staging_table(table: str) -> None:
    sink = sink_of(table)
    committer = claimed(sink)
    context = [OperatorContext("sink", n, 0, 1, "r1", lambda event: None) for n in range(2)]
    one, other = (sink.create_writer(each, None) for each in context)
    one.write(pa.RecordBatch.from_pydict({"new": pa.array([1], pa.int32())}))
    other.write(pa.RecordBatch.from_pydict({"new": [2**40], "more": [True]}))
    one.write(pa.RecordBatch.from_pydict({"new": pa.array([3], pa.int32())}))
    with pytest.raises(EvolutionRefused, match=r"new: the target has .*, found STRING"):
        one.write(pa.RecordBatch.from_pydict({"new": ["text"]}))
    passed = {0: one.prepare_commit(1), 1: other.prepare_commit(1)}
    committer.check(passed)
    assert committer.commit(1, passed)
    assert query(table, "select new, more from events order by 1") == [
        (1, None),
        (3, None),
        (2**40, True),
    ]
    committer.close()


def test_a_column_keeps_its_type_and_takes_what_fits_where_types_may_not_grow(table: str) -> None:
    sink = sink_of(table, "add")
    committer = claimed(sink)
    assert committer.commit(1, staged(sink, {"x": [1], "note": ["a"]}))
    assert columns(table)["x"] == "integer"
    with pytest.raises(ValueDoesNotFit, match=str(2**40)):
        staged(sink, {"x": [2**40]})
    with pytest.raises(EvolutionRefused, match=r"(?s)x: .*found STRING.*add takes new columns"):
        staged(sink, {"x": ["one"]})
    with pytest.raises(EvolutionRefused, match=r"X: the target has x"):
        staged(sink, {"X": [1]})
    with pytest.raises(TypeNotInTable, match=r"PostgreSQL has no type for column 'tags'"):
        staged(sink, {"tags": [[1]]})
    committer.close()


def test_a_column_without_a_value_waits_for_one(table: str) -> None:
    sink = sink_of(table, "add")
    committer = claimed(sink)
    passed = staged(sink, {"x": [1], "late": pa.nulls(1)}, {"x": [2], "late": [0.5]})
    assert committer.commit(1, passed)
    assert query(table, "select x, late from events order by x") == [(1, None), (2, 0.5)]
    committer.close()


def test_a_table_that_the_user_may_not_change_is_refused_at_the_start(
    table: str,
) -> None:
    query(table, "drop role if exists loader; create role loader login")
    query(table, "grant all on events to loader; grant all on schema public to loader")
    loader = psycopg.conninfo.make_conninfo(table, user="loader")
    try:
        with pytest.raises(TableUnusable, match=r"its owner '.*' alone.*Connect as the owner"):
            claimed(sink_of(loader))
    finally:
        query(table, "drop owned by loader; drop role loader")


def test_a_change_that_the_database_refuses_is_told_before_the_checkpoint_completes(
    table: str,
) -> None:
    query(table, "create view seen as select x from events")
    sink = sink_of(table)
    committer = claimed(sink)
    passed = staged(sink, {"x": [2**40]})
    with pytest.raises(RowsRefused, match="used by a view"):
        committer.check(passed)
    assert columns(table)["x"] == "integer"
    committer.close()


def test_names_and_partitions_may_be_odd(dsn: str) -> None:
    query(dsn, "create table events (k text, x integer) partition by list (k)")
    query(dsn, "create table events_1 partition of events default")
    sink = sink_of(dsn)
    committer = claimed(sink)
    assert committer.commit(1, staged(sink, {"k": ["a"], "x": [2**40], 'a "%s" {b}': ["odd"]}))
    assert query(dsn, "select * from events") == [("a", 2**40, "odd")]
    committer.close()


def test_a_column_of_a_domain_stays_one(dsn: str) -> None:
    query(dsn, "create domain small as integer; create table events (x small)")
    try:
        sink = sink_of(dsn)
        committer = claimed(sink)
        assert committer.commit(1, staged(sink, {"x": [1]}))
        with pytest.raises(ValueDoesNotFit):
            staged(sink, {"x": [2**40]})
        committer.close()
        assert columns(dsn) == {"x": "small"}
    finally:
        query(dsn, "drop table events, epochgate_staged_events; drop domain small")


KINDS: dict[pa.DataType, Any] = {
    pa.int8(): st.integers(-128, 127),
    pa.uint16(): st.integers(0, 2**16 - 1),
    pa.int32(): st.integers(-(2**31), 2**31 - 1),
    pa.uint32(): st.integers(0, 2**32 - 1),
    pa.int64(): st.integers(-(2**63), 2**63 - 1),
    pa.float32(): st.floats(width=32, allow_nan=False),
    pa.float64(): st.floats(allow_nan=False),
    pa.decimal128(5, 2): st.decimals(-999, 999, places=2),
    pa.decimal128(9, 4): st.decimals(-99999, 99999, places=4),
    pa.string(): st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0")),
}
Mode = Literal["add", "widen"]


@st.composite
def batches(draw: Any) -> tuple[Mode, list[pa.Table]]:
    """Tables of one column, each of which has a type of its own."""
    kinds = draw(st.lists(st.sampled_from(list(KINDS)), min_size=1, max_size=4))
    made = [
        pa.table({"v": pa.array(draw(st.lists(st.none() | KINDS[one], max_size=3)), one)})
        for one in kinds
    ]
    return draw(st.sampled_from(get_args(Mode))), made


@settings(
    max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(batches(), st.sampled_from(["integer", "real", "numeric(5, 2)", "text", ""]))
def test_each_value_is_the_one_that_was_given_or_is_refused(
    dsn: str, given_: tuple[Mode, list[pa.Table]], first: str
) -> None:
    mode, tables = given_
    query(dsn, "drop table if exists events, epochgate_staged_events, epochgate_ledger")
    query(dsn, f"create table events (n integer{', v ' + first if first else ''})")
    sink = sink_of(dsn, mode)
    committer = claimed(sink)
    expected: list[Any] = []
    for number, one in enumerate(tables, 1):
        rows = range(len(expected), len(expected) + one.num_rows)
        numbered = one.append_column("n", pa.array(rows, pa.int32()))
        try:
            passed = staged(sink, numbered, number=number)
        except UsageError:
            continue
        committer.check(passed)
        assert committer.commit(number, passed)
        expected += [(value, one["v"].type) for value in one["v"].to_pylist()]
    committer.close()
    if "v" not in columns(dsn):
        assert all(value is None for value, _ in expected)
        return
    with psycopg.connect(dsn) as connection:
        cursor = connection.cursor(
            binary=True
        )  # of a `real`, text has the digits of another double
        found = cursor.execute("select v from events order by n").fetchall()
    held = pa.float32() if columns(dsn)["v"] == "real" else pa.float64()
    assert len(found) == len(expected)
    for (one,), (value, kind) in zip(found, expected, strict=True):
        assert is_same(value, kind, one, held), (value, kind, one, columns(dsn))


def is_same(value: Any, kind: pa.DataType, found: Any, held: pa.DataType) -> bool:
    """Return whether it is the same text, or the number itself, or that of the same digits."""
    if value is None or isinstance(value, str):
        return bool(found == value)
    if Decimal(value) == Decimal(found):
        return bool(value) or Decimal(value).is_signed() == Decimal(found).is_signed()
    return _digits(value, kind) == _digits(found, held)


def _digits(number: Any, kind: pa.DataType) -> Decimal:
    if isinstance(number, float):
        return Decimal(pa.array([number], kind).cast(pa.string())[0].as_py())
    return Decimal(number)


def test_a_new_column_holds_every_value_of_its_type() -> None:
    for kind in KINDS:
        shown = type_of(kind)
        assert shown is not None
        base, _, digits = shown.partition("(")
        modifier = -1
        if digits:
            precision, scale = map(int, digits.rstrip(")").split(","))
            modifier = (precision << 16) + scale + 4
        names = {"bigint": "int8", "integer": "int4", "smallint": "int2", "real": "float4"}
        names["double precision"] = "float8"
        column = ColumnType(shown, names.get(base, base), modifier)
        assert changes({"v": column}, pa.schema({"v": kind}), "widen") == {}
        assert verdict(kind, column) == "exact", kind
