"""Checkpoints in a directory: crashes at every step, real processes, and what disks do."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import Literal

import pytest
from hypothesis import given, strategies as st

from epochgate.runtime.filesystem import TEMPORARY_SUFFIX, AnyPath, LocalFileSystem
from epochgate.runtime.store import (
    CheckpointIdNotIncreasing,
    CheckpointOfAnotherJob,
    CheckpointOutcomeUnknown,
    CheckpointSaveFailed,
    CheckpointStoreError,
    CheckpointStoreFull,
    CheckpointStoreUnusable,
    CompletedCheckpoint,
    DirectoryCheckpointStore,
    NoWholeCheckpoint,
    checkpoint_file_name,
    encode_checkpoint,
)
from epochgate.runtime.testing.faulty_filesystem import Fault, FaultyFileSystem, SimulatedCrash
from tests.runtime.store.mediums import JOB, checkpoint_of

When = Literal["before", "during", "after"]
WHEN: tuple[When, ...] = ("before", "during", "after")


def _open(
    directory: Path,
    file_system: LocalFileSystem | FaultyFileSystem | None = None,
    retained: int = 3,
) -> DirectoryCheckpointStore:
    return DirectoryCheckpointStore(
        directory, job_id=JOB, retained=retained, file_system=file_system
    )


def _filled(directory: Path, *checkpoint_ids: int) -> None:
    with _open(directory) as store:
        for checkpoint_id in checkpoint_ids:
            store.save(checkpoint_of(checkpoint_id))


def _found(directory: Path) -> CompletedCheckpoint | None:
    with _open(directory) as store:
        assert not [name for name in os.listdir(directory) if name.endswith(TEMPORARY_SUFFIX)]
        found = store.latest()
        assert store.warnings == []
        return found


def _operations_of_a_save(directory: Path) -> list[str]:
    _filled(directory, 1, 2)
    files = FaultyFileSystem(LocalFileSystem())
    with _open(directory, files, retained=1) as store:
        before = len(files.operations)
        store.save(checkpoint_of(3))
        return [operation.name for operation in files.operations[before:]]


def test_a_save_makes_the_file_durable_then_visible_then_removes_the_old(tmp_path: Path) -> None:
    assert _operations_of_a_save(tmp_path) == [
        *("create", "write", "fsync", "rename", "fsync_directory"),
        *("remove", "remove"),
    ]


@pytest.mark.parametrize("when", WHEN)
@pytest.mark.parametrize("step", range(7))
def test_a_crash_at_any_step_of_a_save_leaves_the_old_or_the_new_checkpoint_whole(
    tmp_path: Path, step: int, when: When
) -> None:
    _filled(tmp_path, 1, 2)
    files = FaultyFileSystem(LocalFileSystem())
    store = _open(tmp_path, files, retained=1)
    files.fault = Fault(len(files.operations) + step, "crash", when)
    with pytest.raises(SimulatedCrash):
        store.save(checkpoint_of(3))
    is_visible = step > 3 or (step == 3 and when == "after")
    assert _found(tmp_path) == checkpoint_of(3 if is_visible else 2)
    with _open(tmp_path) as successor:
        successor.save(checkpoint_of(4))
        assert successor.latest() == checkpoint_of(4)


@pytest.mark.parametrize("when", WHEN)
def test_a_crash_at_any_step_of_opening_does_not_hinder_the_next(
    tmp_path: Path, when: When
) -> None:
    for step in range(100):
        directory = tmp_path / f"{step}"
        _filled(directory, 1)
        (directory / f".{checkpoint_file_name(2)}.1-1{TEMPORARY_SUFFIX}").write_bytes(b"half")
        (directory / "claim.json").write_bytes(b"not a claim")
        files = FaultyFileSystem(LocalFileSystem(), Fault(step, "crash", when))
        try:
            _open(directory, files).close()
        except SimulatedCrash:
            with _open(directory) as store:
                assert store.latest() == checkpoint_of(1)
        else:
            break
    assert step == 8, "remove, rename, fsync, and a durable write of the claim"


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("step", range(7))
def test_a_failing_step_means_not_stored_and_a_later_save_works(
    tmp_path: Path, step: int, when: When
) -> None:
    _filled(tmp_path, 1, 2)
    files = FaultyFileSystem(LocalFileSystem())
    store = _open(tmp_path, files, retained=1)
    files.fault = Fault(len(files.operations) + step, "error", when)
    if step < 5:
        with pytest.raises(CheckpointSaveFailed, match="checkpoint 3 was not stored"):
            store.save(checkpoint_of(3))
        assert store.ids() == [1, 2]
        assert store.latest() == checkpoint_of(2)
    else:
        store.save(checkpoint_of(3))
        assert "could not be removed" in store.warnings[0]
        assert store.latest() == checkpoint_of(3)
    assert not [name for name in os.listdir(tmp_path) if name.endswith(TEMPORARY_SUFFIX)]
    next_id = 3 if step < 5 else 4
    store.save(checkpoint_of(next_id))
    assert store.ids() == [next_id]


@pytest.mark.parametrize("step", range(3))
def test_a_full_disk_leaves_no_half_written_file(tmp_path: Path, step: int) -> None:
    _filled(tmp_path, 1)
    before = sorted(os.listdir(tmp_path))
    files = FaultyFileSystem(LocalFileSystem())
    store = _open(tmp_path, files)
    files.fault = Fault(len(files.operations) + step, "disk_full")
    for _ in range(2):
        with pytest.raises(CheckpointStoreFull, match="untouched"):
            store.save(checkpoint_of(2))
        assert sorted(os.listdir(tmp_path)) == before
    files.free_space()
    store.save(checkpoint_of(2))
    assert store.latest() == checkpoint_of(2)


def test_a_disk_that_is_full_at_the_start_is_reported_as_full(tmp_path: Path) -> None:
    _filled(tmp_path, 1)
    with pytest.raises(CheckpointStoreFull, match="start again"):
        _open(tmp_path, FaultyFileSystem(LocalFileSystem(), Fault(0, "disk_full")))
    assert _found(tmp_path) == checkpoint_of(1)


class _DirectoryNeverSyncs(LocalFileSystem):
    """A disk that fails whenever a directory is to be made durable, once it is told to."""

    is_failing = False

    def fsync_directory(self, path: AnyPath) -> None:
        if self.is_failing:
            raise OSError(errno.EIO, "input/output error")
        super().fsync_directory(path)


def test_a_save_that_can_neither_be_finished_nor_undone_says_so(tmp_path: Path) -> None:
    files = _DirectoryNeverSyncs()
    store = _open(tmp_path, files)
    store.save(checkpoint_of(1))
    files.is_failing = True
    with pytest.raises(CheckpointOutcomeUnknown, match=r"checkpoint 2 is stored .* is unknown"):
        store.save(checkpoint_of(2))
    files.is_failing = False
    with pytest.raises(CheckpointOutcomeUnknown):
        store.save(checkpoint_of(3))
    store.close()
    assert _found(tmp_path) in (checkpoint_of(1), checkpoint_of(2))


def test_a_foreign_file_under_the_next_name_is_not_overwritten(tmp_path: Path) -> None:
    store = _open(tmp_path)
    path = tmp_path / checkpoint_file_name(1)
    path.write_bytes(b"precious")
    with pytest.raises(CheckpointIdNotIncreasing, match="is there already"):
        store.save(checkpoint_of(1))
    assert path.read_bytes() == b"precious"


@given(st.data())
def test_a_changed_file_falls_back_and_is_kept(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    directory = tmp_path_factory.mktemp("store")
    _filled(directory, 1, 2)
    path = directory / checkpoint_file_name(2)
    whole = path.read_bytes()
    at = data.draw(st.integers(0, len(whole) - 1))
    bit = data.draw(st.integers(0, 7))
    is_cut = data.draw(st.booleans())
    changed = whole[:at] if is_cut else whole[:at] + bytes([whole[at] ^ 1 << bit]) + whole[at + 1 :]
    path.write_bytes(changed)
    with _open(directory) as store:
        assert store.latest() == checkpoint_of(1)
        assert str(path) in store.warnings[0]
    assert path.with_name(path.name + ".damaged").read_bytes() == changed


@given(
    st.dictionaries(st.integers(0, 4), st.binary(max_size=100)), st.binary(max_size=100) | st.none()
)
def test_a_directory_of_anything_raises_nothing_but_declared_errors(
    tmp_path_factory: pytest.TempPathFactory, files: dict[int, bytes], claim: bytes | None
) -> None:
    directory = tmp_path_factory.mktemp("store")
    for checkpoint_id, data in files.items():
        (directory / checkpoint_file_name(checkpoint_id)).write_bytes(data)
    if claim is not None:
        (directory / "claim.json").write_bytes(claim)
    with _open(directory) as store:
        if files:
            with pytest.raises(NoWholeCheckpoint):
                store.latest()
        else:
            assert store.latest() is None
        assert len(store.warnings) == len(files) + (claim is not None)
    kept = sorted(path.read_bytes() for path in directory.glob("checkpoint-*.damaged"))
    assert kept == sorted(files.values())


def test_damaged_files_of_one_name_are_all_kept(tmp_path: Path) -> None:
    _filled(tmp_path, 1, 2)
    path = tmp_path / checkpoint_file_name(2)
    for content in (b"first", b"second", b"third"):
        path.write_bytes(content)
        with _open(tmp_path) as store:
            assert store.latest() == checkpoint_of(1)
            assert store.last_id == 2
    assert {found.read_bytes() for found in tmp_path.glob("*.damaged*")} == {
        b"first",
        b"second",
        b"third",
    }


def test_files_of_others_are_left_alone(tmp_path: Path) -> None:
    names = [
        "notes.txt",
        f".mine{TEMPORARY_SUFFIX}",
        "checkpoint-7.epochgate",
        "checkpoint-0000000000009.epochgate",
    ]
    for name in names:
        (tmp_path / name).write_bytes(b"mine")
    _filled(tmp_path, 1, 2, 3, 4, 5)
    with _open(tmp_path) as store:
        assert store.ids() == [3, 4, 5]
    assert {name: (tmp_path / name).read_bytes() for name in names} == dict.fromkeys(names, b"mine")


def test_a_file_of_another_job_is_refused_even_without_a_claim(tmp_path: Path) -> None:
    data = encode_checkpoint(checkpoint_of(1, job_id="payments"))
    (tmp_path / checkpoint_file_name(1)).write_bytes(data)
    with _open(tmp_path) as store, pytest.raises(CheckpointOfAnotherJob, match="'payments'"):
        store.latest()


@pytest.mark.parametrize("below", ["", "below"])
def test_a_path_that_is_no_directory_is_refused(tmp_path: Path, below: str) -> None:
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(CheckpointStoreUnusable, match="Expected a directory"):
        _open(tmp_path / "file" / below)


def test_a_checkpoint_that_cannot_be_read_is_not_taken_for_damaged(tmp_path: Path) -> None:
    with _open(tmp_path) as store:
        (tmp_path / checkpoint_file_name(1)).mkdir()
        with pytest.raises(CheckpointStoreUnusable, match="cannot read"):
            store.latest()
        assert store.ids() == [1]


def test_a_directory_that_vanished_is_reported(tmp_path: Path) -> None:
    with _open(tmp_path / "a") as store:
        for path in (tmp_path / "a").iterdir():
            path.unlink()
        (tmp_path / "a").rmdir()
        with pytest.raises(CheckpointStoreUnusable, match="cannot list"):
            store.ids()
        with pytest.raises(CheckpointStoreError):
            store.save(checkpoint_of(1))
