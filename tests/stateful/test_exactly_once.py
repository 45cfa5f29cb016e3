"""Hypothesis drives the real runtime; the record of what was seen must agree with it."""

from __future__ import annotations

import pytest

from epochgate.runtime.fuzzing import InvariantViolated
from epochgate.runtime.fuzzing.coverage import Coverage
from epochgate.runtime.fuzzing.profiles import PROFILES, explore
from epochgate.runtime.fuzzing.stateful import JobUnderFuzzing
from tests.stateful.broken import BROKEN

pytestmark = [pytest.mark.fuzz, pytest.mark.slow]


@pytest.mark.timeout(300)
def test_whatever_goes_wrong_every_event_counts_once() -> None:
    found = Coverage()
    machine = type("JobUnderFuzzing", (JobUnderFuzzing,), {"coverage": found})
    explore(machine, PROFILES["ci"])
    assert found.examples >= PROFILES["ci"].examples
    assert found.taken("checkpoint", "stored", "completed") > found.examples
    assert found.taken_into("checkpoint", "aborted") > found.examples / 10
    assert found.taken_into("lifecycle", "restarting") > found.examples / 10
    assert found.taken_into("attempt", "failed") > found.examples / 2


@pytest.mark.parametrize("what", BROKEN)
def test_the_suite_finds(what: str) -> None:
    job, invariants = BROKEN[what]
    broken = type("BrokenJobUnderFuzzing", (JobUnderFuzzing,), {"job": job})
    with pytest.raises(InvariantViolated) as found:
        explore(broken, PROFILES["ci"], shrinks=False)
    assert found.value.invariant in invariants
