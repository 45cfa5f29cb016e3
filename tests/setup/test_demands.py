"""The demands of others' bugs on commits: each claim is checked, each variant without it fails, and
each test that is named is there.
"""

from __future__ import annotations

import inspect

import pytest

from epochgate.models.closed import commits
from epochgate.models.closed.surroundings import commits as around, target
from epochgate.models.studies.broken.catalogue import BROKEN
from tests.setup.tables import NAME, ROOT, Line, lines_of, missing_tests

HEADER = (
    "demand",
    "claim of `epochgate check commit`",
    "without it",
    "shown on the runtime and the sinks by",
)
DEMANDS = [line for line in lines_of(ROOT / "docs" / "sinks.md") if line.header == HEADER]
CLAIMED = "\n".join(map(inspect.getsource, (commits, around, target)))
"""The closed system: its properties, and what its surroundings assert."""


def test_there_are_demands() -> None:
    assert len(DEMANDS) >= 9


@pytest.mark.parametrize("line", DEMANDS, ids=lambda line: line.cells[0][:40])
def test_each_demand_is_a_claim_a_variant_that_fails_and_a_test(line: Line) -> None:
    _, claims, variants, tests = line.cells
    assert [claim for claim in claims.split("; ") if claim not in CLAIMED] == []
    assert NAME.findall(variants)
    assert set(NAME.findall(variants)) <= set(BROKEN)
    assert not missing_tests(tests)
    assert "tests/" in tests
