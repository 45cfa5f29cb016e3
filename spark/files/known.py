"""The files that a source knows: each with what its content was when it was taken.

Decides whether a file that is found is a known one, and leaves to the enumeration what follows from
that. Lives on the driver.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from epochgate.spark.files.checkpoint_directory import checkpoint_of, earlier_checkpoint_name
from epochgate.spark.files.content import Stamp, checksum_of
from epochgate.spark.files.split import Format


@dataclass(frozen=True)
class KnownFile:
    """A file as it was last taken, or left out.

    checksum: none if it could not be read, or was taken by a release that made none. delivery: 1,
    and one more each time that the file is taken with other content.
    """

    stamp: Stamp
    checksum: int | None
    delivery: int = 1

    def is_content_of(self, path: str, stamp: Stamp, file_format: Format) -> bool:
        """Whether the file at `path` is this one; it is read if its time stamp is another.

        Raises OSError.
        """
        if stamp == self.stamp or self.checksum is None or stamp[0] != self.stamp[0]:
            return stamp == self.stamp
        return checksum_of(path, file_format) == self.checksum


class KnownFiles:
    """The known files of a source by path, in the order in which they became known."""

    def __init__(self, files: Iterable[tuple[str, KnownFile]] = ()) -> None:
        self._files = dict(files)

    def __len__(self) -> int:
        return len(self._files)

    def __iter__(self) -> Iterator[str]:
        return iter(self._files)

    def find(self, path: str) -> KnownFile | None:
        """What is known of the file at `path`; none if it is new."""
        return self._files.get(path) or self._files.get(_earlier_path(path))

    def add(self, path: str, file: KnownFile) -> None:
        """Know the file from now on, as it is now."""
        self._files[path] = file

    def copy(self) -> KnownFiles:
        """The same files, in a collection of their own."""
        return KnownFiles(self._files.items())

    def to_list(self) -> list[list[Any]]:
        """A list of plain values, for msgpack."""
        return [
            [path, *file.stamp, file.checksum, file.delivery] for path, file in self._files.items()
        ]

    @classmethod
    def from_list(cls, values: Iterable[Sequence[Any]]) -> KnownFiles:
        """Inverse of `to_list`; earlier releases kept neither checksum nor delivery."""
        return cls(
            (path, KnownFile((size, modified), *(rest or (None,))))
            for path, size, modified, *rest in values
        )


def _earlier_path(path: str) -> str:
    """Where a file of a target was before its directory got the name that readers understand."""
    directory, name = os.path.split(path)
    parent, checkpoint_directory = os.path.split(directory)
    checkpoint = checkpoint_of(checkpoint_directory)
    if checkpoint is None:
        return path
    return os.path.join(parent, earlier_checkpoint_name(checkpoint), name)
