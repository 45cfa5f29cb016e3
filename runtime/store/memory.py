"""Checkpoints in memory, under the same contract, for tests and simulation.

Decides: what a driver's death leaves behind (`CheckpointShelf`, which outlives the stores on it),
and which save fails. Leaves to others: when the driver dies. Checkpoints are kept as the bytes a
file would hold, so that nothing is shared with who saved them, and damage can be done to them. Runs
wherever the simulation runs; no I/O, no clock, no chance.
"""

from __future__ import annotations

import errno
from collections.abc import Iterable
from dataclasses import dataclass, field

from epochgate.runtime.store.checkpoint import CompletedCheckpoint
from epochgate.runtime.store.contract import (
    StoredInfo,
    logger,
    newest_whole,
    refuse_unless_next,
)
from epochgate.runtime.store.encoding import decode_checkpoint, encode_checkpoint, parts_in
from epochgate.runtime.store.errors import (
    CheckpointDamaged,
    CheckpointFormatUnknown,
    CheckpointNotFound,
    CheckpointOfAnotherJob,
    CheckpointOutcomeUnknown,
    CheckpointSaveFailed,
    CheckpointStoreClosed,
    CheckpointStoreInUse,
    CheckpointStoreLost,
)
from epochgate.runtime.store.parts import Parts


@dataclass
class CheckpointShelf:
    """The part of a store in memory that survives the driver: the bytes of each checkpoint by id,
    and who may write.

    `end_driver` is the driver's death: the store on the shelf loses its hold without having been
    closed.
    """

    checkpoints: dict[int, bytes] = field(default_factory=dict)
    files: dict[str, bytes] = field(default_factory=dict)
    damaged: dict[int, bytes] = field(default_factory=dict)
    job_id: str | None = None
    epoch: int = 0
    is_held: bool = False

    def end_driver(self) -> None:
        """Drop the hold as the operating system drops a dead process's lock."""
        self.is_held = False

    def lose_lock(self) -> None:
        """Let a second driver in while the first lives; the first is fenced once that one opens."""
        self.is_held = False


