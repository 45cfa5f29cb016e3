"""The contract of every checkpoint store, over the directory and over memory."""

from __future__ import annotations

import dataclasses
import logging
from collections.abc import Callable
from pathlib import Path

import pytest

from epochgate.runtime.store import (
    CheckpointDamaged,
    CheckpointFormatUnknown,
    CheckpointIdNotIncreasing,
    CheckpointNotFound,
    CheckpointNotStorable,
    CheckpointOfAnotherJob,
    CheckpointStoreClosed,
    CheckpointStoreFull,
    CheckpointStoreInUse,
    CheckpointStoreLost,
    NoWholeCheckpoint,
    encode_checkpoint,
)
from epochgate.runtime.store.encoding import FORMAT_VERSION, seal
from tests.runtime.store.mediums import (
    DirectoryMedium,
    Medium,
    ShelfMedium,
    checkpoint_of,
)


@pytest.fixture(params=["directory", "memory"])
def medium(request: pytest.FixtureRequest, tmp_path: Path) -> Medium:
    return DirectoryMedium(tmp_path / "a" / "b") if request.param == "directory" else ShelfMedium()


def _empty(data: bytes) -> bytes:
    return b""


def _flip_last_bit(data: bytes) -> bytes:
    return data[:-1] + bytes([data[-1] ^ 1])


def test_a_new_store_holds_nothing(medium: Medium) -> None:
    store = medium.open()
    assert (store.latest(), store.ids(), store.last_id, store.epoch) == (None, [], None, 1)
    with pytest.raises(CheckpointNotFound, match="holds no checkpoint 7, but"):
        store.load(7)


def test_a_checkpoint_comes_back_as_it_went_in(medium: Medium) -> None:
    store = medium.open()
    info = store.save(checkpoint_of(7))
    assert info.size_bytes > 300
    assert info.duration_s >= 0
    assert "7" in info.path
    assert store.latest() == store.load(7) == checkpoint_of(7)
    assert store.last_id == 7


def test_a_store_keeps_no_part_of_what_it_was_given(medium: Medium) -> None:
    store = medium.open()
    given = checkpoint_of(1)
    store.save(given)
    given.committables[1].clear()
    given.properties["more"] = 1
    assert store.latest() == checkpoint_of(1)
    first, second = store.load(1), store.load(1)
    first.subtasks.clear()
    assert second == checkpoint_of(1)


@pytest.mark.parametrize("retained", [1, 2, 3])
def test_the_newest_are_retained_and_the_others_removed(medium: Medium, retained: int) -> None:
    store = medium.open(retained=retained)
    for checkpoint_id in (1, 2, 3, 5, 8):
        store.save(checkpoint_of(checkpoint_id))
        assert store.ids()[-1] == checkpoint_id
    assert store.ids() == [1, 2, 3, 5, 8][-retained:]
    assert store.latest() == checkpoint_of(8)
    with pytest.raises(CheckpointNotFound):
        store.load(1)


def test_retaining_none_is_refused(medium: Medium) -> None:
    with pytest.raises(ValueError, match="at least 1"):
        medium.open(retained=0)


@pytest.mark.parametrize("again", [7, 6, 0])
def test_ids_must_increase(medium: Medium, again: int) -> None:
    store = medium.open()
    store.save(checkpoint_of(7))
    with pytest.raises(CheckpointIdNotIncreasing, match="from 8"):
        store.save(checkpoint_of(again))
    assert store.ids() == [7]
    assert store.latest() == checkpoint_of(7)


def test_the_next_driver_goes_on_where_a_dead_one_was(medium: Medium) -> None:
    store = medium.open()
    store.save(checkpoint_of(1))
    store.save(checkpoint_of(2))
    medium.kill_driver()
    successor = medium.open()
    assert successor.epoch == 2
    assert successor.latest() == checkpoint_of(2)
    with pytest.raises(CheckpointIdNotIncreasing):
        successor.save(checkpoint_of(2))
    successor.save(checkpoint_of(3))
    assert successor.ids() == [1, 2, 3]


def test_a_closed_store_is_free_for_the_next_and_of_no_more_use(medium: Medium) -> None:
    store = medium.open()
    store.close()
    store.close()
    for use in (
        store.latest,
        store.ids,
        lambda: store.load(1),
        lambda: store.save(checkpoint_of(1)),
    ):
        with pytest.raises(CheckpointStoreClosed):
            use()
    successor = medium.open()
    store.close()
    with pytest.raises(CheckpointStoreInUse):
        medium.open()
    successor.close()


def test_a_second_driver_is_refused_while_the_first_lives(medium: Medium) -> None:
    store = medium.open()
    with pytest.raises(CheckpointStoreInUse, match="epoch 1") as caught:
        medium.open()
    assert caught.value.exit_code == 2
    store.save(checkpoint_of(1))


def test_a_driver_that_lost_the_store_cannot_save_any_more(medium: Medium) -> None:
    old = medium.open()
    old.save(checkpoint_of(1))
    medium.lose_lock()
    new = medium.open()
    new.save(checkpoint_of(2))
    for checkpoint_id in (2, 3):
        with pytest.raises(CheckpointStoreLost, match=r"epoch 1.*epoch 2"):
            old.save(checkpoint_of(checkpoint_id))
    old.close()
    assert new.ids() == [1, 2]
    new.save(checkpoint_of(3))
    assert new.latest() == checkpoint_of(3)


