"""The splits of a source: the `SourceCoordinator` that runs in production, with an enumerator that
decides as the schedule tells, and a `SourceOperator` in each reader. Played are the wires, which
are in order, and the job: its checkpoints, its resets, and the processes of readers.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from concurrent.futures import Future
from typing import Any, ClassVar, cast

from epochgate.fsm.inside import machines_behind
from epochgate.fsm.run_to_completion import Call
from epochgate.models.closed.sources import Sources
from epochgate.models.closed.surroundings.split_readers import CURRENT, DOWN, STARTING, UP
from epochgate.runtime import CoordinatorContext
from epochgate.runtime.api.coordinator import BATCH_CHECKPOINT
from epochgate.runtime.source import SourceCoordinator, events
from epochgate.runtime.source.errors import (
    AssignmentsForgotten,
    ReaderNotRegistered,
    SplitsAfterNoMore,
)
from epochgate.runtime.source.split import unpack
from tests.playing.gates import Lie, the_truth
from tests.playing.job_lies import tell_lies
from tests.playing.source_users import (
    BARRIER,
    Checkpoint,
    Enumerator,
    PlayedSource,
    Process,
    Shown,
    held,
)
from tests.playing.stage import Act
from tests.playing.waiting import QueuedWorld
from tests.runtime.source.by_hand import HandContext

REFUSED = RuntimeError("the schedule lets the user's code raise")


class SourcesWorld(QueuedWorld):
    """The world of `Sources`."""

    # The job announces an attempt, and its end, in this order; so both are events of the driver.
    OUTSIDE = frozenset(
        f"reader.{step}" for step in ("hear", "hear_again", "hear_late", "ask", "tell")
    )

    def __init__(self, system: Sources, lie: Lie = the_truth) -> None:
        super().__init__()
        self.system = system
        self.failures = self.resets = self.pushes = self.latest = 0
        self.is_to_raise = self.has_raised = False
        """Whether the enumerator is to raise, or has, when it is told of a reader."""
        self.pending: Checkpoint | None = None
        self.completed = Checkpoint(readers=dict.fromkeys(range(system.subtasks)))
        self.speaking = set[int]()
        """Readers that have said something of which the enumerator is to hear."""
        self.attempts = [0] * system.subtasks
        """For each subtask, more than the number of every attempt that was ready."""
        self.enumerator: Enumerator
        context = HandContext(concurrent_attempts_max=system.places)
        context.parallelism = system.subtasks
        used = cast(CoordinatorContext, context)  # all that a source uses of one
        self.coordinator = SourceCoordinator(used, PlayedSource(self))
        self.machines_here = machines_behind(self.coordinator._assignments._system)
        tell_lies(self.machines_here, lie)
        self.coordinator.start()
        self.processes = [Process(self, i, 0) for i in range(system.subtasks)]

    def machines(self) -> Iterator[tuple[str, tuple[int, ...], Any]]:
        for i, machine in enumerate(self.machines_here.assignment):
            yield "assignment", (i,), Shown(machine)

    def facts(self) -> Iterator[tuple[str, Any, Any]]:
        job, enumerator = self.system.job, self.enumerator
        yield "what the job has used up", (job.failures, job.resets), (self.failures, self.resets)
        yield "pushes", job.pushes, self.pushes
        raises = self.is_to_raise, self.has_raised
        yield "whether the enumerator raises", (job.is_to_raise, job.has_raised), raises
        yield "unassigned", flagged(job.is_unassigned), sorted(enumerator.unassigned)
        yield "the newest checkpoint", job.latest, self.latest
        yield "the completed checkpoint", job.completed, self.completed.number
        unassigned = self.completed.unassigned(self.system.S)
        yield "unassigned in it", flagged(job.completed_unassigned), unassigned
        pending = self.pending or Checkpoint()
        yield "the pending checkpoint", job.pending, pending.number
        if self.pending is not None:
            yield "acknowledged", job.acknowledged, len(pending.readers)
            unassigned = pending.unassigned(self.system.S)
            yield "unassigned then", flagged(job.snapshot_unassigned), unassigned
        for i, process in enumerate(self.processes):
            yield from self._reader(i, process)
            dealer = self.system.dealer[i]
            here = dealer.is_waiting, dealer.is_planned, dealer.is_spoken_to
            found = enumerator.is_asked(i), i in enumerator.planned, i in self.speaking
            yield f"what is asked by {i}", here, found
            attempts = [self.system.reader[i].attempt] if dealer.has_reader else []
            yield f"the readers of {i} that are there", attempts, enumerator.there(i)
        listed = self.listed()
        if listed is not None:
            machines = self.system.assignment
            told = [[*each.checkpointed, *each.uncheckpointed] for each in machines]
            yield "what a snapshot without a checkpoint lists", told, listed

    def _reader(self, i: int, process: Process) -> Iterator[tuple[str, Any, Any]]:
        reader = self.system.reader[i]
        here = reader.state, reader.attempt, [*reader.down], [*reader.up]
        found = process.state, process.attempt, process.orders(), process.words()
        yield f"reader {i}", here, found
        completed = held(self.completed.readers[i])
        yield f"what {i} has in the checkpoint", flagged(reader.completed_holds), completed
        if self.pending is not None and i in self.pending.readers:
            acknowledged = held(self.pending.readers[i])
            yield f"what {i} has acknowledged", flagged(reader.snapshot_holds), acknowledged
        if process.state != DOWN:
            yield f"what {i} reads", flagged(reader.holds), sorted(process.holds())
            operator = process.operator
            asked = operator._has_asked, operator._has_no_more
            yield f"what {i} knows", (reader.has_asked, reader.is_told), asked

    def listed(self) -> list[list[int]] | None:
        """Return the splits in a snapshot without a checkpoint; none where it is refused."""
        taken: Future[bytes] = Future()
        self.coordinator.checkpoint(BATCH_CHECKPOINT, taken)
        if isinstance(taken.exception(timeout=0), AssignmentsForgotten):
            return None
        found = dict(unpack(taken.result())[3])
        return [[int(name) + 1 for name, _ in found.get(i, ())] for i in range(len(self.attempts))]

    # what the coordinator hears

    def ready(self, process: Process) -> None:
        self.attempts[process.subtask] = max(self.attempts[process.subtask], process.attempt + 1)
        self.coordinator.execution_attempt_ready(process.subtask, process.attempt, process)

    def said(self, subtask: int, attempt: int, message: Any) -> None:
        is_present = attempt == self.processes[subtask].attempt and self.is_there(subtask)
        if message[0] == events.SOURCE_EVENT and is_present:
            self.speaking.add(subtask)
        try:
            self.coordinator.handle_event_from_operator(subtask, attempt, message)
        except RuntimeError as error:
            if error is not REFUSED:
                raise
            self.has_raised = True  # which fails the job

    def told_of_reader(self) -> None:
        """Let the enumerator raise, if the schedule says so."""
        if self.is_to_raise:
            self.is_to_raise = False
            raise REFUSED

    def demand(self, event: Call | None) -> None:
        """A reader that is there in its turn is to be heard."""
        if event is None:
            for dealer in self.system.dealer:
                dealer.is_spoken_to = False
        elif event[0].__name__ == "speak":
            machine, attempt, word = event[1]
            dealer = self.system.dealer[machine.subtask]
            dealer.is_spoken_to = word == CURRENT and machine.is_there(attempt)

    def heard(self, subtask: int, attempt: int, event: int) -> None:
        """The enumerator hears what the attempt has said."""
        present = self.processes[subtask].attempt
        assert attempt == event == present, f"{event} of attempt {attempt} is heard, of {present}"
        self.speaking.remove(subtask)

    def hear_again(self, subtask: int) -> None:
        self.processes[subtask].say([events.REGISTER, "again"])

    def hear_late(self, subtask: int) -> None:
        """Let the attempts before this one say all that they could."""
        for attempt in range(min(self.processes[subtask].attempt, self.attempts[subtask])):
            for said in ([events.REGISTER, "late"], [events.REQUEST], [events.SOURCE_EVENT, -1]):
                self.tell(self.said, subtask, attempt, said)
            self.tell(self.coordinator.execution_attempt_failed, subtask, attempt, "late")

    def push(self, subtask: int) -> None:
        self.pushes += 1
        self.enumerator.decide(subtask)

    def may_push(self, subtask: int) -> bool:
        if self.pushes == self.system.P:
            return False
        try:
            self.coordinator._assignments.require_open(subtask, [])
        except SplitsAfterNoMore:
            return not self.enumerator.unassigned
        return True

    def plan(self, subtask: int) -> None:
        self.pushes += 1
        self.enumerator.planned.add(subtask)

    # the job

    def is_storing(self) -> bool:
        """Return whether all have acknowledged."""
        return self.pending is not None and len(self.pending.readers) == self.system.subtasks

    def acknowledge(self, subtask: int, checkpoint: int, state: bytes) -> None:
        if self.pending is not None and self.pending.number == checkpoint:
            self.pending.readers[subtask] = state

    def may_take(self) -> bool:
        are_up = all(process.state == UP for process in self.processes)
        return are_up and self.pending is None and self.latest < self.system.K

    def take(self) -> None:
        self.latest += 1
        taken: Future[bytes] = Future()
        self.coordinator.checkpoint(self.latest, taken)
        self.pending = Checkpoint(self.latest)
        if isinstance(taken.exception(timeout=0), ReaderNotRegistered):
            self.abort()
            return
        self.pending.enumerator = taken.result()
        for process in self.processes:
            process.down.append([BARRIER, self.latest])

    def store(self, is_heard: bool) -> None:
        assert self.pending is not None
        self.completed, self.pending = self.pending, None
        if is_heard:
            self.coordinator.notify_checkpoint_complete(self.completed.number)

    def abort(self) -> None:
        assert self.pending is not None
        number, self.pending = self.pending.number, None
        self.coordinator.notify_checkpoint_aborted(number)

    def fail(self, subtask: int) -> None:
        process = self.processes[subtask]
        self.failures += 1
        process.die()
        if self.pending is not None and not self.is_storing():
            self.abort()
        self.coordinator.execution_attempt_failed(subtask, process.attempt, "killed")

    def reset(self, subtask: int) -> None:
        self.coordinator.subtask_reset(subtask, self.completed.number)
        self.begin_again(subtask)

    def begin_again(self, subtask: int) -> None:
        self.processes[subtask] = Process(self, subtask, self.processes[subtask].attempt + 1)

    def reset_all(self) -> None:
        self.resets += 1
        self.recover()

    def spoil(self) -> None:
        self.resets += 1
        self.is_to_raise = True

    def recover(self) -> None:
        self.has_raised = False
        if self.pending is not None:
            self.abort()
        self.coordinator.reset_to_checkpoint(self.completed.number, self.completed.enumerator)
        for i in range(len(self.processes)):
            self.begin_again(i)

    def is_(self, subtask: int, *states: str) -> bool:
        return self.processes[subtask].state in states

    def is_there(self, subtask: int) -> bool:
        """Return whether the present attempt has registered."""
        return self.processes[subtask].attempt in self.enumerator.there(subtask)

    acts: ClassVar[Mapping[str, Act]] = {
        "reader.begin": Act(
            lambda world, i: world.processes[i].begin(),
            lambda world, i: world.is_(i, STARTING),
            "it has begun",
        ),
        "reader.hear": Act(
            lambda world, i: world.processes[i].hear(),
            lambda world, i: world.is_(i, UP) and world.processes[i].up,
            "it has said nothing",
        ),
        "reader.hear_again": Act(
            hear_again,
            lambda world, i: world.is_(i, UP) and world.is_there(i),
            "it has not registered",
        ),
        "reader.hear_late": Act(
            hear_late, lambda world, i: world.attempts[i] > 0, "no attempt was ready"
        ),
        "reader.ask": Act(
            lambda world, i: world.processes[i].ask(),
            lambda world, i: world.processes[i].may_ask(),
            "it has asked, or was told of the end",
        ),
        "reader.tell": Act(
            lambda world, i: world.processes[i].handle(),
            lambda world, i: world.processes[i].is_told(),
            "nothing is on its way to it",
        ),
        "reader.fail": Act(
            fail,
            lambda world, i: world.is_(i, STARTING, UP) and world.failures < world.system.F,
            "no process is there",
        ),
        "reader.reset": Act(
            reset,
            lambda world, i: world.is_(i, DOWN) and not world.is_storing(),
            "a process is there",
        ),
        "dealer.deal": Act(
            lambda world, i: world.enumerator.answer(i),
            lambda world, i: world.enumerator.is_asked(i) and world.enumerator.unassigned,
            "the reader has not asked",
        ),
        "dealer.end": Act(
            lambda world, i: world.enumerator.answer(i),
            lambda world, i: world.enumerator.is_asked(i) and not world.enumerator.unassigned,
            "the reader has not asked",
        ),
        "dealer.push": Act(push, may_push, "the reader was told of the end"),
        "dealer.plan": Act(
            plan,
            lambda world, i: world.pushes < world.system.P and i not in world.enumerator.planned,
            "it is planned",
        ),
        "job.take": Act(take, may_take, "a checkpoint is under way, or a reader is down"),
        "job.store": Act(lambda world: world.store(True), is_storing, "not all have acknowledged"),
        "job.store_unheard": Act(
            lambda world: world.store(False), is_storing, "not all have acknowledged"
        ),
        "job.abort": Act(abort, lambda world: world.pending, "no checkpoint is under way"),
        "job.look": Act(
            lambda world: world.listed(),
            lambda world: world.listed() is not None,
            "what was assigned is in readers' states alone",
        ),
        "job.reset_all": Act(
            reset_all,
            lambda world: world.resets < world.system.G and not world.is_storing(),
            "a checkpoint is being stored",
        ),
        "job.spoil": Act(
            spoil,
            lambda world: world.resets < world.system.G and not world.is_to_raise,
            "the enumerator is to raise",
        ),
        "job.recover": Act(
            recover,
            lambda world: world.has_raised and not world.is_storing(),
            "the enumerator has not raised, or a checkpoint is being stored",
        ),
    }


def flagged(flags: list[bool]) -> list[int]:
    """The numbers whose flag is set."""
    return [number for number, flag in enumerate(flags) if flag]
