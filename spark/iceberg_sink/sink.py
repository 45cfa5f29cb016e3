"""The Iceberg sink: files staged by tasks in the table's directory, and shown by one commit.

Puts together what the other modules decide. Runs in tasks and on the driver; tasks need pyarrow
alone, since the driver tells them where the table lies.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from epochgate.runtime import (
    Committer,
    CoordinatorProvider,
    OperatorContext,
    SinkStart,
)
from epochgate.runtime.filesystem import FileSystem
from epochgate.runtime.objects.client import ObjectStore, open_url
from epochgate.spark.counting_sink import CountingSink
from epochgate.spark.files.evolution import SchemaEvolution
from epochgate.spark.iceberg_sink.merging import MergingIcebergTarget
from epochgate.spark.iceberg_sink.table import IcebergTable
from epochgate.spark.iceberg_sink.target import IcebergTarget
from epochgate.spark.parquet_sink.schema_coordinator import SchemaProvider
from epochgate.spark.parquet_sink.staging import ROLL_BYTES
from epochgate.spark.tables.committer import MergingCommitter, TableCommitter
from epochgate.spark.tables.merge import Merge
from epochgate.spark.tables.merging_writer import MergingWriter
from epochgate.spark.tables.transforms import require_transformable, transforms_of
from epochgate.spark.tables.writer import TableSinkWriter
from epochgate.spark.values.fitting import require_held
from epochgate.spark.values.formats import ICEBERG


class IcebergCommitter(TableCommitter[IcebergTarget]):
    """Commits to a table that was claimed before."""


class MergingIcebergCommitter(MergingCommitter[IcebergTarget], IcebergCommitter):
    """Merges into a table that was claimed before."""


@dataclass(frozen=True)
class IcebergSink(CountingSink):
    """Writes to the table `table`, such as "sales.events", of a catalog that pyiceberg knows.

    properties: of the catalog, beside those that its configuration has; kept on the driver's side
    of what is printed, as they may hold passwords. file_bytes: a file ends once it is as large, or
    with its checkpoint. evolution: "add" lets new columns become columns of the table, "widen" also
    types wider ones. partition_by: the transforms of a new table's partitions, such as "day(at)",
    "bucket(16,id)" or a column's name; those of one that is there if none are given. merge: rows
    replace those of the same key, in columns that stay. `open_table`, `files` and `open_objects`:
    with what it writes, for tests.
    """

    catalog: str
    table: str
    properties: Mapping[str, str] = field(default_factory=dict, repr=False)
    file_bytes: int = ROLL_BYTES
    evolution: SchemaEvolution = "none"
    open_table: Callable[[str, str, Mapping[str, str]], IcebergTable] = IcebergTable
    files: FileSystem | None = None
    open_objects: Callable[[str], ObjectStore] = open_url
    partition_by: tuple[str, ...] = ()
    merge: Merge | None = None

    def __post_init__(self) -> None:
        """Raises MergeUnusable."""
        if self.merge is not None:
            self.merge.require_possible("driver", self.evolution)

    def create_writer(self, context: OperatorContext, state: bytes | None) -> TableSinkWriter:
        """It has no state: what is not handed over is read again by the attempt that goes back."""
        if self.merge is not None:
            return MergingWriter(
                ICEBERG,
                context,
                self.file_bytes,
                self.merge,
                transforms=True,
                open_objects=self.open_objects,
            )
        return TableSinkWriter(
            ICEBERG,
            context,
            self.file_bytes,
            evolution=self.evolution,
            transforms=True,
            open_objects=self.open_objects,
        )

    def create_committer(self, start: SinkStart) -> IcebergCommitter:
        """Claim the table; raises what `IcebergTarget.claim` raises, CatalogUnusable or
        ExtraMissing.
        """
        target = self._target(start)
        try:
            target.claim(start.restored_checkpoint, start=start)
            if self.merge is not None:
                return MergingIcebergCommitter(target)
            return IcebergCommitter(target)
        except BaseException:
            target.release()
            raise

    def _target(self, start: SinkStart) -> IcebergTarget:
        def opened() -> IcebergTable:
            return self.open_table(self.catalog, self.table, self.properties)

        of: Any = (opened, start.job_id, start.run_id)
        given: dict[str, Any] = {
            "files": self.files,
            "open_objects": self.open_objects,
            "partition_by": self.partition_by,
        }
        if self.merge is not None:
            return MergingIcebergTarget(*of, merge=self.merge, **given)
        return IcebergTarget(*of, evolution=self.evolution, **given)

    def accepts(self, schema: pa.Schema) -> None:
        """Raises TypeNotInTable, ColumnNeverFits, PartitionUnusable, what the catalog raises, and
        what `Merge.accepts` raises.
        """
        ICEBERG.accepts(schema)
        if self.merge is not None:
            self.merge.accepts(schema)
            self.merge.require_comparable(ICEBERG.schema(schema))
        if self.evolution != "none":
            return  # The columns may change until the rows are there.
        require_transformable(ICEBERG.schema(schema), transforms_of(self.partition_by))
        table = self.open_table(self.catalog, self.table, self.properties)
        try:
            if table.load():
                require_held(table.schema(), schema)
        finally:
            table.close()

    def create_coordinator(self, operator_id: str, committer: Committer) -> CoordinatorProvider:
        """Of the schema: that of the table, or else of the first batch.

        Raises TypeError for a committer of another sink.
        """
        if not isinstance(committer, IcebergCommitter):
            raise TypeError(f"an IcebergSink has no {type(committer).__name__}")
        target = committer.target
        return SchemaProvider(
            operator_id, target.schema(), self.evolution, target.told(), ICEBERG.rules
        )
