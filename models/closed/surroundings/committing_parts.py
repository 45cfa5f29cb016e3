"""The committables that each subtask has handed over of each checkpoint: where they are, whether
they have taken effect, and what the operator behind the subtask's committer has got.

The claim about what is stored is made where it is stored: that a checkpoint says exactly what each
subtask's snapshot has not passed on.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from epochgate.fsm import STAY, Array, Bool, Int, Row, Trigger
from epochgate.fsm.closed import Environment
from epochgate.models.subtask_committer import COMMITTING, PAUSING

if TYPE_CHECKING:
    from epochgate.models.closed.committing import CommittingInSteps

NOWHERE, BEFORE, TASKS, BEHIND, LEDGER, DONE = 0, 1, 2, 3, 4, 5
"""Where a completed checkpoint is on its way to the global committer."""
PLACES = "NOWHERE, BEFORE, TASKS, BEHIND, LEDGER, DONE"
LEFT, COMMITTED = 1, 2
"""What a task says of a commit: that it is left to be done; or what was there, 0 or 1, and is done."""


class Parts(Environment):
    """The committables that one subtask has handed over, where they are, and what the operator
    behind its committer has seen: port `task` of its committer.
    """

    INDEX = ("subtask",)
    STATES = ("kept",)
    INITIAL = "kept"

    system: CommittingInSteps
    subtask: int

    is_held: list[bool] = Array(Bool(), "checkpoints")
    """The driver has the subtask's part of this checkpoint, to be committed."""
    is_kept: list[bool] = Array(Bool(), "checkpoints")
    """The checkpoint under way says that it is to be committed."""
    is_stored: list[bool] = Array(Bool(), "checkpoints")
    """So says the stored one."""
    failed: list[int] = Array(Int("commit_retries"), "checkpoints")
    """How often it was tried in vain."""
    kept_tries: list[int] = Array(Int("commit_retries"), "checkpoints")
    stored_tries: list[int] = Array(Int("commit_retries"), "checkpoints")
    has_effect: list[bool] = Array(Bool(), "checkpoints")
    """It has taken effect in the target of the tasks."""
    has_seen: list[bool] = Array(Bool(), "checkpoints")
    """The operator behind the committer has got it: its state."""
    snapshot_seen: list[bool] = Array(Bool(), "checkpoints")
    stored_seen: list[bool] = Array(Bool(), "checkpoints")
    has_come: list[bool] = Array(Bool(), "checkpoints")
    """It has come to the collector."""
    is_current: bool = Bool()
    """What the driver takes for committed is what the attempt that runs has."""
    pausing: int = Int("checkpoints")
    """The checkpoint for whose commit there is a pause; 0 for none."""
    pausing_tries: int = Int("commit_retries")
    is_limited: bool = Bool()
    """The commit that was asked for last has not exceeded its limit."""

    end_pause: Trigger
    expire: Trigger
    late: Trigger

    # fmt: off
    ROWS: ClassVar[tuple[Row, ...]] = (
        Row("end_pause", "kept", STAY, "is_pausing",
            "report_pause",                  "the pause is over"),
        Row("expire",    "kept", STAY, "is_committing and is_within and may_fail",
            "spend_failure, report_overdue", "the task has not answered within the limit"),
        Row("late",      "kept", STAY, None,
            "repeat_answers",                "answers to earlier commits, and ends of pauses, come too late"),
    )
    # fmt: on

    def is_pausing(self) -> bool:
        return self.pausing > 0

    def is_committing(self) -> bool:
        return self.system.subtask_committer[self.subtask].state == COMMITTING

    def is_within(self) -> bool:
        return self.is_limited

    def may_fail(self) -> bool:
        return self.system.budget.has_failures()

    def spend_failure(self) -> None:
        self.system.budget.failures += 1

    def report_pause(self) -> None:
        checkpoint = self.pausing
        tries = self.pausing_tries
        self.end_of_pause()
        self.system.subtask_committer[self.subtask].pause_over(checkpoint, tries)

    def end_of_pause(self) -> None:
        """End a pause once more, too late, as in `repeat_answers`."""
        self.pausing = 0
        self.pausing_tries = 0

    def report_overdue(self) -> None:
        self.is_limited = False
        checkpoint = self.system.subtask_committer[self.subtask].waiting.head()
        tries = self.system.subtask_committer[self.subtask].head_tries()
        self.system.subtask_committer[self.subtask].expire(
            checkpoint, tries, self.system.attempt[self.subtask].identity, "no answer has come"
        )

    def repeat_answers(self) -> None:
        is_committing = self.is_committing()
        is_pausing = self.system.subtask_committer[self.subtask].state == PAUSING
        for k in range(self.system.checkpoints):
            if self.system.committable_collector.received[self.subtask] > k:
                self.system.committable_collector.receive(self.subtask, k + 1, 0)
            for tries in range(self.system.tries):
                is_asked = not self.system.subtask_committer[self.subtask].is_done() and (
                    self.system.subtask_committer[self.subtask].is_asked(k + 1, tries)
                )
                if not is_committing or not is_asked:
                    self.answer_late(k + 1, tries)
                else:
                    self.system.subtask_committer[self.subtask].expire(
                        k + 1, tries, self.system.attempt[self.subtask].identity - 1, "late"
                    )
                if not is_pausing or not is_asked:
                    self.system.subtask_committer[self.subtask].pause_over(k + 1, tries)

    def answer_late(self, checkpoint: int, tries: int) -> None:
        identity = self.system.attempt[self.subtask].identity
        self.system.attempt[self.subtask].commit_done(identity, checkpoint, tries, 0)
        self.system.attempt[self.subtask].commit_later(identity, checkpoint, tries, 0, "late")
        self.system.subtask_committer[self.subtask].committed(checkpoint, tries, 0)
        self.system.subtask_committer[self.subtask].retry_later(checkpoint, tries, 0, "late")
        self.system.subtask_committer[self.subtask].expire(checkpoint, tries, identity, "late")

    # what happens in the task

    def restore(self) -> None:
        self.is_current = False
        for k in range(self.system.checkpoints):
            self.has_seen[k] = self.stored_seen[k]

    def snapshot(self) -> None:
        for k in range(self.system.checkpoints):
            self.snapshot_seen[k] = self.has_seen[k]

    def take_effect(self, checkpoint: int, part: int) -> None:
        assert self.system.way.is_completed(checkpoint), (
            "nothing takes effect of a checkpoint that is not completed"
        )
        for k in range(self.system.checkpoints):
            assert (
                k + 1 >= checkpoint or self.has_effect[k] or not self.system.way.is_completed(k + 1)
            ), "a task commits checkpoints in their order, and leaves none out"
        if part > 0:
            assert not self.has_seen[checkpoint - 1], (
                "the operator behind a committer gets each checkpoint once"
            )
            self.has_seen[checkpoint - 1] = True
            self.has_effect[checkpoint - 1] = True
        assert self.has_seen[checkpoint - 1], "what is not there to be committed was passed on"

    def part(self, checkpoint: int) -> int:
        """1 if there is something to commit."""
        return 1 if self.is_held[checkpoint - 1] else 0

    def has_committed_all(self) -> bool:
        return (
            all(
                self.has_effect[k] or not self.system.way.is_completed(k + 1)
                for k in range(self.system.checkpoints)
            )
            or self.system.task_committers == 0
        )

    # what happens with the checkpoint under way

    def check_kept(self) -> None:
        """A checkpoint says exactly what its snapshot does not have."""
        for k in range(self.system.checkpoints):
            is_due = (
                self.system.way.place[k] >= TASKS
                and self.system.task_committers > 0
                and not self.snapshot_seen[k]
            )
            assert self.is_kept[k] == is_due, (
                "a stored checkpoint says that a subtask has to commit what its snapshot has not "
                "passed on, and nothing else"
            )

    def store(self) -> None:
        for k in range(self.system.checkpoints):
            self.is_stored[k] = self.is_kept[k]
            self.stored_tries[k] = self.kept_tries[k]
            self.stored_seen[k] = self.snapshot_seen[k]
        self.clear()

    def clear(self) -> None:
        for k in range(self.system.checkpoints):
            self.is_kept[k] = False
            self.kept_tries[k] = 0
            self.snapshot_seen[k] = False

    # what happens with the driver

    def forget(self) -> None:
        self.clear()
        self.pausing = 0
        self.pausing_tries = 0
        self.is_limited = False
        self.is_current = False
        for k in range(self.system.checkpoints):
            self.is_held[k] = (
                self.is_stored[k]
                or self.system.way.place[k] == BEFORE
                or self.system.way.completed == k + 1
            )
            self.failed[k] = self.stored_tries[k]
            self.has_seen[k] = self.stored_seen[k]
            self.has_come[k] = self.stored_seen[k]

    def adopt(self, checkpoint: int) -> None:
        self.system.subtask_committer[self.subtask].adopt(
            checkpoint, self.stored_tries[checkpoint - 1]
        )

    def hand_over(self, checkpoint: int) -> None:
        self.is_held[checkpoint - 1] = True

    def collect(self, checkpoint: int, outcome: int) -> None:
        assert self.has_seen[checkpoint - 1], (
            "what comes from a subtask was committed by its attempt, and passed on"
        )
        assert (outcome > COMMITTED) != self.has_come[checkpoint - 1], (
            "each part of a checkpoint comes once"
        )
        self.has_come[checkpoint - 1] = True

    # port `task` of the subtask's committer

    def renew(self) -> None:
        self.is_current = True

    def commit(self, identity: int, checkpoint: int, tries: int) -> None:
        assert identity == self.system.attempt[self.subtask].identity, (
            "the process that speaks for the subtask commits"
        )
        assert self.is_current, (
            "an attempt commits what the checkpoint that it is restored from says"
        )
        assert tries == self.failed[checkpoint - 1], (
            "the tries of a commit survive failures of its task and its driver"
        )
        assert self.system.way.place[checkpoint - 1] >= TASKS, "tasks commit what has come to them"
        self.end_of_pause()
        self.is_limited = True
        self.system.wire[self.subtask].commit(identity, checkpoint, tries)

    def pause(self, checkpoint: int, tries: int) -> None:
        assert tries == self.failed[checkpoint - 1], "a pause is as long as the tries say"
        assert self.pausing == 0, "a subtask waits for the end of one pause at a time"
        self.pausing = checkpoint
        self.pausing_tries = tries

    def keep(self, checkpoint: int, earlier: int, tries: int) -> None:
        self.system.store.check_begun(checkpoint)
        assert tries == self.failed[earlier - 1], "a stored checkpoint counts the tries"
        if self.is_held[earlier - 1]:
            self.is_kept[earlier - 1] = True
            self.kept_tries[earlier - 1] = tries

    def note(self, checkpoint: int, outcome: int) -> None:
        tries = self.failed[checkpoint - 1] + 1
        assert outcome > 0, "what is noted of a commit is what the task has said"
        assert (outcome >= COMMITTED) == self.has_seen[checkpoint - 1], (
            "what is noted of a commit is what the task has said"
        )
        if outcome >= COMMITTED:
            self.failed[checkpoint - 1] = 0
        elif tries < self.system.tries:
            for k in range(self.system.checkpoints):
                self.failed[k] = 0
            self.failed[checkpoint - 1] = tries

    def release(self, checkpoint: int) -> None:
        assert self.stored_seen[checkpoint - 1], (
            "what is released is in the state from which the subtask is restored"
        )
        self.is_held[checkpoint - 1] = False


class PartsOfAll(Environment):
    """The committables that have come from all subtasks: port `parts` of the collector."""

    system: CommittingInSteps

    def collect(self, subtask: int, checkpoint: int, outcome: int) -> None:
        assert self.system.way.place[checkpoint - 1] == TASKS, "what comes is waited for"
        self.system.parts[subtask].collect(checkpoint, outcome)

    def keep(self, checkpoint: int, earlier: int) -> None:
        self.system.way.keep(checkpoint, earlier, TASKS)

    def whole(self, checkpoint: int) -> None:
        for s in range(self.system.subtasks):
            assert self.system.parts[s].has_come[checkpoint - 1], (
                "a checkpoint is whole once all its parts have come"
            )
        self.system.way.pass_on(checkpoint, TASKS)
