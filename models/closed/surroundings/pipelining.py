"""The surroundings of a pipeline's records in flight: the tasks with their sources, maps and sinks,
and the job that takes checkpoints, goes back to them, and is started with another parallelism.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from epochgate.fsm import ANY, STAY, Array, Bool, Int, Row, Trigger
from epochgate.fsm.closed import Environment
from epochgate.models.in_flight import EMPTY, InFlight

if TYPE_CHECKING:
    from epochgate.models.closed.pipelining import PipelineTasks

WAITING, MAPPING, DOWN = "waiting", "mapping", "down"
PLANNED, RUNNING = "planned", "running"


class TaskInFlight(InFlight):
    """The machine of each subtask, renewed with its attempt."""

    INDEX = ("subtask",)

    replaced: Trigger

    # fmt: off
    ROWS: ClassVar[tuple[Row, ...]] = (
        *InFlight.ROWS,
        Row("replaced", ANY, EMPTY, None, None, "what the attempt had in memory is gone with it"),
    )
    # fmt: on


class TaskProgram(Environment):
    """The thread of one subtask: between two pieces of work, or in the user's map.

    The sink's answer arrives in the step that asks for it, as a call returns. `held` counts the
    mapped batches in memory: one, or after rescaling also those of other subtasks.
    """

    INDEX = ("subtask",)
    STATES = (WAITING, MAPPING, DOWN)
    INITIAL = WAITING

    system: PipelineTasks
    subtask: int

    position: int = Int("records")
    """The batches that the source is behind: its state."""
    mapped: int = Int("calls")
    """How often the map has returned: its state."""
    written: int = Int("written")
    """The batches that the sink has accepted in this history."""
    held: int = Int("written")
    is_ready: bool = Bool()
    """The sink accepts a batch; a new attempt's sink has to wait."""
    is_changed: bool = Bool()
    """A setting has changed since the batch was mapped."""
    has_answered: bool = Bool()
    """It has taken its part of the checkpoint that is asked for."""

    work: Trigger
    map_begins: Trigger
    map_returns: Trigger
    agree: Trigger
    doubt: Trigger
    change: Trigger
    barrier: Trigger
    fail: Trigger
    reset: Trigger
    rebuild: Trigger

    # fmt: off
    ROWS: ClassVar[tuple[Row, ...]] = (
        Row("work",        WAITING, STAY,    "has_something",
            "do_work",                            "the source shows a batch, or one waits for the sink"),
        Row("map_begins",  WAITING, MAPPING, None,
            None,                                 "the user's map is called"),
        Row("map_returns", MAPPING, WAITING, None,
            "note_mapped, ask",                   "the map has returned a batch"),
        Row("agree",       WAITING, STAY,    "is_not_ready",
            "become_ready",                       "the coordinator has agreed to the schema"),
        Row("doubt",       WAITING, STAY,    "may_doubt",
            "spend_failure, become_unready",      "the next batch has another schema"),
        Row("change",      WAITING, STAY,    "may_change",
            "change_setting",                     "the driver sends another value of a setting"),
        Row("barrier",     WAITING, STAY,    "is_asked",
            "take_snapshot",                      "the barrier arrives between two pieces of work"),
        Row("fail",        (WAITING, MAPPING), DOWN, "may_fail",
            "spend_failure, abort",               "the map raises, or the process dies"),
        Row("reset",       DOWN,    WAITING, None,
            "go_back",                            "the next attempt begins at the last checkpoint"),
        Row("rebuild",     ANY,     WAITING, None,
            "go_back",                            "the job is started with another parallelism"),
    )
    # fmt: on

    def has_something(self) -> bool:
        return self.system.job.state == RUNNING and (
            self.held > 0 or self.position < self.system.records
        )

    def is_not_ready(self) -> bool:
        return not self.is_ready

    def may_doubt(self) -> bool:
        return self.is_ready and self.may_fail()

    def may_change(self) -> bool:
        return (
            self.system.in_flight[self.subtask].state != EMPTY
            and not self.is_changed
            and self.may_fail()
        )

    def is_asked(self) -> bool:
        return self.system.job.is_asked and not self.has_answered

    def may_fail(self) -> bool:
        return self.system.job.failures < self.system.F

    def do_work(self) -> None:
        self.system.in_flight[self.subtask].work(self.is_changed)

    def note_mapped(self) -> None:
        if self.system.job.has_state:
            self.mapped += 1
        self.held = 1
        self.is_changed = False

    def become_ready(self) -> None:
        self.is_ready = True

    def become_unready(self) -> None:
        self.is_ready = False

    def change_setting(self) -> None:
        self.spend_failure()
        self.is_changed = True

    def take_snapshot(self) -> None:
        self.has_answered = True
        self.system.job.save(self.subtask, self.position, self.mapped, self.written)
        self.system.in_flight[self.subtask].barrier()

    def spend_failure(self) -> None:
        self.system.job.failures += 1

    def abort(self) -> None:
        self.system.job.abort()

    def go_back(self) -> None:
        self.system.in_flight[self.subtask].replaced()
        self.is_ready = False
        self.is_changed = False
        self.has_answered = False
        self.position = self.system.job.stored_position[self.subtask]
        self.mapped = self.system.job.stored_mapped[self.subtask]
        self.written = self.system.job.stored_written[self.subtask]
        self.held = self.system.job.stored_held[self.subtask]
        if self.held > 0:
            self.system.in_flight[self.subtask].restore()

    # The port of the machine.

    def look(self) -> None:
        if self.position < self.system.records:
            self.system.in_flight[self.subtask].show(self.system.job.has_state)

    def take(self) -> None:
        self.position += 1

    def map(self) -> None:
        assert self.held == 0 or self.is_changed, "a batch is mapped once with the same settings"
        self.map_begins()

    def ask(self) -> None:
        if self.is_ready:
            self.system.in_flight[self.subtask].accept()

    def write(self) -> None:
        assert self.held > 0, "what is written was mapped, and is written once"
        self.written += self.held
        self.held = 0

    def keep(self) -> None:
        self.system.job.keep(self.subtask, self.held)


