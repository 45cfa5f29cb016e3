"""The committable that a writer hands over at a barrier: a finished staged file, and how to
recognise it.

Decides: names of staged and of visible files, and the plain form of a committable.
Leaves to others: writing (`staging`) and committing (`target`). Used in tasks and on the driver.

A staged file is named by subtask, attempt, sequence and run, so no two writers share a name, and
an attempt that was replaced but still writes can only add files that no committable names.
"""

from __future__ import annotations

import base64
import os
import re
import zlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from epochgate.runtime import Committables
from epochgate.runtime.filesystem import AnyPath, FileSystem, WrittenOnce
from epochgate.spark.counting_sink import read_committables
from epochgate.spark.files.checkpoint_directory import (
    CHECKPOINT_COLUMN,
    earlier_checkpoint_name,
)
from epochgate.spark.files.column_names import NameTwice, same_name
from epochgate.spark.parquet_sink.errors import (
    CommittableDamaged,
    CommittableMissing,
    ReservedColumn,
    TargetDamaged,
)

STAGED_SUFFIX = ".staged"
"""Keeps staged files out of patterns such as `**/*.parquet`."""

VISIBLE_SUFFIX = ".parquet"

_STAGED = re.compile(
    r"staged/(?P<run>[0-9A-Za-z-]+)/part-\d+-\d+-\d+-(?P=run)\.parquet\.staged"
    r"|data/(?P<place>[0-9A-Za-z-]+)/([^/=]+=[^/=]+/)*part-\d+-\d+-\d+-(?P=place)\.parquet"
)
_DIRECTORY = re.compile(r"([^/=]+=[^/=]+(/[^/=]+=[^/=]+)*)?")
_FOOTER_END_BYTES = 8
_SCHEMA_KEY = "epochgate.schema"


@dataclass(frozen=True, order=True)
class Committable:
    """One staged Parquet file that belongs to a checkpoint.

    path: relative to the target's working directory, or to the URL of a target on an object store.
    footer_crc32: of the Parquet footer, which holds every column chunk's place and size. schema_id:
    names the schema, see `schema_id`. directory: that of its partition, such as `country=DE`.
    """

    subtask: int
    attempt: int
    sequence: int
    path: str
    rows: int
    size_bytes: int
    footer_crc32: int
    schema_id: str
    directory: str = ""

    @property
    def file_name(self) -> str:
        """The file's name once it is visible, without the partition's."""
        return self.path.rpartition("/")[2].removesuffix(STAGED_SUFFIX)

    @property
    def run(self) -> str:
        """The run that has staged it, which has taken its checkpoint."""
        return run_of(self.path)

    @property
    def visible_path(self) -> str:
        """The path of the file in its checkpoint's directory."""
        return f"{self.directory}/{self.file_name}" if self.directory else self.file_name

    def to_list(self) -> list[Any]:
        """A list of plain values, for msgpack and JSON."""
        return [
            self.subtask,
            self.attempt,
            self.sequence,
            self.path,
            self.rows,
            self.size_bytes,
            self.footer_crc32,
            self.schema_id,
            *([self.directory] if self.directory else []),
        ]

    @classmethod
    def from_list(cls, values: Sequence[Any]) -> Committable:
        """Inverse of `to_list`; `ValueError` for anything else, such as a path that leads out."""
        subtask, attempt, sequence, path, rows, size_bytes, footer_crc32, schema, *more = values
        (directory,) = more or [""]
        if not isinstance(path, str) or _STAGED.fullmatch(path) is None:
            raise ValueError(f"not the path of a staged file: {path!r}")
        if not isinstance(directory, str) or _DIRECTORY.fullmatch(directory) is None:
            raise ValueError(f"not the directory of a partition: {directory!r}")
        numbers = [int(value) for value in (subtask, attempt, sequence, rows, size_bytes)]
        subtask, attempt, sequence, rows, size_bytes = numbers
        return cls(
            subtask,
            attempt,
            sequence,
            path,
            rows,
            size_bytes,
            int(footer_crc32),
            str(schema),
            directory,
        )


def run_of(path: str) -> str:
    """The run that has staged the file at a committable's path.

    >>> run_of("staged/r1/part-00003-17-000000-r1.parquet.staged")
    'r1'
    """
    return path.split("/", 2)[1]


def is_staged(path: str) -> bool:
    """Return whether a writer has given a file this path, relative to the working directory."""
    return _STAGED.fullmatch(path) is not None


def staged_path(
    run_id: str,
    subtask: int,
    attempt: int,
    sequence: int,
    *,
    in_place: bool = False,
    directory: str = "",
) -> str:
    """Return the path of a staged file, relative to the working directory; `in_place`: where it
    stays once it is committed, in the `directory` of a partition.

    >>> staged_path("r1", 3, 17, 0)
    'staged/r1/part-00003-17-000000-r1.parquet.staged'
    >>> staged_path("r1", 3, 17, 0, in_place=True)
    'data/r1/part-00003-17-000000-r1.parquet'
    >>> staged_path("r1", 3, 17, 0, in_place=True, directory="country=DE")
    'data/r1/country=DE/part-00003-17-000000-r1.parquet'
    """
    name = f"part-{subtask:05d}-{attempt}-{sequence:06d}-{run_id}.parquet"
    name = f"{directory}/{name}" if directory and in_place else name
    path = f"data/{run_id}/{name}" if in_place else f"staged/{run_id}/{name}{STAGED_SUFFIX}"
    if _STAGED.fullmatch(path) is None:
        raise ValueError(
            f"run_id={run_id!r} must consist of letters, digits and '-', and subtask={subtask}, "
            f"attempt={attempt} must not be negative"
        )
    return path


