"""A value passes through few files on its way; who makes its way longer has to say so here."""

from __future__ import annotations

from tests.runtime.walks import Walk, event_and_checkpoint, micro_batch


def is_within(walk: Walk, files: int, changes: int) -> bool:
    return len(walk.files) <= files and walk.changes <= changes


def test_the_walks_of_values_stay_short() -> None:
    event, checkpoint = event_and_checkpoint()
    assert is_within(event, 12, 28), event
    assert is_within(checkpoint, 34, 150), checkpoint
    assert is_within(micro_batch(), 4, 32), micro_batch()
