"""The rules by which a reset takes splits back, as Flink's SplitAssignmentTrackerTest has them."""

from __future__ import annotations

import pytest

from epochgate.runtime import NO_CHECKPOINT
from epochgate.runtime.source import SplitAssignmentTracker


@pytest.fixture
def tracker() -> SplitAssignmentTracker[str]:
    return SplitAssignmentTracker()


def test_assignments_are_recorded_one_after_the_other(tracker: SplitAssignmentTracker[str]) -> None:
    tracker.record(0, ["a"])
    tracker.record(1, ["b", "c"])
    tracker.record(0, ["d"])
    assert tracker.uncheckpointed == {0: ["a", "d"], 1: ["b", "c"]}
    assert tracker.by_checkpoint == {}


def test_a_checkpoint_takes_over_what_is_uncheckpointed(
    tracker: SplitAssignmentTracker[str],
) -> None:
    tracker.record(0, ["a"])
    tracker.on_checkpoint(100)
    tracker.record(1, ["b"])
    assert tracker.uncheckpointed == {1: ["b"]}
    assert tracker.by_checkpoint == {100: {0: ["a"]}}


def test_completion_drops_that_checkpoint_and_the_older_ones(
    tracker: SplitAssignmentTracker[str],
) -> None:
    for checkpoint, split in ((99, "a"), (100, "b"), (101, "c")):
        tracker.record(0, [split])
        tracker.on_checkpoint(checkpoint)
    tracker.complete(100)
    assert tracker.by_checkpoint == {101: {0: ["c"]}}


@pytest.mark.parametrize(
    ("restored", "returned"),
    [(NO_CHECKPOINT, "abcd"), (99, "abcd"), (100, "cd"), (101, "d"), (102, "d")],
)
def test_a_reset_takes_back_what_came_after_the_restored_checkpoint(
    tracker: SplitAssignmentTracker[str], restored: int, returned: str
) -> None:
    tracker.record(0, ["a", "b"])
    tracker.record(1, ["x"])
    tracker.on_checkpoint(100)
    tracker.record(0, ["c"])
    tracker.on_checkpoint(101)
    tracker.record(0, ["d"])
    assert tracker.take_back(0, restored) == list(returned)
    assert tracker.take_back(0, restored) == [], "they are taken back once"
    assert tracker.take_back(1, NO_CHECKPOINT) == ["x"], "others keep theirs"


def test_assignments_of_an_aborted_checkpoint_come_back_until_a_later_one_completes(
    tracker: SplitAssignmentTracker[str],
) -> None:
    tracker.record(0, ["a"])
    tracker.on_checkpoint(1)
    # Checkpoint 1 is aborted: the tracker hears nothing of it.
    tracker.record(0, ["b"])
    tracker.on_checkpoint(2)
    assert tracker.take_back(0, NO_CHECKPOINT) == ["a", "b"]
    tracker.record(0, ["a", "b"])
    tracker.on_checkpoint(3)
    tracker.complete(3)
    assert tracker.take_back(0, 3) == []


def test_a_completed_checkpoint_gives_nothing_back(tracker: SplitAssignmentTracker[str]) -> None:
    tracker.record(0, ["a", "b"])
    tracker.on_checkpoint(100)
    tracker.complete(100)
    assert tracker.take_back(0, 100) == []
    assert tracker.uncheckpointed == {}
    assert tracker.by_checkpoint == {}


def test_everything_remembered_can_be_listed(tracker: SplitAssignmentTracker[str]) -> None:
    tracker.record(0, ["a"])
    tracker.record(1, ["x"])
    tracker.on_checkpoint(5)
    tracker.record(0, ["b"])
    tracker.on_checkpoint(6)
    tracker.record(0, ["c"])
    assert tracker.assigned() == {0: ["a", "b", "c"], 1: ["x"]}
    tracker.complete(5)
    assert tracker.assigned() == {0: ["b", "c"]}
    assert tracker.uncheckpointed == {0: ["c"]}, "nothing has changed"
