"""Machines with many states and many rows of one trigger: each engine explores them as a plain
search over the table does.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from epochgate.fsm import STAY, Ignore, Int, Machine, Row, Trigger, machines
from epochgate.fsm.checker import check
from epochgate.fsm.checker.compiler.lowering import CHAIN_MAX
from epochgate.fsm.closed import ClosedSystem, Step

STATES = tuple(f"s{number}" for number in range(1000))
EARLIER, LATER = STATES[:500], STATES[500:]
TURNS = 3


def after(number: int, by: int) -> str:
    return STATES[(number * by + 1) % len(STATES)]


class Dial(Machine):
    STATES, INITIAL = STATES, STATES[0]

    turns: int = Int(TURNS)

    step: Trigger
    choose: Trigger
    turn: Trigger

    ROWS = (
        *(Row("step", s, after(n, 1), None, None, "on") for n, s in enumerate(STATES)),
        *(Row("choose", s, after(n, 2), "is_even", None, "x") for n, s in enumerate(EARLIER)),
        *(Row("choose", s, after(n, 3), "not is_even", None, "x") for n, s in enumerate(EARLIER)),
        Ignore("choose", LATER, "is_even", "there is nothing to choose"),
        *(Row("choose", s, STATES[0], "not is_even", None, "back") for s in LATER),
        Row("turn", STATES, STAY, "may_turn", "count", "it is turned"),
        Ignore("turn", STATES, "not may_turn", "it was turned often"),
    )  # fmt: skip

    def is_even(self) -> bool:
        return self.turns % 2 == 0

    def may_turn(self) -> bool:
        return self.turns < TURNS

    def count(self) -> None:
        self.turns += 1


class Dialling(ClosedSystem):
    STEPS = (Step("dial", "step"), Step("dial", "choose"), Step("dial", "turn"))
    dial: Dial = machines(Dial)


def successors(state: tuple[int, int]) -> Iterator[tuple[int, int]]:
    number, turns = state
    yield (number + 1) % 1000, turns
    if number < 500:
        yield (number * (2 if turns % 2 == 0 else 3) + 1) % 1000, turns
    elif turns % 2:
        yield 0, turns
    if turns < TURNS:
        yield number, turns + 1


def explored() -> tuple[int, int]:
    """All states that can be reached, and the steps between them."""
    known, frontier, steps = {(0, 0)}, [(0, 0)], 0
    while frontier:
        found = list(successors(frontier.pop()))
        steps += len(found)
        frontier += {*found} - known
        known.update(found)
    return len(known), steps


@pytest.mark.parametrize("engine", ["llvm", "python", "interpreted"])
def test_a_table_of_many_rows_is_explored_as_it_stands(engine: str) -> None:
    assert len(Dial.ROWS) > 100 * CHAIN_MAX
    result = check(Dialling(), engine=engine)
    assert (result.states, result.transitions) == explored()
    assert all(row.is_taken or row.is_ignored for row in result.coverage)
