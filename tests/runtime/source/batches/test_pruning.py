"""Filters of sources: each split is in one batch, or pruned by the filter that one plan records."""

from __future__ import annotations

import errno
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from epochgate.runtime.entries.stores import DirectoryEntries, Entries
from epochgate.runtime.filesystem import LocalFileSystem
from epochgate.runtime.source import SourceSplit
from epochgate.runtime.source.batches import enumerating
from epochgate.runtime.source.batches.errors import PlanNotMade
from epochgate.runtime.source.batches.planned import PlannedBatch, SplitFilter, plans
from epochgate.runtime.testing.faulty_filesystem import Fault, FaultyFileSystem, SimulatedCrash
from tests.runtime.steering.numbered import STREAM, Numbers, are_at_least, driver, numbers
from tests.runtime.steering.steered import Watched, entries_in, once


class Least:
    """The smallest number that a batch reads, as a control has it."""

    def __init__(self, least: int) -> None:
        self.least, self.version = least, 0
        self.fails = False

    def update(self, least: int) -> None:
        self.least, self.version = least, self.version + 1

    def __call__(self) -> SplitFilter:
        if self.fails:
            raise OSError(errno.EIO, "Input/output error")
        return SplitFilter(self.version, "", {"least": self.least})


def kept(folder: Path) -> list[tuple[list[int], list[str]]]:
    """Return what each plan reads and has pruned."""
    return [([split.value for split in one.splits], one.pruned) for one in plans(str(folder))]


def plan_all(entries: Entries, source: Numbers, least: Least) -> None:
    """Every batch of a driver that starts now, until there are no more splits."""
    one, batch = driver(entries, source, newest=least), 1
    while one.has_batch(batch):
        batch += 1


def test_splits_that_cannot_match_are_in_no_batch_and_in_the_plan_by_their_ids(
    tmp_path: Path,
) -> None:
    source, least = Numbers(5), Least(2)
    one = driver(entries_in(tmp_path), source, newest=least)
    assert one.has_batch(1)
    [planned] = plans(str(tmp_path))
    assert planned == PlannedBatch(
        1, planned.splits, SplitFilter(0, "", {"least": 2}), ["0", "1"], STREAM
    )
    assert numbers(one, 1) == [2, 3]
    assert one.batches(0, 1)[0].filter == SplitFilter(0, "", {"least": 2})


def test_as_many_splits_are_judged_together_as_the_batch_could_still_take(tmp_path: Path) -> None:
    judged: list[list[int]] = []

    def judge(splits: Sequence[SourceSplit], by: SplitFilter) -> list[bool]:
        judged.append([split.value for split in splits])
        return are_at_least(splits, by)

    one = driver(entries_in(tmp_path), Numbers(9), most=3, newest=Least(4), judge=judge)
    assert [one.has_batch(batch) for batch in (1, 2, 3)] == [True, True, False]
    assert kept(tmp_path) == [([4, 5, 6], ["0", "1", "2", "3"]), ([7, 8], [])]
    assert judged == [[0, 1, 2], [3, 4, 5], [6], [7, 8]]


def test_a_change_of_the_filter_counts_from_the_next_plan_on_and_brings_nothing_back(
    tmp_path: Path,
) -> None:
    source, least = Numbers(5), Least(2)
    one = driver(entries_in(tmp_path), source, newest=least)
    assert one.has_batch(1)
    least.update(0)
    source.there = 6
    assert [one.has_batch(batch) for batch in (1, 2, 3)] == [True, True, False]
    assert kept(tmp_path) == [([2, 3], ["0", "1"]), ([4, 5], [])]
    assert [plan.filter and plan.filter.version for plan in plans(str(tmp_path))] == [0, 1]


def test_a_batch_whose_splits_are_all_pruned_is_a_batch_without_splits(tmp_path: Path) -> None:
    source, least = Numbers(3), Least(9)
    one = driver(entries_in(tmp_path), source, newest=least)
    assert [one.has_batch(batch) for batch in (1, 2)] == [True, False]
    assert numbers(one, 1) == []
    least.update(0)
    source.there = 4
    later = driver(entries_in(tmp_path), source, newest=least)
    assert [later.has_batch(batch) for batch in (1, 2, 3)] == [True, True, False]
    assert kept(tmp_path) == [([], ["0", "1", "2"]), ([3], [])]


