"""The decision for a batch: the same for every run of it, whatever happens meanwhile."""

from __future__ import annotations

import errno
from pathlib import Path

import pytest

from epochgate.models.batch_decision import BatchDecisions
from epochgate.runtime.entries.errors import EntryDamaged, NotCreated
from epochgate.runtime.steering import BatchOvertaken, DecisionNotMade, VersionMissing
from epochgate.runtime.steering.history import decisions
from epochgate.runtime.steering.layout import decisions_of, versions_of
from tests.runtime.steering.steered import (
    CONTROL,
    QUERY,
    Watched,
    driver,
    entries_in,
    limit_of,
    once,
    update,
)

RETAINED = BatchDecisions.CONSTANTS["retained"]


def test_every_run_of_a_batch_sees_the_same_and_the_next_batch_what_is_newest(
    tmp_path: Path,
) -> None:
    entries = entries_in(tmp_path)
    assert limit_of(entries, 0) == 900
    update(entries, limit=700)
    assert [limit_of(entries, batch) for batch in (0, 1, 0, 1)] == [900, 700, 900, 700]


def test_an_update_is_not_in_a_batch_that_was_decided_before_it(tmp_path: Path) -> None:
    store = Watched(entries_in(tmp_path))
    one = driver(store)
    store.before = once(lambda: _ignore(update(store.inner, limit=700)), "create", QUERY)
    assert one.decide(0).value == {"limit": 900}
    assert one.decide(1).value == {"limit": 700}


def test_a_decision_names_the_first_batch_with_its_version(tmp_path: Path) -> None:
    entries = entries_in(tmp_path)
    one = driver(entries)
    assert [one.decide(batch).since for batch in (0, 1)] == [0, 0]
    update(entries, limit=700)
    assert [one.decide(batch).since for batch in (2, 3, 4)] == [2, 2, 2]
    later = driver(entries).decide(5)
    assert (later.version, later.since) == (1, 2)


def test_of_two_drivers_that_decide_for_one_batch_the_first_counts(tmp_path: Path) -> None:
    store = Watched(entries_in(tmp_path))

    def overtake() -> None:
        update(store.inner, limit=700)
        assert limit_of(store.inner, 0) == 700

    store.before = once(overtake, "create", QUERY)
    late = driver(store)
    assert late.decide(0).value == {"limit": 700}
    assert late.is_replay


def test_a_driver_that_was_suspended_decides_nothing_for_a_batch_that_is_forgotten(
    tmp_path: Path,
) -> None:
    store = Watched(entries_in(tmp_path))

    def go_on() -> None:
        other = driver(store.inner)
        for batch in range(RETAINED + 1):
            other.decide(batch)

    store.before = once(go_on, "create", QUERY)
    with pytest.raises(BatchOvertaken, match=r"batch 0 of query query-1, while batch 100 is"):
        driver(store).decide(0)
    with pytest.raises(BatchOvertaken):
        driver(store.inner).decide(0)
    assert decisions(store.inner, CONTROL, QUERY)[0].batch == 1


def test_a_decision_whose_answer_was_lost_counts(tmp_path: Path) -> None:
    store = Watched(entries_in(tmp_path))

    def lose() -> None:
        update(store.inner, limit=700)
        raise OSError(errno.ETIMEDOUT, "the answer was lost")

    store.after = once(lose, "create", QUERY)
    assert driver(store).decide(0).value == {"limit": 900}
    assert limit_of(store.inner, 1) == 700


def test_a_decision_that_was_not_written_is_made_with_what_is_newest_then(tmp_path: Path) -> None:
    store = Watched(entries_in(tmp_path))

    def lose() -> None:
        update(store.inner, limit=700)
        raise OSError(errno.ETIMEDOUT, "the request was lost")

    store.before = once(lose, "create", QUERY)
    assert driver(store).decide(0).value == {"limit": 700}


def test_a_store_that_does_not_answer_is_asked_four_times_and_nothing_runs(tmp_path: Path) -> None:
    store, tries = Watched(entries_in(tmp_path)), []

    def lose(kind: str, key: str) -> None:
        if kind == "create":
            tries.append(key)
            raise OSError(errno.ETIMEDOUT, "no answer")

    store.before = lose
    with pytest.raises(
        DecisionNotMade, match=r"for batch 0 could not be read from or stored in the store.*no ans"
    ):
        driver(store).decide(0)
    assert len(tries) == 4


def test_each_batch_has_all_tries_whatever_the_one_before_it_took(tmp_path: Path) -> None:
    store, tries = Watched(entries_in(tmp_path)), []

    def lose_three_of_four(kind: str, key: str) -> None:
        if kind == "create":
            tries.append(key)
            if len(tries) % 4:
                raise OSError(errno.ETIMEDOUT, "no answer")

    store.before = lose_three_of_four
    one = driver(store)
    assert [one.decide(batch).batch for batch in (0, 1)] == [0, 1]
    assert len(tries) == 8


