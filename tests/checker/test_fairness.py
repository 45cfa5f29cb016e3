"""Claims about runs without end agree with their definitions, on systems with random tables."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import ClassVar

import pytest

from epochgate.fsm import ANY, STAY, DeclarationError, Int, Machine, Row, Trigger, machines
from epochgate.fsm.checker import Verdict, check
from epochgate.fsm.checker.asserting import assert_fails, assert_passes
from epochgate.fsm.checker.report import report
from epochgate.fsm.checker.result import Counterexample
from epochgate.fsm.checker.schedule import ClaimBroken, play
from epochgate.fsm.closed import (
    ClosedSystem,
    Fairness,
    Step,
    eventually,
    leads_to,
    strongly_fair,
    weakly_fair,
)
from examples.alternating_bit import AlternatingBit
from tests.checker import naive, small_systems as small, wandering
from tests.checker.any_beginning import AnyBeginning
from tests.checker.naive import Demand, Graph
from tests.checker.token_ring import TokenRing

COMPILED = 2
"""Systems that are compiled to machine code as well."""
SEEDS = [24, pytest.param(600, marks=pytest.mark.extended)]
Broken = Callable[[Graph, list[Demand]], bool]


def never_far(graph: Graph, demands: list[Demand]) -> bool:
    return naive.stays(graph, ["a"], {*graph} - {"d", "e"}, demands)


def never_beyond_b(graph: Graph, demands: list[Demand]) -> bool:
    starts = naive.reachable(graph, ["a"], {*graph}) & {"b"}
    return naive.stays(graph, starts, {*graph} - {"d", "e"}, demands)


def never_back(graph: Graph, demands: list[Demand]) -> bool:
    starts = naive.reachable(graph, ["a"], {*graph}) - {"d", "e"}
    return naive.stays(graph, starts, {*graph} - {"d", "e"}, demands)


def never_settled(graph: Graph, demands: list[Demand]) -> bool:
    return naive.stays(
        graph, ["a"], {*graph}, demands, recurs=lambda states: bool(states & {"a", "b"})
    )


CLAIMS: list[tuple[type[wandering.Wandering], Broken]] = [
    (wandering.GetsFar, never_far),
    (wandering.GoesOnFromB, never_beyond_b),
    (wandering.ComesBack, never_back),
    (wandering.Settles, never_settled),
]


@pytest.mark.parametrize("seeds", SEEDS)
@pytest.mark.parametrize(("claimed", "is_broken"), CLAIMS, ids=lambda one: one.__name__)
def test_verdicts_are_those_of_the_definitions(
    claimed: type[wandering.Wandering], is_broken: Broken, seeds: int
) -> None:
    verdicts = []
    for seed in range(seeds):
        system, graph, demands = wandering.drawn(seed, claimed)
        for engine in ("llvm", "python", "interpreted") if seed < COMPILED else ("python",):
            found = check(system, engine=engine).counterexample
            assert (found is not None) == is_broken(graph, demands), (seed, engine)
            if found is not None:
                assert_fair(found, graph, demands)
        verdicts.append(found is None)
    assert seeds / 8 < sum(verdicts) < seeds * 7 / 8  # both verdicts are tried


def assert_fair(found: Counterexample, graph: Graph, demands: list[Demand]) -> None:
    """Follow the run, and look at the loop alone: it does all that is demanded."""
    assert found.cycle is not None
    state = found.initial["wanderer"]["state"]
    states = [state]
    for step in found.steps:
        state = step.after["wanderer"]["state"]
        assert (step.trigger, state) in graph[states[-1]]
        states.append(state)
    loop, steps = states[found.cycle :], found.steps[found.cycle :]
    assert loop[0] == loop[-1]
    taken = {step.trigger for step, at, to in zip(steps, loop, loop[1:], strict=False) if at != to}
    for kind, meant in demands:
        possible = [any(s in meant and to != at for s, to in graph[at]) for at in loop]
        assert taken & meant or not (any(possible) if kind == "strong" else all(possible))


def test_a_wire_that_loses_needs_strong_fairness() -> None:
    assert_passes(AlternatingBit)
    for given in ("deliver", "answer"):
        steps = tuple(
            replace(step, is_strongly_fair=step.is_strongly_fair and step.trigger != given)
            for step in AlternatingBit.STEPS
        )
        result = assert_fails(type("Weaker", (AlternatingBit,), {"STEPS": steps}))
        found = result.counterexample
        assert found is not None
        assert found.cycle is not None
        assert f"wire.{given} (weak)" in found.fairness[0]
        assert "which strong fairness would exclude" in found.fairness[0]
        assert given not in {step.trigger for step in found.steps[found.cycle :]}


def test_states_and_verdicts_are_those_of_tlc() -> None:
    # MCAlternatingBit of the TLA+ examples: 240 distinct states, and SentLeadsToRcvd holds.
    result = assert_passes(AnyBeginning)
    assert result.states == 240
    # TokenRing: 46,656 distinct of 248,832 states, the initial ones among them.
    result = assert_passes(TokenRing)
    assert (result.states, result.states + result.transitions) == (46_656, 248_832)
    found = assert_fails(TokenRing(nodes=4, numbers=2)).counterexample  # fewer than its assumption
    assert found is not None
    assert found.message.startswith("not for good: there is one token (it does not hold ")


def test_the_lasso_is_shown_as_documented() -> None:
    steps = tuple(replace(step, is_strongly_fair=False) for step in AlternatingBit.STEPS)
    weaker = type("Weaker", (AlternatingBit,), {"STEPS": steps})
    printed = report("weaker", check(weaker)).splitlines()
    page = (Path(__file__).parents[2] / "docs/temporal.md").read_text("utf-8")
    [shown] = re.findall(r"```text\n(not leads to is_ready.*?)```", page, re.DOTALL)
    assert [line for line in printed if line in shown.splitlines()] == shown.splitlines()


def unfair_steps(system: type[ClosedSystem]) -> tuple[Step, ...]:
    return tuple(replace(step, is_fair=False) for step in system.STEPS)


@pytest.mark.parametrize(
    ("demanded", "rests"),
    [
        ((weakly_fair("visitor.enter"), weakly_fair("visitor.leave")), "any visitor.leave"),
        (
            (weakly_fair("visitor.enter", "visitor.leave"),),
            "any visitor.enter or any visitor.leave",
        ),
        ((weakly_fair(ANY),), "any step"),
        (
            (strongly_fair("visitor.leave", "visitor.enter", each="visitor"),),
            "visitor[0].enter or visitor[0].leave, visitor[1].enter or visitor[1].leave",
        ),
    ],
)
def test_a_pass_says_on_which_fairness_it_rests(demanded: tuple[Fairness, ...], rests: str) -> None:
    members = {"STEPS": unfair_steps(small.PoliteHouse), "FAIRNESS": demanded}
    result = check(type("House", (small.PoliteHouse,), members))
    [claim] = [p for p in result.properties if p.kind == "leads_to"]
    assert claim.verdict is Verdict.PASS
    kind = "strong" if demanded[0].is_strong else "weak"
    assert claim.detail == f"with {kind} fairness of {rests}"
    assert result.fairness == [f"{kind}: {summary_of(demanded)}"]
    assert result.fairness[0] in " ".join(report("house", result).split())


def summary_of(demanded: tuple[Fairness, ...]) -> str:
    if demanded[0].each:
        return "for each visitor visitor.leave or visitor.enter"
    if demanded[0].steps == (ANY,):
        return "any step"
    return ", ".join(" or ".join(f"any {name}" for name in one.steps) for one in demanded)


def test_a_claim_that_needs_no_fairness_says_so() -> None:
    members = {"STEPS": unfair_steps(small.Counting)}
    result = check(type("Unfair", (Shown,), members))
    assert [p.detail for p in result.properties if p.kind == "leads_to"] == ["without any fairness"]


class Shown(small.Counting):
    """Claims what is so at once."""

    @eventually("it may stop")
    def has_stopped(self) -> bool:
        return True

    @leads_to("what is on is on", then="is_on")
    def is_on(self) -> bool:
        return self.counter.state == "on"


@pytest.mark.parametrize(
    ("demanded", "told"),
    [
        (weakly_fair("visitor.knock"), "names the step 'visitor.knock', but there are"),
        (weakly_fair(), "names no step; name some, or ANY"),
        (
            weakly_fair(ANY, each="room"),
            "for each 'room', but 'visitor.ask' is a step of a machine",
        ),
    ],
)
def test_a_demand_that_cannot_be_meant_is_refused(demanded: Fairness, told: str) -> None:
    with pytest.raises(DeclarationError, match=told):
        type("Refused", (small.House,), {"FAIRNESS": (demanded,)})


def test_a_schedule_without_end_breaks_a_claim_only_if_it_is_fair() -> None:
    steps = tuple(replace(step, is_strongly_fair=False) for step in AlternatingBit.STEPS)
    weaker = type("Weaker", (AlternatingBit,), {"STEPS": steps})
    found = check(weaker).counterexample
    assert found is not None
    labels = [step.label for step in found.steps]
    with pytest.raises(ClaimBroken, match="can repeat for ever"):
        play(weaker(), *labels, cycle=found.cycle, promise=found.property)
    assert play(AlternatingBit(), *labels, cycle=found.cycle, promise=found.property) == []


@pytest.mark.parametrize("claimed", [wandering.ComesBack, wandering.Settles])
def test_a_lasso_of_each_kind_can_be_played(claimed: type[wandering.Wandering]) -> None:
    for seed in range(8):
        system, _, _ = wandering.drawn(seed, claimed)
        found = check(system, engine="python").counterexample
        if found is not None:
            labels = [step.label for step in found.steps]
            with pytest.raises(ClaimBroken):
                play(system(), *labels, cycle=found.cycle, promise=found.property)
            assert "not " in found.message


class Gambler(Machine):
    """Throws until it wins."""

    STATES, INITIAL, TERMINAL = ("in", "out"), "in", ("out",)

    throws: int = Int(1)

    throw: Trigger

    ROWS: ClassVar[tuple[Row, ...]] = (
        Row("throw", "in", STAY, "not is_won", "turn", "once more"),
        Row("throw", "in", "out", "is_won", None, "won"),
    )

    def is_won(self, side: int) -> bool:
        return side == 1

    def turn(self) -> None:
        self.throws = 1 - self.throws


class Gambling(ClosedSystem):
    STEPS: ClassVar[tuple[Step, ...]] = (Step("gambler", "throw", over=((0, 1),)),)
    UNREAD: ClassVar[dict[str, str]] = {"gambler.throws": "so that a throw changes something"}

    gambler: Gambler = machines(Gambler)

    @eventually("the gambler wins")
    def is_out(self) -> bool:
        return self.gambler.state == "out"


@pytest.mark.parametrize("engine", ["llvm", "python", "interpreted"])
@pytest.mark.parametrize("is_strong", [False, True])
def test_fairness_of_a_step_is_none_of_what_it_chooses(engine: str, is_strong: bool) -> None:
    steps = (Step("gambler", "throw", over=((0, 1),), is_strongly_fair=is_strong),)
    found = check(type("Throwing", (Gambling,), {"STEPS": steps}), engine=engine).counterexample
    assert found is not None
    assert [step.label for step in found.steps] == ["gambler.throw(0)"] * 2
    kind = "strong" if is_strong else "weak"
    assert found.fairness == (f"taken in the loop: gambler.throw ({kind}) in step 1",)
