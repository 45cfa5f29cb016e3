"""Readers far ahead wait for the slowest of their group, and never for one with nothing to read.

The tests of restarts, of readers that end and of announcements that get lost are about faults that
Apache Flink once had (its alignment task ran twice, died of a restarting reader, or waited for a
reader that had ended).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from epochgate.runtime.api.coordinator import NO_CHECKPOINT
from epochgate.runtime.source import AlignmentMisconfigured, WatermarkAlignment
from tests.runtime.source.by_hand import HandContext, HandGateway, HandJob


def aligned(
    operator_id: str = "source", beside: HandJob | None = None, group: str = "orders"
) -> HandJob:
    """A started source with an alignment; `beside` is another source of the same job."""
    store = None if beside is None else beside.context.coordinator_store
    context = HandContext(operator_id, store)
    return HandJob(context=context, alignment=WatermarkAlignment(group, 5, 2.0)).started()


def limits(gateway: HandGateway) -> list[Any]:
    return [event[1] for event in gateway.sent if event[0] == "align"]


def test_the_limit_is_the_least_watermark_and_the_drift() -> None:
    job = aligned()
    gateways = [job.registered(subtask) for subtask in range(3)]
    assert [delay for delay, _ in job.context.timers] == [2.0]
    job.context.tick()
    for subtask, watermark in ((0, 100), (1, 42), (2, 77)):
        job.say(subtask, "watermark", watermark, False)
    job.context.tick()
    job.say(1, "watermark", 90, False)
    job.context.tick()
    assert [limits(gateway) for gateway in gateways] == [[None, 47, 82]] * 3


def test_the_sources_of_one_group_wait_for_each_other_and_for_no_others() -> None:
    orders = aligned("orders")
    payments = aligned("payments", beside=orders)
    clicks = aligned("clicks", beside=orders, group="clicks")
    gateways = [job.registered(0) for job in (orders, payments, clicks)]
    orders.say(0, "watermark", 10, False)
    payments.say(0, "watermark", 100, False)
    clicks.say(0, "watermark", 1000, False)
    for job in (orders, payments, clicks):
        job.context.tick()
    assert [limits(gateway) for gateway in gateways] == [[15], [15], [1005]]


@pytest.mark.parametrize("is_other", [False, True])
def test_a_reader_that_is_idle_or_has_ended_holds_no_other_back(is_other: bool) -> None:
    job = aligned()
    fast = job.registered(0)
    slow_job = aligned("other", beside=job) if is_other else job
    slow_job.registered(1)
    job.say(0, "watermark", 100, False)
    slow_job.say(1, "watermark", 10, False)
    job.context.tick()
    slow_job.say(1, "watermark", None, True)
    job.context.tick()
    assert limits(fast) == [15, 105]
    job.say(0, "watermark", None, True)
    job.context.tick()
    assert limits(fast) == [15, 105, None]


def test_one_timer_announces_however_often_the_source_begins_again() -> None:
    job = aligned()
    for attempt in range(3):
        job.coordinator.reset_to_checkpoint(NO_CHECKPOINT, None)
        job.registered(0, attempt=attempt)
        job.failed(0, back_to=NO_CHECKPOINT, attempt=attempt)
    assert len(job.context.timers) == 1
    job.context.tick()
    assert len(job.context.timers) == 1


def test_only_readers_that_are_there_are_told() -> None:
    job = aligned()
    gone, coming, there = job.registered(0), job.ready(1), job.registered(2)
    job.coordinator.execution_attempt_failed(0, 0, "killed")
    job.say(2, "watermark", 10, False)
    job.context.tick()
    assert [limits(gateway) for gateway in (gone, coming, there)] == [[], [], [15]]
    job.coordinator.subtask_reset(0, NO_CHECKPOINT)
    back = job.registered(0, attempt=1)
    job.context.tick()
    assert [limits(gateway) for gateway in (gone, back, there)] == [[], [15], [15, 15]]


def test_a_reader_that_is_gone_is_waited_for_until_its_successor_reports() -> None:
    job = aligned()
    fast = job.registered(0)
    job.registered(1)
    job.say(0, "watermark", 100, False)
    job.say(1, "watermark", 10, False)
    job.failed(1, back_to=NO_CHECKPOINT)
    job.context.tick()
    job.registered(1, attempt=1)
    job.say(1, "watermark", 4, False, attempt=1)
    job.context.tick()
    job.say(1, "watermark", None, True, attempt=1)
    job.context.tick()
    assert limits(fast) == [15, 9, 105]


def test_an_announcement_that_is_lost_does_no_harm() -> None:
    job = aligned()
    gateway = job.registered(0)
    job.say(0, "watermark", 10, False)
    job.context.tick()
    # Its attempt fails with the event on the wire: no code looks at the future that fails.
    job.failed(0, back_to=NO_CHECKPOINT)
    again = job.registered(0, attempt=1)
    job.context.tick()
    assert (limits(gateway), limits(again), job.context.failures) == ([15], [15], [])


def test_watermarks_of_before_a_reset_of_everything_are_forgotten() -> None:
    job = aligned()
    other = aligned("other", beside=job)
    gateway = other.registered(0)
    job.registered(0)
    job.say(0, "watermark", 10, False)
    other.say(0, "watermark", 100, False)
    job.coordinator.reset_to_checkpoint(NO_CHECKPOINT, None)
    other.context.tick()
    assert limits(gateway) == [105]


@pytest.mark.parametrize(
    "end",
    [
        lambda job: job.coordinator.close(),
        lambda job: [job.registered(0), job.say(0, "watermark", None, True)],
    ],
    ids=["closed", "idle"],
)
def test_a_source_that_is_over_holds_no_other_back(end: Callable[[HandJob], Any]) -> None:
    job = aligned()
    other = aligned("other", beside=job)
    gateway = other.registered(0)
    job.registered(1)
    other.say(0, "watermark", 100, False)
    end(job)
    other.context.tick()
    assert limits(gateway) == [105]


def test_a_closed_source_announces_no_more() -> None:
    job = aligned()
    gateway = job.registered(0)
    job.coordinator.close()
    job.context.tick()
    assert (limits(gateway), job.context.timers) == ([], [])


def test_a_source_without_alignment_does_not_mind_reports() -> None:
    job = HandJob().started()
    job.registered(0)
    job.say(0, "watermark", 10, False)
    assert job.context.timers == []


@pytest.mark.parametrize(("drift", "every_s"), [(-1, 1.0), (5, 0.0)])
def test_an_alignment_that_cannot_be_meant_is_refused(drift: int, every_s: float) -> None:
    with pytest.raises(AlignmentMisconfigured, match="alignment of group 'orders'"):
        WatermarkAlignment("orders", drift, every_s)


def test_the_end_of_a_source_that_was_recreated_forgets_nothing_of_its_successor() -> None:
    before = aligned()
    after = aligned(beside=before)
    gateway = after.registered(0)
    before.registered(0)
    before.say(0, "watermark", 10, False)
    after.say(0, "watermark", 100, False)
    before.coordinator.close()
    after.context.tick()
    assert limits(gateway) == [105]
