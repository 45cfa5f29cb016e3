"""The plans of batches: each split is in one of them, whatever happens between two."""

from __future__ import annotations

import errno
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from epochgate.models.batch_plan import BatchPlans
from epochgate.runtime.entries.errors import NotCreated
from epochgate.runtime.entries.stores import DirectoryEntries, Entries
from epochgate.runtime.filesystem import LocalFileSystem
from epochgate.runtime.source import (
    SourceSplit,
    SplitEnumerator,
    SplitEnumeratorContext,
    SplitQueueEnumerator,
)
from epochgate.runtime.source.batches.enumerating import BatchEnumerator
from epochgate.runtime.source.batches.errors import PlanForgotten, PlanNotMade, PlanOvertaken
from epochgate.runtime.source.batches.planning import Planning
from epochgate.runtime.source.batches.plans import plans_of
from epochgate.runtime.testing.faulty_filesystem import Fault, FaultyFileSystem, SimulatedCrash
from tests.runtime.steering.numbered import (
    STREAM,
    Numbers,
    are_at_least,
    at_most,
    driver,
    numbers,
)
from tests.runtime.steering.steered import Watched, entries_in, once

RETAINED = BatchPlans.CONSTANTS["retained"]


def all_planned(entries: Entries, source: Numbers) -> list[list[int]]:
    """Every batch of a driver that starts now, until there are no more splits."""
    one = driver(entries, source)
    found: list[list[int]] = []
    while one.has_batch(len(found) + 1):
        found.append(numbers(one, len(found) + 1))
    return found


def test_a_batch_has_as_many_splits_as_it_may_and_the_next_goes_on(tmp_path: Path) -> None:
    source = Numbers(5)
    one = driver(entries_in(tmp_path), source)
    assert [one.has_batch(batch) for batch in (1, 2, 3, 4, 4)] == [True, True, True, False, False]
    assert [numbers(one, batch) for batch in (1, 2, 3)] == [[0, 1], [2, 3], [4]]
    source.there = 6
    assert one.has_batch(4)
    assert numbers(one, 4) == [5]
    assert [split.value for of in one.batches(1, 4) for split in of.splits] == [2, 3, 4, 5]


def test_a_driver_that_starts_finds_what_was_planned_and_goes_on_behind_it(tmp_path: Path) -> None:
    entries, source = entries_in(tmp_path), Numbers(5)
    assert driver(entries, source).has_batch(1)
    source.there = 9
    later = driver(entries, source, most=10)
    assert later.has_batch(1)
    assert later.has_batch(2)
    assert [numbers(later, batch) for batch in (1, 2)] == [[0, 1], [2, 3, 4, 5, 6, 7, 8]]


def test_an_enumerator_with_nothing_to_give_is_asked_again_and_not_made_again(
    tmp_path: Path,
) -> None:
    entries, source = entries_in(tmp_path), Numbers(2)
    assert driver(entries, source).has_batch(1)
    made: list[Any] = []

    def make(begun: tuple[int, Any] | None) -> BatchEnumerator:
        made.append(begun)
        return BatchEnumerator(source, begun, at_most(2), are_at_least)

    later = Planning(entries, "the place", STREAM, make)
    assert [later.has_batch(batch) for batch in (1, 2, 2)] == [True, False, False]
    source.there = 3
    assert later.has_batch(2)
    assert len(made) == 1


def test_a_plan_that_is_gone_is_not_made_again_before_a_later_one(tmp_path: Path) -> None:
    entries, source = entries_in(tmp_path), Numbers(4)
    one = driver(entries, source)
    assert [one.has_batch(batch) for batch in (1, 2)] == [True, True]
    plans_of(entries, STREAM).delete(1)
    with pytest.raises(PlanOvertaken, match="batch 1 has no plan in the place, and batch 2 has"):
        driver(entries, source).has_batch(1)


