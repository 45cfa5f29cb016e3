"""Choices of the environment: every engine goes every way, and a counterexample says which."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from epochgate.fsm import STAY, DeclarationError, Int, Machine, Row, machines
from epochgate.fsm.checker import Verdict, check, simulate
from epochgate.fsm.checker.engines.choice import ENGINES
from epochgate.fsm.checker.report import report
from epochgate.fsm.checker.schedule import ClaimBroken, StepUnknown, play
from epochgate.fsm.choosing import CHOICES_MAX, Tape
from epochgate.fsm.closed import ClosedSystem, Environment, Step
from epochgate.fsm.system import System
from epochgate.reports.sequence import sequence_diagram
from tests.checker.choices import CheapMarket, Lamps, Market, PoliteLamps
from tests.checker.side_by_side import SideBySide
from tests.checker.test_regression import the_test_in, written

ON = "on"


@pytest.mark.parametrize("system", [Market, Lamps])
def test_every_engine_goes_the_same_ways(system: type[ClosedSystem]) -> None:
    forms = SideBySide(system())
    known = {forms.program.initial}
    waiting, ways = [*known], 0
    while waiting and len(known) < 400:
        state = waiting.pop()
        found = []
        for step in forms.python.enabled(state):
            here = [*forms.python.ways(state, step)]
            assert [*forms.interpreted.ways(state, step)] == here
            found += [(step, after) for _, after in here]
        assert forms.llvm.all_successors(state) == found
        ways += len(found)
        waiting += {after for _, after in found} - known
        known |= {after for _, after in found}
    assert ways > 300


@pytest.mark.parametrize("system", [Market, Lamps])
def test_all_engines_count_the_same(system: type[ClosedSystem]) -> None:
    results = [check(system, engine=engine) for engine in ENGINES]
    results += [check(system, workers=2), check(system, order="depth")]
    assert {r.verdict for r in results} == {Verdict.PASS}
    assert len({(r.states, r.transitions, r.terminal_states) for r in results}) == 1
    assert len({r.depth for r in results[:4]}) == 1


def test_one_of_interchangeable_instances_is_chosen() -> None:
    found = [check(Lamps(lamps=4), symmetry=True, engine=engine) for engine in ENGINES[:2]]
    assert len({(r.states, r.transitions) for r in found}) == 1
    assert 4 * found[0].states < check(Lamps(lamps=4)).states


@pytest.mark.parametrize("engine", ENGINES)
def test_a_counterexample_names_what_was_chosen_and_is_played(engine: str, tmp_path: Path) -> None:
    result = check(CheapMarket, engine=engine)
    assert result.counterexample is not None
    steps = [step.label for step in result.counterexample.steps]
    assert steps == ["stall.take(1, 3)", "stall.sell(1, 5, 8)"]
    assert "2. stall.sell(1, 5, 8): a customer comes" in report("it", result)
    drawn = sequence_diagram("it", result)
    assert "2. sell(1, 5, 8)<br/>(a customer comes)" in drawn
    with pytest.raises(ClaimBroken, match="no price is 8"):
        play(CheapMarket(), *steps)
    with pytest.raises(ClaimBroken):
        the_test_in(written(CheapMarket, result, tmp_path), tmp_path)()
    # What cannot be chosen is left out, and changes nothing.
    assert play(CheapMarket(), "stall.take(1, 3)", "stall.sell(2)") == ["stall.sell(2)"]
    assert play(CheapMarket(), "stall.take(0, 1)") == ["stall.take(0, 1)"]
    assert play(CheapMarket(), "stall.take", "stall.shut") == []
    with pytest.raises(StepUnknown):
        play(CheapMarket(), "stall.steal(1)")


def test_a_fault_names_the_way_to_it() -> None:
    for engine in ENGINES:
        result = check(Market(paid_max=9), engine=engine)
        found = result.counterexample
        assert found is not None
        assert (found.kind, found.steps[-1].label) == ("range", "stall.sell(1, 6)")


@pytest.mark.parametrize("engine", ENGINES)
def test_runs_without_end_choose(engine: str) -> None:
    found = check(PoliteLamps, engine=engine).counterexample
    assert found is not None
    with pytest.raises(ClaimBroken, match="the first lamp is switched off"):
        play(
            PoliteLamps(),
            *[step.label for step in found.steps],
            cycle=found.cycle,
            promise="is_switched_off",
        )


def test_walks_choose_alike_with_every_engine() -> None:
    found = [simulate(CheapMarket, seed=5, engine=engine) for engine in ENGINES]
    ways = [r.counterexample for r in found]
    assert ways[0] is not None
    assert ways[0] == ways[1] == ways[2]


def test_a_tape_goes_every_way_once() -> None:
    tape, found = Tape(), Counter[tuple[int, ...]]()
    tape.begin()
    while True:
        first = tape.value(range(3))
        found[(first, *(tape.value((4, 4, 7)) for _ in range(first)))] += 1
        if not tape.advance():
            break
    assert len(found) == sum(2**n for n in range(3))
    assert {*found.values()} == {1}


class Chooser(Environment):
    """Chooses in one way or another."""

    STATES, INITIAL = (ON,), ON

    system: Any

    number: int = Int(100)
    low: int = Int(9)

    ROWS = (Row("tick", ON, STAY, None, "choose", "time passes"),)

    def choose(self) -> None:
        self.number = self.one_of(range(self.low, 3))
        self.low += 1


class Choosers(ClosedSystem):
    """One of them."""

    STEPS = (Step("chooser", "tick"),)

    chooser: Chooser = machines(Chooser)


class Many(Chooser):
    """Chooses more often than a step may."""

    ROWS = (Row("tick", ON, STAY, None, "choose_often", "time passes"),)

    def choose_often(self) -> None:
        for _ in range(CHOICES_MAX + 1):
            self.number = self.one_of((1,))


class Wide(Chooser):
    """Can be taken in too many ways."""

    ROWS = (Row("tick", ON, STAY, None, "choose_much", "time passes"),)

    def choose_much(self) -> None:
        for _ in range(3):
            self.number = self.one_of(range(50))


class OfMany(ClosedSystem):
    """One of them."""

    STEPS = (Step("many", "tick"),)

    many: Many = machines(Many)


class OfWide(ClosedSystem):
    """One of them."""

    STEPS = (Step("wide", "tick"),)

    wide: Wide = machines(Wide)


@pytest.mark.parametrize("engine", ENGINES)
def test_what_cannot_be_chosen_is_a_violation(engine: str) -> None:
    found = check(Choosers, engine=engine).counterexample
    assert found is not None
    assert (found.kind, len(found.steps)) == ("choice", 4)
    assert "chooser: `self.one_of(range(self.low, 3))` has nothing to choose" in found.message
    with pytest.raises(ClaimBroken, match="nothing to choose"):
        play(Choosers(), *[step.label for step in found.steps])
    found = check(OfMany, engine=engine).counterexample
    assert found is not None
    assert (found.kind, len(found.steps)) == ("crowded", 1)


@pytest.mark.parametrize("engine", ["llvm", "python"])
def test_a_step_with_too_many_ways_is_a_violation(engine: str) -> None:
    found = check(OfWide, engine=engine).counterexample
    assert found is not None
    assert "more than 64 values, or has more than 65,536 ways" in found.message


def refused(*, rows: Any = (), bases: Any = (Environment,), **methods: Any) -> None:
    body = {"STATES": (ON,), "INITIAL": ON, "number": Int(9), "ROWS": rows, **methods}
    type("Refused", bases, body)


def guess(self: Any) -> bool:
    return self.one_of(range(2)) == 1  # type: ignore[no-any-return]  # of any machine


def guess_nothing(self: Any) -> None:
    self.number = self.one_of(self.number)


def guess_pairs(self: Any) -> None:
    self.number = self.one_of(a + b for a in range(2) for b in range(2))


@pytest.mark.parametrize(
    ("declare", "told"),
    [
        (
            lambda: refused(rows=(Row("tick", ON, STAY, "guess", None, "x"),), guess=guess),
            "it chooses a value, although the guard 'guess' runs it",
        ),
        (
            lambda: refused(
                rows=(Row("tick", ON, STAY, None, "guess_nothing", "x"),),
                bases=(Machine,),
                guess_nothing=guess_nothing,
            ),
            "only an Environment chooses",
        ),
        (
            lambda: refused(
                rows=(Row("tick", ON, STAY, None, "guess_nothing", "x"),),
                guess_nothing=guess_nothing,
            ),
            r"and not from `self.number`",
        ),
        (
            lambda: refused(
                rows=(Row("tick", ON, STAY, None, "guess_pairs", "x"),), guess_pairs=guess_pairs
            ),
            "with one plain name",
        ),
    ],
)
def test_a_choice_in_the_wrong_place_is_refused(declare: Any, told: str) -> None:
    with pytest.raises(DeclarationError, match=rf"test_choices.py:\d+: Refused.*{told}"):
        declare()


@pytest.mark.parametrize(
    ("over", "told"),
    [
        ((), r"a step gets no arguments, those of `over=\(...\)`; give it a choice for each"),
        (("counts",), "a step gets 1 arguments"),
        (("counts", "prices"), "'prices' is no constant"),
        (("counts", (1, "2")), "is no choice; name a constant"),
    ],
)
def test_a_step_that_chooses_wrongly_is_refused(over: Any, told: str) -> None:
    with pytest.raises(DeclarationError, match=told):
        type("Wrong", (Market,), {"STEPS": (Step("stall", "take", over=over),)})
    with pytest.raises(DeclarationError, match="nothing to choose from"):
        check(Market(counts=0))


def test_in_production_nothing_is_chosen() -> None:
    class Real(System):
        chooser: Chooser = machines(Chooser)

    with pytest.raises(AttributeError):
        Real().chooser.choose()
