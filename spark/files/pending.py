"""The splits of a source that no reader has yet, in the order in which they are given out.

Decides how they are kept: splits that are few stand in each checkpoint, as do those that readers
gave back; many are kept in a segment, which is written once, and of which a checkpoint knows how
many splits were given out. So a checkpoint does not grow with the files that wait. Lives on the
driver, on one thread at a time; `seal` writes files.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from copy import copy
from fractions import Fraction
from itertools import chain
from typing import Any

from epochgate.spark.files.known import RECENT_MAX, SEGMENT_MAX
from epochgate.spark.files.known_segments import KnownSegments, Segment
from epochgate.spark.files.split import FileSplit


class Part:
    """Some splits in a row, and the segment that has them and those before, if one has."""

    def __init__(self, splits: Iterable[FileSplit] = (), segment: Segment | None = None) -> None:
        self.splits, self.segment = deque(splits), segment
        self.is_being_kept = False

    def copy(self) -> Part:
        """The same, of which nothing is shared that changes."""
        other = copy(self)
        other.splits = deque(self.splits)
        return other

    def to_list(self) -> list[Any]:
        """Plain values: the segment and how many of its splits were given out, or the splits."""
        if self.segment is None:
            return [None, [split.to_list() for split in self.splits]]
        return [self.segment.to_list(), self.segment.count - len(self.splits)]


class PendingSplits:
    """The splits, the next one first.

    superseded: names of segments whose splits were all given out; a checkpoint may need them.
    """

    def __init__(self) -> None:
        self._returned: deque[FileSplit] = deque()
        self._parts: deque[Part] = deque()
        self.files_waiting: int | Fraction = 0
        """How many files the splits are; the share of a file counts as that much of one."""
        self.bytes_waiting = 0
        self.superseded: list[str] = []

    def __iter__(self) -> Iterator[FileSplit]:
        return chain(self._returned, *(part.splits for part in self._parts))

    def append(self, splits: Sequence[FileSplit]) -> None:
        """Add splits that were found."""
        if splits:
            self._open_part().splits.extend(splits)
            self._count(splits)

    def give_back(self, splits: Sequence[FileSplit]) -> None:
        """Add splits that a reader had; they are the next, in their order."""
        self._returned.extendleft(reversed(splits))
        self._count(splits)

    def take_over(self, other: PendingSplits) -> None:
        """Add the splits of another behind these, with the segments that have them."""
        for part in other._parts:
            if part.segment is None:
                self._open_part().splits.extend(part.splits)
            else:
                self._parts.append(part)
            self._count(part.splits)

    def next(self) -> FileSplit | None:
        """Give out the next one; none if there is none."""
        if self._returned:
            split = self._returned.popleft()
        elif self._parts:
            split = self._next_of_parts()
        else:
            return None
        self.files_waiting -= split.share
        self.bytes_waiting -= split.bytes_left(None)
        return split

    def _next_of_parts(self) -> FileSplit:
        part = self._parts[0]
        split = part.splits.popleft()
        if not part.splits:
            self._parts.popleft()
            if part.segment is not None:
                self.superseded.append(part.segment.name)
        return split

    def _open_part(self) -> Part:
        """The last part, if splits can be added to it; or a new one."""
        if not self._parts or self._parts[-1].segment or self._parts[-1].is_being_kept:
            self._parts.append(Part())
        return self._parts[-1]

    def _count(self, splits: Iterable[FileSplit]) -> None:
        for split in splits:
            self.files_waiting += split.share
            self.bytes_waiting += split.bytes_left(None)

    def seal(self, segments: KnownSegments) -> None:
        """Let segments keep what is many. Raises SegmentNotWritten."""
        sealed: deque[Part] = deque()
        for part in self._parts:
            splits = list(part.splits)
            if part.segment is not None or len(splits) < RECENT_MAX:
                sealed.append(part)
                continue
            for first in range(0, len(splits), SEGMENT_MAX):
                some = splits[first : first + SEGMENT_MAX]
                sealed.append(Part(some, segments.write(_to_lists(some))))
        self._parts = sealed

    def begin_to_keep(self) -> tuple[Part, list[Any]] | None:
        """The last part, if it is many and no segment has it, and what to write into its segment;
        `keep` says that this is done. None if there is nothing to do.
        """
        part = self._parts[-1] if self._parts else Part()
        if part.segment is not None or part.is_being_kept or len(part.splits) < RECENT_MAX:
            return None
        part.is_being_kept = True
        return part, _to_lists(part.splits)

    def keep(self, part: Part, segment: Segment) -> None:
        """The segment has the splits that the part had when `begin_to_keep` returned it."""
        part.segment = segment
        if not part.splits:
            self.superseded.append(segment.name)

    def copy(self) -> PendingSplits:
        """The same splits, in a collection of their own."""
        other = PendingSplits()
        other._returned = deque(self._returned)
        other._parts = deque(part.copy() for part in self._parts)
        other.files_waiting, other.bytes_waiting = self.files_waiting, self.bytes_waiting
        return other

    def to_list(self) -> list[Any]:
        """Return the splits as a checkpoint holds them: those that were given back, and the parts;
        plain values.
        """
        return [_to_lists(self._returned), [part.to_list() for part in self._parts]]

    @classmethod
    def from_list(cls, values: Sequence[Any], segments: KnownSegments | None) -> PendingSplits:
        """Inverse of `to_list`. Raises SegmentLost."""
        pending = cls()
        for segment_values, content in values[1]:
            if segment_values is None:
                pending.append(_from_lists(content))
                continue
            assert segments is not None, "who writes segments can read them"
            segment = Segment(*segment_values)
            splits = _from_lists(segments.read(segment)[content:])
            pending._parts.append(Part(splits, segment))
            pending._count(splits)
        pending.give_back(_from_lists(values[0]))
        return pending

    @classmethod
    def from_earlier(cls, values: Iterable[Sequence[Any]]) -> PendingSplits:
        """From the list of all splits that earlier releases have kept."""
        pending = cls()
        pending.append(_from_lists(values))
        return pending

    @staticmethod
    def segments_of(values: Sequence[Any]) -> set[str]:
        """The names of the segments that `to_list` refers to."""
        return {segment[0] for segment, _ in values[1] if segment is not None}


def _to_lists(splits: Iterable[FileSplit]) -> list[Any]:
    return [split.to_list() for split in splits]


def _from_lists(values: Iterable[Sequence[Any]]) -> list[FileSplit]:
    return [FileSplit.from_list(split) for split in values]
