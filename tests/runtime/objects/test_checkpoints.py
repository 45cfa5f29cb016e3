"""Checkpoints in an object store: whole or not there, for one driver at a time."""

from __future__ import annotations

import contextlib

import pytest
from obstore.store import MemoryStore

from epochgate.runtime.objects.errors import ConditionsIgnored
from epochgate.runtime.store import (
    CheckpointNotFound,
    CheckpointOfAnotherJob,
    CheckpointOutcomeUnknown,
    CheckpointStoreClosed,
    CheckpointStoreInUse,
    CheckpointStoreLost,
    CompletedCheckpoint,
    NoWholeCheckpoint,
    ObjectCheckpointStore,
)
from epochgate.runtime.testing.faulty_filesystem import Fault, SimulatedCrash
from tests.runtime.objects.faulty_objects import FaultyObjects
from tests.runtime.objects.stores import Lying, Memory
from tests.runtime.store.mediums import JOB, checkpoint_of

URL = "memory://checkpoints"


def store_on(memory: Memory | FaultyObjects, job_id: str = JOB) -> ObjectCheckpointStore:
    return ObjectCheckpointStore(memory.open(URL), job_id=job_id)


def test_the_newest_are_retained_and_come_back_as_they_went_in() -> None:
    memory = Memory()
    with store_on(memory) as store:
        assert (store.latest(), store.last_id, store.ids()) == (None, None, [])
        for number in range(1, 6):
            assert store.save(checkpoint_of(number)).size_bytes > 0
    again = store_on(memory)
    assert (again.ids(), again.last_id) == ([3, 4, 5], 5)
    assert (store.epoch, again.epoch) == (1, 2)
    assert again.latest() == checkpoint_of(5)
    assert again.load(3) == checkpoint_of(3)
    assert len(memory.open(URL).list("checkpoints")) == 3
    with pytest.raises(CheckpointNotFound):
        again.load(2)
    with pytest.raises(CheckpointStoreClosed):
        store.ids()


def test_a_driver_that_was_replaced_cannot_save_any_more() -> None:
    memory = Memory()
    first = store_on(memory)
    first.save(checkpoint_of(1))
    second = store_on(memory)
    with pytest.raises(CheckpointStoreLost, match="lost the checkpoints"):
        first.save(checkpoint_of(2))
    second.save(checkpoint_of(2))
    assert second.ids() == [1, 2]


def test_of_two_starts_at_one_moment_one_is_refused() -> None:
    memory = Memory()

    class Interrupted:
        """Lets another driver start between what this one has read and its claim."""

        def __init__(self) -> None:
            self.inner, self.url = memory.open(URL), URL

        def create(self, key: str, data: bytes) -> None:
            if "/log/" in key:
                store_on(memory)
            self.inner.create(key, data)

        def __getattr__(self, name: str) -> object:
            return getattr(self.inner, name)

    with pytest.raises(CheckpointStoreInUse, match="at the same moment"):
        ObjectCheckpointStore(Interrupted(), job_id=JOB)  # type: ignore[arg-type]


def test_a_store_belongs_to_one_job() -> None:
    memory = Memory()
    store_on(memory)
    with pytest.raises(CheckpointOfAnotherJob, match="belongs to job 'orders'"):
        store_on(memory, "other")


def test_a_damaged_checkpoint_is_kept_and_the_one_before_it_restored() -> None:
    memory = Memory()
    store = store_on(memory)
    for number in (1, 2):
        store.save(checkpoint_of(number))
    objects = memory.open(URL)
    for key in objects.list("checkpoints"):
        if "000000000002-" in key:
            objects.put(key, objects.get(key)[:-1])
    again = store_on(memory)
    assert again.latest() == checkpoint_of(1)
    assert (again.ids(), again.last_id) == ([1], 2)
    assert "falls back" in again.warnings[0]
    third = store_on(memory)
    assert len(objects.list("checkpoints")) == 2, "the damaged one is kept for a look"
    for key in objects.list("checkpoints"):
        objects.delete(key)
    with pytest.raises(NoWholeCheckpoint):
        third.latest()


def test_a_store_that_ignores_conditions_is_refused() -> None:
    with pytest.raises(ConditionsIgnored):
        ObjectCheckpointStore(Lying(URL, MemoryStore()), job_id=JOB)
    with pytest.raises(ValueError, match="at least 1"):
        ObjectCheckpointStore(Memory().open(URL), job_id=JOB, retained=0)


def save_until_it_dies(memory: Memory, fault: Fault) -> list[int]:
    """Save checkpoints with a driver that a fault strikes; those that it knows to be saved."""
    faults = FaultyObjects(memory.open, fault)
    saved: list[int] = []
    with contextlib.suppress(SimulatedCrash):
        store = store_on(faults)
        for number in range(1, 6):
            store.save(checkpoint_of(number))
            saved.append(number)
    return saved


@pytest.mark.parametrize("when", ["before", "after"])
def test_wherever_a_driver_dies_the_next_finds_what_it_had_saved(when: str) -> None:
    undisturbed = FaultyObjects(Memory().open)
    store = store_on(undisturbed)
    for number in range(1, 6):
        store.save(checkpoint_of(number))
    assert len(undisturbed.operations) > 12
    for at in range(len(undisturbed.operations)):
        memory = Memory()
        saved = save_until_it_dies(memory, Fault(at, when=when))  # type: ignore[arg-type]
        found = store_on(memory)
        last = found.last_id or 0
        assert last - len(saved) in (0, 1), undisturbed.operations[at]
        expected: CompletedCheckpoint | None = checkpoint_of(last) if last else None
        assert found.latest() == expected
        assert len(memory.open(URL).list("checkpoints")) == min(last, 3), "nothing is left over"
        found.save(checkpoint_of(last + 1))


def test_a_save_whose_answers_are_lost_is_in_doubt_until_the_next_start() -> None:
    memory = Memory()
    store = store_on(memory)

    class Mute:
        """Appends, and never says so."""

        def __init__(self) -> None:
            self.inner, self.url = memory.open(URL), URL

        def create(self, key: str, data: bytes) -> None:
            with contextlib.suppress(FileExistsError):
                self.inner.create(key, data)
            raise OSError(5, "no answer", key)

        def __getattr__(self, name: str) -> object:
            return getattr(self.inner, name)

    store._log._objects = Mute()  # type: ignore[assignment]
    for _ in range(2):
        with pytest.raises(CheckpointOutcomeUnknown, match="checkpoint 1 is stored"):
            store.save(checkpoint_of(1))
    assert store_on(memory).latest() == checkpoint_of(1)
