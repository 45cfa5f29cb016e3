"""A coordinator that chooses what batches run with: once for each, from the state of the last."""

from __future__ import annotations

import errno
import re
import sys
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import pytest

from epochgate.models.batch_decision import BatchDecisions
from epochgate.runtime import CoordinatorContext
from epochgate.runtime.entries.errors import NotCreated
from epochgate.runtime.steering import (
    STATE_BYTES_MAX,
    BatchOvertaken,
    ChoiceFailed,
    ControlUnusable,
    DecisionNotMade,
    NextBatch,
    NotInAQuery,
    ValueRefused,
)
from epochgate.runtime.steering.history import decisions
from epochgate.runtime.steering.layout import decisions_of
from tests.runtime.steering.coordinators import Lowering, Provider, chosen, coordinated
from tests.runtime.steering.steered import (
    CONTROL,
    QUERY,
    Watched,
    driver,
    entries_in,
    once,
    update,
)

RETAINED = BatchDecisions.CONSTANTS["retained"]


def test_each_batch_runs_with_what_is_chosen_from_the_state_of_the_batch_before(
    tmp_path: Path,
) -> None:
    provider = Provider()
    one = coordinated(entries_in(tmp_path), provider)
    assert [one.decide(batch).value for batch in (0, 1)] == [
        {"limit": 899, "mode": "strict"},
        {"limit": 898, "mode": "strict"},
    ]
    assert provider.taken == [
        *("start", ("choose", 0, None), ("checkpoint", 1)),
        *(("complete", 1), ("choose", 1, None), ("checkpoint", 2)),
    ]


def test_a_batch_that_runs_again_sees_the_same_and_its_coordinator_is_not_asked(
    tmp_path: Path,
) -> None:
    entries, provider = entries_in(tmp_path), Provider()
    one = coordinated(entries, provider)
    one.decide(0)
    assert provider.taken != []
    assert one.decide(0).value["limit"] == 899
    assert one.is_replay
    other = Provider()
    update(entries, limit=500)
    assert coordinated(entries, other).decide(0).value["limit"] == 899
    assert (provider.taken, other.taken) == ([], [])
    assert one.decide(1).value["limit"] == 498
    assert provider.taken == [("complete", 1), ("choose", 1, None), ("checkpoint", 2)]


@pytest.mark.parametrize("kind", [KeyError, SystemExit, KeyboardInterrupt, GeneratorExit])
def test_what_a_coordinator_raises_fails_its_batch_with_its_type_and_line(
    tmp_path: Path, kind: type[BaseException]
) -> None:
    class Raising(Lowering):
        def choose(self, next_batch: NextBatch) -> Mapping[str, Any]:
            raise kind("of mine")

    with pytest.raises(ChoiceFailed, match=rf"{kind.__name__}: '?of mine'?\n  File .*, line \d+"):
        coordinated(entries_in(tmp_path), Provider(Raising)).decide(0)


def test_a_driver_that_starts_restores_the_state_of_the_batch_before(tmp_path: Path) -> None:
    entries = entries_in(tmp_path)
    assert [chosen(entries, batch) for batch in (0, 1, 1, 2)] == [899, 898, 898, 897]
    provider = Provider()
    coordinated(entries, provider).decide(3)
    assert provider.taken == [("reset", 3, 3), "start", ("choose", 3, None), ("checkpoint", 4)]


def test_a_coordinator_is_told_that_a_batch_has_run_when_the_next_is_chosen_and_not_before(
    tmp_path: Path,
) -> None:
    provider = Provider()
    one = coordinated(entries_in(tmp_path), provider)
    for batch in (0, 0, 1, 2):
        one.decide(batch)
    told = [call for call in provider.taken if call[0] in ("complete", "choose")]
    assert told == [
        ("choose", 0, None),
        *(("complete", 1), ("choose", 1, None)),
        *(("complete", 2), ("choose", 2, None)),
    ]


def test_a_coordinator_learns_what_the_function_returned_for_the_batch_before(
    tmp_path: Path,
) -> None:
    entries, provider = entries_in(tmp_path), Provider()
    one = coordinated(entries, provider)
    one.decide(0)
    one.returned(0, {"rows": 12})
    one.decide(1)
    one.decide(2)
    assert [call for call in provider.taken if call[0] == "choose"] == [
        ("choose", 0, None),
        ("choose", 1, {"rows": 12}),
        ("choose", 2, None),
    ]
    with pytest.raises(ValueRefused, match=r"returned \{1\}: \{1\} is a set"):
        one.returned(2, {1})


