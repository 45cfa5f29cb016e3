"""The contract of every checkpoint store, whatever it keeps its checkpoints in.

Decides: the operations, and the way back from a damaged checkpoint to a whole one.
Leaves to others: the medium (`DirectoryCheckpointStore`, `InMemoryCheckpointStore`).
A store is used from one thread at a time, and outside the event queue: it does I/O.

- `save` returns once the checkpoint survives a power cut, or raises and changes nothing
  (`CheckpointSaveFailed`), or says that it does not know (`CheckpointOutcomeUnknown`).
- Ids increase, also over the ids of damaged checkpoints: a number never means two checkpoints.
- At most one driver holds a store, and one that has lost it can no longer save.
- A checkpoint is removed only after `retained` newer ones are durable.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from epochgate.runtime.store.checkpoint import CompletedCheckpoint
from epochgate.runtime.store.errors import (
    CheckpointDamaged,
    CheckpointIdNotIncreasing,
    CheckpointOfAnotherJob,
    NoWholeCheckpoint,
)

logger = logging.getLogger("epochgate.runtime.store")


@dataclass(frozen=True)
class StoredInfo:
    """The result of a save: where the checkpoint is, the bytes that were written for it, with new
    parts, and the seconds it took to be durable.
    """

    path: str
    size_bytes: int
    duration_s: float


class CheckpointStore(Protocol):
    """Keeps the completed checkpoints of one job for the one driver that has opened it.

    Every operation but `close` raises `CheckpointStoreClosed` after it, and one whose medium cannot
    be used raises `CheckpointStoreUnusable`, or `CheckpointStoreFull` where there is no room.
    """

    @property
    def job_id(self) -> str:
        """The job whose checkpoints these are."""
        ...

    @property
    def path(self) -> str:
        """The place of the checkpoints: a directory, or a URL; empty for what ends with the
        process.
        """
        ...

    @property
    def epoch(self) -> int:
        """The number of this opening of the store, from 1: higher than each earlier driver's."""

    @property
    def last_id(self) -> int | None:
        """The highest id ever seen here, damaged ones included: the next must be above it."""

    @property
    def warnings(self) -> Sequence[str]:
        """The warnings for the user: each sentence names a file. Also sent to `logging`."""

    def save(self, checkpoint: CompletedCheckpoint) -> StoredInfo:
        """Store `checkpoint`, then remove what is beyond the retained ones.

        Raises `CheckpointNotStorable`, `CheckpointOfAnotherJob`, `CheckpointIdNotIncreasing`,
        `CheckpointStoreFull` or another `CheckpointSaveFailed`, `CheckpointStoreLost`,
        `CheckpointOutcomeUnknown`.
        """

    def latest(self) -> CompletedCheckpoint | None:
        """The newest checkpoint that is whole; none if there never was one.

        Damaged ones above it are kept aside under another name, each with a warning. Raises
        `NoWholeCheckpoint` if all are damaged; `CheckpointFormatUnknown`, `CheckpointOfAnotherJob`.

        A job that falls back must not commit under an id that may have been committed already:
        `last_id` tells how far the ids had come.
        """

    def load(self, checkpoint_id: int) -> CompletedCheckpoint:
        """That checkpoint.

        Raises `CheckpointNotFound`, `CheckpointDamaged`, `CheckpointFormatUnknown`,
        `CheckpointOfAnotherJob`.
        """

    def ids(self) -> list[int]:
        """The ids that are stored, ascending; whether they are whole shows on loading."""

    def adopt(self, checkpoint: CompletedCheckpoint) -> StoredInfo:
        """Begin with a checkpoint that another store has held: save it, where there is none so far,
        after going on to an epoch above its own.

        Raises what `save` raises (CheckpointOfAnotherJob among them), CheckpointStoreInUse where
        another has claimed the store since it was opened, CheckpointStoreUnusable.
        """

    def read_file(self, name: str) -> bytes:
        """A file that lies beside the checkpoints and belongs to some. Raises FileNotFoundError and
        other OSErrors.
        """

    def write_file(self, name: str, data: bytes) -> None:
        """Keep a file beside the checkpoints, durably. Raises OSError."""

    def close(self) -> None:
        """Let another driver have the store. Closing twice is harmless."""


def newest_whole(
    ids: Sequence[int],
    last_id: int | None,
    place: str,
    load: Callable[[int], CompletedCheckpoint],
    set_aside: Callable[[int, CheckpointDamaged], None],
) -> CompletedCheckpoint | None:
    """Find what `CheckpointStore.latest` promises, on any medium; errors name it by `place`."""
    for checkpoint_id in reversed(ids):
        try:
            return load(checkpoint_id)
        except CheckpointDamaged as damage:
            set_aside(checkpoint_id, damage)
    if last_id is None:
        return None
    raise NoWholeCheckpoint(
        f"{place} has held checkpoints up to {last_id}, and none of them is whole. To start from "
        "the beginning would process again what has been committed, so nothing was started. "
        "Restore a checkpoint from a copy; or, if doing everything again is right, use an empty "
        "checkpoint directory and an empty target"
    )


def refuse_unless_next(checkpoint: CompletedCheckpoint, job_id: str, last_id: int | None) -> None:
    """Raise `CheckpointOfAnotherJob` or `CheckpointIdNotIncreasing` if it may not be saved here."""
    if checkpoint.job_id != job_id:
        raise CheckpointOfAnotherJob(
            f"checkpoint {checkpoint.checkpoint_id} is of job {checkpoint.job_id!r}, and this "
            f"store keeps those of job {job_id!r}. Open a store for that job"
        )
    if last_id is not None and checkpoint.checkpoint_id <= last_id:
        raise CheckpointIdNotIncreasing(
            f"checkpoint {checkpoint.checkpoint_id} comes after {last_id} in this store, and ids "
            f"must increase. Number the checkpoints of a new run from {last_id + 1}"
        )
