"""The enumerator of the file source: gives each reader that asks the next split of the files.

Decides that bad files which readers report are kept by split, and when to look for new files; which
files count is `FileEnumeration`'s to decide, and which checkpoint holds what readers have read that
of the machine `reading`. A look runs elsewhere, on an enumeration of its own;
what it has found is handed over and taken in on the queue's thread, so that a checkpoint never
waits for a look and never holds half of one, and neither takes longer the more is known. Runs on
the job's queue.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from epochgate.errors import EpochgateError
from epochgate.runtime import FatalTaskError
from epochgate.runtime.source import (
    SourceSplit,
    SplitEnumerator,
    SplitEnumeratorContext,
)
from epochgate.runtime.source.split import unpack
from epochgate.spark.files import FileEnumeration, IncompatibleState, SkippedFile
from epochgate.spark.files.found import Found
from epochgate.spark.files.kept import segments_in
from epochgate.spark.files.known_segments import KnownSegments
from epochgate.spark.ingest.bad_files import BadFilesList
from epochgate.spark.ingest.discovering import Discovering, look_once
from epochgate.spark.ingest.file_source import (
    FileSource,
    is_ended,
    to_file_split,
    to_source_split,
)
from epochgate.spark.ingest.hints.hint import Hints
from epochgate.spark.ingest.read_files import ReadFiles
from epochgate.spark.ingest.removing import AfterCommit, DueFiles

KNOWN_FILES: Final = "known-files"
"""The directory of segments, in that of the checkpoints, which refer to them."""
CHECKPOINTS_RETAINED: Final = 3
"""The newest checkpoints that are kept, and may be restored."""


@dataclass(frozen=True)
class FirstLook:
    """The files that were found before the job started: from nothing, or on top of a restored
    checkpoint.

    A reset to `checkpoint_id` or before it begins with a copy of `files`, so that files which are
    newer than the restored checkpoint stay found, and a start reads what is known once.
    """

    checkpoint_id: int
    files: FileEnumeration


@dataclass
class Superseded:
    """Segments that neither the list of known files nor the splits that wait need any more.

    since: the first checkpoint without them; completed: how many of these are complete.
    """

    segments: list[str]
    since: int
    completed: int = 0

    def is_needless(self) -> bool:
        """Return whether every checkpoint that is retained is one without them."""
        return self.completed > CHECKPOINTS_RETAINED


class FileEnumerator(SplitEnumerator):
    """Assigns one split at a time from `files`.

    `follow_every_s`: seconds from the end of one listing of all files to the next; none: there are
    no more, and readers are told so. `hints`: tell of new files between two listings, if there are.
    `segments`: where the enumeration keeps what is known.
    `bad_files`: the list of bad files for scripts, as of the last completed checkpoint.
    `on_skipped`: is told each one that a look has left out, before its plan counts. `reading`:
    hears what readers have read; none where they do not tell.
    """

    def __init__(
        self,
        context: SplitEnumeratorContext,
        files: FileEnumeration,
        follow_every_s: float | None,
        segments: KnownSegments,
        bad_files: BadFilesList | None,
        on_skipped: Callable[[SkippedFile], None] | None = None,
        *,
        reading: ReadFiles | None = None,
        hints: Hints | None = None,
    ) -> None:
        self._context, self._files, self._follow_every_s = context, files, follow_every_s
        self._discovering: Discovering | None = None
        if hints is not None and follow_every_s is not None:
            self._discovering = Discovering(
                context, files.scout(), hints, follow_every_s, self._add_found, self._fail
            )
        self._segments, self._bad_files, self._on_skipped = segments, bad_files, on_skipped
        self._read = reading
        self._left_out: dict[int, list[SkippedFile]] = {}
        self._listing: list[SkippedFile] | None = None
        self._listed: list[SkippedFile] | None = None
        """The newest that was to be written: the same object as long as nothing is added."""
        self._superseded: list[Superseded] = []
        self._ordered: tuple[int, list[SkippedFile]] = (-1, [])
        """All that was left out, by path, and of which of its changes."""
        self._waiting: dict[int, None] = {}
        self._figures = self._counted()
        for name in self._figures:
            context.metrics.gauge(name, partial(self._figure, name))

    def _counted(self) -> dict[str, int | float]:
        waiting = self._files.waiting
        return {
            "files_found": self.files_found,
            "files_waiting": float(waiting.files_waiting),
            "bytes_waiting": waiting.bytes_waiting,
            "files_skipped": len(self._files.skipped),
            "files_unread": self._files.unread.total(),
        }

    def _figure(self, name: str) -> int | float:
        """As of the latest snapshot: what readers were given since, no figure of theirs has."""
        return self._figures[name]

    @property
    def skipped(self) -> list[SkippedFile]:
        """Bad files that were left out, by path; as of now."""
        skipped = self._files.skipped
        if self._ordered[0] != skipped.changes:
            ordered = sorted(skipped, key=lambda one: (one.path, one.split_id))
            self._ordered = skipped.changes, ordered
        return self._ordered[1]

    @property
    def files_found(self) -> int:
        """The number of files that have been enumerated so far."""
        return self._files.files_found

    @property
    def unread(self) -> dict[str, int]:
        """The number of paths of the source that are not read, by reason, as the last look found
        them.
        """
        return dict(self._files.unread)

    def start(self) -> None:
        """Begin to look for new files, if that is wanted."""
        if self._discovering is not None:
            self._discovering.start()
        elif self._follow_every_s is not None:
            looking = self._files.scout()
            self._context.call_async(
                lambda: look_once(looking),
                self._add_found,
                on_error=self._fail,
                delay_s=self._follow_every_s,
                every_s=self._follow_every_s,
            )

    def close(self) -> None:
        """Ask no queue of hints any more."""
        if self._discovering is not None:
            self._discovering.close()

    def _add_found(self, found: Found) -> None:
        if self._on_skipped is not None:
            for skipped in found.skipped:
                self._on_skipped(skipped)
        without_rows = self._files.adopt(found)
        if self._read is not None:
            self._read.keep(without_rows)
        self._assign()
        self._keep_pending()
        self._keep_skipped()
        self._keep_taken()

    def _keep_pending(self) -> None:
        """Let a segment have splits that several looks have found, since readers are slower."""
        begun = self._files.waiting.begin_to_keep()
        if begun is not None:
            (part, values), segments = begun, self._segments
            self._context.call_async(
                lambda: segments.write(values),
                lambda segment: self._files.waiting.keep(part, segment),
                on_error=self._fail,
            )

    def _keep_skipped(self) -> None:
        """Let a segment have what was left out, if that is much."""
        values, segments = self._files.skipped.begin_to_keep(), self._segments
        if values is not None:
            self._context.call_async(
                lambda: segments.write(values), self._files.skipped.keep, on_error=self._fail
            )

    def remove_committed(self, checkpoint_id: int) -> None:
        """Remove files whose rows the target has; on the thread of the work after commits."""
        if self._read is not None:
            self._read.committed(checkpoint_id)

    def _keep_taken(self) -> None:
        """Let a segment have the records of files, if these are many."""
        merge, segments = self._files.taken.begin_to_merge(), self._segments
        if merge is not None:
            self._context.call_async(
                lambda: merge.write(segments), self._files.taken.keep, on_error=self._fail
            )

    def notify_checkpoint_complete(self, checkpoint_id: int) -> None:
        """Record the files that it holds, and remove segments that no checkpoint refers to any more
        which could be restored.
        """
        if self._read is not None:
            self._read.completed(checkpoint_id)
            self._keep_taken()
        for one in self._superseded:
            one.completed += checkpoint_id >= one.since
        names = [name for one in self._superseded if one.is_needless() for name in one.segments]
        self._superseded = [one for one in self._superseded if not one.is_needless()]
        if names:
            segments = self._segments
            self._context.call_async(lambda: segments.remove(names), lambda _: None)
        left_out = self._left_out.pop(checkpoint_id, None)
        self._left_out = {one: of for one, of in self._left_out.items() if one > checkpoint_id}
        if self._bad_files is not None and left_out is not None and left_out is not self._listed:
            self._listed = left_out
            self._list(self._bad_files, left_out)

    def _list(self, bad_files: BadFilesList, skipped: list[SkippedFile]) -> None:
        """Write the list elsewhere; one that comes meanwhile is written next."""
        is_under_way, self._listing = self._listing is not None, skipped

        def written(_: None) -> None:
            newest, self._listing = self._listing, None
            if newest is not None and newest is not skipped:
                self._list(bad_files, newest)

        if not is_under_way:
            self._context.call_async(lambda: bad_files.write(skipped), written, on_error=self._fail)

    def _fail(self, error: BaseException) -> None:
        if isinstance(error, EpochgateError):
            raise FatalTaskError(str(error)) from error
        raise error

    def handle_split_request(self, subtask: int) -> None:
        """Give it the next split, tell it that there are no more, or let it wait."""
        self._waiting[subtask] = None
        self._assign()

    def add_splits_back(self, splits: list[SourceSplit], subtask: int) -> None:
        """Give them out before others, in their order."""
        self._files.add_back(map(to_file_split, splits))
        self._assign()

    def add_reader(self, subtask: int) -> None:
        """Wait until it asks. What the attempt before has asked for and told is void."""
        self._waiting.pop(subtask, None)
        if self._read is not None:
            self._read.rejoined(subtask)

    def handle_source_event(self, subtask: int, event: Any) -> None:
        """A reader has met a bad file, or has read a split to its end."""
        if not is_ended(event):
            self._files.skipped.add(SkippedFile.from_list(event))
            self._keep_skipped()
        elif self._read is not None:
            self._read.ended(subtask, event)

    def snapshot_state(self, checkpoint_id: int) -> Any:
        """The checkpoint's id, the enumeration, and no bad files beside those in it."""
        if superseded := self._files.take_superseded():
            self._superseded.append(Superseded(superseded, checkpoint_id))
        self._left_out[checkpoint_id] = self.skipped
        self._figures = self._counted()
        return [checkpoint_id, self._files.snapshot(), []]

    def _assign(self) -> None:
        there = self._context.registered_readers
        for subtask in [one for one in self._waiting if one in there]:
            split = self._files.next_split()
            if split is not None:
                if self._read is not None:
                    self._read.given_out(split)
                layout = self._files.layout_of(split)
                self._context.assign_split(to_source_split(split, layout), subtask)
            elif self._follow_every_s is None:
                self._context.signal_no_more_splits(subtask)
            else:
                break
            del self._waiting[subtask]


