"""Records of a document as lines of JSON, one after the other, as a file that can be read again.

Decides how a place in them is found again: by reading up to it. So all that is said of JSON lines
holds for documents, where a line counts as a record's number. Leaves to others: which records a
document has (`json_documents`, `xml_documents`, `sheets`). Runs on the driver and in tasks.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator
from typing import BinaryIO

_BLOCK_BYTES = 1 << 16


class RecordLines(io.BufferedIOBase):
    """The records that `lines_of` makes of `raw`; it closes the file with itself."""

    def __init__(self, raw: BinaryIO, lines_of: Callable[[BinaryIO], Iterator[bytes]]) -> None:
        self._raw, self._lines_of = raw, lines_of
        self._begin()

    def _begin(self) -> None:
        self._raw.seek(0)
        self._lines = self._lines_of(self._raw)
        self._ready, self._at = b"", 0
        self._error: Exception | None = None

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def close(self) -> None:
        if not self.closed:
            self._raw.close()
        super().close()

    def read(self, size: int | None = -1) -> bytes:
        """All lines before a fault are given out before it is raised."""
        wanted = 1 << 62 if size is None or size < 0 else size
        parts, has = [self._ready], len(self._ready)
        while has < wanted and self._error is None:
            try:
                line = next(self._lines, None)
            except Exception as error:  # noqa: BLE001  it is raised behind the lines before it
                self._error = error
                break
            if line is None:
                break
            parts.append(line)
            has += len(line)
        data = b"".join(parts)
        found, self._ready = data[:wanted], data[wanted:]
        if wanted and not found and self._error is not None:
            raise self._error
        self._at += len(found)
        return found

    def tell(self) -> int:
        return self._at

    def seek(self, offset: int, whence: int = 0) -> int:
        assert whence == io.SEEK_SET, "a place is counted from the beginning"
        if offset < self._at:
            self._begin()
        while self._at < offset and self.read(min(offset - self._at, _BLOCK_BYTES)):
            pass
        return self._at
