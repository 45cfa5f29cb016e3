"""The number of the line at a byte of a text file, counted when an error or a rejected row asks.

Decides nothing. Lines are those of the file, from 1, whatever the split and the block begin with:
the first question reads the file up to there, and each later one only what lies between. Runs in a
task, and on the driver.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import BinaryIO

_BLOCK_BYTES = 1 << 20


class LineCounter:
    """Counts the line ends of the file that `reopened` opens; `close` it.

    The places that are asked for do not go back.
    """

    def __init__(self, reopened: Callable[[], BinaryIO]) -> None:
        self._reopened = reopened
        self._file: BinaryIO | None = None
        self._at, self._line = 0, 1

    def line_at(self, offset: int) -> int:
        """The line, from 1, in which the byte at `offset` lies. Raises OSError, EOFError or
        zlib.error.
        """
        if self._file is None:
            self._file = self._reopened()
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
