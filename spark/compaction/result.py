"""The report of what a compaction has done, or would do, for people and for programs."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass, replace
from typing import Any

from epochgate.spark.compaction.plan import Plan, Wanted
from epochgate.spark.parquet_sink.tree import VisibleFile


@dataclass(frozen=True)
class PartitionResult:
    """One partition, by its directory, empty where there are none: files and bytes, before and
    after.
    """

    partition: str
    files_before: int
    files_after: int
    bytes_before: int
    bytes_after: int


@dataclass(frozen=True)
class CompactionResult:
    """The changes that a compaction has made.

    partitions: those that were changed, by name. files_before, files_after: of the whole target.
    rows: of the changed partitions, before and after. merged: small files that became part of
    others. kept_checkpoints: the newest, which stay as they are. is_dry_run: nothing was changed,
    and files and bytes after are estimates. retired: objects that are still there for those who
    began to read before, where the target is in an object store.
    """

    target: str
    partitions: tuple[PartitionResult, ...]
    files_before: int
    files_after: int
    bytes_before: int
    bytes_after: int
    merged: int
    rows: int
    checkpoints: int
    kept_checkpoints: int
    is_dry_run: bool
    retired: int = 0

    def to_json(self) -> dict[str, Any]:
        """Plain values."""
        return asdict(self)


def planned_result(target: str, plan: Plan, wanted: Wanted) -> CompactionResult:
    """Foretell the result of a plan, by the sizes of the files that are there."""
    partitions = []
    for merge in plan.merges:
        size_bytes = sum(file.size_bytes for file in merge.files)
        merged_bytes = sum(file.size_bytes for file in merge.small)
        partitions.append(
            PartitionResult(
                merge.directory,
                len(merge.files),
                -(-merged_bytes // wanted.file_bytes) + len(merge.large),
                size_bytes,
                size_bytes,
            )
        )
    return _result(target, plan, partitions, is_dry_run=True)


def result_of(
    target: str, plan: Plan, built: Iterable[VisibleFile], retired: int
) -> CompactionResult:
    """Return the result of a compaction; `retired`: replaced files that are still there."""
    after: dict[str, list[VisibleFile]] = {}
    for file in built:
        after.setdefault(file.directory, []).append(file)
    partitions = [
        PartitionResult(
            merge.directory,
            len(merge.files),
            len(after[merge.directory]),
            sum(file.size_bytes for file in merge.files),
            sum(file.size_bytes for file in after[merge.directory]),
        )
        for merge in plan.merges
    ]
    return replace(_result(target, plan, partitions, is_dry_run=False), retired=retired)


def _result(
    target: str, plan: Plan, partitions: list[PartitionResult], *, is_dry_run: bool
) -> CompactionResult:
    visible = [file for files in plan.files.values() for file in files]
    size_bytes = sum(file.size_bytes for file in visible)
    return CompactionResult(
        target,
        tuple(partitions),
        len(visible),
        len(visible) + sum(one.files_after - one.files_before for one in partitions),
        size_bytes,
        size_bytes + sum(one.bytes_after - one.bytes_before for one in partitions),
        sum(len(merge.small) for merge in plan.merges),
        sum(file.rows for merge in plan.merges for file in merge.files),
        len(plan.covered),
        len(plan.checkpoints) - len(plan.covered),
        is_dry_run,
    )
