"""The shell around the machines of read files: what readers, checkpoints and commits say to them,
the records that follow, and the files that are removed.

Decides nothing: `epochgate.models.read_splits` says which checkpoint holds a split, and when a file
may be removed. Runs on the queue's thread of the driver, and under a lock on that of the work after
commits.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable
from threading import Lock
from typing import Any

from epochgate.fsm import Handles
from epochgate.models.read_splits import SplitsRead
from epochgate.spark.files.split import FileSplit
from epochgate.spark.files.taken import EndedSplit, TakenFile, TakenFiles
from epochgate.spark.ingest.removing import DueFiles, FilesNotRemoved


class ReadFiles:
    """The files of one enumerator whose splits readers have read.

    newest: the complete checkpoint that the enumerator begins from. due: takes the files that may
    be removed; none if none is. given_up: the checkpoints whose rows the target may lack by
    command; no file with rows in one of them is removed. now: seconds since 1970.
    """

    def __init__(
        self,
        taken: TakenFiles,
        subtasks: int,
        newest: int = 0,
        due: DueFiles | None = None,
        given_up: Collection[range] = (),
        now: Callable[[], float] = time.time,
    ) -> None:
        self._taken, self._newest, self._now = taken, newest, now
        self._due, self._given_up = due, given_up
        self._lock = Lock()
        self._recorded: list[TakenFile] = []
        self._system = Handles(SplitsRead, subtasks=subtasks)
        self._system.bind("reading", "records", self)
        self._system.bind("removal", "files", self)

    def given_out(self, split: FileSplit) -> None:
        """A reader is given a split."""
        self._taken.give_out(split, self._newest)

    def ended(self, subtask: int, values: list[Any]) -> None:
        """A reader has read a split to its end; `values` is what it has told."""
        *ended, after = values
        with self._lock:
            self._system.reading[subtask].end(EndedSplit.from_list(ended), after)

    def rejoined(self, subtask: int) -> None:
        """A reader of the subtask is there, and tells again what its state holds."""
        with self._lock:
            self._system.reading[subtask].rejoin()

    def completed(self, checkpoint_id: int) -> None:
        """A checkpoint is durable."""
        self._newest = checkpoint_id
        with self._lock:
            for machine in self._system.reading:
                machine.complete(checkpoint_id)
            self._system.settle()
        recorded, self._recorded = self._recorded, []
        self.keep(recorded)

    def keep(self, records: Iterable[TakenFile]) -> None:
        """Let the files of these records be removed once the target has their rows."""
        if self._due is None:
            return
        with self._lock:
            for record in records:
                if not record.is_part and not self._lacks(record):
                    self._system.removal.hold(record, record.checkpoint_id)
            self._system.settle()

    def _lacks(self, record: TakenFile) -> bool:
        """Return whether the target may lack rows of it, which a person has given up."""
        first, last = record.since + 1, record.checkpoint_id
        return any(gone.start <= last and first < gone.stop for gone in self._given_up)

    def committed(self, checkpoint_id: int) -> None:
        """The target has the rows of a checkpoint: remove files; blocks. Raises FilesNotRemoved.

        Called on the thread of the work after commits.
        """
        due = self._due
        if due is None:
            return
        with self._lock:
            self._system.removal.commit(checkpoint_id)
            self._system.settle()
            taken = due.take()
        failed = due.remove(taken)
        if failed:
            with self._lock:
                due.give_back([record for record, _ in failed])
            record, reason = failed[0]
            raise FilesNotRemoved(len(failed), record.path, reason)

    # port `records`

    def hold(self, subtask: int, split: EndedSplit, checkpoint: int) -> None:
        """Count the split, and record its file if it is the last of it."""
        record = self._taken.hold(split, checkpoint, self._now())
        if record is not None:
            self._recorded.append(record)

    # port `files`

    def release(self, file: TakenFile) -> None:
        """Let the file be removed once it is old enough."""
        assert self._due is not None, "files are kept for it where some are removed"
        self._due.add(file)
