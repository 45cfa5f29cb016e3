"""The store in memory beyond the contract: it fails by order."""

from __future__ import annotations

import pytest

from epochgate.runtime.store import (
    CheckpointOutcomeUnknown,
    CheckpointSaveFailed,
    CheckpointShelf,
    CheckpointStore,
    InMemoryCheckpointStore,
)
from tests.runtime.store.mediums import JOB, checkpoint_of


def test_one_ordered_failure_stores_nothing_and_ends_with_itself() -> None:
    store = InMemoryCheckpointStore(job_id=JOB)
    store.fail_next_save()
    with pytest.raises(CheckpointSaveFailed, match="by order"):
        store.save(checkpoint_of(1))
    assert store.latest() is None
    store.save(checkpoint_of(1))
    assert store.latest() == checkpoint_of(1)


def test_an_unknown_outcome_ends_the_driver_and_may_have_stored_the_checkpoint() -> None:
    shelf = CheckpointShelf()
    store = InMemoryCheckpointStore(shelf, job_id=JOB)
    store.fail_next_save(is_stored=True)
    for checkpoint_id in (1, 2):
        with pytest.raises(CheckpointOutcomeUnknown):
            store.save(checkpoint_of(checkpoint_id))
    shelf.end_driver()
    successor: CheckpointStore = InMemoryCheckpointStore(shelf, job_id=JOB)
    assert successor.latest() == checkpoint_of(1)
    assert successor.ids() == [1]
