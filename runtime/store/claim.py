"""The right to write to a checkpoint directory: one live driver has it, and none that came before
it.

Decides: which driver holds a directory. Two mechanisms, since each has a gap that the other closes:
- an advisory lock (`flock` on `driver.lock`) that the operating system drops when the driver dies:
  a second driver is refused at once. It fails where the lock file is removed, or a network file
  system forgets the lock.
- the claim (`claim.json`), replaced at each opening with the next fencing epoch and a random mark.
  A driver reads it back before it makes a checkpoint visible, and stops if it is not its own any
  more. Between that and its rename it may be suspended for any time: the next driver removes the
  file that was to be renamed, after its claim (`epochgate.runtime.store.directory`).
No clock takes part, so none that jumps can matter.
Leaves to others: what is written into the directory.
Runs on the driver, on the thread of the store.

Blind spot: a driver whose disk fails at the rename, and which is suspended after reading the claim
back once more and before it removes what it may have written, removes the file of another driver
that has saved the same id meanwhile. The lock excludes that unless it has been lost as well.
"""

from __future__ import annotations

import errno
import fcntl
import hashlib
import json
import os
import secrets
import socket
import time
from dataclasses import asdict, dataclass

from epochgate.runtime.filesystem import FileLock, FileSystem
from epochgate.runtime.store.errors import (
    CheckpointFormatUnknown,
    CheckpointOfAnotherJob,
    CheckpointStoreInUse,
    CheckpointStoreLost,
)

LOCK_NAME = "driver.lock"
CLAIM_NAME = "claim.json"
DIRECTORY_VERSION = 1
LOOK_S = 0.05


@dataclass(frozen=True)
class Claim:
    """The content of the claim file. `mark` makes two claims differ even where epochs repeat."""

    version: int
    job_id: str
    epoch: int
    pid: int
    host: str
    mark: str

    def encode(self) -> bytes:
        """One JSON object with a checksum, for people to read and for us to trust."""
        values = asdict(self)
        return json.dumps({**values, "sha256": _checksum(values)}, indent=1).encode()

    @staticmethod
    def decode(data: bytes) -> Claim | None:
        """The claim in `data`, or none if it is damaged.

        >>> claim = Claim(1, "job", 3, 17, "host", "mark")
        >>> Claim.decode(claim.encode()) == claim
        True
        >>> Claim.decode(claim.encode().replace(b"17", b"18")) is None
        True
        """
        try:
            values = json.loads(data)
            if values.pop("sha256") != _checksum(values):
                return None
            return Claim(**values)
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            return None

    def __str__(self) -> str:
        return f"process {self.pid} on {self.host} (epoch {self.epoch})"


@dataclass(frozen=True)
class Holder:
    """The holder of a checkpoint directory: whether a driver holds its lock, and the last claim."""

    is_held: bool
    claim: Claim | None


