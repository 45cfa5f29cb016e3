"""The certification kit refuses sinks that are broken as public ones were, each for its reason."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from epochgate.runtime.testing.certification import Guarantee, certify, report
from epochgate.testing import SinkCase, SinkNotCertified, certify_sink
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
BACKWARDS = [
    (broken_sinks.GoesOnRegardless, Guarantee.BACK, "of checkpoints that the job has left behind"),
    (broken_sinks.WithdrawsUnasked, Guarantee.BACK, "could be seen before and cannot any more"),
    (broken_sinks.RefusesTooLate, Guarantee.BACK, "cannot any more"),
    (broken_sinks.FailsToGoBack, Guarantee.RECOVERY, "no driver can start: KeyError"),
]


@pytest.mark.parametrize(("case", "guarantee", "finding"), BROKEN, ids=NAMES)
def test_a_broken_sink_is_refused_for_its_own_reason(
    case: type[SinkCase], guarantee: Guarantee, finding: str
) -> None:
    found = certify(case(), about=(guarantee,), first_only=True)
    assert list(found.failures) == [guarantee], report(found)
    assert finding in found.failures[guarantee].broken.finding


@pytest.mark.parametrize(("case", "guarantee", "finding"), BACKWARDS)
def test_a_sink_is_refused_that_skips_doubles_or_withdraws_after_an_older_checkpoint(
    case: type[SinkCase], guarantee: Guarantee, finding: str
) -> None:
    found = certify(case(), about=(Guarantee.BACK,))
    assert list(found.failures) == [guarantee], report(found)
    assert finding in found.failures[guarantee].broken.finding


def test_a_refusal_without_anything_newer_to_see_fails_in_recovery() -> None:
    found = certify(broken_sinks.RefusesForNoReason(), about=(Guarantee.BACK,))
    broken = found.failures[Guarantee.RECOVERY].broken
    assert broken.finding == "the start is refused, and nothing newer is visible"


class LeavesItsStaging(broken_sinks.RemembersTheLastTen):
    """Leaves a file behind."""

    def staged(self, place: Path) -> list[str]:
        return [path.name for path in place.glob("unfinished-*")]


@pytest.mark.parametrize("allows_leftovers", [False, True])
def test_what_is_left_behind_is_a_failure_or_a_warning(allows_leftovers: bool) -> None:
    found = certify(LeavesItsStaging(), about=(), allows_leftovers=allows_leftovers)
    kept = found.warnings if allows_leftovers else found.failures
    assert list(kept) == [Guarantee.TIDY], report(found)
    assert kept[Guarantee.TIDY].broken.seen.startswith("unfinished-run-0, ")
    assert found.has_passed == allows_leftovers


class KeepsEveryCheckpoint(LeavesItsStaging):
    def staged(self, place: Path) -> list[str]:
        return []

    def kept(self, place: Path) -> int:
        return len(list(place.glob("out/*")))


def test_a_ledger_that_grows_with_every_checkpoint_fails_in_bounded_history() -> None:
    found = certify(KeepsEveryCheckpoint(), about=(Guarantee.HISTORY,), stride=1000)
    broken = found.failures[Guarantee.HISTORY].broken
    assert broken.finding == "what is kept grows with every checkpoint"
    assert broken.seen == "21 after 20 checkpoints, 201 after 200"


class ReaderThatFails(broken_sinks.FileByFile):
    def rows(self, place: Path) -> Iterator[Any]:
        raise ValueError("half a line")


def test_a_reader_that_fails_is_a_finding_and_no_crash() -> None:
    found = certify(ReaderThatFails())
    assert found.failures[Guarantee.ATOMIC].broken.seen == "ValueError: half a line"


def test_an_assertion_has_the_report_for_its_message() -> None:
    with pytest.raises(SinkNotCertified, match="FAILS: nothing partial visible") as raised:
        certify_sink(broken_sinks.FileByFile(), stride=500)
    assert Guarantee.ATOMIC in raised.value.certificate.failures
