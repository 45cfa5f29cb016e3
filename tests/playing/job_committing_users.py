"""The users' part of a job whose commits take several steps, as it is played: each subtask hands
over two rows more with each checkpoint, operators put their mark on each row that they pass on, and
all do as the schedule says.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import msgpack

from epochgate.runtime.api.commit_topology import CommittableBatch, CommittableOperator
from epochgate.runtime.api.committer import Committables, Committer, RetryLater
from epochgate.runtime.api.operator import OperatorContext
from epochgate.runtime.api.sink import Sink, SinkStart, SinkWriter
from epochgate.runtime.api.sink_operator import SinkOperator
from epochgate.runtime.api.task_committer import CommitRequest, TaskCommitter
from epochgate.runtime.store import CompletedCheckpoint
from epochgate.runtime.store.places import BEFORE, BEHIND, GLOBAL, TASKS, places_of
from epochgate.runtime.testing.fuzzing.actors import Poison
from epochgate.runtime.testing.fuzzing.record import Record
from epochgate.runtime.testing.playing.actors import PlayedProgram

if TYPE_CHECKING:
    from tests.playing.job_committing import SteppedJob

SINK = "sink"
PASSED = "passed"
"""Behind the step in the tasks, while other subtasks have not passed on their parts."""


class StepsRecord(Record):
    """Also of what has not come to the global committer: nothing is lost or doubled on the way, and
    each row has the marks of the operators that it has passed.
    """

    marks: dict[str, str]
    """Place -> the marks of a row there."""

    def expected(self, checkpoint: int, at: str) -> Committables:
        """The rows of a stored checkpoint as they are at a place."""
        handed = self.stored[checkpoint].committables if checkpoint in self.stored else {}
        return {s: [row + self.marks[at] for row in rows] for s, rows in handed.items()}

    def _note_ledger(self, checkpoint: CompletedCheckpoint) -> None:
        places = places_of(checkpoint)
        carried = {n: dict(flat) for n, flat in checkpoint.uncommitted.items()}
        due = {number: self.expected(number, place.at) for number, place in places.items()}
        for number, stored in self.stored.items():
            if number not in self.table and stored.committables:
                due.setdefault(number, {})
        for earlier, place in places.items():
            if place.at == TASKS:
                passed = {one.subtask: one.passed for one in place.shares if one.passed is not None}
                rests = carried[earlier]
                carried[earlier] = {
                    one.subtask: passed.get(one.subtask)
                    or sorted((*rests.get(one.subtask, ()), *one.done))
                    for one in place.shares
                }
                rows = self.expected(earlier, PASSED)
                due[earlier] |= {subtask: rows[subtask] for subtask in passed}
        if carried != due:
            account = f"checkpoint {checkpoint.checkpoint_id} carries {carried}"
            self.note("ledger", f"{account}, and not committed are {due}")

    def expect(self, checkpoint: int, at: str, rows: Committables) -> None:
        """An operator or committer gets these rows of a checkpoint, perhaps of a few subtasks."""
        due = self.expected(checkpoint, at)
        if rows != {subtask: due.get(subtask) for subtask in rows} or not rows:
            self.note("output", f"of {checkpoint} come {rows} to {at}, and due are {due}")

    def note_commit(self, checkpoint: int, committables: Committables) -> None:
        super().note_commit(checkpoint, committables)
        if committables != (due := self.expected(checkpoint, GLOBAL)):
            account = f"{committables} of checkpoint {checkpoint} is committed globally"
            self.note("output", f"{account}, and due is {due}")


def marks_of(constants: Mapping[str, int]) -> dict[str, str]:
    """The marks of rows at each place."""
    tasks = BEFORE[0] * constants["operators_before"]
    behind = tasks + TASKS[0] * constants["task_committers"]
    whole = behind + BEHIND[0].upper() * constants["operators_behind"]
    return {BEFORE: "", TASKS: tasks, PASSED: behind, BEHIND: behind, GLOBAL: whole}


class RowWriter(SinkWriter):
    """Hands over two rows of its own with each checkpoint."""

    def __init__(self, job: SteppedJob) -> None:
        self._job = job

    def write(self, batch: Any) -> None:
        """No record is written: it makes rows by itself."""

    def prepare_commit(self, checkpoint_id: int) -> list[Any]:
        self._job.rows += 2
        return [f"{self._job.rows - 1:03}", f"{self._job.rows:03}"]


class RowCommitter(TaskCommitter):
    """Commits in a task; what the schedule puts off but for the first of two rows."""

    def __init__(self, job: SteppedJob) -> None:
        self._job = job

    def commit(self, requests: Sequence[CommitRequest]) -> None:
        for number, request in enumerate(requests):
            if self._job.is_putting_off and number == len(requests) - 1:
                request.retry_later("the schedule puts it off")
            else:
                self._job.in_target.add(request.committable)


class PassingOn(CommittableOperator):
    """Passes each checkpoint on with its mark, and has in its state which these are."""

    def __init__(self, job: SteppedJob, side: str) -> None:
        self._job, self._side, self.got = job, side, set[int]()

    def open(self, state: bytes | None) -> None:
        self.got = got_in(state)

    def process(self, batch: CommittableBatch) -> Committables:
        orders = self._job.orders_between.get(self._side)
        order = orders.pop() if orders else ""
        if order:
            raise {"retry": RetryLater, "refuse": Poison}[order](f"{order} by order")
        checkpoint = batch.checkpoint_id
        if checkpoint in self.got:
            self._job.record.note("once", f"checkpoint {checkpoint} comes twice to {self._side}")
        self.got.add(checkpoint)
        self._job.record.expect(checkpoint, self._side, batch.committables)
        return {s: [row + self._mark for row in rows] for s, rows in batch.committables.items()}

    @property
    def _mark(self) -> str:
        return self._side[0].upper() if self._side == BEHIND else self._side[0]

    def snapshot(self) -> bytes:
        return bytes(msgpack.packb(sorted(self.got)))


class OnDriver(PassingOn):
    parallelism = 1


class InTask(PassingOn):
    """The one behind the committer of a task."""

    def __init__(self, job: SteppedJob, subtask: int) -> None:
        super().__init__(job, TASKS)
        self._subtask = subtask

    def open(self, state: bytes | None) -> None:
        super().open(state)
        self._job.in_task[self._subtask] = self


def got_in(state: bytes | None) -> set[int]:
    """The checkpoints that an operator has passed on, by its state."""
    return set(msgpack.unpackb(state)) if state else set()


class StepsSink(Sink):
    """A sink with the steps of its job, for one subtask."""

    def __init__(self, job: SteppedJob, subtask: int = 0) -> None:
        self._job, self._subtask = job, subtask

    def create_writer(self, context: OperatorContext, state: bytes | None) -> SinkWriter:
        return RowWriter(self._job)

    def create_committer(self, start: SinkStart) -> Committer:
        raise AssertionError("the job makes its committer itself")

    def pre_commit_topology(self) -> Sequence[CommittableOperator]:
        return [OnDriver(self._job, BEFORE)] * self._job.constants["operators_before"]

    def post_commit_topology(self) -> Sequence[CommittableOperator]:
        return [
            *[InTask(self._job, self._subtask)] * self._job.constants["task_committers"],
            *[OnDriver(self._job, BEHIND)] * self._job.constants["operators_behind"],
        ]


class CommittingSink(StepsSink):
    def create_task_committer(self, context: OperatorContext) -> TaskCommitter:
        return RowCommitter(self._job)


def sink_of(job: SteppedJob, subtask: int = 0) -> Sink:
    """The sink of a job, with a committer in the tasks or without."""
    kind = CommittingSink if job.constants["task_committers"] else StepsSink
    return kind(job, subtask)


class StepsProgram(PlayedProgram):
    """The program of a subtask that writes to the sink."""

    def __init__(self, job: SteppedJob, subtask: int) -> None:
        super().__init__(job.record, 0)
        self._sink = SinkOperator(sink_of(job, subtask))

    @property
    def operators(self) -> Mapping[str, Any]:  # type: ignore[override]  # one is no scripted one
        return {**super().operators, SINK: self._sink}
