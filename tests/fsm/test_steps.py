"""The functions that the steps of a machine are translated to."""

from __future__ import annotations

import traceback
from collections.abc import Callable
from typing import Any

import pytest

from epochgate.fsm import STAY, Ignore, Machine, Outcome, Row, System, TransitionRefused, machines
from epochgate.fsm.steps import steps_of
from epochgate.fsm.transitions_backed import dispatch_table


class Lift(Machine, unchecked=True):
    """Its guards note that they were asked."""

    STATES = ("below", "above", "stuck")
    INITIAL = "below"
    TERMINAL = ("stuck",)
    ROWS = (
        Row("ride", "below", "above", "is_in_order and not is_full", None, "it goes up"),
        Row("ride", "below", STAY, "is_in_order and is_full", "ring", "it waits"),
        Row("ride", "below", "stuck", "not is_in_order", "report", "it is broken"),
        Row("ride", "above", "below", None, None, "it goes down"),
        Ignore("ring_for", ("below", "above"), None, "no attendant is there"),
        Row("check", ("below", "above"), STAY, None, "try_it", "it is looked at"),
    )
    ride: Callable[..., Outcome]
    check: Callable[..., Outcome]
    ring_for: Callable[..., Outcome]
    asked: list[str]

    def is_in_order(self, weight: int, is_full: bool) -> bool:
        self.asked.append("is_in_order")
        return weight >= 0

    def is_full(self, weight: int, is_full: bool) -> bool:
        self.asked.append("is_full")
        return is_full

    def ring(self) -> None:
        self.asked.append("ring")

    def report(self, weight: int) -> None:
        self.asked.append(f"report {weight}")

    def try_it(self) -> None:
        self.ring_for("a person")
        self.state = "stuck"
        self.ride(1, False)


class House(System):
    lift: Lift = machines(Lift)


class Chair(Machine, unchecked=True):
    """Its triggers and callbacks have names that the translation might use itself."""

    STATES = ("first", "second", "third", "fourth")
    INITIAL = "first"
    ROWS = (
        Row("taken", "first", "second", None, None, "one sits down"),
        Row("taken", "second", "third", None, "a_1", "and another one"),
        Row("taken", "third", "fourth", None, None, "and another one"),
        Row("taken", "fourth", "first", None, "a_1", "and another one"),
        Row("call_a", "first", "second", None, None, "one is called"),
        Row("call_a", "second", STAY, None, "a_1", "one is called"),
        Row("refused", "first", "third", None, None, "one is refused"),
    )
    taken: Callable[..., Outcome]
    call_a: Callable[..., Outcome]
    refused: Callable[..., Outcome]

    def a_1(self) -> None:
        """Do nothing."""


class Room(System):
    chair: Chair = machines(Chair)


@pytest.fixture
def lift() -> Lift:
    made = House().lift
    made.asked = []
    return made


@pytest.mark.parametrize(
    ("arguments", "asked", "state"),
    [
        ((1, False), ["is_in_order", "is_full"], "above"),
        ((1, True), ["is_in_order", "is_full", "ring"], "below"),
        ((-1, True), ["is_in_order", "report -1"], "stuck"),
    ],
)
def test_each_guard_is_asked_at_most_once_and_only_when_a_row_needs_it(
    lift: Lift, arguments: tuple[Any, ...], asked: list[str], state: str
) -> None:
    assert lift.ride(*arguments) is Outcome.TAKEN
    assert (lift.asked, lift.state) == (asked, state)


def test_an_argument_may_be_named_like_a_guard(lift: Lift) -> None:
    assert (lift.ride(1, True), lift.state) == (Outcome.TAKEN, "below")


def test_arguments_that_no_callback_takes_are_left_out(lift: Lift) -> None:
    lift.state = "above"
    assert (lift.ride(1, True, "more"), lift.state) == (Outcome.TAKEN, "below")


def test_a_trigger_that_is_refused_within_a_step_is_named(lift: Lift) -> None:
    with pytest.raises(TransitionRefused, match="refuses 'ring_for' in state 'stuck'"):
        lift.check()


def test_states_with_the_same_rows_share_a_function() -> None:
    table = dispatch_table(Lift.STATES, Lift.INITIAL, Lift.expanded_rows())
    steps = steps_of(Lift, table)
    assert steps["check"]["below"] is steps["check"]["above"]
    assert steps["ride"]["below"] is not steps["ride"]["above"]


def test_triggers_may_have_any_name() -> None:
    chair = Room().chair
    visited = [(chair.taken(), chair.state) for _ in range(4)]
    assert visited == [(Outcome.TAKEN, state) for state in ("second", "third", "fourth", "first")]
    assert [(chair.call_a(), chair.state) for _ in range(2)] == [(Outcome.TAKEN, "second")] * 2
    with pytest.raises(TransitionRefused, match="refuses 'refused' in state 'second'"):
        chair.refused()


def test_the_frames_of_steps_are_known_as_ours(lift: Lift) -> None:
    lift.state = "stuck"
    with pytest.raises(TransitionRefused) as refused:
        lift.ride(1, False)
    frames = [frame for frame, _ in traceback.walk_tb(refused.value.__traceback__)][1:]
    assert {frame.f_globals["__name__"].partition(".")[0] for frame in frames} == {"epochgate"}
    assert frames[-1].f_code.co_filename == "<rows of Lift>"
