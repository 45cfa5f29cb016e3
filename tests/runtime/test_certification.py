"""The certification kit refuses sinks that are broken as public ones were, each for its reason."""

from __future__ import annotations

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from epochgate.runtime import Committables, SinkStart
from epochgate.runtime.testing.certification import (
    CaseMisused,
    Certificate,
    Guarantee,
    certify,
    report,
)
from epochgate.runtime.testing.certification.case import expected_row
from epochgate.runtime.testing.certification.certifying import NoSuchSchedule
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
    (broken_sinks.GoesOnRegardless, Guarantee.BACK, "of checkpoints newer than the restored one"),
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


class FencedByEpochCommitter(broken_sinks.FileCommitter):
    """Takes the place for its epoch, and shows rows under a lock while it is the newest's."""

    def __init__(self, place: Path, start: SinkStart) -> None:
        with self.locked(place):
            super().__init__(place, start)
            if self.read("epoch", 0) >= start.epoch:
                raise RuntimeError(f"a later start than {start.epoch} has the place")
            self.keep("epoch", start.epoch)

    @staticmethod
    @contextmanager
    def locked(place: Path) -> Iterator[None]:
        with (place / "lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield

    def commit(self, checkpoint_id: int, committables: Committables) -> None:
        with self.locked(self.place):
            if self.read("epoch", 0) != self.start.epoch:
                raise RuntimeError(f"a later start than {self.start.epoch} has the place")
            self.show(str(checkpoint_id), broken_sinks.all_rows(committables))


class FencedByEpoch(broken_sinks.Batches):
    committer = FencedByEpochCommitter


class ReaderThatFails(broken_sinks.FileByFile):
    def rows(self, place: Path) -> Iterator[Any]:
        raise ValueError("half a line")


def test_a_reader_that_fails_is_a_finding_and_no_crash() -> None:
    found = certify(ReaderThatFails())
    assert found.failures[Guarantee.ATOMIC].broken.seen == "ValueError: half a line"


def test_rows_that_raise_on_an_empty_place_are_told_as_a_mistake_of_the_case() -> None:
    broken = certify(ReaderThatFails()).failures[Guarantee.ATOMIC].broken
    assert broken.finding == "the case's `rows` raised on an empty place; it has to return none"
    assert broken.expected == "no rows"


class ReaderThatFailsLater(broken_sinks.FileByFile):
    def rows(self, place: Path) -> Iterator[Any]:
        if (place / "out").exists():
            raise ValueError("half a line")
        return iter(())


def test_rows_that_raise_later_are_a_finding_about_the_sink() -> None:
    broken = certify(ReaderThatFailsLater()).failures[Guarantee.ATOMIC].broken
    assert broken.finding.startswith("a reader fails before ")


class ClosesWhatWasNotOpenedCommitter(broken_sinks.FileCommitter):
    def open(self, run_id: str, restored: dict[int, Committables]) -> None:
        self.log = (self.place / "log").open("a")

    def commit(self, checkpoint_id: int, committables: Committables) -> None:
        self.show(str(checkpoint_id), broken_sinks.all_rows(committables))

    def close(self) -> None:
        self.log.close()


class ClosesWhatWasNotOpened(broken_sinks.Batches):
    committer = ClosesWhatWasNotOpenedCommitter


def test_a_close_that_fails_after_a_failed_open_is_a_finding_and_no_crash() -> None:
    found = certify(ClosesWhatWasNotOpened(), about=(Guarantee.REPLAY,), first_only=True)
    assert list(found.failures) == [Guarantee.RECOVERY], report(found)
    failure = found.failures[Guarantee.RECOVERY]
    assert failure.broken.finding.startswith("close raises AttributeError: ")
    assert failure.broken.finding.endswith("has no attribute 'log', after open has failed")
    assert failure.story[-1].startswith("driver run-0: close raises AttributeError: ")


def test_each_start_has_a_higher_epoch_than_those_before_it() -> None:
    found = certify(FencedByEpoch(), about=(Guarantee.FENCING, Guarantee.BACK), stride=17)
    assert found.has_passed, report(found)
    assert found.tried[Guarantee.FENCING] > 5


class ReturnsTuples(broken_sinks.FileByFile):
    def rows(self, place: Path) -> Iterator[Any]:
        return ((row["number"], row["text"]) for row in super().rows(place))


class LacksColumns(broken_sinks.FileByFile):
    def rows(self, place: Path) -> Iterator[Any]:
        return ({"n": row["number"]} for row in super().rows(place))


class NeedsWhatIsNotThere(broken_sinks.FileByFile):
    def batch(self, rows: list[dict[str, Any]]) -> Any:
        import no_such_module_of_batches  # type: ignore[import-not-found]

        return no_such_module_of_batches.Batch(rows)


def test_rows_that_are_tuples_are_a_fault_of_the_case_and_not_of_the_sink() -> None:
    with pytest.raises(CaseMisused, match=r"ReturnsTuples\.rows returned \(.*\), a tuple; it must"):
        certify(ReturnsTuples(), first_only=True)


def test_rows_without_the_columns_are_told_which_they_are() -> None:
    found = certify(LacksColumns(), first_only=True)
    broken = found.failures[Guarantee.ATOMIC].broken
    assert broken.expected == "the columns 'number' and 'text', as in " + repr(expected_row(7))


def test_a_case_whose_batches_need_a_missing_module_is_refused_before_anything_runs() -> None:
    with pytest.raises(
        CaseMisused,
        match="Install no_such_module_of_batches, or override `batch` in the case",
    ):
        certify(NeedsWhatIsNotThere())


def test_a_schedule_is_played_again_by_its_token_and_nothing_else_is() -> None:
    case, about = broken_sinks.TwoCoordinators(), (Guarantee.FENCING,)
    first = certify(case, about=about, first_only=True)
    failure = first.failures[Guarantee.FENCING]
    assert f"  replay    the same command with --only {failure.token}\n" in report(first)
    again = certify(case, only=failure.token)
    assert again.failures[Guarantee.FENCING].story == failure.story
    assert again.schedules == 3, "the two without a failure, and this one"


def test_a_token_that_no_schedule_has_is_refused() -> None:
    with pytest.raises(NoSuchSchedule, match="has no schedule '00000000': its calls up to the"):
        certify(broken_sinks.TwoCoordinators(), only="00000000")


def test_a_schedule_that_holds_by_itself_certifies_nothing() -> None:
    certificate = Certificate("Case", tried={Guarantee.FENCING: 1}, only="1f0a93c2")
    told = report(certificate)
    assert told.endswith("Case holds in schedule 1f0a93c2; the others were not played.")


def test_an_assertion_has_the_report_for_its_message() -> None:
    with pytest.raises(SinkNotCertified, match="FAILS: atomic") as raised:
        certify_sink(broken_sinks.FileByFile(), stride=500)
    assert Guarantee.ATOMIC in raised.value.certificate.failures
