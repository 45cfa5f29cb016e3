"""A process that keeps a partition between tasks, and how tasks reach it.

Spark gives the tasks of a partition to any of its Python workers, and ends workers as it likes. The
states of a partition, and the code that searches, stay in a process of their own, the keeper, which
the first task that misses it starts. It answers one task after the other over a socket in the
folder of the search, and ends with the search, or with the process that Spark's workers come from.
What it had is then made again by another one, from the files of the levels.
"""

from __future__ import annotations

import fcntl
import json
import os
import select
import socket
import subprocess
import sys
import traceback
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing, suppress
from functools import partial
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, Final

from epochgate.errors import EpochgateError
from epochgate.spark.checking.code import Code
from epochgate.spark.checking.folder import Folder
from epochgate.spark.checking.partition import Partition

LOOK_EVERY_S: Final = 1.0
FAILED: Final = "failed"
END: Final = None
"""Ends the rows of a request, and of an answer."""
Settings = Mapping[str, Any]


class KeeperFailed(EpochgateError):
    """A keeper could not do what a task asked for; its error's name, text and traceback."""


def exchange(
    settings: Settings, partition: int, request: Mapping[str, Any], rows: Iterable[Any]
) -> Iterator[Any]:
    """Have the keeper of a partition do what is requested, with these rows; its answer's rows.

    Raises KeeperFailed, and EOFError or OSError when it was killed.
    """
    with closing(_connected(settings, partition)) as keeper:
        for row in (request, *rows, END):
            _tell(keeper, row)
        while (row := _heard(keeper)) is not END:
            if isinstance(row, dict) and FAILED in row:
                raise KeeperFailed(row[FAILED])
            yield row


def dismiss(settings: Settings, partition: int) -> None:
    """End the keeper of a partition, if this host has one, and give the host's memory back."""
    folder = Folder(settings["token"])
    with suppress(OSError), closing(_reached(folder, partition)) as keeper:
        _tell(keeper, {"do": "end"})
    folder.remove()
    folder.close()


def _tell(other: Connection, row: Any) -> None:
    """Send a row: as JSON, in which states are left out that then follow."""
    key, value = row if isinstance(row, tuple) else (None, row)
    are_states = isinstance(value, bytes)
    other.send_bytes(json.dumps([key, None if are_states else value, are_states]).encode())
    if are_states:
        other.send_bytes(value)


def _heard(other: Connection) -> Any:
    """Wait for a row. Raises EOFError or OSError if the other end is gone."""
    key, value, are_states = json.loads(other.recv_bytes())
    if are_states:
        value = other.recv_bytes()
    return value if key is None else (key, value)


def _path(folder: Folder, partition: int) -> Path:
    return folder.path / f"part-{partition}"


def _reached(folder: Folder, partition: int) -> Connection:
    """A connection with a keeper that is there. Raises OSError if none is."""
    with socket.socket(socket.AF_UNIX) as made:
        made.connect(str(_path(folder, partition)))
        return Connection(made.detach())


def _connected(settings: Settings, partition: int) -> Connection:
    """A connection with the keeper, which is started if it is not there."""
    folder = Folder(settings["token"])
    lock = _path(folder, partition).with_suffix(".lock")
    try:
        with lock.open("ab") as held:
            fcntl.flock(held, fcntl.LOCK_EX)
            with suppress(FileNotFoundError, ConnectionRefusedError):
                return _reached(folder, partition)
            _start(folder, settings, partition)
            return _reached(folder, partition)
    finally:
        folder.close()


def _start(folder: Folder, settings: Settings, partition: int) -> None:
    path = _path(folder, partition)
    path.unlink(missing_ok=True)
    with socket.socket(socket.AF_UNIX) as listener:
        # Bound here, so that it can be reached before it is ready.
        listener.bind(str(path))
        listener.listen()
        # The parent of Spark's workers lives as long as there are tasks.
        numbers = [partition, os.getppid(), listener.fileno()]
        keeper = subprocess.Popen(
            [sys.executable, "-m", __name__, *map(str, numbers)],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
            # With the lock that says that the search lives.
            pass_fds=(listener.fileno(), folder.alive),
        )
    static = {name: settings[name] for name in ("parts", "demanded", "directory", "token")}
    about = {**static, "is_one_host": settings["is_one_host"], "code": settings["code"].value}
    assert keeper.stdin is not None
    with keeper.stdin as given:
        given.write(json.dumps(about).encode())
    _started[:] = [*(each for each in _started if each.poll() is None), keeper]


_started: list[subprocess.Popen[bytes]] = []
"""Keepers that this process has started, which may outlive it."""


def keep(settings: Settings, number: int, parent: int, listener: socket.socket) -> None:
    """Answer tasks until the search, or the process `parent`, ends."""
    folder = Folder(settings["token"])
    partition: Partition | None = None
    while True:
        while not select.select([listener], [], [], LOOK_EVERY_S)[0]:
            if not folder.path.exists() or not _lives(parent):
                return
        connection = Connection(listener.accept()[0].detach())
        # The task may have been killed; what it asked for is then asked for again.
        with suppress(EOFError, ConnectionError), closing(connection) as task:
            request = _heard(task)
            if request["do"] == "end":
                return
            try:
                if partition is None:
                    partition = Partition(settings, number, Code(**settings["code"]), folder)
                rows = iter(partial(_heard, task), END)
                partition.answer(request, rows, partial(_tell, task))
                _tell(task, END)
            except (EOFError, ConnectionError):
                raise
            except Exception as error:  # noqa: BLE001  # raised in the task
                told = f"{type(error).__name__}: {error}\n{traceback.format_exc()}"
                _tell(task, {FAILED: told})


def _lives(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


if __name__ == "__main__":
    _number, _parent, _listener = map(int, sys.argv[1:])
    keep(json.load(sys.stdin), _number, _parent, socket.socket(fileno=_listener))
