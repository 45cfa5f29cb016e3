"""Two drivers on one checkpoint directory: exactly one goes on, wherever either is suspended.

The lock is taken away in most of these, as a network file system takes it from a process that is
suspended for too long; with it, the second driver is refused and there is nothing to decide.
"""

from __future__ import annotations

import contextlib
import dataclasses
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from epochgate.runtime.filesystem import AnyPath, FileLock, LocalFileSystem, WritableFile
from epochgate.runtime.store import (
    CheckpointStoreError,
    CheckpointStoreInUse,
    CheckpointStoreLost,
    DirectoryCheckpointStore,
    InMemoryCheckpointStore,
)
from tests.runtime.store.mediums import JOB, checkpoint_of

ROOT = Path(__file__).parents[3]


class _Free:
    def release(self) -> None:
        """Nothing is held."""


class Paused(LocalFileSystem):
    """Has no lock that would keep two apart, and calls `pause` ahead of its `at`-th operation."""

    def __init__(self, at: int = -1, pause: Callable[[], None] = lambda: None) -> None:
        self.at, self.pause, self.operations = at, pause, list[str]()

    def _count(self, name: str) -> None:
        self.operations.append(name)
        if len(self.operations) == self.at + 1:
            self.pause()

    def try_lock(self, path: AnyPath) -> FileLock | None:
        return _Free()

    def open_for_writing(self, path: AnyPath) -> WritableFile:
        self._count("create")
        return super().open_for_writing(path)

    def read_bytes(self, path: AnyPath) -> bytes:
        self._count("read")
        return super().read_bytes(path)

    def rename(self, source: AnyPath, destination: AnyPath) -> None:
        self._count("rename")
        super().rename(source, destination)

    def fsync_directory(self, path: AnyPath) -> None:
        self._count("fsync directory")
        super().fsync_directory(path)

    def list_directory(self, path: AnyPath) -> list[str]:
        self._count("list")
        return super().list_directory(path)

    def remove(self, path: AnyPath) -> bool:
        self._count("remove")
        return super().remove(path)

    def exists(self, path: AnyPath) -> bool:
        self._count("exists")
        return super().exists(path)


def opened(directory: Path, files: LocalFileSystem) -> DirectoryCheckpointStore:
    return DirectoryCheckpointStore(directory, job_id=JOB, file_system=files)


def save(store: DirectoryCheckpointStore, checkpoint_id: int, run_id: str) -> bool:
    """Return whether it was saved; the only other outcome is that another driver has the store."""
    try:
        store.save(dataclasses.replace(checkpoint_of(checkpoint_id), run_id=run_id))
    except CheckpointStoreLost:
        return False
    return True


def operations(directory: Path, do: Callable[[Path, LocalFileSystem], object]) -> int:
    """Return how many operations that takes where no other driver comes."""
    files = Paused()
    do(directory, files)
    return len(files.operations)


def test_a_driver_that_is_suspended_anywhere_in_a_save_has_saved_before_or_never(
    tmp_path: Path,
) -> None:
    def open_and_save(directory: Path, files: LocalFileSystem) -> bool:
        old = opened(directory, files)
        assert save(old, 1, "old")
        return save(old, 2, "old")

    steps = operations(tmp_path / "whole", open_and_save)
    begun = operations(tmp_path / "begun", lambda place, f: save(opened(place, f), 1, "old"))
    outcomes = set()
    for at in range(begun, steps):
        directory = tmp_path / f"at-{at}"
        taken: list[DirectoryCheckpointStore] = []

        def take_over(directory: Path = directory, taken: list = taken) -> None:  # type: ignore[type-arg]
            new = opened(directory, Paused())
            for number in range((new.last_id or 0) + 1, 5):
                assert save(new, number, "new")
            taken.append(new)

        is_saved = open_and_save(directory, Paused(at, take_over))
        [new] = taken
        outcomes.add(is_saved)
        assert save(new, 5, "new"), "the driver that came last goes on"
        for number in new.ids():
            expected = "old" if is_saved and number == 2 else "new"
            assert new.load(number).run_id == expected, (at, number)
    assert outcomes == {True, False}


