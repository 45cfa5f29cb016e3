"""Rows are in a table of PostgreSQL once, whatever dies; its ledger says who may commit what."""

from __future__ import annotations

import contextlib
import random
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any, get_args

import psycopg
import pyarrow as pa
import pytest

from epochgate.errors import UsageError
from epochgate.runtime import OperatorContext, RetryLater, SinkStart
from epochgate.runtime.testing.faulty_filesystem import SimulatedCrash
from epochgate.spark.extras import ExtraMissing
from epochgate.spark.parquet_sink.gathered import CommitIn
from epochgate.spark.postgres_sink import (
    DatabaseUnreachable,
    PostgresCommitter,
    PostgresSink,
    RowsMissing,
    RowsRefused,
    TableAhead,
    TableBehind,
    TableTakenOver,
    TableUnusable,
)
from epochgate.spark.values.errors import ColumnNeverFits
from tests.runtime.counting import DISTURBANCES, assert_disturbed
from tests.spark.tables.counting_job import TableJob
from tests.spark.tables.postgres_server import Server

TABLE = "create table events (x bigint primary key, name text, seen timestamptz default now())"
LOOSE = "create table events (x bigint check (x < 1000), name text not null default 'none')"


def query(dsn: str, text: str) -> list[Any]:
    """Return what another connection sees."""
    with psycopg.connect(dsn, autocommit=True) as connection:
        cursor = connection.execute(text.encode())
        return cursor.fetchall() if cursor.description else []


def rows(dsn: str, column: str = "x") -> list[Any]:
    return [row[0] for row in query(dsn, f"select {column} from events order by 1")]


def attempt(sink: PostgresSink, run: str, values: list[Any], number: int = 0) -> list[Any]:
    """Return what a writer of one attempt hands over."""
    return staged(sink, run, {"x": values}, number)


def staged(
    sink: PostgresSink, run: str, columns: dict[str, list[Any]], number: int = 0
) -> list[Any]:
    """The same, of rows with these columns."""
    context = OperatorContext("sink", 0, number, 1, run, lambda event: None)
    with contextlib.closing(sink.create_writer(context, None)) as writer:
        writer.write(pa.RecordBatch.from_pydict(columns))
        return writer.prepare_commit(1)


WHERE = pytest.mark.parametrize("commit_in", get_args(CommitIn))
OF_THE_SINK = "epochgate_ledger, epochgate_moved, epochgate_staged_events"


@pytest.fixture
def sink(dsn: str) -> PostgresSink:
    query(dsn, LOOSE)
    return PostgresSink(dsn, "events")


def claimed(sink: PostgresSink, run: str, restored: int | None = None) -> PostgresCommitter:
    return sink.create_committer(SinkStart("job", run, restored))


@pytest.fixture
def committer(sink: PostgresSink) -> Iterator[PostgresCommitter]:
    committer = claimed(sink, "r1")
    yield committer
    committer.close()


@dataclass
class Fate:
    """Crashes the driver at one of its transactions, over all starts."""

    at: int = -1
    when: str = "before"
    commits: int = 0
    between: list[Any] = field(default_factory=list)

    def connect(self, dsn: str) -> psycopg.Connection[Any]:
        connection = FatefulConnection.connect(dsn)
        connection.fate = self
        return connection


class FatefulConnection(psycopg.Connection[Any]):
    fate: Fate

    def commit(self) -> None:
        number, self.fate.commits = self.fate.commits, self.fate.commits + 1
        if number == self.fate.at and self.fate.when == "before":
            self.close()
            raise SimulatedCrash("before the transaction's end")
        super().commit()
        if number == self.fate.at:
            self.close()
            raise SimulatedCrash("after the transaction's end, before its answer")


@WHERE
@pytest.mark.parametrize("disturb", DISTURBANCES)
def test_every_row_arrives_once(dsn: str, disturb: str, commit_in: CommitIn) -> None:
    query(dsn, TABLE)
    run = TableJob(PostgresSink(dsn, "events", rows_per_statement=2, commit_in=commit_in))
    run.disturbed(disturb)
    run.run()
    assert run.job.result.state == "finished", run.job.result.reason
    assert rows(dsn) == list(range(20))
    assert query(dsn, "select count(*) from epochgate_staged_events where x < 0") == [(0,)]
    assert_disturbed(run.job, disturb)


