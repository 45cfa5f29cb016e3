"""`once`: the function of a batch is called once, as far as its ledger can tell."""

from __future__ import annotations

import contextlib
import pickle
import shutil
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

from epochgate.runtime import RetryLater
from epochgate.spark.streaming import (
    BatchesAhead,
    BatchesMissing,
    DeltaLedger,
    DeltaTransaction,
    DirectoryLedger,
    IcebergLedger,
    Ledger,
    LocationMoved,
    ObjectLedger,
    OnceUnusable,
    PostgresLedger,
    TransactionLost,
    TransactionMissing,
    TransactionTaken,
    TransactionUnused,
    once,
)
from tests.runtime.objects.stores import Memory
from tests.spark.tables import delta_replay, iceberg_replay

FRAME: Any = SimpleNamespace(sparkSession=object())
"""As of Spark Connect, which tells a function nothing of its query."""


@dataclass
class Place:
    """A ledger of the kind, and a function that writes its batch's number where the ledger lies."""

    ledger: Ledger
    write: Callable[..., None]
    rows: Callable[[], list[int]]
    carries: bool
    fails: list[str] = field(default_factory=list)

    def __call__(self, df: Any, batch: int, *transaction: Any) -> None:
        assert df is FRAME
        self._fail("before")
        self.write(batch, *transaction)
        self._fail("after")

    def _fail(self, when: str) -> None:
        if self.fails[:1] == [when]:
            self.fails.pop(0)
            raise ZeroDivisionError(when)


def directory(tmp_path: Path, request: pytest.FixtureRequest) -> Place:
    written: list[int] = []
    return Place(DirectoryLedger(str(tmp_path / "l")), written.append, lambda: written, False)


def objects(tmp_path: Path, request: pytest.FixtureRequest) -> Place:
    written: list[int] = []
    ledger = ObjectLedger("s3://bucket/ledger", Memory().open)
    return Place(ledger, written.append, lambda: written, False)


def postgres(tmp_path: Path, request: pytest.FixtureRequest) -> Place:
    import psycopg

    dsn = request.getfixturevalue("dsn")
    with psycopg.connect(dsn) as connection:
        connection.execute("create table written (batch bigint)")

    def write(batch: int, connection: Any) -> None:
        connection.execute("insert into written values (%s)", [batch])

    def rows() -> list[int]:
        with psycopg.connect(dsn) as connection:
            return [n for (n,) in connection.execute("select batch from written order by 1")]

    return Place(PostgresLedger(dsn), write, rows, True)


def delta(tmp_path: Path, request: pytest.FixtureRequest) -> Place:
    deltalake = pytest.importorskip("deltalake", reason="the extra `delta` is not installed")
    path = tmp_path / "table"

    def write(batch: int, transaction: DeltaTransaction) -> None:
        deltalake.write_deltalake(
            str(path),
            pa.table({"x": [batch]}),
            mode="append",
            commit_properties=transaction.properties(),
        )

    ledger = DeltaLedger(str(path))
    return Place(ledger, write, lambda: delta_replay.rows(path) if path.exists() else [], True)


def iceberg(tmp_path: Path, request: pytest.FixtureRequest) -> Place:
    catalogs = pytest.importorskip("pyiceberg.catalog", reason="no extra `iceberg`")
    properties = iceberg_replay.catalog(tmp_path)
    catalog = catalogs.load_catalog("lake", **properties)
    catalog.create_namespace("sales")
    schema = pa.schema([("x", pa.int64())])
    catalog.create_table("sales.events", schema=schema).append(schema.empty_table())
    catalog.close()

    def write(batch: int, transaction: Any) -> None:
        transaction.append(pa.table({"x": [batch]}, schema=schema))

    ledger = IcebergLedger("lake", "sales.events", properties)
    return Place(ledger, write, lambda: iceberg_replay.rows(tmp_path), True)


@pytest.fixture(params=[directory, objects, postgres, delta, iceberg], ids=lambda one: one.__name__)
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    made: Place = request.param(tmp_path, request)
    return made


