"""Stores, coordinators and enumerators that hang: each wait ends, by a row."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from threading import Event
from typing import Any

import pytest

from epochgate.models.created_once import OneDriver
from epochgate.runtime.entries.stores import Entries
from epochgate.runtime.entries.waits import Waits
from epochgate.runtime.limited import CallLate, Limit
from epochgate.runtime.source import SplitEnumerator, SplitEnumeratorContext, SplitQueueEnumerator
from epochgate.runtime.source.batches.enumerating import BatchEnumerator
from epochgate.runtime.source.batches.errors import PlanNotMade
from epochgate.runtime.source.batches.planning import Planning, no_filter
from epochgate.runtime.steering import Updating
from epochgate.runtime.steering.coordinated import Coordinated
from epochgate.runtime.steering.coordinator import NextBatch
from epochgate.runtime.steering.deciding import Deciding
from epochgate.runtime.steering.errors import (
    ChoiceFailed,
    DecisionNotMade,
    UpdateFailed,
    UpdateInDoubt,
)
from epochgate.runtime.steering.layout import decisions_of
from epochgate.spark.streaming import Control
from tests.runtime.stalling import Stall
from tests.runtime.steering.coordinators import Lowering, Provider
from tests.runtime.steering.numbered import STREAM, Numbers, are_at_least, at_most, numbers
from tests.runtime.steering.steered import CONTROL, INITIAL, QUERY, Watched, entries_in, limit_of

RETAINED = OneDriver.CONSTANTS["retained"]
SOON = Waits(Limit("store_timeout_s", 0.02), Limit("coordinator_call_timeout_s", 0.02))


@pytest.fixture
def stall(monkeypatch: pytest.MonkeyPatch) -> Iterator[Stall]:
    """Return what hangs goes on when the test is over."""
    stall = Stall(monkeypatch)
    yield stall
    stall.goes_on.set()


def hanging(entries: Entries, kind: str, stall: Stall, nth: int = 1) -> Watched:
    """Entries of which each request of this kind hangs, from the nth on."""
    store, seen = Watched(entries), 0

    def before(request: str, key: str) -> None:
        nonlocal seen
        seen += request == kind
        if request == kind and seen >= nth:
            stall()

    store.before = before
    return store


def deciding(entries: Entries, waits: Waits = SOON) -> Deciding:
    return Deciding(entries, "the store", CONTROL, QUERY, dict(INITIAL), lambda: 0.0, waits)


@pytest.mark.parametrize(("kind", "nth"), [("list", 1), ("list", 2), ("list", 3), ("create", 1)])
def test_a_store_that_hangs_fails_the_batch_and_the_next_driver_decides(
    tmp_path: Path, stall: Stall, kind: str, nth: int
) -> None:
    store = hanging(entries_in(tmp_path), kind, stall, nth)
    with pytest.raises(DecisionNotMade, match=r"not ended within 0\.02 s; store_timeout_s is"):
        deciding(store).decide(0)
    assert limit_of(store.inner, 0) == 900


def test_a_decision_that_is_written_late_counts_if_it_comes_first(
    tmp_path: Path, stall: Stall
) -> None:
    is_there, store = Event(), hanging(entries_in(tmp_path), "create", stall)
    store.after = lambda kind, key: is_there.set() if kind == "create" else None
    with pytest.raises(DecisionNotMade):
        deciding(store).decide(0)
    Updating(store.inner, "the store", CONTROL, "a test").update({"limit": 500})
    stall.goes_on.set()
    assert is_there.wait(60)
    assert limit_of(store.inner, 0) == 900, "it was decided before the update"


def test_a_removal_that_hangs_holds_up_no_batch(
    tmp_path: Path, stall: Stall, caplog: pytest.LogCaptureFixture
) -> None:
    store = hanging(entries_in(tmp_path), "delete", stall)
    one = deciding(store)
    for batch in range(RETAINED + 1):
        assert one.decide(batch).batch == batch
    assert "is removed with a later batch" in caplog.text
    assert len(decisions_of(store.inner, CONTROL, QUERY).numbers()) == RETAINED + 1
    deciding(store.inner).decide(RETAINED + 1)
    assert len(decisions_of(store.inner, CONTROL, QUERY).numbers()) == RETAINED


class Stuck(Lowering):
    """Hangs in one method, the first time."""

    where = ""
    stall: Stall

    def _hang(self, where: str) -> None:
        if type(self).where == where:
            type(self).where = ""
            type(self).stall()

    def start(self) -> None:
        self._hang("start")
        super().start()

    def choose(self, next_batch: NextBatch) -> Mapping[str, Any]:
        self._hang("choose")
        return super().choose(next_batch)

    def close(self) -> None:
        self._hang("close")
        super().close()


def stuck(where: str, stall: Stall) -> Provider:
    return Provider(type("StuckOnce", (Stuck,), {"where": where, "stall": stall}))


def coordinated(entries: Entries, provider: Provider) -> Coordinated:
    of = entries, "the store", CONTROL, QUERY, {"limit": 900, "mode": "strict"}, provider
    return Coordinated(*of, waits=SOON)


@pytest.mark.parametrize("where", ["start", "choose"])
def test_a_coordinator_that_hangs_fails_its_batch_with_its_place_and_another_is_made(
    tmp_path: Path, stall: Stall, where: str
) -> None:
    provider = stuck(where, stall)
    one = coordinated(entries_in(tmp_path), provider)
    with pytest.raises(ChoiceFailed, match=rf"(?s)within 0\.02 s; .*test_hanging.*in {where}"):
        one.decide(0)
    one.close()
    assert coordinated(entries_in(tmp_path), provider).decide(0).value["limit"] == 899


def test_a_coordinator_that_hangs_while_it_is_closed_is_left_behind(
    tmp_path: Path, stall: Stall, caplog: pytest.LogCaptureFixture
) -> None:
    one = coordinated(entries_in(tmp_path), stuck("close", stall))
    one.decide(0)
    one.close()
    assert "raised while it was closed" in caplog.text
    assert "coordinator_call_timeout_s is the limit" in caplog.text


def test_behind_a_removal_that_hangs_a_coordinator_is_made_of_what_was_decided(
    tmp_path: Path, stall: Stall
) -> None:
    provider = Provider()
    one = coordinated(hanging(entries_in(tmp_path), "delete", stall), provider)
    for batch in range(RETAINED + 1):
        one.decide(batch)
    assert provider.taken.count("start") == 1
    assert one.decide(RETAINED + 1).value["limit"] == 900 - (RETAINED + 2)
    assert provider.taken.count("start") == 1


def test_a_control_passes_its_limits_on(tmp_path: Path, stall: Stall) -> None:
    provider = stuck("choose", stall)
    control = Control(
        CONTROL,
        {"limit": 900, "mode": "strict"},
        store=str(tmp_path),
        coordinator=provider,
        check=lambda values: values["limit"] != 1 or stall(),
        store_timeout_s=60.0,
        coordinator_call_timeout_s=0.02,
    )
    with pytest.raises(ChoiceFailed, match=r"within 0\.02 s"):
        control.decide(QUERY, 0)
    with pytest.raises(UpdateFailed, match=r"the check of control 'pricing' has not ended within"):
        control.update(limit=1)
    assert control.update(limit=2) == 1


def updating(entries: Entries) -> Updating:
    return Updating(entries, "the store", CONTROL, "a test", lambda: 0.0, waits=SOON)


@pytest.mark.parametrize(
    ("kind", "nth", "error"),
    [("list", 1, UpdateFailed), ("create", 1, UpdateInDoubt), ("list", 3, UpdateInDoubt)],
)
def test_a_store_that_hangs_ends_an_update(
    tmp_path: Path, stall: Stall, kind: str, nth: int, error: type[Exception]
) -> None:
    store = hanging(entries_in(tmp_path), kind, stall, nth)
    with pytest.raises(error, match=r"not ended within 0\.02 s"):
        updating(store).update({"limit": 1})


def test_a_removal_that_hangs_holds_up_no_update(tmp_path: Path, stall: Stall) -> None:
    store = hanging(entries_in(tmp_path), "delete", stall)
    one = updating(store)
    for number in range(RETAINED + 1):
        assert one.update({"limit": number}) == number + 1


class StuckNumbers(Numbers):
    """Its enumerator hangs in one place, the first time."""

    def __init__(self, there: int, where: str, stall: Stall) -> None:
        super().__init__(there)
        self.where, self.stall = where, stall

    def hang(self, where: str) -> None:
        if self.where == where:
            self.where = ""
            self.stall()

    def look(self) -> Any:
        self.hang("look")
        return super().look()

    def create_enumerator(self, context: SplitEnumeratorContext, state: Any) -> SplitEnumerator:
        self.hang("create_enumerator")
        source = self

        class Enumerator(SplitQueueEnumerator):
            def snapshot_state(self, checkpoint_id: int) -> Any:
                source.hang("snapshot_state")
                return super().snapshot_state(checkpoint_id)

            def notify_checkpoint_complete(self, checkpoint_id: int) -> None:
                source.hang("notify_checkpoint_complete")

            def close(self) -> None:
                source.hang("close")
                super().close()

        return Enumerator(context, state, self.look, every_s=0.0)


def planning(
    entries: Entries, source: Numbers, remove_left: Callable[[Any], Any] | None = None
) -> Planning:
    def make(begun: tuple[int, Any] | None) -> BatchEnumerator:
        return BatchEnumerator(source, begun, at_most(2), are_at_least)

    return Planning(entries, "the place", STREAM, make, remove_left, no_filter, SOON)


@pytest.mark.parametrize("where", ["look", "create_enumerator", "snapshot_state"])
def test_an_enumerator_that_hangs_fails_its_batch_and_another_loses_no_split(
    tmp_path: Path, stall: Stall, where: str
) -> None:
    source = StuckNumbers(3, where, stall)
    one = planning(entries_in(tmp_path), source)
    with pytest.raises(PlanNotMade, match=rf"(?s)within 0\.02 s; .*in {where}"):
        one.has_batch(1)
    assert one.has_batch(1)
    assert numbers(one, 1) == [0, 1]
    assert one.has_batch(2)
    assert numbers(one, 2) == [2]


def test_an_enumerator_that_hangs_in_a_removal_is_left_behind_and_another_loses_no_split(
    tmp_path: Path, stall: Stall, caplog: pytest.LogCaptureFixture
) -> None:
    one = planning(
        entries_in(tmp_path),
        StuckNumbers(2 * (RETAINED + 2), "notify_checkpoint_complete", stall),
    )
    for batch in range(1, RETAINED + 3):
        assert one.has_batch(batch)
        assert numbers(one, batch) == [2 * batch - 2, 2 * batch - 1]
    assert "the enumerator (its removal) has not ended" in caplog.text


def test_an_enumerator_that_hangs_while_it_is_closed_is_left_behind(
    tmp_path: Path, stall: Stall
) -> None:
    one = planning(entries_in(tmp_path), StuckNumbers(3, "close", stall))
    assert one.has_batch(1)
    with pytest.raises(CallLate, match="its close"):
        one.close()
    one.close()


@pytest.mark.parametrize(("kind", "nth"), [("list", 1), ("create", 1), ("get", 1)])
def test_a_store_that_hangs_fails_the_plan_or_the_read(
    tmp_path: Path, stall: Stall, kind: str, nth: int
) -> None:
    store = hanging(entries_in(tmp_path), kind, stall, nth)
    one = planning(store, Numbers(3))
    with pytest.raises(PlanNotMade, match=r"within 0\.02 s; store_timeout_s is the limit"):
        one.has_batch(1) and one.batches(0, 1)
    other = planning(store.inner, Numbers(3))
    assert other.has_batch(1)
    assert numbers(other, 1) == [0, 1]


def test_what_was_left_behind_is_removed_later_if_its_removal_hangs(
    tmp_path: Path, stall: Stall, caplog: pytest.LogCaptureFixture
) -> None:
    one = planning(entries_in(tmp_path), Numbers(3), lambda states: [*states] and stall())
    assert one.has_batch(1)
    assert "is removed with a later batch" in caplog.text
    assert one.has_batch(2)
    assert [numbers(one, batch) for batch in (1, 2)] == [[0, 1], [2]]
