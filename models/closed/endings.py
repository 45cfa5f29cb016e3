"""The ways in which a job ends."""

from __future__ import annotations

from typing import ClassVar

from epochgate.fsm import machines
from epochgate.fsm.closed import Step, always, leads_to, sometimes
from epochgate.models.closed import untaken
from epochgate.models.closed.job import ClosedJob
from epochgate.models.closed.surroundings.driver import (
    DONE,
    Person,
    SlowSink,
)
from epochgate.models.committer import GIVEN_UP
from epochgate.models.lifecycle import CANCELED, FAILED, FINISHED, FINISHING


class EndingJob(ClosedJob):
    """The job and its ways to end: the end of input, a stop, a cancellation, a fault.

    Ending takes checkpoints until one completes, so a timeout counts as a failure here, and each
    failure allows for one checkpoint more.
    """

    CONSTANTS: ClassVar[dict[str, int]] = {
        **ClosedJob.CONSTANTS,
        "subtasks": 1,
        "wanted": 1,
        "timeouts_cost": 1,
        "slow_commits": 1,
        "after_commit": 1,
    }
    DERIVED: ClassVar[dict[str, str]] = {
        **ClosedJob.DERIVED,
        "checkpoints": "wanted + F + 2",
    }
    UNTAKEN: ClassVar[dict[str, str]] = {
        **untaken.LEFT_TO_TALKING,
        **untaken.EXCUSED,
        "lifecycle.checkpoint_over: the job has ended with this checkpoint": "commits take their time",
        "post_commit.owe: the job has nothing to do after a commit": "it has",
    }
    slow_commits: int

    person: Person = machines(Person)
    sink: SlowSink = machines(SlowSink)  # type: ignore[assignment]  # it takes the other's place

    STEPS = (
        *ClosedJob.STEPS,
        Step("sink", "finish"),
        Step("sink", "put_off", is_fair=False),
        Step("sink", "refuse", is_fair=False),
        Step("sink", "hang", is_fair=False),
        Step("sink", "hang_in_work", is_fair=False),
        Step("store", "refuse", is_fair=False),
        Step("store", "expire_save", is_fair=False),
        Step("store", "answer_late", is_fair=False),
        Step("restarter", "expire_end", is_fair=False),
        Step("sink", "finish_work"),
        Step("sink", "fail_work", is_fair=False),
        Step("process", "end_input", is_fair=False),
        Step("process", "fail_fatally", is_fair=False),
        Step("user", "fail_for_good", is_fair=False),
        Step("person", "stop", is_fair=False),
        Step("person", "cancel", is_fair=False),
        Step("person", "give_up", is_fair=False),
        Step("store", "lose_save", is_fair=False),
    )

    @sometimes("the job finishes")
    def finishes(self) -> bool:
        return self.lifecycle.state == FINISHED

    @always("an ended job has closed its coordinators")
    def closes_coordinators(self) -> bool:
        return not self.has_ended() or all(self.user[c].is_closed for c in range(self.coordinators))

    @always("an ended job has told the outcome of every send")
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

    @always("a finished job has done the work after its last commit, or was told that it stalled")
    def has_worked(self) -> bool:
        return (
            self.lifecycle.state != FINISHED
            or self.after_commit == 0
            or self.sink.worked == self.checkpoint.completed
            or self.sink.is_stalled
        )

    @sometimes("the work after the last commit is all that a job waits for")
    def waits_for_work(self) -> bool:
        return (
            self.lifecycle.state == FINISHING
            and self.lifecycle.is_down()
            and self.committer.is_settled()
            and not self.post_commit.is_settled()
        )

    @leads_to("a commit that is given up ends the job", then="has_ended")
    def has_given_up(self) -> bool:
        return self.committer.state == GIVEN_UP

    @leads_to("a user who ends the job sees it end", then="has_ended")
    def is_ended_by_user(self) -> bool:
        return self.person.state == DONE

    @leads_to("a checkpoint in doubt ends the job", then="has_ended")
    def is_in_doubt(self) -> bool:
        return self.checkpoint.is_in_doubt()

    @leads_to("at the end of all input the job ends, or a failure makes it read again", then="goes")
    def has_no_input(self) -> bool:
        return not self.goes()

    def goes(self) -> bool:
        return self.has_ended() or self.lifecycle.ended < self.subtasks