def test_each_batch_is_done_once_and_a_replay_is_skipped(place: Place) -> None:
    for batch in (0, 1, 1, 2, 2):
        once(place.ledger, place, query="orders")(FRAME, batch)
    assert place.rows() == [0, 1, 2]


def test_what_the_function_raises_is_raised_and_its_batch_is_done_again(place: Place) -> None:
    guarded = once(place.ledger, place, query="orders")
    place.fails = ["before", "after"]
    for when in ("before", "after"):
        with pytest.raises(ZeroDivisionError, match=when):
            guarded(FRAME, 0)
    guarded(FRAME, 0)
    # What does not go through a transaction is there twice: it was done, and not recorded.
    assert place.rows() == ([0] if place.carries else [0, 0])


def test_queries_of_one_ledger_count_for_themselves(place: Place) -> None:
    orders, payments = (once(place.ledger, place, query=name) for name in ("orders", "payments"))
    orders(FRAME, 0)
    payments(FRAME, 0)
    orders(FRAME, 1)
    payments(FRAME, 0)
    assert place.rows() == [0, 0, 1]


def test_a_history_that_the_ledger_does_not_know_is_refused(place: Place) -> None:
    guarded = once(place.ledger, place, query="orders")
    with pytest.raises(BatchesMissing, match="late_start"):
        guarded(FRAME, 3)
    late = once(place.ledger, place, query="orders", late_start=True)
    late(FRAME, 3)
    late(FRAME, 4)
    with pytest.raises(BatchesAhead, match="is an older state"):
        guarded(FRAME, 3)
    with pytest.raises(BatchesAhead, match=r"older state \(.*, or one that was empty at the start"):
        guarded(FRAME, 0)
    with pytest.raises(BatchesMissing):
        guarded(FRAME, 6)
    assert place.rows() == [3, 4]


def test_with_its_location_a_copied_checkpoint_is_refused(tmp_path: Path) -> None:
    ledger, done = DirectoryLedger(str(tmp_path / "ledger")), []

    def write(df: Any, batch: int) -> None:
        done.append(batch)

    here, copy = str(tmp_path / "here"), str(tmp_path / "copy")
    once(ledger, write, query="q", checkpoint=here)(FRAME, 0)
    with pytest.raises(LocationMoved):
        once(ledger, write, query="q", checkpoint=copy)(FRAME, 1)
    once(ledger, write, query="q", checkpoint=copy, moved_from=here)(FRAME, 1)
    assert done == [0, 1]


