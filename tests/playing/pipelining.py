"""The records of a pipeline in flight: each subtask of `PipelineTasks` has a `Worker`, with the
program of a pipeline. The source, the map and the sink do as a schedule tells, and so does the job.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, ClassVar, Final
from unittest import mock

import msgpack

from epochgate.fsm import VirtualClock
from epochgate.fsm.machine import Machine
from epochgate.models.closed.pipelining import PipelineTasks
from epochgate.models.closed.surroundings.pipelining import (
    DOWN,
    MAPPING,
    WAITING,
)
from epochgate.pipeline import MapOperator
from epochgate.runtime import OperatorContext, Sink, SinkWriter
from epochgate.runtime.api.sink_operator import SinkOperator
from epochgate.runtime.api.state_versions import parted
from epochgate.runtime.pipeline import program
from epochgate.runtime.pipeline.setting import SettingOperator
from epochgate.runtime.pipeline.waiting import IN_FLIGHT, redistributed
from epochgate.runtime.shell.worker import Worker
from epochgate.runtime.source import Fetched, ReaderContext, Source, SourceReader, SourceSplit
from epochgate.runtime.source.events import SPLITS
from epochgate.runtime.source.operator import SourceOperator
from epochgate.runtime.source.split import pack_splits
from tests.playing.gates import WELL, Lie, Process, gated, the_truth
from tests.playing.stage import Act
from tests.playing.store import DENY

MAP, SETTING = "map", "setting"
COORDINATORS: Final = [SETTING, program.SOURCE]
REFUSED: Final = "the schedule lets the user's code raise"


class Records(Source, SourceReader):
    """A split for each subtask, which never ends."""

    def __init__(self, count: int) -> None:
        self._count = count

    def create_reader(self, context: ReaderContext) -> SourceReader:
        return self

    def create_enumerator(self, context: Any, state: Any) -> Any:
        raise NotImplementedError("the schedule gives the splits")

    def open_split(self, split: SourceSplit, position: Any) -> Iterator[Fetched | None]:
        for number in range(position or 0, self._count):
            yield Fetched([f"{split.split_id}.{number}"], number + 1)
        while True:
            yield None


class Counting(MapOperator):
    """A map with a state: how often it has returned."""

    def __init__(self, subtask: Subtask) -> None:
        self._subtask, self.mapped = subtask, 0

    def open(self, context: OperatorContext, state: bytes | None) -> None:
        super().open(context, state)
        self.mapped = int(state or 0)

    def snapshot(self, checkpoint_id: int) -> bytes:
        return b"%d" % self.mapped

    def map(self, batch: Any, setting: int = 0) -> Any:
        mapped = self._subtask.mapped(batch, setting)
        self.mapped += 1
        return mapped


class Written(Sink, SinkWriter):
    """Its state is what it has accepted in this history."""

    def __init__(self, subtask: Subtask) -> None:
        self._subtask = subtask
        self.rows: list[Any] = []

    def create_writer(self, context: OperatorContext, state: bytes | None) -> SinkWriter:
        self.rows = json.loads(state) if state else []
        return self

    def create_committer(self, start: Any) -> Any:
        raise NotImplementedError("nothing is committed")

    def may_write(self, batch: Any) -> bool:
        return self._subtask.is_ready

    def write(self, batch: Any) -> None:
        self.rows += batch

    def prepare_commit(self, checkpoint_id: int) -> list[Any]:
        return []

    def snapshot(self, checkpoint_id: int) -> bytes:
        return json.dumps(self.rows).encode()


class Subtask(Process):
    """One subtask; an attempt follows the other in it."""

    def __init__(self, world: Pipelining, number: int) -> None:
        super().__init__()
        self._world, self.number = world, number
        self.is_down = self.is_ready = self.is_changed = self.has_answered = False
        self.worker: Worker | None = None
        self.program: Any = None

    @property
    def state(self) -> str:
        """As the model calls it."""
        if self.is_down:
            return DOWN
        return WAITING if self.asked is None else MAPPING

    def begin(self, states: Mapping[str, Any] | None) -> None:
        """Begin an attempt with what was stored."""
        world = self._world
        self.source, self.sink = SourceOperator(Records(world.system.records)), Written(self)
        self.map = Counting(self) if world.has_state else None
        self.setting = SettingOperator(0)
        self._sent: list[Any] = []
        self._events = 0
        with mock.patch.object(program, "Handles", gated(self, world.lie)):
            self.program = program.PipelineProgram(
                self.source,
                self.map or self.mapped,
                SinkOperator(self.sink),
                beside={SETTING: self.setting},
                settings={SETTING: SETTING},
            )
        self.worker = Worker(
            self.program,
            subtask=self.number,
            parallelism=world.system.subtasks,
            run_id="run",
            coordinators=COORDINATORS,
            send=self._sent.append,
            clock=VirtualClock(),
        )
        self.handle(["restore", 0, 0, states])
        if states is None:
            split = SourceSplit(str(self.number), None)
            self.handle(["event", 1, 1, [SPLITS, pack_splits([split])]])

    def handle(self, message: list[Any]) -> None:
        """Let the attempt hear the driver."""
        assert self.worker is not None, "an attempt has begun"
        self.worker.handle([message])
        assert not self.worker.is_over, self._sent[-1]

    def work(self) -> None:
        """Let it do one piece of work."""
        assert self.worker is not None, "an attempt has begun"
        self.call(self.worker.work)

    def mapped(self, batch: Any, setting: int) -> list[Any]:
        """The user's map. Raises RuntimeError where the schedule says so."""
        assert setting == self.setting.value, "the map is given the newest setting"
        self.stand(MAP, ())
        if self.outcome == DENY:
            raise RuntimeError(REFUSED)
        self.is_changed = False
        return list(batch)

    def change(self) -> None:
        """The driver sends another value of the setting."""
        self._events += 1
        self.is_changed = True
        self.handle(["event", 0, self._events, self.setting.value + 1])

    def answered(self, checkpoint: int) -> dict[str, Any]:
        """The states that it has stored."""
        self.has_answered = True
        self.handle(["barrier", checkpoint])
        answer = self._sent[-1]
        assert answer[:2] == ["acknowledge", checkpoint], answer
        states: dict[str, Any] = answer[3]
        return states

    def end(self) -> None:
        """The process dies, or the map raises."""
        if self.asked is None:
            return
        self.answer(DENY)
        assert REFUSED in self._sent[-1][1], "the driver is told what the map has raised"

    @property
    def waiting(self) -> list[Any]:
        """The mapped batches."""
        return [] if self.program is None else list(self.program._waiting)

    @property
    def position(self) -> int:
        """The batches that the source is behind."""
        if self.program is None:
            return 0
        ((_, position),) = self.source.splits
        return position or 0


