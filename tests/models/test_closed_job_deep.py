"""The machines that run, at the largest bounds that eight gigabytes and a few minutes allow, for
`make check-deep`.
"""

from __future__ import annotations

import pytest

from epochgate.fsm.explore import Verdict, check
from epochgate.models.closed_job import ClosedJob, EndingJob, LiveJob, TalkingJob

pytestmark = pytest.mark.deep

MEMORY_BYTES_MAX = 8 * 2**30

SAFE: dict[str, tuple[dict[str, int], int, int]] = {
    "three_subtasks_two_coordinators_two_checkpoints_two_failures": (
        {"subtasks": 3, "coordinators": 2, "wanted": 2, "events": 1, "F": 2},
        80_193_027,
        873_812_374,
    ),
    "two_subtasks_two_coordinators_two_checkpoints_two_events": (
        {"subtasks": 2, "coordinators": 2, "wanted": 2, "events": 2, "F": 1},
        25_714_612,
        208_785_683,
    ),
    "three_subtasks_two_checkpoints_two_events_two_failures": (
        {"subtasks": 3, "coordinators": 1, "wanted": 2, "events": 2, "F": 2},
        11_269_568,
        118_230_563,
    ),
}


@pytest.mark.parametrize(("constants", "states", "transitions"), SAFE.values(), ids=SAFE)
def test_the_invariants_hold_at_the_largest_bounds(
    constants: dict[str, int], states: int, transitions: int
) -> None:
    """Subtasks are interchangeable here, so the states are those that differ by more than that."""
    result = check(
        ClosedJob(renumbered=1, **constants), symmetry=True, max_memory=MEMORY_BYTES_MAX
    )
    assert result.verdict is Verdict.PASS
    assert (result.states, result.transitions) == (states, transitions)


LARGER: dict[str, tuple[ClosedJob, int, int]] = {
    "two_subtasks_that_talk": (TalkingJob(subtasks=2), 3_140_746, 25_701_236),
    "two_subtasks_that_end": (EndingJob(subtasks=2), 309_168, 2_169_505),
    "two_failures_and_then_for_ever": (LiveJob(F=2), 105_466, 724_016),
    "two_coordinators_for_ever": (LiveJob(coordinators=2), 247_234, 1_655_113),
    "three_subtasks_for_ever": (LiveJob(subtasks=3), 158_895, 1_265_442),
}


@pytest.mark.parametrize(("system", "states", "transitions"), LARGER.values(), ids=LARGER)
def test_receipts_endings_and_liveness_hold_at_larger_bounds(
    system: ClosedJob, states: int, transitions: int
) -> None:
    result = check(system, max_memory=MEMORY_BYTES_MAX)
    assert result.verdict is Verdict.PASS
    assert (result.states, result.transitions) == (states, transitions)
