"""Removal of a file where another one may be taken for it: replaced while it is moved, of the same
name, size and time in the archive, a link, or below a link.
"""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from obstore.store import MemoryStore

from epochgate.runtime.objects.client import ObstoreObjects
from epochgate.runtime.objects.errors import ObjectStoreUnusable
from epochgate.spark.files.content import Stamp
from epochgate.spark.files.taken import TakenFile
from epochgate.spark.ingest.options import IngestOptions
from epochgate.spark.ingest.removal_options import ArchiveInSource, removal_of
from epochgate.spark.ingest.removing import ArchiveTaken, DueFiles, Removal
from tests.spark.ingest.test_removing import record_of


@pytest.fixture
def elsewhere(tmp_path: Path) -> Iterator[Path]:
    """A directory of another file system."""
    for folder in ("/dev/shm", "/tmp", "/var/tmp"):
        if os.access(folder, os.W_OK) and os.stat(folder).st_dev != tmp_path.stat().st_dev:
            other = Path(folder) / f"epochgate-{os.getpid()}"
            other.mkdir()
            yield other
            shutil.rmtree(other)
            return
    pytest.skip("there is no second file system here")


def test_a_file_is_moved_to_another_file_system(tmp_path: Path, elsewhere: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("x\n1\n")
    record = record_of(path)
    assert Removal(str(tmp_path), str(elsewhere)).remove(record)
    assert os.listdir(elsewhere) == ["a.csv"]
    assert (elsewhere / "a.csv").stat().st_mtime_ns == record.stamp.modified_ns
    path.write_text("x\n1\n")
    os.utime(path, ns=(1, record.stamp.modified_ns))
    assert Removal(str(tmp_path), str(elsewhere)).remove(record), "a kill came before the end"
    assert not path.exists()


def test_a_file_that_is_replaced_while_it_is_copied_stays(
    tmp_path: Path, elsewhere: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a.csv"
    path.write_text("x\n1\n")
    record, copy = record_of(path), shutil.copy2

    def replaced(one: str, other: str) -> None:
        copy(one, other)
        path.write_text("x\n1\n2\n")

    monkeypatch.setattr(shutil, "copy2", replaced)
    assert not Removal(str(tmp_path), str(elsewhere)).remove(record)
    assert path.read_text() == "x\n1\n2\n", "its new rows were never read"
    assert os.listdir(elsewhere) == []


@pytest.mark.parametrize("is_elsewhere", [False, True])
def test_another_file_of_the_same_size_and_time_in_the_archive_stays(
    tmp_path: Path, elsewhere: Path, is_elsewhere: bool
) -> None:
    path = tmp_path / "in" / "a.csv"
    path.parent.mkdir()
    archive = elsewhere if is_elsewhere else tmp_path / "archive"
    archive.mkdir(exist_ok=True)
    for one, text in ((path, "x\n2\n"), (archive / "a.csv", "x\n1\n")):
        one.write_text(text)
        os.utime(one, ns=(1, 1_700_000_000_000_000_000))
    with pytest.raises(ArchiveTaken, match=r"archive.*a\.csv"):
        Removal(str(path.parent), str(archive)).remove(record_of(path))
    assert ((archive / "a.csv").read_text(), path.read_text()) == ("x\n1\n", "x\n2\n")


def test_another_object_of_the_same_size_in_the_archive_stays() -> None:
    objects = ObstoreObjects("s3://b", MemoryStore())
    objects.put("in/a.csv", b"x\n2\n")
    objects.put("done/a.csv", b"x\n1\n")
    with pytest.raises(ArchiveTaken):
        Removal("s3://b/in", "s3://b/done", lambda _: objects).remove(record_at(objects))
    assert objects.get("done/a.csv") == b"x\n1\n"
    assert objects.get("in/a.csv") == b"x\n2\n"


def record_at(objects: ObstoreObjects) -> TakenFile:
    status = objects.status("in/a.csv")
    stamp = Stamp(status.size_bytes, status.modified_ns, status.etag)
    return TakenFile("s3://b/in/a.csv", 1, stamp, 1, 0, False, 0, 1, 1.0)


def test_an_object_that_is_replaced_while_it_is_copied_stays() -> None:
    class Replaced(ObstoreObjects):
        def copy(self, key: str, to: str) -> None:
            super().copy(key, to)
            self.put(key, b"x\n1\n2\n")

    objects = Replaced("s3://b", MemoryStore())
    objects.put("in/a.csv", b"x\n1\n")
    removal = Removal("s3://b/in", "s3://b/done", lambda _: objects)
    assert not removal.remove(record_at(objects))
    assert [one.key for one in objects.find("")] == ["in/a.csv"]


@pytest.mark.parametrize("left", ["a copy", "a link"])
def test_a_file_that_is_in_the_archive_already_goes(tmp_path: Path, left: str) -> None:
    """As a kill before the last step leaves it, on a file system with coarser times."""
    path, moved = tmp_path / "in" / "a.csv", tmp_path / "archive" / "a.csv"
    for one in (path, moved):
        one.parent.mkdir()
    path.write_text("x\n1\n")
    if left == "a link":
        os.link(path, moved)
    else:
        moved.write_text("x\n1\n")
        os.utime(moved, (1, 1))
    assert Removal(str(path.parent), str(moved.parent)).remove(record_of(path))
    assert not path.exists()
    assert moved.read_text() == "x\n1\n"


def test_a_link_is_archived_as_what_it_leads_to(tmp_path: Path) -> None:
    source, archive = tmp_path / "in", tmp_path / "archive" / "deep"
    source.mkdir()
    (tmp_path / "data.csv").write_text("x\n1\n")
    path = source / "a.csv"
    path.symlink_to("../data.csv")
    assert Removal(str(source), str(archive)).remove(record_of(path))
    assert not os.path.lexists(path)
    assert (archive / "a.csv").read_text() == "x\n1\n"
    assert (tmp_path / "data.csv").exists()


def test_files_are_moved_to_another_mount_of_the_same_file_system(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A rename is refused there, although both have the number of one device."""
    path = tmp_path / "in" / "a.csv"
    path.parent.mkdir()
    path.write_text("x\n1\n")
    record = record_of(path)

    def refused(one: str, other: str) -> None:
        raise OSError(errno.EXDEV, os.strerror(errno.EXDEV), one, None, other)

    monkeypatch.setattr(os, "rename", refused)
    assert Removal(str(path.parent), str(tmp_path / "archive")).remove(record)
    assert (tmp_path / "archive" / "a.csv").read_text() == "x\n1\n"
    assert not path.exists()


@pytest.mark.parametrize("linked", ["source", "archive"])
def test_an_archive_that_is_read_again_by_a_link_is_refused(tmp_path: Path, linked: str) -> None:
    place = tmp_path / "data"
    (place / "done").mkdir(parents=True)
    source, archive = place, place / "done"
    link = tmp_path / "link"
    if linked == "source":
        link.symlink_to(source)
        source = link
    else:
        link.symlink_to(archive)
        archive = link
    asked = IngestOptions(str(source), str(tmp_path / "out"), committed_files=f"move:{archive}")
    with pytest.raises(ArchiveInSource):
        removal_of(asked)


@pytest.mark.parametrize(
    ("source", "to", "is_read"),
    [
        ("s3://b/v1.2", "s3://b/v1.2/done", True),
        ("s3://b/v1.2", "s3://b/v1.2/_done", False),
        ("s3://b/v1.2/*.csv", "s3://b/v1.2/done", False),
        ("s3://b/in/a.csv", "s3://b/in", True),
        ("s3://b/in/a.csv", "s3://b/done", False),
        ("s3://b/in", "s3://b", False),
    ],
)
def test_an_archive_in_a_folder_with_a_point_in_its_name_is_refused(
    source: str, to: str, is_read: bool
) -> None:
    asked = IngestOptions(source, "/t/out", committed_files=f"move:{to}")
    if is_read:
        with pytest.raises(ArchiveInSource):
            removal_of(asked)
    else:
        assert removal_of(asked) is not None


@pytest.mark.parametrize("source", ["s3://b/in/a.csv", "s3://b/in/a", "s3://b/in", "s3://b/*/a*"])
def test_an_object_has_its_name_in_the_archive(source: str) -> None:
    removal = removal_of(IngestOptions(source, "/t/out", committed_files="move:s3://b/done"))
    assert removal is not None
    name = "a" if source.endswith("/a") else "a.csv"
    below = "in/" if "*" in source else ""
    assert removal.place_of(f"s3://b/in/{name}") == f"s3://b/done/{below}{name}"


def test_a_file_is_never_moved_to_itself(tmp_path: Path) -> None:
    """By a second mount, or names of which the case does not count; here by a link."""
    path = tmp_path / "in" / "a.csv"
    path.parent.mkdir()
    path.write_text("x\n1\n")
    (tmp_path / "other").symlink_to(path.parent)
    with pytest.raises(ArchiveTaken, match="itself"):
        Removal(str(path.parent), str(tmp_path / "other")).remove(record_of(path))
    assert path.exists()
    objects = ObstoreObjects("s3://b", MemoryStore())
    objects.put("in/a.csv", b"x\n1\n")
    with pytest.raises(ArchiveTaken, match="itself"):
        Removal("s3://b/in", "s3://b/in", lambda _: objects).remove(record_at(objects))
    assert objects.get("in/a.csv")


def test_files_of_a_bucket_that_cannot_be_opened_are_not_forgotten() -> None:
    objects = ObstoreObjects("s3://b", MemoryStore())
    objects.put("in/a.csv", b"x\n1\n")
    record, reason = record_at(objects), "no credentials"

    def unusable(url: str) -> ObstoreObjects:
        raise ObjectStoreUnusable(url, reason)

    failed = DueFiles(Removal("s3://b/in", None, unusable)).remove([record])
    assert [one for one, _ in failed] == [record]
    assert reason in failed[0][1]