def holder_of(directory: str) -> Holder:
    """Look who has `directory`, and leave everything as it is. Raises OSError.

    The lock is asked for, shared, and given back at once; a driver that asks meanwhile asks twice.
    """
    try:
        with open(os.path.join(directory, CLAIM_NAME), "rb") as file:
            claim = Claim.decode(file.read())
    except FileNotFoundError:
        claim = None
    try:
        descriptor = os.open(os.path.join(directory, LOCK_NAME), os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return Holder(False, claim)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno not in (errno.EWOULDBLOCK, errno.EACCES):
            raise
        return Holder(True, claim)
    finally:
        os.close(descriptor)
    return Holder(False, claim)


class HeldDirectory:
    """A directory that this driver has locked, and claims with `claim`."""

    def __init__(self, file_system: FileSystem, directory: str, job_id: str) -> None:
        """Lock `directory` and look at its claim; nothing is written but an empty lock file.

        Raises `CheckpointStoreInUse`, `CheckpointOfAnotherJob`, `CheckpointFormatUnknown`,
        `LocksRefused`, `OSError`.
        """
        self._file_system = file_system
        self._directory = directory
        self._path = os.path.join(directory, CLAIM_NAME)
        self._job_id = job_id
        self._mine: Claim | None = None
        self._lock: FileLock | None = file_system.try_lock(os.path.join(directory, LOCK_NAME))
        if self._lock is None:
            # It may have been one who looks, with `holder_of`, and has the lock for a moment.
            time.sleep(LOOK_S)
            self._lock = file_system.try_lock(os.path.join(directory, LOCK_NAME))
        if self._lock is None:
            raise self._in_use()
        try:
            self.had_claim = file_system.exists(self._path)
            self._before = self._found()
            self._refuse_foreign(self._before)
        except BaseException:
            self.release()
            raise

    @property
    def claim_is_damaged(self) -> bool:
        """True if a claim file was there and could not be understood."""
        return self.had_claim and self._before is None

    @property
    def epoch(self) -> int:
        """The fencing epoch of this driver, from 1; 0 before `claim`."""
        return 0 if self._mine is None else self._mine.epoch

    @property
    def mark(self) -> str:
        """The mark that no other claim has; empty before `claim`."""
        return "" if self._mine is None else self._mine.mark

    def claim(self, after_epoch: int = 0) -> None:
        """Durably fence every earlier driver, with an epoch above theirs and `after_epoch`; a
        second claim goes on from the first. Raises `OSError`.
        """
        before = 0 if self._before is None else self._before.epoch
        epoch = max(before, after_epoch, self.epoch) + 1
        host, mark = socket.gethostname(), secrets.token_hex(8)
        mine = Claim(DIRECTORY_VERSION, self._job_id, epoch, os.getpid(), host, mark)
        self._file_system.write_bytes_durably(self._path, mine.encode())
        self._mine = mine

    def refuse_if_lost(self) -> None:
        """Raise `CheckpointStoreLost` if the claim is not the one this driver wrote; `OSError`."""
        found = self._found()
        if found is not None and found == self._mine:
            return
        by = "it has no readable claim any more" if found is None else f"now {found} has it"
        raise CheckpointStoreLost(
            f"this driver, {self._mine}, has lost the checkpoint directory {self._directory}: "
            f"{by}. It may not save any more and must stop; the job continues in the other driver"
        )

    def release(self) -> None:
        """Let go of the lock; the claim stays, as the record of the last epoch."""
        if self._lock is not None:
            self._lock.release()
            self._lock = None

    def _found(self) -> Claim | None:
        try:
            return Claim.decode(self._file_system.read_bytes(self._path))
        except FileNotFoundError:
            return None

    def _in_use(self) -> CheckpointStoreInUse:
        holder = self._found()
        used = f"the checkpoint directory {self._directory} is in use by"
        if holder is not None and (holder.host, holder.pid) == (socket.gethostname(), os.getpid()):
            return CheckpointStoreInUse(
                f"{used} an earlier start in this very process (epoch {holder.epoch}). A job lets "
                "go of it once its handle's wait() has returned, after stop() or cancel() too: "
                "wait for that before the next start, or close a store that no job was given"
            )
        return CheckpointStoreInUse(
            f"{used} {'another driver' if holder is None else holder}. Two drivers on one "
            "directory would process the same rows: stop that one first, or give this job a "
            "directory of its own"
        )

    def _refuse_foreign(self, found: Claim | None) -> None:
        if found is None:
            return
        if found.version != DIRECTORY_VERSION:
            raise CheckpointFormatUnknown(
                f"the checkpoint directory {self._directory} has version {found.version}, and this "
                f"epochgate reads version {DIRECTORY_VERSION}. Resume the job with the epochgate "
                "that wrote it, or start it again with an empty checkpoint directory"
            )
        if found.job_id != self._job_id:
            raise CheckpointOfAnotherJob(
                f"the checkpoint directory {self._directory} belongs to job {found.job_id!r}, and "
                f"this is job {self._job_id!r}. Give each job a checkpoint directory of its own "
                "(--checkpoint-dir), or start this one as the job that it should resume: under the "
                "same job id, which `epochgate ingest` makes of source and target"
            )


def _checksum(values: dict[str, object]) -> str:
    return hashlib.sha256(json.dumps(values, sort_keys=True).encode()).hexdigest()
