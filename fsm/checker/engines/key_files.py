"""Files of sorted keys, in blocks that are read one at a time.

A file holds the bytes of its blocks, one behind the other, and then an index of them: where each
begins, how many bytes and keys it has, its first key, and the checksum of its bytes. Every block is
held against its checksum whenever it is read. What a file has to be (its size, and the checksum of
its index) stands in the search's manifest.
"""

from __future__ import annotations

import os
import zlib
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from epochgate.exit_codes import RunFailed
from epochgate.fsm.checker.engines.key_kernels import DISTANCE_BYTES_MAX, key_functions

INDEX = np.dtype([("begin", "<i8"), ("first", "<i8"), ("bytes", "<u4"), ("keys", "<u4"),
                  ("checksum", "<u4")])  # fmt: skip
FEW = 16
"""Known keys are looked up one by one where there are at least this many times as many others."""
WINDOW = 1 << 16
"""Keys that are looked for in all files together; they stay in the fast cache."""


class Damaged(RunFailed):
    """A file of a search is not what was written."""

    def __init__(self, path: Path, detail: str) -> None:
        super().__init__(
            f"{path} is damaged: {detail}; what was found cannot be trusted any more: name another "
            f"directory, and search from the beginning"
        )


class Block(Sequence[int]):
    """The keys of a part of a file, which are read when they are asked for."""

    def __init__(self, file: KeyFile, number: int) -> None:
        self.file, self.number = file, number

    def __len__(self) -> int:
        return int(self.file.index["keys"][self.number])

    def __getitem__(self, place: Any) -> Any:
        return self.keys[place]

    def __iter__(self) -> Iterator[int]:
        return iter(self.keys.tolist())

    @property
    def keys(self) -> Any:
        """All of them, as an array."""
        return self.file.read(self.number)


class KeyFile:
    """A file that was written to its end."""

    def __init__(self, path: Path, size: int, checksum: int, blocks: int) -> None:
        self.path, self.size, self.checksum, self.block_count = path, size, checksum, blocks
        self._descriptor = -1

    @cached_property
    def index(self) -> Any:
        try:
            self._descriptor = os.open(self.path, os.O_RDONLY | os.O_CLOEXEC)
        except OSError as error:
            raise Damaged(self.path, f"it cannot be opened ({error.strerror})") from error
        size = os.fstat(self._descriptor).st_size
        if size != self.size:
            raise Damaged(self.path, f"it has {size:,} bytes where {self.size:,} were written")
        length = self.block_count * INDEX.itemsize
        found = os.pread(self._descriptor, length, self.size - length)
        if zlib.crc32(found) != self.checksum:
            raise Damaged(self.path, "its index has another checksum")
        return np.frombuffer(found, INDEX)

    @cached_property
    def _firsts(self) -> list[int]:
        return [int(first) for first in self.index["first"]]

    @cached_property
    def count(self) -> int:
        return int(self.index["keys"].sum())

    @property
    def blocks(self) -> list[Block]:
        return [Block(self, number) for number in range(self.block_count)]

    def read(self, number: int) -> Any:
        """The keys of a block."""
        begin, first, length, count, checksum = self.index[number].tolist()
        data = os.pread(self._descriptor, length, begin)
        if len(data) != length or zlib.crc32(data) != checksum:
            raise Damaged(self.path, f"block {number} at byte {begin:,} has another checksum")
        keys = np.empty(count, np.int64)
        source = np.frombuffer(data, np.uint8)
        key_functions().decode(source.ctypes.data, first, count, keys.ctypes.data)
        return keys

    def block_of(self, key: int) -> int:
        """The number of the last block that begins with this key or a smaller one; -1 for none."""
        return bisect_right(self._firsts, key) - 1

    def __contains__(self, key: int) -> bool:
        number = self.block_of(key)
        if number < 0:
            return False
        keys = self.read(number)
        place = int(np.searchsorted(keys, key))
        return place < len(keys) and int(keys[place]) == key

    def close(self) -> None:
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    def to_json(self) -> list[Any]:
        return [self.path.name, self.size, self.checksum, self.block_count]


