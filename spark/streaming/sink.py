"""The sink of streaming queries and DataFrames, as a data source of Spark: `format("epochgate")`.

Puts together what the other modules decide. Spark makes its objects for each batch: one in a
process beside the driver, which travels to the tasks, and another one there for `commit` and
`abort`. None of them lives in the user's driver, and none is kept.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from pyspark.sql import datasource

from epochgate.runtime.limited import limited
from epochgate.spark.streaming.batch_commit import BatchCommit, commit_limit
from epochgate.spark.streaming.errors import OptionsWrong
from epochgate.spark.streaming.identity import BatchIdentity, offsets_of
from epochgate.spark.streaming.noted_target import NotedTarget, UnnotedTarget
from epochgate.spark.streaming.options import SinkOptions, parse
from epochgate.spark.streaming.source import ReadsStreams
from epochgate.spark.streaming.targets.target import Staged
from epochgate.spark.streaming.tasks import StagedPart, stage

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.types import StructType

NAME = "epochgate"
Messages = Sequence[datasource.WriterCommitMessage | None]
if hasattr(datasource, "DataSourceStreamArrowWriter"):
    _StreamWriter: Any = datasource.DataSourceStreamArrowWriter
else:  # Spark 4.0, which gives batches of Arrow to what is a writer of Arrow, also in streams

    class _StreamWriter(  # type: ignore[misc, no-redef]  # `commit` is that of streams
        datasource.DataSourceStreamWriter, datasource.DataSourceArrowWriter
    ):
        """The writer that Spark has as one class since 4.1."""


class Sink(ReadsStreams, datasource.DataSource):
    """`df.writeStream.format("epochgate")`, once registered; the options stand in
    `epochgate.spark.streaming.options`.
    """

    @classmethod
    def name(cls) -> str:
        """Return the name that `format(...)` is given."""
        return NAME

    def writer(self, schema: StructType, overwrite: bool) -> FrameWriter:
        """Of one `df.write`. Raises OptionsWrong."""
        return FrameWriter(parse(self.options), overwrite)

    def streamWriter(  # noqa: N802  # Spark's name
        self, schema: StructType, overwrite: bool
    ) -> StreamWriter:
        """Of one batch. Raises OptionsWrong."""
        options = parse(self.options)
        if overwrite:
            raise OptionsWrong(
                "outputMode('complete') replaces the whole table with each batch, and this sink "
                "adds rows. Use append (an aggregation then needs a watermark), or foreachBatch "
                "with `once`"
            )
        if not options.location:
            raise OptionsWrong(
                'the sink needs .option("checkpointLocation", ...): a query without one gets a new '
                "id at each start, and would write its rows again"
            )
        return StreamWriter(options)


class FrameWriter(datasource.DataSourceArrowWriter):
    """One `df.write`: `write` in tasks, `commit` or `abort` beside the driver, once."""

    def __init__(self, options: SinkOptions, overwrite: bool) -> None:
        self._options, self._overwrite = options, overwrite
        self._query, self._agreed = f"write{secrets.token_hex(8)}", prepared(options)

    def write(self, iterator: Iterator[pa.RecordBatch]) -> StagedPart:
        """In a task: stage its rows."""
        return stage(self._options.target, self._agreed, "0", iterator, (self._query, 0))

    def commit(self, messages: Messages) -> None:
        """Show the rows, all at once, and in the place of others with mode "overwrite"."""
        staged = staged_by(messages, self._query, 0)
        target = UnnotedTarget(self._options.target, staged, self._overwrite)
        BatchCommit(target, timeout_s=self._options.commit_timeout_s).commit(0, 0)

    def abort(self, messages: Messages) -> None:
        """Remove what is staged: no one commits it any more."""
        target, limit = self._options.target, commit_limit(self._options.commit_timeout_s)
        limited("the removal of what is staged", limit, lambda: target.sweep(self._query, 0))


class StreamWriter(_StreamWriter):  # type: ignore[misc]  # which base there is depends on Spark
    """One try of one batch: `write` in tasks, `commit` or `abort` beside the driver."""

    def __init__(self, options: SinkOptions) -> None:
        self._options = options
        self._nonce = secrets.token_hex(4)
        # Here, since an error while the writer is pickled would be told as one of pickling.
        self._agreed = prepared(options)

    def write(self, iterator: Iterator[pa.RecordBatch]) -> StagedPart:
        """In a task: stage its rows."""
        return stage(self._options.target, self._agreed, self._nonce, iterator)

    def commit(self, messages: Messages, batch: int) -> None:
        """Show the batch, unless that was done. Raises BatchRefused, and what the target raises."""
        staged = staged_by(messages, "", batch)
        timeout_s = self._options.commit_timeout_s
        target, accepts, held = limited(
            f"the target of batch {batch}", commit_limit(timeout_s), lambda: self._begun(staged)
        )
        BatchCommit(target, timeout_s=timeout_s).commit(batch, accepts, held)

    def abort(self, messages: Messages, batch: int) -> None:
        """Do what the machine says of it: nothing, since the batch may have taken effect."""
        BatchCommit(self._noted(Staged("", batch, "", {}))).abort()

    def _begun(self, staged: Staged) -> tuple[NotedTarget, int, int]:
        options = self._options
        known = options.target.notes().read()
        code = options.accepted.code(known, staged.query, options.location, staged.batch)
        return self._noted(staged), *code

    def _noted(self, staged: Staged) -> NotedTarget:
        target, location = self._options.target, self._options.location
        identity = BatchIdentity(
            staged.query, staged.batch, location, offsets_of(location, staged.batch)
        )
        return NotedTarget(target, target.notes(), identity, lambda own: target.apply(staged, own))


def prepared(options: SinkOptions) -> Any:
    """Agree on what the target and its tasks share. Raises CallLate, and what the target raises."""
    limit = commit_limit(options.commit_timeout_s)
    return limited("the preparation of the target", limit, options.target.prepare)


def staged_by(messages: Messages, query: str, batch: int) -> Staged:
    """Read what the tasks have staged, of Spark's messages. Raises ValueError for others."""
    parts = [one for one in messages if isinstance(one, StagedPart)]
    if not parts or len(parts) != len(messages):
        raise ValueError(
            f"batch {batch} has {len(parts)} messages of tasks, and {len(messages)} tasks: this is "
            "no commit of this sink"
        )
    committables = {one.task: one.committables for one in parts}
    return Staged(query or parts[0].query, batch, parts[0].run, committables)
