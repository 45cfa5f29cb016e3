"""Systems of one machine with a random table, whose runs are compared with their definitions."""

from __future__ import annotations

import random
from itertools import product
from typing import Any, ClassVar

from epochgate.fsm import ANY, Machine, Row, Trigger, machines
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
from tests.checker.naive import Demand, Graph

PLACES = ("a", "b", "c", "d", "e")
TRIGGERS = ("p", "q", "r", "s")
STRENGTHS = ("none", "none", "weak", "weak", "strong", "strong", "strong")


class Wanderer(Machine):
    """Goes from place to place; its rows are drawn."""

    STATES = PLACES
    INITIAL = "a"

    p: Trigger
    q: Trigger
    r: Trigger
    s: Trigger

    ROWS: ClassVar[tuple[Row, ...]] = tuple(
        Row(t, ANY, to, None, None, "any") for t, to in zip(TRIGGERS, PLACES[1:], strict=True)
    )


class Wandering(ClosedSystem):
    """A wanderer, with the claims on it."""

    STEPS = tuple(Step("wanderer", t) for t in TRIGGERS)

    wanderer: Wanderer = machines(Wanderer)


class GetsFar(Wandering):
    """It gets somewhere."""

    @eventually("it gets to d or e")
    def is_far(self) -> bool:
        return self.wanderer.state == "d" or self.wanderer.state == "e"


class GoesOnFromB(Wandering):
    """One place is followed by others."""

    @leads_to("from b it goes on to d or e", then="is_far")
    def is_at_b(self) -> bool:
        return self.wanderer.state == "b"

    def is_far(self) -> bool:
        return self.wanderer.state == "d" or self.wanderer.state == "e"


class ComesBack(Wandering):
    """It is often somewhere."""

    @infinitely_often("it is at d or e again and again")
    def is_far(self) -> bool:
        return self.wanderer.state == "d" or self.wanderer.state == "e"


class Settles(Wandering):
    """It stays somewhere."""

    @eventually_always("it is never at a or b again")
    def is_away(self) -> bool:
        return self.wanderer.state != "a" and self.wanderer.state != "b"


def drawn(seed: int, claimed: type[Wandering]) -> tuple[type[Wandering], Graph, list[Demand]]:
    """Draw a system, and return it with its graph and its demands of fairness."""
    draw = random.Random(seed)
    rows: dict[tuple[str, str], Row] = {}
    for number, place in enumerate(PLACES[1:], 1):  # each can be reached, or it is refused
        free = [(t, at) for t in TRIGGERS for at in PLACES[:number] if (t, at) not in rows]
        trigger, source = draw.choice(free)
        rows[trigger, source] = Row(trigger, source, place, None, None, "drawn")
    for trigger, source in product(TRIGGERS, PLACES):
        if (trigger, source) not in rows and draw.random() < 0.3:
            to = draw.choice(PLACES)
            rows[trigger, source] = Row(trigger, source, to, None, None, "drawn")
    leaving = {row.source for row in rows.values() if row.dest != row.source}
    table = tuple(rows[key] for key in sorted(rows))
    members: dict[str, Any] = {
        "ROWS": table,
        "TERMINAL": tuple(place for place in PLACES if place not in leaving),
        "__module__": __name__,
    }
    machine: Any = type("Drawn", (Wanderer,), members)
    strength = {trigger: draw.choice(STRENGTHS) for trigger in TRIGGERS}
    steps = tuple(
        Step("wanderer", t, is_fair=kind == "weak", is_strongly_fair=kind == "strong")
        for t, kind in strength.items()
        if t in machine.triggers()
    )
    known = [step.trigger for step in steps]
    groups = [
        (draw.choice(("weak", "strong")), draw.sample(known, draw.randint(1, len(known))))
        for _ in range(draw.randint(0, 2))
    ]
    members = {
        "STEPS": steps,
        "FAIRNESS": tuple(
            (strongly_fair if kind == "strong" else weakly_fair)(
                *([ANY] if len(group) == len(known) else [f"wanderer.{t}" for t in group])
            )
            for kind, group in groups
        ),
        "wanderer": machines(machine),
        "__annotations__": {"wanderer": machine},
    }
    system = type("DrawnSystem", (claimed,), members)
    graph: Graph = {place: set() for place in PLACES}
    for row in table:
        assert isinstance(row.source, str)
        assert row.dest is not None
        graph[row.source].add((row.trigger, row.dest))
    demands = [(kind, frozenset([t])) for t, kind in strength.items() if kind != "none"]
    demands += [(kind, frozenset(group)) for kind, group in groups]
    return system, graph, demands
