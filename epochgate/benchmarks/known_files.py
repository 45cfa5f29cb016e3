"""The cost of an ingestion to its driver when it knows many files: checkpoints, looks and starts.

A real job master with the real enumerator, on a virtual clock, over a transport that carries
nothing, so that every look and every save runs on the one thread that is measured. The files are
real, of one record each; that the job has taken them is written into the state that it begins from,
since taking a million would be most of the work.
"""

from __future__ import annotations

import gc
import os
import statistics
import tempfile
import time
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgpack

from epochgate.benchmarks.figures import Table, number
from epochgate.benchmarks.silent import JOB_ID, SilentJob
from epochgate.errors import EpochgateError
from epochgate.runtime.source import SourceProvider
from epochgate.runtime.store import DirectoryCheckpointStore
from epochgate.spark.files import FileEnumeration
from epochgate.spark.files.access import FileAccess
from epochgate.spark.files.known import RECENT_MAX, KnownFile, KnownFiles
from epochgate.spark.files.known_segments import KnownSegments, Segment
from epochgate.spark.files.pending import PendingSplits
from epochgate.spark.ingest.file_enumerator import EnumeratedFileSource, FirstLook
from epochgate.spark.ingest.program import SOURCE

FILES = (1_000, 10_000, 100_000, 1_000_000)
SUBTASKS = 4
CHECKPOINTS = 50
LOOKS = 3
NEW_FILES = 100
"""That each look finds."""
FILES_PER_DIRECTORY = 1_000
FOLLOW_EVERY_S = 1.0
CONTENT = b'{"a":1}\n'
NOTHING_PENDING = PendingSplits().to_list()


class FilesMissing(EpochgateError):
    """The job does not know what it should: nothing of it can be measured."""


class CountingSegments(KnownSegments):
    """Counts what is written."""

    entries = bytes = 0

    def write(self, entries: Collection[Any]) -> Segment:
        """Write, and count entries and bytes."""
        segment = super().write(entries)
        self.entries += segment.count
        self.bytes += os.path.getsize(os.path.join(self.directory, segment.name))
        return segment


@dataclass(frozen=True)
class Cost:
    """The cost of one number of known files; seconds of the driver's processor, but for *_wall_s.

    log_*: for each file, of the list of known files while it grew.
    """

    files: int
    checkpoint_s: float
    checkpoint_wall_s: float
    checkpoint_bytes: int
    log_s: float
    log_entries: float
    log_bytes: float
    taking_in_s: float
    look_s: float
    start_s: float


def path_of(source: Path, number: int) -> Path:
    """Return the path of one of the files."""
    return source / f"{number // FILES_PER_DIRECTORY:05}" / f"part-{number:09}.jsonl"


def write_files(source: Path, numbers: range) -> None:
    """Write files of one record each: one in each directory, to which the others there are links,
    so that writing and removing a million takes the disk no minutes.
    """
    written: Path | None = None
    for one in numbers:
        path = path_of(source, one)
        if written is None or written.parent != path.parent:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(CONTENT)
            written = path
        else:
            os.link(written, path)


