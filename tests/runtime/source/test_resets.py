"""The splits that a reset returns to the enumerator, and what is remembered for the next one."""

from __future__ import annotations

from epochgate.runtime.api.coordinator import BATCH_CHECKPOINT, NO_CHECKPOINT
from epochgate.runtime.source.split import unpack
from tests.runtime.source.by_hand import HandJob


def with_two_checkpoints() -> HandJob:
    """Splits 1 to 3 are assigned to subtask 0: before checkpoint 1, before 2, and after it."""
    job = HandJob().started()
    job.registered(0)
    job.enumerator.assign("1", to=0)
    job.checkpoint(1)
    job.enumerator.assign("2", to=0)
    job.checkpoint(2)
    job.enumerator.assign("3", to=0)
    return job


def assigned(job: HandJob) -> list[str]:
    """Return what a snapshot without a checkpoint says is assigned to subtask 0."""
    *_, by_subtask = unpack(job.checkpoint(BATCH_CHECKPOINT))
    return [name for subtask, splits in by_subtask for name, _ in splits if subtask == 0]


def tell_the_end(job: HandJob, attempt: int) -> None:
    job.registered(0, attempt)
    job.enumerator.context.signal_no_more_splits(0)


def test_a_reset_keeps_what_was_assigned_before_the_checkpoint() -> None:
    job = with_two_checkpoints()
    assert assigned(job) == ["1", "2", "3"]
    job.failed(0, back_to=1)
    assert job.enumerator.heard[-1] == ("back", ["2", "3"], 0)
    assert assigned(job) == ["1"]
    job.failed(0, back_to=1, attempt=1)
    assert assigned(job) == ["1"]
    job.failed(0, NO_CHECKPOINT, attempt=2)
    assert job.enumerator.heard[-1] == ("back", ["1"], 0)
    assert assigned(job) == []


def test_a_late_word_is_ignored_however_few_attempts_came_since_the_checkpoint() -> None:
    job = with_two_checkpoints()
    job.failed(0, back_to=2)
    job.registered(0, attempt=1)
    job.failed(0, back_to=2, attempt=1)
    heard = list(job.enumerator.heard)
    job.say(0, "request", attempt=1)
    assert job.enumerator.heard == heard


def test_a_second_reset_to_the_same_checkpoint_leaves_the_end_told() -> None:
    job = with_two_checkpoints()
    job.failed(0, NO_CHECKPOINT)
    assert job.enumerator.heard[-1] == ("back", ["1", "2", "3"], 0)
    tell_the_end(job, 1)
    job.failed(0, NO_CHECKPOINT, attempt=1)
    assert job.registered(0, attempt=2).sent == [["no more"]]


def test_a_reset_behind_what_was_kept_returns_it_though_the_end_was_told() -> None:
    job = with_two_checkpoints()
    job.failed(0, back_to=1)
    tell_the_end(job, 1)
    job.failed(0, NO_CHECKPOINT, attempt=1)
    assert job.enumerator.heard[-1] == ("back", ["1"], 0)


def test_a_completed_checkpoint_leaves_what_belongs_to_a_later_one() -> None:
    job = with_two_checkpoints()
    job.coordinator.notify_checkpoint_complete(1)
    job.failed(0, back_to=1)
    assert job.enumerator.heard[-1] == ("back", ["2", "3"], 0)


def test_what_a_completed_checkpoint_holds_is_never_returned() -> None:
    job = HandJob().started()
    job.registered(0)
    job.enumerator.assign("1", to=0)
    job.enumerator.context.signal_no_more_splits(0)
    job.checkpoint(1)
    job.coordinator.notify_checkpoint_complete(1)
    heard = list(job.enumerator.heard)
    job.failed(0, NO_CHECKPOINT)
    assert job.enumerator.heard == heard
    assert job.registered(0, attempt=1).sent == [["no more"]]


def test_a_restored_source_belongs_to_no_earlier_checkpoint() -> None:
    job = with_two_checkpoints()
    job.coordinator.reset_to_checkpoint(NO_CHECKPOINT, None)
    tell_the_end(job, 1)
    job.failed(0, NO_CHECKPOINT, attempt=1)
    assert job.registered(0, attempt=2).sent == [["no more"]]


def test_what_is_assigned_after_a_restore_belongs_to_the_checkpoint_after_it() -> None:
    job = with_two_checkpoints()
    job.coordinator.reset_to_checkpoint(NO_CHECKPOINT, None)
    job.registered(0, attempt=1)
    job.enumerator.assign("4", to=0)
    job.checkpoint(3)
    job.failed(0, back_to=2, attempt=1)
    assert job.enumerator.heard[-1] == ("back", ["4"], 0)
