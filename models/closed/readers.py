"""A closed system of the concurrent attempts of one subtask, whose readers read the same splits.

Attempts come, register in any order and die; splits are assigned and the end is signalled at every
moment. The claim is S8: each attempt that is there was sent everything that is assigned to the
subtask, in its order, and was told the end; splits come back once no attempt is left.
"""

from __future__ import annotations

from typing import ClassVar

from epochgate.fsm import STAY, Array, Bool, Int, Opaque, Row, Trigger, machines
from epochgate.fsm.closed import ClosedSystem, Environment, Step, always, leads_to, sometimes
from epochgate.models.split_assignment import SplitAssignment


class Attempts(Environment):
    """The concurrent attempts of one subtask, which begin from nothing: ports `readers` and
    `enumerator`.
    """

    INDEX = ("subtask",)
    STATES = ("up",)
    INITIAL = "up"

    system: ConcurrentSources
    subtask: int

    started: int = Int("attempts")
    """How many attempts there have been: the number of the next one."""
    assigned: int = Int("S")
    """Splits that are assigned to the subtask; they are assigned in their order."""
    is_ended: bool = Bool()
    """The enumerator has signalled the end since something came back."""
    is_up: list[bool] = Array(Bool(), "attempts")
    has_registered: list[bool] = Array(Bool(), "attempts")
    """The reader has said that it is there."""
    has_joined: list[bool] = Array(Bool(), "attempts")
    """The coordinator knows it."""
    is_announced: bool = Bool()
    """The enumerator knows that the subtask has a reader."""
    given: list[int] = Array(Int("S"), "attempts")
    """For each attempt, how many splits it was sent."""
    is_told: list[bool] = Array(Bool(), "attempts")
    is_to_reset: bool = Bool()
    has_checkpoint: bool = Bool()
    """A checkpoint was begun."""

    begin: Trigger
    join_first: Trigger
    join_last: Trigger
    join_again: Trigger
    die_first: Trigger
    die_last: Trigger
    die_again: Trigger
    reset: Trigger
    deal: Trigger
    end: Trigger
    take: Trigger

    # fmt: off
    ROWS: ClassVar[tuple[Row, ...]] = (
        Row("begin",      "up", STAY, "may_begin",
            "start_one",    "a process is there for the subtask"),
        Row("join_first", "up", STAY, "has_unjoined",
            "join_oldest",  "the reader registers"),
        Row("join_last",  "up", STAY, "has_unjoined",
            "join_newest",  "it registers before one that started earlier"),
        Row("join_again", "up", STAY, "has_started",
            "repeat_joins", "what was said before arrives once more"),
        Row("die_first",  "up", STAY, "may_die",
            "kill_oldest",  "a process dies"),
        Row("die_last",   "up", STAY, "may_die",
            "kill_newest",  "a process dies"),
        Row("die_again",  "up", STAY, "has_started",
            "repeat_ends",  "the end of an attempt is reported once more"),
        Row("reset",      "up", STAY, "needs_reset",
            "go_back",      "the last attempt is gone"),
        Row("deal",       "up", STAY, "may_deal",
            "assign_next",  "the enumerator assigns the next split"),
        Row("end",        "up", STAY, "is_all_assigned",
            "signal_end",   "there are no more splits"),
        Row("take",       "up", STAY, "may_take",
            "begin_checkpoint", "a checkpoint is begun"),
    )
    # fmt: on

    def ups(self) -> int:
        count = 0
        for a in range(self.system.attempts):
            if self.is_up[a]:
                count += 1
        return count

    def may_begin(self) -> bool:
        return (
            self.started < self.system.attempts
            and self.ups() < self.system.places
            and not self.is_to_reset
        )

    def has_unjoined(self) -> bool:
        return any(
            self.is_up[a] and not self.has_registered[a] for a in range(self.system.attempts)
        )

    def has_started(self) -> bool:
        return self.started > 0

    def may_die(self) -> bool:
        """With the checkpoint under way, the last one alone: the others are ended before."""
        return self.ups() == 1 or (self.ups() > 0 and not self.has_checkpoint)

    def needs_reset(self) -> bool:
        return self.is_to_reset

    def may_deal(self) -> bool:
        return self.assigned < self.system.S

    def is_all_assigned(self) -> bool:
        return self.assigned == self.system.S and not self.is_ended

    def may_take(self) -> bool:
        """Once a reader has all splits: the one checkpoint ends the job."""
        return not self.has_checkpoint and any(self.is_told[a] for a in range(self.system.attempts))

    def begin_checkpoint(self) -> None:
        self.has_checkpoint = True
        self.system.assignment[self.subtask].take(1)

    def start_one(self) -> None:
        for a in range(self.system.attempts):
            if a == self.started:
                self.is_up[a] = True
        self.system.assignment[self.subtask].ready(self.started)
        self.started += 1

    def join_oldest(self) -> None:
        chosen = self.system.attempts
        for a in range(self.system.attempts):
            if self.is_up[a] and not self.has_registered[a] and chosen == self.system.attempts:
                chosen = a
        self.register(chosen)

    def join_newest(self) -> None:
        chosen = 0
        for a in range(self.system.attempts):
            if self.is_up[a] and not self.has_registered[a]:
                chosen = a
        self.register(chosen)

    def register(self, attempt: int) -> None:
        for a in range(self.system.attempts):
            if a == attempt:
                self.has_registered[a] = True
        self.system.assignment[self.subtask].register(attempt)

    def repeat_joins(self) -> None:
        for a in range(self.system.attempts):
            if a < self.started and (self.has_registered[a] or not self.is_up[a]):
                self.system.assignment[self.subtask].register(a)

    def kill_oldest(self) -> None:
        chosen = self.system.attempts
        for a in range(self.system.attempts):
            if self.is_up[a] and chosen == self.system.attempts:
                chosen = a
        self.kill(chosen)

    def kill_newest(self) -> None:
        chosen = 0
        for a in range(self.system.attempts):
            if self.is_up[a]:
                chosen = a
        self.kill(chosen)

    def kill(self, attempt: int) -> None:
        for a in range(self.system.attempts):
            if a == attempt:
                self.is_up[a] = False
                self.has_registered[a] = False
        self.system.assignment[self.subtask].lost(attempt)
        self.is_to_reset = self.ups() == 0

    def repeat_ends(self) -> None:
        for a in range(self.system.attempts):
            if a < self.started and not self.is_up[a]:
                self.system.assignment[self.subtask].lost(a)

    def go_back(self) -> None:
        self.is_to_reset = False
        self.system.assignment[self.subtask].reset(0)

    def assign_next(self) -> None:
        self.assigned += 1
        self.system.assignment[self.subtask].assign(self.assigned)

    def signal_end(self) -> None:
        self.is_ended = True
        self.system.assignment[self.subtask].signal()

    # port `readers`

    def send(self, attempt: int, split: int) -> None:
        for a in range(self.system.attempts):
            if a == attempt:
                assert self.has_joined[a], "a split goes to a reader that is there"
                assert not self.is_told[a], "a reader that was told of the end is given no more"
                assert self.given[a] == split - 1, "splits are sent once, and in their order"
                self.given[a] = split

    def tell_no_more(self, attempt: int) -> None:
        for a in range(self.system.attempts):
            if a == attempt:
                assert self.has_joined[a], "the end is told to a reader that is there"
                self.is_told[a] = True

    # port `enumerator`

    def joined(self, attempt: int) -> None:
        for a in range(self.system.attempts):
            if a == attempt:
                assert not self.has_joined[a], "a reader joins once"
                self.has_joined[a] = True

    def left(self, attempt: int) -> None:
        for a in range(self.system.attempts):
            if a == attempt:
                assert not self.is_up[a], "an attempt leaves when it has ended"
                self.has_joined[a] = False
                self.given[a] = 0
                self.is_told[a] = False
        if not any(self.has_joined[a] for a in range(self.system.attempts)):
            self.is_announced = False

    def announce(self) -> None:
        assert not self.is_announced, "the enumerator hears once that the subtask has a reader"
        self.is_announced = True
        self.system.assignment[self.subtask].announced()

    def asked(self, attempt: int) -> None:
        pass

    def said(self, attempt: int, event: Opaque) -> None:
        pass

    def returned(self, split: int) -> None:
        assert self.ups() == 0, "splits come back once no attempt is left"
        self.assigned -= 1
        self.is_ended = False

    def unsent(self) -> None:
        pass

    def listed(self, split: int) -> None:
        pass


