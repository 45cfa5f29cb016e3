"""Specifications of the TLA+ examples with claims that are published as broken: puzzles, whose
solution breaks a claim, and one that holds only if more is fair.
"""

from __future__ import annotations

from typing import ClassVar

from epochgate.fsm import ANY, STAY, Bool, Int, Row, Trigger, machines
from epochgate.fsm.closed import (
    ClosedSystem,
    Environment,
    Step,
    always,
    leads_to,
    weakly_fair,
)
from tests.published.probes import Call, Probe

THERE = "there"


class Jugs(Environment):
    """A jug of three gallons and one of five."""

    STATES, INITIAL = (THERE,), THERE

    small: int = Int(3)
    big: int = Int(5)

    fill_small: Trigger
    fill_big: Trigger
    empty_small: Trigger
    empty_big: Trigger
    pour_into_big: Trigger
    pour_into_small: Trigger

    ROWS = (
        Row("fill_small", THERE, STAY, None, "make_small_full", "at the faucet"),
        Row("fill_big", THERE, STAY, None, "make_big_full", "at the faucet"),
        Row("empty_small", THERE, STAY, None, "make_small_empty", "onto the ground"),
        Row("empty_big", THERE, STAY, None, "make_big_empty", "onto the ground"),
        Row("pour_into_big", THERE, STAY, None, "pour_up", "as much as goes in"),
        Row("pour_into_small", THERE, STAY, None, "pour_down", "as much as goes in"),
    )

    def make_small_full(self) -> None:
        self.small = 3

    def make_big_full(self) -> None:
        self.big = 5

    def make_small_empty(self) -> None:
        self.small = 0

    def make_big_empty(self) -> None:
        self.big = 0

    def pour_up(self) -> None:
        both = self.small + self.big
        self.big = both if both < 5 else 5
        self.small = both - self.big

    def pour_down(self) -> None:
        both = self.small + self.big
        self.small = both if both < 3 else 3
        self.big = both - self.small


class DieHard(ClosedSystem):
    """DieHard: four gallons are measured with two jugs."""

    STEPS = tuple(Step("jugs", trigger) for trigger in Jugs.triggers())

    jugs: Jugs = machines(Jugs)

    @always("the big jug never holds four gallons")
    def is_unsolved(self) -> bool:
        return self.jugs.big != 4


class River(Environment):
    """The bank from which all start, and those on it as bits: missionaries are the first three."""

    STATES, INITIAL = (THERE,), THERE

    here: int = Int(63, 63)
    is_boat_over: bool = Bool()

    def people(self) -> int:
        return 63 - self.here if self.is_boat_over else self.here

    def count(self, people: int) -> int:
        found = 0
        for i in range(3):
            found += people >> i & 1
        return found

    def is_safe(self, people: int) -> bool:
        missionaries = self.count(people & 7)
        return missionaries == 0 or self.count(people >> 3 & 7) <= missionaries


class Boat(Environment):
    """Some people, who cross together."""

    INDEX = ("group",)
    STATES, INITIAL = (THERE,), THERE

    system: Crossing
    group: int

    cross: Trigger

    ROWS = (Row("cross", THERE, STAY, "are_there and is_safe", "go", "none is outnumbered"),)

    def are_there(self) -> bool:
        group = self.group + 1
        number = self.system.river.count(group & 7) + self.system.river.count(group >> 3 & 7)
        return number <= 2 and self.system.river.people() & group == group

    def is_safe(self) -> bool:
        left = self.system.river.people() - (self.group + 1)
        return self.system.river.is_safe(left) and self.system.river.is_safe(63 - left)

    def go(self) -> None:
        if self.system.river.is_boat_over:
            self.system.river.here += self.group + 1
        else:
            self.system.river.here -= self.group + 1
        self.system.river.is_boat_over = not self.system.river.is_boat_over


class Crossing(ClosedSystem):
    """MissionariesAndCannibals: three of each cross a river in a boat for two."""

    INDEX_SETS: ClassVar[dict[str, str]] = {"group": "groups"}
    CONSTANTS: ClassVar[dict[str, int]] = {"groups": 63}
    STEPS = (Step("boat", "cross"),)

    river: River = machines(River)
    boat: list[Boat] = machines(Boat)

    @always("a person is left on the first bank")
    def is_unsolved(self) -> bool:
        return self.river.here != 0


class Silence(Environment):
    """Comes some time, and then no node wakes another."""

    STATES, INITIAL = ("talking", "silent"), "talking"
    TERMINAL = ("silent",)

    fall: Trigger

    ROWS = (Row("fall", "talking", "silent", None, None, "no more messages"),)


class SilentCall(Call):
    """A node that wakes another until there is silence."""

    system: SilentProbe

    def may_wake(self) -> bool:
        return (
            self.node != self.other
            and self.system.station[self.node].is_active
            and self.system.silence.state == "talking"
        )


class SilentProbe(Probe):
    """EWD 840, in which messages end some time."""

    STEPS = (*Probe.STEPS, Step("silence", "fall", is_fair=False))

    call: dict[tuple[int, int], SilentCall] = machines(SilentCall)  # type: ignore[assignment]  # by another class
    silence: Silence = machines(Silence)

    @leads_to("once there are no more messages, all nodes end", then="is_over")
    def is_silent(self) -> bool:
        return self.silence.state == "silent"


class BusyProbe(SilentProbe):
    """The same where it is fair that something happens."""

    FAIRNESS = (weakly_fair(ANY),)
