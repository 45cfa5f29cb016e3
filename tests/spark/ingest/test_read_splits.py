"""A complete checkpoint holds splits that have ended before it, and its commit lets files go."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import pytest

from epochgate.runtime import CoordinatorContext
from epochgate.runtime.source import SourceCoordinator
from epochgate.spark.files import FileEnumeration
from epochgate.spark.files.known_segments import KnownSegments
from epochgate.spark.files.split import FileSplit
from epochgate.spark.files.taken import EndedSplit, TakenFile, TakenFiles
from epochgate.spark.ingest.file_enumerator import EnumeratedFileSource, FirstLook
from epochgate.spark.ingest.read_files import ReadFiles
from epochgate.spark.ingest.removing import DueFiles, FilesNotRemoved
from tests.runtime.source.by_hand import HandContext, HandJob
from tests.spark.ingest.simulated import write_source


class ReadingJob(HandJob):
    """The coordinator of the files in `in`, whose records are looked at."""

    def __init__(self, tmp_path: Path, split_bytes_target: int = 1 << 20) -> None:
        self.segments = KnownSegments(tmp_path / "known")

        def fresh() -> FileEnumeration:
            return FileEnumeration(
                tmp_path / "in", segments=self.segments, split_bytes_target=split_bytes_target
            )

        first = fresh()
        first.discover()
        self.splits = list(first.pending)
        self.files = EnumeratedFileSource(
            fresh, FirstLook(0, first), self.segments, is_recorded=True
        )
        self.context = HandContext()
        self.coordinator = SourceCoordinator(cast(CoordinatorContext, self.context), self.files)
        self.coordinator.start()
        for subtask in range(2):
            self.registered(subtask)

    def ends(self, subtask: int, split: FileSplit, after: int, attempt: int = 0) -> None:
        """A reader has asked for a split, which is this one, and has read it to its end."""
        told = [*EndedSplit(split, 10, 1, False).to_list(), after]
        self.say(subtask, "source event", told, attempt=attempt)

    def completes(self, checkpoint_id: int) -> None:
        self.coordinator.notify_checkpoint_complete(checkpoint_id)

    @property
    def records(self) -> list[TakenFile]:
        enumerator: Any = self.files.enumerator
        return list(enumerator._files.taken.records(self.segments))

    def recorded(self) -> list[tuple[str, int]]:
        return [(Path(one.path).name, one.checkpoint_id) for one in self.records]


def test_a_file_is_held_by_the_first_checkpoint_after_the_end_of_its_last_split(
    tmp_path: Path,
) -> None:
    write_source(tmp_path, files=1)
    job = ReadingJob(tmp_path, split_bytes_target=80)
    first, second = job.splits
    for subtask in (0, 1):
        job.say(subtask, "request")
    job.checkpoint(1)
    job.ends(0, first, after=0)
    job.ends(1, second, after=1)
    job.completes(1)
    assert job.recorded() == [], "the second reader has read on behind its snapshot"
    job.checkpoint(2)
    job.completes(2)
    assert job.recorded() == [("000000.csv", 2)]
    assert (job.records[0].rows, job.records[0].rejected) == (20, 2)


def test_what_a_reader_has_told_that_has_failed_since_does_not_count(tmp_path: Path) -> None:
    write_source(tmp_path, files=1)
    job = ReadingJob(tmp_path)
    (split,) = job.splits
    job.say(0, "request")
    job.checkpoint(1)
    job.completes(1)
    job.ends(0, split, after=1)
    job.failed(0, back_to=1)
    job.registered(0, attempt=1)
    job.checkpoint(2)
    job.completes(2)
    assert job.recorded() == [], "it reads the split again"
    job.ends(0, split, after=2, attempt=1)
    job.checkpoint(3)
    job.completes(3)
    assert job.recorded() == [("000000.csv", 3)]


def test_what_a_failed_reader_has_told_does_not_count_with_the_next_split(tmp_path: Path) -> None:
    write_source(tmp_path, files=1)
    job = ReadingJob(tmp_path, split_bytes_target=80)
    first, second = job.splits
    for subtask in (0, 1):
        job.say(subtask, "request")
    job.checkpoint(1)
    job.completes(1)
    job.ends(0, first, after=1)
    job.failed(0, back_to=1)
    job.registered(0, attempt=1)
    job.ends(0, second, after=1, attempt=1)
    job.checkpoint(2)
    job.completes(2)
    assert job.recorded() == [], "the first split is read again"


def test_what_a_reader_tells_again_counts_once(tmp_path: Path) -> None:
    write_source(tmp_path, files=1)
    job = ReadingJob(tmp_path, split_bytes_target=80)
    first, second = job.splits
    for subtask in (0, 1):
        job.say(subtask, "request")
    job.ends(0, first, after=0)
    job.checkpoint(1)
    job.completes(1)
    job.failed(0, back_to=1)
    job.registered(0, attempt=1)
    job.ends(0, first, after=0, attempt=1)
    job.ends(1, second, after=1)
    job.checkpoint(2)
    job.completes(2)
    assert [(one.rows, one.rejected) for one in job.records] == [(20, 2)]


def test_a_missed_notice_is_made_up_for_by_the_next(tmp_path: Path) -> None:
    write_source(tmp_path, files=1)
    job = ReadingJob(tmp_path)
    job.say(0, "request")
    job.ends(0, job.splits[0], after=0)
    job.checkpoint(1)
    job.checkpoint(2)
    job.completes(2)
    assert job.recorded() == [("000000.csv", 2)]


def split(name: str, start: int = 0, end: int = 10) -> FileSplit:
    return FileSplit(name, "csv", "none", 10, 7, start, end)


class Kept:
    """A source of which two readers have read, and the files that may go."""

    def __init__(self, given_up: tuple[range, ...] = (), age_s: float = 0.0) -> None:
        self.time_s = 100.0
        self.gone: list[str] = []
        self.must_fail = False
        removal: Any = self
        self.due = DueFiles(removal, age_s, lambda: self.time_s)
        self.taken = TakenFiles()
        self.files = ReadFiles(self.taken, 2, 0, self.due, given_up, lambda: self.time_s)

    def remove(self, record: TakenFile) -> bool:
        if self.must_fail:
            raise PermissionError(13, "Permission denied", record.path)
        self.gone.append(record.path)
        return True

    def read(self, subtask: int, one: FileSplit, after: int = 0, *, is_part: bool = False) -> None:
        self.files.given_out(one)
        self.files.ended(subtask, [*EndedSplit(one, 5, 0, is_part).to_list(), after])


def test_a_file_goes_with_the_commit_of_the_checkpoint_that_holds_it() -> None:
    kept = Kept()
    kept.read(0, split("a", 0, 5))
    kept.files.completed(1)
    kept.read(1, split("a", 5, 10), after=1)
    kept.files.completed(2)
    kept.files.committed(1)
    assert kept.gone == []
    kept.files.committed(2)
    assert kept.gone == ["a"]
    kept.files.committed(3)
    assert kept.gone == ["a"]


def test_a_commit_lets_only_those_files_go_whose_checkpoint_it_covers() -> None:
    kept = Kept()
    kept.read(0, split("a"))
    kept.read(0, split("b"), after=1)
    kept.files.completed(1)
    assert [record.path for record in kept.taken.records(None)] == ["a"]
    kept.read(0, split("c"), after=2)
    kept.files.completed(2)
    assert [record.path for record in kept.taken.records(None)] == ["a", "b"]
    kept.files.completed(3)
    for checkpoint in (1, 2, 3):
        kept.files.committed(checkpoint)
        assert kept.gone == ["a", "b", "c"][:checkpoint]


def test_a_commit_also_lets_files_of_earlier_checkpoints_go() -> None:
    kept = Kept()
    kept.read(0, split("a"))
    kept.files.completed(1)
    kept.read(0, split("b"), after=1)
    kept.files.completed(2)
    kept.files.committed(5)
    assert kept.gone == ["a", "b"]


def test_a_file_that_was_left_out_in_part_stays() -> None:
    kept = Kept()
    kept.read(0, split("a"), is_part=True)
    kept.files.completed(1)
    kept.files.committed(1)
    assert kept.gone == []


def test_a_file_with_rows_in_a_checkpoint_that_was_given_up_stays() -> None:
    kept = Kept(given_up=(range(2, 3),))
    kept.read(0, split("a"))
    kept.files.completed(1)
    kept.read(0, split("b"), after=1)
    kept.files.completed(2)
    kept.read(0, split("c"), after=2)
    kept.files.completed(3)
    kept.files.committed(3)
    assert kept.gone == ["a", "c"]


def test_a_file_stays_for_its_age() -> None:
    kept = Kept(age_s=60.0)
    kept.read(0, split("a"))
    kept.files.completed(1)
    kept.files.committed(1)
    kept.time_s += 59.0
    kept.files.committed(2)
    assert kept.gone == []
    kept.time_s += 1.0
    kept.files.committed(3)
    assert kept.gone == ["a"]


def test_what_cannot_be_removed_is_tried_again() -> None:
    kept = Kept()
    kept.read(0, split("a"))
    kept.read(1, split("b"))
    kept.files.completed(1)
    kept.must_fail = True
    with pytest.raises(FilesNotRemoved, match=r"'a', and 1 more, .*Permission denied"):
        kept.files.committed(1)
    kept.must_fail = False
    kept.files.committed(1)
    assert kept.gone == ["a", "b"]
