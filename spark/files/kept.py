"""The lists that a snapshot of an enumeration keeps in part in segments, whichever version has made
it.

Decides which version of a snapshot keeps what, and how. Runs on the driver, and where checkpoints
are looked at.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

import msgpack

from epochgate.errors import UsageError
from epochgate.spark.files.errors import IncompatibleState
from epochgate.spark.files.known import KnownFiles
from epochgate.spark.files.known_segments import KnownSegments
from epochgate.spark.files.pending import PendingSplits
from epochgate.spark.files.skipped import SkippedFiles
from epochgate.spark.files.taken import TakenFiles

STATE_VERSION: Final = 7
LAYOUTS_SINCE: Final = 4
_SEGMENTS_SINCE, _PARTS_SINCE, _SKIPPED_SINCE = 3, 5, 6


class Kept(NamedTuple):
    """The lists of an enumeration; see there."""

    known: KnownFiles
    pending: PendingSplits
    skipped: SkippedFiles
    taken: TakenFiles

    def to_lists(self) -> list[Any]:
        """Return each as plain values."""
        return [kept.to_list() for kept in self]


def unpacked(data: bytes, expected: str) -> list[Any]:
    """The values of a snapshot of this source: its version, and all behind the source. Raises
    IncompatibleState for another version, and UsageError for another source.
    """
    version, source, *values = msgpack.unpackb(data)
    if version not in range(1, STATE_VERSION + 1):
        raise IncompatibleState("enumeration of files", version, STATE_VERSION)
    if source != expected:
        raise UsageError(
            f"the checkpoint is of source {source!r}, this job reads {expected!r}. Give the same "
            "source, or start from the beginning with a new target and a new --checkpoint-dir "
            "(checkpoint_directory in Python)."
        )
    return [version, *values]


def kept_in(version: int, values: Sequence[Any], segments: KnownSegments | None) -> Kept:
    """Inverse of `to_lists`, of whichever version. Raises SegmentLost."""
    known, pending, skipped, *taken = values
    return Kept(
        KnownFiles.from_earlier(known)
        if version < _SEGMENTS_SINCE
        else KnownFiles.from_list(known, segments),
        PendingSplits.from_earlier(pending)
        if version < _PARTS_SINCE
        else PendingSplits.from_list(pending, segments),
        SkippedFiles.from_list([[], skipped] if version < _SKIPPED_SINCE else skipped, segments),
        TakenFiles.from_list(*taken) if taken else TakenFiles(),
    )


def segments_in(snapshot: bytes) -> set[str]:
    """The names of the segments that a snapshot of an enumeration refers to."""
    version, _, _, _, known, pending, skipped, *taken = msgpack.unpackb(snapshot)
    names = KnownFiles.segments_of(known) if version >= _SEGMENTS_SINCE else set()
    names |= PendingSplits.segments_of(pending) if version >= _PARTS_SINCE else set()
    names |= SkippedFiles.segments_of(skipped) if version >= _SKIPPED_SINCE else set()
    return names.union(*map(TakenFiles.segments_of, taken))
