"""A simulated test finds what users get wrong, says it with the shortest schedule, and passes for
what is right.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import strategies as st

from epochgate.runtime.testing.worlds.report import report
from epochgate.runtime.testing.worlds.searching import Found, token
from epochgate.testing import (
    NoSuchSubtask,
    NotRepeatable,
    NotSimulated,
    SimulationFailed,
    TokenMalformed,
    UnknownFault,
    Vacuous,
    World,
    WorldMisused,
    explore,
    replay,
    simulate,
)
from tests.worlds.counting import Counting, CountingOn, CountingTooEarly, sending
from tests.worlds.rules import (
    Applying,
    ForgetfulRules,
    Rules,
    RulesProvider,
    StrictRules,
)


def changed_twice(make: Callable[..., Rules]) -> Callable[[World], None]:
    """The ten lines that a user writes."""

    def body(world: World) -> None:
        job = world.job(RulesProvider(make), operators=Applying, subtasks=2)
        world.eventually(
            "all tasks apply the coordinator's rule",
            lambda: [each.rule for each in job.operators] == [job.coordinator.rule] * 2,
        )
        job.coordinator.change("b")
        world.move()
        job.checkpoint()
        job.coordinator.change("c")
        job.kill(1)

    return body


def found_by(body: Callable[[World], None], runs: int = 200, **how: Any) -> Found:
    return simulate(body, runs=runs, **how).simulation.search().at_random(runs, 0)


def failure_of(body: Callable[[World], None], runs: int = 200, **how: Any) -> str:
    with pytest.raises(SimulationFailed) as failed:
        simulate(runs=runs, **how)(body)()
    return str(failed.value)


def test_a_right_coordinator_passes_under_every_fault() -> None:
    found = found_by(changed_twice(Rules), 150)
    assert found.failure is None
    assert len({fault for fault, _ in found.struck}) > 10


def test_a_bug_that_every_run_has_needs_no_fault_and_no_deviation() -> None:
    told = failure_of(changed_twice(ForgetfulRules))
    assert "a claim of `eventually` does not come true" in told
    assert "all tasks apply the coordinator's rule" in told
    assert "has no faults and no deviations from the default order" in told
    assert "--epochgate-replay=-\n" in told


def test_a_whole_report_has_snapshots_and_restores_however_far_from_the_failure_they_are() -> None:
    told = report("rules", found_by(changed_twice(ForgetfulRules)), is_whole=True)
    for decisive in (
        r"3:6 +receives the barrier of checkpoint 1\n",
        r"3:9 +receives from task 1: the acknowledgement of checkpoint 1\n",
        r"4:16 +receives the state to restore \(attempt 1,\n +checkpoint 1\)\n",
    ):
        assert re.search(decisive, told), decisive


def test_what_was_told_after_a_checkpoint_must_be_taken_back_with_its_task() -> None:
    assert found_by(sending(Counting), 200).failure is None
    found = found_by(sending(CountingOn), 200)
    assert found.failure is not None
    assert (found.failure.faults, len(found.failure.deviations)) == (1, 1)


def test_a_snapshot_that_is_older_than_its_completion_is_found_in_few_deviations() -> None:
    found = found_by(sending(CountingTooEarly), 400, faults=("die", "crash", "fail-everything"))
    assert found.failure is not None
    assert found.failure.faults == 1
    assert len(found.failure.deviations) <= 2


def test_an_error_of_user_code_fails_the_test_with_its_own_line() -> None:
    told = failure_of(changed_twice(StrictRules), 300, faults=("die",))
    assert "user code raised an error" in told
    assert "KeyError" in told
    assert "rules.py" in told


def test_a_tolerated_error_fails_nothing() -> None:
    def body(world: World) -> None:
        world.tolerate("KeyError")
        changed_twice(StrictRules)(world)

    assert found_by(body, 60).failure is None


def test_the_token_of_a_failure_replays_it_and_the_seed_as_well() -> None:
    found = found_by(changed_twice(StrictRules), 300, faults=("die",))
    assert found.failure is not None
    assert found.failure.broken is not None
    search = simulate(changed_twice(StrictRules), faults=("die",)).simulation.search()
    again = search.replay(token(found.failure)).failure
    assert again is not None
    assert again.broken is not None
    assert again.broken.is_like == found.failure.broken.is_like
    assert list(map(str, again.trace)) == list(map(str, found.failure.trace))
    by_seed = search.at_random(2, found.seed)
    assert by_seed.first is not None
    assert found.first is not None
    assert by_seed.first.deviations == found.first.deviations


def test_a_kept_schedule_is_a_test_that_fails_and_then_passes() -> None:
    with pytest.raises(SimulationFailed, match="all tasks apply"):
        replay(simulate(changed_twice(ForgetfulRules)), "-")()
    replay(simulate(changed_twice(Rules)), "-")()


def test_always_is_looked_at_after_every_step() -> None:
    def body(world: World) -> None:
        job = world.job(RulesProvider(), operators=Applying, subtasks=2)
        world.always("no task has rule b", lambda: all(o.rule[1] != "b" for o in job.operators))
        job.coordinator.change("b")
        world.move()

    told = failure_of(body)
    assert "a claim of `always` does not hold" in told
    assert re.search(r"claimed at .*test_simulate\.py:\d+", told)
    assert "receives event [2, 'b']" in told


def test_a_claim_shows_what_it_is_asked_to_and_stays_when_that_raises() -> None:
    def body(world: World) -> None:
        job = world.job(RulesProvider(), operators=Applying)
        world.always("the rule is b", lambda: job.coordinator.rule[1] == "b", shows=shows[0])

    shows: list[Callable[[], object]] = [lambda: "it is [1, 'a']"]
    assert "\n  it is [1, 'a']\n" in failure_of(body, faults=())
    shows[0] = lambda: [][0]
    told = failure_of(body, faults=())
    assert "  the rule is b\n" in told
    assert "(`shows` raised IndexError('list index out of range'))" in told


def test_an_assertion_of_the_test_is_reported_with_its_line() -> None:
    def body(world: World) -> None:
        job = world.job(RulesProvider(), operators=Applying)
        assert job.operators[0].rule == [1, "b"], "the rule is another one"

    told = failure_of(body, faults=())
    assert "an assertion of the test failed" in told
    assert "the rule is another one" in told
    assert "test_simulate.py" in told


def test_what_never_happens_makes_a_test_vacuous() -> None:
    def body(world: World) -> None:
        job = world.job(RulesProvider(), operators=Applying)
        world.sometimes("there are three operators", lambda: len(job.operators) == 3)

    with pytest.raises(Vacuous, match="in 20 runs these never happened\n  sometimes: there are th"):
        simulate(runs=20)(body)()


@pytest.mark.parametrize("made", [simulate(runs=5), explore()], ids=["simulate", "explore"])
def test_a_test_that_makes_no_job_is_refused(made: Callable[..., Any]) -> None:
    with pytest.raises(WorldMisused, match=r"the test has made no job in . runs?: begin"):
        made(lambda world: None)()


def test_a_job_in_some_runs_is_enough() -> None:
    def body(world: World) -> None:
        if world.draw(st.integers(0, 3)):
            world.job(RulesProvider(), operators=Applying)

    assert found_by(body, 10).failure is None


def test_a_moment_at_which_a_fault_strikes_can_be_asked_for() -> None:
    def body(world: World) -> None:
        job = world.job(RulesProvider(), operators=Applying, subtasks=2)
        world.sometimes(
            "a process dies between snapshot and barrier",
            lambda: ("die", "barrier") in world.struck,
        )
        job.checkpoint()

    assert found_by(body, 200).never == []


def test_values_shrink_with_the_schedule() -> None:
    def body(world: World) -> None:
        texts = world.draw(st.lists(st.text(alphabet="abc", max_size=5), max_size=6), "texts")
        job = world.job(RulesProvider(ForgetfulRules), operators=Applying, subtasks=2)
        for text in texts:
            job.coordinator.change(text)
            world.move()
        job.kill(1)
        world.calm()
        assert [each.rule for each in job.operators] == [job.coordinator.rule] * 2

    found = found_by(body)
    assert found.failure is not None
    assert found.failure.drawn == [("texts", [""])]
    assert found.failure.deviations == []
    again = simulate(body).simulation.search().replay(token(found.failure))
    assert again.failure is not None
    assert again.failure.drawn == found.failure.drawn


def test_a_run_that_does_not_repeat_is_named_with_its_first_divergence() -> None:
    chance = random.Random(1)

    def body(world: World) -> None:
        job = world.job(RulesProvider(), operators=Applying)
        job.coordinator.change(str(chance.randrange(10**6)))
        world.move()

    with pytest.raises(NotRepeatable) as refused:
        simulate(body)()
    assert "sends to task 0: event [2, " in str(refused.value)
    assert "Make it depend on what it is told alone" in str(refused.value)


def test_what_cannot_be_meant_is_refused() -> None:
    with pytest.raises(UnknownFault, match="there is no fault 'explode'; there are die,"):
        simulate(faults=("explode",))(changed_twice(Rules))
    with pytest.raises(TokenMalformed, match="'nonsense' in the token"):
        replay(simulate(changed_twice(Rules)), "nonsense")()

    def without_tasks(world: World) -> None:
        world.job(RulesProvider())

    with pytest.raises(NotSimulated, match="operators=MyOperator"):
        simulate(without_tasks)()

    def twice(world: World) -> None:
        changed_twice(Rules)(world)
        changed_twice(Rules)(world)

    with pytest.raises(WorldMisused, match="a world has one job"):
        simulate(twice)()

    def exploding(world: World) -> None:
        world.job(RulesProvider(), operators=Applying)
        world.strike("explode")

    with pytest.raises(UnknownFault, match="there is no fault 'explode'"):
        simulate(exploding)()

    def without_a_save(world: World) -> None:
        world.job(RulesProvider(), operators=Applying)
        world.strike("fail-save")

    with pytest.raises(WorldMisused, match=r"'fail-save' .* has no target at this moment"):
        simulate(without_a_save)()

    def of_a_stranger(world: World) -> None:
        world.job(RulesProvider(), operators=Applying).kill(1)

    with pytest.raises(NoSuchSubtask, match="there is no subtask 1; this job has 1, from 0 on"):
        simulate(of_a_stranger)()


def test_a_claim_may_look_and_not_touch() -> None:
    def body(world: World) -> None:
        job = world.job(RulesProvider(), operators=Applying)
        world.always("it is moved", lambda: job.checkpoint())

    with pytest.raises(WorldMisused, match="a claim looks at the job and does nothing to it"):
        simulate(body)()
