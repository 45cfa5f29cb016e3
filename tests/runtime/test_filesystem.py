"""Contract of the two file systems, and that the faulty one fails where and as it was told."""

from __future__ import annotations

import errno
import itertools
import os
from pathlib import Path

import pytest

from epochgate.errors import UsageError
from epochgate.runtime.filesystem import (
    TEMPORARY_SUFFIX,
    WRITEBACK_BYTES,
    FileSystem,
    LocalFileSystem,
    LocksRefused,
)
from epochgate.runtime.testing.faulty_filesystem import Fault, FaultyFileSystem, SimulatedCrash
from tests.runtime.store.mediums import FileSystemWithoutLocks


@pytest.fixture(params=["local", "faulty without a fault"])
def files(request: pytest.FixtureRequest) -> FileSystem:
    local = LocalFileSystem()
    return local if request.param == "local" else FaultyFileSystem(local)


def test_a_durable_write_replaces_the_file_and_leaves_nothing_beside_it(
    files: FileSystem, tmp_path: Path
) -> None:
    files.write_bytes_durably(tmp_path / "a", b"one")
    files.write_bytes_durably(tmp_path / "a", b"two")
    assert files.read_bytes(tmp_path / "a") == b"two"
    assert files.list_directory(tmp_path) == ["a"]
    assert files.size(tmp_path / "a") == 3
    assert files.read_range(tmp_path / "a", 1, 10) == b"wo"


@pytest.mark.skipif(not hasattr(os, "posix_fadvise"), reason="the system takes no advice")
def test_a_large_file_is_whole_and_the_device_begins_with_each_part_of_it_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun: list[tuple[int, int, int]] = []
    monkeypatch.setattr(
        os,
        "posix_fadvise",
        lambda descriptor, offset, length, _: begun.append(
            (offset, length, os.fstat(descriptor).st_size)
        ),
    )
    pieces = [bytes([number]) * (WRITEBACK_BYTES // 3) for number in range(10)]
    file = LocalFileSystem().open_for_writing(tmp_path / "a")
    for piece in pieces:
        assert file.write(piece) == len(piece)
    file.fsync()
    file.close()
    assert (tmp_path / "a").read_bytes() == b"".join(pieces)
    assert len(begun) == 2
    ends = [offset + length for offset, length, _ in begun]
    assert [offset for offset, _, _ in begun] == [0, *ends[:-1]]
    assert [size for _, _, size in begun] == ends, "what is begun with was written before"


def test_a_file_opened_for_writing_is_never_one_that_exists(
    files: FileSystem, tmp_path: Path
) -> None:
    files.open_for_writing(tmp_path / "a").close()
    with pytest.raises(FileExistsError):
        files.open_for_writing(tmp_path / "a")


def test_directories_are_made_with_parents_and_removed_with_content(
    files: FileSystem, tmp_path: Path
) -> None:
    files.make_directory(tmp_path / "x" / "y")
    files.make_directory(tmp_path / "x" / "y")
    files.write_bytes_durably(tmp_path / "x" / "y" / "z", b"")
    files.link(tmp_path / "x" / "y" / "z", tmp_path / "x" / "again")
    assert files.status(tmp_path / "x").is_directory
    assert files.remove_tree(tmp_path / "x")
    assert not files.remove_tree(tmp_path / "x")
    assert not files.remove(tmp_path / "x")


def test_making_a_directory_where_a_file_stands_fails(files: FileSystem, tmp_path: Path) -> None:
    files.write_bytes_durably(tmp_path / "a", b"")
    with pytest.raises(OSError):
        files.make_directory(tmp_path / "a")


def test_a_lock_is_held_once_until_it_is_released(files: FileSystem, tmp_path: Path) -> None:
    first = files.try_lock(tmp_path / "lock")
    assert first is not None
    assert files.try_lock(tmp_path / "lock") is None
    first.release()
    second = files.try_lock(tmp_path / "lock")
    assert second is not None
    second.release()


@pytest.mark.parametrize("number", [errno.ENOLCK, errno.EOPNOTSUPP, errno.ENOSYS])
def test_a_file_system_without_locks_is_refused_and_named(tmp_path: Path, number: int) -> None:
    descriptors = os.listdir("/proc/self/fd")
    with pytest.raises(
        LocksRefused, match=rf"{os.strerror(number)}.*two drivers.*Mount it"
    ) as told:
        FileSystemWithoutLocks(number).try_lock(tmp_path / "lock")
    assert str(tmp_path / "lock") in str(told.value)
    assert isinstance(told.value, UsageError)
    assert os.listdir("/proc/self/fd") == descriptors


def test_a_crash_at_any_step_of_a_durable_write_leaves_the_old_or_the_new_bytes(
    tmp_path: Path,
) -> None:
    seen = set()
    for at in itertools.count():
        struck = False
        for when in ("before", "during", "after"):
            path = tmp_path / f"{at}-{when}" / "a"
            path.parent.mkdir()
            path.write_bytes(b"old")
            faulty = FaultyFileSystem(LocalFileSystem(), Fault(at, "crash", when))
            try:
                faulty.write_bytes_durably(path, b"fresh")
            except SimulatedCrash:
                struck = True
                with pytest.raises(SimulatedCrash):
                    faulty.exists(path)
            seen.add(path.read_bytes())
        if not struck:
            break
    assert at == 5, "create, write, fsync, rename, fsync of the directory"
    assert seen == {b"old", b"fresh"}


def test_a_crash_empties_files_that_were_not_fsynced(tmp_path: Path) -> None:
    faulty = FaultyFileSystem(LocalFileSystem(), Fault(5))
    synced = faulty.open_for_writing(tmp_path / "synced")
    synced.write(b"12345")
    synced.fsync()
    faulty.open_for_writing(tmp_path / "unsynced").write(b"12345")
    with pytest.raises(SimulatedCrash):
        faulty.remove(tmp_path / "synced")
    synced.close()
    assert (tmp_path / "synced").read_bytes() == b"12345"
    assert (tmp_path / "unsynced").read_bytes() == b""


def test_a_full_disk_is_reported_and_the_write_can_be_repeated(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"old")
    for at in range(3):
        faulty = FaultyFileSystem(LocalFileSystem(), Fault(at, "disk_full"))
        with pytest.raises(OSError) as caught:
            faulty.write_bytes_durably(tmp_path / "a", b"fresh")
        assert caught.value.errno == errno.ENOSPC
        assert (tmp_path / "a").read_bytes() == b"old"
        assert not [name for name in faulty.list_directory(tmp_path) if TEMPORARY_SUFFIX in name]
        faulty.free_space()
        faulty.write_bytes_durably(tmp_path / "a", b"fresh")
        assert (tmp_path / "a").read_bytes() == b"fresh"
        (tmp_path / "a").write_bytes(b"old")


def test_one_failing_operation_does_not_stop_the_next(tmp_path: Path) -> None:
    faulty = FaultyFileSystem(LocalFileSystem(), Fault(0, "error"))
    with pytest.raises(OSError) as caught:
        faulty.write_bytes_durably(tmp_path / "a", b"1")
    assert caught.value.errno == errno.EIO
    faulty.write_bytes_durably(tmp_path / "a", b"1")
    assert faulty.has_struck