def gathered_directory(working_directory: str, checkpoint: int, run: str) -> str:
    """Return the directory where tasks gather the files of a checkpoint that this run has taken.

    >>> gathered_directory("/data/.out.epochgate", 7, "r1")
    '/data/.out.epochgate/prepared/checkpoint-000000000007-r1'
    """
    name = f"{earlier_checkpoint_name(checkpoint)}-{run}"
    return os.path.join(working_directory, "prepared", name)


def schema_id(schema: pa.Schema) -> str:
    """Eight hex digits that differ if column names, order or types do; metadata does not count."""
    bare = pa.schema([pa.field(field.name, field.type) for field in schema])
    return f"{zlib.crc32(bare.serialize().to_pybytes()):08x}"


def require_readable_columns(schema: pa.Schema) -> None:
    """Refuse columns that readers of the target, Spark with no option, could not tell apart.

    Raises ReservedColumn, or NameTwice.
    """
    for name in schema.names:
        if name.lower() == CHECKPOINT_COLUMN:
            raise ReservedColumn(name)
    if both := same_name(schema.names, tells_capitals=False):
        raise NameTwice("Spark, which reads the target", *both)


def with_written_schema(schema: pa.Schema) -> dict[str, str]:
    """Parquet metadata that keeps `schema` as it was; Parquet itself does not keep every type."""
    bare = pa.schema([pa.field(field.name, field.type) for field in schema])
    return {_SCHEMA_KEY: base64.b64encode(bare.serialize().to_pybytes()).decode()}


def written_schema(path: AnyPath | pa.NativeFile) -> pa.Schema:
    """The schema of the batches that a file was written from."""
    encoded = (pq.read_metadata(path).metadata or {})[_SCHEMA_KEY.encode()]
    return pa.ipc.read_schema(pa.py_buffer(base64.b64decode(encoded)))


def shown_schema(path: str) -> pa.Schema:
    """The same, of a file that readers see. Raises TargetDamaged."""
    try:
        return written_schema(path)
    except (OSError, ValueError, KeyError, pa.ArrowException) as error:
        what = "a Parquet file that this sink has written"
        raise TargetDamaged(path, what, repr(error), "") from error


def footer_of(files: WrittenOnce, path: AnyPath, size_bytes: int) -> bytes | None:
    """A Parquet file's footer with its length and magic; none if there is no footer."""
    end = files.read_range(path, max(0, size_bytes - _FOOTER_END_BYTES), _FOOTER_END_BYTES)
    if len(end) != _FOOTER_END_BYTES or end[4:] != b"PAR1":
        return None
    length = int.from_bytes(end[:4], "little") + _FOOTER_END_BYTES
    if length > size_bytes:
        return None
    return files.read_range(path, size_bytes - length, length)


def footer_crc32(files: WrittenOnce, path: AnyPath, size_bytes: int) -> int | None:
    """CRC-32 of what `footer_of` returns."""
    footer = footer_of(files, path, size_bytes)
    return None if footer is None else zlib.crc32(footer)


def require_intact(files: FileSystem, path: str, expected: Committable, checkpoint: int) -> None:
    """`CommittableMissing` or `CommittableDamaged` unless `path` is the file that was handed over
    for this checkpoint.
    """
    try:
        size_bytes = files.size(path)
    except FileNotFoundError:
        raise CommittableMissing(path, checkpoint) from None
    found = footer_crc32(files, path, size_bytes)
    if (size_bytes, found) != (expected.size_bytes, expected.footer_crc32):
        raise CommittableDamaged(
            path,
            f"{expected.size_bytes} bytes, footer checksum {expected.footer_crc32}",
            f"{size_bytes} bytes, footer checksum {found}",
        )


def moved(
    files: FileSystem,
    source: str,
    destination: str,
    expected: Committable,
    checkpoint: int,
    directories: set[str],
) -> bool:
    """Move a file, whatever other attempt does the same; false if it is not at `source`, or is no
    more when it moves. `directories`: those in which a file has got its name, which are to be
    synced; that of the destination joins them. Raises CommittableDamaged and OSError.
    """
    directory = os.path.dirname(destination)
    try:
        require_intact(files, source, expected, checkpoint)
        if directory not in directories:
            files.make_directory(directory)
            directories.add(directory)
        files.rename(source, destination)
    except (CommittableMissing, FileNotFoundError):
        if files.exists(destination):
            require_intact(files, destination, expected, checkpoint)
            # Who has moved it may have died before this.
            directories.add(directory)
        return False
    return True


def parsed(committables: Committables) -> list[Committable]:
    """The committables of all subtasks, as they were handed over. Raises CommittableUnreadable."""
    return read_committables(committables, Committable.from_list)


def total_rows(committables: Iterable[Committable]) -> int:
    """The rows of all of them."""
    return sum(committable.rows for committable in committables)
