"""A mutant is searched for where it makes a difference, and nowhere else."""

from __future__ import annotations

import pytest

from tests.mutation.bodies import BodyMutant, changed, reached
from tests.mutation.checking import bounds, searched
from tests.mutation.explored import Explored
from tests.mutation.homes import Home
from tests.mutation.meter import ClosedMeters, Meter, Meters

HOME = Home(Meters, "meter")


def mutants_of_meter() -> list[BodyMutant]:
    return [
        mutant
        for (_, method), affected in reached(Meters).items()
        for mutant in changed("meter", HOME, getattr(Meter, method), affected)
        if not mutant.refusal
    ]


@pytest.mark.parametrize("mutant", mutants_of_meter(), ids=lambda mutant: str(mutant.name))
def test_a_mutant_is_seen_to_differ_where_a_search_comes_to_anything_else(
    mutant: BodyMutant,
) -> None:
    right = ClosedMeters()
    where = bounds(ClosedMeters)
    found, expected = searched(where.of(mutant)), searched(right)
    is_other = (found.verdict, found.states, found.transitions) != (
        expected.verdict,
        expected.states,
        expected.transitions,
    )
    assert Explored(right).is_changed_by(mutant) is is_other


def test_the_right_machine_is_as_it_was_after_a_mutant_was_tried() -> None:
    mutant, *_ = mutants_of_meter()
    explored, before = Explored(ClosedMeters()), searched(ClosedMeters())
    explored.is_changed_by(mutant)
    after = searched(ClosedMeters())
    assert getattr(Meter, mutant.method) is mutant.right
    assert (after.states, after.transitions) == (before.states, before.transitions)
