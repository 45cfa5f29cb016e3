"""Checkpoints in a directory, one file each.

Decides: names, and the order of steps that makes a save all or nothing:

    write temporary -> fsync it -> claim still ours? -> rename -> fsync directory -> remove old ones
                                                        ^ visible   ^ durable, `save` may return

A start claims the directory, and removes all temporaries behind that. So whatever pause an earlier
driver makes, it either finds that the claim is not its own, or finds nothing to rename.

Leaves to others: the format (`encoding`), who may write (`claim`), single file operations
(`epochgate.runtime.filesystem`), and what a completed checkpoint sets in motion.
Runs on the driver, on one thread at a time, outside the event queue.

    checkpoint-000000000007.epochgate           a checkpoint
    parts/3-0a1b2c-12.part                      a part of a state, to which checkpoints refer
    checkpoint-000000000006.epochgate.damaged   one that did not read back; kept for inspection
    claim.json, driver.lock                     who holds the directory
Other files are left alone.
"""

from __future__ import annotations

import contextlib
import errno
import os
import re
import time
from collections.abc import Callable, Iterable, Iterator

from epochgate.runtime.filesystem import (
    TEMPORARY_SUFFIX,
    AnyPath,
    FileSystem,
    LocalFileSystem,
)
from epochgate.runtime.store.checkpoint import CompletedCheckpoint
from epochgate.runtime.store.claim import CLAIM_NAME, HeldDirectory
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
    CheckpointIdNotIncreasing,
    CheckpointNotFound,
    CheckpointOutcomeUnknown,
    CheckpointSaveFailed,
    CheckpointStoreClosed,
    CheckpointStoreFull,
    CheckpointStoreUnusable,
)
from epochgate.runtime.store.parts import FOLDER as PARTS_FOLDER, Parts, Writing

DAMAGED_SUFFIX = ".damaged"

_NAME = re.compile(r"checkpoint-(\d{12,19})\.epochgate(\.damaged(?:-\d+)?)?")
_NO_SPACE = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})


def checkpoint_file_name(checkpoint_id: int) -> str:
    """The name of a checkpoint's file; names sort like their ids up to 12 digits.

    >>> checkpoint_file_name(7)
    'checkpoint-000000000007.epochgate'
    """
    return f"checkpoint-{checkpoint_id:012d}.epochgate"


def checkpoint_named(name: str) -> tuple[int, bool] | None:
    """The id of the checkpoint in a file of this name, and whether it was kept aside; or none.

    >>> checkpoint_named("checkpoint-000000000007.epochgate.damaged")
    (7, True)
    """
    match = _NAME.fullmatch(name)
    if match is None or not name.startswith(checkpoint_file_name(int(match[1]))):
        return None
    return int(match[1]), match[2] is not None