def test_what_others_have_left_is_swept_once_a_plan_of_ones_own_counts(tmp_path: Path) -> None:
    entries, source = entries_in(tmp_path), Numbers(4)
    assert driver(entries, source).has_batch(1)
    swept: list[int] = []
    later = Planning(
        entries,
        "the place",
        STREAM,
        lambda begun: BatchEnumerator(source, begun, at_most(2), are_at_least),
        lambda states: swept.append(len(list(states))),
    )
    assert later.has_batch(1)
    assert swept == [], "another driver has made that plan, and may go on from it"
    assert later.has_batch(2)
    assert swept == [2]
    assert not later.has_batch(3)
    assert swept == [2]


class Untidy(BatchEnumerator):
    """Cannot remove what it has kept beside the plans."""

    def forgotten(self, batch: int) -> None:
        raise RuntimeError("what it has kept is locked")


def cannot_list(states: Iterator[tuple[int, Any]]) -> None:
    raise ValueError("what is left has no number")


@pytest.mark.parametrize(
    ("kind", "remove_left", "reason"),
    [
        (Untidy, None, "what it has kept is locked"),
        (BatchEnumerator, cannot_list, "what is left has no number"),
    ],
)
def test_what_cannot_be_removed_holds_up_no_batch_and_is_told(
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    kind: type[BatchEnumerator],
    remove_left: Callable[[Iterator[tuple[int, Any]]], None] | None,
    reason: str,
) -> None:
    entries, source = entries_in(tmp_path), Numbers(2 * (RETAINED + 2))
    one = Planning(
        entries,
        "the place",
        STREAM,
        lambda begun: kind(source, begun, at_most(2), are_at_least),
        remove_left,
    )
    for batch in range(1, RETAINED + 3):
        assert one.has_batch(batch)
        assert numbers(one, batch) == [2 * batch - 2, 2 * batch - 1]
    assert reason in caplog.text


def test_of_two_drivers_that_plan_one_batch_the_first_counts(tmp_path: Path) -> None:
    store, source = Watched(entries_in(tmp_path)), Numbers(1)
    late = driver(store, source)

    def overtake() -> None:
        source.there = 4
        assert driver(store.inner, source, most=3).has_batch(1)

    store.before = once(overtake, "create")
    assert late.has_batch(1)
    assert numbers(late, 1) == [0, 1, 2]
    assert late.has_batch(2)
    assert numbers(late, 2) == [3]


def test_a_plan_whose_answer_was_lost_counts_and_no_split_is_left_out(tmp_path: Path) -> None:
    for moment in ("before", "after"):
        store, source = Watched(entries_in(tmp_path / moment)), Numbers(5)

        def lose() -> None:
            raise OSError(errno.ETIMEDOUT, "no answer")

        setattr(store, moment, once(lose, "create"))
        one = driver(store, source)
        assert [one.has_batch(batch) for batch in (1, 2, 3)] == [True] * 3
        assert [numbers(one, batch) for batch in (1, 2, 3)] == [[0, 1], [2, 3], [4]]


@pytest.mark.parametrize("kind", [KeyError, ConnectionError, SystemExit, KeyboardInterrupt])
def test_what_an_enumerator_raises_fails_its_batch_with_its_type_and_line(
    tmp_path: Path, kind: type[BaseException]
) -> None:
    class Raising(Numbers):
        def look(self) -> list[SourceSplit]:
            if self.fails:
                raise kind("of mine")
            return super().look()

    source = Raising(2)
    source.fails = True
    planning = driver(entries_in(tmp_path), source)
    with pytest.raises(PlanNotMade, match=rf"{kind.__name__}: '?of mine'?\n  File .*, line \d+"):
        planning.has_batch(1)
    source.fails = False
    assert (planning.has_batch(1), numbers(planning, 1)) == (True, [0, 1])


def test_an_error_of_store_or_source_loses_no_split(tmp_path: Path) -> None:
    store, source = Watched(entries_in(tmp_path)), Numbers(3)
    one = driver(store, source)

    def refuse() -> None:
        raise NotCreated(errno.ENOSPC, "No space left on device")

    store.before = once(refuse, "create")
    with pytest.raises(PlanNotMade, match=r"batch 1 .* the place: .*No space left"):
        one.has_batch(1)
    source.fails = True
    with pytest.raises(PlanNotMade, match="the catalogue does not answer"):
        one.has_batch(1)
    source.fails = False
    assert one.has_batch(1)
    assert numbers(one, 1) == [0, 1]


