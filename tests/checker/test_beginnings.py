"""A system that begins in one of many states is checked from each of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any, ClassVar

import pytest

from epochgate.fsm import ANY, STAY, Array, Bool, Channel, DeclarationError, Int, Row, machines
from epochgate.fsm.checker import Verdict, check, simulate
from epochgate.fsm.checker.engines.choice import ENGINES
from epochgate.fsm.checker.report import report
from epochgate.fsm.checker.schedule import ClaimBroken, StepUnknown, play
from epochgate.fsm.closed import ClosedSystem, Environment, Step, initially
from epochgate.fsm.system import System
from epochgate.reports.sequence import sequence_diagram
from tests.checker.beginnings import Cells, HopefulCells, TokenRing
from tests.checker.test_regression import the_test_in, written

ON = "on"


class Die(Environment):
    """A number, and a step that does nothing."""

    STATES, INITIAL = (ON,), ON

    system: Any

    number: int = Int("bound", start=ANY)

    ROWS = (Row("tick", ON, STAY, None, "keep", "time passes"),)

    def keep(self) -> None:
        self.number = self.number


class Dice(ClosedSystem):
    """One die."""

    CONSTANTS: ClassVar[dict[str, int]] = {"bound": 5}
    STEPS = (Step("die", "tick"),)

    die: Die = machines(Die)


def numbers(system: Any) -> tuple[int, ...]:
    """Return what all engines count."""
    results = [check(system, engine=engine) for engine in ENGINES]
    if not any(p.kind in ("eventually", "leads_to") for p in system.properties()):
        results += [check(system, workers=2), check(system, order="depth")]
    found = {(r.states, r.transitions, r.terminal_states, r.verdict) for r in results}
    assert len(found) == 1
    assert len({r.depth for r in results if r.order == "breadth"}) == 1
    return found.pop()[:3]


def test_all_engines_begin_in_each_combination() -> None:
    assert numbers(Dice()) == (6, 6, 0)
    assert numbers(TokenRing())[0] == 4**3
    assert check(TokenRing()).verdict is Verdict.PASS
    # Each cell is on or off, of age 1 or 2, fed or not: 64 less 16 without a fed one, and a cell
    # that dies leads to another state in which the other one is fed.
    assert numbers(Cells())[0] == 48 + 4 + 4


def test_the_published_sizes_are_a_matter_of_seconds() -> None:
    ring = check(TokenRing(size=6, top=5), engine="python", max_states=6**6)
    assert ring.states >= 6**6
    many = check(Dice(bound=(1 << 16) - 1))
    assert (many.states, many.depth) == (1 << 16, 0)


def test_interchangeable_beginnings_count_once() -> None:
    found = [check(Cells(cells=3), symmetry=True, engine=engine) for engine in ENGINES]
    assert len({(r.states, r.transitions) for r in found}) == 1
    assert found[0].states < check(Cells(cells=3)).states


@pytest.mark.parametrize("engine", ENGINES)
def test_a_counterexample_says_what_it_begins_with_and_is_played(
    engine: str, tmp_path: Path
) -> None:
    result = check(HopefulCells, engine=engine)
    found = result.counterexample
    assert found is not None
    assert [step.label for step in found.steps] == ["cell[1].die"]
    assert (found.begins["cell[1].age"], found.begins["cell[1].is_fed"]) == (2, False)
    assert "from the initial state with cell[0].state on, cell[0].age 1" in report("it", result)
    assert "begins with cell[0].state on" in sequence_diagram("it", result)
    with pytest.raises(ClaimBroken, match="every cell lives"):
        play(HopefulCells(), "cell[1].die", begins=found.begins)
    with pytest.raises(StepUnknown, match=r"no field 'cell\[7\].age' to begin with"):
        play(HopefulCells(), begins={"cell[7].age": 1})
    with pytest.raises(ClaimBroken):
        the_test_in(written(HopefulCells, result, tmp_path), tmp_path)()


def test_walks_begin_anywhere_and_alike_with_every_engine() -> None:
    found = [simulate(HopefulCells, seed=3, engine=engine) for engine in ENGINES]
    assert {r.verdict for r in found} == {Verdict.FAIL}
    ways = [r.counterexample for r in found]
    assert ways[0] == ways[1] == ways[2]
    assert len({str(simulate(Dice, steps=3, walk_max=1, seed=s).states) for s in range(3)}) == 1


def test_items_of_an_array_begin_differently() -> None:
    class Three(Environment):
        STATES, INITIAL = (ON,), ON
        system: Any
        marks: list[int] = Array(Int(5), "size", start=[1, range(2, 4), 5])
        ROWS = (Row("tick", ON, STAY, "is_odd", "swap", "time passes"),)

        def is_odd(self) -> bool:
            return self.marks[0] == 1

        def swap(self) -> None:
            self.marks[0] = self.marks[1]

    class Threes(ClosedSystem):
        CONSTANTS: ClassVar[dict[str, int]] = {"size": 3}
        STEPS = (Step("three", "tick"),)
        three: Three = machines(Three)

    assert numbers(Threes()) == (4, 2, 2)
    assert Threes().three.marks == [1, 2, 5]
    with pytest.raises(DeclarationError, match="has 2 items, but `start` gives it 3"):
        check(Threes(size=2))


@pytest.mark.parametrize(
    ("declare", "told"),
    [
        (lambda: Int("bound", start=()), r"cannot start as \(\)"),
        (lambda: Int("bound", start="all"), "or ANY for each number"),
        (lambda: Bool("yes"), "write True, False or ANY"),
        (lambda: Array(Channel("a", "b"), "size", start=[1]), "they begin alike"),
    ],
)
def test_a_wrong_start_is_refused_where_it_is_declared(declare: Any, told: str) -> None:
    with pytest.raises(DeclarationError, match=told):
        declare()


def test_only_a_closed_system_begins_in_several_states() -> None:
    with pytest.raises(DeclarationError, match="number may begin with one of several values"):

        class Real(System):
            CONSTANTS: ClassVar[dict[str, int]] = {"bound": 5}
            die: Die = machines(Die)

    with pytest.raises(DeclarationError, match="combinations of what its fields may begin with"):
        check(Cells(cells=12))
    with pytest.raises(DeclarationError, match="may start as any of"):
        check(Dice(bound=1 << 30))

    class Impossible(Dice):
        @initially("a number is greater than each")
        def is_none(self) -> bool:
            return self.die.number > 5

    with pytest.raises(DeclarationError, match=r"no initial state: the system\.is_none hold"):
        check(Impossible)
    with pytest.raises(DeclarationError, match="INITIAL 'on' is not among STARTS"):

        class Lamp(Environment):
            STATES, INITIAL = (ON, "off"), ON
            STARTS = ("off",)
            ROWS = (
                Row("flip", ON, "off", None, None, "x"),
                Row("flip", "off", ON, None, None, "y"),
            )
