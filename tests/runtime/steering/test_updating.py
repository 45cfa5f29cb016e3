"""Updates of one control: each counts once, in one order."""

from __future__ import annotations

import errno
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from epochgate.models.control_update import ControlUpdates
from epochgate.runtime.entries.errors import NotCreated
from epochgate.runtime.steering import (
    UpdateFailed,
    UpdateInDoubt,
    Updating,
    effective_from,
    updates,
)
from epochgate.runtime.steering.errors import HistoryForgotten
from epochgate.runtime.steering.layout import versions_of
from epochgate.runtime.steering.versions import Versions
from tests.runtime.steering.steered import (
    CONTROL,
    QUERY,
    Watched,
    driver,
    entries_in,
    once,
    update,
)

RETAINED = ControlUpdates.CONSTANTS["retained"]


def test_each_update_follows_the_one_before_and_keeps_what_it_does_not_name(
    tmp_path: Path,
) -> None:
    entries = entries_in(tmp_path)
    assert [update(entries, limit=700), update(entries, region="north")] == [1, 2]
    assert Versions(entries, CONTROL).newest() == (2, {"limit": 700, "region": "north"})
    assert [one.changes for one in updates(entries, CONTROL)] == [
        {"limit": 700},
        {"region": "north"},
    ]


def test_an_update_that_another_overtakes_follows_it(tmp_path: Path) -> None:
    store = Watched(entries_in(tmp_path))
    store.before = once(lambda: _ignore(update(store.inner, a=1, b=1)), "create")
    assert update(store, b=2) == 2
    assert Versions(store.inner, CONTROL).newest() == (2, {"a": 1, "b": 2})


def test_an_update_is_accepted_with_what_it_follows_or_has_no_effect(tmp_path: Path) -> None:
    store, asked = Watched(entries_in(tmp_path)), []
    store.before = once(lambda: _ignore(update(store.inner, a=1)), "create")

    def accept(newest: dict[str, int], changes: dict[str, int]) -> None:
        asked.append((newest, changes))
        if newest:
            raise SystemExit("not together")

    updating = Updating(store, "the store", CONTROL, "a test", accept=accept)
    with pytest.raises(SystemExit, match="not together"):
        updating.update({"b": 2})
    assert asked == [({}, {"b": 2}), ({"a": 1}, {"b": 2})]
    assert Versions(store.inner, CONTROL).newest() == (1, {"a": 1})


