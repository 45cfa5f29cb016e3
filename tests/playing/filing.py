"""A file of two splits: the job of `FiledSource` has a `FileReader` for each, and `ReadFiles` with
the records of files and those that may be removed.

Job, store and target are played. A reader's split has no rows; its words come to the driver in
order with what acknowledges a checkpoint, one in each step.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping
from typing import Any, ClassVar, Final
from unittest import mock

import pyarrow as pa

from epochgate.fsm.machine import Machine
from epochgate.models.closed.filing import FiledSource
from epochgate.models.closed.surroundings.filing import ACKNOWLEDGED, DOWN, ENDED, READING, SAID
from epochgate.runtime.pipeline.program import SOURCE
from epochgate.runtime.source.reader_state import ReaderState
from epochgate.runtime.store import CompletedCheckpoint
from epochgate.spark.files.split import FileSplit, SourceLayout
from epochgate.spark.files.taken import EndedSplit, TakenFile, TakenFiles
from epochgate.spark.ingest import read_files
from epochgate.spark.ingest.file_source import FileReader, to_source_split
from epochgate.spark.ingest.found_files import hold_told
from epochgate.spark.ingest.read_files import ReadFiles
from epochgate.spark.ingest.removing import DueFiles
from tests.playing.gates import Lie, Process, gated, the_truth
from tests.playing.stage import Act

LAYOUT: Final = SourceLayout("csv", pa.schema([("x", pa.int64())]))


class NoRows:
    """Reads a split in which there is nothing."""

    def read(self, split: FileSplit, position: Any) -> Iterator[Any]:
        yield from ()

    def take_skipped(self) -> list[Any]:
        return []


class Reading:
    """A subtask, with the attempt of its reader."""

    def __init__(self, subtask: int, of: int) -> None:
        self.split = FileSplit("/a", "csv", "none", of, 1, subtask, subtask + 1)
        self.up: deque[tuple[int, Any]] = deque()
        self.is_asked, self.state = False, READING
        self.saved: tuple[bool, Any] = False, None
        self.stored: tuple[bool, Any] = False, None
        self.begin()

    def begin(self) -> None:
        """Begin an attempt from the stored state."""
        self.last_snapshot, self.up, self.is_asked = 0, deque(), False
        make: Any = lambda layout, batch_rows: NoRows()  # noqa: E731
        self.reader = FileReader(make, lambda: 1, self._say, None, lambda: self.last_snapshot)
        has_ended, told = self.stored
        self.state = ENDED if has_ended else READING
        if told is not None:
            self.reader.restore_state(told)

    def _say(self, values: Any) -> None:
        self.up.append((SAID, values))

    def read(self) -> None:
        """Read the split to its end."""
        self.state = ENDED
        assert list(self.reader.open_split(to_source_split(self.split, LAYOUT), None)) == []

    def barrier(self, checkpoint: int) -> None:
        """Take a snapshot."""
        self.is_asked = False
        self.saved = self.state == ENDED, self.reader.snapshot_state()
        self.last_snapshot = checkpoint
        self.up.append((ACKNOWLEDGED, checkpoint))


class Plain:
    """A machine of the shell whose splits and files have the numbers of the closed system."""

    def __init__(self, machine: Machine) -> None:
        self._machine = machine

    def values(self) -> dict[str, Any]:
        """State and fields, as the closed system has them."""
        return {name: _plain(value) for name, value in self._machine.values().items()}


def _plain(value: Any) -> Any:
    if isinstance(value, EndedSplit):
        return value.split.start + 1
    if isinstance(value, TakenFile):
        return 1
    return type(value)(map(_plain, value)) if isinstance(value, deque | tuple | list) else value


class Filing:
    """The world of `FiledSource`."""

    def __init__(self, system: FiledSource, lie: Lie = the_truth) -> None:
        self.system, self.lie = system, lie
        self.failures = self.idle = self.number = self.acknowledged = 0
        self.stored = self.committed = 0
        self.is_under_way = self.is_to_work = self.is_removed = False
        self.in_target = [False] * system.subtasks
        self.readers = [Reading(s, system.subtasks) for s in range(system.subtasks)]
        self.taken = TakenFiles()
        for one in self.readers:
            self.taken.give_out(one.split, 0)
        self.saved_taken = self.stored_taken = self.taken.to_list()
        self._start()

    def _start(self) -> None:
        self.process = Process()
        removal: Any = self
        due = DueFiles(removal, 0.0, lambda: 0.0)
        with mock.patch.object(read_files, "Handles", gated(self.process, self.lie)):
            self.files = ReadFiles(
                self.taken, self.system.subtasks, self.stored, due, (), lambda: 0.0
            )
        self.files.keep(self.taken.records(None))

    def remove(self, record: TakenFile) -> bool:
        """Stand for the source: the file is gone."""
        assert all(self.in_target), "the target has all rows of a file that is removed"
        self.is_removed = True
        return True

    def machines(self) -> Iterator[tuple[str, tuple[int, ...], Plain]]:
        for subtask, machine in enumerate(self.process.system.reading):
            yield "reading", (subtask,), Plain(machine)
        yield "removal", (), Plain(self.process.system.removal)

    @property
    def recorded(self) -> int:
        """The checkpoint in the record of the file; 0 before there is one."""
        found = [record.checkpoint_id for record in self.taken.records(None)]
        assert len(found) <= 1, "a file is recorded once"
        return found[0] if found else 0

    def facts(self) -> Iterator[tuple[str, Any, Any]]:
        job = self.system.job
        yield "the newest checkpoint", (job.number, job.stored), (self.number, self.stored)
        yield "what is committed", job.committed, self.committed
        yield "the record of the file", job.recorded, self.recorded
        held = self.taken._open.get(("/a", 1))
        counts = [held is None or one.split.start in held.starts for one in self.readers]
        yield "the splits that are held", list(job.counts), counts
        yield "whether the file is gone", job.is_removed, self.is_removed
        yield "the rows in the target", list(job.in_target), self.in_target
        for subtask, one in enumerate(self.readers):
            model = self.system.reader[subtask]
            words = [word for word, _ in one.up]
            yield f"reader {subtask}", (model.state, list(model.up)), (one.state, words)

    def may_fail(self) -> bool:
        """Return whether the closed system allows another failure."""
        return self.failures < self.system.F

    def is_storing(self) -> bool:
        """Return whether all readers have taken their part of the checkpoint."""
        return self.is_under_way and self.acknowledged == len(self.readers)

    def is_needed(self) -> bool:
        """Return whether the file waits for a checkpoint."""
        return not self.recorded and all(one.state == ENDED and not one.up for one in self.readers)

    def read(self, subtask: int) -> None:
        self.readers[subtask].read()

    def barrier(self, subtask: int) -> None:
        self.readers[subtask].barrier(self.number)

    def hear(self, subtask: int) -> None:
        word, said = self.readers[subtask].up.popleft()
        if word == SAID:
            self.files.ended(subtask, said)
        elif self.is_under_way and said == self.number:
            self.acknowledged += 1

    def fail(self, subtask: int) -> None:
        self.failures += 1
        one = self.readers[subtask]
        one.state, one.up, one.is_asked = DOWN, deque(), False
        if not self.is_storing():
            self.abort_checkpoint()

    def reset(self, subtask: int) -> None:
        self.readers[subtask].begin()
        self.files.rejoined(subtask)

    def take(self) -> None:
        self.idle += not self.is_needed()
        self.number, self.is_under_way, self.acknowledged = self.number + 1, True, 0
        self.saved_taken = self.taken.to_list()
        for one in self.readers:
            one.is_asked = True

    def store_unheard(self) -> None:
        self.failures += 1
        self._store()

    def _store(self) -> None:
        self.is_under_way, self.stored = False, self.number
        self.stored_taken = self.saved_taken
        for one in self.readers:
            one.stored = one.saved

    def store(self) -> None:
        self._store()
        self.files.completed(self.number)
        for one in self.readers:
            one.reader.notify_checkpoint_complete(self.number)

    def abort(self) -> None:
        self.failures += 1
        self.abort_checkpoint()

    def abort_checkpoint(self) -> None:
        """The checkpoint will never be."""
        self.is_under_way = False
        for one in self.readers:
            one.is_asked = False

    def commit(self) -> None:
        self.committed, self.is_to_work = self.stored, True
        self.in_target = [one.stored[0] for one in self.readers]

    def work(self) -> None:
        self.is_to_work = False
        self.files.committed(self.committed)

    def go_back(self) -> None:
        self.failures += 1
        self._restart(is_start=False)

    def crash(self) -> None:
        self.failures += 1
        self._restart(is_start=True)

    def _restart(self, *, is_start: bool) -> None:
        self.is_under_way = False
        self.taken = TakenFiles.from_list(self.stored_taken)
        if is_start:
            states = {
                subtask: {SOURCE: ReaderState([], one.stored[1]).to_bytes()}
                for subtask, one in enumerate(self.readers)
            }
            where = self.stored, "job", "run", 0.0, len(states)
            hold_told(self.taken, CompletedCheckpoint(*where, subtasks=states))
        for one in self.readers:
            one.begin()
        if self.stored:
            self.committed = self.stored - 1
        self._start()

    def close(self) -> None:
        """Nothing is under way."""

    acts: ClassVar[Mapping[str, Act]] = {
        "reader.read": Act(
            read, lambda world, s: world.readers[s].state == READING, "its split is read"
        ),
        "reader.barrier": Act(
            barrier,
            lambda world, s: world.readers[s].is_asked and world.readers[s].state != DOWN,
            "no barrier waits",
        ),
        "reader.hear": Act(hear, lambda world, s: world.readers[s].up, "it has said nothing"),
        "reader.fail": Act(
            fail,
            lambda world, s: world.readers[s].state != DOWN and world.may_fail(),
            "it is down, or no failure is left",
        ),
        "reader.reset": Act(
            reset,
            lambda world, s: world.readers[s].state == DOWN and not world.is_storing(),
            "it is there",
        ),
        "job.take": Act(
            take,
            lambda world: (
                not world.is_under_way
                and (world.is_needed() or world.idle < world.system.K)
                and all(one.state != DOWN for one in world.readers)
            ),
            "no checkpoint can be taken",
        ),
        "job.store": Act(store, lambda world: world.is_storing(), "nothing is to be stored"),
        "job.store_unheard": Act(
            store_unheard,
            lambda world: world.is_storing() and world.may_fail(),
            "nothing is to be stored",
        ),
        "job.abort": Act(
            abort,
            lambda world: world.is_under_way and not world.is_storing() and world.may_fail(),
            "no checkpoint is taken",
        ),
        "job.commit": Act(commit, lambda world: world.committed < world.stored, "all is committed"),
        "job.work": Act(work, lambda world: world.is_to_work, "no commit has work"),
        "job.go_back": Act(go_back, lambda world: world.may_fail(), "no failure is left"),
        "job.crash": Act(crash, lambda world: world.may_fail(), "no failure is left"),
    }
