"""What a commit made visible, whatever the target lies on."""

from __future__ import annotations

from dataclasses import dataclass

from epochgate.spark.parquet_sink.committable import Committable, total_rows


@dataclass(frozen=True)
class CommitResult:
    """What a commit made visible, or found to be visible already."""

    checkpoint: int
    files: int
    rows: int
    size_bytes: int
    already_committed: bool


def result_of_commit(
    checkpoint: int, committables: list[Committable], *, already_committed: bool
) -> CommitResult:
    """The figures of a commit of these files."""
    return CommitResult(
        checkpoint,
        len(committables),
        total_rows(committables),
        sum(committable.size_bytes for committable in committables),
        already_committed,
    )
