"""A fired trigger: guards first, then the state, then the actions; or nothing at all."""

from __future__ import annotations

from typing import Any

import pytest

from epochgate.fsm import STAY, Machine, Outcome, Row, System, TransitionRefused, machines
from tests.fsm.transitions_twin import LibraryTwin
from tests.fsm.turnstile import BROKEN, LOCKED, UNLOCKED, Station, Turnstile


@pytest.fixture
def turnstile() -> Turnstile:
    return Station().turnstile[0]


def test_a_machine_begins_in_its_initial_state_with_fresh_fields(turnstile: Turnstile) -> None:
    assert turnstile.values() == {
        "state": LOCKED,
        "coins": 0,
        "is_free": False,
        "passed": [0],
        "lost": [[]],
        "queue": [],
    }


def test_a_row_whose_guard_holds_is_taken(turnstile: Turnstile) -> None:
    assert turnstile.pay(2) is Outcome.TAKEN
    assert (turnstile.state, turnstile.coins) == (UNLOCKED, 2)


def test_an_internal_row_runs_its_actions_and_stays(turnstile: Turnstile) -> None:
    assert turnstile.pay(1) is Outcome.TAKEN
    assert (turnstile.state, turnstile.coins) == (LOCKED, 1)


def test_a_reflexive_row_runs_its_actions_and_comes_back(turnstile: Turnstile) -> None:
    turnstile.pay(2)
    assert turnstile.pay(5) is Outcome.TAKEN
    assert (turnstile.state, turnstile.coins) == (UNLOCKED, 7)


def test_an_ignored_event_changes_nothing_and_says_so(turnstile: Turnstile) -> None:
    before = turnstile.values()
    assert turnstile.push("visitor") is Outcome.IGNORED
    assert turnstile.values() == before


def test_a_refused_trigger_changes_nothing_and_names_what_is_accepted(turnstile: Turnstile) -> None:
    turnstile.hit()
    before = turnstile.values()
    with pytest.raises(TransitionRefused) as refused:
        turnstile.pay(1)
    assert turnstile.values() == before
    assert str(refused.value) == (
        "Turnstile[0]:broken refuses 'pay' in state 'broken': no row for this pair holds; "
        "accepted here: hit"
    )
    error = refused.value
    assert (error.state, error.trigger, error.accepted) == (BROKEN, "pay", ("hit",))


def test_each_callback_gets_as_many_arguments_as_it_takes(turnstile: Turnstile) -> None:
    turnstile.pay(2)
    turnstile.push("visitor")  # `count` takes the person, `report` nothing
    assert turnstile.values()["queue"] == ["visitor"]
    assert [effect.arguments for effect in turnstile.system.effects] == [(1,)]


def test_the_fields_of_one_instance_are_its_own() -> None:
    first, second = Station(gates=2).turnstile
    first.pay(2)
    first.push("a")
    assert (first.passed, second.passed) == ([1, 0], [0, 0])
    assert second.values()["queue"] == []


def test_channels_inside_an_array_become_plain_lists(turnstile: Turnstile) -> None:
    turnstile.lost[0].push({"an": "umbrella"})
    assert turnstile.values()["lost"] == [[{"an": "umbrella"}]]


def test_an_observer_sees_each_step_with_its_source_row_and_arguments() -> None:
    station = Station()
    seen: list[tuple[Any, ...]] = []
    station.observer = lambda machine, source, row, arguments: seen.append(
        (machine, source, row.because, arguments)
    )
    turnstile = station.turnstile[0]
    turnstile.push("early")
    turnstile.pay(2)
    assert seen == [
        (turnstile, LOCKED, "the bar stays put", ("early",)),
        (turnstile, LOCKED, "the fare is paid", (2,)),
    ]


class Echo(Machine, unchecked=True):
    """Its actions look at the state, and one of them fires the next trigger."""

    STATES = ("quiet", "loud", "hoarse")
    INITIAL = "quiet"
    ROWS = (
        Row("shout", "quiet", "loud", "is_able", "first, second", "it has to be said"),
        Row("rest", "loud", "hoarse", None, "third", "no voice lasts"),
        Row("heal", "hoarse", "quiet", None, None, "honey"),
        Row("fall", ("quiet", "loud"), STAY, None, "crash", "it happens"),
    )
    log: list[tuple[str, str]]

    def is_able(self) -> bool:
        self.log.append(("is_able", self.state))
        return True

    def first(self) -> None:
        self.log.append(("first", self.state))

    def second(self) -> None:
        self.log.append(("second", self.state))
        self.rest()  # type: ignore[attr-defined]  # not declared, to keep the example short
        self.log.append(("second goes on", self.state))

    def third(self) -> None:
        self.log.append(("third", self.state))

    def crash(self) -> None:
        raise ZeroDivisionError


class Hall(System):
    echo: Echo = machines(Echo)


def test_the_order_is_guards_state_actions_and_then_what_the_actions_fired() -> None:
    echo = Hall().echo
    echo.log = []
    echo.shout()  # type: ignore[attr-defined]  # nor is this one
    assert echo.log == [
        ("is_able", "quiet"),
        ("first", "loud"),
        ("second", "loud"),
        ("second goes on", "loud"),
        ("third", "hoarse"),
    ]


def test_an_exception_of_an_action_passes() -> None:
    with pytest.raises(ZeroDivisionError):
        Hall().echo.fall()  # type: ignore[attr-defined]  # nor this


def test_a_trigger_is_a_documented_method() -> None:
    assert Turnstile.pay.__name__ == "pay"
    assert Turnstile.pay.__doc__ == ("Fire 'pay': the fare is paid; more is due; for the next")


def test_the_library_has_no_triggers_that_no_row_declares() -> None:
    twin = LibraryTwin(Station().turnstile[0])
    assert not [name for name in dir(twin) if name.startswith("to_")]
