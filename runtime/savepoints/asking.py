"""Asking for a savepoint from another process: of the job that runs, or of the one that has ended.

Decides which of the two it is: whether a driver holds the lock of the checkpoint directory; in an
object store, where nothing tells that a driver is alive, whether one takes the request. Of a job
that has ended, its newest whole checkpoint is copied; nothing is claimed or changed for that.
Runs in the process that asks.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable
from dataclasses import replace
from typing import Any, Final

from epochgate.errors import EpochgateError, UsageError
from epochgate.runtime.filesystem import LocalFileSystem
from epochgate.runtime.objects.client import ObjectStore, is_url, open_url
from epochgate.runtime.savepoints.requests import (
    ANSWER,
    FAILED,
    REQUEST,
    WRITTEN,
    RequestPlace,
)
from epochgate.runtime.savepoints.savepoint import Savepoint, default_place, write_savepoint
from epochgate.runtime.store.checkpoint import CompletedCheckpoint
from epochgate.runtime.store.claim import holder_of
from epochgate.runtime.store.errors import CheckpointDamaged
from epochgate.runtime.store.inspection import StoredCheckpoint, last_epoch, stored_checkpoints

TAKEN_WITHIN_LOOKS: Final = 3
"""Where this many intervals have passed and no driver has taken a request, there is none."""
ANSWER_LOOK_S: Final = 0.1
LAST_WORD_S: Final = 6.0
"""A driver that lets go of its checkpoints answers what it has taken within this time."""


class SavepointRefused(EpochgateError):
    """The job could not make a savepoint; the message is its reason."""


class SavepointNotAnswered(EpochgateError):
    """The job has not said in time whether the savepoint is written; it may be written yet."""


class NothingToCopy(UsageError):
    """A job has ended, and none of its checkpoints can be made a savepoint of."""


def ask_savepoint(
    checkpoints: str,
    to: str | None = None,
    *,
    timeout_s: float,
    open_objects: Callable[[str], ObjectStore] = open_url,
    clock: Callable[[], float] = time.monotonic,
) -> tuple[Savepoint, bool]:
    """A savepoint of the job with these checkpoints, and whether the job made it, which runs.

    Raises SavepointRefused, SavepointNotAnswered, NothingToCopy, OSError, and what
    `write_savepoint` and the reading of checkpoints raise.
    """
    place = RequestPlace(checkpoints, open_objects)
    if place.is_url or holder_of(checkpoints).is_held:
        savepoint = _of_job(checkpoints, place, to, timeout_s, clock)
        if savepoint is not None:
            return savepoint, True
    return copy_newest(checkpoints, to, open_objects=open_objects), False


def _of_job(
    checkpoints: str,
    place: RequestPlace,
    to: str | None,
    timeout_s: float,
    clock: Callable[[], float],
) -> Savepoint | None:
    """Return the job's answer; none if there is no job."""
    request_id, began_s = uuid.uuid4().hex, clock()
    there_s = began_s
    place.write(request_id + REQUEST, {"to": to})
    try:
        while True:
            answer = place.read(request_id + ANSWER)
            if answer is not None and answer["state"] == WRITTEN:
                return _savepoint_of(answer)
            if answer is not None and answer["state"] == FAILED:
                if answer.get("is_over", False):
                    return None
                raise SavepointRefused(answer["reason"])
            now_s = clock()
            if answer is not None if place.is_url else holder_of(checkpoints).is_held:
                there_s = now_s
            if now_s - there_s > _patience_s(place):
                return None
            if now_s - began_s > timeout_s:
                raise SavepointNotAnswered(
                    f"the job has not answered within {timeout_s:g} s. It may be restarting, or "
                    "its checkpoints take long: `epochgate status` says how it is. The savepoint "
                    "may be written yet; ask again with more --timeout"
                )
            time.sleep(ANSWER_LOOK_S)  # a file has no notice of its creation to wait for
    finally:
        place.remove(request_id + REQUEST)
        place.remove(request_id + ANSWER)


def _patience_s(place: RequestPlace) -> float:
    """Return the seconds without a sign of a driver after which there is none."""
    return TAKEN_WITHIN_LOOKS * place.look_s if place.is_url else LAST_WORD_S


def _savepoint_of(answer: dict[str, Any]) -> Savepoint:
    return Savepoint(**{name: value for name, value in answer.items() if name != "state"})


def copy_newest(
    checkpoints: str,
    to: str | None = None,
    *,
    open_objects: Callable[[str], ObjectStore] = open_url,
) -> Savepoint:
    """Make a savepoint of the newest whole checkpoint of a job that has ended.

    Raises NothingToCopy, and what `write_savepoint` raises.
    """
    for one in reversed(_retained(checkpoints, open_objects)):
        try:
            checkpoint = one.load()
        except CheckpointDamaged:
            continue
        return _copied(checkpoint, checkpoints, to, open_objects)
    raise NothingToCopy(
        f"{checkpoints} holds no whole checkpoint to make a savepoint of, and no job runs there"
    )


def copy_retained(
    checkpoints: str,
    checkpoint_id: int,
    to: str | None = None,
    *,
    open_objects: Callable[[str], ObjectStore] = open_url,
) -> Savepoint:
    """Make a savepoint of one of the checkpoints that a job keeps, whether it runs or not.

    Raises NothingToCopy, CheckpointDamaged, CheckpointNotFound where a job that runs has removed it
    since, and what `write_savepoint` raises.
    """
    kept = {one.checkpoint_id: one for one in _retained(checkpoints, open_objects)}
    if checkpoint_id not in kept:
        ids = ", ".join(map(str, kept)) or "none"
        raise NothingToCopy(
            f"{checkpoints} holds no checkpoint {checkpoint_id}; its job keeps {ids}"
        )
    return _copied(kept[checkpoint_id].load(), checkpoints, to, open_objects)


def _retained(
    checkpoints: str, open_objects: Callable[[str], ObjectStore]
) -> list[StoredCheckpoint]:
    stored = stored_checkpoints(checkpoints, open_objects=open_objects)
    return [one for one in stored if not one.is_aside]


def _copied(
    checkpoint: CompletedCheckpoint,
    checkpoints: str,
    to: str | None,
    open_objects: Callable[[str], ObjectStore],
) -> Savepoint:
    where = to or default_place(checkpoints, checkpoint.checkpoint_id)
    epoch = max(checkpoint.epoch, last_epoch(checkpoints, open_objects))
    return write_savepoint(
        where,
        replace(checkpoint, epoch=epoch),
        _reader(checkpoints, open_objects),
        open_objects=open_objects,
    )


def _reader(checkpoints: str, open_objects: Callable[[str], ObjectStore]) -> Callable[[str], bytes]:
    if is_url(checkpoints):
        return open_objects(checkpoints).get
    files = LocalFileSystem()
    return lambda name: files.read_bytes(f"{checkpoints}/{name}")
