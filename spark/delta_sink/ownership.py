"""The word of a Delta table's working directory on one job: which runs have claimed the table, and
which table that was.

Decides who may make the table: before there is one, its log cannot keep two drivers apart. In a
directory a lock does, and a file names the last run; in an object store a log of claims
(`epochgate.runtime.objects.log`), in which the claim of a later run stops the one before.
Runs on the driver, or beside it.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import secrets
from collections.abc import Callable, Iterator
from typing import Any, Final, Protocol

from epochgate.runtime.filesystem import FileLock, FileSystem
from epochgate.runtime.objects.client import ObjectStore, require_conditions
from epochgate.runtime.objects.log import (
    Entry,
    LogOutcomeUnknown,
    LogTakenOver,
    ObjectLog,
    State,
)
from epochgate.spark.parquet_sink.checked_json import checked, read_checked
from epochgate.spark.parquet_sink.committable import is_staged
from epochgate.spark.parquet_sink.errors import (
    TargetDamaged,
    TargetLocked,
    TargetNotEmpty,
    TargetUnreachable,
)
from epochgate.spark.tables.errors import TableTakenOver
from epochgate.spark.tables.staged import RUNS_REMEMBERED, WORKING

_GO = (
    "Put the file back from a backup, or remove it and start again: the log of the table says what "
    "is committed, and files that earlier runs have staged then stay until you remove them."
)
_INITIAL: Final[State] = {"runs": []}


class Ownership(Protocol):
    """Of one table and one job; `known`: "runs" that have claimed it, the last one last, and the id
    of the "table" that they have written to, if there was one.
    """

    known: dict[str, Any]

    def require_empty(self) -> None:
        """TargetNotEmpty if there is anything but what this sink has made, and no claim before."""

    def prepare(self) -> None:
        """Let there be a place for staged files."""

    def begin(self) -> None:
        """Keep other drivers away as far as can be, and read what is known. Raises TargetLocked,
        TargetDamaged.
        """

    def add_run(self, run: str) -> None:
        """Put down that this run has claimed the table. Raises TableTakenOver."""

    def put_table(self, identity: str) -> None:
        """Put down which table it is. Raises TableTakenOver."""

    def require_last(self, run: str) -> None:
        """TableTakenOver unless this run is the last that has claimed the table."""

    def release(self) -> None:
        """Let other drivers have it."""


class DirectoryOwnership:
    """In a file of the table's directory `path`, with a lock; `shown`: the table in messages."""

    def __init__(self, files: FileSystem, path: str, shown: str, job_id: str) -> None:
        self._files, self._path, self._shown, self._job_id = files, path, shown, job_id
        self._own = os.path.join(path, WORKING, _name_of(job_id))
        self._file = f"{self._own}.json"
        self._lock: FileLock | None = None
        self.known: dict[str, Any] = {}

    def require_empty(self) -> None:
        """TargetNotEmpty if there is another file."""
        if not self._files.exists(self._file) and self._files.exists(self._path):
            foreign = [one for one in self._files.list_directory(self._path) if one != WORKING]
            if foreign:
                raise TargetNotEmpty(self._path, foreign[0])

    def prepare(self) -> None:
        """Make the working directory."""
        self._files.make_directory(os.path.join(self._path, WORKING))

    def begin(self) -> None:
        """Take the lock."""
        lock = f"{self._own}.lock"
        self._lock = self._files.try_lock(lock)
        if self._lock is None:
            raise TargetLocked(self._path, lock)
        try:
            self.known = self._read()
        except BaseException:
            self.release()
            raise

    def add_run(self, run: str) -> None:
        """Write the file."""
        self._write(runs=[*self.known.get("runs", ()), run][-RUNS_REMEMBERED:])

    def put_table(self, identity: str) -> None:
        """Write the file."""
        self._write(table=identity)

    def require_last(self, run: str) -> None:
        """Read the file."""
        if self._read().get("runs", [None])[-1] != run:
            raise TableTakenOver(self._shown, run)

    def release(self) -> None:
        """Give the lock back; the process's end does the same."""
        if self._lock is not None:
            self._lock.release()
            self._lock = None

    def _read(self) -> dict[str, Any]:
        if not self._files.exists(self._file):
            return {}
        what = "what this job knows of the table"
        values = read_checked(self._files, self._file, what, _GO)
        runs = values.get("runs")
        if not isinstance(runs, list) or not all(isinstance(run, str) for run in runs):
            raise TargetDamaged(self._file, what, f"runs that are {runs!r}", _GO)
        return values

    def _write(self, **changes: Any) -> None:
        self.known = {"job": self._job_id, **self.known, **changes}
        self._files.write_bytes_durably(self._file, checked(self.known))


class ObjectOwnership:
    """In a log of claims below the table's URL. Its operations raise TargetUnreachable, too."""

    def __init__(
        self, open_objects: Callable[[str], ObjectStore], url: str, shown: str, job_id: str
    ) -> None:
        self._objects, self._shown, self._job_id = open_objects(url), shown, job_id
        self._log = ObjectLog(open_objects(f"{url}/{WORKING}/{_name_of(job_id)}"), _fold, _INITIAL)
        self._run = ""
        self.known: dict[str, Any] = {}

    def require_empty(self) -> None:
        """TargetNotEmpty if there is an object that no writer of this sink has named."""
        with self._reaching():
            self._log.refresh()
            if self._log.number == 0:
                for one in self._objects.find(""):
                    if not one.key.startswith(f"{WORKING}/") and not is_staged(one.key):
                        raise TargetNotEmpty(self._objects.url, one.key)

    def prepare(self) -> None:
        """Nothing: there are no directories."""

    def begin(self) -> None:
        """Try the store, and read the log. Raises ConditionsIgnored or ObjectStoreUnusable."""
        require_conditions(self._objects)
        with self._reaching():
            self._log.refresh()
            self._know()

    def add_run(self, run: str) -> None:
        """Claim the log."""
        self._run = run
        with self._reaching():
            self._log.claim(secrets.token_hex(8), {"job": self._job_id, "run": run})
            self._know()

    def put_table(self, identity: str) -> None:
        """Append to the log."""
        with self._reaching():
            self._log.append({"kind": "table", "table": identity})
            self._know()

    def require_last(self, run: str) -> None:
        """Read what is new in the log."""
        with self._reaching():
            self._log.require_writer()

    def release(self) -> None:
        """Nothing: the next claim stops this one."""

    def _know(self) -> None:
        state = self._log.state
        named = {name: state[name] for name in ("job", "table") if state.get(name) is not None}
        self.known = {**named, "runs": state["runs"]} if self._log.number else {}

    @contextlib.contextmanager
    def _reaching(self) -> Iterator[None]:
        try:
            yield
        except LogTakenOver as error:
            raise TableTakenOver(self._shown, self._run) from error
        except (OSError, ValueError, LogOutcomeUnknown) as error:
            raise TargetUnreachable(self._objects.url, str(error)) from error


def _name_of(job_id: str) -> str:
    return f"job-{hashlib.sha256(job_id.encode()).hexdigest()[:16]}"


def _fold(state: State, entry: Entry) -> State:
    """The state of a log of claims."""
    if entry["kind"] == "claim":
        runs = [*state["runs"], entry["run"]][-RUNS_REMEMBERED:]
        return {**state, "job": entry["job"], "runs": runs}
    return {**state, "table": entry["table"]}
