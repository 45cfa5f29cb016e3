"""The tests that are named for a mutant fail with it, and it is gone afterwards."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import chain

import pytest

from epochgate.fsm import Machine
from epochgate.fsm.ports import Effect
from epochgate.models import Job
from epochgate.models.concurrent_job import ConcurrentAttempt
from tests.mutation.bodies import body_mutants
from tests.mutation.by_name import KILLED_BY, failure_of, found_by_name
from tests.mutation.by_test import failures
from tests.mutation.mutants import MACHINES, AnyMutant, Mutant, mutants
from tests.mutation.planted import EFFECTS_MAX, Restless, planted

NAMED = [name for names in KILLED_BY.values() for name in names]
DECIDING = "tests/runtime/steering/test_deciding.py"
NO_DISMISSAL = "attempt: connect from finished: without dismiss"

pytestmark = pytest.mark.mutants


def every() -> Iterator[AnyMutant]:
    return chain(mutants(), body_mutants())


def named(name: str) -> AnyMutant:
    return next(mutant for mutant in every() if mutant.name == name)


def test_each_named_mutant_is_there_and_named_once() -> None:
    assert [name for name, count in Counter(NAMED).items() if count > 1] == []
    assert set(NAMED) <= {mutant.name for mutant in every()}


def test_a_named_test_fails_with_its_mutant() -> None:
    seen = found_by_name(named(NAMED[-1]))
    assert seen is not None
    assert "call: " in seen.account


def test_a_test_that_has_a_folder_of_its_own_fails_with_a_mutant_too() -> None:
    test = f"{DECIDING}::test_an_update_is_not_in_a_batch_that_was_decided_before_it"
    name = "batch_decision.is_overtaken: `later > 0` -> `later >= 0`"
    assert "BatchOvertaken" in failures([test], [name])[name].get(test, "")


@pytest.mark.deep
@pytest.mark.parametrize("name", NAMED)
def test_every_named_test_fails_with_its_mutant(name: str) -> None:
    seen = found_by_name(named(name))
    assert seen is not None
    assert "call: " in seen.account


def test_a_test_that_a_mutant_does_not_concern_passes_with_it() -> None:
    assert failure_of(next(iter(KILLED_BY)), named(NO_DISMISSAL)) == ""


def test_a_planted_mutant_is_in_every_variant_of_its_machine_and_gone_afterwards() -> None:
    mutant = named(NO_DISMISSAL)
    assert isinstance(mutant, Mutant)
    attempts: list[type[Machine]] = [MACHINES["attempt"], ConcurrentAttempt]
    right = [vars(machine).get("connect") for machine in attempts]
    with planted(mutant):
        planted_rows = [machine.ROWS[: len(mutant.rows)] for machine in attempts]
        assert planted_rows == [mutant.rows] * 2
        assert mutant.rows == Job.MACHINES["attempt"].ROWS
    assert [vars(machine).get("connect") for machine in attempts] == right
    assert all(mutant.rows != machine.ROWS for machine in attempts)


def test_a_job_that_has_effects_for_ever_is_ended_while_a_mutant_is_planted() -> None:
    with planted(named(NO_DISMISSAL)):
        job = Job(subtasks=1)
        for _ in range(EFFECTS_MAX):
            job.emitted.append((Effect, ()))
        with pytest.raises(Restless):
            job.emitted.append((Effect, ()))
