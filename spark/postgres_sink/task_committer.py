"""The PostgreSQL sink's committer in a task: moves the rows of its subtask into the table, in one
transaction for each checkpoint and subtask, with a record of it.

Decides by the ledger's row who may: the run of the last claim. Its row is locked as a commit on the
driver locks it, but shared, so that tasks do not wait for each other: a claim waits for the tasks
that have it, and later tasks find the successor's run. The record, whose key is checkpoint and
subtask, makes one of several attempts move the rows. Runs on the task's only thread.

    select checkpoint from LEDGER where newest run = mine for share      1 row, or taken over
    insert into MOVED (7, subtask 2) on conflict do nothing              1 row, or done before
    insert into TABLE select ... from STAGED where part in (...)
    delete from STAGED where part in (...)
"""

from __future__ import annotations

from collections.abc import Sequence

from epochgate.runtime import CommitRequest, TaskCommitter
from epochgate.spark.files.evolution import SchemaEvolution
from epochgate.spark.postgres_sink.database import Connect, types_of
from epochgate.spark.postgres_sink.moving import TableRows
from epochgate.spark.postgres_sink.part import Part
from epochgate.spark.postgres_sink.rows import CHECKPOINT
from epochgate.spark.tables.errors import TableTakenOver


class PostgresTaskCommitter(TableRows, TaskCommitter):
    """Moves the rows of one subtask."""

    def __init__(
        self,
        dsn: str,
        table: str,
        run_id: str,
        rows_per_statement: int,
        open_connection: Connect,
        evolution: SchemaEvolution = "none",
    ) -> None:
        # The job is that of the ledger's row.
        super().__init__(dsn, table, "", run_id, rows_per_statement, open_connection, evolution)
        self._is_looked_at = False

    def commit(self, requests: Sequence[CommitRequest]) -> None:
        """Move the rows. Raises TableTakenOver, RowsMissing, RowsLeftOut or RowsRefused, and
        RetryLater when the connection breaks.
        """
        by_part: dict[tuple[int, int], list[CommitRequest]] = {}
        for request in requests:
            by_part.setdefault((request.checkpoint_id, request.subtask), []).append(request)
        for (checkpoint, subtask), asked in by_part.items():
            parts = [Part.from_list(request.committable) for request in asked]
            if not self._commit(checkpoint, subtask, parts):
                for request in asked:
                    request.already_committed()

    def _commit(self, checkpoint: int, subtask: int, parts: Sequence[Part]) -> bool:
        self._look()
        with self._transaction(f"checkpoint {checkpoint}") as run:
            found = run(
                "select job, checkpoint from {ledger} where target = %(target)s"
                " and runs[cardinality(runs)] = %(run)s for share"
            ).fetchone()
            if found is None:
                raise TableTakenOver(self._shown, self._key["run"])
            self._key["job"], last = found
            if last is not None and last >= checkpoint:
                return False
            is_new = run(
                "insert into {moved} values"
                " (%(job)s, %(target)s, %(checkpoint)s, %(subtask)s, %(rows)s)"
                " on conflict do nothing",
                checkpoint=checkpoint,
                subtask=subtask,
                rows=sum(part.rows for part in parts),
            ).rowcount
            if is_new:
                self._move_all(run, parts, checkpoint)
            return bool(is_new)

    def _look(self) -> None:
        """Look for the table's column of checkpoints, once: it stays while rows are staged."""
        if not self._is_looked_at:
            with self._translating(self._shown):
                self._is_told = CHECKPOINT in types_of(self._dsn, self._relation)
            self._is_looked_at = True
