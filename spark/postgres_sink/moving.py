"""Moving staged rows into a table of PostgreSQL: the statements, and the transactions around them;
those of an upsert are in `merging`.

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
from epochgate.spark.postgres_sink.merging import Merging
from epochgate.spark.postgres_sink.part import Part
from epochgate.spark.tables.merge import KeyAmbiguous

_ALTERING = """
    with places as (
        select to_regclass(%(name)s) as place
        union select relid from pg_partition_tree(to_regclass(%(name)s))
    )
    select 'trigger ' || quote_ident(tgname) from pg_trigger join places on place = tgrelid
    where not tgisinternal and tgenabled in ('O', 'A') and tgtype & %(events)s <> 0
        and (tgtype & 3 = 3 or tgtype & 64 = 64)
    union
    select 'rule ' || quote_ident(rulename) from pg_rewrite join places on place = ev_class
    where ev_type = any(%(rules)s) and ev_enabled in ('O', 'A')
    order by 1"""
"""Triggers before, or instead of, an event of each row (3: row and before; 64: instead), and rules;
also those of partitions.
"""
_INSERTION = {"events": 4, "rules": ["3"]}
_ANY_CHANGE = {"events": 4 | 8 | 16, "rules": ["2", "3", "4"]}
"""Also deletes (8; 4) and updates (16; 2)."""


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
        merging: Merging | None = None,
    ) -> None:
        self._merging = merging
        self._dsn, self._relation = dsn, Relation(table)
        self._shown = f"the PostgreSQL table {self._relation.name}"
        self._rows_per_statement, self._open_connection = rows_per_statement, open_connection
        self._key: dict[str, Any] = {"job": job_id, "target": table, "run": run_id}
        self._is_told, self._evolution = False, evolution
        self._altering: list[str] = []

    def _move_all(self, run: Run, parts: Sequence[Part], checkpoint: int) -> int:
        """Move or merge the rows of these parts. Return how many more rows the table has. Raises
        RowsMissing, RowsLeftOut or KeyAmbiguous.
        """
        self._grow(run, parts)
        if self._merging is not None:
            return self._merge_all(run, self._merging, parts, checkpoint)
        rows = sum(part.rows for part in parts)
        moved = [self._move(run, some, checkpoint) for some in self._statements(parts)]
        taken, given = sum(one for one, _ in moved), sum(one for _, one in moved)
        if given != rows:
            raise RowsMissing(self._relation.name, checkpoint, rows, given)
        if taken != given:
            names = self._names_altering(run)
            where = f"checkpoint {checkpoint}"
            raise RowsLeftOut(self._relation.name, where, given, taken, 0, names)
        return rows

    def _merge_all(self, run: Run, merging: Merging, parts: Sequence[Part], checkpoint: int) -> int:
        if not parts:
            return 0
        rows, keys = sum(part.rows for part in parts), [part.name for part in parts]
        given = self._count(run, parts)
        if given != rows:
            raise RowsMissing(self._relation.name, checkpoint, rows, given)
        self._require_clear(run, merging, parts)
        done = merging.carry_out(run, self._statements(parts), checkpoint, is_told=self._is_told)
        if done.taken != done.expected:
            names, where = self._names_altering(run), f"checkpoint {checkpoint}"
            told = (self._relation.name, where, done.expected, done.taken, 0, names)
            raise RowsLeftOut(*told)
        run("delete from {staged} where {part} = any(%(keys)s)", keys=keys)
        return done.added

    def _count(self, run: Run, parts: Sequence[Part]) -> int:
        """The rows of these parts that are staged."""
        keys = [part.name for part in parts]
        counting = "select count(*) from {staged} where {part} = any(%(keys)s)"
        (found,) = run(counting, keys=keys).fetchone()
        return int(found)

    def _require_clear(self, run: Run, merging: Merging, parts: Sequence[Part]) -> None:
        """Raise KeyAmbiguous for rows of one key of which none is the last."""
        if key := merging.ambiguous(run, parts):
            raise KeyAmbiguous(self._shown, key)

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

    def _try_merging(self, run: Run, merging: Merging, parts: Sequence[Part]) -> None:
        done = merging.carry_out(run, self._statements(parts), 0, is_told=self._is_told)
        changed = done.expected - merging.unchanged(run, self._statements(parts))
        taken = done.taken + done.deleted
        given = done.expected + done.deleted + merging.left(run, parts)
        if taken != given or changed > 0:
            told = ("staged rows", given, taken, max(changed, 0), self._altering)
            raise RowsLeftOut(self._relation.name, *told)

    def _try(self, run: Run, parts: list[Part]) -> None:
        names, where = named(parts[0].columns), "staged rows"
        keys = [part.name for part in parts]
        given = self._count(run, parts)
        if any(name.startswith("rule") for name in self._altering):
            # PostgreSQL gives no rows back from what rules have rewritten.
            taken, changed = run(self._insertion(), names, keys=keys, checkpoint=0).rowcount, 0
        else:
            taken, changed = run(
                f"with taken as ({self._insertion()} returning {{names}}) select"
                " (select count(*) from taken), (select count(*) from ("
                "select row({names})::text from {staged} where {part} = any(%(keys)s)"
                " except all select row({names})::text from taken) as changed)",
                names,
                keys=keys,
                checkpoint=0,
            ).fetchone()
        if taken != given or changed:
            raise RowsLeftOut(self._relation.name, where, given, taken, changed, self._altering)

    def _names_altering(self, run: Run) -> list[str]:
        """The triggers and rules that may leave out or change rows."""
        name = self._relation.table.as_string(None)
        of = _INSERTION if self._merging is None else _ANY_CHANGE
        return [row[0] for row in run(_ALTERING, name=name, **of).fetchall()]

    def _insertion(self) -> str:
        """The statement that moves rows. As COPY does, it takes values of columns that the table
        numbers itself.
        """
        also, value = (", {told}", ", %(checkpoint)s") if self._is_told else ("", "")
        return (
            f"insert into {{table}} ({{names}}{also}) overriding system value"
            f" select {{names}}{value} from {{staged}} where {{part}} = any(%(keys)s)"
        )

    def _moved_after(self, run: Run, checkpoint: int) -> tuple[int, int]:
        """The newest checkpoint of which tasks have moved rows that the ledger does not count, 0
        without any, and the rows of those after this one.
        """
        found: tuple[int, int] = run(
            "select coalesce(max(checkpoint), 0), coalesce(sum(rows), 0)::bigint from {moved}"
            " where job = %(job)s and target = %(target)s and checkpoint > %(checkpoint)s",
            checkpoint=checkpoint,
        ).fetchone()
        return found

    def _can_withdraw(self, run: Run, restored: int | None) -> bool:
        """Return whether the rows say of which checkpoint of this job they are: since an older one,
        or some of the newer might have been written before the table had the column.
        """
        if not self._is_told:
            return False
        others = run("select 1 from {ledger} where target = %(target)s and job <> %(job)s limit 1")
        since = run("select 1 from {table} where {told} <= %(restored)s limit 1", restored=restored)
        return others.fetchone() is None and since.fetchone() is not None

    def _withdraw(self, run: Run, restored: int | None) -> int:
        """Delete what is newer, with its records, in the claim's transaction; how many rows of
        those that the ledger counts.
        """
        removed: int = run(
            "delete from {table} where {told} > %(restored)s", restored=restored
        ).rowcount
        removed -= self._moved_after(run, restored or 0)[1]
        run(
            "update {ledger} set rows = rows - %(removed)s, checkpoint ="
            " case when checkpoint > %(restored)s then %(restored)s else checkpoint end"
            " where job = %(job)s and target = %(target)s",
            restored=restored,
            removed=removed,
        )
        run(
            "delete from {moved} where job = %(job)s and target = %(target)s"
            " and checkpoint > %(restored)s",
            restored=restored,
        )
        return removed

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
