"""A savepoint: one checkpoint with all that it needs, in a place of its own, which no job removes.

Decides what is in the place, and in which order it is written:

    make the place, which must not be there -> files -> savepoint.epochgate
                                                        ^ from here on it is a savepoint

and how a job's checkpoints begin with one: the store must hold none yet, and its epochs go on after
those of the savepoint, so that targets which tell drivers apart by them take the new driver.
Leaves to others when a checkpoint is taken for it (the machine `CheckpointRequest`), and its bytes
(`epochgate.runtime.store.encoding`). Does I/O: never on the queue's thread.

    savepoint.epochgate     the checkpoint, as in a directory of checkpoints
    known-files/...         the files beside the checkpoints that its states refer to
"""

from __future__ import annotations

import os
import uuid
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from typing import Any, Final

from epochgate.runtime.filesystem import LocalFileSystem
from epochgate.runtime.objects.client import ObjectStore, is_url, open_url
from epochgate.runtime.savepoints.errors import (
    CheckpointsNotFresh,
    NoSavepoint,
    SavepointFailed,
    SavepointIncomplete,
    SavepointOfAnotherJob,
    SavepointPlaceTaken,
)
from epochgate.runtime.store import (
    CheckpointStore,
    CompletedCheckpoint,
    decode_checkpoint,
    encode_checkpoint,
)
from epochgate.runtime.store.inspection import SAVEPOINT_NAME

FOLDER_SUFFIX: Final = ".savepoints"

Open = Callable[[str], ObjectStore]


@dataclass(frozen=True)
class Savepoint:
    """A savepoint that was written.

    path: its place, a directory or a URL. savepoint_id: its own. size_bytes: of everything in it.
    """

    path: str
    savepoint_id: str
    job_id: str
    checkpoint_id: int
    parallelism: int
    size_bytes: int

    def to_json(self) -> dict[str, Any]:
        """Plain values by name."""
        return asdict(self)

    def __str__(self) -> str:
        return f"savepoint of checkpoint {self.checkpoint_id} of job {self.job_id}: {self.path}"


@dataclass(frozen=True)
class StoredSavepoint:
    """A savepoint that was read; `read_file` reads one of the files of its checkpoint."""

    path: str
    checkpoint: CompletedCheckpoint
    read_file: Callable[[str], bytes]


def default_place(checkpoints: str, checkpoint_id: int) -> str:
    """A place that is not there yet, beside the directory or URL of a job's checkpoints.

    >>> default_place("/jobs/orders", 12).startswith("/jobs/orders.savepoints/000000000012-")
    True
    """
    name = f"{checkpoint_id:012d}-{uuid.uuid4().hex[:8]}"
    return f"{checkpoints.rstrip('/')}{FOLDER_SUFFIX}/{name}"


def write_savepoint(
    place: str,
    checkpoint: CompletedCheckpoint,
    read_file: Callable[[str], bytes],
    *,
    open_objects: Open = open_url,
) -> Savepoint:
    """Write `checkpoint` and its files, which `read_file` reads, to `place`.

    Raises SavepointPlaceTaken, SavepointIncomplete, SavepointFailed, ObjectStoreUnusable.
    """
    if checkpoint.files is None:
        raise SavepointIncomplete(
            f"checkpoint {checkpoint.checkpoint_id} was taken by an earlier epochgate, which did "
            "not note the files that belong to it. Start the job once with this one: from its next "
            "checkpoint a savepoint can be made"
        )
    place = place if is_url(place) else os.path.abspath(place)
    savepoint_id = uuid.uuid4().hex
    data = encode_checkpoint(replace(checkpoint, begun_from=savepoint_id))
    writing = _InObjects(open_objects(place)) if is_url(place) else _InDirectory(place)
    size = len(data)
    try:
        writing.make()
        for name in checkpoint.files:
            content = _read(read_file, name, checkpoint)
            writing.add(name, content)
            size += len(content)
        writing.finish(data)
    except FileExistsError as error:
        raise SavepointPlaceTaken(place) from error
    except OSError as error:
        raise SavepointFailed(place, error) from error
    return Savepoint(
        place,
        savepoint_id,
        checkpoint.job_id,
        checkpoint.checkpoint_id,
        checkpoint.parallelism,
        size,
    )