class Pipelining:
    """The world of `PipelineTasks`."""

    def __init__(self, system: PipelineTasks, lie: Lie = the_truth) -> None:
        self.system, self.lie = system, lie
        self.tasks = [Subtask(self, number) for number in range(system.subtasks)]
        self.has_state: bool | None = None
        self.failures = self.checkpoints = 0
        self.is_asked = False
        self.saved: dict[int, dict[str, Any]] = {}
        self.stored: dict[int, dict[str, Any]] | None = None

    def close(self) -> None:
        """End what is under way."""
        for task in self.tasks:
            task.kill()

    def machines(self) -> Iterator[tuple[str, tuple[int, ...], Machine]]:
        for task in self.tasks:
            if task.program is not None:
                yield "in_flight", (task.number,), task.system.in_flight

    def facts(self) -> Iterator[tuple[str, Any, Any]]:
        job = self.system.job
        yield "the job", (job.is_asked, job.checkpoints), (self.is_asked, self.checkpoints)
        for task in self.tasks:
            one, told = task.number, self.system.program[task.number]
            yield f"subtask {one}", (told.state, told.is_ready), (task.state, task.is_ready)
            yield f"what subtask {one} has answered", told.has_answered, task.has_answered
            if task.program is None or task.is_down:
                continue
            yield f"the position of subtask {one}", told.position, task.position
            yield f"what waits in subtask {one}", told.held, len(task.waiting)
            yield f"what the sink {one} has", told.written, len(task.sink.rows)
            if task.map is not None:
                yield f"the state of map {one}", told.mapped, task.map.mapped
        for one, states in (self.stored or {}).items():
            stored, _ = parted(states)
            there = json.loads(stored[program.SINK])
            yield f"what is stored of sink {one}", job.stored_written[one], len(there)
            waiting = stored.get(IN_FLIGHT)
            held = len(msgpack.unpackb(waiting)) if waiting else 0
            yield f"what is stored of batches in {one}", job.stored_held[one], held
        if all(task.program is not None and task.state == WAITING for task in self.tasks):
            yield "the records that were taken", sorted(self.taken()), sorted(self.reached())

    def taken(self) -> list[str]:
        """The records that sources are behind."""
        return [f"{task.number}.{n}" for task in self.tasks for n in range(task.position)]

    def reached(self) -> list[str]:
        """Those that sinks have, or that maps with a state have mapped."""
        rows = [row for task in self.tasks for row in task.sink.rows]
        if self.has_state:
            rows += [row for task in self.tasks for batch in task.waiting for row in batch]
        return rows

    def run(self, has_state: bool) -> None:
        self.has_state = has_state
        for task in self.tasks:
            if not task.is_down:
                self._build(task)

    def begin(self, number: int) -> None:
        task = self.tasks[number]
        task.is_ready = task.is_changed = task.has_answered = task.is_down = False
        self._build(task)

    def _build(self, task: Subtask) -> None:
        if self.has_state is not None:
            task.begin(None if self.stored is None else self.stored[task.number])

    def ask(self) -> None:
        self.is_asked = True
        self.checkpoints += 1
        self.saved = {}

    def barrier(self, number: int) -> None:
        self.saved[number] = self.tasks[number].answered(self.checkpoints)

    def store(self) -> None:
        self.is_asked, self.stored = False, self.saved
        for task in self.tasks:
            task.has_answered = False

    def fail(self, number: int) -> None:
        self.failures += 1
        self.tasks[number].end()
        self.tasks[number].is_down = True
        self._abort()

    def _abort(self) -> None:
        self.is_asked = False
        for task in self.tasks:
            task.has_answered = False

    def rescale(self) -> None:
        """As a start with one subtask, which gets all that waits; the others' splits stay here."""
        self.failures += 1
        if self.stored is not None and self.has_state:
            waiting = {n: parted(one)[0][IN_FLIGHT] for n, one in self.stored.items()}
            dealt = redistributed(waiting, 1)
            for number, states in self.stored.items():
                states[IN_FLIGHT] = dealt.get(number, b"")
        self._abort()
        for number, task in enumerate(self.tasks):
            task.end()
            self.begin(number)

    def work(self, number: int) -> None:
        self.tasks[number].work()

    def change(self, number: int) -> None:
        self.failures += 1
        self.tasks[number].change()

    def agree(self, number: int) -> None:
        self.tasks[number].is_ready = True

    def doubt(self, number: int) -> None:
        self.failures += 1
        self.tasks[number].is_ready = False

    def may_fail(self) -> bool:
        return self.failures < self.system.F

    def is_(self, number: int, *states: str) -> bool:
        return self.tasks[number].state in states

    def has_something(self, number: int) -> bool:
        task = self.tasks[number]
        is_behind = task.position < self.system.records or bool(task.waiting)
        return task.program is not None and task.state == WAITING and is_behind

    def may_change(self, number: int) -> bool:
        task = self.tasks[number]
        return (
            bool(task.waiting) and task.state == WAITING and not task.is_changed and self.may_fail()
        )

    def have_all_answered(self) -> bool:
        return self.is_asked and all(task.has_answered for task in self.tasks)

    acts: ClassVar[Mapping[str, Act]] = {
        "job.run_function": Act(
            lambda world: world.run(False),
            lambda world: world.has_state is None,
            "the job runs",
        ),
        "job.run_operator": Act(
            lambda world: world.run(True), lambda world: world.has_state is None, "the job runs"
        ),
        "job.ask": Act(
            ask,
            lambda world: (
                world.has_state is not None
                and not world.is_asked
                and world.checkpoints < world.system.K
            ),
            "a checkpoint is under way, or none is left",
        ),
        "job.store": Act(store, have_all_answered, "a subtask has not answered"),
        "job.rescale": Act(
            rescale,
            lambda world: world.has_state is not None and world.may_fail(),
            "the job does not run",
        ),
        "program.work": Act(work, has_something, "there is nothing to do"),
        "program.map_returns": Act(
            lambda world, n: world.tasks[n].answer(WELL),
            lambda world, n: world.is_(n, MAPPING),
            "nothing is being mapped",
        ),
        "program.agree": Act(
            agree,
            lambda world, n: world.is_(n, WAITING) and not world.tasks[n].is_ready,
            "the sink is ready",
        ),
        "program.doubt": Act(
            doubt,
            lambda world, n: world.is_(n, WAITING) and world.tasks[n].is_ready and world.may_fail(),
            "the sink is not ready",
        ),
        "program.change": Act(change, may_change, "no batch waits, or a setting has changed"),
        "program.barrier": Act(
            barrier,
            lambda world, n: (
                world.is_(n, WAITING) and world.is_asked and not world.tasks[n].has_answered
            ),
            "no barrier is on its way",
        ),
        "program.fail": Act(
            fail,
            lambda world, n: world.is_(n, WAITING, MAPPING) and world.may_fail(),
            "the process is gone",
        ),
        "program.reset": Act(begin, lambda world, n: world.is_(n, DOWN), "it runs"),
    }
