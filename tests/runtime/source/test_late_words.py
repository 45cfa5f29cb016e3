"""The words of an attempt after it is gone, or said twice, make no difference; its successor is
served.
"""

from __future__ import annotations

from typing import Any

import pytest

from epochgate.runtime import MalformedEvent
from epochgate.runtime.api.coordinator import NO_CHECKPOINT
from epochgate.runtime.source import ReaderNotRegistered, SourceSplit
from tests.runtime.source.by_hand import HandContext, HandEnumerator, HandJob, HandSource


def two_readers() -> HandJob:
    return HandJob(context=HandContext(concurrent_attempts_max=2)).started()


def say_everything(job: HandJob, attempt: int) -> list[Any]:
    """Let an attempt say all that it could; returns what the enumerator hears of it."""
    before = len(job.enumerator.heard)
    job.say(0, "register", "late", attempt=attempt)
    job.say(0, "request", attempt=attempt)
    job.say(0, "source event", 1, attempt=attempt)
    job.coordinator.execution_attempt_failed(0, attempt, "late")
    return job.enumerator.heard[before:]


def readers(job: HandJob) -> dict[int, list[int]]:
    there = job.enumerator.context.registered_attempts
    return {subtask: sorted(attempts) for subtask, attempts in there.items()}


def test_an_attempt_that_is_gone_is_not_listened_to() -> None:
    job = HandJob().started()
    job.registered(0)
    job.enumerator.assign("1", to=0)
    job.coordinator.execution_attempt_failed(0, 0, "killed")
    assert (say_everything(job, 0), readers(job)) == ([], {})
    job.coordinator.subtask_reset(0, NO_CHECKPOINT)
    successor = job.ready(0, attempt=1)
    assert (say_everything(job, 0), readers(job)) == ([], {})
    job.say(0, "register", "host", attempt=1)
    assert (say_everything(job, 0), readers(job)) == ([], {0: [1]})
    job.enumerator.context.signal_no_more_splits(0)
    assert (say_everything(job, 0), readers(job)) == ([], {0: [1]})
    assert successor.sent == [["no more"]]
    job.say(0, "request", attempt=1)
    job.failed(0, NO_CHECKPOINT, attempt=1)
    assert (say_everything(job, 0), readers(job)) == ([], {})


def test_an_attempt_that_fails_before_its_reader_registers_leaves_room_for_the_next() -> None:
    job = HandJob().started()
    job.ready(0)
    job.failed(0, NO_CHECKPOINT)
    job.enumerator.assign("1", to=0)
    assert job.registered(0, attempt=1).splits == ["1"]
    assert readers(job) == {0: [1]}


def test_an_attempt_that_is_ready_must_register_before_it_says_anything_else() -> None:
    job = two_readers()
    job.registered(0, 0)
    job.ready(0, 1)
    for _ in range(2):
        for event in (["request"], ["source event", 1]):
            with pytest.raises(MalformedEvent, match="before it registered"):
                job.say(0, *event, attempt=1)
        job.enumerator.context.signal_no_more_splits(0)


def test_a_reader_that_registers_twice_is_sent_nothing_twice() -> None:
    job = two_readers()
    first, second = job.registered(0, 0), job.registered(0, 1)
    job.enumerator.assign("1", to=0)
    job.say(0, "register", "host", attempt=0)
    assert (first.splits, second.splits) == (["1"], ["1"])
    job.enumerator.context.signal_no_more_splits(0)
    job.say(0, "register", "host", attempt=1)
    assert (first.sent, second.sent) == (first.sent[:2], first.sent[:2])
    assert job.enumerator.heard == [("start",), ("reader", 0)]


def test_an_attempt_beside_others_is_sent_what_an_earlier_checkpoint_holds_too() -> None:
    job = two_readers()
    job.registered(0, 0)
    job.enumerator.assign("1", to=0)
    job.checkpoint(3)
    job.enumerator.assign("2", to=0)
    late = job.registered(0, 1)
    assert late.splits == ["1", "2"]
    assert readers(job) == {0: [0, 1]}
    job.enumerator.assign("3", to=0)
    assert late.splits == ["1", "2", "3"]
    job.coordinator.execution_attempt_failed(0, 0, "killed")
    assert readers(job) == {0: [1]}
    job.failed(0, NO_CHECKPOINT, attempt=1)
    assert job.enumerator.heard[-1] == ("back", ["1", "2", "3"], 0)