def test_a_zombie_waits_for_the_transaction_of_its_successor_and_skips(
    tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    place = postgres(tmp_path, request)
    calls = []

    def overtaken(df: Any, batch: int, connection: Any) -> None:
        calls.append(batch)
        place.write(batch, connection)

    def zombie(ledger: Ledger) -> None:
        with pytest.raises(RetryLater, match="another number"):
            ledger.call("q", 0, lambda connection: calls.append(99))

    once(place.ledger, overtaken, query="q")(FRAME, 0)
    zombie(place.ledger)
    assert (place.rows(), calls) == ([0], [0])


def test_a_delta_function_without_the_transaction_is_recorded_afterwards(tmp_path: Path) -> None:
    pytest.importorskip("deltalake", reason="the extra `delta` is not installed")
    done: list[int] = []
    guarded = once(
        DeltaLedger(str(tmp_path / "t")),
        lambda df, batch, transaction: done.append(batch),
        query="q",
    )
    for batch in (0, 1, 1):
        guarded(FRAME, batch)
    assert done == [0, 1]


def two(df: Any, batch: int) -> None: ...


def three(df: Any, batch: int, transaction: Any) -> None: ...


@pytest.mark.parametrize(
    ("ledger", "function", "told"),
    [
        (two, DirectoryLedger("l"), r"a ledger first and a function second.*; <function two"),
        ("l", two, "; 'l' is none"),
        (DirectoryLedger("l"), "two", "; 'two' is none"),
        (DirectoryLedger("l"), three, r"as function\(df, batch\), and it is three\(df:"),
        (DeltaLedger("l"), two, r"With DeltaLedger .* function\(df, batch, transaction\)"),
        (PostgresLedger("l"), two, r"function\(df, batch, connection\), and it is two"),
    ],
    ids=["swapped", "no ledger", "no function", "three", "two with delta", "two with postgres"],
)
def test_arguments_that_cannot_work_are_refused_when_they_are_given(
    ledger: Any, function: Any, told: str
) -> None:
    with pytest.raises(OnceUnusable, match=f"(?i){told}"):
        once(ledger, function)


def append(table: Path, batch: int, **options: Any) -> None:
    deltalake = pytest.importorskip("deltalake", reason="the extra `delta` is not installed")
    rows = pa.table({"x": [batch]})
    deltalake.write_deltalake(str(table), rows, mode="append", **options)


def test_a_delta_function_that_writes_twice_is_refused_before_its_second_write(
    tmp_path: Path,
) -> None:
    table = tmp_path / "t"

    def write(df: Any, batch: int, transaction: DeltaTransaction) -> None:
        append(table, batch, commit_properties=transaction.properties())
        append(table, batch + 100, commit_properties=transaction.properties())

    with pytest.raises(TransactionTaken, match="transaction of batch 0 was taken before"):
        once(DeltaLedger(str(table)), write, query="q")(FRAME, 0)
    assert delta_replay.rows(table) == [0]


@pytest.mark.parametrize("is_first", [True, False])
def test_a_delta_write_without_the_transaction_is_refused_and_can_be_taken_back(
    tmp_path: Path, is_first: bool
) -> None:
    deltalake = pytest.importorskip("deltalake", reason="the extra `delta` is not installed")
    table, passes = tmp_path / "t", [False, True] if is_first else [True, False, True]

    def write(df: Any, batch: int, transaction: DeltaTransaction) -> None:
        if passes.pop(0):
            append(table, batch, commit_properties=transaction.properties())
        else:
            append(table, batch)

    guarded = once(DeltaLedger(str(table)), write, query="q")
    if not is_first:
        guarded(FRAME, 0)
    batch = int(not is_first)
    with pytest.raises(TransactionMissing, match=f"function of batch {batch} has returned"):
        guarded(FRAME, batch)
    if is_first:
        shutil.rmtree(table)
    else:
        deltalake.DeltaTable(str(table)).restore(0)
    guarded(FRAME, batch)
    guarded(FRAME, batch)
    assert delta_replay.rows(table) == list(range(batch + 1))


def other_writer(table: Path, kind: str) -> None:
    """A commit of another writer: what maintenance, another query and a plain append leave."""
    deltalake = pytest.importorskip("deltalake", reason="the extra `delta` is not installed")
    if kind == "another query":
        entry = DeltaTransaction("q2", 0)
        append(table, 50, commit_properties=entry.properties())
    elif kind == "compaction":
        deltalake.DeltaTable(str(table)).optimize.compact()
    elif kind == "a table property":
        deltalake.DeltaTable(str(table)).alter.set_table_properties({"delta.appendOnly": "false"})
    else:
        append(table, 50)


@pytest.mark.parametrize("kind", ["another query", "compaction", "a table property"])
def test_a_delta_batch_without_rows_does_not_answer_for_commits_that_are_not_its_own(
    tmp_path: Path, kind: str
) -> None:
    table = tmp_path / "t"
    for batch in (8, 9):
        append(table, batch)
    ledger, done = DeltaLedger(str(table)), []

    def empty(df: Any, batch: int, transaction: DeltaTransaction) -> None:
        other_writer(table, kind)
        done.append(batch)

    for batch in (0, 1, 1):
        once(ledger, empty, query="q")(FRAME, batch)
    assert done == [0, 1]


def test_a_delta_function_that_says_it_writes_nothing_is_not_asked_about_other_writers(
    tmp_path: Path,
) -> None:
    table, done = tmp_path / "t", []
    append(table, 9)

    def empty(df: Any, batch: int, transaction: DeltaTransaction) -> None:
        transaction.skip()
        other_writer(table, "a plain append")
        done.append(batch)

    for batch in (0, 0):
        once(DeltaLedger(str(table)), empty, query="q")(FRAME, batch)
    assert done == [0]


def test_a_delta_transaction_that_was_taken_and_is_not_in_the_log_is_a_failed_write(
    tmp_path: Path,
) -> None:
    table, fails = tmp_path / "t", [True, False]

    def write(df: Any, batch: int, transaction: DeltaTransaction) -> None:
        properties = transaction.properties()
        with contextlib.suppress(ZeroDivisionError):
            if fails.pop(0):
                raise ZeroDivisionError("of the write")
            append(table, batch, commit_properties=properties)

    guarded = once(DeltaLedger(str(table)), write, query="q")
    with pytest.raises(TransactionUnused, match=r"took the transaction .* no such entry"):
        guarded(FRAME, 0)
    guarded(FRAME, 0)
    assert delta_replay.rows(table) == [0]


def swallow(connection: Any) -> None:
    import psycopg

    with contextlib.suppress(psycopg.Error):
        connection.execute("select 1 / 0")


@pytest.mark.parametrize(
    ("ends", "told"),
    [
        (swallow, "a statement of the function failed"),
        (lambda connection: connection.execute("rollback"), "has ended the transaction"),
        (lambda connection: connection.execute("rollback; begin"), "has ended the transaction"),
        (lambda connection: connection.close(), "has closed the connection"),
    ],
    ids=["swallowed", "rollback", "rollback and begin", "close"],
)
def test_a_postgres_function_that_loses_its_transaction_is_refused_and_runs_again(
    tmp_path: Path, request: pytest.FixtureRequest, ends: Callable[[Any], None], told: str
) -> None:
    place, fails = postgres(tmp_path, request), [False, True, False, False]

    def write(df: Any, batch: int, connection: Any) -> None:
        place.write(batch, connection)
        if fails.pop(0):
            ends(connection)

    guarded = once(place.ledger, write, query="q")
    guarded(FRAME, 0)
    with pytest.raises(TransactionLost, match=f"batch 1 .*{told}"):
        guarded(FRAME, 1)
    guarded(FRAME, 1)
    guarded(FRAME, 2)
    assert place.rows() == [0, 1, 2]


@pytest.mark.parametrize("end", ["commit", "rollback"])
def test_a_postgres_function_cannot_end_its_transaction(
    tmp_path: Path, request: pytest.FixtureRequest, end: str
) -> None:
    import psycopg

    place = postgres(tmp_path, request)

    def write(df: Any, batch: int, connection: Any) -> None:
        place.write(batch, connection)
        getattr(connection, end)()

    with pytest.raises(psycopg.ProgrammingError, match=f"Explicit {end}"):
        once(place.ledger, write, query="q")(FRAME, 0)
    assert place.rows() == []


def test_a_postgres_function_may_go_on_after_a_statement_that_failed_in_a_savepoint(
    tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    import psycopg

    place = postgres(tmp_path, request)

    def write(df: Any, batch: int, connection: Any) -> None:
        with contextlib.suppress(psycopg.Error), connection.transaction():
            connection.execute("select 1 / 0")
        place.write(batch, connection)

    once(place.ledger, write, query="q")(FRAME, 0)
    assert place.rows() == [0]


def test_an_iceberg_function_that_commits_its_transaction_is_refused(
    tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    place = iceberg(tmp_path, request)

    def write(df: Any, batch: int, transaction: Any) -> None:
        place.write(batch, transaction)
        transaction.commit_transaction()

    guarded = once(place.ledger, write, query="q")
    with pytest.raises(TransactionLost, match=r"batch 0 .*has ended the transaction"):
        guarded(FRAME, 0)


def test_what_once_returns_holds_plain_values_and_no_password_in_its_text() -> None:
    guarded = once(PostgresLedger("postgresql://me:secret@db/sales"), print, query="q")
    again = pickle.loads(pickle.dumps(guarded))
    assert again == guarded
    assert "secret" not in repr(guarded)
