"""Random walks: the same whatever takes them, and short where they find something."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, ClassVar

import pytest

from epochgate.fsm import STAY, Int, Row, Trigger, machines
from epochgate.fsm.checker import Result, Verdict, check, simulate
from epochgate.fsm.checker.compiler.lowering import Lowering
from epochgate.fsm.checker.engines.choice import EngineUnavailable
from epochgate.fsm.checker.outcome import Walk
from epochgate.fsm.checker.random_numbers import RETURNS_MAX, SKETCH_BITS, hashed, sketched
from epochgate.fsm.checker.schedule import ClaimBroken, play
from epochgate.fsm.checker.shrinking import shortened
from epochgate.fsm.checker.simulation import STUCK_WALKS_MAX
from epochgate.fsm.checker.walking import Tally, Walks
from epochgate.fsm.closed import ClosedSystem, Environment, Step, always, sometimes
from epochgate.models.studies.reference import Reference
from tests.checker import small_systems as small
from tests.checker.beginnings import HopefulCells
from tests.checker.broken import NoValve

NOISE = 300


class Noisy(Environment):
    """Counts up or down at random, and fails once it has counted to 3 while it is loud."""

    STATES, INITIAL = ("quiet", "loud"), "quiet"

    system: NoisyCount

    count: int = Int("most")
    noise: int = Int("noises")

    up: Trigger
    down: Trigger
    shout: Trigger
    hum: Trigger

    ROWS: ClassVar[tuple[Row, ...]] = (
        Row("up", ("quiet", "loud"), STAY, "may_rise", "rise", "one more"),
        Row("down", ("quiet", "loud"), STAY, "may_fall", "fall", "one less"),
        Row("shout", "quiet", "loud", None, None, "it gets loud"),
        Row("shout", "loud", "quiet", None, None, "it gets quiet"),
        Row("hum", ("quiet", "loud"), STAY, None, "make_noise", "nothing to the purpose"),
    )

    def may_rise(self) -> bool:
        return self.count < self.system.most

    def may_fall(self) -> bool:
        return self.count > 0

    def rise(self) -> None:
        self.count += 1

    def fall(self) -> None:
        self.count -= 1

    def make_noise(self) -> None:
        self.noise = (self.noise + 1) % (self.system.noises + 1)


class NoisyCount(ClosedSystem):
    CONSTANTS: ClassVar[dict[str, int]] = {"most": 6, "noises": NOISE}
    STEPS: ClassVar[tuple[Step, ...]] = (
        Step("noisy", "up"),
        Step("noisy", "down"),
        Step("noisy", "shout"),
        Step("noisy", "hum"),
    )
    most: int
    noises: int
    noisy: Noisy = machines(Noisy)

    @always("it is never loud at the top")
    def is_quiet_at_the_top(self) -> bool:
        return self.noisy.count < self.most or self.noisy.state != "loud"

    @sometimes("it is loud")
    def is_loud(self) -> bool:
        return self.noisy.state == "loud"

    @sometimes("it is beyond the top")
    def is_beyond(self) -> bool:
        return self.noisy.count > self.most


class AtRest(small.House):
    STEPS = (Step("visitor", "leave"),)  # type: ignore[assignment]  # fewer than a house has


class WrongAtOnce(small.House):
    @always("a visitor is inside at once")
    def is_inside(self) -> bool:
        return self.is_visited()


def essence(result: Result) -> dict[str, Any]:
    """All of a result but how long it took and how many workers there were."""
    found = result.to_json()
    for name in ("workers", "compile_seconds", "search_seconds", "engine"):
        del found[name]
    found["effort"] = found["effort"].rpartition(";")[0]
    return found


def test_the_result_is_the_same_whatever_the_number_of_workers() -> None:
    for system in (NoisyCount(most=9), Reference(N=2), HopefulCells()):
        alone, *others = (
            essence(simulate(system, steps=150_000, walk_max=500, seed=5, workers=workers))
            for workers in (1, 2, 5)
        )
        assert alone == others[0] == others[1]


def test_the_result_is_the_same_with_every_engine() -> None:
    for system in (small.House(), NoisyCount(), Reference(N=1, C=1)):
        llvm, *others = (
            essence(simulate(system, steps=3_000, seed=2, engine=engine))
            for engine in ("llvm", "python", "interpreted")
        )
        assert llvm == others[0] == others[1]


def test_as_many_steps_are_taken_as_were_asked_for() -> None:
    for steps in (1, 999, 40_000):
        result = simulate(Reference(N=1, C=1), steps=steps, workers=2)
        assert (result.transitions, result.verdict) == (steps, Verdict.BOUNDED)


def test_other_engines_work_alone() -> None:
    with pytest.raises(EngineUnavailable, match="works alone"):
        simulate(small.House, engine="python", workers=2)


def test_the_first_walk_in_their_order_is_the_one_that_is_told() -> None:
    found = [simulate(NoValve(C=1), seed=4, workers=n, is_shortened=False) for n in (1, 2, 4)]
    assert found[0].counterexample == found[1].counterexample == found[2].counterexample
    assert found[0].states == found[1].states == found[2].states


def test_what_is_wrong_at_the_start_is_found_there() -> None:
    for engine in ("llvm", "python"):
        result = simulate(WrongAtOnce, engine=engine)
        assert result.counterexample is not None
        assert (result.verdict, result.counterexample.steps) == (Verdict.FAIL, ())


def test_walks_that_cannot_begin_are_told() -> None:
    result = simulate(AtRest, steps=100)
    assert (result.verdict, result.transitions) == (Verdict.BOUNDED, 0)
    assert "no step is possible" in result.stopped
    assert result.states <= STUCK_WALKS_MAX


def test_a_walk_that_only_goes_round_ends() -> None:
    result = simulate(small.House(), steps=50_000, walk_max=50_000)
    assert result.depth < 100 * RETURNS_MAX
    assert "to where they only went round" in result.effort
    assert " 0 to where they only went round" not in result.effort


def test_the_budget_of_time_ends_the_walks() -> None:
    result = simulate(Reference(N=2, C=1), steps=1 << 40, max_seconds=0.2, workers=2)
    assert result.verdict is Verdict.BOUNDED
    assert "0.2 seconds is used up" in result.stopped
    assert result.search_seconds < 20


def test_claims_and_rows_that_were_not_seen_are_told() -> None:
    result = simulate(NoisyCount(most=40), steps=2_000, walk_max=50)
    seen = {p.claim: p.verdict for p in result.properties}
    assert seen["it is loud"] is Verdict.PASS
    assert seen["it is beyond the top"] is Verdict.BOUNDED
    assert all(row.is_taken for row in result.coverage)


def test_the_number_of_different_states_is_told_within_a_few_per_cent() -> None:
    sketch = bytearray(1 << SKETCH_BITS)
    for count in (100, 5_000, 200_000):
        tally = replace(Tally(), sketch=_sketch_of(count, sketch))
        assert abs(tally.distinct / count - 1) < 0.08


def _sketch_of(count: int, empty: bytearray) -> bytes:
    sketch = bytearray(empty)
    for number in range(count):
        sketched(sketch, hashed((number, number % 7)))
    return bytes(sketch)


def test_a_schedule_is_made_short_and_still_fails() -> None:
    result = simulate(NoisyCount(), steps=200_000, seed=3)
    assert result.counterexample is not None
    schedule = [step.label for step in result.counterexample.steps]
    assert sorted(schedule) == ["noisy.shout", *["noisy.up"] * 6]
    assert any(note.endswith(", 7 do as well") for note in result.notes)
    with pytest.raises(ClaimBroken, match="never loud at the top"):
        play(NoisyCount(), *schedule)


@pytest.mark.parametrize(
    "system", [NoValve(C=1), small.Refusing(), small.Deadlocked(), small.OutOfRange()]
)
def test_what_was_found_stays_the_same_when_it_is_made_short(system: ClosedSystem) -> None:
    long = simulate(system, is_shortened=False).counterexample
    short = simulate(system).counterexample
    best = check(system).counterexample
    assert long is not None
    assert short is not None
    assert best is not None
    assert (short.kind, short.message) == (long.kind, long.message)
    assert len(best.steps) <= len(short.steps) <= len(long.steps)


def test_loops_and_steps_that_do_not_matter_are_left_out() -> None:
    system = NoisyCount()
    program = Lowering(system).program()
    labels = {step.label: number for number, step in enumerate(program.steps)}
    up, down, shout, hum = (labels[f"noisy.{n}"] for n in ("up", "down", "shout", "hum"))
    steps = (*[up, down] * 40, *[hum] * 50, *[up] * 3, shout, *[hum] * 30, *[up] * 3)
    walks = Walks(program, [program.initial], 0, None, 1, 1000)
    walk = Walk(tuple((step, ()) for step in steps), -3, 0, program.initial)
    short = shortened(program, walks, walk, system.properties())
    assert sorted(step for step, _ in short.moves) == sorted([shout, *[up] * 6])
    fails_nowhere = replace(walk, moves=((up, ()), (down, ())))
    assert shortened(program, walks, fails_nowhere, system.properties()) == fails_nowhere
