"""The shell around savepoints: asks for a checkpoint, and writes it to a place of its own.

Decides nothing: `CheckpointRequest` says which checkpoint serves a request, or that none will. What
is written is that checkpoint, in the lane of the store, so that no other checkpoint is stored
meanwhile and no file that this one refers to is removed. Whether a savepoint can be written changes
nothing for the job, nor what is committed.
"""

from __future__ import annotations

from concurrent.futures import Future
from functools import partial
from typing import TYPE_CHECKING

from epochgate.errors import UsageError
from epochgate.runtime.api.job_events import SavepointWritten
from epochgate.runtime.api.reports import shortened
from epochgate.runtime.savepoints import Savepoint, default_place, write_savepoint
from epochgate.runtime.savepoints.errors import SavepointFailed
from epochgate.runtime.shell.blocking_work import in_lane
from epochgate.runtime.shell.checkpoints import STORE_LANE
from epochgate.runtime.shell.client_requests import JobOver
from epochgate.runtime.shell.futures import reject, resolve
from epochgate.runtime.store import CompletedCheckpoint

if TYPE_CHECKING:
    from epochgate.runtime.shell.job_master import JobMaster


class SavepointPlaceMissing(UsageError):
    """A savepoint was asked for without a place, of a job whose checkpoints have none."""


class Savepoints:
    """The savepoints that a job was asked for and that are not written so far."""

    def __init__(self, master: JobMaster) -> None:
        self._master = master
        self._open: dict[int, Future[Savepoint]] = {}

    def request(self, wanted: Future[Savepoint], place: str | None) -> None:
        """Have a checkpoint taken, and write it to `place`; queue thread."""
        if place is None and not self._master.store.path:
            reject(
                wanted,
                SavepointPlaceMissing(
                    "this job's checkpoints are in memory, with no place beside them: say where "
                    "the savepoint is to be written"
                ),
            )
            return
        self._open[id(wanted)] = wanted
        checkpoint: Future[int] = Future()
        checkpoint.add_done_callback(partial(self._taken, wanted, place))
        self._master.checkpoints.request(checkpoint)

    def _taken(self, wanted: Future[Savepoint], place: str | None, checkpoint: Future[int]) -> None:
        """The checkpoint is completed, and the latest; or there is none. Queue thread."""
        error = checkpoint.exception()
        latest = self._master.checkpoints.latest
        if error is not None or latest is None:
            self._open.pop(id(wanted), None)
            reject(wanted, error or JobOver("there is no checkpoint to write"))
            return
        where = place or default_place(self._master.store.path, latest.checkpoint_id)
        in_lane(
            self._master,
            STORE_LANE,
            lambda: self._write(where, latest, wanted),
            self._written,
            where,
            wanted,
            what="the write of savepoint {}",
            option="store_timeout_s",
            expired=self._expired,
        )

    def _expired(self, place: str, wanted: Future[Savepoint], reason: str) -> None:
        """The request has failed; the lane of the store is held, and the next save says so."""
        self._open.pop(id(wanted), None)
        reject(wanted, SavepointFailed(place, reason))

    def _write(
        self, place: str, checkpoint: CompletedCheckpoint, wanted: Future[Savepoint]
    ) -> Savepoint:
        # The future ends here: the job may be over before the queue hears of it.
        try:
            savepoint = write_savepoint(place, checkpoint, self._master.store.read_file)
        except BaseException as error:
            reject(wanted, error)
            raise
        resolve(wanted, savepoint)
        return savepoint

    def _written(
        self,
        _: str,
        wanted: Future[Savepoint],
        savepoint: Savepoint | None,
        error: BaseException | None,
    ) -> None:
        self._open.pop(id(wanted), None)
        if savepoint is None:
            self._master.warn(shortened(error))
            return
        self._master.observers.tell(
            SavepointWritten,
            checkpoint_id=savepoint.checkpoint_id,
            path=savepoint.path,
            size_bytes=savepoint.size_bytes,
        )

    def finish(self) -> None:
        """Wait for what is being written; the job has ended."""
        if self._open:
            limit_s = self._master.configuration.end_timeout_s
            self._master.blocking.run(STORE_LANE, lambda: None, limit_s)

    def close(self) -> None:
        """Nothing is written any more."""
        for wanted in list(self._open.values()):
            reject(wanted, JobOver("the job was over before the savepoint was written"))
        self._open.clear()
