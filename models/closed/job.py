"""The whole job with nothing outside: the very machines that run, among surroundings that may fail.

Every interleaving of sends, snapshots, barriers, confirmations, acknowledgements, timeouts,
failures of processes, coordinators and the store, evictions and restarts is explored, within
bounds: `subtasks`, `coordinators`, `wanted` checkpoints, `events` for each coordinator and subtask,
`F` failures, and with `repeats` acknowledgements that arrive twice.
"""

from __future__ import annotations

from typing import ClassVar

from epochgate.fsm import machines
from epochgate.fsm.closed import ClosedSystem, Step, always, sometimes
from epochgate.models.checkpoint import PENDING, STORING, TRIGGERING
from epochgate.models.closed import untaken
from epochgate.models.closed.surroundings.driver import (
    BackOff,
    Budget,
    Launch,
    Requester,
    Restarter,
    Sink,
)
from epochgate.models.closed.surroundings.names import Names
from epochgate.models.closed.surroundings.operators import Operators
from epochgate.models.closed.surroundings.process import HERE, Process, ProcessTask
from epochgate.models.closed.surroundings.stale import Stale
from epochgate.models.closed.surroundings.store import Store
from epochgate.models.closed.surroundings.user import Keeper, Sender, User
from epochgate.models.closed.surroundings.wire import Notices, Wire
from epochgate.models.holder import BROKEN
from epochgate.models.job import Job
from epochgate.models.lifecycle import (
    CANCELED,
    CANCELING as CANCELING_JOB,
    FAILED,
    FAILING,
    FINISHED,
)


