"""The holder of a checkpoint directory: locks and fences, with real second processes."""

from __future__ import annotations

import errno
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given, strategies as st

from epochgate.runtime.filesystem import AnyPath, LocalFileSystem, LocksRefused
from epochgate.runtime.store import (
    CheckpointFormatUnknown,
    CheckpointStoreInUse,
    CheckpointStoreLost,
    CompletedCheckpoint,
    DirectoryCheckpointStore,
)
from epochgate.runtime.store.claim import Claim
from tests.runtime.store.mediums import JOB, FileSystemWithoutLocks, checkpoint_of


def _open(directory: Path, file_system: LocalFileSystem | None = None) -> DirectoryCheckpointStore:
    return DirectoryCheckpointStore(directory, job_id=JOB, file_system=file_system)


@given(
    st.recursive(
        st.none() | st.integers() | st.text(),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
        max_leaves=10,
    )
)
def test_no_json_is_a_claim_but_one_of_ours(value: object) -> None:
    assert Claim.decode(json.dumps(value).encode()) is None


def test_a_directory_of_another_version_is_refused_and_untouched(tmp_path: Path) -> None:
    claim = Claim(2, JOB, 5, 1, "host", "mark").encode()
    (tmp_path / "claim.json").write_bytes(claim)
    with pytest.raises(CheckpointFormatUnknown, match="has version 2"):
        _open(tmp_path)
    assert (tmp_path / "claim.json").read_bytes() == claim


def test_a_lost_claim_stops_the_driver(tmp_path: Path) -> None:
    store = _open(tmp_path)
    (tmp_path / "claim.json").unlink()
    with pytest.raises(CheckpointStoreLost, match="no readable claim"):
        store.save(checkpoint_of(1))


def test_a_driver_that_is_fenced_within_a_save_does_not_touch_the_others_file(
    tmp_path: Path,
) -> None:
    class _TakenOverAtFsync(LocalFileSystem):
        """The moment in which another driver comes, saves the same id, and lets this one go on."""

        def read_bytes(self, path: AnyPath) -> bytes:
            if takes_over:
                takes_over.pop()
                (tmp_path / "driver.lock").unlink()
                with _open(tmp_path) as new:
                    new.save(checkpoint_of(2))
            return super().read_bytes(path)

    takes_over: list[bool] = []
    old = _open(tmp_path, _TakenOverAtFsync())
    old.save(checkpoint_of(1))
    takes_over.append(True)
    with pytest.raises(CheckpointStoreLost):
        old.save(CompletedCheckpoint(2, JOB, "old run", 0.0, parallelism=1))
    with _open(tmp_path) as successor:
        assert successor.latest() == checkpoint_of(2)


def test_a_fenced_driver_whose_save_fails_does_not_take_back_the_others_file(
    tmp_path: Path,
) -> None:
    class _TakenOverAtRename(LocalFileSystem):
        def rename(self, source: AnyPath, destination: AnyPath) -> None:
            if str(destination).endswith(".epochgate"):
                (tmp_path / "driver.lock").unlink()
                with _open(tmp_path) as new:
                    new.save(checkpoint_of(2))
                raise OSError(errno.EIO, "input/output error")
            super().rename(source, destination)

    old = _open(tmp_path, _TakenOverAtRename())
    with pytest.raises(CheckpointStoreLost):
        old.save(CompletedCheckpoint(2, JOB, "old run", 0.0, parallelism=1))
    with _open(tmp_path) as successor:
        assert successor.latest() == checkpoint_of(2)


def test_a_directory_without_locks_is_refused_and_not_claimed(tmp_path: Path) -> None:
    with pytest.raises(LocksRefused, match=r"driver\.lock"):
        _open(tmp_path, FileSystemWithoutLocks())
    assert os.listdir(tmp_path) == ["driver.lock"]
    _open(tmp_path).close()


OTHER_DRIVER = """
import sys
from epochgate.runtime.store import DirectoryCheckpointStore
store = DirectoryCheckpointStore(sys.argv[1], job_id="orders")
print(store.epoch, flush=True)
sys.stdin.read()
"""


def _start_driver(directory: Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", OTHER_DRIVER, str(directory)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[3])},
    )


def test_a_real_second_process_is_named_and_its_death_frees_the_directory(tmp_path: Path) -> None:
    with _start_driver(tmp_path) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "1\n"
            with pytest.raises(CheckpointStoreInUse, match=rf"process {process.pid} on .*epoch 1"):
                _open(tmp_path)
        finally:
            process.kill()
            process.wait(timeout=60)
    with _open(tmp_path) as store:
        assert store.epoch == 2
        store.save(checkpoint_of(1))


def test_a_second_start_in_one_process_is_told_to_wait_for_the_first(tmp_path: Path) -> None:
    with _open(tmp_path):
        with pytest.raises(CheckpointStoreInUse) as caught:
            _open(tmp_path)
        assert "an earlier start in this very process (epoch 1)" in str(caught.value)
        assert "wait() has returned, after stop() or cancel() too" in str(caught.value)
    _open(tmp_path).close()


def test_a_real_second_process_that_took_over_fences_this_one(tmp_path: Path) -> None:
    store = _open(tmp_path)
    store.save(checkpoint_of(1))
    (tmp_path / "driver.lock").unlink()
    with _start_driver(tmp_path) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "2\n"
            with pytest.raises(CheckpointStoreLost, match=f"now process {process.pid} on"):
                store.save(checkpoint_of(2))
        finally:
            process.kill()
            process.wait(timeout=60)
    store.close()
    with _open(tmp_path) as successor:
        assert successor.latest() == checkpoint_of(1)