class Writer:
    """Writes a file of sorted keys, or removes what it has written."""

    def __init__(self, path: Path, block_keys: int) -> None:
        self._path, self._block_keys = path, block_keys
        self._file = path.open("xb")
        self._waiting: list[Any] = []
        self._waiting_keys = 0
        self._data = np.empty(block_keys * DISTANCE_BYTES_MAX, np.uint8)
        self._index: list[tuple[int, int, int, int, int]] = []
        self._end = 0

    def written(self, parts: Iterable[Any]) -> KeyFile | None:
        """The file of keys that come in order; None if there are none."""
        try:
            for keys in parts:
                for start in range(0, len(keys), self._block_keys):
                    self._add(keys[start : start + self._block_keys])
            return self._finished()
        except BaseException:
            self._drop()
            raise

    def _add(self, keys: Any) -> None:
        """Add at most as many keys as a block has."""
        self._waiting.append(keys)
        self._waiting_keys += len(keys)
        if self._waiting_keys < self._block_keys:
            return
        joined = np.concatenate(self._waiting)
        self._write(joined[: self._block_keys])
        rest = joined[self._block_keys :]
        self._waiting, self._waiting_keys = [rest], len(rest)

    def _write(self, keys: Any) -> None:
        length = key_functions().encode(keys.ctypes.data, len(keys), self._data.ctypes.data)
        data = self._data[:length].tobytes()
        self._index.append((self._end, int(keys[0]), length, len(keys), zlib.crc32(data)))
        self._file.write(data)
        self._end += length

    def _finished(self) -> KeyFile | None:
        if self._waiting_keys:
            self._write(np.concatenate(self._waiting))
        if not self._index:
            self._drop()
            return None
        index = np.array(self._index, INDEX).tobytes()
        self._file.write(index)
        self._file.flush()
        os.fsync(self._file.fileno())
        self._file.close()
        size = self._end + len(index)
        return KeyFile(self._path, size, zlib.crc32(index), len(self._index))

    def _drop(self) -> None:
        # What a full disk has kept waiting fails once more.
        with suppress(OSError):
            self._file.close()
        self._path.unlink(missing_ok=True)


class Known:
    """Marks the keys of a file among others, which come in order."""

    def __init__(self, file: KeyFile) -> None:
        self._file = file
        self._number, self._keys = -1, np.empty(0, np.int64)

    def mark(self, keys: Any, marks: Any) -> None:
        """Mark those that are in the file."""
        calls, file, place, count = key_functions(), self._file, 0, len(keys)
        last = int(keys[-1])
        number = max(0, file.block_of(int(keys[0])))
        while number < file.block_count and int(file.index["first"][number]) <= last:
            known = self._block(number)
            start, stop = np.searchsorted(known, keys[[place, -1]], "left").tolist()
            stop = min(stop + 1, len(known))
            is_few = FEW * (stop - start) < count - place
            marking = calls.mark_few if is_few else calls.mark
            where = keys.ctypes.data, place, count, known.ctypes.data, start, stop
            place = marking(*where, marks.ctypes.data)
            if place >= count:
                break
            number = max(number + 1, file.block_of(int(keys[place])))

    def _block(self, number: int) -> Any:
        if number != self._number:
            self._keys, self._number = self._file.read(number), number
        return self._keys


def unknown(keys: Any, files: Iterable[KeyFile]) -> Iterator[Any]:
    """Those of sorted keys that are in no file, in parts; the keys are moved for it."""
    calls, marks = key_functions(), np.empty(WINDOW, np.uint8)
    known = [Known(file) for file in files]
    for start in range(0, len(keys), WINDOW):
        part = keys[start : start + WINDOW]
        marks[:] = 0
        for each in known:
            each.mark(part, marks)
        yield part[: calls.unmarked(part.ctypes.data, len(part), marks.ctypes.data)]


def merged(files: Iterable[KeyFile], room: int) -> Iterator[Any]:
    """The keys of files that have none in common, in order, about `room` at a time."""
    blocks = sorted(
        ((int(first), file, number) for file in files
         for number, first in enumerate(file.index["first"])),
        key=lambda one: one[0],
    )  # fmt: skip
    held: list[Any] = []
    waiting = 0
    for place, (_, file, number) in enumerate(blocks):
        held.append(file.read(number))
        waiting += len(held[-1])
        following = blocks[place + 1][0] if place + 1 < len(blocks) else None
        if following is None or waiting >= room:
            joined = np.sort(np.concatenate(held))
            end = len(joined) if following is None else int(np.searchsorted(joined, following))
            yield joined[:end]
            held, waiting = [joined[end:].copy()], len(joined) - end
