"""The leavings of an attempt in its process: threads, child processes, open files and sockets.

Compared is what was there before the attempt with what is there once its operators are closed. What
a library may keep for the life of a process and can harm no later attempt does not count: threads
and descriptors that only wake up the process itself, and devices without state. Native threads are
not looked at; those that hold a file or a socket are found by that.

Runs on the task's thread. Where a system does not tell (`/proc` is Linux's), less is compared.
"""

from __future__ import annotations

import contextlib
import gc
import os
import stat
import sys
import threading
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Self

PATIENCE_S: Final = 0.25
"""For threads that were told to end, and processes that were told to leave."""
_LOOK_INTERVAL_S: Final = 0.005
_OWN_TASKS: Final = Path("/proc/self/task")
_OWN_FILES: Final = Path("/proc/self/fd")
_HARMLESS: Final = ("anon_inode:[eventpoll]", "anon_inode:[eventfd]", "/dev/")
_SHARED: Final = "/dev/shm/"
"""What is there is a file like any other."""


@dataclass(frozen=True)
class Inventory:
    """The resources that a process has at one moment."""

    threads: frozenset[threading.Thread]
    children: frozenset[int]
    files: frozenset[tuple[int, str]]

    @classmethod
    def taken(cls) -> Self:
        """Look at this process."""
        return cls(
            threads=frozenset(threading.enumerate()),
            children=frozenset(_children()),
            files=frozenset(_files()),
        )

    def left(self, before: Inventory) -> list[str]:
        """Tell what is here and was not before, in words."""
        threads = sorted(thread.name for thread in self.threads - before.threads)
        children = sorted(self.children - before.children)
        files = sorted(self.files - before.files)
        return [
            *(f"thread {name!r}" for name in threads),
            *(f"child process {pid}" for pid in children),
            *(f"open {_kind(number, target)} {target}" for number, target in files),
        ]


def left_since(before: Inventory, patience_s: float = PATIENCE_S) -> list[str]:
    """Return what has come since `before` was taken, and stays; waits for what is about to go."""
    left = Inventory.taken().left(before)
    if left:
        # What only a cycle of objects holds is closed with them.
        gc.collect()
    deadline_s = time.monotonic() + patience_s
    while left and time.monotonic() < deadline_s:
        time.sleep(_LOOK_INTERVAL_S)
        left = Inventory.taken().left(before)
    return left


def _files() -> list[tuple[int, str]]:
    found = []
    for name in _names(_OWN_FILES):
        # The descriptor through which they are listed is gone again.
        with contextlib.suppress(OSError):
            target = str((_OWN_FILES / name).readlink())
            if target.startswith(_SHARED) or not target.startswith(_HARMLESS):
                found.append((int(name), target))
    ends = Counter(target for _, target in found)
    # A pipe of which the process has both ends, as pyarrow's for signals, reaches only itself.
    return [(number, to) for number, to in found if not (to.startswith("pipe:") and ends[to] > 1)]


def _children() -> list[int]:
    found = []
    for thread in _names(_OWN_TASKS):
        with contextlib.suppress(OSError):
            told = (_OWN_TASKS / thread / "children").read_text(encoding="ascii")
            found += [int(pid) for pid in told.split()]
    processes = sys.modules.get("multiprocessing")
    if processes is not None:
        found += [child.pid for child in processes.active_children()]
    return found


def _names(folder: Path) -> list[str]:
    try:
        return os.listdir(folder)
    except FileNotFoundError:
        return []


def _kind(number: int, target: str) -> str:
    if target.startswith("/"):
        return "file"
    with contextlib.suppress(OSError):
        mode = os.fstat(number).st_mode
        return "socket" if stat.S_ISSOCK(mode) else "pipe" if stat.S_ISFIFO(mode) else "descriptor"
    return "descriptor"