def test_what_a_driver_saves_while_another_starts_is_seen_by_that_or_refused(
    tmp_path: Path,
) -> None:
    def filled(directory: Path) -> DirectoryCheckpointStore:
        old = opened(directory, Paused())
        assert save(old, 1, "old")
        return old

    filled(tmp_path / "whole")
    steps = operations(tmp_path / "whole", opened)
    outcomes = set()
    for at in range(steps):
        directory = tmp_path / f"at-{at}"
        old, saved = filled(directory), list[bool]()
        new = opened(directory, Paused(at, lambda o=old, s=saved: s.append(save(o, 2, "old"))))  # type: ignore[misc]
        [is_saved] = saved
        outcomes.add(is_saved)
        assert not save(old, 3, "old"), "the earlier driver does not go on"
        latest = new.latest()
        assert latest is not None
        assert latest.checkpoint_id == new.last_id == (2 if is_saved else 1), at
        assert save(new, 3, "new")
    assert outcomes == {True, False}


class HalfSaved(threading.Thread):
    """A driver that begins to save checkpoint 2, and is suspended ahead of a step of that."""

    def __init__(self, directory: Path) -> None:
        super().__init__(daemon=True)
        self._files = Paused()
        self._store = opened(directory, self._files)
        assert save(self._store, 1, "old")
        self._is_at_rest, self._may_go_on = threading.Event(), threading.Event()
        self.is_saved = False

    def suspended_at(self, step: int) -> None:
        """Run until the step, counted from the save's first, or to the end."""
        self._files.at = len(self._files.operations) + step
        self._files.pause = self._rest
        self.start()
        assert self._is_at_rest.wait(30)

    def _rest(self) -> None:
        self._is_at_rest.set()
        assert self._may_go_on.wait(30)

    def run(self) -> None:
        self.is_saved = save(self._store, 2, "old")
        self._is_at_rest.set()

    def goes_on(self) -> bool:
        """Return whether it has saved in the end."""
        self._may_go_on.set()
        self.join(30)
        return self.is_saved


def test_a_save_that_began_during_a_start_and_ends_after_it_is_seen_by_it_or_refused(
    tmp_path: Path,
) -> None:
    HalfSaved(tmp_path / "whole")
    starting = operations(tmp_path / "whole", opened)
    steps = operations(tmp_path / "saving", lambda d, f: save(opened(d, f), 1, "old"))
    steps -= operations(tmp_path / "opening", opened)
    outcomes = set()
    for at in range(starting):
        for step in range(steps):
            directory = tmp_path / f"at-{at}-{step}"
            old = HalfSaved(directory)
            new = opened(directory, Paused(at, lambda o=old, s=step: o.suspended_at(s)))  # type: ignore[misc]
            seen = new.last_id
            assert old.goes_on() <= (seen == 2), (at, step, "saved and not seen")
            found = new.latest()
            assert found is not None
            assert found.checkpoint_id == seen, (at, step, "what was not seen is there")
            assert save(new, 3, "new"), "the driver that came last goes on"
            outcomes.add((old.is_saved, seen))
    assert {(True, 2), (False, 1)} <= outcomes


def test_of_two_starts_at_once_one_goes_on_wherever_the_first_is_suspended(tmp_path: Path) -> None:
    opened(tmp_path / "whole", Paused()).close()
    steps = operations(tmp_path / "whole", opened)
    winners = set()
    for at in range(steps):
        directory = tmp_path / f"at-{at}"
        opened(directory, Paused()).close()
        others: list[DirectoryCheckpointStore] = []
        first: DirectoryCheckpointStore | None = None
        with contextlib.suppress(CheckpointStoreError):
            first = opened(
                directory,
                Paused(at, lambda o=others, d=directory: o.append(opened(d, Paused()))),  # type: ignore[misc]
            )
        going_on = [one for one in (first, *others) if one is not None and save(one, 1, "any")]
        assert len(going_on) == 1, at
        winners.add(going_on[0] is first)
        assert save(going_on[0], 2, "any")
    assert winners == {True, False}


