"""The files that a source knows: each with what its content was when it was taken.

Decides whether a file that is found is a known one, when one that is gone from the source is
forgotten, and how the list is kept: what is recent stands in each checkpoint, and all else in
segments, each of which is written once. Recent entries become a segment when they are
`RECENT_MAX`; with it are merged the last segments, once `MERGED` of about one size would stand
there, and none that has `SEGMENT_MAX` entries. So an entry is written a few times at most, however
long the list gets, and a checkpoint names one segment more for each `SEGMENT_MAX` files. Of entries
for one path the last counts; where more than half of them do not count, all is written once more
without these. Lives on the driver, on one thread at a time; sealing writes files.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from epochgate.spark.files.checkpoint_directory import (
    checkpoint_of,
    compacted_target_of,
    earlier_checkpoint_name,
)
from epochgate.spark.files.content import Stamp, is_as_it_was, is_content
from epochgate.spark.files.errors import SourceCompacted
from epochgate.spark.files.known_segments import KnownSegments, Segment

_UNKNOWN: Final[Sequence[Any]] = (None, 1, None, "")
"""Checksum, delivery, when it was missed and ETag of an entry that ends before them."""
RECENT_MAX = 256
"""Entries that each checkpoint may hold of itself; some 20 kB."""
MERGED: Final = 4
SEGMENT_MAX = 65_536


class Changes(NamedTuple):
    """The entries that have changed in one list, for another that was its equal before: the files,
    none for one that was forgotten; and how all of it is kept now.
    """

    files: Mapping[str, KnownFile | None]
    recent: Mapping[str, KnownFile | None]
    segments: Sequence[Segment]
    superseded: Sequence[str]


class KnownFile(NamedTuple):
    """A file as it was last taken, or left out.

    checksum: none if it could not be read, or was taken by a release that made none. delivery: 1,
    and one more each time that the file is taken with other content. gone_at: seconds since 1970
    when it was first missed in the source; none while it is there.
    """

    stamp: Stamp
    checksum: int | None
    delivery: int = 1
    gone_at: float | None = None

    def is_content_of(self, stamp: Stamp, checksum: Callable[[], int]) -> bool:
        """Return whether a file is this one; its `checksum` is asked for if its stamp is another.

        Raises what `checksum` raises.
        """
        if is_as_it_was(self.stamp, stamp) or self.checksum is None:
            return is_as_it_was(self.stamp, stamp)
        return stamp.size_bytes == self.stamp.size_bytes and is_content(checksum(), self.checksum)


class KnownFiles:
    """The known files of a source by path, in the order in which they became known.

    superseded: names of segments that this list does not need any more; a checkpoint may.
    """

    def __init__(self) -> None:
        self._files: dict[str, KnownFile] = {}
        self._recent: dict[str, KnownFile | None] = {}
        """What no segment has: the newest entry of each path, none if it was forgotten."""
        self._segments: list[Segment] = []
        self._changes: dict[str, KnownFile | None] = {}
        self.superseded: list[str] = []

    def __len__(self) -> int:
        return len(self._files)

    def __iter__(self) -> Iterator[str]:
        return iter(self._files)

    def find(self, path: str) -> KnownFile | None:
        """Return what is known of the file at `path`, also if its directory had another name; or
        none.
        """
        known = self._files.get(path)
        if known is None and (known := self._files.get(_earlier_path(path))) is not None:
            self.add(path, known)
        return known

    def add(self, path: str, file: KnownFile) -> None:
        """Know the file from now on, as it is now."""
        self._files[path] = self._recent[path] = self._changes[path] = file

    def require_not_merged(self, path: str, there: Collection[str]) -> None:
        """Raise SourceCompacted for a file in which a compaction has put rows of known ones, which
        are not among `there` any more.
        """
        target = compacted_target_of(path)
        if target is None or path in self._files:
            return
        others = os.path.join(target, "")
        if any(one.startswith(others) and one not in there for one in self._files):
            raise SourceCompacted(target, path)

    def note_gone(self, there: Collection[str], now: float, forget_after_s: float) -> None:
        """Of the files that are not among `there`, note since when, and forget the oldest."""
        for path, file in [item for item in self._files.items() if item[0] not in there]:
            if file.gone_at is None:
                self.add(path, file._replace(gone_at=now))
            elif now - file.gone_at >= forget_after_s:
                del self._files[path]
                self._recent[path] = self._changes[path] = None
        for path in there:
            if (known := self._files.get(path)) is not None and known.gone_at is not None:
                self.add(path, known._replace(gone_at=None))

    def seal(self, segments: KnownSegments) -> None:
        """Make a segment of the recent entries if they are many. Raises what segments raise."""
        if len(self._recent) < RECENT_MAX:
            return
        written = len(self._recent) + sum(segment.count for segment in self._segments)
        merged: Mapping[str, KnownFile | None] = self._files
        kept: list[Segment] = []
        if written <= 2 * (len(self._files) + MERGED * RECENT_MAX):
            merged, kept = self._merged(segments)
        entries = [_to_list(*entry) for entry in merged.items()]
        new = [
            segments.write(entries[first : first + SEGMENT_MAX])
            for first in range(0, len(entries), SEGMENT_MAX)
        ]
        self.superseded += [segment.name for segment in self._segments[len(kept) :]]
        self._segments, self._recent = [*kept, *new], {}

    def _merged(self, segments: KnownSegments) -> tuple[dict[str, KnownFile | None], list[Segment]]:
        """The entries of the next segment, and the segments that stay."""
        merged, kept = dict(self._recent), list(self._segments)
        while len(last := kept[1 - MERGED :]) == MERGED - 1 and all(
            segment.count < min(2 * len(merged), SEGMENT_MAX) for segment in last
        ):
            del kept[1 - MERGED :]
            before: dict[str, KnownFile | None] = {}
            for segment in last:
                before.update(map(_from_list, segments.read(segment)))
            merged = {**before, **merged}
        if not kept:  # nothing older is left that could be meant
            merged = {path: file for path, file in merged.items() if file is not None}
        return merged, kept

    def copy(self) -> KnownFiles:
        """The same files, in a collection of their own, of which nothing has changed yet."""
        other = KnownFiles()
        other._files, other._recent = dict(self._files), dict(self._recent)
        other._segments = list(self._segments)
        return other

    def take_changes(self) -> Changes:
        """Return the entries that have changed since the last call; at the first, since the list
        was copied.
        """
        changes = Changes(self._changes, dict(self._recent), list(self._segments), self.superseded)
        self._changes, self.superseded = {}, []
        return changes

    def adopt(self, changes: Changes) -> None:
        """Become the equal of the list that has changed, from which this one was not different."""
        self._take_in(changes.files.items())
        self._recent, self._segments = dict(changes.recent), list(changes.segments)
        self.superseded += changes.superseded

    def to_list(self) -> list[Any]:
        """Return the list as a checkpoint holds it: the segments, and the recent entries; plain
        values.
        """
        recent = [_to_list(*entry) for entry in self._recent.items()]
        return [[segment.to_list() for segment in self._segments], recent]

    @classmethod
    def from_list(cls, values: Sequence[Any], segments: KnownSegments | None) -> KnownFiles:
        """Inverse of `to_list`. Raises SegmentLost."""
        known = cls()
        known._segments = [Segment(*segment) for segment in values[0]]
        assert segments is not None or not known._segments, "who writes segments can read them"
        for segment in known._segments:
            assert segments is not None
            known._take_in(map(_from_list, segments.read(segment)))
        known._recent = dict(map(_from_list, values[1]))
        known._take_in(known._recent.items())
        return known

    @classmethod
    def from_earlier(cls, values: Iterable[Sequence[Any]]) -> KnownFiles:
        """From the list that earlier releases have kept as a whole."""
        known = cls()
        known._recent = dict(map(_from_list, values))
        known._take_in(known._recent.items())
        return known

    @staticmethod
    def segments_of(values: Sequence[Any]) -> set[str]:
        """The names of the segments that `to_list` refers to."""
        return {name for name, *_ in values[0]}

    def _take_in(self, entries: Iterable[tuple[str, KnownFile | None]]) -> None:
        for path, file in entries:
            if file is None:
                self._files.pop(path, None)
            else:
                self._files[path] = file


def _to_list(path: str, file: KnownFile | None) -> list[Any]:
    if file is None:
        return [path]
    size, modified, etag = file.stamp
    values = [path, size, modified, file.checksum, file.delivery]
    if etag:
        return [*values, file.gone_at, etag]
    return values if file.gone_at is None else [*values, file.gone_at]


def _from_list(values: Sequence[Any]) -> tuple[str, KnownFile | None]:
    if len(values) == 1:
        return values[0], None
    path, size, modified, *rest = values
    checksum, delivery, gone_at, etag = [*rest, *_UNKNOWN[len(rest) :]]
    return path, KnownFile(Stamp(size, modified, etag), checksum, delivery, gone_at)


def _earlier_path(path: str) -> str:
    """Return the path that a file of a target had before its directory got the name that readers
    understand.
    """
    directory, name = os.path.split(path)
    parent, checkpoint_directory = os.path.split(directory)
    checkpoint = checkpoint_of(checkpoint_directory)
    if checkpoint is None:
        return path
    return os.path.join(parent, earlier_checkpoint_name(checkpoint), name)