class InMemoryCheckpointStore:
    """A `CheckpointStore` on a `CheckpointShelf`; without one, on a shelf of its own."""

    def __init__(
        self, shelf: CheckpointShelf | None = None, *, job_id: str, retained: int = 3
    ) -> None:
        """Claim the shelf; `retained`: how many checkpoints are kept.

        Raises `CheckpointStoreInUse`, `CheckpointOfAnotherJob`; `ValueError` if `retained` is less
        than 1.
        """
        if retained < 1:
            raise ValueError(f"retained is {retained}, and at least 1 checkpoint must be")
        self.shelf = CheckpointShelf() if shelf is None else shelf
        if self.shelf.is_held:
            raise CheckpointStoreInUse(
                f"the shelf is in use by the driver of epoch {self.shelf.epoch}. Close its store, "
                "or end that driver with CheckpointShelf.end_driver"
            )
        if self.shelf.job_id not in (None, job_id):
            raise CheckpointOfAnotherJob(
                f"the shelf belongs to job {self.shelf.job_id!r}, and this is job {job_id!r}. Give "
                "each job a shelf of its own"
            )
        self.job_id, self.path = job_id, ""
        self._retained = retained
        self.shelf.is_held, self.shelf.job_id = True, job_id
        self.shelf.epoch += 1
        self.epoch = self.shelf.epoch
        self.last_id = max((*self.shelf.checkpoints, *self.shelf.damaged), default=None)
        self._next_failure: tuple[Exception, bool] | None = None
        self._uncertain: CheckpointOutcomeUnknown | None = None
        self._closed = False
        self.warnings: list[str] = []
        self._parts = Parts(f"{self.epoch}-0")
        self._remove_needless_parts()

    def fail_next_save(self, error: Exception | None = None, *, is_stored: bool = False) -> None:
        """Make the next `save` raise `error`, by default `CheckpointSaveFailed`, and store nothing.

        With `is_stored`, the checkpoint is kept nevertheless, and the default is
        `CheckpointOutcomeUnknown`.
        """
        if error is None and is_stored:
            error = CheckpointOutcomeUnknown(
                "whether the checkpoint is stored is unknown, by order"
            )
        elif error is None:
            error = CheckpointSaveFailed("the checkpoint was not stored, by order of the test")
        self._next_failure = (error, is_stored)

    def save(self, checkpoint: CompletedCheckpoint) -> StoredInfo:
        self._refuse_if_closed()
        if self._uncertain is not None:
            raise CheckpointOutcomeUnknown(*self._uncertain.args)
        refuse_unless_next(checkpoint, self.job_id, self.last_id)
        writing = self._parts.begin()
        data = encode_checkpoint(checkpoint, writing.keep)
        self._parts.written(writing)
        if self.shelf.epoch != self.epoch:
            raise CheckpointStoreLost(
                f"the driver of epoch {self.epoch} has lost the shelf to the one of epoch "
                f"{self.shelf.epoch}. It may not save any more and must stop"
            )
        failure, self._next_failure = self._next_failure, None
        self.shelf.files.update(writing.new)
        if failure is not None:
            self._fail(checkpoint.checkpoint_id, data, *failure)
        self.shelf.checkpoints[checkpoint.checkpoint_id] = data
        self.last_id = checkpoint.checkpoint_id
        self._parts.saved(checkpoint.checkpoint_id, writing)
        for retired in sorted(self.shelf.checkpoints)[: -self._retained]:
            del self.shelf.checkpoints[retired]
        self._remove_parts(self._parts.retire(self.shelf.checkpoints))
        size_bytes = len(data) + sum(map(len, writing.new.values()))
        return StoredInfo(self._name(checkpoint.checkpoint_id), size_bytes, 0.0)

    def adopt(self, checkpoint: CompletedCheckpoint) -> StoredInfo:
        self._refuse_if_closed()
        if self.shelf.epoch == self.epoch:
            self.shelf.epoch = self.epoch = max(self.epoch, checkpoint.epoch) + 1
        return self.save(checkpoint)

    def read_file(self, name: str) -> bytes:
        if name not in self.shelf.files:
            raise FileNotFoundError(errno.ENOENT, "not on the shelf", name)
        return self.shelf.files[name]

    def write_file(self, name: str, data: bytes) -> None:
        self.shelf.files[name] = data

    def latest(self) -> CompletedCheckpoint | None:
        self._refuse_if_closed()
        newest = newest_whole(self.ids(), self.last_id, "the shelf", self.load, self._set_aside)
        if newest is not None:
            self._parts.may_be_reused(newest.checkpoint_id)
        return newest

    def load(self, checkpoint_id: int) -> CompletedCheckpoint:
        self._refuse_if_closed()
        data = self.shelf.checkpoints.get(checkpoint_id)
        if data is None:
            raise CheckpointNotFound(
                f"the shelf holds no checkpoint {checkpoint_id}, but {self.ids()}"
            )
        name = self._name(checkpoint_id)
        checkpoint = decode_checkpoint(
            data, source=name, job_id=self.job_id, read_part=self.read_file
        )
        if checkpoint.checkpoint_id != checkpoint_id:
            raise CheckpointDamaged(name, f"it holds checkpoint {checkpoint.checkpoint_id}")
        return checkpoint

    def ids(self) -> list[int]:
        self._refuse_if_closed()
        return sorted(self.shelf.checkpoints)

    def close(self) -> None:
        if not self._closed and self.shelf.epoch == self.epoch:
            self.shelf.is_held = False
        self._closed = True

    def __enter__(self) -> InMemoryCheckpointStore:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _fail(self, checkpoint_id: int, data: bytes, error: Exception, is_stored: bool) -> None:
        if is_stored:
            self.shelf.checkpoints[checkpoint_id] = data
            self.last_id = checkpoint_id
        if isinstance(error, CheckpointOutcomeUnknown):
            self._uncertain = error
        raise error

    def _remove_needless_parts(self) -> None:
        for checkpoint_id in self.ids() if self.shelf.files else ():
            data, name = self.shelf.checkpoints[checkpoint_id], self._name(checkpoint_id)
            try:
                self._parts.found(checkpoint_id, parts_in(data, source=name))
            except (CheckpointDamaged, CheckpointFormatUnknown):
                return
        self._remove_parts(self._parts.needless(self.shelf.files))

    def _remove_parts(self, names: Iterable[str]) -> None:
        for name in list(names):
            self.shelf.files.pop(name, None)

    def _set_aside(self, checkpoint_id: int, damage: CheckpointDamaged) -> None:
        self.shelf.damaged[checkpoint_id] = self.shelf.checkpoints.pop(checkpoint_id)
        sentence = (
            f"{damage.source} is damaged ({damage.reason}); falling back to the one before it"
        )
        self.warnings.append(sentence)
        logger.warning(sentence)

    def _refuse_if_closed(self) -> None:
        if self._closed:
            raise CheckpointStoreClosed("the store on this shelf was closed; open another")

    def _name(self, checkpoint_id: int) -> str:
        return f"memory:{self.job_id}/{checkpoint_id}"