def test_a_driver_that_starts_after_a_change_reads_by_the_filter_in_the_plan(
    tmp_path: Path,
) -> None:
    source, least = Numbers(4), Least(1)
    assert driver(entries_in(tmp_path), source, newest=least).has_batch(1)
    least.update(0)
    later = driver(entries_in(tmp_path), source, newest=least)
    assert later.has_batch(1)
    [planned] = later.batches(0, 1)
    assert [split.value for split in planned.splits] == [1, 2]
    assert planned.filter == SplitFilter(0, "", {"least": 1})


def test_of_two_drivers_that_prune_one_batch_differently_the_first_counts(tmp_path: Path) -> None:
    store, source, least = Watched(entries_in(tmp_path)), Numbers(4), Least(0)
    late = driver(store, source, most=3, newest=least)

    def overtake() -> None:
        least.update(2)
        assert driver(store.inner, source, newest=least).has_batch(1)

    store.before = once(overtake, "create")
    assert late.has_batch(1)
    assert late.batches(0, 1)[0].filter == SplitFilter(1, "", {"least": 2})
    assert not late.has_batch(2)
    assert kept(tmp_path) == [([2, 3], ["0", "1"])]


@pytest.mark.parametrize("moment", ["before", "after"])
def test_what_a_plan_has_pruned_whose_answer_was_lost_is_pruned_by_one_plan(
    tmp_path: Path, moment: str
) -> None:
    store, source, least = Watched(entries_in(tmp_path)), Numbers(2), Least(9)

    def lose() -> None:
        raise OSError(errno.ETIMEDOUT, "no answer")

    setattr(store, moment, once(lose, "create"))
    one = driver(store, source, newest=least)
    assert [one.has_batch(batch) for batch in (1, 2)] == [True, False]
    assert kept(tmp_path) == [([], ["0", "1"])]


def test_while_the_filter_cannot_be_read_nothing_is_planned_and_no_split_is_lost(
    tmp_path: Path,
) -> None:
    source, least = Numbers(3), Least(1)
    one = driver(entries_in(tmp_path), source, newest=least)
    least.fails = True
    with pytest.raises(PlanNotMade, match=r"batch 1 .* Input/output error"):
        one.has_batch(1)
    least.fails = False
    assert [one.has_batch(batch) for batch in (1, 2)] == [True, False]
    assert kept(tmp_path) == [([1, 2], ["0"])]


def test_a_plan_prunes_a_bounded_number_of_splits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(enumerating, "PRUNED_MAX", 3)
    plan_all(entries_in(tmp_path), Numbers(8), Least(7))
    assert kept(tmp_path) == [([], ["0", "1", "2"]), ([], ["3", "4", "5"]), ([7], ["6"])]


def test_plans_of_earlier_releases_have_no_filter(tmp_path: Path) -> None:
    assert driver(entries_in(tmp_path), Numbers(2)).has_batch(1)
    [planned] = plans(str(tmp_path))
    assert (planned.filter, planned.pruned, len(planned.splits)) == (None, [], 2)


@pytest.mark.parametrize("when", ["before", "after"])
def test_after_a_crash_at_any_operation_each_split_is_read_or_pruned_once(
    tmp_path: Path, when: Any
) -> None:
    for at in range(40):
        folder, source, least = tmp_path / str(at), Numbers(5), Least(3)
        files = FaultyFileSystem(LocalFileSystem(), Fault(at, "crash", when))
        told: list[PlannedBatch] = []
        try:
            dying = driver(DirectoryEntries(str(folder), files), source, most=1, newest=least)
            while dying.has_batch(len(told) + 1):
                told += dying.batches(len(told), len(told) + 1)
                least.update(3 - len(told))
        except SimulatedCrash:
            source.there = 7
        least.update(0)
        plan_all(entries_in(folder), source, least)
        planned = plans(str(folder))
        # What Spark was told of is as it was told, with the filter of then.
        assert [(one.splits, one.filter) for one in planned[: len(told)]] == [
            (one.splits, one.filter) for one in told
        ]
        of_all = [name for one in planned for name in (*one.pruned, *_ids(one))]
        assert sorted(of_all) == [str(number) for number in range(source.there)]
        if not files.has_struck:
            break
    else:
        pytest.fail("there are more operations than were tried")


def _ids(one: PlannedBatch) -> list[str]:
    return [split.split_id for split in one.splits]