def test_what_an_enumerator_gave_until_it_failed_is_given_again(tmp_path: Path) -> None:
    class Unsteady(SplitQueueEnumerator):
        requests = 0

        def handle_split_request(self, subtask: int) -> None:
            Unsteady.requests += 1
            if Unsteady.requests == 4:
                raise RuntimeError("the connection is gone")
            super().handle_split_request(subtask)

    class Catalogue(Numbers):
        def create_enumerator(self, context: SplitEnumeratorContext, state: Any) -> SplitEnumerator:
            return Unsteady(context, state, self.look, every_s=0.0)

    one = driver(entries_in(tmp_path), Catalogue(4))
    assert one.has_batch(1)
    with pytest.raises(PlanNotMade, match="the connection is gone"):
        one.has_batch(2)
    assert one.has_batch(2)
    assert [numbers(one, batch) for batch in (1, 2)] == [[0, 1], [2, 3]]


@pytest.mark.parametrize("when", ["before", "after"])
def test_after_a_crash_at_any_operation_each_split_is_in_one_batch(
    tmp_path: Path, when: Any
) -> None:
    for at in range(40):
        folder, source = tmp_path / str(at), Numbers(5)
        files = FaultyFileSystem(LocalFileSystem(), Fault(at, "crash", when))
        dying = driver(DirectoryEntries(str(folder), files), source)
        told: list[list[int]] = []
        try:
            while dying.has_batch(len(told) + 1):
                told.append(numbers(dying, len(told) + 1))
        except SimulatedCrash:
            source.there = 7
        planned = all_planned(entries_in(folder), source)
        assert planned[: len(told)] == told
        assert [one for batch in planned for one in batch] == list(range(source.there))
        if not files.has_struck:
            break
    else:
        pytest.fail("there are more operations than were tried")


def test_a_driver_that_was_suspended_is_told_of_no_batch_that_is_forgotten(tmp_path: Path) -> None:
    store, source = Watched(entries_in(tmp_path)), Numbers(1)

    late = driver(store, source, most=1)
    planned = driver(store.inner, source, most=1)

    def go_on_slowly() -> None:
        source.there = RETAINED + 2
        for batch in range(1, RETAINED + 2):
            assert planned.has_batch(batch)

    store.before = once(go_on_slowly, "create")
    with pytest.raises(PlanOvertaken, match="batch 1 has no plan in the place, and batch 101 has"):
        late.has_batch(1)
    with pytest.raises(PlanForgotten, match="the plan of batch 1 is not in the place any more"):
        planned.batches(0, 1)


@pytest.mark.parametrize("begins", [True, False])
def test_a_driver_that_was_overtaken_plans_nothing(tmp_path: Path, begins: bool) -> None:
    store, source = Watched(entries_in(tmp_path)), Numbers(RETAINED + 3)
    late = driver(store, source, most=1)
    if begins:
        assert late.has_batch(1)
    other = driver(store.inner, source, most=1)
    for batch in range(1, RETAINED + 3):
        assert other.has_batch(batch)
    requests: list[str] = []
    store.before = lambda kind, key: requests.append(kind)
    with pytest.raises(PlanOvertaken, match="batch 2 has no plan in the place, and batch 102 has"):
        late.has_batch(2)
    assert requests == ["list"]


