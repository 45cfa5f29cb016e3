"""The result of a commit that made rows visible, whatever the target lies on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from epochgate.spark.parquet_sink.committable import Committable, total_rows
from epochgate.spark.parquet_sink.gathered import GatheredPart


@dataclass(frozen=True)
class CommitResult:
    """The result of a commit: what it made visible, or found to be visible already."""

    checkpoint: int
    files: int
    rows: int
    size_bytes: int
    already_committed: bool


def result_of_commit(
    checkpoint: int,
    committables: list[Committable],
    *,
    already_committed: bool,
    gathered: Sequence[GatheredPart] = (),
) -> CommitResult:
    """The figures of a commit of these files, or of those that tasks have gathered."""
    if gathered:
        return CommitResult(
            checkpoint,
            sum(part.files for part in gathered),
            sum(part.rows for part in gathered),
            sum(part.size_bytes for part in gathered),
            already_committed,
        )
    return CommitResult(
        checkpoint,
        len(committables),
        total_rows(committables),
        sum(committable.size_bytes for committable in committables),
        already_committed,
    )
