"""What is read: a file's share that one subtask takes at a time, and how far it has come.

Decides: the plain forms in which splits, positions and the source's layout travel in events and
checkpoints. Leaves to others: who makes splits (`enumeration`), who reads them (`reader`).
Pure values; used on the driver and in tasks.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import msgpack
import pyarrow as pa

from epochgate.spark.files.errors import IncompatibleState

Format = Literal["parquet", "csv", "jsonl"]
Compression = Literal["none", "gzip"]

LAYOUT_VERSION = 1


@dataclass(frozen=True)
class FileSplit:
    """A share of one file: row groups `start` to `end` (Parquet) or bytes `start` to `end`.

    `end` is exclusive. A record of a CSV or JSON lines file belongs to the split in which its first
    byte lies. A compressed file is one split, whose bytes count in the compressed file.
    `size_bytes`, `modified_ns` and `checksum` are those of the whole file when it was enumerated;
    no checksum for splits of an earlier release. `delivery` counts the contents of one path.
    """

    path: str
    format: Format
    compression: Compression
    size_bytes: int
    modified_ns: int
    start: int
    end: int
    checksum: int | None = None
    delivery: int = 1

    @property
    def split_id(self) -> str:
        """Names the split: the same file gives the same ids in every run."""
        unit = "groups" if self.format == "parquet" else "bytes"
        again = "" if self.delivery == 1 else f"&delivery={self.delivery}"
        return f"{self.path}#{unit}={self.start}-{self.end}{again}"

    def to_list(self) -> list[Any]:
        """A list of plain values, for msgpack."""
        return [
            self.path,
            self.format,
            self.compression,
            self.size_bytes,
            self.modified_ns,
            self.start,
            self.end,
            self.checksum,
            self.delivery,
        ]

    @classmethod
    def from_list(cls, values: Sequence[Any]) -> FileSplit:
        """Inverse of `to_list`; `ValueError` for anything else."""
        path, file_format, compression, size_bytes, modified_ns, start, end, *rest = values
        if file_format not in ("parquet", "csv", "jsonl") or compression not in ("none", "gzip"):
            raise ValueError(f"not a split's format and compression: {file_format}, {compression}")
        return cls(
            str(path),
            file_format,
            compression,
            int(size_bytes),
            int(modified_ns),
            int(start),
            int(end),
            *rest,
        )


@dataclass(frozen=True)
class SplitPosition:
    """Where a reader continues in a split; part of the reader's state, not of the split.

    at: a row group's index (Parquet), or the byte offset at which a record begins (in the
        decompressed file, if it is compressed). skip_rows: how many rows after `at` are already
        taken. rows: all rows taken from the split so far.
    """

    at: int
    skip_rows: int = 0
    rows: int = 0

    def to_list(self) -> list[int]:
        """A list of plain values, for msgpack."""
        return [self.at, self.skip_rows, self.rows]

    @classmethod
    def from_list(cls, values: Sequence[Any]) -> SplitPosition:
        """Inverse of `to_list`; `ValueError` for anything else."""
        at, skip_rows, rows = values
        return cls(int(at), int(skip_rows), int(rows))


@dataclass(frozen=True)
class SkippedFile:
    """A file, or the rest of a split, that was left out because it could not be read."""

    path: str
    split_id: str
    position: str
    reason: str

    def to_list(self) -> list[str]:
        """A list of plain values, for msgpack."""
        return [self.path, self.split_id, self.position, self.reason]

    @classmethod
    def from_list(cls, values: Sequence[Any]) -> SkippedFile:
        """Inverse of `to_list`; `ValueError` for anything else."""
        path, split_id, position, reason = values
        return cls(str(path), str(split_id), str(position), str(reason))


@dataclass(frozen=True)
class SourceLayout:
    """What all files of a source have in common; fixed by the enumeration, sent to each reader.

    `schema` is the files' own; `projection` names the columns to read, in order, or none for all.
    """

    format: Format
    schema: pa.Schema
    header: bool = True
    delimiter: str = ","
    projection: tuple[str, ...] | None = None

    @property
    def output_schema(self) -> pa.Schema:
        """The schema of the batches that a reader yields."""
        if self.projection is None:
            return self.schema
        return pa.schema([self.schema.field(name) for name in self.projection])

    def to_bytes(self) -> bytes:
        """A versioned msgpack form."""
        values = [
            LAYOUT_VERSION,
            self.format,
            self.schema.serialize().to_pybytes(),
            self.header,
            self.delimiter,
            None if self.projection is None else list(self.projection),
        ]
        packed: bytes = msgpack.packb(values)
        return packed

    @classmethod
    def from_bytes(cls, data: bytes) -> SourceLayout:
        """Inverse of `to_bytes`; `IncompatibleState` for another version."""
        version, *values = msgpack.unpackb(data)
        if version != LAYOUT_VERSION:
            raise IncompatibleState("source layout", version, LAYOUT_VERSION)
        file_format, schema, header, delimiter, projection = values
        return cls(
            file_format,
            pa.ipc.read_schema(pa.py_buffer(schema)),
            header,
            delimiter,
            None if projection is None else tuple(projection),
        )
