"""A column of PostgreSQL holds a value as it was, or the value is refused before it is staged."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, date, datetime, time
from decimal import Decimal
from typing import Any

import psycopg
import pyarrow as pa
import pytest
from psycopg import sql

from epochgate.runtime import OperatorContext, SinkStart
from epochgate.spark.postgres_sink import PostgresSink, RowsLeftOut, RowsRefused
from epochgate.spark.values.errors import ColumnNeverFits, RowsUnfit, ValueDoesNotFit

NOON = datetime(2024, 7, 1, 12)
MOMENT = NOON.replace(tzinfo=UTC)
NS = pa.timestamp("ns")
REFUSED: list[tuple[str, pa.DataType, Any]] = [
    ("date", pa.timestamp("us"), NOON),
    ("date", pa.timestamp("us", "UTC"), MOMENT),
    ("date", pa.date64(), None),
    ("date", pa.int64(), 5),
    ("date", pa.date32(), -1_000_000),
    ("date", pa.date32(), 10_000_000),
    ("timestamp", pa.timestamp("us", "UTC"), MOMENT),
    ("timestamp", NS, 1_719_835_200_123_456_789),
    ("timestamp(0)", pa.timestamp("us"), NOON.replace(microsecond=600_000)),
    ("timestamp(3)", pa.timestamp("us"), NOON.replace(microsecond=600_001)),
    ("timestamptz(3)", pa.timestamp("us", "UTC"), MOMENT.replace(microsecond=600_001)),
    ("timestamp", pa.timestamp("us"), -(10**18)),
    ("timestamptz", pa.date32(), date(2024, 7, 1)),
    ("timestamptz", pa.string(), "2024-07-01 12:00:00"),
    ("time", pa.time64("ns"), 123_456_789),
    ("time(0)", pa.time64("us"), time(12, 0, 0, 5)),
    ("time", pa.string(), "noon"),
    ("time", pa.string(), "12:30"),
    ("time", pa.string(), "24:00:00"),
    ("time(1)", pa.string(), "12:30:00.25"),
    ("timetz", pa.time64("us"), time(12)),
    ("numeric(10,2)", pa.decimal128(10, 3), Decimal("1.005")),
    ("numeric(10,2)", pa.float64(), 2.675),
    ("numeric(10,2)", pa.float64(), -0.0),
    ("numeric(10,2)", pa.float64(), 1e300),
    ("numeric(3,2)", pa.int64(), 12),
    ("numeric(4,-2)", pa.int64(), 1200),
    ("numeric", pa.float64(), -0.0),
    ("numeric", pa.string(), "012"),
    ("money", pa.decimal128(10, 3), Decimal("1234.567")),
    ("money", pa.string(), "$1,234.57"),
    ("real", pa.float64(), 0.1234567890123),
    ("real", pa.int32(), 16_777_217),
    ("double precision", pa.int64(), 2**53 + 1),
    ("double precision", pa.decimal128(38, 20), Decimal("0.12345678901234567891")),
    ("integer", pa.int64(), 3_000_000_000),
    ("integer", pa.float64(), 1.5),
    ("integer", pa.float64(), float("nan")),
    ("integer", pa.float64(), -0.0),
    ("integer", pa.bool_(), True),
    ("integer", pa.string(), "7"),
    ("bigint", pa.uint64(), 2**64 - 1),
    ("boolean", pa.int64(), 1),
    ("boolean", pa.string(), "yes"),
    ("text", pa.int64(), 7),
    ("text", pa.bool_(), True),
    ("text", pa.string(), "a\0b"),
    ("text", pa.binary(), b"a"),
    ("varchar(3)", pa.string(), "abc  "),
    ("varchar(3)", pa.string(), "abcd"),
    ("char(3)", pa.string(), "a "),
    ("char(3)", pa.string(), "abcd"),
    ("name", pa.string(), "x" * 64),
    ('"char"', pa.string(), "ab"),
    ("bytea", pa.string(), "a\\\\b"),
    ("day", pa.timestamp("us"), NOON),
    ("code", pa.string(), "abc  "),
    ("mood", pa.int64(), 1),
    ("int[]", pa.int64(), 1),
    ("numeric(10,2)[]", pa.string(), "{1.005}"),
    ("real[]", pa.string(), "{0.1234567890123}"),
    ("interval(0)", pa.string(), "1.6 seconds"),
    ("interval", pa.duration("us"), 5),
    ("uuid", pa.binary(4), b"abcd"),
    ("jsonb", pa.float64(), -0.0),
    ("jsonb", pa.float64(), float("nan")),
    ("jsonb", pa.list_(pa.int64()), [1]),
]
TAKEN: list[tuple[str, pa.DataType, Any, Any]] = [
    ("date", pa.date32(), date(2024, 7, 1), date(2024, 7, 1)),
    ("timestamp", pa.date32(), date(2024, 7, 1), datetime(2024, 7, 1)),
    ("timestamp", NS, 1_719_835_200_123_456_000, NOON.replace(microsecond=123_456)),
    ("timestamp(3)", pa.timestamp("ms"), NOON, NOON),
    ("timestamptz", pa.timestamp("us"), NOON, MOMENT),
    ("timestamptz", pa.timestamp("ns", "Asia/Kolkata"), MOMENT, MOMENT),
    ("time", pa.time32("ms"), time(12, 30), time(12, 30)),
    ("time", pa.string(), "12:30:00.25", time(12, 30, 0, 250_000)),
    ("time(2)", pa.string(), "12:30:00.25", time(12, 30, 0, 250_000)),
    ("numeric(10,2)", pa.float64(), 2.68, Decimal("2.68")),
    ("numeric(10,2)", pa.float64(), float("nan"), Decimal("nan")),
    ("numeric(5,2)", pa.int64(), 12, Decimal("12.00")),
    ("numeric(50,2)", pa.decimal128(10, 3), Decimal("1.500"), Decimal("1.50")),
    ("numeric", pa.float64(), 1e300, Decimal("1e300")),
    ("numeric", pa.uint64(), 2**64 - 1, Decimal(2**64 - 1)),
    ("numeric", pa.decimal256(76, 10), Decimal("1.5"), Decimal("1.5")),
    ("real", pa.float64(), 0.5, 0.5),
    ("real", pa.float16(), 0.5, 0.5),
    ("double precision", pa.float64(), -0.0, -0.0),
    ("double precision", pa.float64(), float("-inf"), float("-inf")),
    ("integer", pa.float64(), 5.0, 5),
    ("integer", pa.decimal128(10, 2), Decimal("5.00"), 5),
    ("bigint", pa.uint64(), 2**63 - 1, 2**63 - 1),
    ("boolean", pa.bool_(), True, True),
    ("text", pa.large_string(), "\\N", "\\N"),
    ("text", pa.dictionary(pa.int8(), pa.string()), "", ""),
    ("varchar(3)", pa.string(), "\u00e4b ", "\u00e4b "),
    ("char(3)", pa.string(), "ab ", "ab "),
    ("bytea", pa.binary(), b"\x00\xff", b"\x00\xff"),
    ("bytea", pa.string(), "\\x00ff", b"\x00\xff"),
    ("day", pa.date32(), date(2024, 7, 1), date(2024, 7, 1)),
    ("code", pa.string(), "abc", "abc"),
    ("mood", pa.string(), "glad", "glad"),
    ("int[]", pa.string(), "{1,2}", [1, 2]),
    ("timestamptz[]", pa.string(), "{2024-07-01 12:00:00}", [MOMENT]),
    ("jsonb", pa.string(), '{"a": 1}', {"a": 1}),
    ("jsonb", pa.int64(), 5, 5),
    ("integer", pa.string(), None, None),
    ("oid", pa.int64(), 2**32 - 1, 2**32 - 1),
]


@pytest.fixture
def made(dsn: str) -> Callable[[str], PostgresSink]:
    """Makes a table of one column, in a database whose clocks go by another zone."""
    with psycopg.connect(dsn, autocommit=True) as connection:
        name = sql.Identifier(connection.info.dbname)
        connection.execute(sql.SQL("alter database {} set timezone to 'Asia/Kolkata'").format(name))
        connection.execute("create domain day as date")
        connection.execute("create domain short as varchar(3)")
        connection.execute("create domain code as short")
        connection.execute("create type mood as enum ('glad', 'sad')")

    def make(kind: str) -> PostgresSink:
        with psycopg.connect(dsn, autocommit=True) as connection:
            connection.execute(f"create table t (c {kind})".encode())
        return PostgresSink(dsn, "t")

    return make


def written(sink: PostgresSink, column: pa.Array) -> Any:
    """Return what is in the table then."""
    committer = sink.create_committer(SinkStart("job", "r1", None))
    try:
        writer = sink.create_writer(OperatorContext("sink", 0, 0, 1, "r1", lambda _: None), None)
        writer.write(pa.RecordBatch.from_arrays([column], ["c"]))
        parts = {0: writer.prepare_commit(1)}
        committer.check(parts)
        committer.commit(1, parts)
    finally:
        committer.close()
    with psycopg.connect(sink.dsn) as connection:
        connection.execute("set timezone = 'UTC'")
        return [row[0] for row in connection.execute("select c from t").fetchall()]


def array_of(kind: pa.DataType, values: list[Any]) -> pa.Array:
    if any(isinstance(value, int) for value in values) and pa.types.is_temporal(kind):
        whole = pa.int32() if kind.bit_width == 32 else pa.int64()
        return pa.array(values, whole).view(kind)
    return pa.array(values, kind)


@pytest.mark.parametrize(("kind", "found", "value"), REFUSED, ids=str)
def test_a_value_that_would_change_is_refused_with_its_column(
    made: Callable[[str], PostgresSink], kind: str, found: pa.DataType, value: Any
) -> None:
    value = 86_400_001 if found == pa.date64() else value
    column = array_of(found, [None, value])
    with pytest.raises(RowsUnfit, match="column 'c' ") as refusal:
        written(made(kind), column)
    if isinstance(refusal.value, ValueDoesNotFit):
        assert refusal.value.row == 1
    else:
        assert isinstance(refusal.value, ColumnNeverFits)


@pytest.mark.parametrize(("kind", "found", "value", "expected"), TAKEN, ids=str)
def test_a_value_that_the_column_holds_arrives(
    made: Callable[[str], PostgresSink], kind: str, found: pa.DataType, value: Any, expected: Any
) -> None:
    column = array_of(found, [value, None])
    arrived = written(made(kind), column)
    assert list(map(told, arrived)) == [told(expected), None]


def told(value: Any) -> Any:
    """A value, of which no two are equal that are not the same."""
    return repr(value) if isinstance(value, float) or value != value else value


def test_a_value_is_told_with_its_type_and_the_way_on(made: Callable[[str], PostgresSink]) -> None:
    values = [Decimal("1.00")] * 500 + [Decimal("1.005")] + [Decimal("2.005")] * 500
    with pytest.raises(ValueDoesNotFit) as refusal:
        written(made("numeric(10,2)"), pa.array(values, pa.decimal128(10, 3)))
    assert refusal.value.row == 500
    for part in ("numeric(10,2)", "1.005", "--schema", "subtask 0"):
        assert part in str(refusal.value)


DROPS = "create trigger keeps_even before insert on t for each row execute function only_even()"
RULE = "create rule keeps_even as on insert to t where new.c % 2 = 1 do instead nothing"
ODD_BEGINNINGS = {
    "a trigger that leaves out": (DROPS, "leaves out 1 of 3 rows", "trigger keeps_even"),
    "a trigger of a partition": (
        "drop table t; create table t (c int) partition by range (c);"
        "create table p partition of t for values from (0) to (10);"
        + DROPS.replace("on t", "on p"),
        "leaves out 1 of 3 rows",
        "trigger keeps_even",
    ),
    "a rule": (RULE, "leaves out 1 of 3 rows", "rule keeps_even"),
    "a trigger that changes": (
        DROPS.replace("only_even", "tenfold"),
        "changes 3 of 3 rows",
        "trigger keeps_even",
    ),
}


def functions(dsn: str) -> None:
    with psycopg.connect(dsn, autocommit=True) as connection:
        for name, body in (
            ("only_even", "if new.c % 2 = 0 then return new; end if; return null;"),
            ("tenfold", "new.c := new.c * 10; return new;"),
            ("same", "return new;"),
        ):
            connection.execute(
                f"create function {name}() returns trigger language plpgsql"
                f" as $$ begin {body} end $$".encode()
            )


@pytest.mark.parametrize("beginning", ODD_BEGINNINGS)
def test_what_leaves_out_or_changes_rows_is_named_before_their_checkpoint_completes(
    made: Callable[[str], PostgresSink], beginning: str
) -> None:
    statement, done, cause = ODD_BEGINNINGS[beginning]
    sink = made("int")
    functions(sink.dsn)
    with psycopg.connect(sink.dsn, autocommit=True) as connection:
        connection.execute(statement.encode())
    committer = sink.create_committer(SinkStart("job", "r1", None))
    writer = sink.create_writer(OperatorContext("sink", 0, 0, 1, "r1", lambda _: None), None)
    writer.write(pa.RecordBatch.from_pydict({"c": pa.array([2, 3, 4], pa.int32())}))
    parts = {0: writer.prepare_commit(1)}
    with pytest.raises(RowsLeftOut, match=rf"{done} \(staged rows\), by {cause}"):
        committer.check(parts)
    if "changes" not in beginning:
        with pytest.raises(RowsLeftOut, match=rf"{done} \(checkpoint 1\), by {cause}"):
            committer.commit(1, parts)
    with psycopg.connect(sink.dsn, autocommit=True) as connection:
        connection.execute("drop rule if exists keeps_even on t")
        table = "p" if "partition" in beginning else "t"
        connection.execute(f"drop trigger if exists keeps_even on {table}".encode())
    committer.close()
    again = sink.create_committer(SinkStart("job", "r2", None))
    again.check(parts)
    assert again.commit(1, parts)
    again.close()
    with psycopg.connect(sink.dsn) as connection:
        assert connection.execute("select c from t order by c").fetchall() == [(2,), (3,), (4,)]


def test_a_trigger_that_changes_nothing_is_no_hindrance(
    made: Callable[[str], PostgresSink],
) -> None:
    sink = made("int")
    functions(sink.dsn)
    with psycopg.connect(sink.dsn, autocommit=True) as connection:
        connection.execute(DROPS.replace("only_even", "same").encode())
    assert written(sink, pa.array([2, 3])) == [2, 3]


def test_a_generated_column_is_refused_at_once(made: Callable[[str], PostgresSink]) -> None:
    sink = made("int generated always as (5) stored")
    with pytest.raises(RowsRefused, match="generated column"):
        written(sink, pa.array([2]))
