"""A report shows the cause of a failure in some forty lines, and what its runs were too few for."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

from epochgate.runtime.testing.worlds.claims import ClaimBroken
from epochgate.runtime.testing.worlds.differences import change, content, sides_of_claim
from epochgate.runtime.testing.worlds.feedback import feedback
from epochgate.runtime.testing.worlds.lanes import lanes
from epochgate.runtime.testing.worlds.report import report
from epochgate.runtime.testing.worlds.searching import Found
from epochgate.runtime.testing.worlds.settings import CHOSEN
from epochgate.testing import SimulationFailed, Vacuous, World, simulate
from tests.worlds.limiter import Forgetting, Taking, limited
from tests.worlds.rules import Applying, Rules, RulesProvider


def found_by(body: Callable[[World], Any], runs: int, **how: Any) -> Found:
    return simulate(body, runs=runs, **how).simulation.search().at_random(runs, 0)


@pytest.fixture(scope="module")
def lost() -> Found:
    """The rows that a task forgets at a notice, beside a coordinator with a timer."""
    found = found_by(limited(Forgetting), 100)
    assert found.failure is not None
    return found


def test_a_right_task_at_the_rate_of_a_limiter_loses_nothing() -> None:
    assert found_by(limited(Taking), 60).failure is None


def test_a_report_names_the_rows_that_are_lost_and_the_steps_that_took_and_forgot_them(
    lost: Found,
) -> None:
    told = report("limiter", lost)
    assert len(told.splitlines()) <= 45
    missing = re.search(r"only in `list\(range\(last\)\)`  (\d+), (\d+) \(2 of 60\)", told)
    assert missing is not None
    assert "only in `sorted(rows)`       nothing" in told
    taken, forgotten = (told.index(f"rows: {sign} {missing[1]}") for sign in "+−")
    barrier, notice = (told.index(f"calls Forgetting.{name}(1)") for name in CALLS)
    assert barrier < taken < notice < forgotten


def test_an_assertion_with_sides_is_not_told_by_pytest_as_well(
    lost: Found, monkeypatch: pytest.MonkeyPatch
) -> None:
    simulation = simulate(limited(Forgetting)).simulation
    for is_whole in (False, True):
        monkeypatch.setattr(CHOSEN, "is_whole", is_whole)
        with pytest.raises(SimulationFailed) as failed:
            simulation.judge(lost)
        assert isinstance(failed.value.__cause__, AssertionError) is is_whole


CALLS = "snapshot", "notify_checkpoint_complete"


def test_a_report_counts_the_steps_of_a_timer_and_shows_none(lost: Found) -> None:
    told = report("limiter", lost)
    assert re.search(r"⋮ \d+ steps by the default schedule, \d+ of them like: ", told)
    assert not re.search(r"^ *\d+:\d+ .*sends to task", told, re.MULTILINE)


def test_a_report_has_what_tasks_had_that_are_gone(lost: Found) -> None:
    assert re.search(r"  task\[0\], gone +last = 60; rows = \[\]; ", report("limiter", lost))


def test_a_whole_report_has_each_step_with_its_rows(lost: Found) -> None:
    assert lost.failure is not None
    whole = list(lanes(lost.failure, is_whole=True))
    for happening in lost.failure.trace:
        step = "{}:{} ".format(*happening.at)
        assert any(step in line for line in whole)
    assert sum("sends to task 0: event" in line for line in whole) > 10
    assert any("checkpoint.stored: storing → completed" in line for line in whole)
    assert "--epochgate-whole" not in report("limiter", lost, is_whole=True)


def test_the_sides_of_a_claim_are_told_by_name() -> None:
    seen, known = [1, 2, 2, 4], [[5], 4]
    as_tuple: Any = tuple(seen)
    claims: list[tuple[Callable[[], Any], list[str]]] = [
        (lambda: seen == [1, 2, 3, 4], ["`seen`          2 (1 of 4)", "3 (1 of 4)"]),
        (
            lambda: known and seen == [4, 2, 2, 1],
            ["`seen`          is [1, 2, 2, 4]", "have the same members"],
        ),
        (lambda: set(seen) == {"c", "b", 4}, ["`{'c', 'b', 4}`  'b', 'c' (2 of 3)"]),
        (lambda: seen == as_tuple, ["is [1, 2, 2, 4]", "is (1, 2, 2, 4)"]),
        (lambda: len(seen) == 3, ["`len(seen)`  is 4", "`3`          is 3"]),
        (lambda: len(seen) < len(known), ["`len(seen)`   is 4", "`len(known)`  is 2"]),
        (lambda: Counter(seen) == Counter([1]), ["2: 2, 4: 1"]),
    ]
    for holds, told in claims:
        sides = sides_of_claim(holds)
        assert sides is not None
        lines = "\n".join(sides.lines())
        assert all(each in lines for each in told), lines


def test_a_claim_that_compares_nothing_holds_by_now_or_raises_has_no_sides() -> None:
    def is_wrong() -> bool:
        return len(missing) == 3

    missing: list[int] = []
    assert sides_of_claim(is_wrong) is not None
    others: list[Callable[[], Any]] = [
        lambda: all(missing),
        lambda: missing == [],
        lambda: missing[0] == 1,
        dict,
    ]
    for holds in others:
        assert sides_of_claim(holds) is None


def told_change(before: Any, after: Any, *odd: str) -> str:
    changed = change("it", content(before), content(after))
    return "" if changed is None else changed.told(odd)


def test_a_change_is_told_by_what_came_and_went_or_as_it_is_where_it_is_short() -> None:
    many = list(range(100, 140))
    assert told_change(many, [*many[1:], 7]) == "it: − 100 + 7"
    assert told_change(many, []).endswith("107 and 32 more")
    assert told_change(many, [], "139").startswith("it: − 139, 100, 101")
    assert told_change([1], [1, 2]) == "it: [1] → [1, 2]"
    assert told_change(many, many[::-1]) == "it: in another order"
    assert told_change(3, 4) == "it: 3 → 4"
    assert told_change(many, list(many)) == ""


def test_an_assertion_that_acts_on_the_job_is_not_computed_again() -> None:
    def body(world: World) -> None:
        job = world.job(RulesProvider(), operators=Applying)
        assert job.tell(Rules.change, "b") == 1  # type: ignore[func-returns-value]

    found = found_by(body, 2, faults=())
    assert found.failure is not None
    assert isinstance(found.failure.broken, ClaimBroken)
    assert found.failure.broken.sides is None
    assert sum("runs Rules.change('b')" in each.text for each in found.failure.trace) == 1


class AllThatItHas(Applying):
    """Its state is every attribute that its class does not know of, and only plain ones pack."""

    def snapshot(self, checkpoint_id: int) -> bytes:
        own = {name: value for name, value in vars(self).items() if name != "context"}
        return json.dumps(own).encode()


def test_an_operator_whose_state_is_its_dict_is_reported_as_it_ran() -> None:
    def body(world: World) -> None:
        job = world.job(RulesProvider(), operators=AllThatItHas)
        job.checkpoint()
        assert job.checkpoints == []

    found = found_by(body, 2, faults=())
    told = report("all", found)
    assert "calls AllThatItHas.snapshot(1)" in told
    assert "`job.checkpoints`  is [1]" in told or "only in `job.checkpoints`  1 (1 of 1)" in told


def test_what_should_happen_sometimes_is_looked_at_behind_the_last_step_too() -> None:
    def body(world: World) -> None:
        job = world.job(RulesProvider(), operators=Applying)
        job.kill(0)
        world.calm()
        world.sometimes("a process dies", lambda: ("die", "running") in world.struck)
        world.sometimes("there are two operators", lambda: len(job.operators) == 2)

    with pytest.raises(Vacuous) as vacuous:
        simulate(runs=3, faults=())(body)()
    assert "sometimes: there are two operators" in str(vacuous.value)
    assert "sometimes: a process dies" not in str(vacuous.value)


def checkpointed(world: World) -> None:
    job = world.job(RulesProvider(), operators=Applying)
    job.checkpoint()


def test_runs_that_are_too_few_for_some_fault_at_some_moment_say_so() -> None:
    found = found_by(checkpointed, 20)
    assert found.points > found.unmet
    for fault, moment in (("die", "snapshot"), ("die", "barrier"), ("full-disk", "store")):
        assert (fault, moment) in found.points
    assert not [fault for fault, _ in found.points if fault == "put-off"], "it has no committer"
    [line] = [each for each in feedback({"test": found}, is_long=False) if "too few" in each]
    met = len(found.points) - len(found.unmet)
    assert line.startswith(
        f"test: 20 runs are too few for each fault at each moment: {met} of {len(found.points)} "
        "happened. Not met: "
    )
    assert line.endswith(" other faults (-v lists them)")
    [whole] = [each for each in feedback({"test": found}, is_long=True) if "too few" in each]
    for fault, moment in found.unmet:
        assert re.search(rf"{fault}: [a-z, ]*{moment}", whole)


def test_a_vacuous_test_says_which_moments_more_runs_may_meet() -> None:
    def body(world: World) -> None:
        checkpointed(world)
        world.sometimes("it dies meanwhile", lambda: ("die", "snapshot") in world.struck)

    with pytest.raises(Vacuous, match=r"more runs may meet them:\n(  .*\n)*  die: .*snapshot"):
        simulate(runs=5)(body)()


def test_runs_that_have_met_every_point_say_nothing_of_it() -> None:
    found = found_by(checkpointed, 100, faults=("full-disk",))
    assert found.points == {("full-disk", "store")}
    assert found.unmet == set()
    assert not [line for line in feedback({"test": found}, is_long=True) if "too few" in line]