def test_a_store_belongs_to_one_job(medium: Medium) -> None:
    store = medium.open()
    with pytest.raises(CheckpointOfAnotherJob, match="'orders'"):
        store.save(checkpoint_of(1, job_id="payments"))
    store.save(checkpoint_of(1))
    store.close()
    with pytest.raises(CheckpointOfAnotherJob, match=r"'orders'.*'payments'") as caught:
        medium.open(job_id="payments")
    assert caught.value.exit_code == 2
    assert medium.open().latest() == checkpoint_of(1)


def test_a_full_disk_loses_nothing_and_a_later_save_works(medium: Medium) -> None:
    store = medium.open(retained=1)
    store.save(checkpoint_of(1))
    medium.fill_up()
    with pytest.raises(CheckpointStoreFull, match="no space left"):
        store.save(checkpoint_of(2))
    assert (store.ids(), store.latest()) == ([1], checkpoint_of(1))
    medium.free_space()
    store.save(checkpoint_of(2))
    assert (store.ids(), store.latest()) == ([2], checkpoint_of(2))


@pytest.mark.parametrize("change", [_empty, _flip_last_bit], ids=["empty", "flipped bit"])
def test_a_damaged_checkpoint_falls_back_to_the_one_before(
    medium: Medium, change: Callable[[bytes], bytes], caplog: pytest.LogCaptureFixture
) -> None:
    store = medium.open()
    store.save(checkpoint_of(1))
    info = store.save(checkpoint_of(2))
    medium.change(2, change)
    with pytest.raises(CheckpointDamaged) as caught:
        store.load(2)
    assert caught.value.source == info.path
    assert store.ids() == [1, 2], "loading one puts nothing aside"
    with caplog.at_level(logging.WARNING, "epochgate.runtime.store"):
        assert store.latest() == checkpoint_of(1)
    assert store.ids() == [1]
    assert [info.path in warning for warning in store.warnings] == [True]
    assert caplog.messages == list(store.warnings)
    assert len(medium.kept_aside()) == 1


def test_the_id_of_a_damaged_checkpoint_is_never_used_again(medium: Medium) -> None:
    store = medium.open()
    store.save(checkpoint_of(1))
    store.save(checkpoint_of(2))
    medium.change(2, _empty)
    store.latest()
    medium.kill_driver()
    store = medium.open()
    assert store.last_id == 2
    with pytest.raises(CheckpointIdNotIncreasing):
        store.save(checkpoint_of(2))
    store.save(checkpoint_of(3))
    assert store.ids() == [1, 3]


def test_a_job_whose_checkpoints_are_all_damaged_does_not_start_from_nothing(
    medium: Medium,
) -> None:
    store = medium.open()
    for checkpoint_id in (1, 2):
        store.save(checkpoint_of(checkpoint_id))
        medium.change(checkpoint_id, _flip_last_bit)
    for _ in range(2):
        with pytest.raises(NoWholeCheckpoint, match="up to 2"):
            store.latest()
        medium.kill_driver()
        store = medium.open()
    assert len(medium.kept_aside()) == 2


def test_a_checkpoint_of_another_format_is_no_reason_to_fall_back(medium: Medium) -> None:
    store = medium.open()
    store.save(checkpoint_of(1))
    store.save(checkpoint_of(2))
    medium.change(2, lambda data: seal(b"whatever a later version writes", FORMAT_VERSION + 1))
    with pytest.raises(
        CheckpointFormatUnknown, match=r"version 3.*reads versions 1 to 2"
    ) as caught:
        store.latest()
    assert caught.value.exit_code == 2
    assert store.ids() == [1, 2]


def test_a_checkpoint_under_the_wrong_id_is_damaged(medium: Medium) -> None:
    store = medium.open()
    store.save(checkpoint_of(2))
    medium.change(2, lambda data: encode_checkpoint(checkpoint_of(1)))
    with pytest.raises(CheckpointDamaged, match="it holds checkpoint 1"):
        store.load(2)


def test_what_cannot_be_stored_is_refused_before_anything_is_written(medium: Medium) -> None:
    store = medium.open()
    bad = dataclasses.replace(checkpoint_of(1), committables={0: [{"path": ("a", "b")}]})
    with pytest.raises(CheckpointNotStorable, match=r"committables\[0\]\[0\]\['path'\] is a tuple"):
        store.save(bad)
    assert store.ids() == []
    store.save(checkpoint_of(1))


def test_a_store_that_adopts_a_checkpoint_goes_on_after_it_and_its_epoch(medium: Medium) -> None:
    store = medium.open()
    store.adopt(dataclasses.replace(checkpoint_of(7), epoch=40))
    assert (store.epoch, store.last_id, store.ids()) == (41, 7, [7])
    store.save(checkpoint_of(8))
    medium.kill_driver()
    assert medium.open().epoch == 42


def test_a_store_that_was_lost_adopts_nothing(medium: Medium) -> None:
    old = medium.open()
    medium.lose_lock()
    new = medium.open()
    new.save(checkpoint_of(1))
    with pytest.raises(CheckpointStoreLost):
        old.adopt(checkpoint_of(7))
    new.save(checkpoint_of(2))
    assert new.ids() == [1, 2]


def test_files_lie_beside_the_checkpoints_and_are_no_checkpoints(medium: Medium) -> None:
    store = medium.open()
    store.write_file("known-files/one.segment", b"a")
    store.write_file("known-files/one.segment", b"b")
    assert store.read_file("known-files/one.segment") == b"b"
    assert store.ids() == []
    with pytest.raises(FileNotFoundError):
        store.read_file("known-files/two.segment")
