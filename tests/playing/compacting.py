"""The compaction of a directory: each process of `CompactingJob` runs `compact`, on real files.

Faults come from the file system and from the limits of calls. The job is the target as a job's
driver claims it, goes back and commits; the reader lists and opens what is on the disk.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any, ClassVar, Final
from unittest import mock

import pyarrow as pa
import pyarrow.parquet as pq

from epochgate.fsm.machine import Machine
from epochgate.models.closed.compacting import CompactingJob
from epochgate.models.closed.surroundings.compaction import (
    AS_DONE,
    AS_FAILED,
    FAILED,
    LISTING,
    OPENING,
    READ,
    UNREAD,
)
from epochgate.runtime.filesystem import LocalFileSystem
from epochgate.runtime.limited import CallLate
from epochgate.spark.compaction import compact, run as shell
from epochgate.spark.compaction.errors import CompactionFailed, CompactionOvertaken
from epochgate.spark.files.checkpoint_directory import checkpoint_name
from epochgate.spark.parquet_sink import ParquetTarget, StagingWriter
from epochgate.spark.parquet_sink.tree import read_tree, tree_number
from tests.playing.gates import WELL, Lie, Process, gated, the_truth
from tests.playing.stage import Act
from tests.playing.store import DENY, HANG

EXCHANGED: Final = "exchanged"
"""Where a process stands between the exchange of the directories and what makes it durable."""
LOCAL: Final = LocalFileSystem()


class StruckFiles:
    """The files of a process, which fail where the schedule says so."""

    def __init__(self, process: Compactor) -> None:
        self._process = process

    def __getattr__(self, name: str) -> Any:
        # What a step that fails has staged is there in part.
        is_struck = self._process.step != "stage" or name == "fsync_directory"
        if self._process.outcome == DENY and is_struck:
            raise OSError(f"the disk fails in {name}")
        return getattr(LOCAL, name)

    def exchange(self, first: str, second: str) -> None:
        """Exchange two directories; a process stands still once the target is one of them."""
        LOCAL.exchange(first, second)
        if first == str(self._process.world.path) and self._process.is_busy:
            self._process.stand(EXCHANGED, ())
            if self._process.outcome == HANG:
                raise CallLate("the step does not end")


class HangingCalls:
    """The stand-in for `LimitedCalls`: a call that hangs may be done later."""

    def __init__(self, process: Compactor) -> None:
        self._process, self.is_left_behind = process, False

    def call(self, what: str, limit: object, function: Callable[[], Any]) -> Any:
        """Call `function`. Raises CallLate, and what it raises."""
        try:
            if self._process.outcome == HANG:
                if self._process.step == "exchange":
                    self._process.late = function
                raise CallLate(f"{what} does not end")
            done = function()
            if self._process.outcome == HANG:
                raise CallLate(f"{what} does not end")
            return done
        except CallLate:
            self.is_left_behind = True
            self._process.left_behind = function
            raise


class Compactor(Process):
    """A process that runs the command once."""

    failures: ClassVar[tuple[type[Exception], ...]] = (CompactionFailed, CompactionOvertaken)
    """How the command fails."""

    def __init__(self, world: Compacting) -> None:
        super().__init__()
        self.world = world
        self.step = ""
        """The step of the machine under way."""
        self.has_staged = False
        self.left_behind: Any = None
        """The call that has hung; its process keeps the lock of the target."""
        self.late: Callable[[], Any] | None = None
        """An exchange that has hung, and may be done yet."""
        self.planned: tuple[Any, ...] = ()
        """What readers saw of the merged checkpoints when it looked."""

    def begin(self) -> None:
        """Run the command."""
        retries = self.world.system.compaction_retries

        def run() -> Any:
            with (
                mock.patch.object(
                    shell, "Handles", gated(self, self.world.lie, compaction_retries=retries)
                ),
                mock.patch.object(shell, "LimitedCalls", return_value=HangingCalls(self)),
            ):
                return self.compact(self.world.system.kept)

        self.call(run)

    def compact(self, keep_checkpoints: int) -> Any:
        """Run it to its end. Raises what the command raises."""
        files: Any = StruckFiles(self)
        return compact(str(self.world.path), keep_checkpoints=keep_checkpoints, files=files)

    def stand(self, message: str, arguments: tuple[Any, ...]) -> None:
        super().stand(message, arguments)
        if message != EXCHANGED:
            self.step = message
            self.has_staged = self.has_staged or message == "stage"

    def told(self) -> int:
        """Return how the command has ended; 0 while it has not."""
        if self.is_busy:
            return 0
        if self.error is None:
            return AS_DONE
        if not isinstance(self.error, self.failures):
            raise self.error
        return AS_FAILED


class Reader:
    """Lists the directories of the target one after the other, and opens the files later."""

    def __init__(self, world: Compacting) -> None:
        self._world, self.state, self.at, self.rooted = world, UNREAD, 0, 0
        self.directories: set[str] = set()
        self.found: dict[int, list[Any]] = {}
        """The files of the checkpoints, as the world names them."""
        self.rows: list[int] = []

    def list_root(self) -> None:
        self.state, self.rooted = LISTING, self._world.committed
        self.directories = {path.name for path in self._world.path.iterdir()}

    def list_next(self) -> None:
        if self.at == self.rooted:
            self.state, self.at = OPENING, 0
            return
        self.look_at(self.at)
        self.at += 1

    def look_at(self, at: int) -> None:
        """Note the files of the checkpoint behind `at` others."""
        name = checkpoint_name(at + 1)
        if name in self.directories:
            self.found[at] = sorted((self._world.path / name).glob("*.parquet"))

    def open_next(self) -> None:
        if self.at == self.rooted:
            self.state = READ
            return
        try:
            for path in self.found.get(self.at, []):
                self.rows += self._world.rows_in(path)
            self.at += 1
        except FileNotFoundError:
            self.state = FAILED


def _answering(asked: str) -> Act:
    """The step at which a process stands is done."""
    return Act(
        lambda world: world.answer(),
        lambda world: world.asked() == asked,
        f"the process does not stand at {asked}",
    )


class Compacting:
    """The world of `CompactingJob`, with a target in a directory."""

    compactor: ClassVar[type[Compactor]] = Compactor
    path: Path
    reader: Any

    def __init__(self, system: CompactingJob, lie: Lie = the_truth) -> None:
        self.system, self.lie = system, lie
        self.version = [0] * system.K
        self.committed = self.runs = self.failures = self.withdrawals = 0
        self.process: Compactor | None = None
        self._make_target()
        self._claim()

    def _make_target(self) -> None:
        self._directory = Path(tempfile.mkdtemp())
        self.path, self.reader = self._directory / "target", Reader(self)

    def close(self) -> None:
        """End what is under way."""
        if self.process is not None:
            self.process.kill()
        self._job.release()
        shutil.rmtree(self._directory)

    def machines(self) -> Iterator[tuple[str, tuple[int, ...], Machine]]:
        if self.process is not None and self.process.system is not None:
            yield "compaction", (), self.process.system.compaction

    def facts(self) -> Iterator[tuple[str, Any, Any]]:
        target, process, reader = self.system.target, self.system.process, self.system.reader
        yield "how often the target was exchanged", target.tree, self.tree()
        there = dict[int, list[int]]()
        for k in range(self.system.K):
            row = self.row(k, target.version[k])
            if target.is_small[k]:
                there.setdefault(k, []).append(row)
            if target.is_merged[k]:
                there.setdefault(0, []).append(row)
        yield "what readers see", {k: sorted(rows) for k, rows in there.items()}, self.visible()
        # Of what was not staged to its end there may be a part, or nothing.
        may_be_less = process.is_staged and self.asked() != "exchange"
        yield "a tree beside the target", process.is_staged, self.is_staged() or may_be_less
        if self.process is not None:
            yield "the end of the command", process.ended, self.process.told()
        real = self.reader
        yield "the reader", (reader.state, reader.at), (real.state, real.at)
        if real.state == READ and reader.withdrawals == target.withdrawals:
            told = [self.row(k, self.version[k]) for k in range(self.system.K) if reader.rows[k]]
            yield "what was read", told, sorted(real.rows)

    @staticmethod
    def row(k: int, version: int) -> int:
        """The row of a checkpoint that was withdrawn so often."""
        return 10 * k + version

    def visible(self) -> dict[int, list[int]]:
        """The rows in each checkpoint's directory."""
        found = {
            k: sorted(row for path in self.files(k) for row in self.rows_in(path))
            for k in range(self.system.K)
        }
        return {k: rows for k, rows in found.items() if rows}

    def files(self, k: int) -> list[Any]:
        """The files in the directory of a checkpoint."""
        return sorted((self.path / checkpoint_name(k + 1)).glob("*.parquet"))

    def rows_in(self, file: Any) -> list[int]:
        """The rows of a file. Raises FileNotFoundError."""
        return rows_of(file)

    def tree(self) -> int:
        """Return how often the target was exchanged."""
        return tree_number(LOCAL, str(self.path))

    def is_staged(self) -> bool:
        """Return whether a tree lies beside the target that never was the target."""
        beside = Path(self._job.working_directory, "compacting")
        trees = beside.iterdir() if beside.exists() else ()
        return any(tree_number(LOCAL, str(tree)) > self.tree() for tree in trees)

    def planned(self, checkpoints: int) -> tuple[Any, ...]:
        """Return what decides whether an exchange of the first checkpoints is still as it was
        planned.
        """
        return checkpoints, self.tree(), [self.files(k) for k in range(checkpoints)]

    def _claim(self) -> None:
        self._job = ParquetTarget(self.path, "job", f"run{self.withdrawals}")
        self._job.claim(self.committed or None, withdraw_newer=True)

    def commit(self) -> None:
        checkpoint, number = self.committed + 1, self.withdrawals
        writer = StagingWriter(self._job.working_directory, f"run{number}", 0, attempt=number)
        row = self.row(self.committed, self.version[self.committed])
        writer.write(pa.RecordBatch.from_pydict({"x": [row]}))
        self._job.commit(checkpoint, writer.prepare_commit(checkpoint))
        self.committed += 1

    def may_withdraw(self) -> bool:
        covered = read_tree(LOCAL, str(self.path), self._job.working_directory).covered
        is_merged = self.committed in covered
        return self.withdrawals < self.system.W and self.committed > 0 and not is_merged

    def waits_for_exchange(self) -> bool:
        """Return whether commits and starts wait for the lock that an exchange holds until it is
        durable.
        """
        return self.asked() == EXCHANGED

    def withdraw(self) -> None:
        self.withdrawals += 1
        self.committed -= 1
        self.version[self.committed] += 1
        self._job.release()
        self._claim()

    def begin(self) -> None:
        self.runs += 1
        self._end()
        self.process = self.compactor(self)
        self.process.begin()

    def _end(self) -> None:
        """The process that has hung ends, and the system takes back its lock."""
        if self.process is not None and self.process.left_behind is not None:
            self.process.left_behind.__self__.close()

    def may_begin(self) -> bool:
        is_free = self.process is None or not self.process.is_busy
        return is_free and self.runs < self.system.R

    def answer(self) -> None:
        process = self.busy()
        if process.asked == "plan":
            kept = max(0, self.committed - self.system.kept)
            process.planned = self.planned(kept)
        process.answer(WELL)

    def fail(self, outcome: str) -> None:
        self.failures += 1
        self.busy().answer(outcome)

    def die(self) -> None:
        self.failures += 1
        self.busy().kill()
        self.process = None

    def busy(self) -> Compactor:
        """The process, which stands at its gate."""
        assert self.process is not None, "a process runs"
        return self.process

    def asked(self) -> str | None:
        """The question at which the process stands."""
        return None if self.process is None else self.process.asked

    def may_fail(self) -> bool:
        return self.asked() is not None and self.failures < self.system.F

    def is_as_planned(self) -> bool:
        """Return whether what is merged is still what readers see."""
        return self.busy().planned == self.planned(self.busy().planned[0])

    def may_break(self) -> bool:
        """Return whether an error of the step under way is answered as one."""
        return self.may_fail() and (self.asked() != "stage" or self.is_as_planned())

    def is_late(self) -> bool:
        late = self.process is not None and self.process.late is not None
        return late and self.is_as_planned()

    def arrive(self) -> None:
        process = self.busy()
        assert process.late is not None, "an exchange is late"
        process.outcome = WELL
        assert process.late(), "the target is as it was planned"
        process.late = None

    acts: ClassVar[Mapping[str, Act]] = {
        "target.commit": Act(
            commit,
            lambda world: world.committed < world.system.K,
            "all are committed",
            is_apart=waits_for_exchange,
        ),
        "target.withdraw": Act(
            withdraw, may_withdraw, "nothing may be taken back", is_apart=waits_for_exchange
        ),
        "process.begin": Act(begin, may_begin, "the command runs, or no run is left"),
        "process.look": _answering("plan"),
        "process.write": _answering("stage"),
        "process.swap": _answering("exchange"),
        "process.answer": _answering(EXCHANGED),
        "process.drop": _answering("discard"),
        "process.tidy": _answering("clean"),
        "process.fail": Act(
            lambda world: world.fail(DENY), may_break, "the process does nothing, or has failed"
        ),
        "process.hang": Act(
            lambda world: world.fail(HANG),
            lambda world: world.may_fail() and world.asked() != "stage",
            "no step with a limit is under way",
        ),
        "process.arrive": Act(arrive, is_late, "no exchange is late, or the target has changed"),
        "process.die": Act(die, may_fail, "no process does anything"),
        "reader.list_root": Act(
            lambda world: world.reader.list_root(),
            lambda world: world.reader.state == UNREAD and world.committed > 0,
            "the reader reads, or there is nothing",
        ),
        "reader.list_next": Act(
            lambda world: world.reader.list_next(),
            lambda world: world.reader.state == LISTING,
            "the reader does not list",
        ),
        "reader.open_next": Act(
            lambda world: world.reader.open_next(),
            lambda world: world.reader.state == OPENING,
            "the reader opens nothing",
        ),
    }


def rows_of(path: Path) -> list[int]:
    """The rows of a file. Raises FileNotFoundError."""
    found = path.stat()
    return _rows_in(path, found.st_ino, found.st_mtime_ns)


@lru_cache(maxsize=1024)
def _rows_in(path: Path, inode: int, mtime_ns: int) -> list[int]:
    rows: list[int] = pq.read_table(path, columns=["x"])["x"].to_pylist()
    return rows
