"""A table of PostgreSQL as the target of queries: the ledger beside it keeps each query's number.

Several queries may write to one table, and others beside them. Needs psycopg.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from typing import Any

import psycopg

from epochgate.runtime import RetryLater
from epochgate.spark.postgres_sink.database import Connect, Relation, connect, shown, with_names
from epochgate.spark.postgres_sink.part import Part
from epochgate.spark.postgres_sink.sink import ROWS_PER_STATEMENT, PostgresSink
from epochgate.spark.postgres_sink.target import PostgresTarget
from epochgate.spark.streaming.identity import prefix_of
from epochgate.spark.streaming.notes import Note, Notes
from epochgate.spark.streaming.targets.target import Agreed, BatchTarget, Staged, plain

NOTES = "epochgate_queries"


@dataclass(frozen=True)
class PostgresBatches(BatchTarget):
    """The table `table` of the database that `dsn` connects to; a batch becomes one transaction,
    also one without rows. `open_connection`: beside the driver, for tests.
    """

    dsn: str = field(repr=False)
    table: str
    rows_per_statement: int = ROWS_PER_STATEMENT
    open_connection: Connect = connect

    @property
    def shown(self) -> str:
        """Database and table, without a password."""
        return f"the table {self.table} ({shown(self.dsn)})"

    @property
    def sink(self) -> PostgresSink:
        """The sink, whose writers stage in the database."""
        return PostgresSink(self.dsn, self.table, self.rows_per_statement)

    def prepare(self) -> Agreed:
        """Make ledger and staging table."""
        self._target("").prepare()
        return Agreed()

    def notes(self) -> PostgresNotes:
        """In a table beside the ledger."""
        return PostgresNotes(self.dsn, self.table, self.open_connection)

    def number(self, query: str) -> int:
        """That of the ledger."""
        return self._target(query).last_committed() or 0

    def commit(self, staged: Staged, own: int) -> bool:
        """Move the rows, in the transaction of the ledger."""
        target = self._target(staged.query, staged.run)
        target.claim(own or None)
        parts = [Part.from_list(one) for one in plain(staged.committables)]
        target.require_accepted(parts)
        target.commit(staged.checkpoint, parts)
        return True

    def commit_write(self, staged: Staged, *, replaces: bool) -> None:
        """Move the rows; what is replaced goes in the same transaction."""
        target = self._target(staged.query, staged.run)
        target.claim(None)
        parts = [Part.from_list(one) for one in plain(staged.committables)]
        target.commit(staged.checkpoint, parts, replaces=replaces)

    def has_written(self, staged: Staged) -> bool:
        """As the ledger tells, in which each write has a row."""
        return self.number(staged.query) > 0

    def sweep(self, query: str, batch: int) -> None:
        """Delete the rows of these runs from the staging table."""
        self._target(query).remove_staged(prefix_of(query), batch)

    def _target(self, query: str, run: str = "") -> PostgresTarget:
        return PostgresTarget(
            self.dsn,
            self.table,
            query,
            run,
            rows_per_statement=self.rows_per_statement,
            open_connection=self.open_connection,
        )


class PostgresNotes:
    """A row of the table `epochgate_queries` in the schema of `table`."""

    def __init__(self, dsn: str, table: str, open_connection: Connect = connect) -> None:
        self._dsn, self._table, self._open = dsn, table, open_connection
        self._notes = Relation(table).beside(NOTES)

    def read(self) -> Notes:
        """The newest state; makes the table of notes if there is none."""
        with self._running() as run:
            return self._locked(run)

    def _locked(self, run: Callable[..., Any]) -> Notes:
        """The newest state, which no other changes until the transaction ends."""
        run("select pg_advisory_xact_lock(hashtext('epochgate'))")
        run("create table if not exists {notes} (target text primary key, state jsonb not null)")
        found = run("select state from {notes} where target = %(target)s").fetchone()
        if found is None:
            return Notes()
        return Notes.from_bytes(json.dumps(found[0]).encode(), f"the table {NOTES} of PostgreSQL")

    def exchange(self, read: Notes, queries: Mapping[str, Note]) -> None:
        """Write the next state, if the row is as it was read."""
        state = {
            "version": read.version + 1,
            "queries": {query: asdict(note) for query, note in queries.items()},
        }
        with self._running() as run:
            if self._locked(run) != read:
                raise RetryLater(f"the notes of {self._table} have changed")
            run(
                "insert into {notes} values (%(target)s, %(state)s)"
                " on conflict (target) do update set state = excluded.state",
                state=json.dumps(state),
            )

    @contextmanager
    def _running(self) -> Iterator[Any]:
        def run(text: str, **values: Any) -> Any:
            statement = with_names(text, notes=self._notes)
            return connection.execute(statement, {"target": self._table, **values})

        try:
            with self._open(self._dsn) as connection:
                yield run
        except (psycopg.OperationalError, psycopg.InterfaceError) as error:
            raise RetryLater(f"PostgreSQL ({shown(self._dsn)}): {error}") from error
