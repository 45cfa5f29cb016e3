"""Channels that are looked into, and sets: every engine finds in them what Python does."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from epochgate.fsm import STAY, Channel, DeclarationError, Fifo, Int, Row, Set, Trigger, machines
from epochgate.fsm.checker import Verdict, check
from epochgate.fsm.checker.engines.choice import ENGINES
from epochgate.fsm.checker.schedule import ClaimBroken, play
from epochgate.fsm.closed import ClosedSystem, Environment, Step
from tests.checker.containers import Library
from tests.checker.side_by_side import SideBySide

ON = "on"
BEHIND = "looks for what it.row does not hold"


@pytest.mark.parametrize("shelves", [1, 2])
def test_every_engine_looks_into_them_alike(shelves: int) -> None:
    forms = SideBySide(Library(shelves=shelves))
    known = {forms.program.initial}
    waiting, steps = [*known], 0
    while waiting and len(known) < 500:
        state = waiting.pop(0)
        found = []
        for step in forms.python.enabled(state):
            here = [*forms.python.ways(state, step)]
            assert [*forms.interpreted.ways(state, step)] == here
            found += [(step, after) for _, after in here]
        assert forms.llvm.all_successors(state) == found
        for name in forms.program.properties:
            assert forms.python.holds(name, state) == forms.interpreted.holds(name, state)
        steps += len(found)
        new = {after for _, after in found} - known
        waiting += sorted(new)
        known |= new
    assert steps > 500


def test_all_engines_count_the_same() -> None:
    found = [check(Library(things=3, last=2), engine=engine) for engine in ENGINES]
    assert {r.verdict for r in found} == {Verdict.PASS}
    assert len({(r.states, r.transitions, r.depth, r.terminal_states) for r in found}) == 1


def test_a_channel_is_looked_into_from_its_head() -> None:
    channel: Fifo[int] = Fifo([5, 6, 7, 6])
    assert (channel[1], len(channel), 7 in channel, channel.take(2)) == (6, 4, True, 7)
    channel.remove(6)
    assert [*channel] == [5, 6]
    for wrong in (2, -1):
        with pytest.raises(IndexError):
            channel.take(wrong)
    with pytest.raises(IndexError, match="does not hold 9"):
        channel.remove(9)


def closed(
    action: Callable[[Any], None], guard: Callable[[Any], bool] | None = None
) -> type[ClosedSystem]:
    """A system of one machine that does this."""
    body = {
        "STATES": (ON,),
        "INITIAL": ON,
        "__annotations__": {"row": "Fifo[int]", "system": Any, "go": Trigger},
        "row": Channel("last", 2),
        "held": Set("things"),
        "other": Set("things"),
        "wide": Set(9, start=[7]),
        "number": Int(9),
        "ROWS": (Row("go", ON, STAY, "may" if guard else None, "act", "x"),),
        "act": action,
        "may": guard,
    }
    kind = type("Holder", (Environment,), body)
    constants = {"last": 3, "things": 4}
    members = {"CONSTANTS": constants, "STEPS": (Step("it", "go"),), "it": machines(kind)}
    return type("Held", (ClosedSystem,), members)


def look_behind(self: Any) -> None:
    self.number = self.row[self.number]


def remove_nothing(self: Any) -> None:
    self.row.remove(self.number)


def take_behind(self: Any) -> None:
    self.number = self.row.take(1)


def drop_from_set(self: Any) -> None:
    self.held.remove(self.number)


def add_too_much(self: Any) -> None:
    self.number += 1
    self.held.add(self.number)


def assign_too_much(self: Any) -> None:
    self.held = self.wide | self.other


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(
    ("action", "kind", "told", "steps"),
    [
        (
            look_behind,
            "index",
            "it: `self.row[self.number]` looks for what it.row does not hold",
            1,
        ),
        (remove_nothing, "empty", "it.row does not hold what is removed", 1),
        (take_behind, "index", f"it: `self.row.take(1)` {BEHIND}", 1),
        (drop_from_set, "empty", "it.held does not hold what is removed", 1),
        (add_too_much, "range", "it.held leaves its range 0 to 3", 4),
        (assign_too_much, "range", "it.held leaves its range 0 to 3", 1),
    ],
)
def test_what_is_not_there_is_a_violation(
    engine: str, action: Any, kind: str, told: str, steps: int
) -> None:
    system = closed(action)
    found = check(system, engine=engine).counterexample
    assert found is not None
    assert (found.kind, found.message, len(found.steps)) == (kind, told, steps)
    with pytest.raises(ClaimBroken):
        play(system(), *[step.label for step in found.steps])


def look_before(self: Any) -> None:
    self.row.push(self.number % 3)
    if self.row.size() == 2:
        self.number = self.row[self.number - 3] + (5, 4)[self.number - 2] - 3
        self.row.pop()
    else:
        self.number = 2


def test_a_negative_index_counts_from_the_end_as_in_python() -> None:
    found = [check(closed(look_before), engine=engine) for engine in ENGINES]
    assert len({(r.states, r.transitions, str(r.counterexample)) for r in found}) == 1
    assert found[0].states > 2


def share(self: Any) -> None:
    self.held = self.other


def share_one(self: Any) -> None:
    self.held = self.other if self.number > 1 else self.wide.copy()


def loop(self: Any) -> None:
    for number in self.held:
        self.number = number


def add_sets(self: Any) -> None:
    self.held = self.held + self.other


def mix(self: Any) -> None:
    self.held = self.held | self.number


def pop(self: Any) -> None:
    self.number = self.held.pop()


def look_into_number(self: Any) -> None:
    self.number = 1 if self.number in self.number else 0


def look_for_state(self: Any) -> None:
    self.number = 1 if self.state in self.held else 0


def measure(self: Any) -> None:
    self.number = len(self.number)


def write_large(self: Any) -> None:
    self.held = {1, 62}


def compare_mixed(self: Any) -> None:
    self.number = 1 if self.held == 3 else 0


@pytest.mark.parametrize(
    ("action", "told"),
    [
        (share, "a set is assigned as a new one"),
        (share_one, r"write `other.copy\(\)`"),
        (loop, "a loop over `self.held` is outside the checked subset"),
        (add_sets, "is a set, and cannot be computed with"),
        (mix, "what stands right is a set, but here it gets an int"),
        (pop, "a set has no method 'pop' here"),
        (look_into_number, "is no channel, set or tuple of numbers to look into"),
        (look_for_state, "a state is looked for in a tuple of names"),
        (measure, "is no channel, set or tuple of numbers"),
        (write_large, "has numbers from 0 to 61"),
        (compare_mixed, "compares a set with an int"),
    ],
)
def test_what_sets_and_channels_cannot_do_is_refused(action: Any, told: str) -> None:
    with pytest.raises(DeclarationError, match=rf"test_containers.py:\d+: Holder.*{told}"):
        closed(action)