@WHERE
def test_rows_arrive_once_wherever_a_committer_dies_around_a_transaction(
    dsn: str, commit_in: CommitIn
) -> None:
    query(dsn, TABLE)
    undisturbed = Fate()
    opening = undisturbed.connect
    TableJob(PostgresSink(dsn, "events", open_connection=opening, commit_in=commit_in)).run()
    assert undisturbed.commits > 5
    for at in range(undisturbed.commits):
        for when in ("before", "after"):
            query(dsn, f"drop table events, {OF_THE_SINK}")
            query(dsn, TABLE)
            fate = Fate(at, when)
            run = fated(dsn, fate, commit_in)
            run.run()
            assert run.job.result.state == "finished", (at, when, run.job.result.reason)
            assert fate.commits > at
            assert rows(dsn) == list(range(20)), (at, when)


def fated(dsn: str, fate: Fate, commit_in: CommitIn) -> TableJob:
    """A job whose first driver may die while it claims the table."""
    sink = PostgresSink(dsn, "events", open_connection=fate.connect, commit_in=commit_in)
    try:
        return TableJob(sink)
    except SimulatedCrash:
        return TableJob(sink)


@WHERE
@pytest.mark.parametrize("seed", range(2))
def test_rows_arrive_once_although_processes_and_drivers_die_at_random(
    dsn: str, seed: int, commit_in: CommitIn
) -> None:
    killed(dsn, seed, commit_in, kills=8)


@WHERE
@pytest.mark.deep
@pytest.mark.parametrize("seed", range(20))
def test_rows_arrive_once_although_fifty_kills_come_at_random(
    dsn: str, seed: int, commit_in: CommitIn
) -> None:
    killed(dsn, seed, commit_in, kills=50)


def killed(dsn: str, seed: int, commit_in: CommitIn, kills: int) -> None:
    query(dsn, TABLE)
    run = TableJob(PostgresSink(dsn, "events", commit_in=commit_in))
    done = run.killed(random.Random(seed), kills)
    assert run.job.result.state == "finished", run.job.result.reason
    assert done > kills // 2
    assert rows(dsn) == list(range(20))


def test_rows_are_seen_from_their_commit_on_and_committing_again_changes_nothing(
    sink: PostgresSink, committer: PostgresCommitter, dsn: str
) -> None:
    staged = {0: attempt(sink, "r1", [1, 2]), 1: attempt(sink, "r1", [3], number=1)}
    assert rows(dsn) == []
    for _ in range(2):
        committer.commit(1, staged)
        assert rows(dsn) == [1, 2, 3]
    assert (committer.rows_committed, committer.rows_visible) == (3, 3)
    assert query(dsn, "select count(*) from epochgate_staged_events") == [(0,)]


def test_a_commit_without_rows_is_recorded_and_numbers_only_grow(
    committer: PostgresCommitter, dsn: str
) -> None:
    for checkpoint in (3, 7, 5):
        committer.commit(checkpoint, {})
    assert query(dsn, "select job, target, checkpoint, rows, driver from epochgate_ledger") == [
        ("job", "events", 7, 0, 1)
    ]


def test_the_ledger_tells_committed_from_never_there(
    sink: PostgresSink, committer: PostgresCommitter
) -> None:
    staged = attempt(sink, "r1", [1])
    committer.commit(1, {0: staged})
    committer.commit(1, {0: staged})
    with pytest.raises(RowsMissing, match=r"checkpoint 2 needs 1 staged rows .* and 0 are there"):
        committer.commit(2, {0: staged})


def test_a_driver_that_was_replaced_cannot_commit_any_more(
    sink: PostgresSink, committer: PostgresCommitter, dsn: str
) -> None:
    committer.commit(1, {0: attempt(sink, "r1", [1])})
    late = attempt(sink, "r1", [2], number=1)
    successor = claimed(sink, "r2", 1)
    with pytest.raises(TableTakenOver, match="run r1 may not commit"):
        committer.commit(2, {0: late})
    successor.commit(2, {0: attempt(sink, "r2", [3])})
    with pytest.raises(TableTakenOver):
        committer.commit(3, {})
    assert rows(dsn) == [1, 3]
    successor.close()


