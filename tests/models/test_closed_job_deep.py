"""The machines that run, at the largest bounds that eight gigabytes and a few minutes allow, for
`make check-deep`.
"""

from __future__ import annotations

import pytest

from epochgate.fsm.checker import Verdict, check
from epochgate.models.closed.asked import AskedJob
from epochgate.models.closed.endings import EndingJob
from epochgate.models.closed.job import ClosedJob
from epochgate.models.closed.live import LiveJob
from epochgate.models.closed.resuming import ResumingJob
from epochgate.models.closed.talking import TalkingJob

pytestmark = pytest.mark.deep

MEMORY_BYTES_MAX = 8 * 2**30

SAFE: dict[str, tuple[dict[str, int], int, int]] = {
    "three_subtasks_two_coordinators_two_checkpoints_two_failures": (
        {"subtasks": 3, "coordinators": 2, "wanted": 2, "events": 1, "F": 2},
        73_339_876,
        810_091_394,
    ),
    "two_subtasks_two_coordinators_two_checkpoints_two_events": (
        {"subtasks": 2, "coordinators": 2, "wanted": 2, "events": 2, "F": 1},
        23_039_522,
        190_232_235,
    ),
    "three_subtasks_two_checkpoints_two_events_two_failures": (
        {"subtasks": 3, "coordinators": 1, "wanted": 2, "events": 2, "F": 2},
        10_911_033,
        115_347_554,
    ),
}


@pytest.mark.parametrize(("constants", "states", "transitions"), SAFE.values(), ids=SAFE)
def test_the_invariants_hold_at_the_largest_bounds(
    constants: dict[str, int], states: int, transitions: int
) -> None:
    """Subtasks are interchangeable here, so the states are those that differ by more than that."""
    result = check(ClosedJob(renumbered=1, **constants), symmetry=True, max_memory=MEMORY_BYTES_MAX)
    assert result.verdict is Verdict.PASS
    assert (result.states, result.transitions) == (states, transitions)


LARGER: dict[str, tuple[ClosedJob, int, int]] = {
    "two_subtasks_that_talk": (TalkingJob(subtasks=2), 3_695_538, 30_646_366),
    "two_subtasks_that_end": (EndingJob(subtasks=2), 1_065_476, 8_332_840),
    "two_subtasks_that_may_be_resumed": (ResumingJob(subtasks=2, F=2), 2_550_489, 19_449_224),
    "two_coordinators_that_are_asked": (AskedJob(coordinators=2), 1_408_183, 7_985_852),
    "two_failures_and_then_for_ever": (LiveJob(F=2), 108_155, 763_720),
    "two_coordinators_for_ever": (LiveJob(coordinators=2), 235_526, 1_602_121),
    "three_subtasks_for_ever": (LiveJob(subtasks=3), 158_471, 1_275_781),
}


@pytest.mark.parametrize(("system", "states", "transitions"), LARGER.values(), ids=LARGER)
def test_receipts_endings_and_liveness_hold_at_larger_bounds(
    system: ClosedJob, states: int, transitions: int
) -> None:
    result = check(system, max_memory=MEMORY_BYTES_MAX)
    assert result.verdict is Verdict.PASS
    assert (result.states, result.transitions) == (states, transitions)
