"""A system implements another: each of its steps is one of it, or changes nothing there."""

from __future__ import annotations

import random
import re
from pathlib import Path
from typing import Any

import pytest

from epochgate.fsm import Ignore, Row, machines
from epochgate.fsm.checker import Verdict, check
from epochgate.fsm.checker.asserting import assert_passes
from epochgate.fsm.checker.checking import CannotCheck
from epochgate.fsm.checker.refinement import MappingFailed
from epochgate.fsm.checker.report import report
from epochgate.fsm.checker.schedule import ClaimBroken, play
from epochgate.fsm.closed import ClosedSystem, implements
from examples.alternating_bit import AlternatingBit, Handover, Sender
from tests.checker import naive, wandering
from tests.checker.any_beginning import AnyBeginning, AnyHandover
from tests.checker.dice import GoodThrow
from tests.checker.naive import Graph

ENGINES = ("llvm", "python", "interpreted")


@pytest.mark.parametrize("engine", ENGINES)
def test_the_alternating_bit_is_a_transfer_without_a_wire(engine: str) -> None:
    result = assert_passes(AlternatingBit, engine=engine)
    [claim] = [p for p in result.properties if p.kind == "implements"]
    assert (claim.verdict, claim.detail) == (Verdict.PASS, "")
    assert_passes(AnyBeginning, engine=engine)
    # ABCorrectness of the TLA+ examples has 20 distinct states.
    assert check(AnyHandover, engine=engine).states == 20


class Hasty(Sender):
    """Takes any answer for its own."""

    ROWS = (
        *Sender.ROWS[:2],
        Row("acknowledged", "waiting", "ready", "is_any", None, "there is an answer"),
        Ignore("acknowledged", "ready", "is_any", "once more"),
    )

    def is_any(self, bit: int) -> bool:
        return bit >= 0


class HastyBit(AlternatingBit):
    """Goes on before the value has arrived."""

    sender: Sender = machines(Hasty)

    def has_arrived(self) -> bool:
        return True


@pytest.mark.parametrize("engine", ENGINES)
def test_the_step_that_the_specification_does_not_have_is_named(engine: str) -> None:
    result = check(HastyBit, engine=engine)
    found = result.counterexample
    assert found is not None
    assert (found.kind, found.property) == ("implements", "as_handover")
    assert found.message == (
        "not implemented: each value gets over once, and in order: wire.answer is no step of "
        "Handover, where it changes transfer.state from sent to ready; "
        "possible there: transfer.arrive"
    )
    assert found.steps[-1].label == "wire.answer"
    assert found.steps[-1].changed["sender.state"] == ("waiting", "ready")
    labels = [step.label for step in found.steps]
    assert len(labels) == 3
    with pytest.raises(ClaimBroken, match=r"wire\.answer is no step of Handover"):
        play(HastyBit(), *labels)
    verdicts = {p.kind: p.verdict for p in result.properties}
    assert verdicts["implements"] is Verdict.FAIL
    assert verdicts["leads_to"] is Verdict.BOUNDED


@pytest.mark.parametrize("engine", ENGINES)
def test_a_depth_first_search_looks_at_each_step(engine: str) -> None:
    found = check(HastyBit, engine=engine, order="depth").counterexample
    assert found is not None
    with pytest.raises(ClaimBroken, match=re.escape(found.message.partition(";")[0])):
        play(HastyBit(), *[step.label for step in found.steps])


def test_several_workers_look_at_each_step() -> None:
    safe = type("Safe", (HastyBit,), {"is_waiting": lambda self: True})
    found = check(safe, workers=2).counterexample
    assert found is not None
    assert len(found.steps) == 3


def implementing(
    system: type[wandering.Wandering], specification: type[ClosedSystem], table: dict[str, str]
) -> type[wandering.Wandering]:
    def as_other(self: Any, other: Any) -> None:
        other.wanderer.state = table[self.wanderer.state]

    claim = implements("it goes as the other", specification)
    return type("Implementing", (system,), {"as_other": claim(as_other)})


def is_implemented(graph: Graph, other: Graph, table: dict[str, str]) -> bool:
    return table["a"] == "a" and all(
        table[at] == table[to] or table[to] in {goal for _, goal in other[table[at]]}
        for at in naive.reachable(graph, ["a"], {*graph})
        for _, to in graph[at]
    )


