"""A source of small files, enumerated and read in one go, as several tests need it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from epochgate.spark.files import FileEnumeration, SplitReader
from epochgate.spark.files.reader import ReadBatch
from epochgate.spark.files.rejected import RejectedRow

FIRST_ALONE = {"sample_bytes_max": 15}
"""Of the sample, no other file than the first gets a whole line."""


def write(path: Path, text: str | bytes) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


def batches(source: Path, *, block_bytes: int = 1 << 20, **options: Any) -> list[ReadBatch]:
    """All that is read of a source; each split with the layout that it was given."""
    enumeration = FileEnumeration(source, **options)
    shared = {name: options[name] for name in ("on_bad_row", "encoding") if name in options}
    return [
        read
        for split in enumeration.discover()
        for read in SplitReader(
            enumeration.layout_of(split), block_bytes=block_bytes, **shared
        ).read(split)
    ]


def rows(source: Path, **options: Any) -> list[dict[str, Any]]:
    """The rows as dicts, file by file."""
    return [row for read in batches(source, **options) for row in read.batch.to_pylist()]


def rejected(source: Path, **options: Any) -> list[RejectedRow]:
    """The rows that were rejected, if bad rows are."""
    read = batches(source, on_bad_row="reject", **options)
    return [row for one in read for row in one.rejected]
