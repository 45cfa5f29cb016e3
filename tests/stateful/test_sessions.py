"""A session of the fuzzer depends on its number and on nothing else."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from tests.stateful.coverage import Coverage
from tests.stateful.profiles import Profile, explore
from tests.stateful.stateful import JobUnderFuzzing

PROFILE = Profile(examples=20, steps=40)
ELSEWHERE = (
    "import json; from tests.stateful.test_sessions import schedules; "
    "print(json.dumps(schedules(5)))"
)

pytestmark = pytest.mark.fuzz


def schedules(number: int | None) -> list[list[str]]:
    """Return what happens in a session, one list for each example."""
    coverage, seen = Coverage(), list[list[str]]()
    coverage.progress = lambda: seen.append(coverage.schedule)
    explore(type("JobUnderFuzzing", (JobUnderFuzzing,), {"coverage": coverage}), PROFILE, number)
    return seen


def test_a_number_explores_the_same_schedules_in_every_process() -> None:
    elsewhere = subprocess.run(
        [sys.executable, "-c", ELSEWHERE], check=True, capture_output=True, text=True
    )
    assert json.loads(elsewhere.stdout) == schedules(5)


def test_another_number_explores_other_schedules() -> None:
    assert schedules(5) != schedules(6)


def test_no_example_of_a_session_is_discarded() -> None:
    assert len(schedules(None)) == PROFILE.examples
