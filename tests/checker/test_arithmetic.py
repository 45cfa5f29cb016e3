"""Numbers of either sign, divisors and shifts that are computed, tables, and numbers that wrap."""

from __future__ import annotations

from typing import Any, ClassVar

import pytest

from epochgate.fsm import STAY, Array, DeclarationError, Int, Machine, Row, Trigger, machines
from epochgate.fsm.checker import Verdict, check
from epochgate.fsm.checker.engines.choice import ENGINES
from epochgate.fsm.checker.schedule import ClaimBroken, play
from epochgate.fsm.closed import ClosedSystem, Step
from epochgate.fsm.system import System
from tests.checker.arithmetic import Arithmetic, Dividing, Shifting
from tests.checker.ledgers import Driving, DrivingTooFar, Ledgers
from tests.checker.side_by_side import SideBySide

ON = "on"
THREE = tuple(range(1, 4))


def test_every_engine_computes_what_python_computes() -> None:
    forms = SideBySide(Arithmetic())
    state = forms.program.initial
    for _ in range(3):
        plain = [*forms.python.ways(state, 0)]
        assert len(plain) == 81
        assert [*forms.interpreted.ways(state, 0)] == plain
        assert forms.llvm.all_successors(state) == [(0, after) for _, after in plain]
        state = plain[37][1]


def test_all_engines_reach_the_same() -> None:
    found = [check(Arithmetic, engine=engine, max_depth=1) for engine in ENGINES]
    assert {r.verdict for r in found} == {Verdict.BOUNDED}
    assert len({(r.states, r.transitions) for r in found}) == 1


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(
    ("system", "step", "kind", "told"),
    [
        (Dividing, "divider.share_out", "division", "divider: `9 % self.by` divides by 0"),
        (Shifting, "divider.shift_out", "shift", "divider: `4 >> self.by` shifts by less than 0"),
    ],
)
def test_what_cannot_be_computed_is_a_violation(
    engine: str, system: Any, step: str, kind: str, told: str
) -> None:
    found = check(system, engine=engine).counterexample
    assert found is not None
    assert (found.kind, found.message) == (kind, told)
    assert [one.label for one in found.steps] == [step]
    assert found.begins == {"divider.by": 0 if kind == "division" else -1}
    with pytest.raises(ClaimBroken):
        play(system(), step, begins=found.begins)


class Clock(Machine):
    """Goes round, also where it runs."""

    STATES, INITIAL = (ON,), ON
    system: Any
    hour: int = Int("hours", start=1, low=1, wraps=True)
    tick: Trigger
    ROWS = (Row("tick", ON, STAY, None, "go_on", "an hour is over"),)

    def go_on(self) -> None:
        self.hour += 5


def test_a_number_wraps_in_production_too() -> None:
    class Tower(System):
        CONSTANTS: ClassVar[dict[str, int]] = {"hours": 12}
        clock: Clock = machines(Clock)

    tower, seen = Tower(), []
    for _ in range(4):
        tower.clock.tick()
        tower.settle()
        seen.append(tower.clock.hour)
    assert seen == [6, 11, 4, 9]
    with pytest.raises(DeclarationError, match="hour wraps at 'hours', which is not in CONSTANTS"):
        type("Timeless", (System,), {"clock": machines(Clock)})

    class Checked(ClosedSystem):
        CONSTANTS: ClassVar[dict[str, int]] = {"hours": 12}
        STEPS = (Step("clock", "tick"),)
        UNREAD: ClassVar[dict[str, str]] = {"clock.hour": "it is looked at from outside"}
        clock: Clock = machines(Clock)

    assert {check(Checked, engine=engine).states for engine in ENGINES} == {12}
    with pytest.raises(DeclarationError, match="an item of an array does not wrap"):
        Array(Int("hours", wraps=True), "hours")


def refused(body: Any) -> None:
    def go(self: Any) -> None:
        """Replaced below."""

    rows = (Row("tick", ON, STAY, None, "go", "x"),)
    fields = {"STATES": (ON,), "INITIAL": ON, "number": Int(9), "system": None, "ROWS": rows}
    kind = type("Refused", (Machine,), {**fields, "go": body})
    system = type("Closed", (ClosedSystem,), {"it": machines(kind), "STEPS": (Step("it", "tick"),)})
    check(system)


def shift_far(self: Any) -> None:
    self.number = 1 << self.number * 9


def divide_by_nothing(self: Any) -> None:
    self.number = self.number // (1 - 1)


def take_the_fifth(self: Any) -> None:
    self.number = THREE[5]


def take_the_least(self: Any) -> None:
    self.number = min(self.number)


def take_of_fields(self: Any) -> None:
    self.number = (1, self.number)[0]


@pytest.mark.parametrize(
    ("body", "told"),
    [
        (shift_far, r"shift left by what is known to be at most 62, `min\(n, 62\)`"),
        (divide_by_nothing, "it always divides by 0"),
        (take_the_fifth, "the index 5 is not below 3"),
        (take_the_least, "`min` takes two numbers or more"),
        (take_of_fields, "a tuple holds numbers that are known"),
    ],
)
def test_what_is_never_right_is_refused(body: Any, told: str) -> None:
    with pytest.raises(DeclarationError, match=rf"test_arithmetic.py:\d+: .*{told}"):
        refused(body)


@pytest.mark.parametrize("engine", ENGINES)
def test_values_are_computed_in_the_order_of_python(engine: str) -> None:
    found = check(Ledgers, engine=engine)
    assert (found.verdict, found.states) == (Verdict.PASS, 8)


def test_every_engine_takes_a_parameter_for_what_it_is_given() -> None:
    forms = SideBySide(Ledgers())
    state = forms.program.initial
    for step in (0, 1, 3):
        [(_, after)] = forms.python.ways(state, step)
        assert [*forms.interpreted.ways(state, step)] == [*forms.python.ways(state, step)]
        assert (step, after) in forms.llvm.all_successors(state)
        state = after


@pytest.mark.parametrize("engine", ENGINES)
def test_what_64_bits_do_not_hold_is_refused(engine: str) -> None:
    assert check(Driving, engine=engine).verdict is Verdict.PASS
    told = r"ledgers.py:\d+: .*`miles \* miles` cannot be compiled; 64 bits may not hold it"
    with pytest.raises(DeclarationError, match=told):
        check(DrivingTooFar, engine=engine)