class ClosedJob(Job, ClosedSystem):
    """The job: sends, checkpoints, commits, failures and late messages, in every order."""

    CONSTANTS: ClassVar[dict[str, int]] = {
        "subtasks": 2,
        "coordinators": 1,
        "tolerable_failures": 1,
        "commit_retries": 0,
        "periodic": 0,
        "after_commit": 0,
        "wanted": 2,
        "events": 1,
        "F": 1,
        "repeats": 1,
        "timeouts_cost": 0,
        "renumbered": 0,
        "said": 0,
        "slow_starts": 0,
        "broken_restores": 0,
    }
    DERIVED: ClassVar[dict[str, str]] = {
        "checkpoints": "wanted",
        "attempts": "max(F + 1, (F + checkpoints + broken_restores) * (1 - renumbered))",
        "identities": "max(F + 2, (F + F + 1 + checkpoints + broken_restores) * (1 - renumbered))",
        "restarts": "max(1, (F + checkpoints + broken_restores) * (1 - renumbered))",
        "failures": "checkpoints",
        "speeches": "max(1, said)",
        "numbers": "events + said",
        "event": "events + said",
        "questions": "1",
        "in_flight": "subtasks * numbers",
        "posted": "events * 2 + said",
        "down": "checkpoints + coordinators * numbers * event",
        "down_length": "coordinators * numbers + max(checkpoints, 1)",
        "up": "6 + 3 * checkpoints + coordinators * said",
        "up_length": "max(3, checkpoints + 1) + coordinators * said + min(1, said)",
    }
    STEPS: ClassVar[tuple[Step, ...]] = (
        Step("launch", "launch"),
        Step("sender", "send"),
        Step("process", "tell"),
        Step("process", "hear"),
        Step("process", "hear_again", is_fair=False, is_stuttering=True),
        Step("process", "hear_zombie", is_fair=False, is_stuttering=True),
        Step("stale", "arrive", is_fair=False, is_stuttering=True),
        Step("requester", "want"),
        Step("user", "take_snapshot"),
        Step("store", "finish_save"),
        Step("process", "arrive"),
        Step("process", "come_back", is_fair=False),
        Step("backoff", "elapse"),
        Step("restarter", "back_off"),
        Step("process", "die", is_fair=False),
        Step("process", "die_silently", is_fair=False),
        Step("process", "usurp", is_fair=False),
        Step("user", "fail_snapshot", is_fair=False),
        Step("user", "fail_everything", is_fair=False),
        Step("store", "fail_save", is_fair=False),
        Step("store", "expire", is_fair=False),
    )
    UNTAKEN: ClassVar[dict[str, str]] = {
        **untaken.LEFT_TO_TALKING,
        **untaken.LEFT_TO_ENDINGS,
        **untaken.EXCUSED,
    }
    UNREAD: ClassVar[dict[str, str]] = {
        "sender.undecided": "the claims of `EndingJob` and `LiveJob` are about it",
        "user.is_closed": "a claim of `EndingJob` is about it",
        "requester.is_late": "a claim of `AskedJob` is about it",
    }
    WIRING: ClassVar[dict[str, str]] = {
        "attempt.task": "wire",
        "attempt.scheduler": "process",
        "task.operators": "operators",
        "gateway.sender": "sender",
        "holder.user": "user",
        "snapshot.results": "keeper",
        "checkpoint.driver": "store",
        "checkpoint.tasks": "notices",
        "gateway.wire": "sender",
        "snapshot.user": "user",
        "request.requester": "requester",
        "committer.sink": "sink",
        "post_commit.worker": "sink",
        "lifecycle.driver": "restarter",
    }

    checkpoints: int
    events: int
    identities: int
    F: int
    repeats: int
    timeouts_cost: int
    renumbered: int
    said: int
    slow_starts: int
    broken_restores: int
    up: int
    speeches: int
    numbers: int
    event: int
    wanted: int

    task: list[ProcessTask] = machines(ProcessTask)
    process: list[Process] = machines(Process)
    wire: list[Wire] = machines(Wire)
    notices: Notices = machines(Notices)
    operators: list[Operators] = machines(Operators)
    sender: dict[tuple[int, int], Sender] = machines(Sender)
    user: list[User] = machines(User)
    keeper: list[Keeper] = machines(Keeper)
    store: Store = machines(Store)
    requester: Requester = machines(Requester)
    sink: Sink = machines(Sink)
    restarter: Restarter = machines(Restarter)
    backoff: list[BackOff] = machines(BackOff)
    budget: Budget = machines(Budget)
    names: Names = machines(Names)
    stale: Stale = machines(Stale)
    launch: Launch = machines(Launch)

    @always("what is committed belongs to a completed checkpoint")
    def commits_completed_only(self) -> bool:
        return self.committer.asked <= self.checkpoint.completed

    @always("a job that has ended has no process left")
    def leaves_nothing_behind(self) -> bool:
        return self.lifecycle.state != FINISHED or not any(
            self.attempt[s].has_process() for s in range(self.subtasks)
        )

    @always("a task or coordinator with a part in a checkpoint is told its outcome")
    def tells_ends(self) -> bool:
        return not self.checkpoint.is_over() or (
            all(
                not self.user[c].is_owed_an_end or self.holder[c].state == BROKEN
                for c in range(self.coordinators)
            )
            and all(
                not self.process[s].is_owed_an_end
                or not self.attempt[s].is_running()
                or self.attempt[s].identity != self.process[s].identity
                for s in range(self.subtasks)
            )
        )

    @always("a coordinator knows at once what happens to its send: on the wire, held, turned away")
    def tells_senders(self) -> bool:
        return all(
            not self.sender[c, s].is_sending
            for c in range(self.coordinators)
            for s in range(self.subtasks)
        )

    @always("figures of the process that speaks are passed on")
    def passes_figures_on(self) -> bool:
        return all(not self.process[s].is_measured for s in range(self.subtasks))

    @always("a process that does not speak for its subtask is sent away")
    def sends_away(self) -> bool:
        return all(not self.process[s].is_unwanted for s in range(self.subtasks))

    @always("a checkpoint that has failed is over, and counted")
    def counts_failures(self) -> bool:
        return not self.store.is_failure_due

    @always("a coordinator that fails the job is obeyed, and its failure remembered")
    def obeys_coordinators(self) -> bool:
        return not self.lifecycle.may_restart_one() or all(
            not self.user[c].is_failing for c in range(self.coordinators)
        )

    @always("a job whose last checkpoint is in doubt goes down")
    def ends_in_doubt(self) -> bool:
        return not self.checkpoint.is_in_doubt() or not self.lifecycle.may_restart_one()

    @always(
        "the store knows which checkpoint is under way, and holds each part that was acknowledged"
    )
    def keeps_parts(self) -> bool:
        is_under_way = (
            self.checkpoint.state == TRIGGERING
            or self.checkpoint.state == PENDING
            or self.checkpoint.state == STORING
        )
        return self.store.begun == (self.checkpoint.number if is_under_way else 0) and all(
            self.store.has_part[s] == self.checkpoint.has_acknowledged[s]
            for s in range(self.subtasks)
        )

    @always("the driver is told that the job has ended, and before that why")
    def tells_the_end(self) -> bool:
        return self.restarter.knows_end == (
            self.lifecycle.state == FINISHED
            or self.lifecycle.state == FAILED
            or self.lifecycle.state == CANCELED
        ) and self.restarter.knows_cause == (
            self.lifecycle.state == FAILING or self.lifecycle.state == CANCELING_JOB
        )

    @always("how the job ends is decided before its coordinators are closed")
    def decides_the_end(self) -> bool:
        return self.restarter.is_decided == self.restarter.knows_end

    @always("a process that waits for its attempt is there, or its end is on its way")
    def knows_who_waits(self) -> bool:
        return all(
            self.attempt[s].waiting == 0
            or self.process[s].state == HERE
            or not self.process[s].up.empty()
            for s in range(self.subtasks)
        )

    @always("attempts that run are counted, and while all go down those that have a process")
    def counts_attempts(self) -> bool:
        leaving = 0
        running = 0
        for s in range(self.subtasks):
            if self.attempt[s].has_process() and not self.lifecycle.may_restart_one():
                leaving += 1
            if self.attempt[s].is_running():
                running += 1
        return self.lifecycle.leaving == leaving and self.lifecycle.running == running

    @sometimes("a checkpoint completes after a subtask has failed and come back")
    def completes_after_regional_failover(self) -> bool:
        return self.checkpoint.completed > 0 and any(
            self.attempt[s].number > 0 for s in range(self.subtasks)
        )

    @sometimes("a checkpoint completes after everything was restarted")
    def completes_after_global_failover(self) -> bool:
        return self.checkpoint.completed > 0 and (
            self.lifecycle.restarts > 0 or self.restarter.restarts > 0
        )

    @sometimes("an event is held by a closed gateway")
    def holds_an_event(self) -> bool:
        return any(
            self.gateway[c, s].held.size() > 0
            for c in range(self.coordinators)
            for s in range(self.subtasks)
        )
