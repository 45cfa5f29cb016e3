"""A table of PostgreSQL as the target of one run of one job: its ledger row, and the commits.

Decides every rule of the commit, by one row of the ledger: the last checkpoint, and the number of
the driver that may commit. Both are compared and changed in the transaction that moves the rows, so
that rows and record are there together or not at all, and the row's lock puts drivers in an order.
Runs on the driver.

    claim: driver 4 -> 5
    commit(7): update ... set checkpoint = 7 where driver = 5 and checkpoint < 7     1 row, or none
               insert into TABLE select ... from STAGED where part in (...)
               delete from STAGED where part in (...)

Where tasks commit, they have moved the rows before, subtask by subtask, with a record of each
(`task_committer`); a commit takes the records of its checkpoint into the ledger's row.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import psycopg
from psycopg import sql

from epochgate.runtime import SinkStart
from epochgate.spark.files.evolution import SchemaEvolution
from epochgate.spark.postgres_sink.database import Connect, Run, columns_of, connect, shown
from epochgate.spark.postgres_sink.errors import DatabaseUnreachable, RowsMissing
from epochgate.spark.postgres_sink.growing import serves
from epochgate.spark.postgres_sink.merging import Merging
from epochgate.spark.postgres_sink.moving import TableRows, named
from epochgate.spark.postgres_sink.part import Part
from epochgate.spark.postgres_sink.rows import CHECKPOINT, PART
from epochgate.spark.tables.errors import TableAhead, TableBehind, TableTakenOver, TableUnusable
from epochgate.spark.tables.merge import DELETED, Merge

_COLUMNS = """
    select attname, format_type(atttypid, atttypmod) from pg_attribute
    where attrelid = to_regclass(%s) and attnum > 0 and not attisdropped and attname <> all(%s)
    order by attname"""
"""But for those that the sink adds to the staging table."""

RUNS_REMEMBERED = 16
"""The newest runs whose staged parts are looked for at each start."""
_RESTORED = "Connect to the database to which it has committed"
_ANOTHER = (
    "another table. Where checkpoints were lost, a table with a column `epochgate_checkpoint "
    "bigint`, which no other job writes, has these rows deleted, if it has rows that say they are "
    "of the restored checkpoint or before."
)


class PostgresTarget(TableRows):
    """The table as seen by one run of one job; `claim` it first."""

    def __init__(
        self,
        dsn: str,
        table: str,
        job_id: str,
        run_id: str,
        *,
        rows_per_statement: int,
        open_connection: Connect = connect,
        evolution: SchemaEvolution = "none",
        merge: Merge | None = None,
    ) -> None:
        merging = None if merge is None else Merging(merge)
        of = (dsn, table, job_id, run_id, rows_per_statement, open_connection)
        super().__init__(*of, evolution, merging)
        self._merge = merge
        self.rows_visible = self.rows_added = 0
        self._accepted: set[tuple[str, ...]] = set()

    def claim(
        self,
        restored_checkpoint: int | None,
        *,
        may_withdraw: bool = False,
        start: SinkStart | None = None,
    ) -> None:
        """Take the table for this run, which starts from `restored_checkpoint` (none: afresh).

        With `may_withdraw`, rows of newer checkpoints are deleted from a table that says which they
        are, and that no other job writes; not where rows are merged, since those that they have
        replaced are gone. `start`: says what the table has to hold.
        Makes ledger and staging table where they are missing.
        Raises DatabaseUnreachable, TableUnusable, TableAhead, TableBehind or
        BehindCheckpoint; nothing is changed then.
        """
        with self._entering() as connection:
            self._prepare(
                connection, lambda: self._remove_needless(connection, restored_checkpoint)
            )
            may_withdraw &= self._merging is None
            last = self._enter(connection, restored_checkpoint, may_withdraw=may_withdraw)
            if start is not None:
                start.require_held(self._shown, last)

    def prepare(self) -> None:
        """Make ledger and staging table where they are missing, for tasks that stage rows before
        the claim. Raises DatabaseUnreachable or TableUnusable.
        """
        with self._entering() as connection:
            self._prepare(connection)

    def last_committed(self) -> int | None:
        """The job's newest checkpoint, without a claim; none if there is none. Raises RetryLater
        when the connection breaks.
        """
        with self._transaction() as run:
            if not run(
                "select to_regclass(%(ledger)s)", ledger=self._relation.ledger.as_string(None)
            ).fetchone()[0]:
                return None
            found = run(
                "select checkpoint from {ledger} where job = %(job)s and target = %(target)s"
            ).fetchone()
        return None if found is None else found[0]

    def remove_staged(self, prefix: str, batch: int) -> None:
        """Remove the rows staged by runs that are called `prefix`NUMBER-..., up to this number."""
        with self._transaction() as run:
            run(
                "delete from {staged} where starts_with({part}, %(prefix)s)"
                " and split_part(substr({part}, length(%(prefix)s) + 1), '-', 1)::bigint"
                " <= %(batch)s",
                prefix=prefix,
                batch=batch,
            )

    @contextlib.contextmanager
    def _entering(self) -> Iterator[psycopg.Connection[Any]]:
        try:
            with self._open_connection(self._dsn) as connection:
                yield connection
        except psycopg.OperationalError as error:
            raise DatabaseUnreachable(shown(self._dsn), str(error)) from error
        except psycopg.Error as error:
            raise TableUnusable(
                self._shown,
                str(error).strip(),
                "The user of the connection has to write to the table, and to make tables in its "
                "schema: a ledger, and a staging table with the table's columns and one more, "
                f"{PART}.",
            ) from error

    def remove_orphans(self, keep: Sequence[Part]) -> int:
        """Remove the rows that earlier runs have staged and that are not in `keep`; how many.

        For use after `claim`.
        """
        with self._transaction() as run:
            removed: int = run(
                "delete from {staged} where split_part({part}, '/', 1) = any("
                "select unnest(runs) from {ledger} where job = %(job)s and target = %(target)s)"
                " and split_part({part}, '/', 1) <> %(run)s and {part} <> all(%(keep)s)",
                keep=[part.name for part in keep],
            ).rowcount
        return removed

    def require_accepted(self, parts: Sequence[Part]) -> None:
        """RowsRefused if the database would not take the statements with which these are moved:
        their columns, or the user's rights. It plans the statements, once for each set of columns
        (where types may become wider ones, each time), after changes of the table's columns, which
        it rolls back, and does not carry them out. RowsLeftOut if triggers or rules leave out or
        change rows: where there are some, the statements are carried out, and rolled back.
        RetryLater when the connection breaks.
        """
        of_each = {part.columns: part for part in parts}
        known = set() if self._evolution == "widen" else self._accepted
        for columns in of_each.keys() - known:
            with self._transaction("staged rows") as run:
                self._grow(run, [of_each[columns]])
                if self._merging is not None:
                    self._merging.explain(run, columns, is_told=self._is_told)
                else:
                    run(f"explain {self._insertion()}", named(columns), keys=[""], checkpoint=0)
                run("rollback")
            self._accepted.add(columns)
        if self._merging is not None and parts:
            with self._transaction("staged rows") as run:
                self._require_clear(run, self._merging, parts)
        if self._altering:
            with self._transaction("staged rows") as run:
                self._grow(run, parts)
                if self._merging is not None:
                    self._try_merging(run, self._merging, parts)
                else:
                    for some in self._statements(parts):
                        self._try(run, some)
                run("rollback")

    def commit(self, checkpoint: int, parts: Sequence[Part], *, replaces: bool = False) -> bool:
        """Move a completed checkpoint's rows into the table, all at once; false if that was done.
        With `replaces`, the rows that are there go in the same transaction.

        A checkpoint without rows is recorded too. Raises TableTakenOver, TableBehind,
        RowsMissing, RowsLeftOut or RowsRefused, and RetryLater when the connection breaks.
        """
        return self.commit_each(checkpoint, {0: parts}, {}, replaces=replaces)

    def commit_each(
        self,
        checkpoint: int,
        staged: Mapping[int, Sequence[Part]],
        moved: Mapping[int, int],
        *,
        replaces: bool = False,
    ) -> bool:
        """The same of subtasks; `moved`: how many rows of each its task has moved already. What a
        task has moved and not passed on is not moved again.
        """
        rows = sum(part.rows for parts in staged.values() for part in parts) + sum(moved.values())
        with self._transaction(f"checkpoint {checkpoint}") as run:
            is_new = run(
                "update {ledger} set checkpoint = %(checkpoint)s, rows = rows + %(rows)s"
                " where job = %(job)s and target = %(target)s and driver = %(driver)s"
                " and (checkpoint is null or checkpoint < %(checkpoint)s)",
                checkpoint=checkpoint,
                rows=rows if self._merging is None else 0,
            ).rowcount
            if not is_new:
                self._require_driver(run, checkpoint)
                return False
            if replaces:
                run("delete from {table}")
            by_tasks = self._end_parts(run, checkpoint)
            for subtask, given in moved.items():
                if by_tasks.get(subtask) != given:
                    found = by_tasks.get(subtask, 0)
                    raise RowsMissing(self._relation.name, checkpoint, given, found)
            left = [parts for subtask, parts in staged.items() if subtask not in by_tasks]
            added = self._move_all(run, [part for parts in left for part in parts], checkpoint)
            if self._merging is not None:
                run(
                    "update {ledger} set rows = rows + %(rows)s"
                    " where job = %(job)s and target = %(target)s",
                    rows=added,
                )
        self.rows_added = rows if self._merging is None else added
        return True

    def _end_parts(self, run: Run, checkpoint: int) -> dict[int, int]:
        """Forget what tasks have moved, since the ledger knows the checkpoint now; returns how many
        rows of each of its subtasks.
        """
        ended = run(
            "delete from {moved} where job = %(job)s and target = %(target)s"
            " and checkpoint <= %(checkpoint)s returning checkpoint, subtask, rows",
            checkpoint=checkpoint,
        ).fetchall()
        return {subtask: rows for number, subtask, rows in ended if number == checkpoint}

    def _remove_needless(self, connection: psycopg.Connection[Any], restored: int | None) -> None:
        """Remove what attempts have staged that failed, if no checkpoint waits for its commit."""
        self._runner(connection)(
            "delete from {staged} where split_part({part}, '/', 1) in ("
            "select unnest(runs) from {ledger} where job = %(job)s and target = %(target)s"
            " and coalesce(checkpoint, 0) >= %(restored)s)",
            restored=restored or 0,
        )

    def _prepare(
        self,
        connection: psycopg.Connection[Any],
        before_change: Callable[[], None] = lambda: None,
    ) -> None:
        """Make the ledger, and a staging table with the table's columns; `before_change`: called
        if these have changed.
        """
        run = self._runner(connection)
        # Two drivers that make the same table at once would be in each other's way.
        run("select pg_advisory_xact_lock(hashtext('epochgate'))")
        columns = self._columns(connection, self._relation.table)
        if not columns:
            raise TableUnusable(
                self._shown,
                "there is no such table",
                "Make it first: its columns are those that the job writes, and others that have a "
                "default.",
            )
        run(
            "create table if not exists {ledger} (job text, target text, checkpoint bigint,"
            " rows bigint not null, driver bigint not null, runs text[] not null,"
            " primary key (job, target))"
        )
        run(
            "create table if not exists {moved} (job text, target text, checkpoint bigint,"
            " subtask integer, rows bigint not null,"
            " primary key (job, target, checkpoint, subtask))"
        )
        names = [name for name, _ in columns]
        self._is_told = CHECKPOINT in names
        if self._merge is not None:
            self._require_keyed(run, self._merge, names)
        self._altering = self._names_altering(run)
        self._require_owned(run)
        found = self._columns(connection, self._relation.staged)
        if found and found != columns:
            before_change()
            if run("select 1 from {staged} limit 1").fetchone():
                self._require_serving(run)
                return
            run("drop table {staged}")
        if found != columns:
            run(
                "create table {staged} (like {table} including defaults including constraints"
                " including generated including identity, {part} text not null)"
            )
            run("create index on {staged} ({part})")
        if self._merging is not None:
            self._merging.prepare(run, self._relation.staged.as_string(None), PART)

    def _require_keyed(self, run: Run, merge: Merge, names: Sequence[str]) -> None:
        """TableUnusable for a table whose rows cannot be replaced by these keys."""
        table, keys = self._relation.name, ", ".join(merge.on)
        if lacks := [name for name in merge.columns if name not in names]:
            found = f"it has no column {lacks[0]!r}, by which rows are to be merged"
            way_on = "Name its columns in --merge-on and --merge-order (merge_on and merge_order)."
            raise TableUnusable(self._shown, found, way_on)
        if not Merging(merge).has_constraint(run, self._relation.table.as_string(None)):
            found = f"no unique constraint of it is on {keys}, by which rows are to be merged"
            way_on = f"Make one: alter table {table} add unique ({keys}); or merge on its key."
            raise TableUnusable(self._shown, found, way_on)

    def _require_owned(self, run: Run) -> None:
        """TableUnusable if the table may grow, and the user may not change it."""
        if self._evolution == "none":
            return
        owner, is_ours = run(
            "select pg_get_userbyid(relowner), pg_has_role(relowner, 'usage') from pg_class"
            " where oid = to_regclass(%(name)s)",
            name=self._relation.table.as_string(None),
        ).fetchone()
        if not is_ours:
            raise TableUnusable(
                self._shown,
                f"its columns are to grow, and its owner {owner!r} alone may change them",
                "Connect as the owner, or leave --schema-evolution (evolution in Python) out.",
            )

    def _require_serving(self, run: Run) -> None:
        """TableUnusable unless the table has the columns of staged rows, or may grow by them."""
        staged, table = (
            columns_of(run, one) for one in (self._relation.staged, self._relation.table)
        )
        if not serves(staged, table, self._evolution):
            raise TableUnusable(
                self._shown,
                "its columns have changed while rows were staged",
                "Change them back, or give the --schema-evolution (evolution in Python) with which "
                "the rows were staged; let the job end, then change them.",
            )

    def _columns(
        self, connection: psycopg.Connection[Any], table: sql.Identifier
    ) -> list[tuple[str, str]]:
        own = [PART, DELETED]
        return connection.execute(_COLUMNS, [table.as_string(None), own]).fetchall()

    def _enter(
        self, connection: psycopg.Connection[Any], restored: int | None, *, may_withdraw: bool
    ) -> int | None:
        """Become the driver; the last checkpoint that the ledger has by then."""
        run = self._runner(connection)
        claimed = run(
            "insert into {ledger} as known (job, target, rows, driver, runs)"
            " values (%(job)s, %(target)s, 0, 1, array[%(run)s])"
            " on conflict (job, target) do update"
            " set driver = known.driver + 1, runs ="
            " (known.runs || excluded.runs)[greatest(cardinality(known.runs) + 2 - %(most)s, 1):]"
            " returning driver, checkpoint, rows",
            most=RUNS_REMEMBERED,
        ).fetchone()
        assert claimed is not None, "an upsert returns its row"
        driver, last, rows = claimed
        if driver == 1:
            # Of a job of this name whose ledger was dropped, with the rows.
            run("delete from {moved} where job = %(job)s and target = %(target)s")
        newest = max(last or 0, self._moved_after(run, -1)[0])
        if newest > (restored or 0):
            if not (may_withdraw and self._can_withdraw(run, restored)):
                raise TableAhead(self._shown, newest, restored, _ANOTHER)
            rows -= self._withdraw(run, restored)
            last = None if last is None else min(last, restored or 0)
        if driver == 1 and restored is not None:
            raise TableBehind(self._shown, restored, _RESTORED)
        self._key["driver"], self.rows_visible = driver, rows + self._moved_after(run, -1)[1]
        return last  # type: ignore[no-any-return]  # a column of the ledger

    def _require_driver(self, run: Run, checkpoint: int) -> None:
        """Say why the ledger's row was left as it is, unless the checkpoint is in it."""
        found = run(
            "select driver from {ledger} where job = %(job)s and target = %(target)s"
        ).fetchone()
        if found is None:
            raise TableBehind(self._shown, checkpoint, _RESTORED)
        if found[0] != self._key["driver"]:
            raise TableTakenOver(self._shown, self._key["run"])
