"""A commit that PostgreSQL could never make is found before its checkpoint completes, names may be
any, and no message shows a secret.
"""

from __future__ import annotations

import contextlib
import traceback
from typing import Any

import pytest

from epochgate.errors import UsageError
from epochgate.runtime.objects.client import open_url
from epochgate.spark.counting_sink import CommittableUnreadable
from epochgate.spark.ingest import IngestOptions
from epochgate.spark.ingest.targets import sink_of
from epochgate.spark.postgres_sink import (
    ColumnReserved,
    DatabaseUnreachable,
    DsnUnreadable,
    PostgresCommitter,
    PostgresSink,
    RowsRefused,
    TableUnusable,
)
from epochgate.spark.streaming.targets.postgres import PostgresBatches, PostgresNotes
from tests.spark.tables.test_postgres import claimed, committer, query, sink, staged

__all__ = ["committer", "sink"]


@pytest.mark.parametrize(
    ("table", "schema", "name"),
    [
        ("events", "public", "events"),
        ("odd%s.t%2", "odd%s", "t%2"),
        ('a"b.t', 'a"b', "t"),
        ('"a.b"."c.""d"', "a.b", 'c."d'),
        ('s."t.u"', "s", "t.u"),
        ("{table}", "public", "{table}"),
        ("tïme", "public", "tïme"),
    ],
)
def test_tables_and_columns_have_any_name(dsn: str, table: str, schema: str, name: str) -> None:
    columns = ["pct%", "%s", "{names}", 'q"', "a.b", "x"]
    written = ", ".join(f'"{column.replace(chr(34), chr(34) * 2)}" int' for column in columns)
    place = ".".join('"' + part.replace('"', '""') + '"' for part in (schema, name))
    query(dsn, f'create schema if not exists "{schema.replace(chr(34), chr(34) * 2)}"')
    query(dsn, f"create table {place} ({written})")
    sink = PostgresSink(dsn, table)
    with contextlib.closing(claimed(sink, "r1")) as committer:
        handed_over = staged(sink, "r1", {column: [1, 2] for column in columns})
        committer.check({0: handed_over})
        assert committer.commit(1, {0: handed_over})
        assert committer.target.last_committed() == 1
    with contextlib.closing(claimed(sink, "r2", 1)) as committer:
        committer.open("r2", {})
    assert query(dsn, f"select * from {place}") == [(1,) * 6, (2,) * 6]
    notes = PostgresNotes(dsn, table)
    notes.exchange(notes.read(), {})
    assert notes.read().version == 1


@pytest.mark.parametrize("column", ["epochgate_checkpoint", "epochgate_part"])
def test_columns_of_the_sink_itself_are_refused_before_they_are_staged(
    dsn: str, column: str
) -> None:
    query(dsn, "create table events (x bigint, epochgate_checkpoint bigint)")
    sink = PostgresSink(dsn, "events")
    with (
        contextlib.closing(claimed(sink, "r1")),
        pytest.raises(ColumnReserved, match=f"column '{column}'"),
    ):
        staged(sink, "r1", {"x": [1], column: [1]})
    query(dsn, "create table parts (x bigint, epochgate_part text)")
    with pytest.raises(TableUnusable, match="one more, epochgate_part"):
        claimed(PostgresSink(dsn, "parts"), "r1")


def test_what_the_database_could_never_move_is_refused_before_its_checkpoint_is_stored(
    dsn: str, sink: PostgresSink, committer: PostgresCommitter
) -> None:
    handed_over = staged(sink, "r1", {"x": [1], "name": ["one"]})
    committer.check({0: handed_over})
    committer.commit(1, {0: handed_over})
    query(dsn, "alter table events rename column name to title")
    with (
        contextlib.closing(claimed(sink, "r2", 1)) as later,
        pytest.raises(RowsRefused, match='column "name" of relation "events" does not exist'),
    ):
        later.check({0: handed_over})
    value: Any
    for value in (7, ["part", "many", ["x"]], ["part", 1], ["part", 1, "xy"], {}):
        with pytest.raises(CommittableUnreadable, match="subtask 3 handed over"):
            committer.check({3: [value]})


def test_a_column_that_the_table_numbers_itself_takes_the_values_of_the_rows(dsn: str) -> None:
    query(dsn, "create table events (x bigint generated always as identity, name text)")
    sink = PostgresSink(dsn, "events")
    with contextlib.closing(claimed(sink, "r1")) as committer:
        handed_over = staged(sink, "r1", {"x": [7], "name": ["seven"]})
        committer.check({0: handed_over})
        committer.commit(1, {0: handed_over})
    assert query(dsn, "select * from events") == [(7, "seven")]


@pytest.mark.parametrize(
    "dsn",
    [
        "postgresql://u:100%HuSh@localhost/db",
        "host=localhost password=se HuSh",
        "postgresql://u:p@HuSh@localhost/db",
        "postgresql://u:1/HuSh@localhost/db",
        "postgresql://u:HuSh/HuSh@localhost/db",
        "password='HuSh",
    ],
)
def test_a_connection_string_that_cannot_be_read_is_not_shown(dsn: str) -> None:
    options = IngestOptions("in", f"postgres:{dsn}#t", checkpoint_directory="checkpoints")
    for call in (
        lambda: claimed(PostgresSink(dsn, "t"), "r1"),
        lambda: staged(PostgresSink(dsn, "t"), "r1", {"x": [1]}),
        lambda: options.job_id,
        lambda: PostgresBatches(dsn, "t").shown,
    ):
        with pytest.raises(DsnUnreadable, match="%25") as refused:
            call()
        assert "HuSh" not in "".join(traceback.format_exception(refused.value, chain=True))


def test_no_secret_of_a_connection_string_is_shown() -> None:
    secrets = "password=S3cret sslpassword=S3cret"
    with pytest.raises(DatabaseUnreachable, match="host=/nowhere") as refused:
        claimed(PostgresSink(f"host=/nowhere {secrets}", "t"), "r1")
    assert "S3cret" not in str(refused.value)
    with pytest.raises(UsageError) as misused:
        IngestOptions("in", f"postgress:{secrets}#t")
    assert "S3cret" not in str(misused.value)
    options = IngestOptions(
        "in", f"postgres:{secrets}#t", partition_by=("x",), checkpoint_directory="checkpoints"
    )
    with pytest.raises(UsageError) as misused:
        sink_of(options, None, open_url)
    assert "S3cret" not in str(misused.value)
