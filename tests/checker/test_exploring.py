"""An exploration takes the steps of the machines, and searches by conditions."""

from __future__ import annotations

import pytest

from epochgate.fsm import from_transitions
from epochgate.fsm.checker import Verdict, check
from epochgate.fsm.checker.exploring import Explorer, PlaceUnknown, Run
from epochgate.fsm.checker.seeking import ConditionRefused, counterexample_of, state_where
from epochgate.fsm.closed import ClosedSystem
from tests.checker import small_systems as small
from tests.checker.broken import NoValve
from tests.checker.choices import Lamps
from tests.checker.test_each_member import Office
from tests.fsm.known_machines import KNOWN

ENTERED = Run(0, ("visitor[0].ask", "visitor[0].enter"))


def test_a_place_has_its_state_and_what_each_possible_step_would_change() -> None:
    place = Explorer(small.House()).place(ENTERED)
    assert place.state["door"] == {"state": "on", "is_locked": True}
    assert place.last is not None
    assert place.last.changed == {
        "visitor[0].state": ("wanting", "inside"),
        "door.is_locked": (False, True),
    }
    leaving = place.possible[-1]
    assert (leaving.name, leaving.fault) == ("visitor[0].leave", "")
    assert leaving.told.changed["door.is_locked"] == (True, False)
    assert [one.is_so for one in place.claims] == [True, True]


@pytest.mark.parametrize(
    "run",
    [
        Run(0, ("visitor[0].leave",)),
        Run(0, ("visitor[9].ask",)),
        Run(0, ("visitor[0].ask(",)),
        Run(0, ("visitor[0].ask(x)",)),
        Run(0, ("visitor[0].ask(1)",)),
        Run(0, ("",)),
        Run(7),
    ],
)
def test_a_run_that_the_system_does_not_have_is_refused(run: Run) -> None:
    with pytest.raises(PlaceUnknown):
        Explorer(small.House()).place(run)


@pytest.mark.parametrize("system", [small.House, Lamps])
def test_every_state_of_a_search_is_reached_by_steps_and_no_other(
    system: type[ClosedSystem],
) -> None:
    explorer = Explorer(system())
    seen: dict[str, Run] = {}
    waiting = [Run()]
    steps = 0
    while waiting:
        place = explorer.place(waiting.pop())
        if str(place.state) in seen:
            continue
        seen[str(place.state)] = place.run
        steps += len(place.possible)
        waiting += [place.run.then(one.name) for one in place.possible]
    result = check(system())
    assert (len(seen), steps) == (result.states, result.transitions)


def test_the_end_of_a_counterexample_is_the_place_that_breaks_its_claim() -> None:
    found = check(NoValve()).counterexample
    assert found is not None
    explorer = Explorer(NoValve())
    run = explorer.run_of(found)
    place = explorer.place(run)
    assert place.state == found.steps[-1].after
    assert place.last is not None
    assert place.last.effects == found.steps[-1].effects
    assert place.fault or [one.claim.claim for one in place.claims if one.is_broken]


def test_a_step_that_breaks_something_says_so_before_and_after_it_is_taken() -> None:
    found = check(small.Overflowing()).counterexample
    assert found is not None
    explorer = Explorer(small.Overflowing())
    run = explorer.run_of(found)
    before = explorer.place(run.up_to(len(run.steps) - 1))
    assert found.message in [one.fault for one in before.possible]
    place = explorer.place(run)
    assert (place.fault, place.possible) == (found.message, ())
    with pytest.raises(PlaceUnknown, match="nothing comes after it"):
        explorer.place(run.then(run.steps[0]))


@pytest.mark.parametrize(
    "condition",
    [
        'visitor[1].state == "inside" and door.is_locked',
        "self.visitor[1].is_inside()",
        "any(visitor[v].is_inside() and v > 0 for v in range(visitors))",
    ],
)
def test_a_condition_is_searched_by_the_checker(condition: str) -> None:
    result = state_where(small.House(), condition)
    assert result.counterexample is not None
    run = Explorer(small.House()).run_of(result.counterexample)
    assert run.steps == ("visitor[1].ask", "visitor[1].enter")


def test_a_condition_that_holds_nowhere_is_looked_for_in_all_states() -> None:
    result = state_where(small.House(), "visitor[0].is_inside() and visitor[1].is_inside()")
    assert (result.verdict, result.states) == (Verdict.PASS, check(small.House()).states)


@pytest.mark.parametrize(
    "condition",
    [
        "",
        "1)",
        "__import__('os').system('exit')",
        "().__class__",
        "(lambda: 3)()",
        "visitor[0].state",
        "visitor[0].state = 'idle'",
        "nothing == 3",
        "[door for door in (1,)]",
        "True)\n    import os\n    return (True",
        "(" * 900 + ")" * 900,
        "any(visitor[v].is_inside() for v in range(10**9))",
        "any(visitor[v].is_inside() for v in range(99999 * visitors))",
        "all(v + w + x > 0 for v in range(99) for w in range(99) for x in range(99))",
        "any(any(v > w for v in (1, 2)) for w in range(visitors + 9999))",
        "any(v > 0 for v in range(1 << 30))",
        "door.is_locked" + " or door.is_locked" * 200,
    ],
)
def test_what_is_no_condition_is_refused_and_never_run(condition: str) -> None:
    with pytest.raises(ConditionRefused):
        state_where(small.House(), condition)


def test_a_claim_is_searched_alone_and_a_witness_is_a_state_that_it_names() -> None:
    broken = counterexample_of(small.UnfairHouse(), "first_wants").counterexample
    assert broken is not None
    assert broken.cycle is not None
    assert counterexample_of(small.UnfairHouse(), "is_occupied").counterexample is None
    witness = counterexample_of(small.House(), "a_visitor_is_inside").counterexample
    assert witness is not None
    assert len(witness.steps) == 2
    with pytest.raises(ConditionRefused, match="there are is_locked_when_visited"):
        counterexample_of(small.House(), "no_such_claim")


def test_a_claim_of_one_member_is_searched_for_that_member() -> None:
    assert counterexample_of(Office(), "asks[1]").counterexample is None
    broken = counterexample_of(Office(), "asks[2]").counterexample
    assert broken is not None
    assert broken.property == "asks[2]"
    witness = counterexample_of(Office(workers=4), "is_served[3]").counterexample
    assert witness is not None
    assert Explorer(Office(workers=4)).run_of(witness).steps[-1] == "worker[3].serve"


def test_a_deadlock_is_searched_and_said_where_it_is() -> None:
    found = counterexample_of(small.Deadlocked(), "may_end").counterexample
    assert found is not None
    explorer = Explorer(small.Deadlocked())
    place = explorer.place(explorer.run_of(found))
    assert (found.kind, place.possible) == ("deadlock", ())
    assert [one.claim.name for one in place.claims if one.is_broken] == ["may_end"]


def test_a_machine_of_another_library_is_gone_through() -> None:
    system = from_transitions(KNOWN["matter"]()).system
    place = Explorer(system()).place(Run())
    assert place.possible
