"""A sink that writes through a client of a database: each call of the client is a point."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import pytest

from epochgate.runtime import (
    AheadOfCheckpoint,
    Committables,
    Committer,
    OperatorContext,
    RetryLater,
    Sink,
    SinkStart,
    SinkWriter,
)
from epochgate.runtime.testing.certification import (
    Guarantee,
    UnknownClient,
    certify,
    report,
    to_json,
)
from epochgate.runtime.testing.certification.clients import watched_clients
from epochgate.runtime.testing.certification.points import Actor, Fault, Kind, Stage
from epochgate.testing import SinkCase, SinkNotCertified, certify_sink
from tests.runtime.broken_sinks import InlineWriter, all_rows

TABLES = """
create table if not exists shown (checkpoint_id integer, row text);
create table if not exists ledger (one integer primary key, run text, last integer);
"""


@dataclass(frozen=True)
class SqliteSink(Sink):
    """Shows rows, and notes their checkpoint, in one transaction of the run that has the table."""

    path: str
    is_fenced: bool = True
    withdraws: bool = True

    def create_writer(self, context: OperatorContext, state: bytes | None) -> SinkWriter:
        return InlineWriter()

    def create_committer(self, start: SinkStart) -> Committer:
        with closing(sqlite3.connect(self.path, timeout=0.1)) as connection:
            connection.executescript(TABLES)
            connection.execute("begin immediate")
            row = connection.execute("select last from ledger").fetchone()
            restored = start.restored_checkpoint or 0
            if row and row[0] > restored and not (self.withdraws and start.may_withdraw):
                raise AheadOfCheckpoint(self.path, row[0], start.restored_checkpoint)
            connection.execute("delete from shown where checkpoint_id > ?", (restored,))
            last = min(row[0], restored) if row else 0
            connection.execute("replace into ledger values (1, ?, ?)", (start.run_id, last))
            connection.commit()
        return SqliteCommitter(self.path, start.run_id, self.is_fenced)


class SqliteCommitter(Committer):
    def __init__(self, path: str, run_id: str, is_fenced: bool) -> None:
        self.path, self.run_id, self.is_fenced = path, run_id, is_fenced
        self.connection: Any = None

    def open(self, run_id: str, restored: dict[int, Committables]) -> None:
        self.connection = sqlite3.connect(self.path, timeout=0.1)

    def commit(self, checkpoint_id: int, committables: Committables) -> None:
        try:
            with self.connection:
                self.connection.execute("begin immediate")
                ((run, last),) = self.connection.execute("select run, last from ledger")
                if self.is_fenced and run != self.run_id:
                    raise RuntimeError(f"{run} has the table")
                if checkpoint_id <= last:
                    return
                rows = [(checkpoint_id, json.dumps(row)) for row in all_rows(committables)]
                self.connection.executemany("insert into shown values (?, ?)", rows)
                self.connection.execute("update ledger set last = ?", (checkpoint_id,))
        except (ConnectionError, sqlite3.OperationalError) as error:
            raise RetryLater(str(error)) from error

    def close(self) -> None:
        if self.connection is not None:
            self.connection.close()


class SqliteCase(SinkCase):
    clients: ClassVar[Sequence[str]] = ("sqlite3:connect",)
    is_fenced: ClassVar[bool] = True
    withdraws: ClassVar[bool] = True

    def batch(self, rows: list[dict[str, Any]]) -> Any:
        return rows

    def sink(self, place: Path) -> Sink:
        return SqliteSink(str(place / "db"), self.is_fenced, self.withdraws)

    def _read(self, place: Path, query: str) -> list[Any]:
        if not (place / "db").exists():
            return []
        with closing(sqlite3.connect(place / "db")) as connection:
            tables = connection.execute("select name from sqlite_master").fetchall()
            return connection.execute(query).fetchall() if len(tables) == 2 else []

    def rows(self, place: Path) -> Iterator[Any]:
        return (json.loads(row) for (row,) in self._read(place, "select row from shown"))

    def staged(self, place: Path) -> list[str]:
        return []

    def kept(self, place: Path) -> int | None:
        return len(self._read(place, "select * from ledger"))


class UnfencedCase(SqliteCase):
    is_fenced = False


class RefusingCase(SqliteCase):
    withdraws = False


class NoSuchClient(SqliteCase):
    clients = ("sqlite3:connection_of_mine",)


def test_a_fenced_transaction_with_a_ledger_is_certified() -> None:
    found = certify(SqliteCase(), stride=19)
    assert found.has_passed, report(found)
    assert found.points - found.calls > 50, "each call of a client is a point"


@pytest.mark.parametrize(("case", "answer"), [(SqliteCase, "withdraws"), (RefusingCase, "refuses")])
def test_a_start_from_an_older_checkpoint_withdraws_or_is_refused_and_goes_on_from_the_newest(
    case: type[SinkCase], answer: str
) -> None:
    found = certify(case(), about=(Guarantee.BACK,))
    assert found.has_passed, report(found)
    assert f"older checkpoint   holds in 8 schedules: the sink {answer}\n" in report(found)


class WithoutClients(SqliteCase):
    """Its writes are made in C, so that nothing of them is seen."""

    clients = ()


@pytest.mark.parametrize(("case", "is_seen"), [(SqliteCase, True), (WithoutClients, False)])
def test_a_sink_is_certified_only_if_failures_struck_inside_commit(
    case: type[SinkCase], is_seen: bool
) -> None:
    found = certify(case(), about=(Guarantee.FENCING,), stride=40)
    assert found.failures == {}
    assert found.has_passed == is_seen
    told = " ".join(report(found).split())
    reason = "not certified: no write to a store was seen inside commit, so no failure struck "
    assert (reason + "there; name `clients` or `calls` in the case" in told) != is_seen
    assert f"{case.__name__} is {'' if is_seen else 'not '}certified." in told
    values = to_json(found)
    assert values["passed"] == is_seen
    verdicts = {one["name"]: one["verdict"] for one in values["guarantees"]}
    assert verdicts["fencing"] == ("holds" if is_seen else "not tried")


def test_certify_sink_raises_where_nothing_was_seen_inside_commit() -> None:
    with pytest.raises(SinkNotCertified, match="no write to a store was seen inside commit"):
        certify_sink(WithoutClients(), stride=200)


class WithoutKept(SqliteCase):
    def kept(self, place: Path) -> None:
        return None


def test_a_history_whose_growth_was_not_counted_says_so() -> None:
    found = certify(WithoutKept(), about=(Guarantee.HISTORY,), stride=10)
    line = "schedules; growth not tried: the case has no `kept`\n"
    assert line in report(found)
    (told,) = [one for one in to_json(found)["guarantees"] if one["name"] == "bounded history"]
    assert (told["verdict"], told["not_tried"]) == ("holds", "the case has no `kept`")


class ConnectsTooEarlyCommitter(SqliteCommitter):
    def __init__(self, path: str, run_id: str, is_fenced: bool) -> None:
        super().__init__(path, run_id, is_fenced)
        self.connection = sqlite3.connect(path, timeout=0.1)

    def open(self, run_id: str, restored: dict[int, Committables]) -> None:
        self.connection.execute("select 1")


class ConnectsTooEarly(SqliteSink):
    def create_committer(self, start: SinkStart) -> Committer:
        super().create_committer(start)
        return ConnectsTooEarlyCommitter(self.path, start.run_id, self.is_fenced)


class ConnectsTooEarlyCase(SqliteCase):
    def sink(self, place: Path) -> Sink:
        return ConnectsTooEarly(str(place / "db"))


def test_a_connection_of_another_thread_is_told_with_where_to_make_it() -> None:
    found = certify(ConnectsTooEarlyCase(), about=(Guarantee.FENCING,), first_only=True)
    broken = found.failures[Guarantee.RECOVERY].broken
    advice = "; make connections in `open`, which runs on the thread of commit"
    assert broken.finding.endswith(advice)


@pytest.mark.deep
@pytest.mark.timeout(900)
def test_it_is_certified_at_every_point() -> None:
    found = certify(SqliteCase())
    assert found.has_passed, report(found)


def test_a_transaction_that_does_not_ask_whose_the_table_is_fails_in_fencing() -> None:
    found = certify(UnfencedCase(), about=(Guarantee.FENCING,), stride=5)
    assert list(found.failures) == [Guarantee.FENCING], report(found)
    (failure,) = found.failures.values()
    assert "newer than the restored one" in failure.broken.finding


@pytest.fixture
def actor() -> Iterator[Actor]:
    """Its fourth point is struck: connect, begin and select come before it."""
    stage = Stage(Fault(3, Kind.FAIL), error=Lost, look=lambda point: None, looks_always=False)
    with watched_clients(stage, ["sqlite3:connect"], []):
        yield Actor(stage, "driver run-0")


class Lost(Exception):
    pass


def select_at_fault(actor: Actor, path: Path) -> Any:
    """Leave a transaction in which a row was about to be fetched; the error is kept."""
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript("create table one (a); insert into one values (1), (2)")
    with actor._stage.acting(actor):
        connection = sqlite3.connect(path)
        connection.execute("begin immediate")
        with pytest.raises(Lost) as raised:
            connection.execute("select a from one").fetchone()
        return connection, raised


def write(path: Path) -> None:
    with closing(sqlite3.connect(path, timeout=0)) as other:
        other.execute("begin exclusive")


def test_a_call_that_fails_keeps_no_cursor_whose_connection_was_closed(
    actor: Actor, tmp_path: Path
) -> None:
    connection, error = select_at_fault(actor, tmp_path / "db")
    with actor._stage.acting(actor):
        connection.close()
    write(tmp_path / "db")
    assert error.type is Lost


def test_a_connection_that_is_closed_ends_the_cursors_that_the_sink_still_has(
    actor: Actor, tmp_path: Path
) -> None:
    connection, _ = select_at_fault(actor, tmp_path / "db")
    with actor._stage.acting(actor):
        cursor = connection.execute("select a from one")
        assert cursor.fetchone() == (1,)
        connection.close()
        write(tmp_path / "db")
        with pytest.raises(sqlite3.ProgrammingError):
            cursor.fetchone()


def test_a_point_of_a_cursor_is_named_with_the_statement_that_made_it(
    actor: Actor, tmp_path: Path
) -> None:
    select_at_fault(actor, tmp_path / "db")
    named = [point.operation for point in actor._stage.points]
    assert named[-1].endswith("execute('select a from one').fetchone()"), named


def test_a_client_that_is_not_there_is_refused() -> None:
    with pytest.raises(UnknownClient, match="connection_of_mine"):
        certify(NoSuchClient())
