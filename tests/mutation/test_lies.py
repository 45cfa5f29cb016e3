"""A wrong argument of a machine's message to the outside is found by the checker, argument by
argument.
"""

from __future__ import annotations

import pytest

from epochgate.models.closed.catalogue import SYSTEMS
from tests.models.hearing import messages
from tests.models.unheard import REASONS
from tests.mutation.checking import claimed, claimed_soon
from tests.mutation.every import every_of
from tests.mutation.homes import HOMES
from tests.mutation.judging import surprises
from tests.mutation.lies import BY_THE_PLAY, UNFOUND, lies, reason_for
from tests.mutation.verdicts import SURVIVES, Verdicts


def test_there_is_a_lie_about_each_argument_of_each_message() -> None:
    told = messages(SYSTEMS.values())
    assert {argument for argument, _ in lies().values()} == {
        f"{message.key}: {name}" for message in told for name in message.parameters
    }


def test_each_lie_is_judged_with_the_mutants_of_its_machine() -> None:
    every = {mutant.name for machine in HOMES for mutant in every_of(machine)}
    assert lies().keys() <= every


def test_each_reason_is_of_an_argument_that_there_is_and_has_one_list() -> None:
    arguments = {argument for argument, _ in lies().values()}
    listed = [*REASONS, *UNFOUND, *BY_THE_PLAY]
    assert set(listed) <= arguments
    assert len(listed) == len(set(listed))


def test_a_lie_that_a_test_alone_finds_is_not_found() -> None:
    name = next(name for name in lies() if not reason_for(name))
    machine = lies()[name][1].machine
    told = "not found by the checker"
    (surprise,) = surprises(Verdicts(machine, {name: "test: a"}))
    assert surprise == f"{told} (test: a): {name}"
    (surprise,) = surprises(Verdicts(machine, {name: SURVIVES}))
    assert surprise == f"survives without a reason: {name}"


@pytest.mark.parametrize(
    "machine", ["resident", "changes", "control_update", "recreation", "send_window"]
)
def test_each_lie_of_the_small_machines_is_found_by_a_claim_or_has_a_reason(machine: str) -> None:
    own = {name: mutant for name, (_, mutant) in lies().items() if mutant.machine == machine}
    assert own
    left = [mutant for name, mutant in own.items() if not reason_for(name)]
    assert [each.name for each in left if not (claimed_soon(each) or claimed(each))] == []