def test_updates_are_what_a_coordinator_chooses_from(tmp_path: Path) -> None:
    entries = entries_in(tmp_path)
    one = coordinated(entries)
    one.decide(0)
    version = update(entries, limit=700, mode="lax")
    decision = one.decide(1)
    assert decision.value == {"limit": 698, "mode": "lax"}
    assert (decision.version, decision.since) == (version, 1)


def test_of_two_drivers_that_choose_for_one_batch_the_first_counts_and_both_go_on_from_it(
    tmp_path: Path,
) -> None:
    store = Watched(entries_in(tmp_path))
    provider = Provider()
    late = coordinated(store, provider)
    late.decide(0)
    other = Provider()

    def overtake() -> None:
        update(store.inner, limit=700)
        assert coordinated(store.inner, other).decide(1).value["limit"] == 698

    store.before = once(overtake, "create", QUERY)
    provider.calls.clear()
    assert late.decide(1).value["limit"] == 698
    assert late.is_replay
    assert late.decide(2).value["limit"] == 697
    assert provider.taken == [
        *(("complete", 1), ("choose", 1, None), ("checkpoint", 2)),
        *("close", ("reset", 2, 2), "start", ("choose", 2, None), ("checkpoint", 3)),
    ]


def test_a_coordinator_that_another_driver_has_left_behind_is_made_of_its_decision(
    tmp_path: Path,
) -> None:
    entries, provider = entries_in(tmp_path), Provider()
    one = coordinated(entries, provider)
    one.decide(0)
    assert chosen(entries, 1) == 898
    assert one.decide(1).value["limit"] == 898
    provider.calls.clear()
    assert one.decide(2).value["limit"] == 897
    assert provider.taken[:2] == ["close", ("reset", 2, 2)]


def test_a_choice_whose_answer_was_lost_counts_and_is_not_made_again(tmp_path: Path) -> None:
    store, provider = Watched(entries_in(tmp_path)), Provider()

    def lose() -> None:
        raise OSError(errno.ETIMEDOUT, "the answer was lost")

    store.after = once(lose, "create", QUERY)
    one = coordinated(store, provider)
    assert [one.decide(batch).value["limit"] for batch in (0, 1)] == [899, 898]
    assert [call[1] for call in provider.taken if call[0] == "choose"] == [0, 1]


def test_a_choice_that_was_not_written_is_made_again_from_the_state_before(tmp_path: Path) -> None:
    store, provider = Watched(entries_in(tmp_path)), Provider()
    one = coordinated(store, provider)

    def lose() -> None:
        raise OSError(errno.ETIMEDOUT, "the request was lost")

    for batch, limit in ((0, 899), (1, 898)):
        store.before = once(lose, "create", QUERY)
        assert one.decide(batch).value["limit"] == limit
    assert [call for call in provider.taken if call[0] == "reset"] == [("reset", 1, 1)]


def test_a_store_that_refuses_leaves_the_state_of_the_batch_before(tmp_path: Path) -> None:
    store, provider = Watched(entries_in(tmp_path)), Provider()
    one = coordinated(store, provider)
    one.decide(0)

    def refuse(kind: str, key: str) -> None:
        if kind == "create":
            raise NotCreated(errno.EROFS, "Read-only file system", key)

    store.before = refuse
    with pytest.raises(DecisionNotMade, match="Read-only file system"):
        one.decide(1)
    store.before = lambda kind, key: None
    assert one.decide(1).value["limit"] == 898


def test_a_driver_that_was_suspended_in_a_choice_runs_nothing_for_a_batch_that_is_forgotten(
    tmp_path: Path,
) -> None:
    store = Watched(entries_in(tmp_path))

    def go_on() -> None:
        other = coordinated(store.inner)
        for batch in range(RETAINED + 1):
            other.decide(batch)

    store.before = once(go_on, "create", QUERY)
    with pytest.raises(BatchOvertaken, match=r"batch 0 of query query-1, while batch 100 is"):
        coordinated(store).decide(0)