def test_what_a_dead_run_has_staged_is_removed_and_what_a_checkpoint_holds_is_not(
    sink: PostgresSink, committer: PostgresCommitter, dsn: str
) -> None:
    held = attempt(sink, "r1", [1])
    attempt(sink, "r1", [2], number=1)
    attempt(sink, "r-of-another-job", [3])
    successor = claimed(sink, "r2", 2)
    mine = attempt(sink, "r2", [4])
    successor.open("r2", {2: {0: held}})
    assert query(dsn, "select x from epochgate_staged_events order by x") == [(1,), (3,), (4,)]
    attempt(sink, "r1", [5], number=2)  # by a task that is given up and writes on
    claimed(sink, "r3", 2).open("r3", {2: {0: held}, 3: {0: mine}})
    assert query(dsn, "select x from epochgate_staged_events order by x") == [(1,), (3,), (4,)]
    for number in range(4, 30):
        successor = claimed(sink, f"r{number}", 2)
    assert query(dsn, "select cardinality(runs), runs[16] from epochgate_ledger") == [(16, "r29")]
    successor.commit(2, {0: held})
    successor.commit(3, {0: mine})
    assert rows(dsn) == [1, 4]
    successor.close()


def test_staged_rows_and_the_ledger_survive_a_crash_of_the_server(
    sink: PostgresSink, committer: PostgresCommitter, dsn: str, server: Server
) -> None:
    committer.commit(1, {0: attempt(sink, "r1", [1])})
    staged = attempt(sink, "r1", [2], number=1)
    server.crash()
    with pytest.raises(RetryLater):
        committer.commit(2, {0: staged})
    server.start()
    for _ in range(2):
        committer.commit(2, {0: staged})
    assert rows(dsn) == [1, 2]


def test_a_row_that_the_table_refuses_never_reaches_a_checkpoint(
    sink: PostgresSink, committer: PostgresCommitter
) -> None:
    with pytest.raises(RowsRefused, match=r"events refuses rows of subtask 0, attempt 0: .*check"):
        attempt(sink, "r1", [1000])
    with pytest.raises(
        ColumnNeverFits, match=r"'x' .* bigint, and does not take string, as 'many'"
    ):
        attempt(sink, "r1", ["many"])


def test_rows_that_break_a_key_are_refused_at_the_commit_and_none_is_seen(dsn: str) -> None:
    query(dsn, TABLE)
    sink = PostgresSink(dsn, "events")
    committer = claimed(sink, "r1")
    with pytest.raises(RowsRefused, match="checkpoint 1: duplicate key"):
        committer.commit(1, {0: attempt(sink, "r1", [1, 2, 2])})
    assert rows(dsn) == []
    assert query(dsn, "select checkpoint from epochgate_ledger") == [(None,)]
    committer.close()


def test_a_statement_has_no_more_rows_than_it_may(sink: PostgresSink) -> None:
    small = PostgresSink(sink.dsn, "events", rows_per_statement=3)
    committer = claimed(small, "r1")
    parts = attempt(small, "r1", list(range(8)))
    assert [part[1] for part in parts] == [3, 3, 2]
    committer.commit(1, {0: parts})
    assert rows(sink.dsn) == list(range(8))
    committer.close()
    with pytest.raises(UsageError, match="rows_per_statement is 0"):
        PostgresSink(sink.dsn, "events", rows_per_statement=0)


def test_a_state_older_or_newer_than_the_ledger_is_refused(
    sink: PostgresSink, committer: PostgresCommitter, dsn: str
) -> None:
    committer.commit(4, {})
    with pytest.raises(TableAhead, match=r"checkpoint 4 .*\s?from checkpoint 3"):
        claimed(sink, "r2", 3)
    with pytest.raises(TableAhead):
        claimed(sink, "r2")
    committer.commit(5, {})
    query(dsn, "delete from epochgate_ledger")
    with pytest.raises(TableBehind):
        claimed(sink, "r2", 5)
    with pytest.raises(TableBehind):
        committer.commit(6, {})


