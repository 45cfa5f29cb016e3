"""The polymerase chain reaction: three specifications of the TLA+ examples, each finer than the one
before.
"""

from __future__ import annotations

from typing import ClassVar

from epochgate.fsm import STAY, Int, Row, Trigger, machines
from epochgate.fsm.closed import (
    ClosedSystem,
    Environment,
    Step,
    always,
    each_step,
    eventually,
    implements,
    weakly_fair,
)

WARM, HOT, TOO_HOT = "warm", "hot", "too_hot"
FIRST, DENATURED, READY, ANNEALED, EXTENDED = "first", "denatured", "ready", "annealed", "extended"


class Tube(Environment):
    """Strands of DNA, primers, and what they bind to, at one of three temperatures."""

    STATES: ClassVar[tuple[str, ...]] = (WARM, HOT, TOO_HOT)
    INITIAL = HOT

    primers: int = Int("all", 5)
    doubles: int = Int("all", 5)
    templates: int = Int("all")
    hybrids: int = Int("all")

    heat: Trigger
    cool: Trigger
    bind: Trigger
    extend: Trigger

    ROWS: ClassVar[tuple[Row, ...]] = (
        Row("heat", HOT, TOO_HOT, None, "part", "it is heated, and all strands part"),
        Row("cool", TOO_HOT, HOT, None, None, "it cools"),
        Row("bind", HOT, WARM, None, "take", "primers bind to single strands"),
        Row("extend", WARM, HOT, None, "double", "what is bound is made whole"),
    )

    def can_bind(self, number: int) -> bool:
        return self.state == HOT and number <= self.primers and number <= self.templates

    def part(self) -> None:
        self.primers += self.hybrids
        self.templates += self.hybrids + 2 * self.doubles
        self.doubles = 0
        self.hybrids = 0

    def take(self, number: int) -> None:
        self.primers -= number
        self.templates -= number
        self.hybrids += number

    def double(self) -> None:
        self.doubles += self.hybrids
        self.hybrids = 0


class Amount(Environment):
    """A number of primers that may bind at once."""

    INDEX = ("amount",)
    STATES, INITIAL = ("there",), "there"

    system: Clean | Stages
    amount: int

    anneal: Trigger

    ROWS = (Row("anneal", "there", STAY, "is_possible", "bind", "these primers bind"),)

    def is_possible(self) -> bool:
        return self.system.tube.can_bind(self.amount + 1)

    def bind(self) -> None:
        self.system.tube.bind(self.amount + 1)


class Clean(ClosedSystem):
    """clean: temperatures alone say what comes next."""

    INDEX_SETS: ClassVar[dict[str, str]] = {"amount": "amounts"}
    CONSTANTS: ClassVar[dict[str, int]] = {"amounts": 5, "all": 15}
    STEPS: ClassVar[tuple[Step, ...]] = (
        Step("tube", "heat"),
        Step("tube", "cool"),
        Step("amount", "anneal"),
        Step("tube", "extend"),
    )

    tube: Tube = machines(Tube)
    amount: list[Amount] = machines(Amount)

    def total(self) -> int:
        double = self.tube.doubles + self.tube.hybrids
        return self.tube.templates + self.tube.primers + 2 * double

    @always("there is as much as at first")
    def is_preserved(self) -> bool:
        return self.total() == 15

    @each_step("nothing is lost")
    def is_kept(self, total: int) -> bool:
        return self.total() == total


class UnfairClean(Clean):
    """clean, with the claim of which the specification says that it does not hold."""

    STEPS = tuple(Step(step.machine, step.trigger, is_fair=False) for step in Clean.STEPS)

    @eventually("the primers are used up")
    def is_depleted(self) -> bool:
        return self.tube.primers == 0


class Cycler(Tube):
    """The same in stages that are counted; hot is the tube in three of them."""

    STATES = (FIRST, DENATURED, READY, ANNEALED, EXTENDED)
    INITIAL = FIRST

    cycles: int = Int("all")

    ROWS = (
        Row("heat", (FIRST, EXTENDED), DENATURED, None, "part", "it is heated, strands part"),
        Row("cool", DENATURED, READY, None, None, "it cools"),
        Row("bind", READY, ANNEALED, None, "take", "primers bind to single strands"),
        Row("extend", ANNEALED, EXTENDED, None, "double, count", "what is bound is made whole"),
    )

    def can_bind(self, number: int) -> bool:
        return self.state == READY and number <= self.primers and number <= self.templates

    def count(self) -> None:
        self.cycles += 1


class Stages(ClosedSystem):
    """stages: a cycle has four stages."""

    INDEX_SETS: ClassVar[dict[str, str]] = {"amount": "amounts"}
    CONSTANTS: ClassVar[dict[str, int]] = {"amounts": 5, "all": 15}
    UNREAD: ClassVar[dict[str, str]] = {"tube.cycles": "the specification counts them"}
    STEPS = (
        Step("tube", "heat"),
        Step("tube", "cool"),
        Step("amount", "anneal", is_fair=False),
        Step("tube", "extend"),
    )
    FAIRNESS = (weakly_fair("amount.anneal"),)

    tube: Cycler = machines(Cycler)
    amount: list[Amount] = machines(Amount)

    @eventually("the primers are used up")
    def is_depleted(self) -> bool:
        return self.tube.primers == 0

    @implements("it does what it does without stages", Clean)
    def as_clean(self, specification: Clean) -> None:
        for name in ("primers", "doubles", "templates", "hybrids"):
            setattr(specification.tube, name, getattr(self.tube, name))
        warmth = {DENATURED: TOO_HOT, ANNEALED: WARM}
        specification.tube.state = warmth.get(self.tube.state, HOT)