@pytest.mark.parametrize("before", [0, 1])
def test_a_coordinator_is_not_asked_for_a_batch_that_is_forgotten(
    tmp_path: Path, before: int
) -> None:
    entries, provider = entries_in(tmp_path), Provider()
    late = coordinated(entries, provider)
    for batch in range(before):
        late.decide(batch)
    other = coordinated(entries)
    for batch in range(before, before + RETAINED + 1):
        other.decide(batch)
    provider.calls.clear()
    with pytest.raises(BatchOvertaken):
        late.decide(before)
    assert provider.taken == []


def test_a_hundred_states_are_kept_with_their_decisions(tmp_path: Path) -> None:
    entries = entries_in(tmp_path)
    one = coordinated(entries)
    for batch in range(RETAINED + 20):
        one.decide(batch)
    assert decisions_of(entries, CONTROL, QUERY).numbers() == list(range(20, RETAINED + 20))
    states = [decision.state for decision in decisions(entries, CONTROL, QUERY)]
    assert [state and state.data for state in states][-2:] == [b"119", b"120"]


def test_a_coordinator_begins_without_a_state_where_the_batch_before_had_none(
    tmp_path: Path,
) -> None:
    entries, provider = entries_in(tmp_path), Provider()
    driver(entries).decide(0)
    assert coordinated(entries, provider).decide(1).value["limit"] == 899
    assert provider.taken[:2] == ["start", ("choose", 1, None)]


def test_a_coordinator_goes_on_behind_batches_that_ran_without_the_control(tmp_path: Path) -> None:
    entries = entries_in(tmp_path)
    assert (chosen(entries, 0), chosen(entries, 7)) == (899, 898)


def test_a_state_is_not_lost_where_its_coordinator_is_missing(tmp_path: Path) -> None:
    entries = entries_in(tmp_path)
    chosen(entries, 0)
    with pytest.raises(
        ControlUnusable, match=r"batch 0 of .* by coordinator 'lowering', whose sta"
    ):
        driver(entries).decide(1)
    with pytest.raises(ChoiceFailed, match="'lowering', whose state this one, 'other', cannot"):
        coordinated(entries, Provider(operator_id="other")).decide(1)
    assert driver(entries).decide(0).value["limit"] == 899
    assert chosen(entries, 1) == 898


def test_a_state_of_an_older_version_is_upgraded_and_of_a_newer_one_refused(tmp_path: Path) -> None:
    entries, newer = entries_in(tmp_path), Provider()
    newer.state_version = 3
    chosen(entries, 0)
    assert coordinated(entries, newer).decide(1).value["limit"] == 900 - 1 - 200 - 1
    with pytest.raises(ChoiceFailed, match="is of version 3, and this code reads version 1"):
        coordinated(entries).decide(2)


class Failing(Lowering):
    """Fails in one of its methods, once it has a state."""

    fails_in = ""

    def start(self) -> None:
        self._fail("start")
        super().start()

    def choose(self, next_batch: NextBatch) -> Mapping[str, Any]:
        changed = super().choose(next_batch)
        self._fail("choose")
        return changed

    def checkpoint(self, checkpoint_id: int, result: Future[bytes]) -> None:
        self._fail("checkpoint")
        super().checkpoint(checkpoint_id, result)

    def notify_checkpoint_complete(self, checkpoint_id: int) -> None:
        self._fail("notify_checkpoint_complete")

    def close(self) -> None:
        self._fail("close")

    def _fail(self, method: str) -> None:
        if self.fails_in == method:
            raise KeyError("no such region")


