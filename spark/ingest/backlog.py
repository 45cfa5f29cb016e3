"""The backlog of an ingestion: what it has found and not committed, as of its newest checkpoint.

Decides what counts, and how rows and time are estimated: by the files that were committed up to
`WINDOW_S` before that checkpoint, in the same run. Reads alone, beside the job or after its end.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from epochgate.runtime.observing.status import checkpoints_in, status_of
from epochgate.runtime.store import CompletedCheckpoint
from epochgate.spark.files.kept import Kept
from epochgate.spark.ingest.file_source import to_file_split, to_position
from epochgate.spark.ingest.found_files import FoundFile, found_files, kept_at, readers_in

WINDOW_S: Final = 600.0
OPEN: Final = ("waiting", "reading")
"""The states of files that are not committed, and will be."""


@dataclass(frozen=True)
class Backlog:
    """The files that were found and are not committed, as of checkpoint `checkpoint_id`, which was
    complete `age_s` seconds ago.

    state: of the job, as `epochgate status` has it. bytes_left: of the files, without what readers
    have read of those that they are at. rows: estimated by the rows of committed files, none
    without such. oldest_path, oldest_s: the file of these that was modified first, and how long
    ago; none if there are no files. bytes_per_s: of files that were committed lately; none if there
    were none. seconds_left: that the rest takes at this rate.
    """

    job_id: str
    state: str
    checkpoint_id: int
    age_s: float
    files_waiting: int
    files_reading: int
    bytes_left: int
    rows: int | None
    oldest_path: str | None
    oldest_s: float | None
    bytes_per_s: float | None
    seconds_left: float | None


def backlog_at(place: str, *, now: float | None = None) -> Backlog:
    """The backlog of the ingestion at a place that `checkpoints_in` knows. Raises what `files_at`
    raises.
    """
    now = time.time() if now is None else now
    checkpoint, kept, segments = kept_at(place)
    files = found_files(checkpoint, kept, segments)
    status = status_of(checkpoints_in(place), now=now)
    started_at = 0.0 if status.run is None else status.run.started_at
    left = bytes_left(checkpoint, kept)
    rate = _bytes_per_s(files, checkpoint.created_at, started_at)
    oldest = min(
        (one for one in files if one.state in OPEN and one.modified_ns is not None),
        key=lambda one: one.modified_ns or 0,
        default=None,
    )
    seconds = None if not rate else left / rate
    return Backlog(
        job_id=checkpoint.job_id,
        state=status.state,
        checkpoint_id=checkpoint.checkpoint_id,
        age_s=max(0.0, now - checkpoint.created_at),
        files_waiting=sum(one.state == "waiting" for one in files),
        files_reading=sum(one.state == "reading" for one in files),
        bytes_left=left,
        rows=_rows(files, left),
        oldest_path=None if oldest is None else oldest.path,
        oldest_s=None if oldest is None else max(0.0, now - (oldest.modified_ns or 0) / 1e9),
        bytes_per_s=rate,
        seconds_left=seconds if left else 0.0,
    )


def bytes_left(checkpoint: CompletedCheckpoint, kept: Kept) -> int:
    """Bytes of files that no reader has read."""
    reading = sum(
        to_file_split(split).bytes_left(to_position(position))
        for reader in readers_in(checkpoint)
        for split, position in reader.splits
    )
    return kept.pending.bytes_waiting + reading


def _rows(files: Sequence[FoundFile], left: int) -> int | None:
    """By the bytes of a row in the files that are committed."""
    if not left:
        return 0
    told = [one for one in files if one.state == "committed" and one.size_bytes and one.rows]
    size = sum(one.size_bytes or 0 for one in told)
    rows = sum(one.rows or 0 for one in told)
    return round(left * rows / size) if size else None


def _bytes_per_s(files: Sequence[FoundFile], until: float, started_at: float) -> float | None:
    since = max(until - WINDOW_S, started_at)
    size = sum(
        one.size_bytes or 0
        for one in files
        if one.committed_at is not None and one.committed_at > since
    )
    return size / (until - since) if size and until > since else None
