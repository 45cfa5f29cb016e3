"""The enumerator of files gives each split to one reader, and finds new files beside the job."""

from __future__ import annotations

from pathlib import Path
from typing import cast

import msgpack
import pytest

from epochgate.runtime import CoordinatorContext, FatalTaskError
from epochgate.runtime.source import SourceCoordinator
from epochgate.runtime.source.split import pack, unpack
from epochgate.spark.files import FileEnumeration, IncompatibleState, SkippedFile
from epochgate.spark.files.known_segments import KnownSegments
from epochgate.spark.ingest.file_enumerator import EnumeratedFileSource, FirstLook, read_files
from tests.runtime.source.by_hand import HandContext, HandGateway, HandJob
from tests.spark.ingest.simulated import make_older, write_source


class FileJob(HandJob):
    """The coordinator of the files in `in`, and the calls that a job makes of it."""

    def __init__(self, tmp_path: Path, follow_every_s: float | None = None) -> None:
        segments = KnownSegments(tmp_path / "known")

        def fresh() -> FileEnumeration:
            is_followed = follow_every_s is not None
            return FileEnumeration(tmp_path / "in", follow=is_followed, segments=segments)

        first = fresh()
        first.discover()
        self.files = EnumeratedFileSource(
            fresh,
            FirstLook(0, first),
            segments,
            follow_every_s=follow_every_s,
        )
        self.context = HandContext()
        self.coordinator = SourceCoordinator(cast(CoordinatorContext, self.context), self.files)
        self.coordinator.start()

    def request(self, subtask: int, attempt: int = 0) -> None:
        self.say(subtask, "request", attempt=attempt)


def files(gateway: HandGateway) -> list[str]:
    return [Path(split.partition("#")[0]).name for split in gateway.splits]


def test_a_reset_takes_back_what_the_reader_got_after_the_checkpoint(tmp_path: Path) -> None:
    write_source(tmp_path, files=3)
    job = FileJob(tmp_path)
    zero, one = job.registered(0), job.registered(1)
    job.request(0)
    job.checkpoint(1)
    job.coordinator.notify_checkpoint_complete(1)
    job.request(0)
    assert files(zero) == ["000000.csv", "000010.csv"]
    job.failed(0, back_to=1)
    for _ in range(3):
        job.request(1)
    assert files(one) == ["000010.csv", "000020.csv"]
    assert one.told == [["no more"]]


def test_the_figures_are_those_of_the_last_snapshot(tmp_path: Path) -> None:
    write_source(tmp_path, files=3)
    job = FileJob(tmp_path)
    job.registered(0)
    size = (tmp_path / "in" / "000000.csv").stat().st_size

    def told() -> dict[str, int | float]:
        return {name: told for name, told in job.context.metrics.items() if "splits" not in name}

    before = told()
    assert (before["files_found"], before["files_waiting"]) == (3, 3)
    assert before["bytes_waiting"] >= 3 * size
    job.request(0)
    assert told() == before
    state = job.checkpoint(1)
    assert (told()["files_found"], told()["files_waiting"]) == (3, 2)
    assert told()["bytes_waiting"] == before["bytes_waiting"] - size
    job.request(0)
    job.coordinator.reset_to_checkpoint(1, state)
    assert told()["files_waiting"] == 2


def test_a_reader_that_waits_gets_what_another_gives_back(tmp_path: Path) -> None:
    write_source(tmp_path, files=1)
    job = FileJob(tmp_path, follow_every_s=1.0)
    zero, one = job.registered(0), job.registered(1)
    job.request(0)
    job.request(1)
    assert (files(zero), files(one)) == (["000000.csv"], [])
    job.failed(0, back_to=0)
    assert files(one) == ["000000.csv"]


def test_a_checkpoint_during_a_look_for_files_waits_for_nothing_and_holds_no_half_of_it(
    tmp_path: Path,
) -> None:
    write_source(tmp_path, files=1)
    job = FileJob(tmp_path, follow_every_s=1.0)
    job.context.tick()
    (work, then), job.context.work = job.context.work[0], []
    write_source(tmp_path, files=1, first=10)
    found = work()
    before = job.checkpoint(1)
    then(found, None)
    after = job.checkpoint(2)
    names = [
        [Path(values[0]).name for values in msgpack.unpackb(read_files(state))[4][1]]
        for state in (before, after)
    ]
    assert names == [["000000.csv"], ["000000.csv", "000010.csv"]]


