"""The files, or rests of files, that were left out of a source, however many there are.

Decides how the list is kept: what is recent stands in each checkpoint, and all else in segments,
each of which is written once, for good. Of entries for one split the last counts: its reader has
met the bad place again after a failure. Lives on the driver, on one thread at a time; `seal` writes
files.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from epochgate.spark.files.known_segments import KnownSegments, Segment
from epochgate.spark.files.split import SkippedFile

RECENT_MAX = 64
"""Entries that each checkpoint may hold of itself; some 20 kB."""
Key = tuple[str, ...]


class SkippedFiles:
    """Those left out, in the order in which they became known. changes: how often it has changed,
    so that who has read it all knows whether to do so again.
    """

    def __init__(self) -> None:
        self._files: dict[Key, SkippedFile] = {}
        self._recent: dict[Key, SkippedFile] = {}
        """What no segment has."""
        self._being_kept: dict[Key, SkippedFile] = {}
        self._segments: list[Segment] = []
        self.changes = 0

    def __len__(self) -> int:
        return len(self._files)

    def __iter__(self) -> Iterator[SkippedFile]:
        return iter(self._files.values())

    def add(self, one: SkippedFile) -> None:
        """Know it from now on."""
        key = _key(one)
        if self._files.get(key) != one:
            self._files[key] = self._recent[key] = one
            self.changes += 1

    def take_over(self, other: SkippedFiles) -> None:
        """Add those of another, with the segments that have them."""
        self._files |= other._files
        self._recent |= other._recent
        self._segments += other._segments
        self.changes += other.changes

    def seal(self, segments: KnownSegments) -> None:
        """Make a segment of the recent ones if they are many. Raises SegmentNotWritten."""
        begun = self.begin_to_keep()
        if begun is not None:
            self.keep(segments.write(begun))

    def begin_to_keep(self) -> list[Any] | None:
        """Begin a segment. Return what to write into it, if that is much; `keep` says that it is
        done. None if there is nothing to do.
        """
        if self._being_kept or len(self._recent) < RECENT_MAX:
            return None
        self._being_kept = dict(self._recent)
        return [one.to_list() for one in self._being_kept.values()]

    def keep(self, segment: Segment) -> None:
        """The segment has what `begin_to_keep` returned."""
        kept, self._being_kept = self._being_kept, {}
        self._segments.append(segment)
        self._recent = {k: one for k, one in self._recent.items() if kept.get(k) != one}

    def copy(self) -> SkippedFiles:
        """The same, in a collection of their own."""
        other = SkippedFiles()
        other._files, other._recent = dict(self._files), dict(self._recent)
        other._segments = list(self._segments)
        return other

    def to_list(self) -> list[Any]:
        """Return the list as a checkpoint holds it: the segments, and the recent ones; plain
        values.
        """
        recent = [one.to_list() for one in self._recent.values()]
        return [[segment.to_list() for segment in self._segments], recent]

    @classmethod
    def from_list(cls, values: Sequence[Any], segments: KnownSegments | None) -> SkippedFiles:
        """Inverse of `to_list`. Raises SegmentLost."""
        skipped = cls()
        skipped._segments = [Segment(*segment) for segment in values[0]]
        for segment in skipped._segments:
            assert segments is not None, "who writes segments can read them"
            skipped._files.update(_keyed(segments.read(segment)))
        skipped._recent = dict(_keyed(values[1]))
        skipped._files |= skipped._recent
        return skipped

    @staticmethod
    def segments_of(values: Sequence[Any]) -> set[str]:
        """The names of the segments that `to_list` refers to."""
        return {name for name, *_ in values[0]}


def _key(one: SkippedFile) -> Key:
    """A file as a whole may be left out several times, each time with other content."""
    is_whole = one.split_id == one.path
    return (one.split_id, one.position, one.reason) if is_whole else (one.split_id,)


def _keyed(values: Iterable[Sequence[Any]]) -> Iterator[tuple[Key, SkippedFile]]:
    for one in map(SkippedFile.from_list, values):
        yield _key(one), one
