"""The owners of a table: each driver of `OwnedTable` has a `DeltaTarget` on a table in an object
store, whose claims lie in a store in memory.

The table's log is played. A number is larger with each commit, so that none was done before.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any, ClassVar, Final
from unittest import mock

import pyarrow as pa

from epochgate.fsm.machine import Machine
from epochgate.models.closed.owning import OwnedTable
from epochgate.runtime import RetryLater
from epochgate.runtime.objects.client import ObjectStore
from epochgate.runtime.objects.log import FOLDER
from epochgate.spark.delta_sink import owner
from epochgate.spark.delta_sink.errors import LogFailed, LogOvertaken
from epochgate.spark.delta_sink.target import DeltaTarget
from epochgate.spark.parquet_sink import Committable, TargetUnreachable
from epochgate.spark.tables.errors import TableTakenOver
from tests.playing.gates import WELL, Lie, Process, gated, the_truth
from tests.playing.stage import Act
from tests.playing.store import DENY, LOSE
from tests.runtime.objects.stores import Memory

URL: Final = "s3://bucket/table"
COLUMNS: Final = pa.schema([("x", pa.int64())])
CHANGING: Final = ("claim", "make", "enter", "write")


@dataclass
class Played:
    """The table: how many entries its log has, and what the newest says."""

    entries: int = 0
    number: int = 0
    maker: str = ""
    owner: str = ""


class PlayedLog:
    """The table's log, as a driver has read it: in the place of `DeltaLog`."""

    def __init__(self, world: Owners, process: Driver) -> None:
        self._world, self._process = world, process
        self._read = Played()
        self.path = URL

    def read(self) -> bool:
        table = self._world.table
        self._read = Played(table.entries, table.number, table.maker, table.owner)
        return table.entries > 0

    def version(self) -> int:
        return self._read.entries

    def transaction(self, application: str) -> int | None:
        if application.endswith("/driver"):
            return self._read.number or None
        is_maker = application == f"job/made-by/{self._read.maker}"
        return 1 if is_maker else None

    def held(self, application: str, *others: str) -> tuple[int | None, list[int]]:
        return None, []

    def metadata(self) -> Any:
        return SimpleNamespace(id="the table", partition_columns=[], configuration={})

    def schema(self) -> pa.Schema:
        return COLUMNS

    def column_rules(self) -> set[str]:
        return set()

    def writer_features(self) -> set[str]:
        return set()

    def create(self, schema: pa.Schema, files: Any, numbers: Mapping[str, int], *_: Any) -> None:
        self._send(numbers, 0)

    def append(self, files: Any, numbers: Mapping[str, int], said: Mapping[str, str]) -> None:
        if "epochgate.checkpoint" in said:
            self._process.stand("write", ())
        self._send(numbers, self._read.entries)

    def _send(self, numbers: Mapping[str, int], behind: int) -> None:
        entry = self._process.run, numbers["job/driver"], behind
        if self._process.outcome == LOSE:
            self._process.late = entry
            raise LogFailed(URL, "the answer is lost")
        if not self._world.write(entry):
            raise LogOvertaken(URL, "others have written")


class PlayedFiles:
    """The files of a checkpoint, which lie where they are named."""

    def move_into_place(self, files: Sequence[Committable], *_: Any, **__: Any) -> None:
        pass

    def name(self, file: Committable) -> str:
        return file.path

    def schema_of(self, file: Committable) -> pa.Schema:
        return COLUMNS


class Claims:
    """The store of the claims, which fails where the schedule says so."""

    def __init__(self, process: Driver, inner: ObjectStore) -> None:
        self._process, self._inner = process, inner
        self.url = inner.url

    def __getattr__(self, name: str) -> Any:
        request = getattr(self._inner, name)

        def ask(key: str, *arguments: Any, **options: Any) -> Any:
            if self._process.outcome == LOSE and key.startswith(FOLDER):
                self._process.late = key, arguments[0]
            if self._process.outcome in (LOSE, DENY):
                raise OSError("no answer comes")
            return request(key, *arguments, **options)

        return ask


class Driver(Process):
    """A driver of the job, from its start on."""

    def __init__(self, world: Owners, number: int) -> None:
        super().__init__()
        self._world, self.run = world, f"run {number}"
        self.late: tuple[Any, ...] | None = None
        """A request whose answer was lost: an entry of the table, or of the claims."""
        self.has_started = self.has_claimed = self.is_dead = False
        with mock.patch.object(owner, "Handles", gated(self, world.lie, **world.bounds)):
            self.target = DeltaTarget(
                URL,
                "job",
                self.run,
                log=self._log,
                open_objects=self._claims,
            )
        self.target._staged = PlayedFiles()  # type: ignore[assignment]  # played
        begin = self.target._own.begin

        def read_claims() -> None:
            self.stand("read", ())
            begin()

        self.target._own.begin = read_claims  # type: ignore[method-assign]  # a moment to stop at

    def _log(self, path: str) -> Any:
        return PlayedLog(self._world, self)

    def _claims(self, url: str) -> Any:
        return Claims(self, self._world.memory.open(url))

    def start(self) -> None:
        """Claim the table."""
        self.target.claim(None)
        self.has_claimed = True

    def commit(self, checkpoint: int, *, has_rows: bool) -> None:
        """Commit a checkpoint."""
        file = Committable(0, 1, 1, f"data/{self.run}/file", 1, 1, 1, "columns")
        self.target.commit(checkpoint, [file] if has_rows else [])


