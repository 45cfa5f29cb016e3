"""Stages a subtask's rows in the staging table, by COPY; one writer per subtask attempt.

Decides when a COPY ends, which is a transaction of its own, and what its rows are called: by run,
subtask, attempt and sequence, so no two writers share a name. What an attempt has staged and not
handed over is removed by a later start. Runs in a task, on its data thread.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Iterator

import psycopg
import pyarrow as pa
from psycopg import sql

from epochgate.spark.files.evolution import SchemaEvolution
from epochgate.spark.postgres_sink.database import Relation, connect, running, types_of
from epochgate.spark.postgres_sink.errors import ColumnReserved, RowsRefused
from epochgate.spark.postgres_sink.growing import grow_staged
from epochgate.spark.postgres_sink.part import Part
from epochgate.spark.postgres_sink.rows import CHECKPOINT, PART, as_csv, as_sent, slices
from epochgate.spark.tables.merge import DELETED, Merge
from epochgate.spark.values.relations import ColumnType

COPY_BYTES = 32 << 20


class Staging:
    """Rows of one attempt; a connection lasts for one COPY."""

    def __init__(
        self,
        dsn: str,
        table: str,
        run_id: str,
        subtask: int,
        attempt: int,
        rows_per_statement: int,
        evolution: SchemaEvolution = "none",
        merge: Merge | None = None,
    ) -> None:
        self._dsn, self._relation, self._rows_max = dsn, Relation(table), rows_per_statement
        self._merge = merge
        self._name = f"{run_id}/{subtask}/{attempt}"
        self._where = f"subtask {subtask}, attempt {attempt}"
        self._sequence, self._evolution = 0, evolution
        self._fitting: pa.Schema | None = None
        self._gathered: list[pa.RecordBatch] = []
        self._finished: list[Part] = []

    def write(self, batch: pa.RecordBatch) -> None:
        """Add a batch. Raises ColumnNeverFits, ValueDoesNotFit, RowsRefused, ColumnReserved, where
        columns may grow what `changes` raises, what psycopg raises when the connection breaks, and
        of rows that are merged ColumnOfMergeMissing, KeyMissing or ConditionWrong.
        """
        for name in (PART, CHECKPOINT):
            if name in batch.schema.names:
                raise ColumnReserved(self._relation.name, self._where, name)
        if self._evolution != "none":
            batch = self._held(batch)
        if self._merge is not None:
            batch = self._merge.marked(batch, self._columns, self._where)
        for piece in slices(as_sent(batch, self._columns, self._where), self._rows_max):
            rows = sum(one.num_rows for one in self._gathered) + piece.num_rows
            is_other = bool(self._gathered) and piece.schema != self._gathered[0].schema
            if rows > self._rows_max or is_other:
                self._copy()
            self._gathered.append(piece)
            if sum(one.nbytes for one in self._gathered) >= COPY_BYTES:
                self._copy()

    def _held(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """The columns that the staging table has, after it has grown for them; others have neither
        a value nor a type yet.
        """
        if batch.schema != self._fitting:
            with self._translating(), connect(self._dsn) as connection:
                run = running(connection, self._relation)
                self._columns = grow_staged(run, self._relation, batch.schema, self._evolution)
            self._fitting = batch.schema
        return batch.select([name for name in batch.schema.names if name in self._columns])

    @functools.cached_property
    def _columns(self) -> dict[str, ColumnType]:
        """Those of the table, which has them as long as rows are staged, and of what is added."""
        own = {} if self._merge is None else {DELETED: ColumnType("boolean", "bool")}
        return types_of(self._dsn, self._relation) | own

    def prepare_commit(self) -> list[Part]:
        """Stage what is left, and name all since the last call."""
        self._copy()
        finished, self._finished = self._finished, []
        return finished

    def _copy(self) -> None:
        if not self._gathered:
            return
        part = f"{self._name}/{self._sequence}"
        columns = tuple(self._gathered[0].schema.names)
        statement = sql.SQL("copy {} ({}) from stdin (format csv)").format(
            self._relation.staged, sql.SQL(", ").join(map(sql.Identifier, [*columns, PART]))
        )
        with (
            self._translating(),
            connect(self._dsn) as connection,
            connection.cursor().copy(statement) as copy,
        ):
            for batch in self._gathered:
                copy.write(as_csv(batch, part))
        rows = sum(batch.num_rows for batch in self._gathered)
        self._finished.append(Part(part, rows, columns))
        self._sequence += 1
        self._gathered = []

    @contextlib.contextmanager
    def _translating(self) -> Iterator[None]:
        try:
            yield
        except (psycopg.OperationalError, psycopg.InterfaceError):
            raise
        except psycopg.Error as error:
            raise RowsRefused(self._relation.name, self._where, str(error)) from error