def test_what_was_assigned_during_a_look_is_not_found_again(tmp_path: Path) -> None:
    write_source(tmp_path, files=2)
    job = FileJob(tmp_path, follow_every_s=1.0)
    gateway = job.registered(0)
    for first in (100, 200):
        job.context.tick()
        job.request(0)
        write_source(tmp_path, files=1, first=first)
        job.context.finish_work()
    for _ in range(4):
        job.request(0)
    assert files(gateway) == ["000000.csv", "000010.csv", "000100.csv", "000200.csv"]


def test_files_that_wait_for_slow_readers_are_kept_beside_the_checkpoint(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("epochgate.spark.files.pending.RECENT_MAX", 4)
    write_source(tmp_path, files=1)
    job = FileJob(tmp_path, follow_every_s=1.0)
    for first in range(100, 700, 100):
        write_source(tmp_path, files=2, first=first)
        job.context.tick()
        job.context.finish_work()
    job.context.finish_work()
    state = job.checkpoint(1)
    _, parts = msgpack.unpackb(read_files(state))[5]
    assert [None if segment is None else segment[1] for segment, _ in parts] == [5, 4, 4]
    gateway = job.registered(0)
    for _ in range(6):
        job.request(0)
    job.checkpoint(2)
    job.coordinator.reset_to_checkpoint(2, state)
    again = job.registered(1)
    for _ in range(13):
        job.request(1)
    assert files(again)[:6] == files(gateway)
    assert len(set(files(again))) == 13


def test_a_look_that_ends_after_a_reset_of_everything_changes_nothing(tmp_path: Path) -> None:
    write_source(tmp_path, files=1)
    job = FileJob(tmp_path, follow_every_s=1.0)
    job.context.tick()
    job.coordinator.reset_to_checkpoint(0, None)
    write_source(tmp_path, files=1, first=10)
    job.context.finish_work()
    assert job.files.enumerator is not None
    assert job.files.enumerator.files_found == 1
    job.context.tick()
    job.context.finish_work()
    assert job.files.enumerator.files_found == 2


def test_a_file_that_does_not_fit_ends_a_followed_job_for_good(tmp_path: Path) -> None:
    write_source(tmp_path, files=1)
    job = FileJob(tmp_path, follow_every_s=1.0)
    (tmp_path / "in" / "other.csv").write_text("y\n1\n")
    make_older(tmp_path / "in" / "other.csv")
    job.context.tick()
    with pytest.raises(FatalTaskError, match="schema changes"):
        job.context.finish_work()


def test_bad_files_that_readers_report_are_kept_once(tmp_path: Path) -> None:
    write_source(tmp_path, files=1)
    job = FileJob(tmp_path)
    job.registered(0)
    bad = SkippedFile("a.csv", "a.csv#bytes=0-9", "byte 3", "not a number")
    for _ in range(2):
        job.say(0, "source event", bad.to_list())
    state = job.checkpoint(1)
    job.coordinator.reset_to_checkpoint(1, state)
    assert job.files.enumerator is not None
    assert job.files.enumerator.skipped == [bad]


def test_bad_files_that_an_earlier_release_kept_by_themselves_stay(tmp_path: Path) -> None:
    write_source(tmp_path, files=1)
    job = FileJob(tmp_path)
    bad = SkippedFile("a.csv", "a.csv#bytes=0-9", "byte 3", "not a number")
    kind, version, (checkpoint_id, files, _), *rest = unpack(job.checkpoint(1))
    earlier = [kind, version, [checkpoint_id, files, [bad.to_list()]], *rest]
    job.coordinator.reset_to_checkpoint(1, pack(earlier, "the state of a source"))
    assert job.files.enumerator is not None
    assert job.files.enumerator.skipped == [bad]


def test_many_bad_files_are_kept_beside_the_checkpoint(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("epochgate.spark.files.skipped.RECENT_MAX", 4)
    write_source(tmp_path, files=1)
    job = FileJob(tmp_path)
    job.registered(0)
    bad = [SkippedFile(f"{n}.csv", f"{n}.csv#bytes=0-9", "byte 3", "bad") for n in range(6)]
    for one in bad:
        job.say(0, "source event", one.to_list())
    job.context.finish_work()
    state = job.checkpoint(1)
    segments, recent = msgpack.unpackb(read_files(state))[6]
    assert ([count for _, count, _ in segments], len(recent)) == ([4], 2)
    job.coordinator.reset_to_checkpoint(1, state)
    assert job.files.enumerator is not None
    assert job.files.enumerator.skipped == bad


def test_a_checkpoint_of_the_format_before_is_refused(tmp_path: Path) -> None:
    write_source(tmp_path, files=1)
    first = FileEnumeration(tmp_path / "in")
    first.discover()
    before: bytes = msgpack.packb([1, first.snapshot(), []])
    with pytest.raises(IncompatibleState, match="Continue with the release that wrote it, or"):
        read_files(before)
