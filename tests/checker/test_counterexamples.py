"""A fault is found by every engine, by the same shortest way, which reads well."""

from __future__ import annotations

import json
from typing import Any

import pytest

from epochgate.fsm import DeclarationError, machines
from epochgate.fsm.checker import Verdict, check, simulate
from epochgate.fsm.checker.asserting import assert_fails, assert_passes
from epochgate.fsm.checker.report import report
from epochgate.fsm.closed import ClosedSystem
from tests.checker import small_systems as small
from tests.checker.broken import LateAcknowledgement, NoValve
from tests.checker.relay import READY, Confused, Referee, Relay, Runner

ENGINES = ("llvm", "python", "interpreted")
VIOLATIONS: tuple[tuple[type[ClosedSystem], str, str, int], ...] = (
    (small.OutOfRange, "range", "counter.count leaves its range 0 to 5", 6),
    (small.Overflowing, "overflow", "counter.posted overflows: it holds at most 2", 3),
    (small.Starved, "empty", "counter.posted is empty", 1),
    (small.Refusing, "refused", "counter refuses 'stop': no row holds", 2),
    (
        small.Repeated,
        "changed",
        "counter.repeat has to change nothing, and changes counter.count",
        5,
    ),
    (small.Deadlocked, "deadlock", "deadlock: no step is possible, but not: it has stopped", 5),
    (small.RaisingProperty, "assertion", "the system: the search looks no further than this", 3),
)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(("system", "kind", "message", "steps"), VIOLATIONS)
def test_a_violation_names_what_where_and_how(
    engine: str, system: type[ClosedSystem], kind: str, message: str, steps: int
) -> None:
    result = assert_fails(system, steps=steps, engine=engine)
    found = result.counterexample
    assert found is not None
    assert (result.verdict, found.kind, found.message) == (Verdict.FAIL, kind, message)
    assert found.file == small.__file__
    assert found.line > 0


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(
    ("system", "coordinators", "steps"), [(LateAcknowledgement, 1, 17), (NoValve, 1, 9)]
)
def test_all_engines_find_the_same_shortest_way(
    engine: str, system: type[ClosedSystem], coordinators: int, steps: int
) -> None:
    made = assert_fails(system(C=coordinators), steps=steps, engine=engine)
    reference = check(system(C=coordinators), engine="python")
    assert made.counterexample == reference.counterexample
    assert (made.states, made.transitions) == (reference.states, reference.transitions)


@pytest.mark.parametrize("engine", ENGINES)
def test_machines_that_trigger_each_other_without_end_are_found(engine: str) -> None:
    found = assert_fails(small.Endless, steps=1, engine=engine).counterexample
    assert found is not None
    assert (found.kind, found.steps[0].label) == ("endless", "counter.tick")


def test_without_a_valve_two_coordinators_need_ten_steps() -> None:
    assert_fails(NoValve, steps=10)


def test_two_workers_find_a_way_as_short() -> None:
    assert_fails(LateAcknowledgement(C=1), steps=17, workers=2)


def test_a_step_tells_who_acts_why_what_changes_and_what_is_in_flight() -> None:
    found = assert_fails(NoValve(C=1), steps=9).counterexample
    assert found is not None
    step = found.steps[2]
    assert (step.number, step.label, step.because) == (
        3,
        "gateway[0][0].send",
        "no snapshot lies between",
    )
    assert step.changed == {"subtask[0].wire": ([], [0]), "gateway[0][0].sent": (0, 1)}
    assert step.channels == {"subtask[0].wire": [0]}
    assert [row.trigger for row in found.steps[1].rows] == ["future"]
    assert step.before["gateway[0][0]"]["sent"] == 0


def test_a_step_that_moves_other_machines_tells_their_rows() -> None:
    found = assert_fails(small.Refusing).counterexample
    assert found is not None
    passed = check(small.House, max_depth=3)
    assert passed.counterexample is None
    broken = assert_fails(LateAcknowledgement(C=1)).counterexample
    assert broken is not None
    abort = next(step for step in broken.steps if step.trigger == "abort")
    assert abort.rows[0].trigger == "abort"
    assert len(abort.rows) > 1


