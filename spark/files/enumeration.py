"""Finds the files of a source, fixes their common layout and cuts them into splits.

Decides: which files count, in which order, as how many splits, and what the checkpoint holds.
Leaves to others: which subtask gets which split (the coordinator), and reading (`reader`).
Lives on the driver; `discover` reads directories, footers and samples, so call it off the protocol
thread, on a `scout` whose findings the original can `adopt` there. Not thread-safe.

Which files count: see `finding`; empty files do not. When a file counts as complete, if it is
followed: see `settling`.

When a known file is another: see `content`. With other content, found here or by the reader, it is
an error ("fail"); or what was read of it stays, and the rest of it is left out and recorded, and
its new content is left out as well ("skip") or is all taken as that of another file ("new").

How files are cut: see `cutting`. How what is known, waits, was taken or left out is kept: see
`known`, `pending`, `taken` and `skipped`.
"""

from __future__ import annotations

import copy
import math
import os
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import BinaryIO, Unpack

import msgpack

from epochgate.errors import UsageError
from epochgate.runtime.objects.errors import ObjectMissing, ObjectReplaced
from epochgate.spark.files.access import FileAccess
from epochgate.spark.files.agreement import UNFIT, Layouts
from epochgate.spark.files.asked import Reading, ReadingOptions
from epochgate.spark.files.compression import Compression
from epochgate.spark.files.content import OnChangedFile, Stamp, describe_stamp, is_as_it_was
from epochgate.spark.files.errors import (
    BadFile,
    FileChanged,
    SourceEmpty,
    SourceUnreadable,
)
from epochgate.spark.files.finding import EMPTY, OTHER_TIME, absolute_source, is_utf_8, told
from epochgate.spark.files.found import Found
from epochgate.spark.files.inspection import (
    checksum_of_file,
    is_cut_off,
    one_format_of,
    shares_of,
    stamp_if_there,
    take_badly_named,
    unreadable,
)
from epochgate.spark.files.kept import LAYOUTS_SINCE, STATE_VERSION, Kept, kept_in, unpacked
from epochgate.spark.files.known import KnownFile, KnownFiles
from epochgate.spark.files.known_segments import KnownSegments
from epochgate.spark.files.layout import format_of
from epochgate.spark.files.modified import ANY_TIME, ModifiedBetween
from epochgate.spark.files.pending import PendingSplits
from epochgate.spark.files.reader import REPLACED_MAX, OnBadFile
from epochgate.spark.files.sampling import Sample
from epochgate.spark.files.settling import Settling, usual_settle_s
from epochgate.spark.files.skipped import SkippedFiles
from epochgate.spark.files.split import TYPED, FileSplit, Format, SkippedFile, SourceLayout
from epochgate.spark.files.taken import TakenFile, TakenFiles

SPLIT_BYTES_TARGET = 64 << 20


