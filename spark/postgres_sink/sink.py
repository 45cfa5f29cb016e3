"""The PostgreSQL sink: rows staged in the database by tasks, and moved by one transaction.

Puts together what the other modules decide, and imports psycopg when it is needed. No coordinator:
the staging table has the target's types and constraints, so each COPY is checked by itself, and it
is on the staging table that subtasks agree where columns may grow. Runs in tasks and on the driver.
"""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from epochgate.errors import UsageError
from epochgate.runtime import (
    CommittableOperator,
    Committables,
    OperatorContext,
    RetryLater,
    SinkStart,
    SinkWriter,
    TaskCommitter,
)
from epochgate.spark.counting_sink import CountingCommitter, CountingSink
from epochgate.spark.extras import library
from epochgate.spark.files.evolution import SchemaEvolution
from epochgate.spark.parquet_sink.gathered import CommitIn
from epochgate.spark.postgres_sink.part import PassingOn, parted
from epochgate.spark.tables.merge import Merge
from epochgate.spark.values.fitting import is_of, is_text
from epochgate.spark.values.relations import require_fitting

if TYPE_CHECKING:
    from epochgate.spark.postgres_sink.database import Connect
    from epochgate.spark.postgres_sink.staging import Staging
    from epochgate.spark.postgres_sink.target import PostgresTarget

ROWS_PER_STATEMENT = 50_000


class PostgresSinkWriter(SinkWriter):
    """Stages record batches in the database."""

    def __init__(self, staging: Staging) -> None:
        self._staging = staging

    def write(self, batch: pa.RecordBatch) -> None:
        """Stage one batch; ColumnNeverFits, ValueDoesNotFit and RowsRefused end the job."""
        self._staging.write(batch)

    def prepare_commit(self, checkpoint_id: int) -> list[Any]:
        """Finish the last COPY."""
        return [part.to_list() for part in self._staging.prepare_commit()]


class PostgresCommitter(CountingCommitter):
    """Commits to a table that was claimed before."""

    def __init__(self, target: PostgresTarget) -> None:
        self.target = target
        self.rows_visible = target.rows_visible

    def open(self, run_id: str, restored: dict[int, Committables]) -> None:
        """Remove what dead attempts have staged and no checkpoint refers to."""
        kept = [parts for held in restored.values() for parts in parted(held)[0].values()]
        self.target.remove_orphans([one for parts in kept for one in parts])

    def check(self, committables: Committables) -> None:
        """Refuse, before their checkpoint is stored, rows that the database could never move."""
        staged, _ = parted(committables)
        parts = [part for of_subtask in staged.values() for part in of_subtask]
        # Where the connection breaks, the database is asked again for the next checkpoint.
        with contextlib.suppress(RetryLater):
            self.target.require_accepted(parts)

    def commit(self, checkpoint_id: int, committables: Committables) -> bool:
        """Show the checkpoint's rows, all at once, or record it where tasks have moved them; False
        if that was done. Raises RetryLater when the connection breaks.
        """
        staged, moved = parted(committables)
        is_new = self.target.commit_each(checkpoint_id, staged, moved)
        if is_new:
            rows = sum(part.rows for parts in staged.values() for part in parts)
            self.count(rows + sum(moved.values()), added=self.target.rows_added)
        return is_new


@dataclass(frozen=True)
class PostgresSink(CountingSink):
    """Writes to the table `table` of the database that `dsn` connects to.

    `dsn`: as libpq takes it; it travels to the tasks, so keep the password in a file that they have
    (`passfile=...`). `rows_per_statement`: how many rows one COPY or INSERT has at most.
    `open_connection`: of committers, for tests. `commit_in`: "tasks" to have each task move its own
    rows, in parallel. Readers then see the rows of one subtask shortly before those of another.
    `evolution`: "add" lets new columns become columns of the table, "widen" also types wider ones.
    """

    dsn: str = field(repr=False)
    table: str
    rows_per_statement: int = ROWS_PER_STATEMENT
    open_connection: Connect | None = None
    commit_in: CommitIn = "driver"
    evolution: SchemaEvolution = "none"
    merge: Merge | None = None

    def __post_init__(self) -> None:
        """Raises UsageError."""
        if self.rows_per_statement < 1:
            raise UsageError(
                f"rows_per_statement is {self.rows_per_statement}; it must be 1 or more"
            )
        if self.merge is not None:
            self.merge.require_possible(self.commit_in)

    def create_writer(self, context: OperatorContext, state: bytes | None) -> PostgresSinkWriter:
        """It has no state: what is not handed over is read again by the attempt that goes back."""
        _require_library()
        from epochgate.spark.postgres_sink.staging import Staging

        identity = (context.run_id, context.subtask, context.attempt)
        rows_max = self.rows_per_statement
        return PostgresSinkWriter(
            Staging(self.dsn, self.table, *identity, rows_max, self.evolution, self.merge)
        )

    @property
    def has_task_committer(self) -> bool:
        """True if `commit_in` is "tasks"."""
        return self.commit_in == "tasks"

    def create_task_committer(self, context: OperatorContext) -> TaskCommitter:
        """Of the rows of one subtask."""
        _require_library()
        from epochgate.spark.postgres_sink.database import connect
        from epochgate.spark.postgres_sink.task_committer import PostgresTaskCommitter

        opening = self.open_connection or connect
        return PostgresTaskCommitter(
            self.dsn, self.table, context.run_id, self.rows_per_statement, opening, self.evolution
        )

    def post_commit_topology(self) -> Sequence[CommittableOperator]:
        """Behind the tasks' committers: how many rows each subtask has moved."""
        return (PassingOn(),) if self.has_task_committer else ()

    def accepts(self, schema: pa.Schema) -> None:
        """Raises ColumnNeverFits, and where columns may grow TypeNotInTable or EvolutionRefused; of
        texts, each value is looked at when it is there.
        """
        _require_library()
        from epochgate.spark.postgres_sink.database import DatabaseError, Relation, types_of
        from epochgate.spark.postgres_sink.growing import changes

        try:
            columns = types_of(self.dsn, Relation(self.table))
        except DatabaseError:
            return  # The claim tells what is wrong with the database; tasks look again.
        if self.merge is not None:
            self.merge.accepts(schema)
        looked_at = pa.schema(
            [one for one in schema if one.name not in columns or not is_of(is_text, one.type)]
        )
        if self.evolution != "none" and columns:
            changes(columns, looked_at, self.evolution)
            return
        for one in looked_at:
            if one.name in columns:
                require_fitting(one.type, one.name, columns[one.name])

    def create_committer(self, start: SinkStart) -> PostgresCommitter:
        """Claim the table; raises what `PostgresTarget.claim` raises, or ExtraMissing."""
        _require_library()
        from epochgate.spark.postgres_sink.database import connect
        from epochgate.spark.postgres_sink.target import PostgresTarget

        target = PostgresTarget(
            self.dsn,
            self.table,
            start.job_id,
            start.run_id,
            rows_per_statement=self.rows_per_statement,
            open_connection=self.open_connection or connect,
            evolution=self.evolution,
            merge=self.merge,
        )
        target.claim(start.restored_checkpoint, may_withdraw=start.may_withdraw, start=start)
        return PostgresCommitter(target)


def _require_library() -> None:
    library("psycopg", what="writing to PostgreSQL", extra="postgres")
