"""A compaction that crashes, fails or is killed anywhere loses and doubles no row."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

import pytest

from epochgate.runtime.exchange import ExchangeRefused, exchange
from epochgate.runtime.filesystem import AnyPath, FileLock, LocalFileSystem, WritableFile
from epochgate.runtime.testing.faulty_filesystem import Fault, FaultyFileSystem, SimulatedCrash
from epochgate.spark.compaction import compact
from epochgate.spark.compaction.errors import CompactionFailed, CompactionOvertaken, LinksRefused
from tests.spark.compaction.targets import claimed, committed, files_in, rows_in, small_files

ROOT = Path(__file__).parents[3]


def copies(tmp_path: Path) -> Iterator[tuple[Path, list[int]]]:
    """The same target again and again."""
    rows = small_files(tmp_path / "original" / "out", 5)
    number = 0
    while True:
        copy = tmp_path / str(number)
        shutil.copytree(tmp_path / "original", copy)
        yield copy / "out", rows
        number += 1


def goes_on(path: Path, rows: list[int]) -> None:
    """The job commits, the next compaction cleans up, and each row is there once."""
    target = claimed(path, "r2", 5)
    committed(target, "r2", 6, {"x": [60, 61]})
    target.release()
    compact(str(path), keep_checkpoints=1)
    assert rows_in(path) == [*rows, 60, 61]
    assert len(files_in(path)) == 3
    beside = path.parent / ".out.epochgate"
    assert files_in(beside) == []
    assert not list(beside.rglob("*temporary*"))


@pytest.mark.slow
def test_a_crash_at_any_step_shows_the_old_files_or_the_merged_one(tmp_path: Path) -> None:
    outcomes: Counter[tuple[str, int]] = Counter()
    for at, (path, rows) in enumerate(copies(tmp_path)):
        # Of a write half is done, and nothing of any other operation.
        files = FaultyFileSystem(LocalFileSystem(), Fault(at, "crash", "during"))
        try:
            compact(str(path), files=files)
        except SimulatedCrash:
            outcomes[files.operations[-1].name, len(files_in(path))] += 1
        if not files.has_struck:
            break
        assert rows_in(path) == rows
        goes_on(path, rows)
    assert {number for _, number in outcomes} == {10, 7}, "before the exchange, and after it"
    assert (outcomes["exchange", 10], outcomes["exchange", 7]) == (2, 0)
    assert outcomes["fsync_directory", 7] >= 2, "the exchange may not be durable yet"
    assert len(outcomes) > 8


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["error", "disk_full"])
def test_an_error_at_any_step_is_told_and_shows_the_old_files_or_the_merged_one(
    tmp_path: Path, kind: Literal["error", "disk_full"]
) -> None:
    failures, told = 0, set()
    for at, (path, rows) in enumerate(copies(tmp_path)):
        files = FaultyFileSystem(LocalFileSystem(), Fault(at, kind, "after"))
        try:
            compact(str(path), files=files)
        except CompactionFailed as error:
            failures += 1
            told.add(str(error).split(": ", 1)[1].split("]")[0])
        if not files.has_struck:
            break
        assert rows_in(path) == rows
        if at % 3 == 0:
            goes_on(path, rows)
    assert failures > 20
    assert told == {"[Errno 5" if kind == "error" else "[Errno 28"}


@pytest.mark.kills
def test_a_process_that_is_killed_at_any_step_loses_and_doubles_nothing(tmp_path: Path) -> None:
    rows = small_files(tmp_path / "original" / "out", 5)
    targets = tmp_path / "targets"
    for number in range(120):
        shutil.copytree(tmp_path / "original" / "out", targets / str(number))
        beside = tmp_path / "original" / ".out.epochgate"
        shutil.copytree(beside, targets / f".{number}.epochgate")
    done = subprocess.run(
        [sys.executable, "-m", "tests.spark.compaction.killed_compaction", str(targets)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    killed = int(done.stdout)
    assert 30 < killed < 120
    seen: Counter[int] = Counter()
    for number in range(killed):
        path = targets / str(number)
        assert rows_in(path) == rows, number
        seen[len(files_in(path))] += 1
        compact(str(path))
        assert rows_in(path) == rows
        assert len(files_in(path)) == 7
    assert set(seen) == {7, 10}


def test_an_exchange_that_is_refused_is_told_before_anything_is_merged(tmp_path: Path) -> None:
    class Refusing(LocalFileSystem):
        def exchange(self, first: AnyPath, second: AnyPath) -> None:
            raise ExchangeRefused(first, "it is an old kernel")

        def open_for_writing(self, path: AnyPath) -> WritableFile:
            raise AssertionError("nothing is merged")

    rows = small_files(tmp_path / "out")
    with pytest.raises(ExchangeRefused, match="ext4, XFS"):
        compact(str(tmp_path / "out"), files=Refusing())
    assert rows_in(tmp_path / "out") == rows
    assert not (tmp_path / ".out.epochgate" / "compacting").exists()


def test_a_file_system_without_links_is_named(tmp_path: Path) -> None:
    class WithoutLinks(LocalFileSystem):
        def link(self, source: AnyPath, destination: AnyPath) -> None:
            raise OSError(1, "Operation not permitted", str(source))

    rows = small_files(tmp_path / "out")
    with pytest.raises(LinksRefused, match="second name"):
        compact(str(tmp_path / "out"), files=WithoutLinks())
    assert rows_in(tmp_path / "out") == rows


def test_a_refusal_of_the_kernel_is_told_from_names_that_are_not_there(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        exchange(tmp_path / "a", tmp_path / "b")
    (tmp_path / "a" / "b").mkdir(parents=True)
    with pytest.raises(ExchangeRefused, match="Invalid argument"):
        exchange(tmp_path / "a", tmp_path / "a" / "b")


class ChangedMeanwhile(LocalFileSystem):
    """Lets the job go back just before the exchange, in the first tries."""

    def __init__(self, path: Path, times: int) -> None:
        self._path, self._times, self._run = path, times, 0

    def wait_for_lock(self, path: AnyPath) -> FileLock:
        if os.path.exists(os.path.join(os.path.dirname(path), "compacting")):
            self._go_back()
        return super().wait_for_lock(path)

    def _go_back(self) -> None:
        """The job goes back behind what is merged, and writes it again."""
        if self._times > 0:
            self._times -= 1
            self._run += 1
            run = f"again{self._run}"
            target = claimed(self._path, run, 4, withdraw_newer=True)
            committed(target, run, 5, {"x": [500 + self._run, 600]})
            target.release()


class GoneMeanwhile(ChangedMeanwhile):
    """Lets it go back once staging has begun: files are gone before they are read."""

    def wait_for_lock(self, path: AnyPath) -> FileLock:
        return LocalFileSystem.wait_for_lock(self, path)

    def exchange(self, first: AnyPath, second: AnyPath) -> None:
        if os.path.basename(first) == "one":  # it is tried out what the file system can
            self._go_back()
        super().exchange(first, second)


CHANGES = pytest.mark.parametrize("changing", [ChangedMeanwhile, GoneMeanwhile])


@CHANGES
def test_a_job_that_goes_back_behind_what_is_staged_makes_the_compaction_plan_again(
    tmp_path: Path, changing: type[ChangedMeanwhile]
) -> None:
    rows = small_files(tmp_path / "out", 5)
    files = changing(tmp_path / "out", 2)
    result = compact(str(tmp_path / "out"), keep_checkpoints=0, files=files)
    assert rows_in(tmp_path / "out") == [*rows[:12], 502, 600]
    assert result.files_after == len(files_in(tmp_path / "out")) == 1


@CHANGES
def test_a_target_that_changes_each_time_is_left_as_it_is(
    tmp_path: Path, changing: type[ChangedMeanwhile]
) -> None:
    rows = small_files(tmp_path / "out", 5)
    files = changing(tmp_path / "out", 4)
    with pytest.raises(CompactionOvertaken):
        compact(str(tmp_path / "out"), keep_checkpoints=0, files=files)
    assert rows_in(tmp_path / "out") == [*rows[:12], 504, 600]
    assert not (tmp_path / ".out.epochgate" / "compacting").exists()
