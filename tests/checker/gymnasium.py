"""A system that exercises every construct of the checked subset, within a few thousand states."""

from __future__ import annotations

from typing import ClassVar

from epochgate.fsm import (
    ANY,
    STAY,
    Array,
    Bool,
    Channel,
    Fifo,
    Ignore,
    Int,
    Machine,
    Port,
    Row,
    Trigger,
    machines,
    output,
)
from epochgate.fsm.closed import ClosedSystem, Environment, Step, always, sometimes

UP, DOWN = "up", "down"
LIMIT = 3


class Bell(Port):
    """The words of an athlete."""

    def ring(self, number: int, is_loud: bool) -> None:
        """A number, loud or not."""


class Athlete(Machine):
    """Computes with everything that there is."""

    INDEX = ("athlete",)
    STATES = (UP, DOWN)
    INITIAL = UP

    system: Gymnasium
    athlete: int

    value: int = Int("limit")
    marks: list[int] = Array(Int("limit"), "athletes")
    lane: Fifo[int] = Channel("limit", "room")
    spare: list[Fifo[int]] = Array(Channel("limit", "room"), "athletes")
    is_tired: bool = Bool()

    bell: Bell = output(Bell)

    jump: Trigger
    rest: Trigger
    pass_on: Trigger
    receive: Trigger
    shuffle: Trigger

    # fmt: off
    ROWS = (
        Row("jump",    UP,   STAY, "may_jump and not is_last", "count, compare",  "there is room above"),
        Row("jump",    UP,   DOWN, "may_jump and is_last",     "fall",            "nothing is above"),
        Row("rest",    DOWN, UP,   None,                       "calm",            "it was enough"),
        Ignore("rest", UP,         None,                                          "it is up already"),
        Row("pass_on", ANY,  STAY, "has_lane",                 "hand_on",         "something lies on the lane"),
        Row("receive", ANY,  STAY, "fits",                     "keep",            "there is room for it"),
        Ignore("receive", ANY,     "not fits",                                    "there is no room for it"),
        Row("shuffle", UP,   STAY, "is_even",                  "move_all",        "all lanes change"),
    )
    # fmt: on

    def may_jump(self) -> bool:
        return not self.is_tired and (self.value < LIMIT or self.athlete > 0)

    def is_last(self) -> bool:
        for n in range(self.system.athletes):
            if self.marks[n] == LIMIT:
                return True
        return self.value == LIMIT

    def is_even(self) -> bool:
        rest = (self.value - 5) % 2
        return (rest == 1) == (self.value & 1 == 0)

    def has_lane(self) -> bool:
        return not self.lane.empty() and self.lane.head() >= 0

    def fits(self, number: int) -> bool:
        return self.lane.size() < self.system.room and number <= LIMIT

    def first_free(self, number: int) -> int:
        for n in range(self.system.athletes):
            if self.marks[n] < number:
                return n
        number -= number
        number += self.system.athletes - 1
        return number

    def count(self) -> None:
        self.value += 1
        place = self.first_free(2)
        if self.marks[place] < LIMIT:
            self.marks[place] += 1
        half = (self.value - 4) // 2
        if half < 0 and self.spare[place].size() < self.system.room:
            self.spare[place].push(-half)

    def compare(self) -> None:
        largest = 0
        for n in range(self.system.athletes):
            if self.marks[n] > largest:
                largest = self.marks[n]
        self.system.judge.note(largest if largest > 1 else 1 << largest)
        self.system.athlete[(self.athlete + 1) % self.system.athletes].receive(largest)

    def fall(self) -> None:
        self.value = 0
        self.bell.ring(self.marks[0], True)

    def next_mark(self) -> int:
        self.value = 1 if self.value == 0 else 0
        return 1

    def calm(self) -> None:
        self.value = self.value & 1
        self.marks[self.value] = 0
        self.marks[self.value] += self.next_mark()
        self.system.athlete[self.value].receive(self.next_mark() + self.value)
        self.is_tired = not self.is_tired
        total = 0
        for n in range(self.system.athletes):
            total += self.marks[n] if not self.is_tired else 1
            self.marks[n] = 0
        assert total >= 0, "nothing is less than nothing"

    def hand_on(self) -> None:
        first = self.lane.pop()
        place = first % self.system.athletes
        self.system.athlete[place].receive(first)
        self.bell.ring(first ^ 1, any(self.marks[n] == first for n in range(2) if n != place))

    def keep(self, number: int) -> None:
        self.lane.push(number)

    def move_all(self) -> None:
        for item in self.lane.take_all():
            if item > 1:
                self.marks[0] = item
        for n in range(self.system.athletes):
            if self.lane.size() + self.spare[n].size() <= self.system.room:
                self.lane.drain(self.spare[n])
            else:
                self.spare[n].clear()


class Judge(Environment):
    """Hears the bell and keeps notes."""

    INDEX = ("athlete",)
    STATES = (UP,)
    INITIAL = UP

    system: Gymnasium
    athlete: int

    heard: int = Int("limit")

    ring: Trigger

    ROWS = (
        Row("ring", UP, STAY, "is_loud", "listen", "it was loud"),
        Row("ring", UP, STAY, "not is_loud", "forget", "it was not loud"),
    )

    def is_loud(self, number: int, is_loud: bool) -> bool:
        return is_loud and number >= 0

    def listen(self, number: int) -> None:
        self.heard = number

    def forget(self) -> None:
        self.heard = 0


class Notes(Machine):
    """The last note."""

    STATES = (UP,)
    INITIAL = UP

    system: Gymnasium

    last: int = Int("noted")

    note: Trigger

    ROWS = (Row("note", UP, STAY, None, "write", "a judge notes"),)

    def write(self, number: int) -> None:
        self.last = number | self.last >> 1


class Gymnasium(ClosedSystem):
    """Two athletes, and who listens to them."""

    INDEX_SETS: ClassVar[dict[str, str]] = {"athlete": "athletes"}
    CONSTANTS: ClassVar[dict[str, int]] = {"athletes": 2, "room": 1, "limit": LIMIT, "noted": 7}
    WIRING: ClassVar[dict[str, str]] = {"athlete.bell": "listener"}
    STEPS = (
        Step("athlete", "jump"),
        Step("athlete", "rest"),
        Step("athlete", "pass_on"),
        Step("athlete", "shuffle"),
    )

    athletes: int
    room: int

    athlete: list[Athlete] = machines(Athlete)
    listener: list[Judge] = machines(Judge)
    judge: Notes = machines(Notes)

    @always("marks are within their limit")
    def marks_are_small(self) -> bool:
        return all(
            self.athlete[a].marks[n] <= LIMIT and not (self.athlete[a].value < 0)
            for a in range(self.athletes)
            for n in range(self.athletes)
            if a != n or n == 0
        )

    @sometimes("one is down while something is noted")
    def one_is_down(self) -> bool:
        return self.athlete[0].state == DOWN and 0 < self.judge.last <= 7
