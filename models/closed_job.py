"""The whole job with nothing outside: the very machines that run, among surroundings that may fail.

Every interleaving of sends, snapshots, barriers, confirmations, acknowledgements, timeouts,
failures of processes, coordinators and the store, evictions and restarts is explored, within
bounds: `subtasks`, `coordinators`, `wanted` checkpoints, `events` for each coordinator and subtask,
`F` failures, and with `repeats` acknowledgements that arrive twice.
"""

from __future__ import annotations

from typing import ClassVar

from epochgate.fsm import machines
from epochgate.fsm.closed import ClosedSystem, Step, always, leads_to, sometimes
from epochgate.models import untaken
from epochgate.models.attempt import CANCELING
from epochgate.models.checkpoint import COMPLETED
from epochgate.models.committer import GIVEN_UP
from epochgate.models.gateway import CLOSED
from epochgate.models.holder import BROKEN, STARTED, STARTING
from epochgate.models.job import Job
from epochgate.models.lifecycle import CANCELED, FAILED, FINISHED
from epochgate.models.request import IDLE
from epochgate.models.surroundings.driver import (
    DONE,
    BackOff,
    Budget,
    Launch,
    Person,
    Requester,
    Restarter,
    Resumption,
    Sink,
    SlowSink,
    Store,
)
from epochgate.models.surroundings.names import Names
from epochgate.models.surroundings.operators import Operators
from epochgate.models.surroundings.process import HERE, Process, ProcessTask, Wire
from epochgate.models.surroundings.stale import Stale
from epochgate.models.surroundings.user import Keeper, Sender, User