class KnowingJob(SilentJob):
    """A job that knows the first `files` files of its source, none of them waiting for a reader."""

    def __init__(self, folder: Path, files: int) -> None:
        self.source, self.files = folder / "source", files
        self.segments = CountingSegments(folder / "known-files")
        write_files(self.source, range(files))
        self.log_s, known = self._grown()
        state = self._state(known)
        gc.collect()
        begun_s = time.thread_time()
        first = self._fresh()
        first.restore(state)
        enumerated = EnumeratedFileSource(
            self._fresh, FirstLook(0, first), self.segments, follow_every_s=FOLLOW_EVERY_S
        )
        store = DirectoryCheckpointStore(folder / "checkpoints", job_id=JOB_ID)
        super().__init__(SUBTASKS, [SourceProvider(SOURCE, enumerated)], store=store)
        self.start_s = time.thread_time() - begun_s
        assert enumerated.enumerator is not None
        self.enumerator = enumerated.enumerator

    def _fresh(self) -> FileEnumeration:
        return FileEnumeration(self.source, follow=True, settle_s=0, segments=self.segments)

    def _grown(self) -> tuple[float, list[Any]]:
        """The processor time of keeping the list of known files as it grows, and the list."""
        known, access, first_path = KnownFiles(), FileAccess(), str(path_of(self.source, 0))
        checksum = access.checksum_of(first_path, access.stamp_of(first_path), "jsonl")
        used_s = 0.0
        for first in range(0, self.files, RECENT_MAX):
            numbers = range(first, min(first + RECENT_MAX, self.files))
            paths = [str(path_of(self.source, one)) for one in numbers]
            taken = [(path, KnownFile(access.stamp_of(path), checksum)) for path in paths]
            begun_s = time.thread_time()
            for path, file in taken:
                known.add(path, file)
            known.seal(self.segments)
            known.take_changes()
            used_s += time.thread_time() - begun_s
        return used_s, known.to_list()

    def _state(self, known: list[Any]) -> bytes:
        """Return what an enumeration keeps that has given out all of these files."""
        one = self._fresh_of(path_of(self.source, 0))
        one.discover()
        version, _, first_path, layouts, _, _, *others = msgpack.unpackb(one.snapshot())
        values = [version, str(self.source), first_path, layouts, known, NOTHING_PENDING, *others]
        state: bytes = msgpack.packb(values)
        return state

    def _fresh_of(self, source: Path) -> FileEnumeration:
        return FileEnumeration(source, settle_s=0)

    def look(self) -> tuple[float, float]:
        """Return the processor time of a look for new files, and of taking in what it has found."""
        write_files(self.source, range(self.files, self.files + NEW_FILES))
        self.files += NEW_FILES
        self.advance(FOLLOW_EVERY_S)
        begun_s = time.thread_time()
        if not self.run_work():
            raise FilesMissing("the job has not looked for new files")
        looked_s = time.thread_time()
        self.drain()
        taken_in_s = time.thread_time()
        if self.enumerator.files_found != self.files:
            raise FilesMissing(
                f"the job knows {self.enumerator.files_found} of {self.files} files after a look"
            )
        return looked_s - begun_s, taken_in_s - looked_s


@contextmanager
def knowing_job(files: int) -> Iterator[KnowingJob]:
    """Make such a job, in a directory of its own."""
    with tempfile.TemporaryDirectory(prefix="epochgate-bench-") as name:
        job = KnowingJob(Path(name), files)
        try:
            yield job
        finally:
            job.master.store.close()


def cost_of(files: int, checkpoints: int = CHECKPOINTS) -> Cost:
    """Measure with this number of known files."""
    with knowing_job(files) as job:
        log = job.log_s / files, job.segments.entries / files, job.segments.bytes / files
        looks = [job.look() for _ in range(LOOKS)]
        job.checkpoint()
        gc.collect()
        used_s, wall_s = time.thread_time(), time.perf_counter()
        for _ in range(checkpoints):
            job.checkpoint()
        used_s, wall_s = time.thread_time() - used_s, time.perf_counter() - wall_s
        return Cost(
            files,
            used_s / checkpoints,
            wall_s / checkpoints,
            job.master.report.checkpoints[-1].stored_bytes,
            *log,
            statistics.median(taking_in_s for _, taking_in_s in looks),
            statistics.median(look_s for look_s, _ in looks),
            job.start_s,
        )


def measure(
    sizes: tuple[int, ...] = FILES,
    checkpoints: int = CHECKPOINTS,
    note: Callable[[str], None] = lambda text: None,
) -> Table:
    """Measure one number of known files after the other."""
    costs = []
    for files in sizes:
        note(f"{files:,} files")
        costs.append(cost_of(files, checkpoints))
    return Table(
        question="known-files",
        title="An ingestion that knows many files (processor time of its driver)",
        header=(
            "known files",
            "checkpoint, ms",
            "on the clock, ms",
            "bytes",
            f"taking in {NEW_FILES} new files, ms",
            "keeping the list, µs a file",
            "written, times a file",
            "bytes a file",
            "look, s",
            "start, s",
        ),
        rows=tuple(_row(cost) for cost in costs),
        notes=(
            f"A checkpoint is everything from its request to its commit, with {SUBTASKS} subtasks "
            f"that keep nothing; means of {checkpoints}, saved in a directory. Taking in is what a "
            "look costs the thread of the protocol; the look itself, which lists the source and "
            f"finds {NEW_FILES} new files, runs beside it (medians of {LOOKS}). A start reads the "
            "list of known files once, before it looks. Keeping the list is all that is written of "
            "it while it grows to this length, 256 files at a time."
        ),
    )


def _row(cost: Cost) -> tuple[str, ...]:
    return (
        f"{cost.files:,}",
        number(cost.checkpoint_s * 1e3),
        number(cost.checkpoint_wall_s * 1e3),
        f"{cost.checkpoint_bytes:,}",
        number(cost.taking_in_s * 1e3),
        number(cost.log_s * 1e6),
        number(cost.log_entries),
        number(cost.log_bytes),
        number(cost.look_s),
        number(cost.start_s),
    )
