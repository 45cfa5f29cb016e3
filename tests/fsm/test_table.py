"""The product of states and triggers says of each pair whether it is taken, ignored or refused."""

from __future__ import annotations

import pytest

from epochgate.fsm import STAY, Handling, Ignore, Machine, Row, TransitionRefused, handling_table
from epochgate.models import MACHINES
from tests.fsm.turnstile import Station, Turnstile, declared


def handling(machine: type[Machine]) -> dict[tuple[str, str], Handling]:
    return {(cell.state, cell.trigger): cell.handling for cell in handling_table(machine)}


def test_every_pair_has_one_cell_in_order() -> None:
    cells = handling_table(Turnstile)
    assert [(c.state, c.trigger) for c in cells] == [
        (state, trigger) for state in Turnstile.STATES for trigger in ("pay", "push", "hit")
    ]


def test_each_pair_is_taken_ignored_or_refused() -> None:
    assert handling(Turnstile) == {
        ("locked", "pay"): Handling.TAKEN,
        ("locked", "push"): Handling.TAKEN,
        ("locked", "hit"): Handling.TAKEN,
        ("unlocked", "pay"): Handling.TAKEN,
        ("unlocked", "push"): Handling.TAKEN,
        ("unlocked", "hit"): Handling.TAKEN,
        ("broken", "pay"): Handling.REFUSED,
        ("broken", "push"): Handling.REFUSED,
        ("broken", "hit"): Handling.IGNORED,
    }


def test_a_pair_is_partly_handled_when_some_guard_outcome_has_no_row() -> None:
    def is_a(self: Machine) -> bool:
        return True

    body = {
        "STATES": ("s",),
        "INITIAL": "s",
        "ROWS": (
            Row("go", "s", STAY, "is_a and is_b", None, "x"),
            Ignore("go", "s", "not is_a", "y"),
            Ignore("stop", "s", "is_a", "z"),
            Ignore("stop", "s", "not is_a", "z"),
        ),
        "is_a": is_a,
        "is_b": is_a,
    }
    machine = declared("Partly", body)
    assert handling(machine) == {("s", "go"): Handling.PARTLY, ("s", "stop"): Handling.IGNORED}


@pytest.mark.parametrize("name", MACHINES)
def test_each_state_of_each_machine_accepts_what_its_table_says(name: str) -> None:
    machine = MACHINES[name]
    for state in machine.STATES:
        told = {
            t for (s, t), h in handling(machine).items() if s == state and h is not Handling.REFUSED
        }
        assert told == set(machine.accepted(state))


def test_a_refused_pair_is_refused_when_fired() -> None:
    turnstile = Station().turnstile[0]
    turnstile.hit()
    with pytest.raises(TransitionRefused):
        turnstile.pay(1)
