"""The states of one partition, in memory that the processes of a host share.

Spark gives the tasks of a partition to any of its Python workers, and ends workers as it likes. So
pool and table are files that live in memory, which each worker maps once and keeps mapped. A head
says which level they hold. It is marked while they change: what a killed task has left is made
again from the files of the levels. One process at a time holds a store, by a lock on its head.
"""

from __future__ import annotations

import fcntl
import mmap
import os
import secrets
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final

import numpy as np

from epochgate.fsm.checker.engines import partition_kernels as k
from epochgate.fsm.checker.memory_limit import LEAST_FREE_BYTES, free_bytes
from epochgate.spark.checking.code import Code, Kernels, address

CHANGED, TAG, IS_SPREAD, FIRST, END, NEXT, BITS, CAPACITY, GENERATION = range(9)
"""Of a head: states from FIRST to END are the level, and those from there to NEXT of the next."""
HEAD_WORDS: Final = 9
BITS_MIN: Final = 16
CAPACITY_MIN: Final = 1 << 15
STATES_MAX: Final = (1 << 32) - 2
"""A slot has 32 bits for a state's number."""


SHARED_MEMORY: Final = Path("/dev/shm")
PREFIX: Final = "epochgate-search-"
ALIVE: Final = "alive"


class StoreFull(Exception):
    """The host has no memory for more states."""