class ClosedJob(Job, ClosedSystem):
    """The job and its surroundings."""

    CONSTANTS: ClassVar[dict[str, int]] = {
        "subtasks": 2,
        "coordinators": 1,
        "overlap": 1,
        "tolerable_failures": 1,
        "commit_retries": 0,
        "wanted": 2,
        "events": 1,
        "F": 1,
        "repeats": 1,
        "timeouts_cost": 0,
        "renumbered": 0,
        "said": 0,
        "slow_starts": 0,
    }
    DERIVED: ClassVar[dict[str, str]] = {
        "checkpoints": "wanted",
        "attempts": "max(F + 1, (F + checkpoints) * (1 - renumbered))",
        "identities": "max(F + 2, (F + F + 1 + checkpoints) * (1 - renumbered))",
        "restarts": "max(1, (F + checkpoints) * (1 - renumbered))",
        "failures": "checkpoints",
        "speeches": "max(1, said)",
        "numbers": "events + said",
        "event": "events + said",
        "in_flight": "subtasks * numbers",
        "posted": "events * 2 + said",
        "down": "checkpoints + coordinators * numbers * event",
        "down_length": "coordinators * numbers + max(checkpoints, 1)",
        "up": "5 + 3 * checkpoints + coordinators * said",
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
    WIRING: ClassVar[dict[str, str]] = {
        "attempt.task": "wire",
        "attempt.scheduler": "process",
        "task.operators": "operators",
        "gateway.sender": "sender",
        "holder.user": "user",
        "snapshot.results": "keeper",
        "checkpoint.driver": "store",
        "request.requester": "requester",
        "committer.sink": "sink",
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
    up: int
    speeches: int
    numbers: int
    event: int
    wanted: int

    task: list[ProcessTask] = machines(ProcessTask)
    process: list[Process] = machines(Process)
    wire: list[Wire] = machines(Wire)
    operators: list[Operators] = machines(Operators)
    sender: dict[tuple[int, int], Sender] = machines(Sender)
    user: list[User] = machines(User)
    keeper: dict[tuple[int, int], Keeper] = machines(Keeper)
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
        return self.committer.wanted <= self.checkpoint.completed

    @always("a job that has ended has no process left")
    def leaves_nothing_behind(self) -> bool:
        return self.lifecycle.state != FINISHED or self.lifecycle.connected == 0

    @always("whoever has taken a part of a checkpoint is told what became of it")
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

    @always("a process that waits for its attempt is there, or its end is on its way")
    def knows_who_waits(self) -> bool:
        return all(
            self.attempt[s].waiting == 0
            or self.process[s].state == HERE
            or not self.process[s].up.empty()
            for s in range(self.subtasks)
        )

    @always("attempts that have a process, and those that run, are counted")
    def counts_attempts(self) -> bool:
        connected = 0
        running = 0
        for s in range(self.subtasks):
            if self.attempt[s].is_connected() or self.attempt[s].state == CANCELING:
                connected += 1
            if self.attempt[s].is_running():
                running += 1
        return self.lifecycle.connected == connected and self.lifecycle.running == running

    @sometimes("a checkpoint completes after a subtask has failed and come back")
    def completes_after_regional_failover(self) -> bool:
        return self.checkpoint.completed > 0 and any(
            self.attempt[s].number > 0 for s in range(self.subtasks)
        )

    @sometimes("a checkpoint completes after everything was restarted")
    def completes_after_global_failover(self) -> bool:
        return self.checkpoint.completed > 0 and self.lifecycle.restarts > 0

    @sometimes("an event is held by a closed gateway")
    def holds_an_event(self) -> bool:
        return any(
            self.gateway[c, s].held[0].size() > 0
            for c in range(self.coordinators)
            for s in range(self.subtasks)
        )


class EndingJob(ClosedJob):
    """The closed job with its endings: the end of input, a stop, a cancellation, a fault.

    Ending takes checkpoints until one completes, so a timeout counts as a failure here, and each
    failure allows for one checkpoint more.
    """

    CONSTANTS: ClassVar[dict[str, int]] = {
        **ClosedJob.CONSTANTS,
        "subtasks": 1,
        "wanted": 1,
        "timeouts_cost": 1,
        "slow_commits": 1,
    }
    DERIVED: ClassVar[dict[str, str]] = {
        **ClosedJob.DERIVED,
        "checkpoints": "wanted + F + 2",
    }
    UNTAKEN: ClassVar[dict[str, str]] = {
        **untaken.LEFT_TO_TALKING,
        **untaken.EXCUSED,
        "lifecycle.checkpoint_over: the job ended with it": "commits take their time",
    }
    slow_commits: int

    person: Person = machines(Person)
    sink: SlowSink = machines(SlowSink)  # type: ignore[assignment]  # it takes the other's place

    STEPS = (
        *ClosedJob.STEPS,
        Step("sink", "finish"),
        Step("sink", "put_off", is_fair=False),
        Step("sink", "refuse", is_fair=False),
        Step("process", "end_input", is_fair=False),
        Step("person", "stop", is_fair=False),
        Step("person", "cancel", is_fair=False),
        Step("person", "give_up", is_fair=False),
    )

    @sometimes("the job finishes")
    def finishes(self) -> bool:
        return self.lifecycle.state == FINISHED

    @always("an ended job has closed its coordinators")
    def closes_coordinators(self) -> bool:
        return not self.has_ended() or all(self.user[c].is_closed for c in range(self.coordinators))

    @always("an ended job has told what became of every send")
    def decides_sends(self) -> bool:
        return not self.has_ended() or all(
            self.sender[c, s].undecided == 0
            for c in range(self.coordinators)
            for s in range(self.subtasks)
        )

    def has_ended(self) -> bool:
        return (
            self.lifecycle.state == FINISHED
            or self.lifecycle.state == FAILED
            or self.lifecycle.state == CANCELED
        )

    @always("what a finished job has completed is visible")
    def has_committed(self) -> bool:
        return self.lifecycle.state != FINISHED or self.sink.visible == self.checkpoint.completed

    @leads_to("a commit that is given up ends the job", then="has_ended")
    def has_given_up(self) -> bool:
        return self.committer.state == GIVEN_UP

    @leads_to("whoever ends the job sees it end", then="has_ended")
    def is_ended_by_somebody(self) -> bool:
        return self.person.state == DONE

    @leads_to("at the end of all input the job ends, or a failure makes it read again", then="goes")
    def has_no_input(self) -> bool:
        return not self.goes()

    def goes(self) -> bool:
        return self.has_ended() or self.lifecycle.ended < self.subtasks


class TalkingJob(ClosedJob):
    """The closed job in which operators speak to their coordinators and get receipts, subtasks
    decline checkpoints, processes report failures, coordinators take their time to start or fail
    to, and somebody asks for checkpoints besides the periodic ones.
    """

    CONSTANTS: ClassVar[dict[str, int]] = {
        **ClosedJob.CONSTANTS,
        "subtasks": 1,
        "said": 1,
        "slow_starts": 1,
    }
    UNTAKEN: ClassVar[dict[str, str]] = {
        **untaken.LEFT_TO_ENDINGS,
        **untaken.EXCUSED,
    }
    STEPS = (
        *ClosedJob.STEPS,
        Step("process", "speak"),
        Step("process", "decline", is_fair=False),
        Step("process", "fail", is_fair=False),
        Step("process", "fail_to_restore", is_fair=False),
        Step("process", "lose_event", is_fair=False),
        Step("process", "expire_start", is_fair=False),
        Step("user", "get_ready"),
        Step("user", "fail_to_start", is_fair=False),
        Step("requester", "ask", is_fair=False),
    )

    @sometimes("a receipt is held by a closed gateway")
    def holds_a_receipt(self) -> bool:
        return any(
            self.gateway[c, s].held[0].size() > 0
            and self.gateway[c, s].held[0].head() > self.events
            for c in range(self.coordinators)
            for s in range(self.subtasks)
        )

    @sometimes("a checkpoint completes that holds a receipt")
    def completes_with_a_receipt(self) -> bool:
        return any(
            self.process[s].completed_receipts[c] > 0
            for c in range(self.coordinators)
            for s in range(self.subtasks)
        )

    @always("a coordinator that is taken for starting was told to start")
    def starts_coordinators(self) -> bool:
        return all(
            self.holder[c].state != STARTING or self.user[c].starting > 0
            for c in range(self.coordinators)
        )

    def is_running(self) -> bool:
        return self.lifecycle.running == self.subtasks

    def is_served(self) -> bool:
        return self.request.state == IDLE

    @leads_to("whatever fails, all subtasks run again", then="is_running")
    def is_not_running(self) -> bool:
        return not self.is_running()

    @leads_to("whoever waits for a checkpoint learns what became of it", then="is_served")
    def is_requested(self) -> bool:
        return not self.is_served()

    def is_answered(self) -> bool:
        return not self.requester.is_waiting

    @leads_to("whoever asks for a checkpoint gets one that begins after that", then="is_answered")
    def is_asked_for_another(self) -> bool:
        return self.requester.is_waiting

    def has_built_coordinators(self) -> bool:
        return all(self.holder[c].state != BROKEN for c in range(self.coordinators))

    @leads_to("a coordinator that could not start is built anew", then="has_built_coordinators")
    def has_broken_coordinator(self) -> bool:
        return not self.has_built_coordinators()

    @sometimes("a coordinator that could not start runs after all")
    def starts_after_all(self) -> bool:
        return self.lifecycle.restarts > 0 and self.holder[0].state == STARTED


class ResumingJob(ClosedJob):
    """The closed job of a driver that may find a completed checkpoint of an earlier run."""

    CONSTANTS: ClassVar[dict[str, int]] = {**ClosedJob.CONSTANTS, "subtasks": 1}
    STEPS = (*ClosedJob.STEPS, Step("launch", "resume", is_fair=False))

    launch: Resumption = machines(Resumption)

    @sometimes("a job that was resumed completes a checkpoint")
    def goes_on(self) -> bool:
        return self.checkpoint.completed > 1

    @always("the checkpoint that was completed last is the one to go back to")
    def goes_back_to_the_last(self) -> bool:
        return (
            self.checkpoint.state != COMPLETED
            or self.checkpoint.completed == self.checkpoint.number
        )


class LiveJob(ClosedJob):
    """The closed job for ever: numbers that are used up are counted anew, failures are few.

    A timeout counts as a failure: whoever sets it too short waits for ever.
    """

    CONSTANTS: ClassVar[dict[str, int]] = {
        **ClosedJob.CONSTANTS,
        "renumbered": 1,
        "timeouts_cost": 1,
    }
    UNTAKEN: ClassVar[dict[str, str]] = {
        **ClosedJob.UNTAKEN,
        **untaken.left_to("epochgate", "lifecycle.fail_globally", "process.ended"),
    }
    STEPS = (*ClosedJob.STEPS, Step("names", "wrap"))

    def is_deciding(self) -> bool:
        return all(
            self.sender[c, s].undecided == 0
            for c in range(self.coordinators)
            for s in range(self.subtasks)
        )

    def is_open(self) -> bool:
        return all(
            self.gateway[c, s].state != CLOSED
            for c in range(self.coordinators)
            for s in range(self.subtasks)
        )

    @leads_to("I4: each send is decided", then="is_deciding")
    def has_sent(self) -> bool:
        return not self.is_deciding()

    @leads_to("I5: each closed gateway reopens", then="is_open")
    def has_closed(self) -> bool:
        return not self.is_open()

    @leads_to("I6: another checkpoint completes", then="is_complete")
    def is_incomplete(self) -> bool:
        return self.checkpoint.state != COMPLETED

    @leads_to("I6: another checkpoint begins", then="is_incomplete")
    def is_complete(self) -> bool:
        return self.checkpoint.state == COMPLETED