def test_newest_is_told_by_the_id_and_not_by_any_clock(tmp_path: Path) -> None:
    """Wall clocks go back by years between two checkpoints, and two hosts do not agree."""
    jumps = (2e9, 1e9, 0.0, 1.5e9)
    for store in (
        DirectoryCheckpointStore(tmp_path, job_id=JOB, clock=iter(range(100, 0, -1)).__next__),
        InMemoryCheckpointStore(job_id=JOB),
    ):
        for number, created_at in enumerate(jumps, 1):
            store.save(dataclasses.replace(checkpoint_of(number), created_at=created_at))
        assert store.ids() == [2, 3, 4]
        latest = store.latest()
        assert latest is not None
        assert (latest.checkpoint_id, latest.created_at) == (4, 1.5e9)


DRIVER = """
import signal, sys
from dataclasses import replace
from epochgate.runtime.filesystem import LocalFileSystem
from epochgate.runtime.store import CheckpointStoreLost, DirectoryCheckpointStore
from tests.runtime.store.mediums import JOB, checkpoint_of

directory, step = sys.argv[1:]

class Stopping(LocalFileSystem):
    saves = False
    def _stop(self, name):
        if self.saves and name == step:
            self.saves = False
            signal.raise_signal(signal.SIGSTOP)
    def rename(self, source, destination):
        self._stop("rename")
        super().rename(source, destination)
    def read_bytes(self, path):
        self._stop("read")
        return super().read_bytes(path)
    def open_for_writing(self, path):
        self._stop("create")
        return super().open_for_writing(path)
    def fsync_directory(self, path):
        self._stop("fsync")
        super().fsync_directory(path)

files = Stopping()
store = DirectoryCheckpointStore(directory, job_id=JOB, file_system=files)
store.save(replace(checkpoint_of(1), run_id="old"))
files.saves = True
try:
    for number in (2, 3):
        store.save(replace(checkpoint_of(number), run_id="old"))
        print(number, flush=True)
except CheckpointStoreLost:
    print("lost", flush=True)
"""


@contextlib.contextmanager
def stopped_driver(directory: Path, step: str) -> Iterator[subprocess.Popen[str]]:
    """A real driver that stops itself (SIGSTOP) at a step of its second save."""
    process = subprocess.Popen(
        [sys.executable, "-c", DRIVER, str(directory), step],
        stdout=subprocess.PIPE,
        text=True,
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    try:
        _, status = os.waitpid(process.pid, os.WUNTRACED)
        assert os.WIFSTOPPED(status), status
        yield process
    finally:
        process.kill()
        process.wait(timeout=30)


def answers(process: subprocess.Popen[str]) -> list[str]:
    process.send_signal(signal.SIGCONT)
    told, _ = process.communicate(timeout=60)
    return told.split()


@pytest.mark.parametrize("step", ["create", "read", "rename", "fsync"])
def test_a_process_that_was_stopped_and_replaced_saves_nothing_more(
    tmp_path: Path, step: str
) -> None:
    with stopped_driver(tmp_path, step) as process:
        (tmp_path / "driver.lock").unlink()
        new = DirectoryCheckpointStore(tmp_path, job_id=JOB)
        first = (new.last_id or 0) + 1
        assert first == (3 if step == "fsync" else 2), "what is renamed is seen"
        for number in (first, first + 1):
            new.save(dataclasses.replace(checkpoint_of(number), run_id="new"))
        assert answers(process) == (["2", "lost"] if step == "fsync" else ["lost"])
    new.save(dataclasses.replace(checkpoint_of(first + 2), run_id="new"))
    assert [new.load(number).run_id for number in new.ids()] == ["new"] * 3


def test_while_a_stopped_process_has_the_lock_no_other_starts_and_it_goes_on(
    tmp_path: Path,
) -> None:
    with stopped_driver(tmp_path, "rename") as process:
        with pytest.raises(CheckpointStoreInUse, match=f"process {process.pid}"):
            DirectoryCheckpointStore(tmp_path, job_id=JOB)
        assert answers(process) == ["2", "3"]
    with DirectoryCheckpointStore(tmp_path, job_id=JOB) as store:
        assert store.last_id == 3
