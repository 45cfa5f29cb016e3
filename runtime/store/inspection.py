"""Stored checkpoints seen from outside: listed and read beside the job that takes them.

Decides nothing and changes nothing: neither a directory nor a log is claimed, so a job that runs
goes on. It may remove a checkpoint between its listing and its reading.
Pure reading, on any thread.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from epochgate.runtime.objects.client import ObjectStore, is_url, open_url
from epochgate.runtime.objects.log import ObjectLog
from epochgate.runtime.store.checkpoint import CompletedCheckpoint
from epochgate.runtime.store.claim import holder_of
from epochgate.runtime.store.directory import checkpoint_named
from epochgate.runtime.store.encoding import decode_checkpoint
from epochgate.runtime.store.errors import (
    CheckpointDamaged,
    CheckpointNotFound,
    CheckpointStoreUnusable,
)
from epochgate.runtime.store.objects import INITIAL, checkpoint_of_key, fold

SAVEPOINT_NAME: Final = "savepoint.epochgate"
"""The checkpoint in the place of a savepoint (`epochgate.runtime.savepoints`)."""


@dataclass(frozen=True)
class StoredCheckpoint:
    """A checkpoint where it is kept.

    source: its path or URL. is_aside: whether a start has found it damaged and set it aside.
    """

    checkpoint_id: int
    source: str
    is_aside: bool
    read: Callable[[], bytes]

    def load(self) -> CompletedCheckpoint:
        """Read and verify it.

        Raises CheckpointNotFound where the job has removed it since, CheckpointDamaged,
        CheckpointFormatUnknown, CheckpointStoreUnusable.
        """
        try:
            data = self.read()
        except FileNotFoundError as error:
            raise CheckpointNotFound(
                f"{self.source} is not there any more: its job keeps the newest checkpoints alone"
            ) from error
        except OSError as error:
            raise CheckpointStoreUnusable(f"cannot read {self.source}: {error}") from error
        return decode_checkpoint(data, source=self.source)


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


def last_epoch(place: str, open_objects: Callable[[str], ObjectStore]) -> int:
    """Of the newest claim, whose driver may have stored nothing. Raises OSError, ValueError."""
    if is_url(place):
        return int(_log_in(open_objects(place)).state["epoch"])
    claim = holder_of(place).claim
    return 0 if claim is None else claim.epoch


def _log_in(objects: ObjectStore) -> ObjectLog:
    log = ObjectLog(objects, fold, INITIAL)
    log.refresh()
    return log


def _in_savepoint(source: str, read: Callable[[], bytes]) -> list[StoredCheckpoint]:
    """Its name tells no id; one that is damaged has none."""
    try:
        return [
            StoredCheckpoint(
                decode_checkpoint(read(), source=source).checkpoint_id, source, False, read
            )
        ]
    except CheckpointDamaged:
        return [StoredCheckpoint(0, source, False, read)]


def _in_directory(directory: str) -> list[StoredCheckpoint]:
    if os.path.exists(path := os.path.join(directory, SAVEPOINT_NAME)):
        return _in_savepoint(path, _reader(path))
    found = []
    for name in os.listdir(directory):
        if (known := checkpoint_named(name)) is not None:
            (number, is_aside), path = known, os.path.join(directory, name)
            found.append(StoredCheckpoint(number, path, is_aside, _reader(path)))
    return found


def _reader(path: str) -> Callable[[], bytes]:
    def read() -> bytes:
        with open(path, "rb") as file:
            return file.read()

    return read


def _in_objects(objects: ObjectStore) -> list[StoredCheckpoint]:
    with contextlib.suppress(FileNotFoundError):
        objects.size(SAVEPOINT_NAME)
        source = f"{objects.url}/{SAVEPOINT_NAME}"
        return _in_savepoint(source, lambda: objects.get(SAVEPOINT_NAME))
    log = _log_in(objects)
    keys = [(key, False) for key in log.state["saved"].values()]
    keys += [(key, True) for key in log.state["aside"]]
    return [
        StoredCheckpoint(
            checkpoint_of_key(key),
            f"{objects.url}/{key}",
            is_aside,
            lambda key=key: objects.get(key),  # type: ignore[misc]  # bound to this one
        )
        for key, is_aside in keys
    ]