def test_rows_of_lost_checkpoints_are_deleted_where_the_table_says_which_they_are(
    sink: PostgresSink, committer: PostgresCommitter, dsn: str
) -> None:
    def refused(checkpoint: int) -> None:
        with pytest.raises(TableAhead, match="column `epochgate_checkpoint bigint`"):
            sink.create_committer(SinkStart("job", "r2", checkpoint, may_withdraw=True))

    committer.commit(1, {0: attempt(sink, "r1", [1])})
    refused(0)
    query(dsn, "alter table events add column epochgate_checkpoint bigint")
    claimed(sink, "r1", 1).close()
    committer = claimed(sink, "r1", 1)
    for number in (2, 3, 4):
        committer.commit(number, {0: attempt(sink, "r1", [number], number)})
    refused(1)  # of rows without a number, it is not known since when they are there
    with pytest.raises(TableAhead):
        claimed(sink, "r2", 3)
    successor = sink.create_committer(SinkStart("job", "r2", 3, may_withdraw=True))
    assert (rows(dsn), successor.rows_visible) == ([1, 2, 3], 3)
    successor.commit(5, {0: attempt(sink, "r2", [5])})
    assert rows(dsn) == [1, 2, 3, 5]
    sink.create_committer(SinkStart("other", "o1")).close()
    refused(3)


def test_a_table_that_changes_gets_another_staging_table_when_nothing_is_staged(
    sink: PostgresSink, committer: PostgresCommitter, dsn: str
) -> None:
    query(dsn, "alter table events add column more text")
    claimed(sink, "r2").close()
    assert query(dsn, "select more from epochgate_staged_events") == []
    attempt(sink, "r2", [1])
    query(dsn, "alter table events drop column more")
    with pytest.raises(TableUnusable, match="columns have changed while rows were staged"):
        claimed(sink, "r3", restored=1)  # which waits for its commit
    claimed(sink, "r3").close()
    assert query(dsn, "select x from epochgate_staged_events") == []


def test_what_cannot_be_a_target_is_refused_at_the_start(dsn: str) -> None:
    with pytest.raises(TableUnusable, match="no such table"):
        claimed(PostgresSink(dsn, "public.events"), "r1")
    nowhere = "host=/nowhere user=me password=secret"
    with pytest.raises(DatabaseUnreachable) as refused:
        claimed(PostgresSink(nowhere, "events"), "r1")
    assert "user=me" in str(refused.value)
    assert "secret" not in str(refused.value) + repr(PostgresSink(nowhere, "events"))


def test_values_of_each_kind_are_the_same_in_the_table(dsn: str) -> None:
    values = {
        "s": pa.array(["", None, 'a"b,c\n', "\\N", "NULL"]),
        "n": pa.array([1, None, 2**62, -1, 0]),
        "f": pa.array([0.1, None, float("inf"), 1e-300, -0.0]),
        "b": pa.array([b"\x00\xff", None, b"", b"a", b"b"]),
        "d": pa.array([date(2024, 2, 29), None, date(1, 1, 1), None, None]),
        "t": pa.array(
            [datetime(2024, 1, 1, tzinfo=UTC), None] + [None] * 3, pa.timestamp("us", "UTC")
        ),
        "m": pa.array([Decimal("1.50"), None, Decimal(2), None, None], pa.decimal128(10, 2)),
        "y": pa.array([True, None, False, None, None]),
        "k": pa.array(["one", None, "two", "one", ""]).dictionary_encode(),
    }
    query(
        dsn,
        "create table events (s text, n bigint, f double precision, b bytea, d date,"
        " t timestamptz, m numeric, y boolean, k text, id serial)",
    )
    sink = PostgresSink(dsn, "public.events")
    committer = claimed(sink, "r1")
    writer = sink.create_writer(OperatorContext("sink", 0, 0, 1, "r1", lambda event: None), None)
    batch = pa.RecordBatch.from_pydict(values)
    writer.write(batch)
    committer.commit(1, {0: writer.prepare_commit(1)})
    found = query(dsn, "select s, n, f, b, d, t, m, y, k from events order by id")
    assert [tuple(row.values()) for row in batch.to_pylist()] == found
    with pytest.raises(ColumnNeverFits, match=r"column 's' .* does not take list"):
        writer.write(pa.RecordBatch.from_pydict({"s": [[1]]}))
    writer.close()
    committer.close()


def test_without_the_library_the_error_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(ExtraMissing, match=r"pip install epochgate\[postgres\]"):
        PostgresSink("dbname=x", "events").create_committer(SinkStart("job", "r1"))
