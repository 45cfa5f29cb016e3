"""Hypothesis drives the real runtime; the record of what was seen must agree with it."""

from __future__ import annotations

import pytest

from epochgate.fsm import STAY
from epochgate.models.job import Job
from epochgate.runtime.testing.fuzzing.record import InvariantViolated
from tests.stateful.broken import BROKEN
from tests.stateful.coverage import Coverage
from tests.stateful.profiles import PROFILES, explore
from tests.stateful.stateful import JobUnderFuzzing

SESSIONS = (None, 1, 2, 3)

pytestmark = pytest.mark.fuzz


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.parametrize("profile", ["dev", pytest.param("ci", marks=pytest.mark.mutants)])
def test_whatever_goes_wrong_every_event_counts_once(profile: str) -> None:
    found = Coverage()
    machine = type("JobUnderFuzzing", (JobUnderFuzzing,), {"coverage": found})
    explore(machine, PROFILES[profile])
    assert found.examples >= PROFILES[profile].examples
    assert found.taken("checkpoint", "stored", "completed") > found.examples
    assert found.taken_into("checkpoint", "aborted") > found.examples / 10
    assert found.taken_into("lifecycle", "restarting") > found.examples / 10
    assert found.taken_into("attempt", "failed") > found.examples / 2
    assert found.taken("committer", "adopt", STAY) > found.examples / 10


@pytest.mark.mutants
@pytest.mark.timeout(300)
@pytest.mark.parametrize("what", BROKEN)
def test_the_suite_finds(what: str) -> None:
    job, invariants = BROKEN[what]
    found = next(filter(None, (finding(job, number) for number in SESSIONS)), None)
    assert found is not None, f"nothing was found in {len(SESSIONS)} sessions"
    assert found.invariant in invariants


def finding(job: type[Job], number: int | None) -> InvariantViolated | None:
    """Return what one session finds."""
    broken = type("BrokenJobUnderFuzzing", (JobUnderFuzzing,), {"job": job})
    try:
        explore(broken, PROFILES["ci"], number, shrinks=False)
    except InvariantViolated as found:
        return found
    return None
