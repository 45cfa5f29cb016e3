"""Claims about each step: what was before it, and what is after."""

from __future__ import annotations

from typing import Any, ClassVar

import pytest

from epochgate.fsm import ANY, STAY, DeclarationError, Int, Machine, Row, Trigger, machines
from epochgate.fsm.checker import Verdict, check
from epochgate.fsm.checker.asserting import assert_passes
from epochgate.fsm.checker.schedule import ClaimBroken, play
from epochgate.fsm.closed import (
    ClosedSystem,
    Step,
    each_step,
    eventually,
    weakly_fair,
)
from tests.checker import naive, small_systems as small, wandering

ENGINES = ("llvm", "python", "interpreted")


class Can(Machine):
    """The can of coffee beans of D. Gries: two beans are taken out, and one is put back."""

    STATES, INITIAL, TERMINAL = ("can",), "can", ("can",)

    system: CoffeeCan

    black: int = Int("beans", 5)
    white: int = Int("beans", 4)

    two_black: Trigger
    two_white: Trigger
    different: Trigger

    ROWS: ClassVar[tuple[Row, ...]] = (
        Row("two_black", "can", STAY, "has_black", "drop_black", "a black one goes back"),
        Row("two_white", "can", STAY, "has_white", "exchange", "a black one takes their place"),
        Row("different", "can", STAY, "has_both", "drop_black", "the white one goes back"),
    )

    def has_black(self) -> bool:
        return self.black >= 2

    def has_white(self) -> bool:
        return self.white >= 2

    def has_both(self) -> bool:
        return self.black >= 1 and self.white >= 1

    def drop_black(self) -> None:
        self.black -= 1

    def exchange(self) -> None:
        self.white -= 2
        self.black += 1


class CoffeeCan(ClosedSystem):
    """CoffeeCan of the TLA+ examples, with its properties, from one beginning."""

    CONSTANTS: ClassVar[dict[str, int]] = {"beans": 9}
    STEPS = tuple(Step("can", t, is_fair=False) for t in ("two_black", "two_white", "different"))
    FAIRNESS = (weakly_fair(ANY),)

    can: Can = machines(Can)

    def count(self) -> int:
        return self.can.black + self.can.white

    def is_even(self) -> bool:
        return self.can.white % 2 == 0

    @each_step("there is one bean less")
    def is_fewer(self, count: int) -> bool:
        return self.count() < count

    @each_step("the white ones stay even, or odd")
    def is_as_even(self, is_even: bool) -> bool:
        return self.is_even() == is_even

    @eventually("one black bean is left")
    def is_one(self) -> bool:
        return self.can.black == 1 and self.can.white == 0


class Spilt(Can):
    """Loses a white bean with the black one."""

    ROWS = (
        Can.ROWS[0],
        Can.ROWS[1],
        Row("different", "can", STAY, "has_both", "drop_black, spill", "both are gone"),
    )

    def spill(self) -> None:
        self.white -= 1


class SpiltCan(CoffeeCan):
    """Breaks the second claim about each step."""

    can: Can = machines(Spilt)


@pytest.mark.parametrize("engine", ENGINES)
def test_the_properties_of_the_coffee_can_hold(engine: str) -> None:
    result = assert_passes(CoffeeCan, engine=engine)
    [claim] = [p for p in result.properties if p.kind == "eventually"]
    assert claim.detail == "with weak fairness of any step"


@pytest.mark.parametrize("engine", ENGINES)
def test_the_first_step_that_breaks_a_claim_is_the_counterexample(engine: str) -> None:
    result = check(SpiltCan, engine=engine)
    found = result.counterexample
    assert found is not None
    assert (found.kind, found.property) == ("each_step", "is_as_even")
    assert found.message == "not in each step: the white ones stay even, or odd"
    assert [step.label for step in found.steps] == ["can.different"]
    assert found.steps[0].changed["can.white"] == (4, 3)
    verdicts = {p.name: p.verdict for p in result.properties}
    assert verdicts["is_as_even"] is Verdict.FAIL
    assert verdicts["is_fewer"] is Verdict.BOUNDED
    assert found.file == __file__


@pytest.mark.parametrize("options", [{"workers": 2}, {"order": "depth"}])
def test_every_search_holds_each_step_against_it(options: Any) -> None:
    safe = type("Safe", (SpiltCan,), {"is_one": lambda self: True})
    found = check(safe, **options).counterexample
    assert found is not None
    assert found.property == "is_as_even"


def test_a_schedule_breaks_it_as_well() -> None:
    with pytest.raises(ClaimBroken, match="the white ones stay even, or odd"):
        play(SpiltCan(), "can.two_black", "can.different")
    assert play(CoffeeCan(), "can.two_black", "can.different") == []


class Moving(wandering.Wandering):
    """Its places are ordered."""

    def place(self) -> int:
        return (
            (1 if self.wanderer.state == "b" else 0)
            + (2 if self.wanderer.state == "c" else 0)
            + (3 if self.wanderer.state == "d" else 0)
            + (4 if self.wanderer.state == "e" else 0)
        )

    @each_step("it goes on, or goes home")
    def goes_on(self, place: int) -> bool:
        return self.place() > place or self.place() == 0


def test_verdicts_are_those_of_the_definition() -> None:
    verdicts = []
    for seed in range(24):
        system, graph, _ = wandering.drawn(seed, Moving)
        reached = naive.reachable(graph, ["a"], {*graph})
        is_broken = any(to < at and to != "a" for at in reached for _, to in graph[at])
        for engine in ENGINES if seed < 1 else ("python",):
            result = check(system, engine=engine)
            assert (result.counterexample is not None) == is_broken, (seed, engine)
        verdicts.append(is_broken)
    assert 1 < sum(verdicts) < 23


class Queue(small.House):
    """Claims something of each visitor."""

    def is_waiting(self, visitor: int) -> bool:
        return self.visitor[visitor].state == "wanting"

    def is_in(self, visitor: int) -> bool:
        return self.visitor[visitor].state == "inside"

    @each_step("who gets in has waited", each="visitor")
    def has_waited(self, visitor: int, is_waiting: bool, is_in: bool) -> bool:
        return is_waiting or is_in or not self.is_in(visitor)


class Rude(Queue):
    """Claims too much of each visitor."""

    @each_step("who waits does not get in", each="visitor")
    def is_refused(self, visitor: int, is_waiting: bool) -> bool:
        return not is_waiting or not self.is_in(visitor)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("symmetry", [False, True])
def test_a_claim_about_each_member_of_an_index_set(engine: str, symmetry: bool) -> None:
    assert_passes(Queue, engine=engine, symmetry=symmetry)
    found = check(Rude, engine=engine, symmetry=symmetry).counterexample
    assert found is not None
    assert (found.property, len(found.steps)) == ("is_refused", 2)


def test_what_a_claim_cannot_measure_is_refused() -> None:
    def wrong(self: Any, weight: int) -> bool:
        return weight > 0

    def unnamed(self: Any, guest: int) -> bool:
        return guest > 0

    with pytest.raises(DeclarationError, match="takes 'weight', but Heavy has no method"):
        type("Heavy", (CoffeeCan,), {"wrong": each_step("it weighs something")(wrong)})
    claim = each_step("it weighs something", each="visitor")
    with pytest.raises(DeclarationError, match="the first parameter is named for it"):
        type("Unnamed", (small.House,), {"unnamed": claim(unnamed)})
