"""The job with concurrent attempts with nothing outside: processes come unasked, die, and say what
they have to say as late as they like.

Explored within bounds: `vertices` subtasks with `concurrent` attempts at once, `starts` processes
for each, `events` that each coordinator sends, `F` failures, with `said` an event of each process,
and with `overtaking` processes that connect in any order. The job begins, runs until
an attempt of each subtask has reached the end, and takes the one checkpoint that ends it.
"""

from __future__ import annotations

from typing import ClassVar

from epochgate.fsm import machines
from epochgate.fsm.closed import ClosedSystem, Step, always, sometimes, terminal
from epochgate.models.attempt import CANCELED, CANCELING, CREATED, FAILED, FINISHED, SCHEDULED
from epochgate.models.checkpoint import TRIGGERING
from epochgate.models.closed.surroundings.driver import Budget, Launch, Sink
from epochgate.models.closed.surroundings.listeners import (
    Coordinator,
    Delay,
    Delays,
    Record,
    Sends,
    Shore,
)
from epochgate.models.closed.surroundings.starter import AWAY, Notices, Starter, Wires
from epochgate.models.closed.surroundings.user import Keeper
from epochgate.models.concurrent_job import ConcurrentJob
from epochgate.models.job import Job
from epochgate.models.lifecycle import FINISHED as JOB_FINISHED


class ConcurrentAttempts(ConcurrentJob, ClosedSystem):
    """The job with concurrent attempts of a subtask: the first that ends gives the result."""

    INDEX_SETS: ClassVar[dict[str, str]] = {**ConcurrentJob.INDEX_SETS, "process": "processes"}
    CONSTANTS: ClassVar[dict[str, int]] = {
        "vertices": 1,
        "concurrent": 2,
        "starts": 3,
        "coordinators": 1,
        "events": 1,
        "F": 1,
        "tolerable_failures": 1,
        "commit_retries": 0,
        "periodic": 0,
        "after_commit": 0,
        "overtaking": 0,
        "said": 1,
        "phases": 4,
    }
    DERIVED: ClassVar[dict[str, str]] = {
        "subtasks": "vertices * concurrent",
        "processes": "vertices * starts",
        "identities": "vertices * starts",
        "attempts": "starts + F + 2",
        "restarts": "F + 1",
        "checkpoints": "F + 1",
        "failures": "F + 1",
        "numbers": "events + 0",
        "event": "starts + F + 2",
        "questions": "1",
        "in_flight": "subtasks * events",
    }
    STEPS: ClassVar[tuple[Step, ...]] = (
        Step("launch", "launch"),
        Step("starter", "arrive"),
        Step("starter", "initialize"),
        Step("starter", "run"),
        Step("starter", "speak"),
        Step("starter", "confirm"),
        Step("starter", "end"),
        Step("starter", "acknowledge"),
        Step("starter", "finish"),
        Step("starter", "vanish"),
        Step("sends", "send"),
        Step("sends", "send_late"),
        Step("user", "take_snapshot"),
        Step("shore", "finish_save"),
        Step("delay", "elapse"),
        Step("delays", "back_off"),
        Step("starter", "die", is_fair=False),
        Step("user", "fail_everything", is_fair=False),
    )
    WIRING: ClassVar[dict[str, str]] = {
        "attempt.task": "wires",
        "attempt.scheduler": "wires",
        "vertex.record": "record",
        "gateway.sender": "sends",
        "holder.user": "user",
        "snapshot.results": "keeper",
        "checkpoint.driver": "shore",
        "checkpoint.tasks": "notices",
        "gateway.wire": "sends",
        "snapshot.user": "user",
        "request.requester": "shore",
        "committer.sink": "sink",
        "post_commit.worker": "sink",
        "lifecycle.driver": "delays",
    }

    UNREAD: ClassVar[dict[str, str]] = {"keeper.has_state": "the store of `ClosedJob` reads it"}
    UNTAKEN: ClassVar[dict[str, str]] = {
        f"{name}.{row.trigger}": "the machines of `Job` are explored by the systems made of it"
        for name, machine in Job.MACHINES.items()
        for row in machine.ROWS
    }
    UNTAKEN["vertex.abandon: no attempt is there"] = "that takes two failures"
    UNTAKEN["vertex.begin_at: the process was turned away"] = "that takes overtaking processes"

    starts: int
    processes: int
    events: int
    F: int
    overtaking: int
    said: int

    starter: list[Starter] = machines(Starter)
    wires: list[Wires] = machines(Wires)
    notices: Notices = machines(Notices)
    user: list[Coordinator] = machines(Coordinator)
    keeper: list[Keeper] = machines(Keeper)
    sends: dict[tuple[int, int], Sends] = machines(Sends)
    shore: Shore = machines(Shore)
    record: list[Record] = machines(Record)
    sink: Sink = machines(Sink)
    delays: Delays = machines(Delays)
    delay: list[Delay] = machines(Delay)
    budget: Budget = machines(Budget)
    launch: Launch = machines(Launch)

    def is_gone(self, place: int) -> bool:
        return (
            self.attempt[place].state == CREATED
            or self.attempt[place].state == FINISHED
            or self.attempt[place].state == CANCELING
            or self.attempt[place].state == CANCELED
            or self.attempt[place].state == FAILED
        )

    def lives(self, vertex: int) -> bool:
        return any(not self.is_gone(vertex * self.concurrent + i) for i in range(self.concurrent))

    @always("an attempt that has reached the end is the only one of its subtask")
    def has_one_finisher(self) -> bool:
        return all(
            not self.attempt[s].has_ended
            or s == other
            or s // self.concurrent != other // self.concurrent
            or self.is_gone(other)
            for s in range(self.subtasks)
            for other in range(self.subtasks)
        )

    @always("no send waits for an attempt that is gone, but while the coordinators are asked")
    def fails_sends_to_the_gone(self) -> bool:
        return self.checkpoint.state == TRIGGERING or all(
            not self.is_gone(s)
            or (self.gateway[c, s].in_flight() == 0 and self.gateway[c, s].held.empty())
            for c in range(self.coordinators)
            for s in range(self.subtasks)
        )

    @always("the record is told of an attempt that another one outlives")
    def tells_outlived(self) -> bool:
        return all(not self.record[v].is_due for v in range(self.vertices))

    @always("no process waits for an attempt while an attempt waits for a process")
    def uses_who_waits(self) -> bool:
        return all(
            self.attempt[s].state != SCHEDULED
            or s // self.concurrent != other // self.concurrent
            or self.attempt[other].waiting == 0
            for s in range(self.subtasks)
            for other in range(self.subtasks)
        )

    @sometimes("two attempts of a subtask run at once")
    def runs_two(self) -> bool:
        return any(
            self.attempt[s].is_running() and self.attempt[s + 1].is_running()
            for s in range(self.subtasks - 1)
            if s // self.concurrent == (s + 1) // self.concurrent
        )

    @sometimes("a subtask starts again after its attempts are gone")
    def starts_again(self) -> bool:
        return any(self.vertex[v].attempts > self.concurrent for v in range(self.vertices))

    @sometimes("the job finishes after an attempt was overtaken")
    def finishes(self) -> bool:
        return self.lifecycle.state == JOB_FINISHED and self.vertex[0].attempts > 1

    @terminal("the job is over, or no process is left to come")
    def is_at_rest(self) -> bool:
        return self.lifecycle.state == JOB_FINISHED or all(
            self.starter[p].state != AWAY for p in range(self.processes)
        )
