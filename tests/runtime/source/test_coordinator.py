"""The promises of a source's coordinator to its enumerator, as Flink's SourceCoordinatorTest has
them.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

import msgpack
import pytest

from epochgate.runtime import MalformedEvent
from epochgate.runtime.api.coordinator import BATCH_CHECKPOINT, NO_CHECKPOINT
from epochgate.runtime.api.plain_values import ValueNotPlain
from epochgate.runtime.source import (
    AssignmentsForgotten,
    ReaderNotRegistered,
    SourceNotRunning,
    SourceStateRefused,
)
from tests.runtime.doors import RAISED
from tests.runtime.source.by_hand import HandJob, HandSource

CALLS: list[tuple[str, Callable[[HandJob], Any]]] = [
    ("event", lambda job: job.say(0, "request")),
    ("ready", lambda job: job.ready(0)),
    ("failed", lambda job: job.coordinator.execution_attempt_failed(0, 0, "killed")),
    ("reset", lambda job: job.coordinator.subtask_reset(0, 1)),
    ("checkpoint", lambda job: job.checkpoint(1)),
    ("complete", lambda job: job.coordinator.notify_checkpoint_complete(1)),
    ("aborted", lambda job: job.coordinator.notify_checkpoint_aborted(1)),
]


@pytest.mark.parametrize("call", [call for _, call in CALLS], ids=[name for name, _ in CALLS])
def test_nothing_may_come_before_the_start_or_after_the_end(call: Callable[[HandJob], Any]) -> None:
    job = HandJob()
    with pytest.raises(SourceNotRunning, match="has not started"):
        call(job)
    job.started().coordinator.close()
    with pytest.raises(SourceNotRunning, match="is closed"):
        call(job)
    with pytest.raises(SourceNotRunning, match="is closed"):
        job.coordinator.reset_to_checkpoint(NO_CHECKPOINT, None)


def test_a_reader_is_announced_when_it_registers_and_once() -> None:
    job = HandJob().started()
    job.ready(1, attempt=4)
    assert job.enumerator.context.registered_readers == {}
    job.say(1, "register", "here", attempt=4)
    job.say(1, "register", "here", attempt=4)
    reader = job.enumerator.context.registered_readers[1]
    assert (reader.subtask, reader.attempt, reader.host) == (1, 4, "here")
    assert job.enumerator.heard == [("start",), ("reader", 1)]


def test_what_readers_say_reaches_the_enumerator() -> None:
    job = HandJob().started()
    job.registered(1)
    job.say(1, "request")
    job.say(1, "source event", {"backlog": 3})
    assert job.enumerator.heard[-2:] == [("request", 1), ("event", 1, {"backlog": 3})]
    with pytest.raises(MalformedEvent, match="expected a list that begins with"):
        job.say(1, "sing")


def test_a_reader_that_has_not_registered_is_not_listened_to() -> None:
    job = HandJob().started()
    job.ready(0)
    with pytest.raises(MalformedEvent, match="before it registered"):
        job.say(0, "request")
    with pytest.raises(MalformedEvent, match="must be ready before"):
        job.say(1, "register", "here")


def test_a_failed_reader_is_gone_and_its_successor_is_announced() -> None:
    job = HandJob().started()
    job.registered(0)
    job.coordinator.execution_attempt_failed(0, 0, "killed")
    assert job.enumerator.context.registered_readers == {}
    job.coordinator.subtask_reset(0, NO_CHECKPOINT)
    job.registered(0, attempt=1)
    assert job.enumerator.heard == [("start",), ("reader", 0), ("reader", 0)]
    assert job.enumerator.context.registered_readers[0].attempt == 1


def test_events_go_to_the_readers_that_are_there() -> None:
    job = HandJob().started()
    gateway = job.registered(0)
    future = job.enumerator.context.send_event_to_source_reader(0, ["prune", 7])
    assert not future.done()
    assert gateway.sent == [["source event", ["prune", 7]]]
    with pytest.raises(ReaderNotRegistered, match=r"reader 1, which is not there; there are \[0\]"):
        job.enumerator.context.send_event_to_source_reader(1, ["prune", 7])


# checkpoints and resets


def test_a_restored_coordinator_has_what_was_not_assigned_and_no_readers() -> None:
    job = HandJob().started()
    job.registered(0)
    job.enumerator.assign("1", "2", to=0)
    state = job.checkpoint(100)
    restored = HandJob()
    restored.coordinator.reset_to_checkpoint(100, state)
    restored.started()
    assert restored.enumerator.unassigned == ["3", "4", "5", "6"]
    assert restored.enumerator.context.registered_readers == {}
    assert restored.enumerator.heard == [("start",)]
    restored.registered(0)
    restored.failed(0, back_to=100)
    assert ("back", ["1", "2"], 0) not in restored.enumerator.heard, "the reader has them"


def test_a_checkpoint_holds_the_enumerators_state_with_its_version_and_nothing_else() -> None:
    job = HandJob(source=RenamedSource()).started()
    job.registered(0)
    job.enumerator.assign("1", "2", to=0)
    format_version, version, state, assigned = msgpack.unpackb(job.checkpoint(1))
    assert (format_version, version, assigned) == (1, RenamedSource.state_version, [])
    assert state == job.enumerator.unassigned == ["3", "4", "5", "6"]


def test_a_snapshot_without_a_checkpoint_also_keeps_what_was_assigned() -> None:
    job = HandJob().started()
    job.registered(0)
    job.enumerator.assign("1", "2", to=0)
    job.checkpoint(1)
    job.enumerator.assign("3", to=0)
    job.enumerator.assign("4", to=2)
    assert job.coordinator.supports_batch_snapshot()
    state = job.checkpoint(BATCH_CHECKPOINT)
    job.failed(0, back_to=NO_CHECKPOINT)
    assert job.enumerator.heard[-1] == ("back", ["1", "2", "3"], 0), "it is in no checkpoint"
    restored = HandJob()
    restored.coordinator.reset_to_checkpoint(BATCH_CHECKPOINT, state)
    assert restored.enumerator.unassigned == ["5", "6"]
    restored.started()
    # Readers begin from nothing there, so whatever was given out is to be given out again.
    given_back = [("back", ["1", "2", "3"], 0), ("back", ["4"], 2)]
    assert restored.enumerator.heard == [("start",), *given_back]
    restored.checkpoint(BATCH_CHECKPOINT)


def test_a_snapshot_without_a_checkpoint_is_refused_once_there_is_one() -> None:
    job = HandJob().started()
    state = job.checkpoint(1)
    job.coordinator.notify_checkpoint_complete(1)
    with pytest.raises(AssignmentsForgotten, match="Resume from that checkpoint"):
        job.checkpoint(BATCH_CHECKPOINT)
    restored = HandJob()
    restored.coordinator.reset_to_checkpoint(1, state)
    with pytest.raises(AssignmentsForgotten):
        restored.started().checkpoint(BATCH_CHECKPOINT)


def test_a_subtask_that_goes_back_returns_what_it_got_in_uncompleted_checkpoints() -> None:
    job = HandJob().started()
    job.registered(0)
    job.enumerator.assign("1", "2", to=0)
    job.checkpoint(100)
    job.enumerator.assign("3", to=0)
    job.checkpoint(101)
    job.enumerator.assign("4", to=0)
    job.failed(0, back_to=99)
    assert job.enumerator.heard[-1] == ("back", ["1", "2", "3", "4"], 0)
    assert sorted(job.enumerator.unassigned) == ["1", "2", "3", "4", "5", "6"]
    assert job.enumerator.context.registered_readers == {}


def test_a_subtask_that_goes_back_keeps_what_it_got_in_completed_checkpoints() -> None:
    job = HandJob().started()
    job.registered(0)
    job.enumerator.assign("1", "2", to=0)
    job.checkpoint(100)
    job.coordinator.notify_checkpoint_complete(100)
    job.failed(0, back_to=100)
    assert job.enumerator.unassigned == ["3", "4", "5", "6"]
    assert job.enumerator.heard[-1] == ("complete", 100)


def test_splits_come_back_at_the_reset_and_not_at_the_failure() -> None:
    job = HandJob().started()
    job.registered(0)
    job.enumerator.assign("1", to=0)
    job.coordinator.execution_attempt_failed(0, 0, "killed")
    job.checkpoint(1)
    assert job.enumerator.unassigned == ["2", "3", "4", "5", "6"]
    job.coordinator.subtask_reset(0, NO_CHECKPOINT)
    assert job.enumerator.unassigned[-1] == "1"


def test_a_reset_of_everything_makes_another_enumerator_of_the_state() -> None:
    job = HandJob().started()
    job.registered(0)
    job.enumerator.assign("1", to=0)
    state = job.checkpoint(1)
    job.enumerator.assign("2", to=0)
    job.coordinator.reset_to_checkpoint(1, state)
    old, new = job.source.enumerators
    assert old.heard[-1] == ("close",)
    assert new.heard == [("start",)]
    assert new.unassigned == ["2", "3", "4", "5", "6"]
    job.registered(0, attempt=1)
    job.failed(0, back_to=1, attempt=1)
    assert new.heard[-1] == ("reader", 0), "what the old one assigned is not its business"
    job.coordinator.reset_to_checkpoint(NO_CHECKPOINT, None)
    assert job.enumerator.unassigned == ["1", "2", "3", "4", "5", "6"]


def test_the_end_and_the_abort_of_a_checkpoint_are_passed_on() -> None:
    job = HandJob().started()
    job.coordinator.notify_checkpoint_aborted(1)
    job.coordinator.notify_checkpoint_complete(2)
    assert job.enumerator.heard[-2:] == [("aborted", 1), ("complete", 2)]


# errors of the user's code


def test_an_enumerator_that_cannot_be_made_or_started_passes_its_error_on() -> None:
    source = HandSource()
    source.errors = [OSError("no such bucket")]
    with pytest.raises(OSError, match="no such bucket"):
        HandJob(source=source).started()


@pytest.mark.parametrize(
    ("call", "where"),
    [
        (lambda job: job.say(0, "request"), "request"),
        (lambda job: job.say(0, "source event", 1), "event"),
        (lambda job: job.registered(1), "reader"),
        (lambda job: job.coordinator.notify_checkpoint_complete(1), "complete"),
    ],
)
def test_what_an_enumerator_raises_is_passed_on(call: Callable[[HandJob], Any], where: str) -> None:
    job = HandJob().started()
    job.registered(0)
    job.enumerator.errors[where] = KeyError("split 7")
    with pytest.raises(KeyError):
        call(job)


@pytest.mark.parametrize("raised", RAISED, ids=lambda kind: kind.__name__)
def test_a_snapshot_that_raises_fails_its_checkpoint_alone(raised: type[BaseException]) -> None:
    job = HandJob().started()
    job.registered(0)
    job.enumerator.assign("1", to=0)
    job.enumerator.errors["snapshot"] = raised("gone")
    failed = Future[bytes]()
    job.coordinator.checkpoint(1, failed)
    assert type(failed.exception(0)) is raised
    job.enumerator.errors.clear()
    job.enumerator.unassigned.append(object())  # type: ignore[arg-type]  # that is the point
    with pytest.raises(ValueNotPlain, match="the state of HandEnumerator"):
        job.checkpoint(2)
    job.enumerator.unassigned.pop()
    job.checkpoint(3)
    job.coordinator.notify_checkpoint_complete(3)
    job.failed(0, back_to=3)
    assert job.enumerator.heard[-1] == ("complete", 3)


def test_a_coordinator_whose_enumerator_is_missing_waits_for_the_reset() -> None:
    job = HandJob().started()
    state = job.checkpoint(1)
    job.source.errors = [OSError("no such bucket")]
    with pytest.raises(OSError, match="no such bucket"):
        job.coordinator.reset_to_checkpoint(1, state)
    job.ready(0)
    job.say(0, "register", "host")
    result: Future[bytes] = Future()
    job.coordinator.checkpoint(2, result)
    assert result.cancelled()
    job.coordinator.reset_to_checkpoint(1, state)
    assert len(job.source.enumerators) == 2
    assert job.enumerator.heard == [("start",)]


def test_a_restore_that_fails_before_the_start_is_made_good_by_the_next() -> None:
    job = HandJob()
    state = HandJob().started().checkpoint(1)
    job.source.errors = [OSError("no such bucket")]
    with pytest.raises(OSError, match="no such bucket"):
        job.coordinator.reset_to_checkpoint(1, state)
    job.started()
    job.coordinator.reset_to_checkpoint(1, state)
    assert job.enumerator.heard == [("start",)]


# the state's format


class RenamedSource(HandSource):
    state_version = 2


class UpgradedSource(RenamedSource):
    def upgrade_state(self, version: int, state: Any) -> Any:
        return super().upgrade_state(version, state) if version != 1 else ["0", *state]


def test_state_of_another_version_is_upgraded_or_refused() -> None:
    job = HandJob().started()
    job.registered(0)
    job.enumerator.assign("1", "2", "3", to=0)
    state = job.checkpoint(1)
    upgraded = HandJob(source=UpgradedSource())
    upgraded.coordinator.reset_to_checkpoint(1, state)
    assert upgraded.enumerator.unassigned == ["0", "4", "5", "6"]
    newer = upgraded.started().checkpoint(2)
    for source, data in ((RenamedSource(), state), (HandSource(), newer)):
        with pytest.raises(SourceStateRefused, match=r"state of version \d of .*Source, which"):
            HandJob(source=source).coordinator.reset_to_checkpoint(1, data)


@pytest.mark.parametrize(
    ("state", "why"),
    [
        (msgpack.packb([0, 1, [], []]), "has format 0, expected 1"),
        (msgpack.packb(["1", 1, [], []]), "has format '1', expected 1"),
        (msgpack.packb(7), "is no state of a source"),
        (b"", "is no state of a source"),
    ],
)
def test_a_state_that_no_source_wrote_is_refused(state: bytes, why: str) -> None:
    with pytest.raises(SourceStateRefused, match=f"in checkpoint 5 {why}"):
        HandJob().coordinator.reset_to_checkpoint(5, state)