class DirectoryCheckpointStore:
    """A `CheckpointStore` in a directory that this driver alone holds until `close` or death."""

    def __init__(
        self,
        path: AnyPath,
        *,
        job_id: str,
        retained: int = 3,
        file_system: FileSystem | None = None,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        """Open `path`, creating it if missing; `clock` gives seconds, for durations only.

        Raises `CheckpointStoreInUse`, `CheckpointOfAnotherJob`, `CheckpointFormatUnknown`,
        `CheckpointStoreFull`, `CheckpointStoreUnusable`, `LocksRefused`; `ValueError` if `retained`
        is less than 1.
        """
        if retained < 1:
            raise ValueError(f"retained is {retained}, and at least 1 checkpoint must be")
        self.path = os.path.abspath(path)
        self.job_id = job_id
        self._retained = retained
        self._files: FileSystem = LocalFileSystem() if file_system is None else file_system
        self._clock = clock
        self._saves = 0
        self.last_id: int | None = None
        self._uncertain_id: int | None = None
        self._closed = False
        self.warnings: list[str] = []
        with self._usable("open"):
            self._files.make_directory(self.path)
            self._held = HeldDirectory(self._files, self.path, job_id)
        try:
            with self._usable("open"):
                self._take_over()
        except BaseException:
            self._held.release()
            raise

    @property
    def epoch(self) -> int:
        return self._held.epoch

    def save(self, checkpoint: CompletedCheckpoint) -> StoredInfo:
        self._refuse_if_closed()
        self._refuse_if_uncertain()
        refuse_unless_next(checkpoint, self.job_id, self.last_id)
        started_s = self._clock()
        writing = self._parts.begin()
        data = encode_checkpoint(checkpoint, writing.keep)
        path = self._path_of(checkpoint.checkpoint_id)
        self._parts.written(writing)
        self._publish(checkpoint.checkpoint_id, path, data, writing)
        self._parts.saved(checkpoint.checkpoint_id, writing)
        self.last_id = checkpoint.checkpoint_id
        duration_s = self._clock() - started_s
        self._retire()
        size_bytes = len(data) + sum(map(len, writing.new.values()))
        return StoredInfo(path, size_bytes, duration_s)

    def adopt(self, checkpoint: CompletedCheckpoint) -> StoredInfo:
        self._refuse_if_closed()
        with self._usable("claim"):
            self._held.refuse_if_lost()
            self._held.claim(checkpoint.epoch)
        return self.save(checkpoint)

    def read_file(self, name: str) -> bytes:
        return self._files.read_bytes(os.path.join(self.path, name))

    def write_file(self, name: str, data: bytes) -> None:
        path = os.path.join(self.path, name)
        self._files.make_directory(os.path.dirname(path))
        self._files.write_bytes_durably(path, data)

    def latest(self) -> CompletedCheckpoint | None:
        self._refuse_if_closed()
        place = f"the checkpoint directory {self.path}"
        newest = newest_whole(self.ids(), self.last_id, place, self.load, self._set_aside)
        if newest is not None:
            self._parts.may_be_reused(newest.checkpoint_id)
        return newest

    def load(self, checkpoint_id: int) -> CompletedCheckpoint:
        self._refuse_if_closed()
        path = self._path_of(checkpoint_id)
        with self._usable("read"):
            try:
                data = self._files.read_bytes(path)
            except FileNotFoundError as error:
                raise CheckpointNotFound(
                    f"{self.path} holds no checkpoint {checkpoint_id}, but {self.ids()}"
                ) from error
        with self._usable("read"):
            checkpoint = decode_checkpoint(
                data, source=path, job_id=self.job_id, read_part=self.read_file
            )
        if checkpoint.checkpoint_id != checkpoint_id:
            raise CheckpointDamaged(path, f"it holds checkpoint {checkpoint.checkpoint_id}")
        return checkpoint

    def ids(self) -> list[int]:
        self._refuse_if_closed()
        return sorted(
            checkpoint_id for checkpoint_id, is_damaged in self._listed() if not is_damaged
        )

    def close(self) -> None:
        self._closed = True
        self._held.release()

    def __enter__(self) -> DirectoryCheckpointStore:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _take_over(self) -> None:
        self._remove_temporaries()  # they may be what fills the disk
        if self._held.claim_is_damaged:
            aside = self._keep_aside(os.path.join(self.path, CLAIM_NAME))
            self._warn(f"the claim file of {self.path} was damaged; it is kept as {aside}")
        self._held.claim()
        # The fence: a driver that has read the claim back before, and not renamed, has nothing to
        # rename any more.
        self._remove_temporaries()
        self.last_id = max((found for found, _ in self._listed()), default=None)
        self._parts = Parts(f"{self._held.epoch}-{self._held.mark}")
        self._remove_needless_parts()

    def _remove_needless_parts(self) -> None:
        """Remove what drivers before have written and no stored checkpoint refers to."""
        folder = os.path.join(self.path, PARTS_FOLDER)
        if not self._files.exists(folder):
            return
        for checkpoint_id in self.ids():
            path = self._path_of(checkpoint_id)
            try:
                parts = parts_in(self._files.read_bytes(path), source=path)
            except FileNotFoundError:
                continue  # a driver that was replaced has retired it
            except (CheckpointDamaged, CheckpointFormatUnknown):
                return  # what it refers to is not known, and may be wanted for a look
            self._parts.found(checkpoint_id, parts)
        names = [f"{PARTS_FOLDER}/{name}" for name in self._files.list_directory(folder)]
        self._remove_parts(self._parts.needless(names))

    def _remove_parts(self, names: Iterable[str]) -> None:
        for name in names:
            self._files.remove(os.path.join(self.path, name))

    def _write_parts(self, writing: Writing) -> None:
        """Nothing refers to these so far, and no other driver has their names: no rename."""
        if not writing.new:
            return
        folder = os.path.join(self.path, PARTS_FOLDER)
        self._files.make_directory(folder)
        for name, content in writing.new.items():
            file = self._files.open_for_writing(os.path.join(self.path, name))
            try:
                file.write(content)
                file.fsync()
            finally:
                file.close()
        self._files.fsync_directory(folder)

    def _remove_temporaries(self) -> None:
        for name in self._files.list_directory(self.path):
            if name.endswith(TEMPORARY_SUFFIX) and name.startswith(
                (".checkpoint-", f".{CLAIM_NAME}")
            ):
                self._files.remove(os.path.join(self.path, name))

    def _publish(self, checkpoint_id: int, path: str, data: bytes, writing: Writing) -> None:
        self._saves += 1
        # Never a name that another driver may make: it would be renamed half written.
        unique = f"{self._held.epoch}-{self._held.mark}-{self._saves}{TEMPORARY_SUFFIX}"
        temporary = os.path.join(self.path, f".{checkpoint_file_name(checkpoint_id)}.{unique}")
        renaming = False
        try:
            self._write_parts(writing)
            file = self._files.open_for_writing(temporary)
            try:
                file.write(data)
                file.fsync()
            finally:
                file.close()
            self._refuse_if_not_mine(path)
            renaming = True
            self._files.rename(temporary, path)
            self._files.fsync_directory(self.path)
        except OSError as error:
            if renaming:
                self._take_back(checkpoint_id, path, error)
            with contextlib.suppress(OSError):
                self._remove_parts(writing.new)
            raise self._save_failure(checkpoint_id, error) from error
        finally:
            # Harmless once renamed; otherwise it gives back the space that the attempt took.
            with contextlib.suppress(OSError):
                self._files.remove(temporary)

    def _refuse_if_not_mine(self, path: str) -> None:
        self._held.refuse_if_lost()
        if self._files.exists(path):
            self._held.refuse_if_lost()  # another may have saved it since the claim was read
            raise CheckpointIdNotIncreasing(
                f"{path} is there already, and this driver has not written it. Something other "
                "than epochgate puts files into the checkpoint directory: stop that, and start the "
                "job again"
            )

    def _take_back(self, checkpoint_id: int, path: str, error: OSError) -> None:
        """Make sure that a save which is reported as failed does not take effect later."""
        try:
            self._held.refuse_if_lost()
            self._files.remove(path)
            self._files.fsync_directory(self.path)
        except OSError:
            self._uncertain_id = checkpoint_id
            self.last_id = checkpoint_id
            raise self._uncertain() from error

    def _uncertain(self) -> CheckpointOutcomeUnknown:
        return CheckpointOutcomeUnknown(
            f"whether checkpoint {self._uncertain_id} is stored in {self.path} is unknown: the "
            "disk failed after the file was written, and again when it was to be removed. Restart "
            "the job from this directory once the disk is well: it resumes from what is found there"
        )

    def _save_failure(self, checkpoint_id: int, error: OSError) -> CheckpointSaveFailed:
        what = f"checkpoint {checkpoint_id} was not stored in {self.path}"
        kept = "The checkpoints before it are untouched"
        if error.errno in _NO_SPACE:
            return CheckpointStoreFull(
                f"{what}: no space left ({error}). {kept}. Free some space: the next checkpoint is "
                "stored as soon as there is"
            )
        return CheckpointSaveFailed(f"{what}: {error}. {kept}. Check the disk and its permissions")

    def _retire(self) -> None:
        """Remove what is beyond the retained ones. The new one is durable, so this may fail."""
        try:
            ids = self.ids()
            for checkpoint_id in ids[: -self._retained]:
                self._files.remove(self._path_of(checkpoint_id))
            self._remove_parts(self._parts.retire(ids[-self._retained :]))
        except (OSError, CheckpointStoreUnusable) as error:
            self._warn(f"an old checkpoint in {self.path} could not be removed: {error}")

    def _set_aside(self, checkpoint_id: int, damage: CheckpointDamaged) -> None:
        path = self._path_of(checkpoint_id)
        try:
            aside = f"it is kept as {self._keep_aside(path)}"
        except OSError as error:
            aside = f"it could not be renamed ({error})"
        self._warn(
            f"checkpoint file {path} is damaged ({damage.reason}); {aside}, and the job falls back "
            "to the checkpoint before it"
        )

    def _keep_aside(self, path: str) -> str:
        aside, number = path + DAMAGED_SUFFIX, 0
        while self._files.exists(aside):
            number += 1
            aside = f"{path}{DAMAGED_SUFFIX}-{number}"
        self._files.rename(path, aside)
        self._files.fsync_directory(self.path)
        return aside

    def _listed(self) -> Iterator[tuple[int, bool]]:
        """Each checkpoint file's id, and whether it was kept aside."""
        with self._usable("list"):
            names = self._files.list_directory(self.path)
        yield from filter(None, map(checkpoint_named, names))

    @contextlib.contextmanager
    def _usable(self, doing: str) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            if error.errno in _NO_SPACE:
                raise CheckpointStoreFull(
                    f"the checkpoint directory {self.path} cannot be opened: no space left "
                    f"({error}). Free some space and start again; nothing in it was changed"
                ) from error
            raise CheckpointStoreUnusable(
                f"cannot {doing} the checkpoint directory {self.path}: {error}. Expected a "
                "directory that this user may write to; check the path, its permissions and its "
                "disk"
            ) from error

    def _refuse_if_closed(self) -> None:
        if self._closed:
            raise CheckpointStoreClosed(f"the store in {self.path} was closed; open it again")

    def _refuse_if_uncertain(self) -> None:
        if self._uncertain_id is not None:
            raise self._uncertain()

    def _path_of(self, checkpoint_id: int) -> str:
        return os.path.join(self.path, checkpoint_file_name(checkpoint_id))

    def _warn(self, sentence: str) -> None:
        self.warnings.append(sentence)
        logger.warning(sentence)