class EnumeratedFileSource(FileSource):
    """The source on the driver; `fresh` makes enumerations that have not looked yet, `hints` the
    queue of hints for an enumerator that knows these files, if there is one.

    `enumerator` is the one that was made last, none before the first.
    """

    def __init__(
        self,
        fresh: Callable[[], FileEnumeration],
        first: FirstLook,
        segments: KnownSegments,
        *,
        follow_every_s: float | None = None,
        bad_files: BadFilesList | None = None,
        on_skipped: Callable[[SkippedFile], None] | None = None,
        hints: Callable[[FileEnumeration], Hints] | None = None,
        is_recorded: bool = False,
        after_commit: AfterCommit | None = None,
    ) -> None:
        super().__init__(batch_rows=1, on_bad_file="fail")
        self._fresh, self._first, self._segments = fresh, first, segments
        self._follow_every_s, self._bad_files = follow_every_s, bad_files
        self._on_skipped, self._is_recorded = on_skipped, is_recorded
        self._after_commit, self._hints = after_commit, hints
        self.enumerator: FileEnumerator | None = None

    def create_enumerator(self, context: SplitEnumeratorContext, state: Any) -> FileEnumerator:
        """Begin from the state, or from the first look if that is not older."""
        checkpoint_id, files, skipped = (0, b"", []) if state is None else state
        if checkpoint_id <= self._first.checkpoint_id:
            enumeration = self._first.files.copy()
        else:
            enumeration = self._fresh()
            enumeration.restore(files)
        for values in skipped:  # an earlier release has kept those of readers by themselves
            enumeration.skipped.add(SkippedFile.from_list(values))
        self.enumerator = FileEnumerator(
            context,
            enumeration,
            self._follow_every_s,
            self._segments,
            self._bad_files,
            self._on_skipped,
            reading=self._reading(enumeration, context.parallelism, checkpoint_id),
            hints=None if self._hints is None else self._hints(enumeration),
        )
        return self.enumerator

    def _reading(self, files: FileEnumeration, subtasks: int, newest: int) -> ReadFiles | None:
        after = self._after_commit
        if not self._is_recorded:
            return None
        if after is None:
            return ReadFiles(files.taken, subtasks, newest)
        due = DueFiles(after.removal, after.age_s)
        reading = ReadFiles(files.taken, subtasks, newest, due, after.given_up)
        reading.keep(files.still_there())
        return reading

    def remove_committed(self, checkpoint_id: int) -> None:
        """Remove files that may go: the target has the rows of a checkpoint. Raises
        FilesNotRemoved.

        Called on the thread of the work after commits; before there is an enumerator, the files
        wait for the next commit.
        """
        enumerator = self.enumerator
        if enumerator is not None:
            enumerator.remove_committed(checkpoint_id)

    def files_of(self, version: int, state: Any) -> Collection[str]:
        """The segments of known files and of splits that wait."""
        return [f"{KNOWN_FILES}/{name}" for name in segments_in(state[1])]


def read_files(state: bytes) -> bytes:
    """The enumeration's snapshot in a checkpoint of the source's coordinator.

    Raises `IncompatibleState` for one that another version wrote.
    """
    content = unpack(state)
    is_own = isinstance(content, list) and len(content) == 4
    version = content[1] if is_own else 1
    if version != FileSource.state_version:
        raise IncompatibleState("file source", version, FileSource.state_version)
    files: bytes = content[2][1]
    return files
