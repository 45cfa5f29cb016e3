"""Every guard and action of the machines that run is broken in its body, one statement or one
expression at a time; the checker and the runtime have to find it, as they find a broken row.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.mutation.bodies import BodyMutant, body_mutants, body_mutants_of
from tests.mutation.homes import HOMES
from tests.mutation.outcomes import LISTS, judged
from tests.mutation.table import PROPERTY

Record = Callable[[str, object], None]
SAMPLE = 8
"""Of all machines together, in `make test`."""
PARTS = 4
"""Into which the sample and each machine's mutants are dealt, so that processes can share them."""


def surprises(some: list[BodyMutant], record: Record) -> list[str]:
    outcomes = judged(some)
    for outcome in outcomes:
        record(PROPERTY, [outcome.mutant.machine, outcome.column, outcome.mutant.name])
    return [outcome.surprise for outcome in outcomes if outcome.surprise]


def sample() -> list[BodyMutant]:
    """A few mutants from all over the machines, which checker and runtime should find."""
    excused = {name for _, reasons in LISTS.values() for name in reasons}
    every = body_mutants()
    step = len(every) // SAMPLE
    left = ((m for m in every[n * step :] if m.name not in excused) for n in range(SAMPLE))
    return [next(some) for some in left]


@pytest.mark.mutants
@pytest.mark.timeout(600)
@pytest.mark.parametrize("part", range(PARTS))
def test_a_broken_body_is_found_by_the_checker_and_by_the_runtime(
    part: int, record_property: Record
) -> None:
    assert surprises(sample()[part::PARTS], record_property) == []


@pytest.mark.deep
@pytest.mark.parametrize("part", range(PARTS))
@pytest.mark.parametrize("machine", HOMES)
def test_every_broken_body_is_found_or_there_is_a_reason_why_not(
    machine: str, part: int, record_property: Record
) -> None:
    assert surprises(body_mutants_of(machine)[part::PARTS], record_property) == []
