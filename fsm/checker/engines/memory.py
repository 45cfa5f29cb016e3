"""Memory for states and tables: reserved at once, taken from the machine as it is written to, in
large pages where the system has them.
"""

from __future__ import annotations

import mmap
from contextlib import suppress
from typing import Any

import numpy as np
from epochgate.exit_codes import RunFailed

NO_RESERVE = 0x4000
"""Linux: address space is not counted as memory until it is used."""


class OutOfMemory(RunFailed):
    """The system does not give the address space for a search."""


class Region:
    """An array of zeros that takes memory only where it is written to."""

    def __init__(self, length: int, kind: Any) -> None:
        self._itemsize = np.dtype(kind).itemsize
        size = max(mmap.PAGESIZE, length * self._itemsize)
        flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS
        try:
            self._mapped = mmap.mmap(-1, size, flags=flags | NO_RESERVE)
        except OSError as error:
            raise OutOfMemory(
                f"the system gives no {size >> 20} MiB of address space ({error}); "
                f"set a smaller --max-memory"
            ) from error
        if hasattr(mmap, "MADV_HUGEPAGE"):
            # A kernel without large pages has small ones.
            with suppress(OSError):
                self._mapped.madvise(mmap.MADV_HUGEPAGE)
        self.array = np.frombuffer(self._mapped, kind)[:length]
        self.address = int(self.array.ctypes.data)

    def give_back(self, first: int, end: int) -> None:
        """Return the memory of some items, which are not read any more."""
        page = mmap.PAGESIZE
        start = -(-first * self._itemsize // page) * page
        length = end * self._itemsize // page * page - start
        if length > 0 and hasattr(mmap, "MADV_DONTNEED"):
            self._mapped.madvise(mmap.MADV_DONTNEED, start, length)


def reserved(length: int, kind: Any) -> Any:
    """An array of zeros that takes memory only where it is written to."""
    return Region(length, kind).array
