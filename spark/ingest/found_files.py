"""The files that an ingestion has found, each with its state, as of a complete checkpoint.

Decides how the state of a file follows from what the checkpoint holds: of the coordinator, whose
part may be older, and of the readers, who tell in their states what they have read since. Reads
alone, beside the job or after its end, on any thread.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Final, Literal, get_args

import msgpack

from epochgate.errors import UsageError
from epochgate.runtime.objects.client import is_url, open_url
from epochgate.runtime.objects.files import ObjectFiles
from epochgate.runtime.observing.status import checkpoints_in
from epochgate.runtime.pipeline.program import SOURCE
from epochgate.runtime.source.reader_state import ReaderState
from epochgate.runtime.store import CompletedCheckpoint
from epochgate.runtime.store.checkpoint import GIVEN_UP, missing_of
from epochgate.runtime.store.errors import CheckpointNotFound
from epochgate.runtime.store.inspection import SAVEPOINT_NAME, stored_checkpoints
from epochgate.spark.files.content import Stamp
from epochgate.spark.files.kept import Kept, kept_in
from epochgate.spark.files.known_segments import KnownSegments, SegmentLost
from epochgate.spark.files.taken import EndedSplit, TakenFile, TakenFiles
from epochgate.spark.ingest.file_enumerator import KNOWN_FILES, read_files
from epochgate.spark.ingest.file_source import is_ended, to_file_split, to_position

State = Literal["waiting", "reading", "committed", "left-out", "passed-over", "unrecorded"]
STATES: Final[tuple[State, ...]] = get_args(State)
_TRIES: Final = 3
"""A job removes checkpoints and segments while they are read; each try begins with the newest."""
Key = tuple[str, int]


class NothingFound(UsageError):
    """No checkpoint there holds files of an ingestion."""


@dataclass(frozen=True)
class FoundFile:
    """A file of the source, or one of several contents that its path has had.

    state: "waiting" for a reader; "reading"; "committed" with the checkpoint `checkpoint_id`, which
    was complete `committed_at` seconds since 1970 and holds the last of its rows;
    "left-out", all of it or a bad rest, for `reason`; "passed-over" (--new-only); "unrecorded", if
    a release took it that kept no records. delivery: 1, and one more for each other content.
    size_bytes, modified_ns: when it was taken. rows: given to the target, or to the transform
    before it, up to the last complete checkpoint; rows_rejected: the bad ones in
    the table of rejected rows; none where they were not counted. checkpoint_id: none also for a
    file without rows.
    """

    path: str
    delivery: int
    state: State
    size_bytes: int | None
    modified_ns: int | None
    rows: int | None = None
    rows_rejected: int | None = None
    checkpoint_id: int | None = None
    committed_at: float | None = None
    reason: str | None = None


def files_at(place: str) -> list[FoundFile]:
    """The files of the ingestion at a place that `checkpoints_in` knows, by path and delivery.

    Raises what `kept_at` raises.
    """
    for one_try in range(1, _TRIES + 1):
        checkpoint, kept, segments = kept_at(place)
        try:
            return found_files(checkpoint, kept, segments)
        except SegmentLost:
            if one_try == _TRIES:
                raise
    raise AssertionError("each try has returned or raised")


def kept_at(place: str) -> tuple[CompletedCheckpoint, Kept, KnownSegments]:
    """The newest complete checkpoint there, and the lists of files as of it: `Kept.pending` counts
    the files that wait.

    Raises NothingFound, SegmentLost, and what `checkpoints_in`, `stored_checkpoints` and `load`
    raise.
    """
    is_savepoint = os.path.exists(os.path.join(place, SAVEPOINT_NAME))
    where = place if is_savepoint else checkpoints_in(place)
    for one_try in range(1, _TRIES + 1):
        found = [one for one in stored_checkpoints(where) if not one.is_aside]
        if not found:
            raise NothingFound(
                f"{where} holds no checkpoint: its job has completed none so far, or keeps them "
                "elsewhere (--checkpoint-dir); then name that place"
            )
        try:
            checkpoint = found[-1].load()
            state = checkpoint.coordinators.get(SOURCE)
            if state is None:
                raise NothingFound(
                    f"{where} has the checkpoints of job {checkpoint.job_id!r}, which is no "
                    "ingestion of files"
                )
            segments = segments_beside(where)
            version, _, _, _, *lists = msgpack.unpackb(read_files(state))
            kept = kept_in(version, lists, segments)
        except (CheckpointNotFound, SegmentLost):
            if one_try == _TRIES:
                raise
            continue
        hold_told(kept.taken, checkpoint)
        return checkpoint, kept, segments
    raise AssertionError("each try has returned or raised")


def segments_beside(where: str) -> KnownSegments:
    """The segments beside the checkpoints in a directory or at a URL."""
    if is_url(where):
        return KnownSegments(KNOWN_FILES, ObjectFiles(open_url(where)))
    return KnownSegments(os.path.join(where, KNOWN_FILES))


def hold_told(taken: TakenFiles, checkpoint: CompletedCheckpoint) -> list[TakenFile]:
    """Count what the readers tell in their states: this checkpoint holds it. Return the records of
    the files that it completes.
    """
    told = [
        EndedSplit.from_list(values)
        for reader in readers_in(checkpoint)
        for values in reader.own or []
        if is_ended(values)
    ]
    held = [taken.hold(one, checkpoint.checkpoint_id, checkpoint.created_at) for one in told]
    return [record for record in held if record is not None]


def given_up_in(checkpoint: CompletedCheckpoint | None) -> list[range]:
    """The checkpoints whose rows the target may lack by command."""
    if checkpoint is None:
        return []
    gone = [range(one, one + 1) for one, *_ in checkpoint.properties.get(GIVEN_UP, [])]
    return gone + [range(after + 1, upto + 1) for after, upto, *_ in missing_of(checkpoint)]


def readers_in(checkpoint: CompletedCheckpoint) -> Iterator[ReaderState]:
    """The states of the readers in a checkpoint, by subtask."""
    for subtask, states in sorted(checkpoint.subtasks.items()):
        if SOURCE in states:
            yield ReaderState.from_bytes(states[SOURCE], f"reader {subtask} of {SOURCE!r}")


def found_files(
    checkpoint: CompletedCheckpoint, kept: Kept, segments: KnownSegments
) -> list[FoundFile]:
    """The files of a checkpoint, whose lists `kept_at` has read. Raises SegmentLost."""
    found: dict[Key, FoundFile] = {}
    whole, parts = _left_out(kept)
    for record in kept.taken.records(segments):
        found[record.path, record.delivery] = _recorded(record, parts)
    for file in _open_files(checkpoint, kept):
        found.setdefault((file.path, file.delivery), file)
    for path in kept.known:
        known = kept.known.find(path)
        assert known is not None, "it is listed"
        if (path, known.delivery) not in found and path not in whole:
            state: State = "passed-over" if known.checksum is None else "unrecorded"
            found[path, known.delivery] = _file(path, known.delivery, state, known.stamp)
    listed = [*found.values()]
    for path, reasons in whole.items():
        known = kept.known.find(path)
        stamp, delivery = (None, 1) if known is None else (known.stamp, known.delivery)
        listed += [_file(path, delivery, "left-out", stamp, reason=reason) for reason in reasons]
    return sorted(listed, key=lambda one: (one.path, one.delivery))


def _file(
    path: str,
    delivery: int,
    state: State,
    stamp: Stamp | None,
    *,
    rows: int | None = None,
    reason: str | None = None,
) -> FoundFile:
    size, modified = (None, None) if stamp is None else stamp[:2]
    return FoundFile(path, delivery, state, size, modified, rows, reason=reason)


def _recorded(record: TakenFile, parts: dict[str, list[str]]) -> FoundFile:
    return FoundFile(
        record.path,
        record.delivery,
        "left-out" if record.is_part else "committed",
        *record.stamp[:2],
        record.rows,
        record.rejected,
        record.checkpoint_id or None,
        record.at,
        "; ".join(parts.get(record.path, [])) or None if record.is_part else None,
    )


def _left_out(kept: Kept) -> tuple[dict[str, list[str]], dict[str, list[str]]]:
    """The reasons by path: of files that were left out as a whole, and of rests of files."""
    whole: dict[str, list[str]] = {}
    parts: dict[str, list[str]] = {}
    for one in kept.skipped:
        if one.split_id == one.path:
            whole.setdefault(one.path, []).append(one.reason)
        else:
            parts.setdefault(one.path, []).append(f"{one.position}: {one.reason}")
    return whole, parts


def _open_files(checkpoint: CompletedCheckpoint, kept: Kept) -> Iterator[FoundFile]:
    """Those that wait, and those of which a reader has something."""
    waiting: dict[Key, Fraction] = {}
    stamps: dict[Key, Stamp] = {}
    rows = dict(kept.taken.open)
    for split in kept.pending:
        key = split.path, split.delivery
        waiting[key] = waiting.get(key, Fraction(0)) + split.share
        stamps[key] = Stamp(split.size_bytes, split.modified_ns, split.etag)
    for reader in readers_in(checkpoint):
        for split_read, position_read in reader.splits:
            split, position = to_file_split(split_read), to_position(position_read)
            key = split.path, split.delivery
            stamps[key] = Stamp(split.size_bytes, split.modified_ns, split.etag)
            rows[key] = rows.get(key, 0) + (0 if position is None else position.rows)
    for key in waiting.keys() | rows.keys():
        is_waiting = waiting.get(key, 0) == 1
        state: State = "waiting" if is_waiting else "reading"
        known = kept.known.find(key[0])
        stamp = stamps.get(key) or (None if known is None else known.stamp)
        yield _file(*key, state, stamp, rows=None if is_waiting else rows.get(key, 0))
