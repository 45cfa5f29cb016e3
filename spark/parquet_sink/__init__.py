"""Writing Parquet exactly once: staged by tasks, made visible per checkpoint by one rename.

Holds no protocol: task loops and committers call these classes. Imports pyarrow, never pyspark.
"""

from __future__ import annotations

from epochgate.spark.files.checkpoint_directory import checkpoint_name
from epochgate.spark.parquet_sink.commit_result import CommitResult
from epochgate.spark.parquet_sink.committable import Committable
from epochgate.spark.parquet_sink.committer import ParquetCommitter
from epochgate.spark.parquet_sink.errors import (
    CommitConflict,
    CommitOutOfOrder,
    CommittableDamaged,
    CommittableMissing,
    DiskFull,
    OtherFileSystem,
    OutputSchemaChanged,
    ReservedColumn,
    TargetAhead,
    TargetBehind,
    TargetCompacted,
    TargetDamaged,
    TargetLocked,
    TargetNotEmpty,
    TargetNotWritable,
    TargetOfAnotherJob,
    TargetTakenOver,
    TargetUnreachable,
    TargetVersionUnknown,
)
from epochgate.spark.parquet_sink.object_target import ObjectTarget
from epochgate.spark.parquet_sink.ownership import working_directory_of
from epochgate.spark.parquet_sink.partitions import PartitioningChanged, PartitionUnusable
from epochgate.spark.parquet_sink.sink import ParquetSink
from epochgate.spark.parquet_sink.staging import StagingWriter, StagingWriterBroken
from epochgate.spark.parquet_sink.target import ParquetTarget

__all__ = [
    "CommitConflict",
    "CommitOutOfOrder",
    "CommitResult",
    "Committable",
    "CommittableDamaged",
    "CommittableMissing",
    "DiskFull",
    "ObjectTarget",
    "OtherFileSystem",
    "OutputSchemaChanged",
    "ParquetCommitter",
    "ParquetSink",
    "ParquetTarget",
    "PartitionUnusable",
    "PartitioningChanged",
    "ReservedColumn",
    "StagingWriter",
    "StagingWriterBroken",
    "TargetAhead",
    "TargetBehind",
    "TargetCompacted",
    "TargetDamaged",
    "TargetLocked",
    "TargetNotEmpty",
    "TargetNotWritable",
    "TargetOfAnotherJob",
    "TargetTakenOver",
    "TargetUnreachable",
    "TargetVersionUnknown",
    "checkpoint_name",
    "working_directory_of",
]