def _read(read_file: Callable[[str], bytes], name: str, checkpoint: CompletedCheckpoint) -> bytes:
    try:
        return read_file(name)
    except OSError as error:
        raise SavepointIncomplete(
            f"the file {name!r}, which belongs to checkpoint {checkpoint.checkpoint_id} of job "
            f"{checkpoint.job_id!r}, cannot be read: {error}. Put it back beside the checkpoints; "
            "if the job has just removed it with the checkpoint, ask again"
        ) from error


def read_savepoint(place: str, *, open_objects: Open = open_url) -> StoredSavepoint:
    """Read and verify the savepoint at `place`.

    Raises NoSavepoint, CheckpointDamaged, CheckpointFormatUnknown, ObjectStoreUnusable.
    """
    read_file: Callable[[str], bytes]
    if is_url(place):
        read_file = open_objects(place).get
    else:
        files, place = LocalFileSystem(), os.path.abspath(place)
        read_file = lambda name: files.read_bytes(os.path.join(place, name))  # noqa: E731
    try:
        data = read_file(SAVEPOINT_NAME)
    except (FileNotFoundError, NotADirectoryError) as error:
        raise NoSavepoint(
            place, f"there is no {SAVEPOINT_NAME}; the writing of it may have been cut off"
        ) from error
    except OSError as error:
        raise NoSavepoint(place, f"it cannot be read ({error})") from error
    checkpoint = decode_checkpoint(data, source=f"{place}/{SAVEPOINT_NAME}")
    return StoredSavepoint(place, checkpoint, read_file)


def begin_from(
    store: CheckpointStore, place: str, *, open_objects: Open = open_url
) -> CompletedCheckpoint:
    """Let the checkpoints in `store` begin with the savepoint at `place`; its checkpoint.

    Nothing happens where they have begun with it before, so that the same start can be repeated.
    Raises CheckpointsNotFresh, SavepointOfAnotherJob, SavepointIncomplete, and what
    `read_savepoint` and the store raise.
    """
    savepoint = read_savepoint(place, open_objects=open_objects)
    checkpoint = savepoint.checkpoint
    if checkpoint.job_id != store.job_id:
        raise SavepointOfAnotherJob(savepoint.path, checkpoint.job_id, store.job_id)
    newest = store.latest()
    if newest is not None and newest.begun_from == checkpoint.begun_from:
        return checkpoint
    if newest is not None:
        raise CheckpointsNotFresh(store.path, newest.checkpoint_id, savepoint.path)
    for name in checkpoint.files or ():
        store.write_file(name, _read(savepoint.read_file, name, checkpoint))
    store.adopt(checkpoint)
    return checkpoint


class _InDirectory:
    """A savepoint in a directory, which `make` makes: where it is there, another has it."""

    def __init__(self, place: str) -> None:
        self._files, self._place = LocalFileSystem(), place

    def make(self) -> None:
        parent = os.path.dirname(self._place)
        self._files.make_directory(parent)
        self._files.create_directory(self._place)
        self._files.fsync_directory(parent)

    def add(self, name: str, data: bytes) -> None:
        path = os.path.join(self._place, name)
        self._files.make_directory(os.path.dirname(path))
        self._files.write_bytes_durably(path, data)

    def finish(self, data: bytes) -> None:
        self._files.write_bytes_durably(os.path.join(self._place, SAVEPOINT_NAME), data)


class _InObjects:
    """A savepoint in an object store, of which the last object is created only if it is not there.

    Files beside checkpoints are written once, under names of their own, so that of two who write
    to one place the one that is refused has changed nothing of the other's.
    """

    def __init__(self, objects: ObjectStore) -> None:
        self._objects = objects

    def make(self) -> None:
        if self._objects.list(""):
            raise FileExistsError(self._objects.url)

    def add(self, name: str, data: bytes) -> None:
        self._objects.put(name, data)

    def finish(self, data: bytes) -> None:
        self._objects.create(SAVEPOINT_NAME, data)
