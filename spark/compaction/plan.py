"""The choice of the files of a target that are merged, and into which directories.

Decides the layout that a compaction comes to. All but the newest checkpoints are covered. In each
partition that has several small files among them, the small ones are merged, and all files move
into the directory of the oldest covered checkpoint that has rows of the partition.

A reader lists a directory after the other, and opens files later; the target may be exchanged in
between. That it then finds all rows of one tree, or misses a file or a directory and fails, rests
on three rules, which tests/spark/compaction/test_straddling.py shows for each reader:

- No directory gets an entry but in a partition that it had: who has listed the names in a directory
  looks at all of the merged files.
- What a partition's oldest directory had has other names afterwards: who has listed these files
  fails to open them.
- Some directory of a checkpoint in which the partition had rows is gone as a whole. Spark leaves
  out a file that vanishes while it lists one directory, and fails at a directory that does.

So the files of one checkpoint are never merged alone. Pure functions.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from epochgate.spark.parquet_sink.tree import VisibleFile

SMALL = 0.75
"""Of the size that files are to have: a file that is smaller is small."""


@dataclass(frozen=True)
class Wanted:
    """The request for a compaction: the size of files, in bytes; how many small files of one
    partition are worth it; how many of the newest checkpoints stay as they are.
    """

    file_bytes: int
    min_files: int
    keep_checkpoints: int


@dataclass(frozen=True)
class Merge:
    """One partition that is changed: the checkpoint in whose directory its files come together;
    the small files, in the order of their rows; and the others, which move.
    """

    directory: str
    checkpoint: int
    small: tuple[VisibleFile, ...]
    large: tuple[VisibleFile, ...]

    @property
    def files(self) -> tuple[VisibleFile, ...]:
        """All of the partition."""
        return self.small + self.large


@dataclass(frozen=True)
class Plan:
    """The files that are merged, and those that stay where they are, among those checkpoints of all
    that are covered; oldest first.
    """

    checkpoints: tuple[int, ...] = ()
    covered: tuple[int, ...] = ()
    merges: tuple[Merge, ...] = ()
    untouched: tuple[VisibleFile, ...] = ()
    files: Mapping[int, Sequence[VisibleFile]] = field(default_factory=dict)
    """All that were visible, by the checkpoint's directory."""


def plan(
    visible: Mapping[int, Sequence[VisibleFile]],
    checkpoints: Sequence[int],
    wanted: Wanted,
    *,
    is_listed: bool = True,
) -> Plan:
    """Decide what to merge of these files of these checkpoints, both oldest first; `is_listed`:
    whether readers list directories, rather than read a log.
    """
    covered = tuple(checkpoints[: max(0, len(checkpoints) - wanted.keep_checkpoints)])
    partitions: dict[str, list[VisibleFile]] = {}
    for checkpoint in covered:
        for file in sorted(visible.get(checkpoint, ())):
            partitions.setdefault(file.directory, []).append(file)
    merges = {name: _merge(name, files, wanted) for name, files in sorted(partitions.items())}
    merges = {name: one for name, one in merges.items() if len(one.small) >= wanted.min_files}
    while vain := _without_witness(merges, partitions) if is_listed else []:
        for name in vain:
            del merges[name]
    untouched = [
        f for name, files in sorted(partitions.items()) if name not in merges for f in files
    ]
    return Plan(tuple(checkpoints), covered, tuple(merges.values()), tuple(untouched), visible)


def _merge(directory: str, files: Sequence[VisibleFile], wanted: Wanted) -> Merge:
    limit = SMALL * wanted.file_bytes
    small = tuple(file for file in files if file.size_bytes < limit)
    large = tuple(file for file in files if file.size_bytes >= limit)
    return Merge(directory, files[0].checkpoint, small, large)


def _without_witness(
    merges: Mapping[str, Merge], partitions: Mapping[str, Sequence[VisibleFile]]
) -> list[str]:
    """The partitions of whose checkpoints none would be gone."""
    left = {merge.checkpoint for merge in merges.values()}
    for name, files in partitions.items():
        if name not in merges:
            left |= {file.checkpoint for file in files}
    return [
        name for name, merge in merges.items() if {file.checkpoint for file in merge.files} <= left
    ]
