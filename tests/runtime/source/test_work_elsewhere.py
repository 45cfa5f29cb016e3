"""The result of an enumerator's work elsewhere comes back to it alone, and other coordinators can
reach it.
"""

from __future__ import annotations

from typing import Any

import pytest

from epochgate.runtime.api.coordinator import NO_CHECKPOINT
from epochgate.runtime.source import EnumeratorReplaced, SourceSplit
from tests.runtime.source.by_hand import HandContext, HandJob


def test_work_runs_elsewhere_and_its_result_comes_back() -> None:
    job = HandJob().started()
    results: list[Any] = []
    job.enumerator.context.call_async(lambda: 7, results.append)
    assert results == []
    job.context.finish_work()
    assert results == [7]
    assert (job.context.work, job.context.timers) == ([], [])


def test_periodic_work_begins_again_when_it_has_ended() -> None:
    job = HandJob().started()
    results: list[Any] = []
    job.enumerator.context.call_async(lambda: 7, results.append, delay_s=5.0, every_s=2.0)
    assert [delay for delay, _ in job.context.timers] == [5.0]
    for _ in range(3):
        assert job.context.work == []
        job.context.tick()
        job.context.finish_work()
        assert [delay for delay, _ in job.context.timers] == [2.0]
    assert results == [7, 7, 7]


def test_work_that_raises_fails_the_job_unless_the_enumerator_wants_to_hear_of_it() -> None:
    job = HandJob().started()
    errors: list[BaseException] = []
    context = job.enumerator.context
    context.call_async(lambda: 1 // 0, errors.append, on_error=errors.append, every_s=1.0)
    job.context.finish_work()
    assert [type(error) for error in errors] == [ZeroDivisionError]
    assert len(job.context.timers) == 1, "it is tried again"
    context.call_async(lambda: 1 // 0, errors.append)
    with pytest.raises(ZeroDivisionError):
        job.context.finish_work()


def test_nothing_of_a_replaced_enumerator_reaches_the_next() -> None:
    job = HandJob().started()
    gateway = job.registered(0)
    old, heard = job.enumerator.context, list[Any]()
    old.call_async(lambda: 7, heard.append)
    old.call_async(lambda: 7, heard.append, delay_s=1.0)
    job.coordinator.reset_to_checkpoint(NO_CHECKPOINT, None)
    job.context.finish_work()
    job.context.tick()
    old.post(heard.append, 8)
    old.fail_job("too late")
    assert (heard, job.context.work, job.context.failures) == ([], [], [])
    for call in (
        lambda: old.assign_split(SourceSplit("1"), 0),
        lambda: old.signal_no_more_splits(0),
        lambda: old.send_event_to_source_reader(0, "x"),
    ):
        with pytest.raises(EnumeratorReplaced, match="after it was closed"):
            call()
    assert gateway.sent == []
    job.enumerator.context.post(heard.append, 9)
    job.enumerator.context.fail_job("now")
    assert (heard, job.context.failures) == ([9], ["now"])


# other coordinators


def test_other_coordinators_find_the_source_in_the_store_and_may_speak_to_it() -> None:
    job = HandJob(listening_id="filter").started()
    assert job.context.coordinator_store.get("filter") is job.coordinator
    job.coordinator.handle_coordinator_event([1, 2])
    assert job.enumerator.heard[-1] == ("coordinator", [1, 2])
    job.coordinator.close()
    job.coordinator.handle_coordinator_event([3, 4])
    assert job.enumerator.heard[-1] == ("close",)


def test_what_another_coordinator_left_before_the_start_is_heard_first() -> None:
    job = HandJob(listening_id="filter")
    job.context.coordinator_store.put("filter", [1, 2])
    job.started()
    assert job.enumerator.heard == [("start",), ("coordinator", [1, 2])]
    assert job.context.coordinator_store.get("filter") is job.coordinator


def test_a_recreated_coordinator_takes_the_place_of_the_one_before() -> None:
    before = HandJob(listening_id="filter").started()
    store = before.context.coordinator_store
    after = HandJob(context=HandContext(store=store), listening_id="filter").started()
    before.coordinator.close()
    assert store.get("filter") is after.coordinator
    assert after.enumerator.heard == [("start",)]
    after.coordinator.close()
    assert not store.contains("filter")


def test_assignments_are_counted() -> None:
    job = HandJob().started()
    job.registered(0)
    job.enumerator.assign("1", "2", to=0)
    job.failed(0, back_to=NO_CHECKPOINT)
    assert dict(job.context.metrics) == {"splits_assigned": 2, "splits_taken_back": 2}
