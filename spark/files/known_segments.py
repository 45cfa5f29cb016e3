"""The files in which a source's known files are kept, so that a checkpoint need not hold them all.

Decides what a segment file looks like, and notices a damaged one. A segment is written once, under
a name of its own, before a checkpoint refers to it, and never changed. Leaves to `known` what is in
which segment, and to others when one is not needed any more. Used on the driver, on any thread.
"""

from __future__ import annotations

import os
import uuid
import zlib
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import msgpack

from epochgate.errors import EpochgateError, UsageError
from epochgate.runtime.filesystem import AnyPath, LocalFileSystem, WrittenOnce

PREFIX: Final = "known-"
_SUFFIX: Final = ".segment"


class SegmentLost(UsageError):
    """A segment that a checkpoint refers to is not there or damaged: path, what is wrong."""

    def __str__(self) -> str:
        return (
            f"the list of files that were taken is incomplete: {self.args[0]!r} {self.args[1]}. "
            "Put it back as it was, or start from the beginning with a new target and a new "
            "--checkpoint-dir "
            "(checkpoint_directory in Python)."
        )


class SegmentNotWritten(EpochgateError):
    """The list of known files cannot be kept: directory, reason."""

    def __str__(self) -> str:
        return (
            f"cannot keep the list of files that were taken in {self.args[0]!r}: {self.args[1]}. "
            "Nothing committed is lost. Make room, or check the permissions, then start again."
        )


@dataclass(frozen=True)
class Segment:
    """The entry of a checkpoint for a segment: its name, number of entries, and checksum."""

    name: str
    count: int
    checksum: int

    def to_list(self) -> list[Any]:
        """A list of plain values, for msgpack."""
        return [self.name, self.count, self.checksum]


BEGIN = "begin"
"""The file of what the first start of a job has passed over."""


class KnownSegments:
    """The segments of one source, in a directory beside its checkpoints."""

    def __init__(self, directory: AnyPath, files: WrittenOnce | None = None) -> None:
        self.directory = os.path.abspath(directory) if files is None else os.fspath(directory)
        self._files: WrittenOnce = LocalFileSystem() if files is None else files

    def write(self, entries: Collection[Any]) -> Segment:
        """Keep entries, plain values, durably; raises SegmentNotWritten."""
        data = zlib.compress(msgpack.packb(list(entries)), 1)
        name = f"{PREFIX}{uuid.uuid4().hex}{_SUFFIX}"
        try:
            self._files.make_directory(self.directory)
            self._files.write_bytes_durably(os.path.join(self.directory, name), data)
        except OSError as error:
            raise SegmentNotWritten(self.directory, error.strerror) from error
        return Segment(name, len(entries), zlib.crc32(data))

    def keep_begin(self, data: bytes) -> None:
        """Keep what the first start has passed over, durably. Raises SegmentNotWritten."""
        try:
            self._files.make_directory(self.directory)
            self._files.write_bytes_durably(os.path.join(self.directory, BEGIN), data)
        except OSError as error:
            raise SegmentNotWritten(self.directory, error.strerror) from error

    def begin(self) -> bytes | None:
        """Return the bytes that `keep_begin` was given; none before. Raises OSError."""
        path = os.path.join(self.directory, BEGIN)
        return self._files.read_bytes(path) if self._files.exists(path) else None

    def read(self, segment: Segment) -> Sequence[Any]:
        """The entries of a segment, as tuples; raises SegmentLost."""
        path = os.path.join(self.directory, segment.name)
        try:
            data = self._files.read_bytes(path)
        except OSError as error:
            raise SegmentLost(path, f"cannot be read ({error.strerror})") from error
        if zlib.crc32(data) != segment.checksum:
            raise SegmentLost(path, "is damaged")
        # Tuples of plain values cost the garbage collector nothing, and lists a lot.
        entries: Sequence[Any] = msgpack.unpackb(zlib.decompress(data), use_list=False)
        return entries

    def remove(self, names: Iterable[str]) -> None:
        """Remove segments that nothing refers to; one that is gone already does not matter."""
        for name in names:
            self._files.remove(os.path.join(self.directory, name))

    def names(self) -> list[str]:
        """The segments that are there, and what a crash has left of one."""
        if not self._files.exists(self.directory):
            return []
        return [name for name in self._files.list_directory(self.directory) if PREFIX in name]
