"""Machines of `python-statemachine` are read as they are."""

from __future__ import annotations

import random
from typing import Any

import pytest

from epochgate.diagrams.description import describe
from epochgate.diagrams.picture import forms
from epochgate.fsm import from_transitions
from epochgate.fsm.existing import CannotRead, happens, never, sometimes
from epochgate.fsm.existing.fuzzing import watched
from epochgate.fsm.existing.observing import TableDiffers

pytest.importorskip("statemachine")
from tests.fsm.known_charts import KNOWN, Journey, Order, Player

WALK = 60


@pytest.mark.parametrize("name", KNOWN)
def test_a_real_machine_does_what_its_table_says(name: str) -> None:
    chance = random.Random(name)
    real = KNOWN[name]()
    found = from_transitions(real)
    assert all(forms(describe({"x": found.machine})["x"]))
    watch = watched(found._table, real)
    for _ in range(WALK):
        watch.fire(chance.choice(found.triggers), ())
        assert watch.configuration in found._table.found.names


def test_a_machine_that_does_something_else_is_noticed() -> None:
    found = from_transitions(Order)
    real: Any = Order()
    real.on_enter_processing = None
    watch = watched(found._table, real)
    real.add_listener(Meddler(real))
    with pytest.raises(TableDiffers, match=r"add in 'waiting' led to 'shipping'"):
        watch.fire("add", ())


class Meddler:
    """Sets the state behind the back of the machine."""

    def __init__(self, machine: Any) -> None:
        self._machine = machine

    def after_add(self) -> None:
        self._machine.current_state_value = "shipping"


def test_classes_and_instances_have_the_same_rows() -> None:
    rows = [str(row) for row in from_transitions(Order).rows]
    assert rows == [str(row) for row in from_transitions(Order()).rows]
    assert rows == [
        "add: waiting -> waiting",
        "pay: waiting -> processing [is_enough]",
        "pay: waiting -> waiting [not is_enough]",
        "start: processing -> shipping",
        "ship: shipping -> completed",
    ]


def test_parallel_states_end_together() -> None:
    found = from_transitions(Journey)
    assert found.initial == "Travel.Ring.carried + Travel.King.ranger"
    assert "crown: Travel.Ring.destroyed + Travel.King.ranger -> peace" in map(str, found.rows)
    assert found.final == ("peace",)
    assert found.unreachable == ()


def test_a_claim_about_a_state_that_an_event_passes_is_refused() -> None:
    found = from_transitions(Journey, claims={"x": never("Travel.King.crowned")})
    with pytest.raises(CannotRead, match="enter and leave"):
        found.check(engine="python")


def test_what_a_machine_remembers_is_a_state_of_its_own() -> None:
    rows = [str(row) for row in from_transitions(Player).rows]
    assert "play: off -> On.first (2)" in rows
    assert "play: off (2) -> On.second (2)" in rows


def test_fields_and_claims_are_checked_over_an_instance() -> None:
    claims = {
        "it is paid": happens("waiting", "processing", "completed"),
        "it ships": sometimes(lambda state: state == "shipping"),
        "never shipped": never("shipping"),
    }
    found = from_transitions(Order(), claims=claims, fields={"paid": 9})
    result = found.check(engine="python")
    assert result.counterexample is not None
    assert result.counterexample.property == "claim_3"
    assert [step.trigger for step in result.counterexample.steps][-1] == "start_if_may_start"
    assert "1 of 2 guards are abstracted" in result.notes[0]