class Folder:
    """Where this host keeps the stores of a search: in memory, where files can be.

    Each process that works on the search holds a shared lock in it for as long as it lives, so what
    killed ones have left is known by a free lock, and removed by the next search that comes.
    """

    def __init__(self, token: str) -> None:
        root = SHARED_MEMORY if os.access(SHARED_MEMORY, os.W_OK) else Path(tempfile.gettempdir())
        self.path = root / f"{PREFIX}{os.getuid()}-{token}"
        for path in root.glob(f"{PREFIX}{os.getuid()}-*"):
            if path != self.path:
                _remove_if_abandoned(path)
        self.path.mkdir(exist_ok=True, mode=0o700)
        self._alive = os.open(self.path / ALIVE, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        fcntl.flock(self._alive, fcntl.LOCK_SH)

    def close(self) -> None:
        """Work on the search no more."""
        os.close(self._alive)

    def put(self, level: int, partition: int, states: Any) -> str:
        """Keep what a partition sends in a level; the name to `get` it by. Raises StoreFull."""
        name = f"box-{partition}-{level}-{secrets.token_hex(8)}"
        try:
            states.tofile(self.path / name)
        except OSError as error:
            raise StoreFull(
                f"{self.path} has no room for {states.nbytes >> 20} MiB that are sent ({error})"
            ) from error
        return name

    def get(self, name: str) -> Any:
        """What was kept by this name."""
        return np.fromfile(self.path / name, np.int64)

    def forget_before(self, level: int, partition: int) -> None:
        """Remove what a partition has sent in other levels, all of which has arrived."""
        for path in self.path.glob(f"box-{partition}-*"):
            if not path.name.startswith(f"box-{partition}-{level}-"):
                path.unlink(missing_ok=True)

    def remove(self) -> None:
        """Give the memory back."""
        shutil.rmtree(self.path, ignore_errors=True)


def _remove_if_abandoned(path: Path) -> None:
    with suppress(OSError), (path / ALIVE).open("rb") as alive:
        fcntl.flock(alive, fcntl.LOCK_EX | fcntl.LOCK_NB)
        shutil.rmtree(path)


class Store:
    """One partition's pool and table; every method but `held` is for the one who holds it."""

    def __init__(self, folder: Path, partition: int, code: Code, kernels: Kernels) -> None:
        self.code, self.kernels = code, kernels
        self._base = folder / f"part-{partition}"
        self._lock = os.open(self._path("head"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        os.ftruncate(self._lock, HEAD_WORDS * 8)
        self.head: Any = np.frombuffer(mmap.mmap(self._lock, HEAD_WORDS * 8), np.int64)
        self._generation = -1
        self.pool: Any = None
        self.table: Any = None

    def close(self) -> None:
        """Let go of the files."""
        os.close(self._lock)

    def _path(self, name: str) -> Path:
        return self._base.with_name(f"{self._base.name}.{name}")

    @contextmanager
    def held(self) -> Iterator[None]:
        """Wait for the process that holds the store, and hold it."""
        fcntl.flock(self._lock, fcntl.LOCK_EX)
        try:
            if self.head[GENERATION] != self._generation and self.head[GENERATION] > 0:
                self._map()
            yield
        finally:
            fcntl.flock(self._lock, fcntl.LOCK_UN)

    @contextmanager
    def changing(self) -> Iterator[None]:
        """Mark the store as changed unless the block comes to its end."""
        self.head[CHANGED] = 1
        yield
        self.head[CHANGED] = 0

    def is_at(self, tag: int) -> bool:
        """Whether the store holds the levels up to the one that was closed with this tag."""
        return bool(self.head[GENERATION] and not self.head[CHANGED] and self.head[TAG] == tag)

    @property
    def memory_bytes(self) -> int:
        return int(self.head[CAPACITY]) * self.code.state_bytes + (8 << int(self.head[BITS]))

    # Files that live in memory

    def _map(self) -> None:
        self.pool = self._mapped("pool", int(self.head[CAPACITY]) * self.code.state_bytes)
        self.table = self._mapped(f"table-{self.head[BITS]}", 8 << int(self.head[BITS]))
        self._generation = int(self.head[GENERATION])

    def _mapped(self, name: str, size: int) -> Any:
        with self._path(name).open("r+b") as file:
            return np.frombuffer(mmap.mmap(file.fileno(), size), np.int64)

    def _allocate(self, name: str, size: int) -> None:
        """Give a file memory up to this size now: writing to a page that cannot be had is fatal."""
        path = self._path(name)
        with path.open("a+b") as file:
            more = size - os.fstat(file.fileno()).st_size
            if (free := free_bytes()) - more < LEAST_FREE_BYTES:
                raise StoreFull(
                    f"{free >> 20} MiB of memory are left on a host, and the states and the table "
                    f"of one partition need {more >> 20} MiB more: give more hosts or memory"
                )
            try:
                os.posix_fallocate(file.fileno(), 0, size)
            except OSError as error:
                raise StoreFull(
                    f"{path.parent} has no room for {size >> 20} MiB ({error.strerror}): make that "
                    f"file system larger (of a container: its shared memory)"
                ) from error

    # Growing

    def reset(self) -> None:
        """Forget all states."""
        for path in self._base.parent.glob(f"{self._base.name}.table-*"):
            path.unlink()
        self._path("pool").unlink(missing_ok=True)
        self.head[CHANGED] = 1
        self.head[[TAG, IS_SPREAD, FIRST, END, NEXT]] = 0
        self.head[[BITS, CAPACITY]] = BITS_MIN, CAPACITY_MIN
        self._allocate("pool", CAPACITY_MIN * self.code.state_bytes)
        self._allocate(f"table-{BITS_MIN}", 8 << BITS_MIN)
        self.head[GENERATION] += 1
        self._map()

    @property
    def room(self) -> int:
        """How many more states there is room for."""
        usable = min(int(self.head[CAPACITY]), 1 << int(self.head[BITS]) - 1, STATES_MAX)
        return usable - int(self.head[NEXT])

    def make_room(self, states: int) -> None:
        """Grow until there is room for this many more. Raises StoreFull."""
        needed = int(self.head[NEXT]) + states
        if needed > STATES_MAX:
            raise StoreFull(f"a partition has room for {STATES_MAX:,} states: take more cores")
        if needed > self.head[CAPACITY]:
            capacity = max(needed, int(self.head[CAPACITY]) * 3 // 2)
            self._allocate("pool", capacity * self.code.state_bytes)
            self.head[CAPACITY] = capacity
        bits = old_bits = int(self.head[BITS])
        while needed > 1 << bits - 1:
            bits += 1
        if bits > old_bits:
            self._allocate(f"table-{bits}", 8 << bits)
            self.head[BITS] = bits
        self.head[GENERATION] += 1
        old = self.table
        self._map()
        if bits > old_bits:
            shift, mask = 64 - bits, (1 << bits) - 1
            table = address(self.table)
            self.kernels.widen(address(old), 1 << old_bits, table, shift, mask)
            self._path(f"table-{old_bits}").unlink()

    # Whole levels

    def append(self, states: Any) -> None:
        """Enter the states of a level, all of them new, from one of its files."""
        count = len(states) // self.code.words
        if count > self.room:
            self.make_room(count)
        first = int(self.head[NEXT])
        self.pool[first * self.code.words : (first + count) * self.code.words] = states
        shift, mask = self.hashing
        end = first + count
        self.kernels.index(address(self.pool), first, end, address(self.table), shift, mask)
        self.head[[FIRST, END, NEXT]] = first, end, end

    @property
    def hashing(self) -> tuple[int, int]:
        """How a hash is turned into a slot: the shift, and the mask of slots."""
        bits = int(self.head[BITS])
        return 64 - bits, (1 << bits) - 1

    def words(self, first: int, end: int) -> Any:
        """The words of these states."""
        return self.pool[first * self.code.words : end * self.code.words]

    def load(self, status: Any) -> None:
        """Say in a status how far the store goes, and how much room there is."""
        status[k.NEXT], status[k.ROOM] = self.head[NEXT], self.room
        status[[k.SHIFT, k.MASK]] = self.hashing

    def note(self, status: Any) -> None:
        """Take from a status how far the store goes now."""
        self.head[NEXT] = status[k.NEXT]