@pytest.mark.parametrize("seeds", [24, pytest.param(600, marks=pytest.mark.extended)])
def test_verdicts_are_those_of_the_definition(seeds: int) -> None:
    verdicts = []
    for seed in range(seeds):
        draw = random.Random(seed)
        system, graph, _ = wandering.drawn(seed, wandering.Wandering)
        specification, other, _ = wandering.drawn(
            draw.choice((seed, seed, seed + 1000)), wandering.Wandering
        )
        table = {place: place for place in wandering.PLACES}
        if draw.random() < 0.5:
            table[draw.choice(wandering.PLACES)] = draw.choice(wandering.PLACES)
        expected = is_implemented(graph, other, table)
        for engine in ENGINES if seed < 1 else ("python",):
            result = check(implementing(system, specification, table), engine=engine)
            assert (result.counterexample is None) == expected, (seed, engine)
        verdicts.append(expected)
    assert seeds / 6 < sum(verdicts) < seeds * 5 / 6


@pytest.mark.parametrize("engine", ENGINES)
def test_a_way_of_the_specification_that_fails_hinders_no_other(engine: str) -> None:
    assert_passes(GoodThrow, engine=engine)


def test_a_search_that_goes_on_looks_again_at_how_states_are_mapped(tmp_path: Path) -> None:
    path = tmp_path / "search"
    assert_passes(AlternatingBit, resume=path)
    assert_passes(AlternatingBit, resume=path)  # and is not vacuous

    def as_handover(self: Any, other: Any) -> None:
        AlternatingBit.as_handover(self, other)
        other.transfer.value = self.choices - 1 - other.transfer.value

    claim = implements("each value gets over once, and in order", Handover, choices="choices")
    turned = type("Turned", (AlternatingBit,), {"as_handover": claim(as_handover)})
    found = check(turned, resume=path).counterexample
    assert found is not None
    assert (found.kind, found.steps) == ("implements", ())


def test_what_changes_nothing_of_its_specification_is_vacuous() -> None:
    system, *_ = wandering.drawn(1, wandering.Wandering)
    table = dict.fromkeys(wandering.PLACES, "a")
    result = check(implementing(system, system, table), engine="python")
    [claim] = result.properties
    assert claim.verdict is Verdict.VACUOUS
    assert claim.detail == "no step changes anything of DrawnSystem"


def test_a_system_that_begins_otherwise_is_told_without_a_step() -> None:
    system, *_ = wandering.drawn(1, wandering.Wandering)
    table = dict.fromkeys(wandering.PLACES, "b")
    found = check(implementing(system, system, table), engine="python").counterexample
    assert found is not None
    assert found.steps == ()
    assert "DrawnSystem does not begin with wanderer.state b" in found.message


def test_a_value_that_the_specification_does_not_hold_is_told() -> None:
    def as_more(self: Any, other: Any) -> None:
        other.transfer.value = 7 if self.sender.state == "waiting" else 0

    claim = implements("it has more", Handover, choices=2)
    found = check(type("More", (AlternatingBit,), {"as_handover": claim(as_more)})).counterexample
    assert found is not None
    assert "user[0].give leads to what stands for no state of Handover: " in found.message


def test_a_mapping_that_raises_and_one_up_to_symmetry_are_refused() -> None:
    def broken(self: Any, other: Any) -> None:
        other.transfer.value = self.nothing

    claim = implements("it breaks", Handover)
    with pytest.raises(MappingFailed, match="which maps Broken to Handover, raises Attribute"):
        check(type("Broken", (AlternatingBit,), {"as_handover": claim(broken)}))
    with pytest.raises(CannotCheck, match="what an instance stands for may depend on which it is"):
        check(AlternatingBit, symmetry=True)


def test_the_broken_step_is_shown_as_documented() -> None:
    printed = report("hasty", check(HastyBit)).splitlines()
    page = (Path(__file__).parents[2] / "docs/temporal.md").read_text("utf-8")
    [shown] = re.findall(r"```text\n(not implemented.*?)```", page, re.DOTALL)
    assert [line for line in printed if line in shown.splitlines()] == shown.splitlines()
