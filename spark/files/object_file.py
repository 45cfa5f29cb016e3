"""An object of an object store as a file that is read: requests for ranges of one version of it.

Decides how much each request asks for. Every request names the version that was opened, by its
ETag, so that what is read never mixes two contents; an object that was replaced meanwhile is an
error (`ObjectReplaced`). Lives in a task, or on the driver, on one thread at a time.
"""

from __future__ import annotations

import errno
import io
import os
from typing import Final

from epochgate.runtime.objects.client import ObjectStatus, ReadableObjects
from epochgate.runtime.objects.errors import ObjectStoreError

FETCH_BYTES: Final = 1 << 20
"""The least that is asked for at once; a file that is not larger takes one request."""
_WINDOWS_KEPT: Final = 2
"""Ranges kept in memory: where a Parquet file is read, and its end."""


class ObjectFile(io.RawIOBase):
    """Reads an object as it was when it had this status; `read` returns less at its end alone.

    Raises FileNotFoundError, ObjectReplaced and ObjectStoreError.
    """

    def __init__(self, objects: ReadableObjects, status: ObjectStatus) -> None:
        self._objects, self._status = objects, status
        self._at = 0
        self._windows: list[tuple[int, bytes]] = []

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._at

    def size(self) -> int:
        """The object's bytes; pyarrow asks for it."""
        return self._status.size_bytes

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        base = {os.SEEK_SET: 0, os.SEEK_CUR: self._at, os.SEEK_END: self.size()}[whence]
        self._at = max(0, base + offset)
        return self._at

    def readinto(self, buffer: bytearray | memoryview) -> int:  # type: ignore[override]  # any buffer
        data = self.read(len(buffer))
        buffer[: len(data)] = data
        return len(data)

    def readall(self) -> bytes:
        return self.read(-1)

    def read(self, size: int | None = -1) -> bytes:
        left = max(0, self.size() - self._at)
        wanted = left if size is None or size < 0 else min(size, left)
        if not wanted:
            return b""
        start, data = self._window(self._at, wanted)
        begin = self._at - start
        self._at += wanted
        return data[begin : begin + wanted]

    def _window(self, at: int, length: int) -> tuple[int, bytes]:
        """Bytes of the object that contain these, and where they begin."""
        for window in self._windows:
            if window[0] <= at and at + length <= window[0] + len(window[1]):
                return window
        start, end = at, min(max(at + length, at + FETCH_BYTES), self.size())
        if not any(begin + len(data) == at for begin, data in self._windows):
            # Not the next bytes in turn; near the end it is a footer, read piece by piece.
            start = min(at, max(0, end - FETCH_BYTES))
        fetched = self._objects.get_range(self._status.key, start, end - start, self._status.etag)
        if len(fetched) != end - start:
            came = f"{len(fetched)} bytes came of {end - start}, from byte {start} on"
            raise ObjectStoreError(errno.EIO, came, self._status.key)
        self._windows = [*self._windows[1 - _WINDOWS_KEPT :], (start, fetched)]
        return start, fetched