class FileEnumeration:
    """The files of one source, and the splits of them that no reader has yet.

    source: a directory, a glob pattern (`**` for any depth) or a file. format: none to go by the
    extension. split_bytes_target: bytes of a file to a split. follow: whether more files may come;
    only then may there be none. settle_s: seconds, see the module; by default 5 if following, else
    0. modified: the files that are taken by their times. on_changed_file: see the module; none for
    the same as on_bad_file. segments: where most of what is known is kept; none to keep all in the
    snapshot. forget_after_s: how long a file must be gone from the source to be forgotten. now:
    seconds since 1970. access: to the files. reading: see `ReadingOptions`.
    Raises `UsageError` for splits of no byte.
    """

    def __init__(
        self,
        source: str | os.PathLike[str],
        *,
        format: Format | None = None,
        split_bytes_target: int = SPLIT_BYTES_TARGET,
        follow: bool = False,
        settle_s: float | None = None,
        modified: ModifiedBetween = ANY_TIME,
        on_bad_file: OnBadFile = "fail",
        on_changed_file: OnChangedFile | None = None,
        segments: KnownSegments | None = None,
        forget_after_s: float = math.inf,
        now: Callable[[], float] = time.time,
        access: FileAccess | None = None,
        **reading: Unpack[ReadingOptions],
    ) -> None:
        if split_bytes_target < 1:
            raise UsageError(f"split_bytes_target={split_bytes_target} must be at least 1 byte")
        self.source = absolute_source(os.fspath(source))
        self._access = access or FileAccess()
        self._format = format
        self._split_bytes_target = split_bytes_target
        self._follow = follow
        if settle_s is None:
            settle_s = usual_settle_s(self.source, follow)
        self._settling, self._modified = Settling(settle_s, now), modified
        self._on_bad_file = on_bad_file
        self._on_changed_file: OnChangedFile = on_changed_file or on_bad_file
        self._segments, self._forget_after_s, self._now = segments, forget_after_s, now

        self._layouts = Layouts(self.source, Reading.of(reading))
        self._known = KnownFiles()
        self._pending = PendingSplits()
        self.taken = TakenFiles()
        """The files whose splits were given to readers, as far as these have told."""
        self.skipped = SkippedFiles()
        """Files left out because they are bad, here or by readers, if bad files are skipped."""
        self.unread: Counter[str] = Counter()
        """How many paths the last look found that are not read, by reason (`finding.ADVICE`)."""

    @property
    def layout(self) -> SourceLayout | None:
        """The layout for readers of new files; none until one file with a row is found."""
        return self._layouts.newest

    def layout_of(self, split: FileSplit) -> SourceLayout:
        """Return the layout that the reader of this split needs to know."""
        return self._layouts[split.layout]

    @property
    def files_found(self) -> int:
        """The number of paths that have been enumerated or skipped."""
        return len(self._known)

    @property
    def seen(self) -> Sequence[str]:
        """The paths that have been enumerated or skipped."""
        return tuple(self._known)

    @property
    def pending(self) -> Sequence[FileSplit]:
        """The splits that no reader has, in the order in which they will be given out."""
        return tuple(self._pending)

    @property
    def waiting(self) -> PendingSplits:
        """The same, as they are kept."""
        return self._pending

    @property
    def settling(self) -> Sequence[str]:
        """Files that were found and may still be being written."""
        return tuple(self._settling.files)

    @property
    def settle_s(self) -> float:
        """The seconds for which a file must not have changed to be taken."""
        return self._settling.settle_s

    def next_split(self) -> FileSplit | None:
        """Give out the next split; none if there is none now."""
        return self._pending.next()

    def add_back(self, splits: Iterable[FileSplit]) -> None:
        """Take splits back that were given out; they are the next to be given out again."""
        self._pending.give_back(list(splits))

    def discover(self) -> list[FileSplit]:
        """Look for new files, and return their splits, which are pending from now on.

        Raises what says how the source is wrong: `SourceMissing`, `SourceEmpty`,
        `SourceUnreadable`, `UnknownFormat`, `MixedFormats`, `TypeUnreadable`, and, unless bad files
        are skipped, `BadFile` and those in `UNFIT`; `FileChanged`; and `SourceCompacted`. Files
        before the one that an error names are enumerated, and the next call begins with that file.
        `ObjectStoreError` if a store does not answer.
        """
        listing = self._access.find(self.source, may_be_none=bool(self._known) or self._follow)
        paths = listing.files
        for bad in take_badly_named(paths):
            self._leave_out(bad.path, bad)
        self.unread = Counter(listing.unread.values())
        self._layouts.look_at(paths)
        if self._layouts.newest is None:
            are_complete = self._settling.settle_s == 0
            self._layouts.sample = Sample(paths, self._opened, are_complete=are_complete)
        new = self._take_new(paths, self.unread)
        if not self._follow and not self._known and not self._settling.files:
            raise SourceEmpty(self.source, told(self.unread))
        if self._forget_after_s < math.inf:
            self._known.note_gone(set(paths), self._now(), self._forget_after_s)
        return new

    def look_at(self, named: Mapping[str, Stamp | None]) -> list[FileSplit]:
        """Look at these paths alone, or at all files while no layout is known, and return the
        splits of those that are new files of the source. Raises what `discover` raises:
        SourceUnreadable, UnknownFormat, MixedFormats, FileChanged and so on.
        """
        if self._layouts.newest is None:
            return self.discover()
        paths = self._access.named(self.source, named)
        for path in named.keys() - paths.keys():
            self._settling.end(path)
        return self._take_new(paths, Counter())

    def _take_new(self, paths: Mapping[str, Stamp | None], unread: Counter[str]) -> list[FileSplit]:
        new: list[FileSplit] = []
        for path, listed in paths.items():
            stamp = listed or self._stamp(path)
            if stamp is not None and stamp.size_bytes == 0:
                unread[EMPTY] += 1
                continue
            if stamp is None:
                self._settling.end(path)
                continue
            known = self._known.find(path)
            if known is not None and is_as_it_was(known.stamp, stamp):
                continue
            if known is None and not self._modified.has(stamp):
                unread[OTHER_TIME] += 1
                continue
            if self._settling.is_over(path, stamp):
                self._known.require_not_merged(path, paths)
                new.extend(self._take_as_it_is(path, stamp))
        return new

    def _opened(self, path: str, listed: Stamp | None) -> BinaryIO:
        """Raises OSError, and ValueError for a file that is not one of text to be taken now."""
        file_format, compression = format_of(path, self._format)
        stamp = listed or self._access.stamp_of(path)
        is_taken = self._modified.has(stamp) and self._settling.is_over(path, stamp)
        if file_format is None or file_format in TYPED or not is_taken:
            raise ValueError("it is not taken now")
        return self._access.open(path, stamp, compression, file_format, self._layouts.dialect)

    def pass_over(self) -> None:
        """Know what is there and complete, so that only what comes later is taken. Raises what
        `discover` raises of the source.
        """
        for path, listed in self._access.find(self.source, may_be_none=True).files.items():
            stamp = (listed or self._stamp(path)) if is_utf_8(path) else None
            if stamp is not None and stamp.size_bytes and self._settling.is_over(path, stamp):
                self._known.add(path, KnownFile(stamp, None))

    def seal(self) -> None:
        """Let the segments keep what is known, pending and skipped, if it is much; writes files.

        Raises SegmentNotWritten, or SegmentLost.
        """
        if self._segments is not None:
            for kept in (self._known, self._pending, self.skipped):
                kept.seal(self._segments)

    def take_superseded(self) -> list[str]:
        """The segments that became needless since the last call; an earlier snapshot needs them."""
        superseded: list[str] = []
        for kept in (self._known, self._pending, self.taken):
            superseded += kept.superseded
            kept.superseded = []
        return superseded

    def _take_as_it_is(self, path: str, stamp: Stamp | None) -> list[FileSplit]:
        """Take the object even if it is replaced meanwhile, as it is then; none if it is gone."""
        for _ in range(REPLACED_MAX):
            if stamp is None or stamp.size_bytes == 0:
                return []
            try:
                return self._take(path, stamp)
            except (ObjectReplaced, ObjectMissing):
                stamp = self._stamp(path)
        raise SourceUnreadable(path, "it is replaced again and again while it is looked at")

    def _take(self, path: str, stamp: Stamp) -> list[FileSplit]:
        """Know the file, and return its splits; none if it was known, or is not yet complete."""
        file_format, compression = one_format_of(path, self._format, self._layouts)
        known = self._known.find(path)
        if known is not None and self._is_left_out(path, stamp, known, file_format):
            return []
        delivery = 1 if known is None else known.delivery + 1
        layouts = self._layouts.copy()
        checksum: int | None = None
        splits: list[FileSplit] = []
        is_bad = False
        try:
            checksum = checksum_of_file(self._access, path, stamp, file_format)
            if self._is_being_written(path, stamp, file_format, compression):
                return []
            layout, ranges = shares_of(
                self._access,
                self._layouts,
                self._split_bytes_target,
                path,
                stamp,
                file_format,
                compression,
            )
            size, modified_ns, etag = stamp
            is_cut = file_format in TYPED and len(ranges) > 1
            groups = ranges[-1][1] if is_cut else 0
            splits += [
                FileSplit(
                    *(path, file_format, compression, size, modified_ns, *share),
                    *(checksum, delivery, layout, etag, groups),
                )
                for share in ranges
            ]
        except (BadFile, *UNFIT) as bad:
            self._layouts = layouts
            if not self._settling.is_over(path, stamp, looks_torn=True):
                return []
            self._leave_out(path, bad)
            is_bad = True
        if self._settling.settle_s > 0 and not self._is_still(path, stamp):
            self._layouts = layouts
            return []
        if not splits and not is_bad:
            self.taken.note_without_rows(path, delivery, stamp, self._now())
        self._known.add(path, KnownFile(stamp, checksum, delivery))
        self._settling.end(path)
        self._pending.append(splits)
        return splits

    def copy(self) -> FileEnumeration:
        """An enumeration that knows the same, of which nothing is shared that changes."""
        other = copy.copy(self)
        other._layouts = self._layouts.copy()
        other._known, other._settling = self._known.copy(), self._settling.copy()
        other._pending, other.skipped = self._pending.copy(), self.skipped.copy()
        other.taken = self.taken.copy()
        return other

    def scout(self) -> FileEnumeration:
        """A copy that looks for what is new elsewhere; pending and skipped is what it finds."""
        other = self.copy()
        other._begin_to_find()
        return other

    def _begin_to_find(self) -> None:
        self._pending, self.skipped, self.taken = PendingSplits(), SkippedFiles(), TakenFiles()

    def take_found(self) -> Found:
        """Hand over what was found since the last call, or since the scout was made."""
        found = Found(
            self._layouts.copy(),
            self._known.take_changes(),
            self._pending,
            self.skipped,
            self.taken,
            self._settling.copy(),
            self.unread,
        )
        self._begin_to_find()
        return found

    def adopt(self, found: Found) -> list[TakenFile]:
        """Take over what the scout of this enumeration has found, each time that it has. Return the
        files without rows.
        """
        self._layouts, self._settling = found.layouts, found.settling
        self.unread = found.unread
        self._known.adopt(found.known)
        self.skipped.take_over(found.skipped)
        self._pending.take_over(found.pending)
        return self.taken.take_over(found.taken)

    def still_there(self) -> Iterator[TakenFile]:
        """The records of files that were there at the last look. Raises SegmentLost."""
        for record in self.taken.records(self._segments):
            known = self._known.find(record.path)
            if known is not None and known.gone_at is None and known.delivery == record.delivery:
                yield record

    def snapshot(self) -> bytes:
        """The layout, files seen, splits pending and files skipped, as versioned msgpack."""
        values = [
            STATE_VERSION,
            self.source,
            self._layouts.first_path,
            self._layouts.to_list(),
            *Kept(self._known, self._pending, self.skipped, self.taken).to_lists(),
        ]
        packed: bytes = msgpack.packb(values)
        return packed

    def restore(self, data: bytes) -> None:
        """Continue from what `snapshot` returned.

        Raises `IncompatibleState` for another version, and `UsageError` for another source or other
        columns.
        """
        version, first_path, layouts, *lists = unpacked(data, self.source)
        if version < LAYOUTS_SINCE:
            layouts = Layouts.from_earlier(layouts)
        self._layouts.restore(first_path, layouts)
        kept = kept_in(version, lists, self._segments)
        self._known, self._pending, self.skipped, self.taken = kept
        self._settling.files.clear()

    def _leave_out(self, path: str, bad: BadFile | UsageError) -> None:
        """Record a bad file; raises it, unless bad files are skipped."""
        if self._on_bad_file == "fail":
            raise bad
        position = bad.position if isinstance(bad, BadFile) else "the beginning"
        reason = bad.cause if isinstance(bad, BadFile) else str(bad)
        self.skipped.add(SkippedFile(path, path, position, reason))

    def _stamp(self, path: str) -> Stamp | None:
        return stamp_if_there(self._access, path)

    def _is_still(self, path: str, stamp: Stamp) -> bool:
        now = self._stamp(path)
        return now is not None and is_as_it_was(stamp, now)

    def _is_left_out(self, path: str, stamp: Stamp, known: KnownFile, file_format: Format) -> bool:
        """True if nothing of a known file is to be read: it has not changed, or is skipped."""
        try:
            is_same = known.is_content_of(
                stamp, lambda: self._access.checksum_of(path, stamp, file_format)
            )
        except OSError as error:
            raise unreadable(path, error) from error
        checksum = known.checksum
        if not is_same:
            if self._on_changed_file == "new":
                return False
            changed = FileChanged(path, describe_stamp(known.stamp), describe_stamp(stamp))
            if self._on_changed_file == "fail":
                raise changed
            self.skipped.add(SkippedFile(path, path, f"byte {known.stamp[0]}", str(changed)))
            checksum = checksum_of_file(self._access, path, stamp, file_format)
        self._known.add(path, KnownFile(stamp, checksum, known.delivery))
        self._settling.end(path)
        return True

    def _is_being_written(
        self, path: str, stamp: Stamp, file_format: Format, compression: Compression
    ) -> bool:
        return (
            self._settling.settle_s > 0
            and is_cut_off(self._access, path, stamp, file_format, compression)
            and not self._settling.is_over(path, stamp, looks_torn=True)
        )
