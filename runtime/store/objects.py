"""Checkpoints in an object store, one object each, listed in a log that one driver can append to.

Decides: names, and the order of steps that makes a save all or nothing:

    put new parts, then the checkpoint, under names of their own -> append to the log -> delete
                                                                    ^ durable, `save` may return;
                                                                      and the fence

A start claims the log by an entry of its own, after which no earlier driver can append: of two that
start at once one is refused, and one that was suspended is stopped in the request in which it would
save (`epochgate.runtime.objects.log`). Unlike a directory, whose lock tells whether its holder is
alive, an object store cannot tell: a later start replaces the one before.
Runs on the driver, on one thread at a time, outside the event queue.

    _epochgate/log/000000000000017.json               the log
    checkpoints/000000000007-EPOCH-MARK.epochgate     a checkpoint
    parts/EPOCH-MARK-12.part                          a part of a state, to which checkpoints refer
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable
from typing import Any

from epochgate.runtime.objects.client import ObjectStore, require_conditions
from epochgate.runtime.objects.log import (
    Entry,
    LogOutcomeUnknown,
    LogTakenOver,
    ObjectLog,
    State,
)
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
    CheckpointStoreUnusable,
)
from epochgate.runtime.store.parts import FOLDER as PARTS_FOLDER, Parts

KIND = "checkpoints"
FOLDER = "checkpoints"
INITIAL: State = {"saved": {}, "aside": [], "last": None, "epoch": 0}


def fold(state: State, entry: Entry) -> State:
    """The state of a checkpoint log: saved ids and their objects, and how far ids have come."""
    if entry["kind"] == "claim":
        return {**state, "job": entry["job"], "product": entry["product"], "epoch": entry["epoch"]}
    saved = dict(state["saved"])
    if entry["kind"] == "damaged":
        aside = [*state["aside"], saved.pop(entry["id"])]
        return {**state, "saved": saved, "aside": aside}
    saved[entry["id"]] = entry["object"]
    newest = sorted(saved, key=int)[-entry["retained"] :]
    return {**state, "saved": {number: saved[number] for number in newest}, "last": entry["id"]}


def checkpoint_of_key(key: str) -> int:
    """The id of the checkpoint in the object of this key.

    >>> checkpoint_of_key("checkpoints/000000000007-1-ab12.epochgate")
    7
    """
    return int(key.rpartition("/")[2].partition("-")[0])


class ObjectCheckpointStore:
    """A `CheckpointStore` below a URL; the last driver that has opened it may save."""

    def __init__(
        self,
        objects: ObjectStore,
        *,
        job_id: str,
        retained: int = 3,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        """Claim the place; `clock` gives seconds, for durations only.

        Raises `ConditionsIgnored`, `ObjectStoreUnusable`, `CheckpointStoreInUse` where another
        starts at the same moment, `CheckpointOfAnotherJob`, `CheckpointStoreUnusable`; `ValueError`
        if `retained` is less than 1.
        """
        if retained < 1:
            raise ValueError(f"retained is {retained}, and at least 1 checkpoint must be")
        self._objects, self._retained = objects, retained
        self.path, self.job_id = objects.url, job_id
        self._clock = clock
        self._closed = False
        self._uncertain: CheckpointOutcomeUnknown | None = None
        self._mark = secrets.token_hex(8)
        self._log = ObjectLog(objects, fold, INITIAL)
        self.warnings: list[str] = []
        require_conditions(objects)
        self._look()
        self._claim()
        self._remove_unsaved()

    @property
    def objects(self) -> ObjectStore:
        """The objects below the URL."""
        return self._objects

    @property
    def last_id(self) -> int | None:
        last = self._log.state["last"]
        return None if last is None else int(last)

    def save(self, checkpoint: CompletedCheckpoint) -> StoredInfo:
        self._refuse_if_closed()
        if self._uncertain is not None:
            raise CheckpointOutcomeUnknown(*self._uncertain.args)
        refuse_unless_next(checkpoint, self.job_id, self.last_id)
        started_s = self._clock()
        writing = self._parts.begin()
        data = encode_checkpoint(checkpoint, writing.keep)
        self._parts.written(writing)
        number = checkpoint.checkpoint_id
        key = f"{FOLDER}/{number:012d}-{self.epoch}-{self._mark}.epochgate"
        before = set(self._log.state["saved"].values())
        try:
            for name, content in writing.new.items():
                self._objects.put(name, content)
            self._objects.put(key, data)
        except OSError as error:
            raise CheckpointSaveFailed(
                f"checkpoint {number} was not stored in {self.path}: {error}. The checkpoints "
                "before it are untouched. Check the network and the store"
            ) from error
        self._append({"kind": "save", "id": str(number), "object": key, "retained": self._retained})
        self._parts.saved(number, writing)
        duration_s = self._clock() - started_s
        self._remove(before - set(self._log.state["saved"].values()))
        self._remove(set(self._parts.retire(self.ids())))
        size_bytes = len(data) + sum(map(len, writing.new.values()))
        return StoredInfo(f"{self.path}/{key}", size_bytes, duration_s)

    def adopt(self, checkpoint: CompletedCheckpoint) -> StoredInfo:
        self._refuse_if_closed()
        self._claim(after_epoch=checkpoint.epoch)
        return self.save(checkpoint)

    def read_file(self, name: str) -> bytes:
        return self._objects.get(name)

    def write_file(self, name: str, data: bytes) -> None:
        self._objects.put(name, data)

    def latest(self) -> CompletedCheckpoint | None:
        self._refuse_if_closed()
        newest = newest_whole(self.ids(), self.last_id, self.path, self.load, self._set_aside)
        if newest is not None:
            self._parts.may_be_reused(newest.checkpoint_id)
        return newest

    def load(self, checkpoint_id: int) -> CompletedCheckpoint:
        self._refuse_if_closed()
        key = self._log.state["saved"].get(str(checkpoint_id))
        if key is None:
            raise CheckpointNotFound(
                f"{self.path} holds no checkpoint {checkpoint_id}, but {self.ids()}"
            )
        source = f"{self.path}/{key}"
        try:
            data = self._objects.get(key)
        except FileNotFoundError as error:
            raise CheckpointDamaged(source, "it is not there any more") from error
        except OSError as error:
            raise self._unusable("read", error) from error
        try:
            checkpoint = decode_checkpoint(
                data, source=source, job_id=self.job_id, read_part=self.read_file
            )
        except OSError as error:
            raise self._unusable("read", error) from error
        if checkpoint.checkpoint_id != checkpoint_id:
            raise CheckpointDamaged(source, f"it holds checkpoint {checkpoint.checkpoint_id}")
        return checkpoint

    def ids(self) -> list[int]:
        self._refuse_if_closed()
        return sorted(map(int, self._log.state["saved"]))

    def close(self) -> None:
        self._closed = True

    def __enter__(self) -> ObjectCheckpointStore:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _look(self) -> None:
        try:
            self._log.refresh()
        except (OSError, ValueError) as error:
            raise self._unusable("open", error) from error

    def _claim(self, *, after_epoch: int = 0) -> None:
        """Claim the log as it was last seen: one who has claimed it since is not replaced."""
        try:
            state = self._log.state
            if state.get("product", KIND) != KIND or state.get("job", self.job_id) != self.job_id:
                raise CheckpointOfAnotherJob(
                    f"{self.path} belongs to job {state.get('job')!r} ({state.get('product')}), "
                    f"and this is job {self.job_id!r}. Give each job a checkpoint directory of "
                    "its own, outside of its target"
                )
            self.epoch = max(int(state["epoch"]), after_epoch) + 1
            claim: dict[str, Any] = {"job": self.job_id, "product": KIND, "epoch": self.epoch}
            self._log.claim(self._mark, {**claim, "run": self._mark})
        except LogTakenOver as error:
            raise CheckpointStoreInUse(
                f"the checkpoints in {self.path} were claimed by another driver at the same "
                "moment. Two drivers would process the same rows: let that one go on, or stop it "
                "and start again"
            ) from error
        except (OSError, ValueError, LogOutcomeUnknown) as error:
            raise self._unusable("open", error) from error

    def _remove_unsaved(self) -> None:
        """Remove what earlier drivers have put and not appended; they can append it no more."""
        state = self._log.state
        try:
            left = set(self._objects.list(FOLDER))
        except OSError as error:
            raise self._unusable("list", error) from error
        self._remove(left - set(state["saved"].values()) - set(state["aside"]))
        self._remove_needless_parts()

    def _remove_needless_parts(self) -> None:
        """Remove the parts to which no stored checkpoint refers."""
        self._parts = Parts(f"{self.epoch}-{self._mark}")
        try:
            names = self._objects.list(PARTS_FOLDER)
            for number, key in self._log.state["saved"].items() if names else ():
                source = f"{self.path}/{key}"
                self._parts.found(int(number), parts_in(self._objects.get(key), source=source))
            left = self._parts.needless(names)
        except (CheckpointDamaged, CheckpointFormatUnknown, FileNotFoundError):
            return  # what it refers to is not known, and may be wanted for a look
        except OSError as error:
            raise self._unusable("read", error) from error
        self._remove(set(left))

    def _append(self, entry: Entry) -> None:
        try:
            self._log.append(entry)
        except LogTakenOver as error:
            raise CheckpointStoreLost(
                f"this driver (epoch {self.epoch}) has lost the checkpoints in {self.path} to a "
                "later start. It may not save any more and must stop; the job goes on in the other "
                "driver"
            ) from error
        except (OSError, ValueError, LogOutcomeUnknown) as error:
            self._uncertain = CheckpointOutcomeUnknown(
                f"whether checkpoint {entry['id']} is stored in {self.path} is unknown: {error}. "
                "Restart the job once the store answers: it resumes from what is found there"
            )
            raise self._uncertain from error

    def _remove(self, keys: set[str]) -> None:
        """Remove what is not retained any more. The new one is durable, so this may fail."""
        for key in sorted(keys):
            try:
                self._objects.delete(key)
            except OSError as error:
                self._warn(f"an old checkpoint in {self.path} could not be removed: {error}")

    def _set_aside(self, checkpoint_id: int, damage: CheckpointDamaged) -> None:
        self._append({"kind": "damaged", "id": str(checkpoint_id)})
        self._warn(
            f"checkpoint {damage.source} is damaged ({damage.reason}); it is kept, and the job "
            "falls back to the checkpoint before it"
        )

    def _unusable(self, doing: str, error: Exception) -> CheckpointStoreUnusable:
        return CheckpointStoreUnusable(f"cannot {doing} the checkpoints in {self.path}: {error}")

    def _refuse_if_closed(self) -> None:
        if self._closed:
            raise CheckpointStoreClosed(f"the store in {self.path} was closed; open it again")

    def _warn(self, sentence: str) -> None:
        self.warnings.append(sentence)
        logger.warning(sentence)
