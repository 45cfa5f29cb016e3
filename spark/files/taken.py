"""The files whose splits readers were given, until complete checkpoints hold all of them, and the
record of each that one holds.

Decides when a file is read: once each of its splits is held, whose shares are 1 together; a split
that is held twice counts once. Decides how records are kept: the recent ones stand in each
checkpoint, and all others in segments, each written once. Four of about the same size are merged
into one, up to `SEGMENT_MAX` records, so that a checkpoint grows by a name for as many files. The
driver has no more of them in memory. Leaves to the machine `reading` which checkpoint holds a
split. Lives on the driver, on one thread at a time; `merge` reads and writes files, elsewhere.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import Any, Final, NamedTuple

from epochgate.spark.files.content import Stamp
from epochgate.spark.files.known import MERGED, SEGMENT_MAX
from epochgate.spark.files.known_segments import KnownSegments, Segment
from epochgate.spark.files.split import FileSplit

RECENT_MAX = 256
"""Records that each checkpoint may hold of itself; some 30 kB."""
NO_ROWS: Final = 0
"""The checkpoint of a file that has no row: none has to hold it."""


class TakenFile(NamedTuple):
    """A file all of whose splits complete checkpoints hold.

    rows: given to the target, or to the transform before it. rejected: bad rows in the table of
    rejected ones. is_part: whether a reader has left out a bad rest of it. since: the newest
    complete checkpoint when a reader was given a split of it first: its rows are in later ones.
    checkpoint_id: the last of these checkpoints. at: seconds since 1970 when the driver has heard
    of that.
    """

    path: str
    delivery: int
    stamp: Stamp
    rows: int
    rejected: int
    is_part: bool
    since: int
    checkpoint_id: int
    at: float

    def to_list(self) -> list[Any]:
        """A list of plain values, for msgpack."""
        return [self.path, self.delivery, [*self.stamp], *self[3:]]

    @classmethod
    def from_list(cls, values: Sequence[Any]) -> TakenFile:
        """Inverse of `to_list`."""
        path, delivery, stamp, *others = values
        return cls(path, delivery, Stamp(*stamp), *others)


class EndedSplit(NamedTuple):
    """A split that a reader has read to its end, with what it came to; see `TakenFile`."""

    split: FileSplit
    rows: int
    rejected: int
    is_part: bool

    def to_list(self) -> list[Any]:
        """A list of plain values, for msgpack."""
        return [self.split.to_list(), *self[1:]]

    @classmethod
    def from_list(cls, values: Sequence[Any]) -> EndedSplit:
        """Inverse of `to_list`."""
        split, *others = values
        return cls(FileSplit.from_list(split), *others)


class _OpenFile(NamedTuple):
    """The part of a file that is held: the beginnings of its splits, their share, their figures."""

    starts: tuple[int, ...] = ()
    share: int | Fraction = 0
    rows: int = 0
    rejected: int = 0
    is_part: bool = False
    since: int = 0

    def to_list(self) -> list[Any]:
        if not self.starts:
            return [self.since]
        return [[*self.starts], self.share.numerator, self.share.denominator, *self[2:]]

    @classmethod
    def from_list(cls, values: Sequence[Any]) -> _OpenFile:
        if len(values) == 1:
            return cls(since=values[0])
        starts, numerator, denominator, *others = values
        return cls(tuple(starts), Fraction(numerator, denominator), *others)

    def plus(self, ended: EndedSplit) -> _OpenFile:
        return _OpenFile(
            (*self.starts, ended.split.start),
            self.share + ended.split.share,
            self.rows + ended.rows,
            self.rejected + ended.rejected,
            self.is_part or ended.is_part,
            self.since,
        )


class Merge(NamedTuple):
    """A segment that is to be written: the records, behind those of `segments`, whose place it
    takes.
    """

    segments: Sequence[Segment]
    records: Sequence[TakenFile]

    def write(self, segments: KnownSegments) -> Segment:
        """Write it; blocks. Raises SegmentLost and SegmentNotWritten."""
        before = [values for segment in self.segments for values in segments.read(segment)]
        return segments.write([*before, *(record.to_list() for record in self.records)])


class TakenFiles:
    """The files that were taken. superseded: names of segments that are merged; a checkpoint may
    need them.
    """

    def __init__(self) -> None:
        self._open: dict[tuple[str, int], _OpenFile] = {}
        self._recent: list[TakenFile] = []
        self._segments: list[Segment] = []
        self._merge: Merge | None = None
        self.superseded: list[str] = []

    @property
    def open(self) -> dict[tuple[str, int], int]:
        """The files that readers have splits of, by path and delivery: the rows that are held."""
        return {key: file.rows for key, file in self._open.items()}

    def give_out(self, split: FileSplit, newest: int) -> None:
        """A reader is given the split, perhaps again; `newest` checkpoint is complete."""
        key = split.path, split.delivery
        if key not in self._open:
            self._open[key] = _OpenFile(since=newest)

    def hold(self, ended: EndedSplit, checkpoint_id: int, at: float) -> TakenFile | None:
        """A complete checkpoint holds the split. Return the file's record, if it is the last."""
        split = ended.split
        key = split.path, split.delivery
        held = self._open.get(key)
        if held is None or split.start in held.starts:
            return None  # a reader that went back has said it again
        held = self._open[key] = held.plus(ended)
        if held.share < 1:
            return None
        del self._open[key]
        stamp = Stamp(split.size_bytes, split.modified_ns, split.etag)
        part, since = held.is_part, held.since
        record = TakenFile(*key, stamp, held.rows, held.rejected, part, since, checkpoint_id, at)
        self._recent.append(record)
        return record

    def note_without_rows(self, path: str, delivery: int, stamp: Stamp, at: float) -> None:
        """A file was found that has no split."""
        self._recent.append(TakenFile(path, delivery, stamp, 0, 0, False, 0, NO_ROWS, at))

    def take_over(self, other: TakenFiles) -> list[TakenFile]:
        """Add the records of another, which has no more, and return them."""
        self._recent += other._recent
        return other._recent

    def begin_to_merge(self) -> Merge | None:
        """Return what to write, if that is much; `keep` says that it is done. None if there is
        nothing to do.
        """
        if self._merge is not None or len(self._recent) < RECENT_MAX:
            return None
        kept, count = list(self._segments), len(self._recent)
        while len(last := kept[1 - MERGED :]) == MERGED - 1 and all(
            segment.count < min(2 * count, SEGMENT_MAX) for segment in last
        ):
            del kept[1 - MERGED :]
            count += sum(segment.count for segment in last)
        self._merge = Merge(self._segments[len(kept) :], list(self._recent))
        return self._merge

    def keep(self, segment: Segment) -> None:
        """The segment has what `begin_to_merge` returned."""
        assert self._merge is not None, "it is written once it was begun"
        merged, self._merge = self._merge, None
        self.superseded += [one.name for one in merged.segments]
        self._segments[len(self._segments) - len(merged.segments) :] = [segment]
        del self._recent[: len(merged.records)]

    def records(self, segments: KnownSegments | None) -> Iterator[TakenFile]:
        """Read all records, the oldest first. Raises SegmentLost."""
        for segment in self._segments:
            assert segments is not None, "who writes segments can read them"
            yield from map(TakenFile.from_list, segments.read(segment))
        yield from self._recent

    def copy(self) -> TakenFiles:
        """The same files, in a collection of their own."""
        other = TakenFiles()
        other._open, other._recent = dict(self._open), list(self._recent)
        other._segments = list(self._segments)
        return other

    def to_list(self) -> list[Any]:
        """Return them as a checkpoint holds them: the segments, the recent records, and what is
        open; plain values.
        """
        return [
            [segment.to_list() for segment in self._segments],
            [record.to_list() for record in self._recent],
            [[*key, file.to_list()] for key, file in self._open.items()],
        ]

    @classmethod
    def from_list(cls, values: Sequence[Any]) -> TakenFiles:
        """Inverse of `to_list`."""
        segments, recent, opened = values
        taken = cls()
        taken._segments = [Segment(*segment) for segment in segments]
        taken._recent = [TakenFile.from_list(record) for record in recent]
        taken._open = {
            (path, delivery): _OpenFile.from_list(file) for path, delivery, file in opened
        }
        return taken

    @staticmethod
    def segments_of(values: Sequence[Any]) -> set[str]:
        """The names of the segments that `to_list` refers to."""
        return {name for name, *_ in values[0]}
