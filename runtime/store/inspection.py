"""Stored checkpoints seen from outside: listed and read beside the job that takes them.

Decides nothing and changes nothing: neither a directory nor a log is claimed, so a job that runs
goes on. It may remove a checkpoint between its listing and its reading.
Pure reading, on any thread.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final

from epochgate.runtime.objects.client import ObjectStore, is_url, open_url
from epochgate.runtime.objects.log import ObjectLog
from epochgate.runtime.store.checkpoint import CompletedCheckpoint
from epochgate.runtime.store.claim import holder_of
from epochgate.runtime.store.directory import checkpoint_named
from epochgate.runtime.store.encoding import decode_checkpoint, parts_in
from epochgate.runtime.store.errors import (
    CheckpointDamaged,
    CheckpointFormatUnknown,
    CheckpointNotFound,
    CheckpointStoreUnusable,
)
from epochgate.runtime.store.objects import INITIAL, checkpoint_of_key, fold
from epochgate.runtime.store.parts import Part

SAVEPOINT_NAME: Final = "savepoint.epochgate"
"""The checkpoint in the place of a savepoint (`epochgate.runtime.savepoints`)."""


@dataclass(frozen=True)
class StoredCheckpoint:
    """A checkpoint where it is kept.

    source: its path or URL. is_aside: whether a start has found it damaged and set it aside. name:
    of its file; read_file: reads that, and what lies beside it, such as parts of its states.
    """

    checkpoint_id: int
    source: str
    is_aside: bool
    name: str
    read_file: Callable[[str], bytes]

    def load(self) -> CompletedCheckpoint:
        """Read and verify it, with its parts.

        Raises CheckpointNotFound where the job has removed it since, CheckpointDamaged,
        CheckpointFormatUnknown, CheckpointStoreUnusable.
        """
        with self._told():
            data = self.read_file(self.name)
            return decode_checkpoint(data, source=self.source, read_part=self.read_file)

    def parts(self) -> list[Part]:
        """The parts beside it that it refers to; it shares some with others. Raises as `load`."""
        with self._told():
            return parts_in(self.read_file(self.name), source=self.source)

    @contextlib.contextmanager
    def _told(self) -> Iterator[None]:
        try:
            yield
        except FileNotFoundError as error:
            raise CheckpointNotFound(
                f"{self.source} is not there any more: its job keeps the newest checkpoints alone"
            ) from error
        except OSError as error:
            raise CheckpointStoreUnusable(f"cannot read {self.source}: {error}") from error


def stored_checkpoints(
    place: str, *, open_objects: Callable[[str], ObjectStore] | None = None
) -> list[StoredCheckpoint]:
    """The checkpoints of a directory, or of a URL, the oldest first; those set aside as well. Of a
    savepoint, the one in it.

    Raises CheckpointStoreUnusable, ObjectStoreUnusable.
    """
    try:
        if is_url(place):
            found = _in_objects((open_objects or open_url)(place))
        else:
            found = _in_directory(place)
    except (OSError, ValueError) as error:
        raise CheckpointStoreUnusable(f"cannot list the checkpoints in {place}: {error}") from error
    return sorted(found, key=lambda one: (one.checkpoint_id, one.source))


def last_epoch(place: str, open_objects: Callable[[str], ObjectStore] | None = None) -> int:
    """Of the newest claim, whose driver may have stored nothing; 0 where there is none. Raises
    OSError, ValueError, ObjectStoreUnusable.
    """
    if is_url(place):
        return int(_log_in((open_objects or open_url)(place)).state["epoch"])
    claim = holder_of(place).claim
    return 0 if claim is None else claim.epoch


def _log_in(objects: ObjectStore) -> ObjectLog:
    log = ObjectLog(objects, fold, INITIAL)
    log.refresh()
    return log


def _in_savepoint(source: str, read_file: Callable[[str], bytes]) -> list[StoredCheckpoint]:
    """Its name tells no id; one that is damaged or of another version has none."""
    number = 0
    with contextlib.suppress(CheckpointDamaged, CheckpointFormatUnknown):
        number = decode_checkpoint(read_file(SAVEPOINT_NAME), source=source).checkpoint_id
    return [StoredCheckpoint(number, source, False, SAVEPOINT_NAME, read_file)]


def _in_directory(directory: str) -> list[StoredCheckpoint]:
    def read_file(name: str) -> bytes:
        with open(os.path.join(directory, name), "rb") as file:
            return file.read()

    if os.path.exists(path := os.path.join(directory, SAVEPOINT_NAME)):
        return _in_savepoint(path, read_file)
    return [
        StoredCheckpoint(known[0], os.path.join(directory, name), known[1], name, read_file)
        for name in os.listdir(directory)
        if (known := checkpoint_named(name)) is not None
    ]


def _in_objects(objects: ObjectStore) -> list[StoredCheckpoint]:
    with contextlib.suppress(FileNotFoundError):
        objects.size(SAVEPOINT_NAME)
        return _in_savepoint(f"{objects.url}/{SAVEPOINT_NAME}", objects.get)
    log = _log_in(objects)
    keys = [(key, False) for key in log.state["saved"].values()]
    keys += [(key, True) for key in log.state["aside"]]
    return [
        StoredCheckpoint(checkpoint_of_key(key), f"{objects.url}/{key}", is_aside, key, objects.get)
        for key, is_aside in keys
    ]