class Owners:
    """The world of `OwnedTable`."""

    def __init__(self, system: OwnedTable, lie: Lie = the_truth) -> None:
        self.system, self.lie, self.memory = system, lie, Memory()
        self.bounds = {"entry_retries": system.entry_retries}
        self.table = Played()
        self.changes = self.commits = self.failures = 0
        self.processes = [Driver(self, number) for number in range(system.drivers)]

    def close(self) -> None:
        """End what is under way."""
        for process in self.processes:
            process.kill()

    def machines(self) -> Iterator[tuple[str, tuple[int, ...], Machine]]:
        for number, process in enumerate(self.processes):
            if not process.is_dead:  # what is left of one says nothing
                yield "table_owner", (number,), process.system.table_owner[0]

    def facts(self) -> Iterator[tuple[str, Any, Any]]:
        log, table = self.system.log, self.table
        yield "whether there is a table", log.is_there, table.entries > 0
        yield "the newest number", log.number, table.number
        yield "the maker", f"run {log.maker - 1}" if log.maker else "", table.maker
        yield "the owner", f"run {log.owner - 1}" if log.owner else "", table.owner
        claims = [entry["run"] for entry in self.claims() if entry["kind"] == "claim"]
        yield "the claims", log.claims, len(claims)
        yield "the last claim", log.claimant, int(claims[-1][4:]) + 1 if claims else 0
        for number, process in enumerate(self.processes):
            asked = self.system.client[number].asked
            yield f"whether driver {number} asks", asked > 0, process.asked is not None

    def claims(self) -> list[dict[str, Any]]:
        """The entries of the log of claims."""
        objects = self.store_of_claims()
        return [json.loads(objects.get(key)) for key in objects.list(FOLDER)]

    def write(self, entry: tuple[str, int, int]) -> bool:
        """Write an entry behind the one that its driver has read, unless there is another."""
        run, number, behind = entry
        if self.table.entries != behind:
            return False
        if behind == 0:
            self.table.maker = run
        self.table.entries, self.table.number, self.table.owner = behind + 1, number, run
        return True

    def boot(self, number: int) -> None:
        self.processes[number].has_started = True
        self.call(number, self.processes[number].start)

    def begin(self, number: int, *, has_rows: bool) -> None:
        self.commits += 1
        process = self.processes[number]
        self.call(number, lambda: process.commit(self.commits, has_rows=has_rows))

    def call(self, number: int, body: Any) -> None:
        """Let a driver begin something."""
        self.processes[number].outcome = WELL
        self.processes[number].call(body)
        self.look(number)

    def answer(self, number: int, outcome: str = WELL) -> None:
        self.processes[number].answer(outcome)
        self.look(number)

    def lose(self, number: int) -> None:
        self.failures += 1
        self.answer(number, LOSE if self.processes[number].asked in CHANGING else DENY)

    def arrive(self, number: int) -> None:
        process = self.processes[number]
        assert process.late is not None, "a request is late"
        late, process.late = process.late, None
        if len(late) == 3:
            self.write(late)
        else:
            with contextlib.suppress(FileExistsError):
                self.store_of_claims().create(*late)

    def is_taken(self, number: int) -> bool:
        """Return whether another entry has the number of a late claim."""
        late = self.processes[number].late
        return (
            late is not None and len(late) == 2 and late[0] in self.store_of_claims().list(FOLDER)
        )

    def store_of_claims(self) -> ObjectStore:
        """The objects of the log of claims."""
        return self.memory.open(next(url for url in self.memory.stores if url != URL))

    def die(self, number: int) -> None:
        self.failures += 1
        process = self.processes[number]
        if process.asked in CHANGING and process.late is None:
            process.answer(LOSE)
        process.kill()
        process.is_dead = True

    def look(self, number: int) -> None:
        """Go on where the call of a process has ended."""
        error = self.processes[number].error
        known = (RetryLater, TableTakenOver, TargetUnreachable, LogFailed)
        if error is not None and not isinstance(error, known):
            raise error

    def may_fail(self) -> bool:
        """Return whether the closed system allows another failure."""
        return self.failures < self.system.F

    def is_up(self, number: int) -> bool:
        """Return whether the driver was started, and lives."""
        return self.processes[number].has_started and not self.processes[number].is_dead

    def may_commit(self, number: int) -> bool:
        """Return whether the driver has started, and does nothing."""
        process = self.processes[number]
        is_idle = self.is_up(number) and not process.is_busy
        return is_idle and process.has_claimed and self.commits < self.system.K

    def change(self) -> None:
        self.changes += 1
        self.table.entries += 1

    acts: ClassVar[Mapping[str, Act]] = {
        "client.boot": Act(
            boot,
            lambda world, n: (
                not world.processes[n].has_started
                and (n == 0 or world.processes[n - 1].has_started)
            ),
            "the driver was started, or one before it was not",
        ),
        "client.answer": Act(
            answer, lambda world, n: world.processes[n].asked, "the driver asks for nothing"
        ),
        "client.lose": Act(
            lose,
            lambda world, n: (
                world.processes[n].asked not in (None, "read")
                and world.processes[n].late is None
                and world.may_fail()
            ),
            "nothing is asked for whose answer can be lost",
        ),
        "client.arrive": Act(
            arrive,
            lambda world, n: world.processes[n].late is not None,
            "no request is late",
            # A claim has a number, which may be taken by what another has named; in the model it
            # has none.
            is_apart=is_taken,
        ),
        "client.commit": Act(
            lambda world, n: world.begin(n, has_rows=True), may_commit, "the driver is busy"
        ),
        "client.commit_nothing": Act(
            lambda world, n: world.begin(n, has_rows=False), may_commit, "the driver is busy"
        ),
        "client.die": Act(
            die,
            lambda world, n: world.is_up(n) and world.may_fail(),
            "the driver is not up, or no failure is left",
        ),
        "log.change": Act(
            change, lambda world: world.changes < world.system.E, "no change is left"
        ),
    }
