"""Every schedule within a bound is run, or the report says how far it got; the faults of the shells
that no model checker sees are found.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import strategies as st

from epochgate.runtime.testing.worlds.exploring import Exploration, Explored
from epochgate.runtime.testing.worlds.running import Body
from epochgate.testing import ExploredInPart, SimulationFailed, World, explore
from tests.worlds.counting import Counting, CountingOn, CountingTooEarly, counting_job
from tests.worlds.planted import PLANTED
from tests.worlds.rules import Applying, RulesProvider


def explored(
    body: Body, faults: int, delays: int, seconds: float | None = None, *kinds: str
) -> Explored:
    search = explore(faults=kinds or None)(body).simulation.search()
    return Exploration(search, faults, delays).explore(seconds)


def one_checkpoint(kind: type[Counting]) -> Body:
    def body(world: World) -> None:
        job = counting_job(world, kind)
        job.coordinator.send()
        job.checkpoint()
        job.coordinator.send()
        world.move()

    return body


@pytest.mark.parametrize("planted", PLANTED)
def test_a_planted_fault_of_the_shell_is_found_and_the_right_shell_is_not_blamed(
    planted: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    plant, body, faults, delays = PLANTED[planted]
    kinds = ("fail-everything", "lose-answer")
    right = explored(body, faults, delays, None, *kinds)
    assert right.is_complete, right.told()
    plant(monkeypatch)
    wrong = explored(body, faults, delays, None, *kinds)
    assert wrong.failure is not None, wrong.told()
    assert wrong.failure.broken is not None
    assert wrong.failure.broken.kind == "always"
    assert len(wrong.failure.deviations) == 1


def test_one_death_anywhere_is_explored_completely() -> None:
    found = explored(one_checkpoint(Counting), 1, 0, None, "die")
    assert found.is_complete
    assert found.told().startswith("explored completely within F=1, delays<=0: ")
    assert found.cut > 0, "states that were seen end a run"
    assert {moment for _, moment in found.struck} >= {"restore", "barrier", "store", "running"}


@pytest.mark.deep
@pytest.mark.timeout(900)
def test_every_fault_anywhere_is_explored_completely() -> None:
    found = explored(one_checkpoint(Counting), 1, 0)
    assert found.is_complete, found.told()


@pytest.mark.deep
@pytest.mark.timeout(900)
def test_the_first_failure_has_the_fewest_deviations_that_any_has() -> None:
    assert explored(one_checkpoint(CountingTooEarly), 1, 0, None, "die").is_complete
    found = explored(one_checkpoint(CountingTooEarly), 1, 1, None, "die")
    assert found.failure is not None
    assert len(found.failure.deviations) == 2


def test_a_search_that_ends_early_says_how_far_it_got() -> None:
    found = explored(one_checkpoint(Counting), 1, 1, 0.5)
    assert not found.is_complete
    assert "explored in part within F=1, delays<=1: every schedule with up to " in found.told()


def test_what_has_no_fingerprint_is_named_and_explored_without() -> None:
    class Iterating(Counting):
        def start(self) -> None:
            self.numbers = memoryview(b"1")

    found = explored(one_checkpoint(Iterating), 0, 1, None)
    assert found.opaque == "builtins.memoryview"
    assert found.cut == 0
    assert "no state was recognised, since builtins.memoryview has no fingerprint" in found.told()


def test_an_explored_test_fails_with_the_report() -> None:
    @explore(faults_max=1, faults=("die",))
    def test_sums(world: World) -> None:
        one_checkpoint(CountingOn)(world)

    with pytest.raises(SimulationFailed, match="schedule found has 1 fault and no deviations"):
        test_sums()

    @explore(faults_max=0, delays_max=1)
    def test_rules(world: World) -> None:
        world.job(RulesProvider(), operators=Applying)

    test_rules()


def test_an_explored_test_that_ends_early_passes_with_a_warning() -> None:
    @explore(faults_max=1, delays_max=1, seconds=0.5)
    def test_sums(world: World) -> None:
        one_checkpoint(Counting)(world)

    with pytest.warns(ExploredInPart, match="test_sums: explored in part within F=1, delays<=1"):
        test_sums()


@pytest.mark.parametrize("draws", [lambda world: True, lambda world: world.struck])
def test_a_run_that_draws_begins_again_and_leaves_out_nothing(
    draws: Callable[[World], Any],
) -> None:
    def body(world: World, draws: Callable[[World], Any] = draws) -> None:
        job = world.job(RulesProvider(), operators=Applying)
        job.checkpoint()
        if draws(world):
            world.draw(st.just(1))
        job.checkpoint()

    plain = explored(lambda world: body(world, lambda _: False), 1, 0, None, "die")
    found = explored(body, 1, 0, None, "die")
    assert found.is_complete
    assert (found.runs, found.states) == (plain.runs, plain.states)