def test_a_step_tells_its_effects_in_order_with_the_machines_they_left() -> None:
    result = assert_fails(Confused, steps=1)
    assert result.counterexample is not None
    (step,) = result.counterexample.steps
    assert step.effects == (
        "runner[0].line.cross(number=1)",
        "runner[0].line.cross(number=2)",
        "runner[0].line.cross(number=3)",
        "runner[1].stand.bow(depth=1)",
        "runner[2].stand.bow(depth=2)",
        "runner[0].stand.bow(depth=0)",
    )
    assert [row.trigger for row in step.rows][:6] == [
        "start",
        "clear",
        "take",
        "write",
        "write",
        "thank",
    ]
    assert "\n         effect: runner[1].stand.bow(depth=1)\n" in report("relay", result)
    assert json.loads(result.json_text())["counterexample"]["steps"][0]["effects"] == [
        *step.effects
    ]


class Rude(Runner):
    """Fails where it is thanked."""

    def answer(self) -> None:
        self.system.track.write(3)
        assert self.state == READY, "runners are rude"


class RudeRelay(Relay):
    runner = machines(Rude)


def test_a_step_that_fails_tells_the_effects_that_it_came_to() -> None:
    found = assert_fails(RudeRelay, steps=1).counterexample
    assert found is not None
    assert found.steps[0].effects == tuple(f"runner[0].line.cross(number={n})" for n in (1, 2, 3))


class Echoing(Referee):
    """Fires its own trigger at once, without end."""

    def listen(self, bows: int) -> None:
        self.hear(bows)


class EchoingRelay(Relay):
    referee = machines(Echoing)


@pytest.mark.parametrize("engine", ENGINES)
def test_effects_and_events_that_lead_to_each_other_without_end_are_found(engine: str) -> None:
    found = assert_fails(small.Rally, steps=1, engine=engine).counterexample
    assert found is not None
    assert (found.kind, found.file) == ("endless", small.__file__)
    assert {*found.steps[0].effects} == {"server.net.ball()"}


@pytest.mark.parametrize("engine", ENGINES)
def test_exactly_as_many_triggers_as_allowed_are_not_endless(engine: str) -> None:
    assert check(small.Descent(end=6), engine=engine).counterexample is None
    found = assert_fails(small.Descent(end=7), engine=engine).counterexample
    assert found is not None
    assert found.kind == "endless"


@pytest.mark.parametrize("engine", ENGINES)
def test_triggers_of_the_environment_in_a_circle_are_refused(engine: str) -> None:
    with pytest.raises(DeclarationError, match=r"call each other in a circle: referee\[0\].hear"):
        check(EchoingRelay, engine=engine)


def test_a_result_is_plain_data() -> None:
    found = json.loads(assert_fails(NoValve(C=1)).json_text())
    assert {"system", "constants", "engine", "verdict", "states", "transitions", "depth"} <= {
        *found
    }
    assert {"compile_seconds", "search_seconds", "bytes_per_state", "properties"} <= {*found}
    assert found["verdict"] == "FAIL"
    assert found["constants"] == {"N": 2, "C": 1, "K": 2, "E": 1, "F": 1}
    assert len(found["counterexample"]["steps"]) == 9


def test_a_report_numbers_the_steps() -> None:
    text = report("valve", assert_fails(NoValve(C=1)))
    assert "valve N=2 C=1 K=2 E=1 F=1: FAIL" in text
    assert "    3. gateway[0][0].send: no snapshot lies between" in text
    assert "in flight: subtask[0].wire [0]" in text


@pytest.mark.parametrize("engine", ["llvm", "python", "interpreted"])
def test_a_random_walk_repeats_from_its_seed(engine: str) -> None:
    result = simulate(NoValve(C=1), engine=engine, seed=4, steps=3_000)
    again: Any = simulate(NoValve(C=1), engine="python", seed=4, steps=3_000)
    assert result.verdict is Verdict.FAIL
    assert result.counterexample == again.counterexample
    assert simulate(NoValve(C=1), seed=5, steps=3_000).counterexample != again.counterexample


def test_random_walks_that_find_nothing_prove_nothing() -> None:
    result = simulate(small.House, steps=2_000, seed=1)
    assert (result.verdict, result.transitions) == (Verdict.BOUNDED, 2_000)
    assert "seed 1" in result.stopped


def test_a_failed_assertion_shows_the_report() -> None:
    with pytest.raises(AssertionError, match="no step is possible"):
        assert_passes(small.Deadlocked)
    with pytest.raises(AssertionError, match="expected a violation"):
        assert_fails(small.House)
