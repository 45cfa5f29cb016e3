"""The certification kit refuses sinks that are broken as public ones were, each for its reason."""

from __future__ import annotations

import pytest

from epochgate.runtime.testing.certification import Guarantee, certify, report
from epochgate.testing import SinkCase
from tests.runtime import broken_sinks

BROKEN = [
    (broken_sinks.AppendsInCommit, Guarantee.REPLAY, "can be seen more than once"),
    (broken_sinks.KeyedByRun, Guarantee.REPLAY, "can be seen more than once"),
    (broken_sinks.PutsItsWatermark, Guarantee.REPLAY, "can be seen more than once"),
    (broken_sinks.RemembersTheLastTen, Guarantee.HISTORY, "can be seen more than once"),
    (broken_sinks.FileByFile, Guarantee.ATOMIC, "of checkpoint 1, rows 0-1 can be seen and"),
    (broken_sinks.TwoCoordinators, Guarantee.FENCING, "cannot any more"),
    (broken_sinks.WritesWithoutAttempt, Guarantee.FENCING, "cannot any more"),
    (broken_sinks.RecordsNothingEmpty, Guarantee.RECOVERY, "the job fails at every start"),
]
NAMES = [case.__name__ for case, *_ in BROKEN]


@pytest.mark.parametrize(
    ("case", "guarantee", "finding"), BROKEN, ids=lambda value: str(value)[:40]
)
def test_a_broken_sink_is_refused_for_its_own_reason(
    case: type[SinkCase], guarantee: Guarantee, finding: str
) -> None:
    found = certify(case(), about=(guarantee,), first_only=True)
    assert list(found.failures) == [guarantee], report(found)
    assert finding in found.failures[guarantee].broken.finding
