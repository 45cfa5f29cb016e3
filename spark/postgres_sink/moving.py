"""Moving staged rows into a table of PostgreSQL: the statements, and the transactions around them.

Decides how many rows a statement has, that rows which are missing or left out are noticed, and what
an error of the server means. Leaves to others who may move rows, and what is recorded with them.
Runs on the driver, and in tasks that commit.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from typing import Any

import psycopg
from psycopg import sql

from epochgate.runtime import RetryLater
from epochgate.spark.files.evolution import SchemaEvolution
from epochgate.spark.postgres_sink.database import Connect, Relation, Run, running, shown
from epochgate.spark.postgres_sink.errors import RowsLeftOut, RowsMissing, RowsRefused
from epochgate.spark.postgres_sink.growing import grow_table
from epochgate.spark.postgres_sink.part import Part

_ALTERING = """
    with places as (
        select to_regclass(%(name)s) as place
        union select relid from pg_partition_tree(to_regclass(%(name)s))
    )
    select 'trigger ' || quote_ident(tgname) from pg_trigger join places on place = tgrelid
    where not tgisinternal and tgenabled in ('O', 'A') and (tgtype & 7 = 7 or tgtype & 68 = 68)
    union
    select 'rule ' || quote_ident(rulename) from pg_rewrite join places on place = ev_class
    where ev_type = '3' and ev_enabled in ('O', 'A')
    order by 1"""
"""Triggers before, or instead of, the insertion of each row (7: row, before and insert; 68: instead
and insert), and rules for insertions; also those of partitions.
"""


class TableRows:
    """The rows of a table as one run of one job moves them."""

    def __init__(
        self,
        dsn: str,
        table: str,
        job_id: str,
        run_id: str,
        rows_per_statement: int,
        open_connection: Connect,
        evolution: SchemaEvolution = "none",
    ) -> None:
        self._dsn, self._relation = dsn, Relation(table)
        self._shown = f"the PostgreSQL table {self._relation.name}"
        self._rows_per_statement, self._open_connection = rows_per_statement, open_connection
        self._key: dict[str, Any] = {"job": job_id, "target": table, "run": run_id}
        self._is_told, self._evolution = False, evolution

    def _move_all(self, run: Run, parts: Sequence[Part], checkpoint: int) -> None:
        """Move the rows of these parts. Raises RowsMissing or RowsLeftOut."""
        self._grow(run, parts)
        rows = sum(part.rows for part in parts)
        moved = [self._move(run, some, checkpoint) for some in self._statements(parts)]
        taken, given = sum(one for one, _ in moved), sum(one for _, one in moved)
        if given != rows:
            raise RowsMissing(self._relation.name, checkpoint, rows, given)
        if taken != given:
            names = self._names_altering(run)
            where = f"checkpoint {checkpoint}"
            raise RowsLeftOut(self._relation.name, where, given, taken, 0, names)

    def _grow(self, run: Run, parts: Sequence[Part]) -> None:
        """Let the table have the columns of these parts, if it may."""
        if parts and self._evolution != "none":
            names = sorted({name for part in parts for name in part.columns})
            grow_table(run, self._relation, names, self._evolution)

    def _statements(self, parts: Sequence[Part]) -> Iterator[list[Part]]:
        """Groups of parts of the same columns, of at most `rows_per_statement` rows or one part."""
        some: list[Part] = []
        rows = 0
        for part in sorted(parts, key=lambda one: one.columns):
            rows += part.rows
            if some and (rows > self._rows_per_statement or part.columns != some[0].columns):
                yield some
                some, rows = [], part.rows
            some.append(part)
        if some:
            yield some

    def _move(self, run: Run, parts: list[Part], checkpoint: int) -> tuple[int, int]:
        """Move the rows. Return how many of them the table has taken, and how many were staged."""
        keys = [part.name for part in parts]
        names = named(parts[0].columns)
        taken = run(self._insertion(), names, keys=keys, checkpoint=checkpoint).rowcount
        given = run("delete from {staged} where {part} = any(%(keys)s)", keys=keys).rowcount
        return taken, given

    def _names_altering(self, run: Run) -> list[str]:
        """The triggers and rules that may leave out or change rows."""
        name = self._relation.table.as_string(None)
        return [row[0] for row in run(_ALTERING, name=name).fetchall()]

    def _insertion(self) -> str:
        """The statement that moves rows. As COPY does, it takes values of columns that the table
        numbers itself.
        """
        also, value = (", {told}", ", %(checkpoint)s") if self._is_told else ("", "")
        return (
            f"insert into {{table}} ({{names}}{also}) overriding system value"
            f" select {{names}}{value} from {{staged}} where {{part}} = any(%(keys)s)"
        )

    def _runner(self, connection: psycopg.Connection[Any]) -> Run:
        return running(connection, self._relation, self._key)

    @contextlib.contextmanager
    def _transaction(self, where: str = "dead attempts") -> Iterator[Run]:
        """One transaction, on a connection of its own, so that a broken one is not met again."""
        with self._translating(where), self._open_connection(self._dsn) as connection:
            yield self._runner(connection)

    @contextlib.contextmanager
    def _translating(self, where: str) -> Iterator[None]:
        try:
            yield
        except (psycopg.OperationalError, psycopg.InterfaceError) as error:
            raise RetryLater(f"PostgreSQL ({shown(self._dsn)}): {error}") from error
        except psycopg.Error as error:
            raise RowsRefused(self._relation.name, where, str(error)) from error


def named(columns: Sequence[str]) -> sql.Composed:
    """The columns as they are named in a statement."""
    return sql.SQL(", ").join(map(sql.Identifier, columns))