def test_a_batch_without_a_decision_runs_nothing_once_the_next_one_is_decided(
    tmp_path: Path,
) -> None:
    entries = entries_in(tmp_path)
    one = driver(entries)
    one.decide(0)
    one.decide(1)
    (tmp_path / CONTROL / "queries" / QUERY / "000000000000000.json").unlink()
    with pytest.raises(BatchOvertaken, match=r"batch 0 of query query-1, while batch 1 is"):
        driver(entries).decide(0)


@pytest.mark.parametrize("kind", ["list", "create"])
def test_a_store_that_refuses_is_not_asked_again(tmp_path: Path, kind: str) -> None:
    store, tries = Watched(entries_in(tmp_path)), []

    def refuse(request: str, key: str) -> None:
        if request == kind:
            tries.append(key)
            raise NotCreated(errno.EROFS, "Read-only file system", key)

    store.before = refuse
    with pytest.raises(DecisionNotMade, match="Read-only file system"):
        driver(store).decide(0)
    assert len(tries) == 1


def test_a_version_that_was_removed_is_missed_by_the_next_batch(tmp_path: Path) -> None:
    entries = entries_in(tmp_path)
    update(entries, limit=700)
    assert limit_of(entries, 0) == 700
    versions_of(entries, CONTROL).delete(1)
    assert limit_of(entries, 0) == 700
    one = driver(entries)
    for _ in range(2):
        with pytest.raises(VersionMissing, match=r"update 1 .*the newest is 0.*was removed"):
            one.decide(1)
    update(entries, limit=600)
    assert one.decide(1).value == {"limit": 600}


def test_the_only_version_that_was_removed_is_missed_by_the_driver_that_has_read_it(
    tmp_path: Path,
) -> None:
    entries = entries_in(tmp_path)
    update(entries, limit=700)
    one = driver(entries)
    assert one.decide(0).value == {"limit": 700}
    versions_of(entries, CONTROL).delete(1)
    with pytest.raises(VersionMissing, match=r"update 1 .*the newest is 0.*was removed"):
        one.decide(1)


def test_a_driver_whose_batch_another_has_decided_runs_with_that_decision(tmp_path: Path) -> None:
    store = Watched(entries_in(tmp_path))
    driver(store).decide(0)
    one = driver(store)

    def overtake() -> None:
        update(store.inner, limit=700)
        assert limit_of(store.inner, 1) == 700
        decisions_of(store.inner, CONTROL, QUERY).delete(0)

    store.after = once(overtake, "get", QUERY)
    assert one.decide(1).value == {"limit": 700}


def test_a_damaged_decision_is_told_and_not_replaced(tmp_path: Path) -> None:
    entries = entries_in(tmp_path)
    driver(entries).decide(0)
    path = tmp_path / CONTROL / "queries" / QUERY / "000000000000000.json"
    path.write_bytes(b'{"batch": 0')
    with pytest.raises(EntryDamaged, match=r"000000000000000.json is damaged"):
        driver(entries).decide(0)
    assert path.read_bytes() == b'{"batch": 0'


def test_a_hundred_decisions_are_kept_however_many_there_were(tmp_path: Path) -> None:
    entries, store = entries_in(tmp_path), Watched(entries_in(tmp_path))
    requests: list[str] = []
    one = driver(store)
    for batch in range(RETAINED + 1):
        one.decide(batch)
    store.before = lambda kind, key: requests.append(kind)
    for batch in range(RETAINED + 1, 2 * RETAINED):
        requests.clear()
        one.decide(batch)
        assert sorted(requests) == ["create", "delete", "list", "list", "list"]
    numbers = decisions_of(entries, CONTROL, QUERY).numbers()
    assert numbers == list(range(RETAINED, 2 * RETAINED))


def test_the_next_decision_removes_what_others_have_left(tmp_path: Path) -> None:
    store = Watched(entries_in(tmp_path))

    def fail(kind: str, key: str) -> None:
        if kind == "delete":
            raise OSError(errno.EIO, "cannot be removed now")

    store.before = fail
    for batch in range(RETAINED + 5):
        assert driver(store).decide(batch).batch == batch
    assert len(decisions_of(store.inner, CONTROL, QUERY).numbers()) == RETAINED + 5
    driver(store.inner).decide(RETAINED + 5)
    assert len(decisions_of(store.inner, CONTROL, QUERY).numbers()) == RETAINED


def _ignore(_: object) -> None:
    """Turn a result into none."""