class PipelineJob(Environment):
    """The job: one checkpoint at a time, and what the last completed one holds."""

    STATES = (PLANNED, RUNNING)
    INITIAL = PLANNED
    TERMINAL = (RUNNING,)

    system: PipelineTasks

    has_state: bool = Bool()
    failures: int = Int("F")
    checkpoints: int = Int("K")
    is_asked: bool = Bool()
    has_moved: bool = Bool()
    """A start with another parallelism has given mapped batches to another subtask."""
    saved_position: list[int] = Array(Int("records"), "subtasks")
    saved_mapped: list[int] = Array(Int("calls"), "subtasks")
    saved_written: list[int] = Array(Int("written"), "subtasks")
    saved_held: list[int] = Array(Int("written"), "subtasks")
    stored_position: list[int] = Array(Int("records"), "subtasks")
    stored_mapped: list[int] = Array(Int("calls"), "subtasks")
    stored_written: list[int] = Array(Int("written"), "subtasks")
    stored_held: list[int] = Array(Int("written"), "subtasks")

    run_function: Trigger
    run_operator: Trigger
    ask: Trigger
    store: Trigger
    rescale: Trigger

    # fmt: off
    ROWS: ClassVar[tuple[Row, ...]] = (
        Row("run_function", PLANNED, RUNNING, None,
            None,                               "the map is a function"),
        Row("run_operator", PLANNED, RUNNING, None,
            "note_state",                       "the map is an operator, with a state of its own"),
        Row("ask",          RUNNING, STAY,    "may_ask",
            "begin_checkpoint",                 "the interval is over"),
        Row("store",        RUNNING, STAY,    "have_all_answered",
            "complete_checkpoint",              "every subtask has taken its part"),
        Row("rescale",      RUNNING, STAY,    "may_rescale",
            "spend_failure, move, restart",     "the job is started with another parallelism"),
    )
    # fmt: on

    def may_ask(self) -> bool:
        return not self.is_asked and self.checkpoints < self.system.K

    def have_all_answered(self) -> bool:
        return self.is_asked and all(
            self.system.program[s].has_answered for s in range(self.system.subtasks)
        )

    def may_rescale(self) -> bool:
        return self.failures < self.system.F

    def note_state(self) -> None:
        self.has_state = True

    def begin_checkpoint(self) -> None:
        self.is_asked = True
        self.checkpoints += 1
        for s in range(self.system.subtasks):
            self.saved_held[s] = 0

    def complete_checkpoint(self) -> None:
        self.is_asked = False
        for s in range(self.system.subtasks):
            self.system.program[s].has_answered = False
            self.stored_position[s] = self.saved_position[s]
            self.stored_mapped[s] = self.saved_mapped[s]
            self.stored_written[s] = self.saved_written[s]
            self.stored_held[s] = self.saved_held[s]

    def spend_failure(self) -> None:
        self.failures += 1

    def move(self) -> None:
        # As where one subtask is left: it gets all that waits, the others' splits come later.
        for s in range(1, self.system.subtasks):
            if self.stored_held[s] > 0:
                self.has_moved = True
                self.stored_held[0] += self.stored_held[s]
                self.stored_held[s] = 0

    def restart(self) -> None:
        self.is_asked = False
        for s in range(self.system.subtasks):
            self.system.program[s].rebuild()

    def abort(self) -> None:
        self.is_asked = False
        for s in range(self.system.subtasks):
            self.system.program[s].has_answered = False

    def save(self, subtask: int, position: int, mapped: int, written: int) -> None:
        self.saved_position[subtask] = position
        self.saved_mapped[subtask] = mapped
        self.saved_written[subtask] = written

    def keep(self, subtask: int, held: int) -> None:
        assert held > 0, "what is stored waits for the sink"
        assert self.saved_held[subtask] == 0, "what waits is stored once"
        self.saved_held[subtask] = held
