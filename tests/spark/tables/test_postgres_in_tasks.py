"""Moves of tasks into PostgreSQL: each row is there once, even if tasks commit twice, at once or
too late; and the driver's ledger knows what they have moved.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Any

import psycopg
import pytest

from epochgate.runtime import SinkStart
from epochgate.spark.postgres_sink import (
    PostgresCommitter,
    PostgresSink,
    RowsMissing,
    TableAhead,
    TableTakenOver,
)
from tests.spark.sink.in_tasks import committed
from tests.spark.tables.test_postgres import LOOSE, attempt, claimed, query, rows

MOVED = "select checkpoint, subtask, rows from epochgate_moved order by 1, 2"


@pytest.fixture
def sink(dsn: str) -> PostgresSink:
    query(dsn, LOOSE)
    return PostgresSink(dsn, "events", commit_in="tasks")


@pytest.fixture
def driver(sink: PostgresSink) -> Iterator[PostgresCommitter]:
    committer = claimed(sink, "r1")
    yield committer
    committer.close()


def test_each_task_moves_its_rows_and_the_ledger_takes_up_their_records(
    sink: PostgresSink, driver: PostgresCommitter, dsn: str
) -> None:
    first, second = attempt(sink, "r1", [1, 2]), attempt(sink, "r1", [3], 1)
    driver.check({0: first, 1: second})
    passed = committed(sink, "r1", 1, {0: first})
    assert rows(dsn) == [1, 2], "readers see one subtask's rows before another's"
    passed |= committed(sink, "r1", 1, {1: second})
    assert query(dsn, MOVED) == [(1, 0, 2), (1, 1, 1)]
    assert driver.commit(1, passed) is True
    assert (rows(dsn), query(dsn, MOVED)) == ([1, 2, 3], [])
    assert (driver.rows_committed, driver.rows_visible) == (3, 3)
    assert claimed(sink, "r2", 1).rows_visible == 3


def test_a_second_commit_changes_nothing(
    sink: PostgresSink, driver: PostgresCommitter, dsn: str
) -> None:
    staged = {0: attempt(sink, "r1", [1]), 1: attempt(sink, "r1", [2], 1)}
    passed = committed(sink, "r1", 1, staged)
    assert committed(sink, "r1", 1, staged) == passed, "before the driver's commit"
    driver.commit(1, passed)
    assert committed(sink, "r1", 1, staged) == passed, "and after it"
    assert driver.commit(1, passed) is False
    successor = claimed(sink, "r2", 1)
    assert successor.commit(1, committed(sink, "r2", 1, staged)) is False
    assert rows(dsn) == [1, 2]


class Late(psycopg.Connection[Any]):
    """Does something before its transaction ends."""

    does: Callable[[], None]

    def commit(self) -> None:
        self.does()
        super().commit()


def late(sink: PostgresSink, does: Callable[[], None]) -> PostgresSink:
    """The sink of a task that is slow at the end of a transaction."""

    def opened(dsn: str) -> psycopg.Connection[Any]:
        connection = Late.connect(dsn)
        connection.does = does
        return connection

    return PostgresSink(sink.dsn, sink.table, commit_in="tasks", open_connection=opened)


def until_it_waits(dsn: str, other: threading.Thread) -> None:
    """Until another connection waits for a lock."""
    waiting = "select 1 from pg_stat_activity where wait_event_type = 'Lock'"
    while not query(dsn, f"{waiting} and datname = current_database()"):
        assert other.is_alive()


def test_of_two_attempts_at_once_one_moves_the_rows(
    sink: PostgresSink, driver: PostgresCommitter, dsn: str
) -> None:
    staged = {0: attempt(sink, "r1", [1, 2])}
    others: list[Any] = []
    other = threading.Thread(target=lambda: others.append(committed(sink, "r1", 1, staged)))

    def let_another_begin() -> None:
        other.start()
        until_it_waits(dsn, other)

    passed = committed(late(sink, let_another_begin), "r1", 1, staged)
    other.join(30)
    assert others == [passed]
    driver.commit(1, passed)
    assert rows(dsn) == [1, 2]


def test_a_task_of_a_replaced_driver_moves_nothing(
    sink: PostgresSink, driver: PostgresCommitter, dsn: str
) -> None:
    staged = {0: attempt(sink, "r1", [1])}
    claimed(sink, "r2").close()
    with pytest.raises(TableTakenOver):
        committed(sink, "r1", 1, staged)
    assert rows(dsn) == []


def test_a_claim_waits_for_a_task_that_moves_rows_and_then_knows_of_them(
    sink: PostgresSink, driver: PostgresCommitter, dsn: str
) -> None:
    staged = {0: attempt(sink, "r1", [1])}
    refused: list[BaseException] = []

    def claim_without_the_checkpoint() -> None:
        try:
            claimed(sink, "r2")
        except TableAhead as error:
            refused.append(error)

    successor = threading.Thread(target=claim_without_the_checkpoint)

    def let_it_begin() -> None:
        successor.start()
        until_it_waits(dsn, successor)

    committed(late(sink, let_it_begin), "r1", 1, staged)
    successor.join(30)
    assert "checkpoint 1" in str(refused[0]), "it would write the rows of this part once more"
    after = claimed(sink, "r3", 1)
    assert after.rows_visible == 1
    after.commit(1, committed(sink, "r3", 1, staged))
    assert rows(dsn) == [1]
    assert claimed(sink, "r4", 1).rows_visible == 1


def test_parts_of_lost_checkpoints_are_deleted_where_the_table_says_which_they_are(
    sink: PostgresSink, dsn: str
) -> None:
    query(dsn, "alter table events add column epochgate_checkpoint bigint")
    driver = claimed(sink, "r1")
    for number in (1, 2):
        driver.commit(number, committed(sink, "r1", number, {0: attempt(sink, "r1", [number])}))
    third = {0: attempt(sink, "r1", [3], 3), 1: attempt(sink, "r1", [30], 30)}
    committed(sink, "r1", 3, third)
    committed(sink, "r1", 4, {1: attempt(sink, "r1", [40], 40)})
    with pytest.raises(TableAhead, match="checkpoint 4"):
        claimed(sink, "r2", 3)
    successor = sink.create_committer(SinkStart("job", "r2", 3, may_withdraw=True))
    assert (rows(dsn), successor.rows_visible) == ([1, 2, 3, 30], 4)
    assert successor.commit(3, committed(sink, "r2", 3, third)) is True
    successor.commit(4, committed(sink, "r2", 4, {0: attempt(sink, "r2", [4])}))
    assert rows(dsn) == [1, 2, 3, 4, 30]
    assert claimed(sink, "r3", 4).rows_visible == 5


def test_after_a_change_of_parallelism_one_task_commits_what_several_have_handed_over(
    sink: PostgresSink, driver: PostgresCommitter, dsn: str
) -> None:
    staged = {n: attempt(sink, "r1", [n], n) for n in range(3)}
    committed(sink, "r1", 1, {1: staged[1]})
    successor = claimed(sink, "r2", 1)
    successor.open("r2", {1: staged})
    successor.commit(1, committed(sink, "r2", 1, staged))
    assert rows(dsn) == [0, 1, 2]


def test_what_tasks_have_moved_a_driver_does_not_move_again_that_moves_all_by_itself(
    sink: PostgresSink, driver: PostgresCommitter, dsn: str
) -> None:
    staged = {0: attempt(sink, "r1", [1]), 1: attempt(sink, "r1", [2], 1)}
    committed(sink, "r1", 1, {0: staged[0]})
    successor = claimed(PostgresSink(dsn, "events"), "r2", 1)
    successor.open("r2", {1: staged})
    assert successor.commit(1, staged) is True
    assert (rows(dsn), query(dsn, MOVED)) == ([1, 2], [])
    assert claimed(sink, "r3", 1).rows_visible == 2


def test_rows_that_are_gone_are_told_and_nothing_is_moved(
    sink: PostgresSink, driver: PostgresCommitter, dsn: str
) -> None:
    staged = {0: attempt(sink, "r1", [1, 2])}
    query(dsn, "delete from epochgate_staged_events where x = 2")
    with pytest.raises(RowsMissing):
        committed(sink, "r1", 1, staged)
    assert (rows(dsn), query(dsn, MOVED)) == ([], [])


def test_a_part_whose_record_is_gone_is_not_taken_for_committed(
    sink: PostgresSink, driver: PostgresCommitter, dsn: str
) -> None:
    passed = committed(sink, "r1", 1, {0: attempt(sink, "r1", [1])})
    query(dsn, "delete from epochgate_moved")
    with pytest.raises(RowsMissing):
        driver.commit(1, passed)
