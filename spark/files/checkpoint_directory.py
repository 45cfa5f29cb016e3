"""The name of a checkpoint's directory in a target, which readers take for a partition.

`checkpoint=000000000007` is a partition's name in Hive's manner: Spark, which finds no files below
a directory named otherwise, shows the number as a column, and so do DuckDB, pyarrow, pandas and
polars. Used by the sink, which writes such directories, and by sources, which may read a target.
"""

from __future__ import annotations

import re

CHECKPOINT_COLUMN = "checkpoint"
"""The column that readers see; the data cannot have one of this name."""

_NAME = re.compile(rf"{CHECKPOINT_COLUMN}=(\d{{12,}})")
_COMPACTED = re.compile(
    rf"(.*)/{CHECKPOINT_COLUMN}=\d{{12,}}/(?:[^/]+=[^/]*/)*(?:merged|moved)-\d{{6,}}-[^/]*"
)
_MOVED = re.compile(r"^moved-\d{6,}-")
_EARLIER_NAME = re.compile(r"checkpoint-(\d{12,})")


def checkpoint_name(checkpoint: int) -> str:
    """The name of a checkpoint's directory; names sort as the numbers do.

    >>> checkpoint_name(7)
    'checkpoint=000000000007'
    """
    return f"{CHECKPOINT_COLUMN}={checkpoint:012d}"


def checkpoint_of(name: str) -> int | None:
    """The checkpoint whose directory has this name; none if it is no such directory."""
    match = _NAME.fullmatch(name)
    return None if match is None else int(match[1])


def earlier_checkpoint_name(checkpoint: int) -> str:
    """The name in targets of version 1, and of what is not visible yet or any more.

    >>> earlier_checkpoint_name(7)
    'checkpoint-000000000007'
    """
    return f"checkpoint-{checkpoint:012d}"


def earlier_checkpoint_of(name: str) -> int | None:
    """The inverse of `earlier_checkpoint_name`; none for another name."""
    match = _EARLIER_NAME.fullmatch(name)
    return None if match is None else int(match[1])


def merged_name(tree: int, number: int) -> str:
    """The name of a file that a compaction has merged; `tree` counts the compactions.

    >>> merged_name(3, 0)
    'merged-000003-000000.parquet'
    """
    return f"merged-{tree:06d}-{number:06d}.parquet"


def moved_name(tree: int, name: str) -> str:
    """The name of a file that a compaction has moved, which may have been moved before.

    >>> moved_name(4, moved_name(3, "part-00000-1-000000-r1.parquet"))
    'moved-000004-part-00000-1-000000-r1.parquet'
    """
    return f"moved-{tree:06d}-{_MOVED.sub('', name)}"


def compacted_target_of(path: str) -> str | None:
    """The target in which a compaction has made or moved this file; none for another file.

    >>> compacted_target_of("/data/out/checkpoint=000000000001/c=2/merged-000003-000000.parquet")
    '/data/out'
    """
    match = _COMPACTED.fullmatch(path)
    return None if match is None else match[1]
