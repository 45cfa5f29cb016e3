"""Every machine that runs is broken in one row at a time, and both the checker and the runtime have
to find it: the checked code is the running code, and neither looks away.
"""

from __future__ import annotations

from collections import Counter
from itertools import islice

import pytest

from tests.mutation.mutants import MACHINES, Mutant, mutants, mutants_of
from tests.mutation.outcomes import LISTS, judge

SAMPLE = 5
"""Of each machine, in `make test`."""


def surprises(some: list[Mutant]) -> list[str]:
    return [outcome.surprise for outcome in map(judge, some) if outcome.surprise]


def sample(machine: str) -> list[Mutant]:
    """A few mutants from all over the machine's table, which checker and runtime should find."""
    excused = {name for _, reasons in LISTS.values() for name in reasons}
    left = [m for m in mutants_of(machine) if m.name not in excused and not m.refusal]
    return list(islice(left, 0, None, max(1, len(left) // SAMPLE)))[:SAMPLE]


@pytest.mark.slow
@pytest.mark.parametrize("machine", MACHINES)
def test_a_broken_row_is_found_by_the_checker_and_by_the_runtime(machine: str) -> None:
    chosen = sample(machine)
    assert len(chosen) == SAMPLE
    assert surprises(chosen) == []


@pytest.mark.deep
@pytest.mark.parametrize("machine", MACHINES)
def test_every_broken_row_is_found_or_there_is_a_reason_why_not(machine: str) -> None:
    assert surprises(list(mutants_of(machine))) == []


def test_there_is_a_mutant_for_each_guard_and_each_action() -> None:
    faults = Counter(mutant.fault.split()[0] for mutant in mutants())
    actions = sum(len(row.actions) for machine in MACHINES.values() for row in machine.ROWS)
    assert faults["without"] == actions
    assert faults["regardless"] > 100
    assert len({mutant.name for mutant in mutants()}) == faults.total()


def test_each_reason_is_of_a_mutant_that_there_is_and_stands_in_one_list() -> None:
    reasons = Counter(name for _, listed in LISTS.values() for name in listed)
    assert [name for name, count in reasons.items() if count > 1] == []
    assert set(reasons) <= {mutant.name for mutant in mutants() if not mutant.refusal}
