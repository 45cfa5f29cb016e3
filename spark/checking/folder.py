"""The folder that the processes of a search share on a host: in memory, if files can be there."""

from __future__ import annotations

import fcntl
import os
import secrets
import shutil
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import numpy as np

from epochgate.fsm.checker.engines.search import Stopped

SHARED_MEMORY: Final = Path("/dev/shm")
PREFIX: Final = "epochgate-search-"
ALIVE: Final = "alive"


class Folder:
    """Of one search on this host.

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
        self.alive = os.open(self.path / ALIVE, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        fcntl.flock(self.alive, fcntl.LOCK_SH)

    def close(self) -> None:
        """Work on the search no more."""
        os.close(self.alive)

    def put(self, level: int, partition: int, states: Any) -> str:
        """Keep what a partition sends in a level; the name to `get` it by. Raises Stopped."""
        name = f"box-{partition}-{level}-{secrets.token_hex(8)}"
        try:
            states.tofile(self.path / name)
        except OSError as error:
            raise Stopped(
                f"{self.path} has no room for {states.nbytes >> 20} MiB that are sent ({error}): "
                f"make that file system larger"
            ) from error
        return name

    def get(self, name: str) -> Any:
        """The states that were kept by this name."""
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