def test_an_attempt_that_registers_when_all_is_told_is_a_reader_as_well() -> None:
    job = two_readers()
    job.registered(0, 0)
    job.enumerator.assign("1", to=0)
    job.checkpoint(1)
    job.enumerator.context.signal_no_more_splits(0)
    late = job.registered(0, 1)
    assert (late.splits, late.told, readers(job)) == (["1"], [["no more"]], {0: [0, 1]})
    for attempt in (0, 1):
        job.coordinator.execution_attempt_failed(0, attempt, "killed")
    assert readers(job) == {}
    job.coordinator.subtask_reset(0, NO_CHECKPOINT)
    assert job.enumerator.heard[-1] == ("back", ["1"], 0)


class Generous(HandEnumerator):
    """Gives each reader a split as soon as it is there, or tells it of the end."""

    def add_reader(self, subtask: int) -> None:
        super().add_reader(subtask)
        if self.unassigned:
            self.assign(self.unassigned[0], to=subtask)
        else:
            self.context.signal_no_more_splits(subtask)


def test_an_enumerator_may_assign_or_signal_while_it_hears_of_a_reader() -> None:
    job = HandJob(source=HandSource(Generous)).started()
    job.enumerator.context.signal_no_more_splits(0)
    first = job.registered(0)
    assert (first.splits, first.told) == (["1"], [])
    job.failed(0, NO_CHECKPOINT)
    assert job.enumerator.heard[-1] == ("back", ["1"], 0)
    job.enumerator.unassigned.clear()
    job.enumerator.context.signal_no_more_splits(0)
    second = job.registered(0, attempt=1)
    assert second.sent == [["no more"]]
    with pytest.raises(Exception, match="may have ended"):
        job.enumerator.assign("2", to=0)


class Undecided(HandEnumerator):
    """Tells each reader of the end as soon as it is there, and gives it a split after all."""

    def add_reader(self, subtask: int) -> None:
        super().add_reader(subtask)
        self.context.signal_no_more_splits(subtask)
        self.assign("1", to=subtask)


def test_an_end_that_is_signalled_before_an_assignment_while_a_reader_joins_is_void() -> None:
    job = HandJob(source=HandSource(Undecided)).started()
    job.enumerator.context.signal_no_more_splits(0)
    reader = job.registered(0)
    assert (reader.splits, reader.told) == (["1"], [])


def test_what_is_assigned_to_a_reader_that_was_told_and_is_gone_waits_for_the_next() -> None:
    job = HandJob().started()
    job.registered(0)
    job.enumerator.context.signal_no_more_splits(0)
    job.failed(0, NO_CHECKPOINT)
    job.enumerator.assign("1", to=0)
    with pytest.raises(ReaderNotRegistered):
        job.checkpoint(1)
    job.coordinator.subtask_reset(0, NO_CHECKPOINT)
    assert job.enumerator.heard[-1] == ("back", ["1"], 0)
    job.checkpoint(2)
    job.enumerator.context.assign_split(SourceSplit("1"), 0)
    assert job.registered(0, attempt=1).splits == ["1"]
    job.checkpoint(3)


def test_a_reset_to_a_completed_checkpoint_of_a_reader_that_was_told_leaves_the_end_told() -> None:
    job = HandJob().started()
    job.registered(0)
    job.enumerator.assign("1", to=0)
    job.enumerator.context.signal_no_more_splits(0)
    job.checkpoint(1)
    job.failed(0, back_to=1)
    job.checkpoint(2)
    assert job.registered(0, attempt=1).sent == [["no more"]]
    job.coordinator.notify_checkpoint_complete(1)
    job.failed(0, back_to=0, attempt=1)
    assert job.enumerator.heard[-1] == ("complete", 1)


def test_everything_that_goes_back_forgets_readers_and_assignments() -> None:
    job = HandJob().started()
    job.registered(0)
    job.enumerator.assign("1", to=0)
    job.checkpoint(1)
    job.enumerator.assign("2", to=0)
    job.enumerator.assign("3", to=1)
    job.coordinator.reset_to_checkpoint(NO_CHECKPOINT, None)
    assert readers(job) == {}
    job.checkpoint(2)
    assert job.registered(0, attempt=1).sent == []
    job.failed(0, back_to=0, attempt=1)
    assert job.enumerator.heard[-1] == ("reader", 0)
