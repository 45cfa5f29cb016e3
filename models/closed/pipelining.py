"""A closed system around the records of a pipeline in flight: each record is mapped once by the
surviving history, and reaches the sink once.

Two subtasks read and map batches. Their sinks are not ready at first, and again when the schema
changes; barriers arrive between any two pieces of work; a map raises, processes die, settings
change, and the job is started with another parallelism, which gives mapped batches that wait to
another subtask::

    source   batch 1 taken             batch 2 taken
    map      batch 1                   batch 2
    sink              not ready  ready          not ready
    barrier                   N                         N + 1: batch 2 is stored as mapped

`InFlight` is the machine that runs in production. In every run the map either has a state or is a
function. That the states of one subtask are of the same moment is a property of `Task`, and one
step here.
"""

from __future__ import annotations

from typing import ClassVar

from epochgate.fsm import machines
from epochgate.fsm.closed import ClosedSystem, Step, always, leads_to, sometimes
from epochgate.models.closed.surroundings.pipelining import (
    MAPPING,
    RUNNING,
    WAITING,
    PipelineJob,
    TaskInFlight,
    TaskProgram,
)
from epochgate.models.in_flight import TAKEN


class PipelineTasks(ClosedSystem):
    """The tasks of a pipeline between source and sink: no record is lost or doubled."""

    CONSTANTS: ClassVar[dict[str, int]] = {"subtasks": 2, "records": 2, "K": 2, "F": 2}
    DERIVED: ClassVar[dict[str, str]] = {
        "calls": "records * 2 + 1",
        "written": "records * subtasks + 1",
    }
    INDEX_SETS: ClassVar[dict[str, str]] = {"subtask": "subtasks"}
    STEPS: ClassVar[tuple[Step, ...]] = (
        Step("job", "run_function"),
        Step("job", "run_operator"),
        Step("job", "ask", is_fair=False),
        Step("job", "store"),
        Step("job", "rescale", is_fair=False),
        Step("program", "work"),
        Step("program", "map_returns"),
        Step("program", "agree"),
        Step("program", "doubt", is_fair=False),
        Step("program", "change", is_fair=False),
        Step("program", "barrier"),
        Step("program", "fail", is_fair=False),
        Step("program", "reset"),
    )
    WIRING: ClassVar[dict[str, str]] = {"in_flight.batches": "program"}

    subtasks: int
    records: int
    calls: int
    written: int
    K: int
    F: int

    in_flight: list[TaskInFlight] = machines(TaskInFlight)
    program: list[TaskProgram] = machines(TaskProgram)
    job: PipelineJob = machines(PipelineJob)

    @always("each record is mapped once by the surviving history")
    def maps_once(self) -> bool:
        return not self.job.has_state or all(
            self.program[s].mapped == self.program[s].position
            for s in range(self.subtasks)
            if self.program[s].state == WAITING
        )

    @always("each record reaches the sink once")
    def writes_once(self) -> bool:
        read = 0
        reached = 0
        for s in range(self.subtasks):
            if self.program[s].state != WAITING:
                return True
            read += self.program[s].position
            reached += self.program[s].written
            if self.job.has_state:
                reached += self.program[s].held
        return reached == read

    @always("a completed checkpoint holds each record that was taken: as written, or as mapped")
    def stores_what_waits(self) -> bool:
        read = 0
        reached = 0
        for s in range(self.subtasks):
            read += self.job.stored_position[s]
            reached += self.job.stored_written[s] + self.job.stored_held[s]
        return reached == read

    @sometimes("a completed checkpoint holds a mapped batch")
    def stores_a_batch(self) -> bool:
        return any(self.job.stored_held[s] > 0 for s in range(self.subtasks))

    @sometimes("a batch that another subtask has mapped waits for the sink")
    def moves_a_batch(self) -> bool:
        return self.job.has_moved and any(
            self.program[s].held > 0 and self.in_flight[s].state == TAKEN
            for s in range(self.subtasks)
        )

    @sometimes("a function is called again, with another setting")
    def maps_again(self) -> bool:
        return any(
            self.program[s].state == MAPPING and self.program[s].held > 0
            for s in range(self.subtasks)
        )

    @leads_to("every record reaches the sink once failures stop", then="are_written")
    def are_unwritten(self) -> bool:
        return not self.are_written()

    def are_written(self) -> bool:
        return self.job.state == RUNNING and all(
            self.program[s].position == self.records and self.program[s].held == 0
            for s in range(self.subtasks)
        )
