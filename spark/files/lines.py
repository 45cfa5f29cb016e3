"""The number of the line at a byte of a text file, counted when an error or a rejected row asks.

Decides nothing. Lines are those of the file, from 1, whatever the split and the block begin with:
the first question reads the file up to there, and each later one only what lies between. Runs in a
task, and on the driver.
"""

from __future__ import annotations

from typing import BinaryIO

from epochgate.spark.files.layout import open_bytes
from epochgate.spark.files.split import Compression

_BLOCK_BYTES = 1 << 20


class LineCounter:
    """Counts the line ends of one file; asked for places that do not go back. `close` it."""

    def __init__(self, path: str, compression: Compression) -> None:
        self._path, self._compression = path, compression
        self._file: BinaryIO | None = None
        self._at, self._line = 0, 1

    def line_at(self, offset: int) -> int:
        """The line, from 1, in which the byte at `offset` lies. Raises OSError, EOFError or
        zlib.error.
        """
        if self._file is None:
            self._file = open_bytes(self._path, self._compression)
        while self._at < offset:
            block = self._file.read(min(offset - self._at, _BLOCK_BYTES))
            if not block:
                break
            self._at += len(block)
            self._line += block.count(b"\n")
        return self._line

    def close(self) -> None:
        """Close the file; the counter may be asked again from the beginning."""
        if self._file is not None:
            self._file.close()
        self._file, self._at, self._line = None, 0, 1
