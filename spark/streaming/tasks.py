"""The task of a batch: stage its rows by the sink's writer, and say what it has staged.

Decides under which run and attempt: every try of a batch has a run of its own, and every attempt of
a task the id that Spark gives it, so that no two ever share a name. An attempt that raises removes
what it has staged; what one leaves that is killed, the commit sweeps. Runs in the task, on its only
thread.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql.datasource import WriterCommitMessage

from epochgate.runtime import OperatorContext
from epochgate.spark.streaming.errors import NoQuery
from epochgate.spark.streaming.identity import BATCH_ID, QUERY_ID, run_id
from epochgate.spark.streaming.targets.target import Agreed, BatchTarget, told_of


@dataclass
class StagedPart(WriterCommitMessage):
    """The part that one task has staged; Spark passes on that of the attempt that counts."""

    query: str
    batch: int
    run: str
    task: int
    committables: list[Any]


def batch_of(context: TaskContext) -> tuple[str, int]:
    """The query and the batch that this task is of. Raises NoQuery."""
    query, batch = context.getLocalProperty(QUERY_ID), context.getLocalProperty(BATCH_ID)
    if query is None or batch is None:
        raise NoQuery("the task belongs to no streaming query: Spark has set no query id for it")
    return query, int(batch)


def stage(
    target: BatchTarget,
    agreed: Agreed,
    nonce: str,
    batches: Iterator[pa.RecordBatch],
    of: tuple[str, int] | None = None,
) -> StagedPart:
    """Stage the rows. `of`: query and batch, where Spark does not say them. Raises NoQuery,
    ColumnsDiffer.
    """
    context = TaskContext.get()
    if context is None:
        raise NoQuery("rows are staged in a task, and this is none")
    query, batch = of or batch_of(context)
    run = run_id(query, batch, nonce)
    wishes: list[Any] = []
    writer = target.sink.create_writer(
        OperatorContext(
            operator_id="sink",
            subtask=context.partitionId(),
            attempt=context.taskAttemptId(),
            parallelism=context.partitionId() + 1,
            run_id=run,
            send_to_coordinator=wishes.append,
        ),
        None,
    )
    try:
        with told_of(target.shown):
            for rows in batches:
                if not writer.may_write(rows):
                    # All tasks have batches of one schema, so the wish of one is that of all.
                    writer.handle_event(["schema", agreed.schema or wishes[-1][1], *agreed.told])
                    writer.may_write(rows)
                writer.write(rows)
            committables = writer.prepare_commit(batch + 1)
    finally:
        writer.close()
    return StagedPart(query, batch, run, context.partitionId(), committables)
