"""A row counts for each of its source states in which it is taken, in every engine alike."""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar

import pytest

from epochgate.fsm import Machine, Row, Trigger, machines
from epochgate.fsm.checker import Result, check
from epochgate.fsm.checker.report import ROWS_SHOWN_MAX, untaken_states
from epochgate.fsm.closed import ClosedSystem, Environment, Step
from epochgate.fsm.errors import DeclarationError

ENGINES = ("llvm", "python", "interpreted")


class Lamp(Machine):
    STATES = ("off", "dim", "bright")
    INITIAL = "off"

    press: Trigger
    fade: Trigger
    put_out: Trigger

    ROWS: ClassVar[tuple[Row, ...]] = (
        Row("press", "off", "bright", None, None, "it is switched on"),
        Row("fade", "bright", "dim", None, None, "it is turned down"),
        Row("put_out", ("dim", "bright"), "off", None, None, "it is switched off"),
    )


class TallLamp(Lamp):
    """A variant, which has the rows of the lamp and one more."""

    fall: Trigger

    ROWS: ClassVar[tuple[Row, ...]] = (
        *Lamp.ROWS,
        Row("fall", "bright", "off", None, None, "it falls over"),
    )


class Hand(Environment):
    STATES = ("up",)
    INITIAL = "up"

    system: Room

    switch: Trigger

    ROWS: ClassVar[tuple[Row, ...]] = (
        Row("switch", "up", "up", None, "use", "a person uses the lamp"),
    )

    def use(self) -> None:
        if self.system.lamp.state == "off":
            self.system.lamp.press()
        else:
            self.system.lamp.put_out()


class Room(ClosedSystem):
    STEPS: ClassVar[tuple[Step, ...]] = (Step("hand", "switch"),)

    lamp: Lamp = machines(Lamp)
    hand: Hand = machines(Hand)


class DimRoom(Room):
    STEPS: ClassVar[tuple[Step, ...]] = (Step("hand", "switch"), Step("lamp", "fade"))

    lamp: Lamp = machines(TallLamp)


UNTAKEN = "lamp.put_out from dim: it is switched off"


def states(result: Result) -> list[tuple[str, ...]]:
    return [row.untaken_from for row in result.coverage]


@pytest.mark.parametrize("engine", ENGINES)
def test_every_engine_tells_the_states_in_which_a_row_was_not_taken(engine: str) -> None:
    result = check(Room(), engine=engine)
    assert states(result) == [(), ("bright",), ("dim",), ()]
    assert untaken_states([result]) == [UNTAKEN]


@pytest.mark.parametrize("engine", ENGINES)
def test_a_row_counts_where_a_variant_of_its_machine_takes_it(engine: str) -> None:
    assert untaken_states([check(Room(), engine=engine), check(DimRoom(), engine=engine)]) == []


def test_nothing_is_told_of_a_search_that_is_not_complete() -> None:
    assert untaken_states([check(Room()), check(DimRoom(), max_states=1)]) == []


@pytest.mark.parametrize("excuse", ["lamp.put_out from dim", UNTAKEN])
def test_a_system_or_a_list_may_excuse_a_state(excuse: str) -> None:
    excused = type("Excused", (Room,), {"UNTAKEN": {excuse: "this lamp is not turned down"}})
    assert untaken_states([check(excused())]) == []
    assert untaken_states([check(Room())], {excuse}) == []


def test_an_excuse_for_a_state_that_a_row_does_not_have_is_refused() -> None:
    with pytest.raises(DeclarationError, match="put_out from off"):
        type("Excused", (Room,), {"UNTAKEN": {"lamp.put_out from off": "it is off"}})


def test_a_long_list_is_cut() -> None:
    result = check(Room())
    row = next(each for each in result.coverage if each.trigger == "put_out")
    many = [replace(row, trigger=f"put_out{number}") for number in range(ROWS_SHOWN_MAX + 2)]
    told = untaken_states([replace(result, coverage=many)])
    assert len(told) == ROWS_SHOWN_MAX + 1
    assert told[-1] == "and 2 more rows, all in --json"
