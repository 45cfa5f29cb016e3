"""The folder that a session of our own writes into, and what killed drivers have left of theirs.

Decides that a folder is abandoned when the lock in it is free: its driver holds that lock for as
long as it lives, and the kernel frees it however the driver ends. The lock gets its name once it is
held, so a folder without one is never taken for abandoned, and stays. Runs on the driver.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Final

PREFIX: Final = "epochgate-spark-"
LOCK: Final = "driver.lock"
ABANDONED_REMOVED_MAX: Final = 16
"""Folders that one start removes, so that it does not take long; the next goes on."""


@contextlib.contextmanager
def scratch_folder() -> Iterator[Path]:
    """Make a temporary folder and remove it at the end of the block, or at a later call of anybody
    if this process is killed.
    """
    remove_abandoned(Path(tempfile.gettempdir()))
    folder = Path(tempfile.mkdtemp(prefix=PREFIX))
    try:
        unnamed = folder / f"{LOCK}.new"
        with unnamed.open("wb") as lock:
            # Where files cannot be locked, the folder of a killed driver stays.
            with contextlib.suppress(OSError):
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                unnamed.rename(folder / LOCK)
            _within(folder).mkdir()
            yield _within(folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def remove_abandoned(parent: Path) -> None:
    """Remove folders of this user's drivers that were killed, at most `ABANDONED_REMOVED_MAX`."""
    removed = 0
    for folder in sorted(parent.glob(f"{PREFIX}*")):
        if removed == ABANDONED_REMOVED_MAX:
            return
        removed += _remove_if_abandoned(folder)


def _within(folder: Path) -> Path:
    return folder / "spark"


def _remove_if_abandoned(folder: Path) -> bool:
    # A lock that is held or missing, or cannot be opened, says that the folder is not ours to take.
    with contextlib.suppress(OSError):
        if folder.lstat().st_uid != os.getuid():
            return False
        with (folder / LOCK).open("rb") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            # A JVM may still be writing. The lock goes last: what is left is found again.
            if _within(folder).exists():
                shutil.rmtree(_within(folder))
            shutil.rmtree(folder)
            return True
    return False
