"""Systems of some alike machines with a random table, which look at each other."""

from __future__ import annotations

import random
from itertools import product
from typing import Any, ClassVar

from epochgate.fsm import ANY, DeclarationError, Machine, Row, Trigger, machines
from epochgate.fsm.closed import (
    ClosedSystem,
    Step,
    eventually,
    eventually_always,
    infinitely_often,
    leads_to,
    strongly_fair,
    weakly_fair,
)

PLACES = ("a", "b", "c")
TRIGGERS = ("p", "q", "r")
GUARDS = (None, None, "is_b_taken", "not is_b_taken", "is_c_taken", "not is_c_taken")


class One(Machine):
    """Goes from place to place, if the places of the others allow it; its rows are drawn."""

    INDEX, STATES, INITIAL = ("one",), PLACES, "a"

    system: Crowd

    p: Trigger
    q: Trigger
    r: Trigger

    ROWS: ClassVar[tuple[Row, ...]] = (
        Row("p", ANY, "b", "is_b_taken", None, "any"),
        Row("q", ANY, "c", "is_c_taken", None, "any"),
        Row("r", ANY, "a", None, None, "any"),
    )

    def is_b_taken(self) -> bool:
        return any(self.system.one_[i].state == "b" for i in range(self.system.ones))

    def is_c_taken(self) -> bool:
        return any(self.system.one_[i].state == "c" for i in range(self.system.ones))


class Crowd(ClosedSystem):
    """A crowd, with the claims on it."""

    INDEX_SETS: ClassVar[dict[str, str]] = {"one": "ones"}
    CONSTANTS: ClassVar[dict[str, int]] = {"ones": 3}
    STEPS = tuple(Step("one_", t) for t in TRIGGERS)

    ones: int

    one_: list[One] = machines(One)

    def is_any_at_c(self) -> bool:
        return any(self.one_[i].state == "c" for i in range(self.ones))

    def is_none_at_b(self) -> bool:
        return all(self.one_[i].state != "b" for i in range(self.ones))


class GetsToC(Crowd):
    """One gets somewhere."""

    @eventually("one gets to c")
    def is_there(self) -> bool:
        return self.is_any_at_c()


class LeavesB(Crowd):
    """A property that follows on something."""

    @leads_to("after b one is at c", then="is_any_at_c")
    def is_any_at_b(self) -> bool:
        return not self.is_none_at_b()


class ComesToC(Crowd):
    """Something recurs."""

    @infinitely_often("one is at c again and again")
    def is_there(self) -> bool:
        return self.is_any_at_c()


class KeepsOffB(Crowd):
    """Something remains."""

    @eventually_always("none is at b any more")
    def is_off(self) -> bool:
        return self.is_none_at_b()


CLAIMS = (GetsToC, LeavesB, ComesToC, KeepsOffB)


def drawn(seed: int, claimed: type[Crowd]) -> type[Crowd]:
    """Draw a system; another one for each seed."""
    draw = random.Random(seed)
    while True:
        rows = [
            Row(trigger, place, draw.choice(PLACES), draw.choice(GUARDS), None, "drawn")
            for trigger, place in product(TRIGGERS, PLACES)
            if draw.random() < 0.6
        ]
        leaving = {row.source for row in rows if row.dest != row.source}
        members: dict[str, Any] = {
            "ROWS": tuple(rows),
            "TERMINAL": tuple(place for place in PLACES if place not in leaving),
            "__module__": __name__,
        }
        try:
            machine: Any = type("Drawn", (One,), members)
        except DeclarationError:  # a place that cannot be reached, or a trigger without a row
            continue
        return _system(draw, claimed, machine)


def _system(draw: random.Random, claimed: type[Crowd], machine: Any) -> type[Crowd]:
    steps = []
    for trigger in machine.triggers():
        kind = draw.choice(("none", "weak", "strong"))
        steps.append(
            Step("one_", trigger, is_fair=kind == "weak", is_strongly_fair=kind == "strong")
        )
    names = [step.name for step in steps]
    fairness = []
    for _ in range(draw.randint(0, 2)):
        demand = draw.choice((weakly_fair, strongly_fair))
        meant = draw.choice(([ANY], draw.sample(names, draw.randint(1, len(names)))))
        fairness.append(demand(*meant, each=draw.choice(("", "one"))))
    members = {
        "STEPS": tuple(steps),
        "FAIRNESS": tuple(fairness),
        "one_": machines(machine),
        "__annotations__": {"one_": machine},
    }
    return type("DrawnCrowd", (claimed,), members)
