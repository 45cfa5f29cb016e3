"""Reading files in splits: enumeration, assignment, reading, and the user's transform.

Holds no protocol: coordinators and task loops call these classes. Imports pyarrow, never pyspark.
"""

from __future__ import annotations

from epochgate.spark.files.dialect import Dialect
from epochgate.spark.files.enumeration import FileEnumeration
from epochgate.spark.files.errors import (
    BadFile,
    BadRow,
    DelimiterDoubtful,
    FileChanged,
    IncompatibleState,
    MixedFormats,
    SchemaChanged,
    SourceEmpty,
    SourceMissing,
    SourceUnreadable,
    TransformFailed,
    UnknownFormat,
)
from epochgate.spark.files.reader import ReadBatch, SplitReader
from epochgate.spark.files.split import FileSplit, SkippedFile, SourceLayout, SplitPosition
from epochgate.spark.files.transform import BatchTransform, TransformFunction

__all__ = [
    "BadFile",
    "BadRow",
    "BatchTransform",
    "DelimiterDoubtful",
    "Dialect",
    "FileChanged",
    "FileEnumeration",
    "FileSplit",
    "IncompatibleState",
    "MixedFormats",
    "ReadBatch",
    "SchemaChanged",
    "SkippedFile",
    "SourceEmpty",
    "SourceLayout",
    "SourceMissing",
    "SourceUnreadable",
    "SplitPosition",
    "SplitReader",
    "TransformFailed",
    "TransformFunction",
    "UnknownFormat",
]