def test_updates_of_many_threads_count_once_each(tmp_path: Path) -> None:
    entries = entries_in(tmp_path)
    taken: list[int] = []

    def add(name: str) -> None:
        taken.extend(update(entries, **{f"{name}{number}": number}) for number in range(10))

    threads = [threading.Thread(target=add, args=(name,)) for name in "abcd"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(taken) == list(range(1, 41))
    number, value = Versions(entries, CONTROL).newest()
    assert (number, len(value)) == (40, 40)


def test_an_update_whose_answer_was_lost_takes_no_second_number(tmp_path: Path) -> None:
    store = Watched(entries_in(tmp_path))

    def lose() -> None:
        raise OSError(errno.ETIMEDOUT, "the answer was lost")

    store.after = once(lose, "create")
    assert update(store, limit=700) == 1
    assert len(updates(store.inner, CONTROL)) == 1


def test_an_update_whose_number_another_took_meanwhile_follows_it(tmp_path: Path) -> None:
    store = Watched(entries_in(tmp_path))
    store.before = once(_another_then_no_answer(store), "create")
    assert update(store, limit=700) == 2
    assert Versions(store.inner, CONTROL).newest() == (2, {"limit": 700, "other": 0})


def test_an_update_that_is_refused_its_second_number_has_failed(tmp_path: Path) -> None:
    store = Watched(entries_in(tmp_path))
    lose, tries = _another_then_no_answer(store), []

    def fail(kind: str, key: str) -> None:
        if kind == "create":
            tries.append(key)
            if len(tries) == 1:
                lose()
            if len(set(tries)) == 2:
                raise NotCreated(errno.ENOSPC, "No space left on device", key)

    store.before = fail
    with pytest.raises(UpdateFailed, match="No space left"):
        update(store, limit=700)
    assert Versions(store.inner, CONTROL).newest() == (1, {"other": 0})


def test_an_update_without_any_answer_is_in_doubt_after_four_tries(tmp_path: Path) -> None:
    store, tries = Watched(entries_in(tmp_path)), []

    def lose(kind: str, key: str) -> None:
        if kind == "create":
            tries.append(key)
            raise OSError(errno.ETIMEDOUT, "no answer")

    store.before = lose
    with pytest.raises(UpdateInDoubt, match=r"unknown: .*no answer"):
        update(store, limit=700)
    assert len(set(tries)) == 1
    assert len(tries) == 4


def test_an_update_that_is_refused_has_failed(tmp_path: Path) -> None:
    store = Watched(entries_in(tmp_path))

    def refuse(kind: str, key: str) -> None:
        if kind == "create":
            raise NotCreated(errno.ENOSPC, "No space left on device", key)

    store.before = refuse
    with pytest.raises(UpdateFailed, match="No space left"):
        update(store, limit=700)
    assert updates(store.inner, CONTROL) == []


def test_an_update_that_cannot_read_what_is_there_has_failed(tmp_path: Path) -> None:
    store = Watched(entries_in(tmp_path))

    def fail() -> None:
        raise OSError(errno.EIO, "the disk fails")

    store.before = once(fail, "list")
    with pytest.raises(UpdateFailed, match="the disk fails"):
        update(store, limit=700)
    assert update(store, limit=700) == 1


def test_an_update_that_may_still_come_is_in_doubt_although_the_store_refuses_the_next_try(
    tmp_path: Path,
) -> None:
    store, answers = Watched(entries_in(tmp_path)), [errno.ETIMEDOUT, errno.EROFS]

    def fail(kind: str, key: str) -> None:
        if kind == "create":
            number = answers.pop(0)
            raise (NotCreated if number == errno.EROFS else OSError)(number, "it fails")

    store.before = fail
    with pytest.raises(UpdateInDoubt):
        update(store, limit=700)


def test_an_update_that_cannot_be_confirmed_is_in_doubt(tmp_path: Path) -> None:
    store, kinds = Watched(entries_in(tmp_path)), []

    def fail(kind: str, key: str) -> None:
        kinds.append(kind)
        if kind == "list" and "create" in kinds:
            raise OSError(errno.EIO, "the disk fails")

    store.before = fail
    with pytest.raises(UpdateInDoubt, match="the disk fails"):
        update(store, limit=700)


def test_an_update_that_was_suspended_while_a_hundred_others_came_is_in_doubt(
    tmp_path: Path,
) -> None:
    store = Watched(entries_in(tmp_path))

    def others() -> None:
        for number in range(RETAINED + 1):
            update(store.inner, limit=number)

    store.before = once(others, "create")
    with pytest.raises(UpdateInDoubt, match="others have made many updates since version 1"):
        update(store, limit=700)
    assert Versions(store.inner, CONTROL).newest() == (101, {"limit": 100})


def test_an_update_that_may_have_been_removed_is_not_made_again(tmp_path: Path) -> None:
    """Its first try has counted, was removed, and another's late request has its number."""
    store = Watched(entries_in(tmp_path))

    def lose() -> None:
        for number in range(RETAINED):
            update(store.inner, limit=number)
        entry = {"version": 1, "value": {}, "changes": {}, "token": "of another"}
        versions_of(store.inner, CONTROL).create(1, {**entry, "at": 0.0, "by": "another"})
        raise OSError(errno.ETIMEDOUT, "the answer was lost")

    store.after = once(lose, "create")
    with pytest.raises(UpdateInDoubt, match="the answer was lost"):
        update(store, limit=700)
    assert Versions(store.inner, CONTROL).newest()[0] == 1 + RETAINED


def test_a_hundred_versions_are_kept(tmp_path: Path) -> None:
    entries = entries_in(tmp_path)
    for number in range(RETAINED + 20):
        update(entries, limit=number)
    assert versions_of(entries, CONTROL).numbers() == list(range(21, RETAINED + 21))


def test_old_versions_are_counted_from_the_newest_although_it_is_not_ones_own(
    tmp_path: Path,
) -> None:
    store = Watched(entries_in(tmp_path))
    for number in range(RETAINED):
        update(store.inner, limit=number)

    def others() -> None:
        """They have not come to removing any version yet."""
        for number in range(RETAINED + 2, RETAINED + 7):
            versions_of(store.inner, CONTROL).create(number, {"token": "other", "value": {}})

    store.after = once(others, "create")
    assert update(store, limit=700) == RETAINED + 1
    assert versions_of(store.inner, CONTROL).numbers() == list(range(7, RETAINED + 7))


def test_since_when_an_update_is_in_force_is_told_for_ever(tmp_path: Path) -> None:
    entries = entries_in(tmp_path)
    one = driver(entries)
    one.decide(0)
    first = update(entries, limit=700)
    second = update(entries, limit=600)
    assert effective_from(entries, CONTROL, QUERY, first) is None
    one.decide(1)
    assert effective_from(entries, CONTROL, QUERY, first) == 1
    for batch in range(2, RETAINED):
        one.decide(batch)
    assert [effective_from(entries, CONTROL, QUERY, v) for v in (0, first, second)] == [0, 1, 1]
    for batch in range(RETAINED, 2 * RETAINED):
        one.decide(batch)
    assert effective_from(entries, CONTROL, QUERY, second) == 1
    with pytest.raises(HistoryForgotten, match=r"version 1 .* since before batch 100"):
        effective_from(entries, CONTROL, QUERY, first)


def _another_then_no_answer(store: Watched) -> Callable[[], None]:
    """Let another make an update, and raise what a lost answer raises."""

    def lose() -> None:
        update(store.inner, other=0)
        raise OSError(errno.ETIMEDOUT, "the answer was lost")

    return lose


def _ignore(_: object) -> None:
    """Turn a result into none."""