class ConcurrentSources(ClosedSystem):
    """The splits of a subtask with concurrent attempts: each attempt is sent all of them.

    One checkpoint is begun, which does not complete.
    """

    INDEX_SETS: ClassVar[dict[str, str]] = {"subtask": "subtasks"}
    CONSTANTS: ClassVar[dict[str, int]] = {"subtasks": 1, "places": 2, "attempts": 4, "S": 2}
    DERIVED: ClassVar[dict[str, str]] = {
        "split": "S + 0",
        "splits": "S + 0",
        "checkpoints": "1",
    }
    STEPS: ClassVar[tuple[Step, ...]] = (
        Step("attempts_of", "begin"),
        Step("attempts_of", "join_first"),
        Step("attempts_of", "join_last", is_fair=False),
        Step("attempts_of", "join_again", is_fair=False, is_stuttering=True),
        Step("attempts_of", "die_first", is_fair=False),
        Step("attempts_of", "die_last", is_fair=False),
        Step("attempts_of", "die_again", is_fair=False, is_stuttering=True),
        Step("attempts_of", "reset"),
        Step("attempts_of", "deal"),
        Step("attempts_of", "end"),
        Step("attempts_of", "take", is_fair=False),
    )
    WIRING: ClassVar[dict[str, str]] = {
        "assignment.readers": "attempts_of",
        "assignment.enumerator": "attempts_of",
    }
    UNTAKEN: ClassVar[dict[str, str]] = dict.fromkeys(
        (
            "assignment.request",
            "assignment.take: splits that wait for a reader would be in no state",
            "assignment.speak",
            "assignment.complete",
            "assignment.abort",
            "assignment.list_all",
            "assignment.restore",
            "assignment.signal",
            "assignment.announced",
            "assignment.assign",
            "assignment.reset",
        ),
        "explored by the system `sources`",
    )

    subtasks: int
    places: int
    attempts: int
    S: int

    assignment: list[SplitAssignment] = machines(SplitAssignment)
    attempts_of: list[Attempts] = machines(Attempts)

    @always("S8: every attempt that is there was sent all that is assigned, and told the end")
    def is_given_everything(self) -> bool:
        return all(
            not self.attempts_of[i].has_joined[a]
            or (
                self.attempts_of[i].given[a] == self.attempts_of[i].assigned
                and self.attempts_of[i].is_told[a] == self.attempts_of[i].is_ended
            )
            for i in range(self.subtasks)
            for a in range(self.attempts)
        )

    @always("a reader that has registered is known, and announced")
    def is_known(self) -> bool:
        return all(
            self.attempts_of[i].has_joined[a] == self.attempts_of[i].has_registered[a]
            and (not self.attempts_of[i].has_joined[a] or self.attempts_of[i].is_announced)
            for i in range(self.subtasks)
            for a in range(self.attempts)
        )

    @sometimes("several attempts are told the end")
    def is_told_twice(self) -> bool:
        return any(
            self.attempts_of[i].is_told[a] and self.attempts_of[i].is_told[a + 1]
            for i in range(self.subtasks)
            for a in range(self.attempts - 1)
        )

    @leads_to("after the last attempt is gone the splits come back", then="is_reset")
    def is_to_reset(self) -> bool:
        return any(self.attempts_of[i].is_to_reset for i in range(self.subtasks))

    def is_reset(self) -> bool:
        return not self.is_to_reset()
