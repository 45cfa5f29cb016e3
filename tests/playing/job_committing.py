"""The production job beside the closed system of commits in several steps: what waits on each side
of the tasks and in them, and drivers that die and are started again.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from epochgate.fsm import Timer
from epochgate.models.committing_job import CommittingJob
from epochgate.models.subtask_committer import COMMITTING
from epochgate.runtime.api.commit_topology import CommitTopology
from epochgate.runtime.api.configuration import JobConfiguration
from epochgate.runtime.shell.blocking_work import Outcome, Wait
from epochgate.runtime.shell.stages import Stage
from epochgate.runtime.shell.task_commits import TaskCommits
from epochgate.runtime.store import CompletedCheckpoint
from epochgate.runtime.testing.fuzzing.record import Record
from epochgate.runtime.testing.playing import ScriptedJob
from epochgate.runtime.testing.playing.late import Late
from tests.playing.job_committing_users import (
    InTask,
    StepsProgram,
    StepsRecord,
    marks_of,
    sink_of,
)
from tests.playing.job_paused import inside

COMMIT, BEFORE, BEHIND = "commit", "before", "behind"
"""What runs in the lane of commits: the global commit, and the operators on either side."""
Waiting = tuple[str, Callable[[], Any], Any]


class SteppedJob(ScriptedJob):
    """One production job with the constants of `CommittingInSteps`, and its drivers' deaths."""

    rows = 0
    """How many rows the subtasks have handed over."""
    is_putting_off = False
    """The commit that arrives in a task is not possible now."""

    def __init__(self, *arguments: Any) -> None:
        self.in_target = set[str]()
        """The rows that have taken effect in the target of the tasks."""
        self.in_task: dict[int, InTask] = {}
        """The operator behind the committer in each task."""
        self.orders_between: dict[str, list[str]] = {BEFORE: [], BEHIND: []}
        self._passed: list[Wait] = []
        """The limits that have passed."""
        super().__init__(*arguments)

    def _configuration(self, start: int) -> JobConfiguration:
        topology = CommitTopology.of(sink_of(self))
        return replace(super()._configuration(start), topology=topology)

    record: StepsRecord

    def _record(self) -> Record:
        record = StepsRecord(self.coordinators, self.subtasks, self._read_store)
        record.marks = marks_of(self.constants)
        return record

    def _program(self, subtask: int) -> StepsProgram:
        return StepsProgram(self, subtask)

    # what there is

    @property
    def steps(self) -> CommittingJob:
        """The machines."""
        assert isinstance(self.job, CommittingJob)
        return self.job

    @property
    def stages(self) -> dict[str, Stage]:
        """The shells of the operators on the driver."""
        before, behind = self.master.committing._stages  # type: ignore[attr-defined]  # it has steps
        return {BEFORE: before, BEHIND: behind}

    @property
    def tasks(self) -> TaskCommits:
        """The shell of the tasks' commits."""
        tasks: TaskCommits = self.stages[BEFORE]._tasks
        return tasks

    @property
    def is_launched(self) -> bool:
        """True if a driver has begun."""
        return not self.beginning

    def latest(self) -> CompletedCheckpoint | None:
        """The newest stored checkpoint."""
        self._read_store()
        newest = max(self.record.stored, default=None)
        return None if newest is None else self.record.stored[newest]

    def pauses(self, subtask: int) -> list[Timer]:
        """The timer of the pause before the subtask's next commit."""
        return self.timers(self.steps.subtask_committer[subtask], "pause_over")

    def limit(self, subtask: int) -> Wait | None:
        """The limit of the commit that the task was asked for last, until it has passed."""
        wait = self.tasks._waits.get(subtask)
        return None if wait is None or wait._is_over or wait in self._passed else wait

    def expire(self, subtask: int) -> None:
        """That limit passes."""
        wait = self.limit(subtask)
        assert wait is not None, "a commit is under way"
        self._passed.append(wait)
        self.master.queue.post(wait.expire)

    def owners(self) -> dict[str, object]:
        return {**super().owners(), **self.stages}

    def is_under_way(self, lane: str) -> bool:
        if lane not in (COMMIT, BEFORE, BEHIND):
            return super().is_under_way(lane)
        return self._position(lane) is not None or bool(self._put_off(lane))

    def asked(self, lane: str) -> tuple[int, int, list[int]]:
        """Checkpoint and tries of what is under way, and what a commit covers; 0 for none."""
        timers, at = self._put_off(lane), self._position(lane)
        of: Any = ()
        if timers:
            of = timers[0].arguments
        elif at is not None:
            of = inside(self.simulated.blocking.waiting[at][2])["of"]
        if not of:
            return 0, 0, []
        if lane != COMMIT:
            return *of, []
        checkpoint, tries, batch = of if timers else (of[0].checkpoint, of[0].tries, of[0].batch)
        return checkpoint, tries, [number for number, _ in batch]

    def _position(self, lane: str) -> int | None:
        """Return where the work waits of which one of the three hears the end."""
        owner = self.owners()[lane]
        for at, (waiting, _, then) in enumerate(self.simulated.blocking.waiting):
            if waiting == COMMIT and inside(then)["done"].__self__ is owner:
                return at
        return None

    def _taken(self, lane: str) -> Waiting:
        self._take_up(lane)
        waiting = self.simulated.blocking.waiting
        at = self._position(lane)
        assert at is not None, f"nothing of {lane} is under way"
        found = waiting[at]
        del waiting[at]
        return found

    # what happens

    def run(self, lane: str) -> None:
        if lane not in (COMMIT, BEFORE, BEHIND):
            super().run(lane)
            return
        _, work, then = self._taken(lane)
        outcome = Outcome(work)
        self.master.queue.post(then, outcome.result, outcome.error)

    def hang(self, lane: str) -> None:
        _, _, then = self._taken(lane)
        self.master.queue.post(inside(then)["wait"].expire)

    def store_unheard(self) -> None:
        """The save ends, and the driver does not hear of it."""
        waiting = self.simulated.blocking.waiting
        save = next(work for lane, work, _ in waiting if lane == "store")
        assert Outcome(save).error is None

    def crash(self) -> None:
        """The driver is gone with its processes; the next one has not begun."""
        self._read_store()
        self.in_task.clear()
        self.simulated.crash_driver()
        self.beginning = self.master.queue.abandon()
        self.identities = [[] for _ in range(self.subtasks)]
        self._asked_for = [0] * self.subtasks
        self._acknowledged.clear()
        self.hanging.clear()
        self.is_person_done = False
        self.late = Late(self)

    def look(self) -> None:
        super().look()
        for subtask, machine in enumerate(self.steps.subtask_committer):
            for timer in self.pauses(subtask) if machine.state == COMMITTING else ():
                timer.cancel()  # what ends a pause once more is played by `late`