@pytest.mark.parametrize("method", ["choose", "checkpoint", "notify_checkpoint_complete"])
def test_an_exception_of_the_coordinator_fails_the_batch_and_leaves_the_state_before(
    tmp_path: Path, method: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = coordinated(entries_in(tmp_path), Provider(Failing))
    one.decide(0)
    monkeypatch.setattr(Failing, "fails_in", method)
    with pytest.raises(
        ChoiceFailed, match=r"batch 1\. Nothing was run.*KeyError: 'no such"
    ) as seen:
        one.decide(1)
    assert re.search(rf'test_coordinated.py", line \d+, in {method}', str(seen.value))
    monkeypatch.setattr(Failing, "fails_in", "")
    assert one.decide(1).value["limit"] == 898


def test_a_coordinator_that_cannot_start_fails_the_batch(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Failing, "fails_in", "start")
    with pytest.raises(ChoiceFailed, match=r"values of batch 0\. Nothing .*no such region"):
        coordinated(entries_in(tmp_path), Provider(Failing)).decide(0)


def test_an_exception_of_close_is_logged_and_ends_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    one = coordinated(entries_in(tmp_path), Provider(Failing))
    one.decide(0)
    monkeypatch.setattr(Failing, "fails_in", "close")
    one.close()
    assert "coordinator 'lowering' of control 'pricing' raised while it was closed" in caplog.text


def choosing(choice: Callable[[CoordinatorContext], Any], state: Any = b"") -> Provider:
    """Of a coordinator that chooses so, and has this state."""

    class Choosing(Lowering):
        def choose(self, next_batch: NextBatch) -> Mapping[str, Any]:
            changed: Mapping[str, Any] = choice(self.context)
            return changed

        def checkpoint(self, checkpoint_id: int, result: Future[bytes]) -> None:
            result.set_result(state)

    return Provider(Choosing)


@pytest.mark.parametrize(
    ("choice", "state", "because"),
    [
        ({"limt": 1}, b"", "control 'pricing' has no value 'limt'; it has limit, mode"),
        ({"limit": "x"}, b"", "has limit = 900, a number, and 'x' is a str"),
        ({"limit": {1}}, b"", r"\{1\} is a set"),
        ([700], b"", r"`choose` returned \[700\], and must return values by name"),
        ({}, "text", "its state is 'text', and must be bytes"),
        ({}, b"x" * (STATE_BYTES_MAX + 1), "has 1,048,577 bytes, and may have 1,048,576"),
    ],
)
def test_what_cannot_be_stored_is_refused_before_anything_is_written(
    tmp_path: Path, choice: Any, state: Any, because: str
) -> None:
    entries = entries_in(tmp_path)
    with pytest.raises(ChoiceFailed, match=because):
        coordinated(entries, choosing(lambda _: choice, state)).decide(0)
    assert decisions_of(entries, CONTROL, QUERY).numbers() == []


def test_a_coordinator_of_a_resident_job_is_told_what_it_lacks(tmp_path: Path) -> None:
    with pytest.raises(ChoiceFailed, match="int cannot choose the values of a batch; derive it"):
        coordinated(entries_in(tmp_path), Provider(lambda calls, context: 7)).decide(0)


async def nothing() -> None: ...


@pytest.mark.parametrize(
    ("use", "used"),
    [
        (lambda context: context.post_later(1.0, print), "post_later"),
        (lambda context: context.run_coroutine(nothing(), print), "run_coroutine"),
        (lambda context: context.checkpoints, "checkpoints"),
    ],
)
def test_what_only_a_resident_job_has_is_refused(
    tmp_path: Path, use: Callable[[CoordinatorContext], Any], used: str
) -> None:
    with pytest.raises(ChoiceFailed, match=rf"used context.{used}, which a stre") as seen:
        coordinated(entries_in(tmp_path), choosing(use)).decide(0)
    assert isinstance(seen.value.__cause__, NotInAQuery)


def test_work_that_is_handed_over_is_done_before_the_state_is_taken(tmp_path: Path) -> None:
    done: list[Any] = []

    def choose(context: CoordinatorContext) -> Mapping[str, Any]:
        context.run_async(lambda: 7, lambda *outcome: done.append(outcome))
        context.run_async(lambda: 1 // 0, lambda *outcome: done.append(type(outcome[1])))
        context.run_async(sys.exit, lambda *outcome: done.append(type(outcome[1])))
        context.post(done.append, "posted")
        context.metrics.counter("choices").add()
        done.append((context.job_id, context.operator_id, context.load("json:loads")("1")))
        return {}

    one = coordinated(entries_in(tmp_path), choosing(choose))
    one.decide(0)
    assert done == [(7, None), ZeroDivisionError, SystemExit, (QUERY, "lowering", 1), "posted"]
    assert dict(one.metrics) == {"choices": 1}


@pytest.mark.parametrize("cause", ["the model is gone", LookupError("the model is gone")])
def test_a_coordinator_may_fail_the_batch(tmp_path: Path, cause: Any) -> None:
    def choose(context: CoordinatorContext) -> Mapping[str, Any]:
        context.fail_job(cause)
        return {}

    entries = entries_in(tmp_path)
    with pytest.raises(ChoiceFailed, match="the model is gone"):
        coordinated(entries, choosing(choose)).decide(0)
    assert decisions_of(entries, CONTROL, QUERY).numbers() == []
