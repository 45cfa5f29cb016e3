"""The unit of reading: a file's share that one subtask takes at a time, and how far it has come.

Decides: the plain forms in which splits, positions and the source's layout travel in events and
checkpoints. Leaves to others: who makes splits (`enumeration`), who reads them (`reader`).
Pure values; used on the driver and in tasks.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any, Final, Literal, get_args

import msgpack
import pyarrow as pa

from epochgate.spark.files.compression import Compression
from epochgate.spark.files.dialect import Dialect
from epochgate.spark.files.errors import IncompatibleState
from epochgate.spark.files.rescuing import RESCUED
from epochgate.spark.files.source_columns import SourceColumns, counts_rows, schema_of, without

Format = Literal["parquet", "orc", "avro", "binary", "csv", "jsonl", "json", "xml", "excel", "text"]
TYPED: Final = ("parquet", "orc", "avro", "binary")
"""Formats whose files tell their types, and have chunks of rows."""
DOCUMENTS: Final = ("json", "xml", "excel")
"""Formats whose records are read as JSON lines, each file in one piece."""
OF_TEXTS: Final = ("xml", "excel")
"""Those of them that do not tell texts and other values apart as JSON does."""

LAYOUT_VERSION = 5
_READABLE_LAYOUTS = (1, 2, 3, 4, LAYOUT_VERSION)
_ADDED_AT = 3


@dataclass(frozen=True)
class FileSplit:
    """A share of one file: chunks `start` to `end`, as row groups of Parquet, or bytes.

    `end` is exclusive. A record of a CSV or JSON lines file belongs to the split in which its first
    byte lies. A compressed file is one split, whose bytes count in the compressed file.
    `size_bytes`, `modified_ns` and `checksum` are those of the whole file when it was enumerated;
    no checksum for splits of an earlier release. `delivery` counts the contents of one path.
    `layout`: the index of the layout in the enumeration's list. `etag`: of an object. `groups`: the
    row groups of a Parquet file that is cut into several shares; 0 for any other file.
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
    layout: int = 0
    etag: str = ""
    groups: int = 0

    @property
    def share(self) -> int | Fraction:
        """The share of its file that it is; those of one file are 1 together."""
        whole = self.groups
        if self.format not in TYPED and self.compression == "none":
            whole = self.size_bytes
        part = self.end - self.start
        return Fraction(part, whole) if part < whole else 1

    def bytes_left(self, position: SplitPosition | None) -> int:
        """Count the bytes of the file that a reader has to read from there on, as far as can be
        told: the position in a compressed file is one in its content.
        """
        whole = int(self.size_bytes * self.share)
        if position is None or self.compression != "none":
            return whole
        left = Fraction(max(0, self.end - max(self.start, position.at)), self.end - self.start)
        return int(whole * left)

    @property
    def split_id(self) -> str:
        """Names the split: the same file gives the same ids in every run."""
        unit = "groups" if self.format in TYPED else "bytes"
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
            self.layout,
            *([self.etag] if self.etag or self.groups else []),
            *([self.groups] if self.groups else []),
        ]

    @classmethod
    def from_list(cls, values: Sequence[Any]) -> FileSplit:
        """Inverse of `to_list`; `ValueError` for anything else."""
        path, file_format, compression, size_bytes, modified_ns, start, end, *rest = values
        known = get_args(Format), get_args(Compression)
        if file_format not in known[0] or compression not in known[1]:
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
    """The place where a reader continues in a split; part of the reader's state, not of the split.

    at: a row group's index (Parquet), or the byte offset at which a record begins (in the
        decompressed file, if it is compressed). skip_rows: how many rows after `at` are already
        taken. rows: all rows taken from the split so far. rejected: records of a text that were no
        rows.
    """

    at: int
    skip_rows: int = 0
    rows: int = 0
    rejected: int = 0

    def to_list(self) -> list[int]:
        """A list of plain values, for msgpack."""
        rejected = [self.rejected] if self.rejected else []
        return [self.at, self.skip_rows, self.rows, *rejected]

    @classmethod
    def from_list(cls, values: Sequence[Any]) -> SplitPosition:
        """Inverse of `to_list`; `ValueError` for anything else."""
        at, skip_rows, rows, *rejected = values
        return cls(int(at), int(skip_rows), int(rows), *map(int, rejected))


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
    """The properties that files of a source have in common; fixed by the enumeration, sent with
    each split.

    `schema` is the files' own, or what was asked for, where a column that is not nullable needs a
    value in each row; `partitions` has the columns that directories such as `year=2026` hold;
    `projection` names the columns to read, in order, or none for all. `takes_new_fields`: whether
    fields of JSON lines that the schema lacks are columns too. `leaves_out_others`: whether columns
    and fields that the schema lacks are left out; if neither, a file that has one is refused.
    `is_inferred`: whether the types are those of the texts of a sample, so that a text which its
    value would not print again is refused (`round_trip`). `added`: columns that say where a row
    comes from. `hinted`: the names of columns whose types a user has declared, among inferred ones.
    `rescues`: whether values that do not fit go into a column of their own.
    """

    format: Format
    schema: pa.Schema
    dialect: Dialect = field(default_factory=Dialect)
    projection: tuple[str, ...] | None = None
    partitions: pa.Schema = field(default_factory=lambda: pa.schema([]))
    takes_new_fields: bool = False
    leaves_out_others: bool = False
    is_inferred: bool = False
    added: SourceColumns = ()
    hinted: tuple[str, ...] = ()
    rescues: bool = False

    @property
    def own_schema(self) -> pa.Schema:
        """The columns of a reader's batches that files and their directories hold."""
        every = pa.schema([*self.schema, *self.partitions])
        if self.projection is None:
            return every
        return pa.schema([every.field(name) for name in self.projection if name in every.names])

    @property
    def output_schema(self) -> pa.Schema:
        """The schema of the batches that a reader yields: the added columns come last."""
        rescued = [RESCUED] if self.rescues else []
        return pa.schema([*self.own_schema, *rescued, *schema_of(self.added)])

    @property
    def counts_rows(self) -> bool:
        """True if the number of each row in its file has to be known."""
        return counts_rows(self.added)

    @property
    def numbers_rows(self) -> bool:
        """True if some row of a file without lines may have to be named by its number."""
        return self.counts_rows or not all(field.nullable for field in self.schema)

    def as_declared(self, columns: pa.Schema, is_inferred: bool = False) -> SourceLayout:
        """The layout of the same files, read as these columns; what else they have is left
        out, and refused where no user has declared the columns.
        """
        columns = without(columns, self.added, rescues=self.rescues)
        own = [field for field in columns if field.name not in self.partitions.names]
        named = [
            columns.field(field.name) if field.name in columns.names else field
            for field in self.partitions
        ]
        return replace(
            self,
            schema=pa.schema(own),
            projection=tuple(columns.names),
            partitions=pa.schema(named),
            takes_new_fields=False,
            leaves_out_others=not is_inferred,
            is_inferred=is_inferred and self.format not in TYPED,
            hinted=self.hinted if is_inferred else (),
        )

    def to_bytes(self) -> bytes:
        """A versioned msgpack form."""
        values = [
            LAYOUT_VERSION,
            self.format,
            self.schema.serialize().to_pybytes(),
            self.dialect.to_list(),
            None if self.projection is None else list(self.projection),
            self.partitions.serialize().to_pybytes(),
            self.takes_new_fields,
            self.leaves_out_others,
            self.is_inferred,
            [list(one) for one in self.added],
            list(self.hinted),
            self.rescues,
        ]
        packed: bytes = msgpack.packb(values)
        return packed

    @classmethod
    def from_bytes(cls, data: bytes) -> SourceLayout:
        """Inverse of `to_bytes`; `IncompatibleState` for another version."""
        version, *values = msgpack.unpackb(data)
        if version not in _READABLE_LAYOUTS:
            raise IncompatibleState("source layout", version, LAYOUT_VERSION)
        if version == 1:
            file_format, schema, header, delimiter, projection = values
            dialect, partitions, others = Dialect(delimiter, header=header), None, []
        else:
            file_format, schema, dialect_values, projection, partitions, *others = values
            dialect = Dialect.from_list(dialect_values)
        if len(others) > _ADDED_AT:
            added, hinted, *others[_ADDED_AT:] = others[_ADDED_AT:]
            others[_ADDED_AT:_ADDED_AT] = [tuple(map(tuple, added)), tuple(hinted)]
        return cls(
            file_format,
            pa.ipc.read_schema(pa.py_buffer(schema)),
            dialect,
            None if projection is None else tuple(projection),
            pa.schema([]) if partitions is None else pa.ipc.read_schema(pa.py_buffer(partitions)),
            *others,
        )