def test_a_forgotten_plan_that_could_not_be_removed_is_neither_told_nor_read(
    tmp_path: Path,
) -> None:
    store, source = Watched(entries_in(tmp_path)), Numbers(RETAINED + 1)

    def keep(kind: str, key: str) -> None:
        if kind == "delete":
            raise OSError(errno.EIO, "Input/output error")

    store.before = keep
    one = driver(store, source, most=1)
    for batch in range(1, RETAINED + 2):
        assert one.has_batch(batch)
    assert plans_of(store, STREAM).numbers()[0] == 1
    with pytest.raises(PlanForgotten, match="the plan of batch 1 is not in the place any more"):
        one.batches(0, 1)
    with pytest.raises(PlanOvertaken, match="batch 1 has no plan in the place, and batch 101 has"):
        driver(store, source).has_batch(1)
    assert numbers(one, 2) == [1]


def test_a_store_that_never_answers_is_asked_a_bounded_number_of_times(tmp_path: Path) -> None:
    store, source = Watched(entries_in(tmp_path)), Numbers(3)
    created = 0

    def lose(kind: str, key: str) -> None:
        nonlocal created
        if kind == "create":
            created += 1
            assert created < 10, "the store is not asked for ever"
            raise OSError(errno.ETIMEDOUT, "no answer")

    store.before = lose
    one = driver(store, source)
    for _ in range(2):
        with pytest.raises(PlanNotMade, match=r"batch 1 .* the place: .*no answer"):
            one.has_batch(1)
        assert created == BatchPlans.CONSTANTS["entry_retries"] + 1
        created = 0
    store.before = lambda kind, key: None
    assert one.has_batch(1)
    assert numbers(one, 1) == [0, 1]


def test_a_hundred_plans_are_kept(tmp_path: Path) -> None:
    entries, source = entries_in(tmp_path), Numbers(RETAINED + 20)
    one = driver(entries, source, most=1)
    for batch in range(1, RETAINED + 21):
        assert one.has_batch(batch)
    assert plans_of(entries, STREAM).numbers() == list(range(21, RETAINED + 21))
    with pytest.raises(PlanForgotten, match="the plan of batch 20 is not in the place any more"):
        one.batches(19, 20)
    assert numbers(one, 21) == [20]


def test_where_only_what_is_there_is_wanted_the_source_looks_once(tmp_path: Path) -> None:
    source = Numbers(3)

    def make(begun: Any) -> BatchEnumerator:
        made = BatchEnumerator(source, begun, at_most(1), are_at_least)
        made.looks = False
        return made

    one = Planning(entries_in(tmp_path), "the place", STREAM, make)
    assert one.has_batch(1)
    source.there = 9
    assert [one.has_batch(batch) for batch in (2, 3, 4)] == [True, True, False]


def test_what_an_enumerator_gives_beyond_the_limit_waits_for_the_next_batch(
    tmp_path: Path,
) -> None:
    class Generous(SplitEnumerator):
        def __init__(self, context: SplitEnumeratorContext, state: Any) -> None:
            self.context, self.given = context, state or 0

        def handle_split_request(self, subtask: int) -> None:
            if self.given == 5:
                self.context.signal_no_more_splits(subtask)
                return
            self.given = 5
            splits = [SourceSplit(str(number), number) for number in range(5)]
            self.context.assign_splits({subtask: splits})

        def add_splits_back(self, splits: list[SourceSplit], subtask: int) -> None:
            raise AssertionError("what was given out stays in its plan")

        def add_reader(self, subtask: int) -> None:
            pass

        def snapshot_state(self, checkpoint_id: int) -> Any:
            return self.given

    class Bunch(Numbers):
        def create_enumerator(self, context: SplitEnumeratorContext, state: Any) -> SplitEnumerator:
            return Generous(context, state)

    entries = entries_in(tmp_path)
    assert driver(entries, Bunch(0)).has_batch(1)
    assert all_planned(entries, Bunch(0)) == [[0, 1], [2, 3], [4]]


def test_the_state_of_another_version_is_upgraded_by_the_source(tmp_path: Path) -> None:
    class Renamed(Numbers):
        state_version = 2

        def upgrade_state(self, version: int, state: Any) -> Any:
            assert version == 1
            return state

    entries = entries_in(tmp_path)
    assert driver(entries, Numbers(5)).has_batch(1)
    assert all_planned(entries, Renamed(5)) == [[0, 1], [2, 3], [4]]
