"""The worker processes of a job whose tasks commit, and the wires to them.

A commit reaches a task behind the messages that were sent before it, and its answer the driver
behind what the task said before. A process may die after its commit has taken effect and before
its answer has left.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from epochgate.fsm import STAY, Bool, Row, Trigger
from epochgate.models.closed.surroundings.committing_parts import COMMITTED, LEFT
from epochgate.models.closed.surroundings.operators import Operators
from epochgate.models.closed.surroundings.process import AWAY, FATAL, HERE, Process
from epochgate.models.closed.surroundings.stale import Stale
from epochgate.models.closed.surroundings.wire import Wire
from epochgate.models.task import FAILED as TASK_FAILED

if TYPE_CHECKING:
    from epochgate.models.closed.committing import CommittingInSteps


class CommittingProcess(Process):
    """The worker process of one subtask. On its wires are also commits, and their answers."""

    system: CommittingInSteps

    puts_off: bool = Bool()
    """The commit that arrives in this step is not possible now."""

    put_off: Trigger
    replaced: Trigger

    # fmt: off
    ROWS = (
        *(row for row in Process.ROWS if row.trigger != "die_silently"),
        Row("die_silently", HERE, AWAY, "may_fail",
            "spend_failure, fall_silent, vanish",    "killed before what it has said has left it"),
        Row("put_off",      HERE, STAY, "is_told and has_part_next and may_fail",
            "spend_failure, note_putting_off, handle_message", "a commit arrives, and is not possible now"),
        Row("replaced",     HERE, AWAY, None,
            "forget",                                "its driver is gone"),
        Row("replaced",     AWAY, STAY, None,
            "forget",                                "its driver is gone"),
    )
    # fmt: on

    def is_told(self) -> bool:
        return self.is_restored() and not self.down.empty()

    def has_part_next(self) -> bool:
        """Return whether a commit arrives next, and there is something to commit."""
        return (
            not self.down.empty()
            and self.down.head() > self.system.checkpoints
            and self.has_part((self.down.head() - self.system.checkpoints - 1) // self.system.tries)
        )

    def has_part(self, before: int) -> bool:
        return self.system.parts[self.subtask].part(before + 1) > 0

    def note_putting_off(self) -> None:
        self.puts_off = True

    def forget(self) -> None:
        self.identity = 0
        self.is_wanted = False
        self.is_released = False
        self.down.clear()
        self.up.clear()
        self.is_owed_an_end = False
        self.system.task[self.subtask].replaced()

    def handle_message(self) -> None:
        message = self.down.pop()
        if message == 0:
            self.system.task[self.subtask].finish()
        elif message <= self.system.checkpoints:
            self.system.task[self.subtask].barrier(message)
        else:
            place = message - self.system.checkpoints - 1
            checkpoint = place // self.system.tries + 1
            part = self.system.parts[self.subtask].part(checkpoint)
            self.system.task[self.subtask].commit(checkpoint, place % self.system.tries, part)

    def deliver_numbered(self, identity: int, number: int) -> None:
        checkpoints = self.system.checkpoints
        if number <= checkpoints:
            self.acknowledge(identity, number, False)
        elif number <= 2 * checkpoints:
            self.acknowledge(identity, number - checkpoints, True)
        elif number <= 3 * checkpoints:
            self.deliver_decline(identity, number - 2 * checkpoints)
        else:
            self.deliver_answer(identity, number - 3 * checkpoints - 1)

    def deliver_answer(self, identity: int, place: int) -> None:
        tries = place % self.system.tries
        checkpoint = place // self.system.tries + 1
        if checkpoint <= self.system.checkpoints:
            outcome = COMMITTED + self.system.parts[self.subtask].part(checkpoint)
            self.system.attempt[self.subtask].commit_done(identity, checkpoint, tries, outcome)
        else:
            self.system.attempt[self.subtask].commit_later(
                identity, checkpoint - self.system.checkpoints, tries, LEFT, "the target is busy"
            )

    def answer(self, checkpoint: int, tries: int, is_done: bool) -> None:
        """Say what has come of a commit."""
        place = (checkpoint - 1) * self.system.tries + tries + 1
        if not is_done:
            place += self.system.checkpoints * self.system.tries
        self.up.push(FATAL + 3 * self.system.checkpoints + place)


class CommittingWire(Wire):
    """The wire to the worker process of one subtask."""

    system: CommittingInSteps

    def commit(self, identity: int, checkpoint: int, tries: int) -> None:
        place = (checkpoint - 1) * self.system.tries + tries
        self.put(identity, self.system.checkpoints + 1 + place)

    def finish(self, identity: int) -> None:
        assert self.system.parts[self.subtask].has_committed_all(), (
            "a task leaves once it has committed what the last checkpoint holds"
        )
        self.put(identity, 0)


class CommittingOperators(Operators):
    """The operators of one subtask, with a committer and an operator behind it."""

    system: CommittingInSteps

    def begin_to_work(self) -> None:
        self.system.parts[self.subtask].restore()
        self.system.process[self.subtask].up.push(0)
        self.system.process[self.subtask].up.push(1)

    def commit(self, checkpoint: int, tries: int, part: int) -> None:
        assert (
            not self.system.process[self.subtask].is_owed_an_end
            or not self.system.checkpoint.is_pending()
        ), "a task that has passed its barrier commits nothing until all tasks have"
        is_done = not self.system.process[self.subtask].puts_off
        self.system.process[self.subtask].puts_off = False
        if is_done:
            self.system.parts[self.subtask].take_effect(checkpoint, part)
        self.system.process[self.subtask].answer(checkpoint, tries, is_done)

    def snapshot(self, checkpoint: int, is_final: bool) -> None:
        self.system.process[self.subtask].is_owed_an_end = (
            checkpoint == self.system.checkpoint.number and not self.system.checkpoint.is_over()
        )
        self.system.parts[self.subtask].snapshot()
        if is_final:
            self.system.process[self.subtask].up.push(FATAL + self.system.checkpoints + checkpoint)
        else:
            self.system.process[self.subtask].up.push(FATAL + checkpoint)


class DeadTasks(Stale):
    """Messages to tasks that have failed."""

    def fire_timers(self) -> None:
        pass

    def expire_saves(self) -> None:
        pass

    def repeat_calls(self) -> None:
        pass

    def tell_the_dead(self) -> None:
        for s in range(self.system.subtasks):
            if self.system.task[s].state == TASK_FAILED:
                self.system.task[s].commit(1, 0, 0)
