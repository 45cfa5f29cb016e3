"""Into which shares a file is cut: the fewest of at most a target of bytes each.

Decides: whole row groups for Parquet, by size; bytes for text, unless the file is
compressed, or a quoted field of a CSV file might hold a line end, for which it is read once. Runs
on the driver.
"""

from __future__ import annotations

from typing import BinaryIO

import pyarrow.parquet as pq

from epochgate.spark.files.compression import Compression
from epochgate.spark.files.dialect import Dialect
from epochgate.spark.files.records import has_inner_line_ends
from epochgate.spark.files.split import DOCUMENTS, Format


def row_group_ranges(
    metadata: pq.FileMetaData, size_bytes: int, bytes_target: int
) -> list[tuple[int, int]]:
    """First row group and the one after the last, of each share; none for a file without rows, by
    its row groups: some writers leave 0 in the footer for all of them.

    A row group is taken to have as much of the file's bytes as of the bytes that it decompresses
    to: pyarrow ends the process when it is asked for columns that are encrypted or damaged.
    """
    ranges: list[tuple[int, int]] = []
    start, gathered = 0, 0
    groups = [metadata.row_group(group) for group in range(metadata.num_row_groups)]
    plain = [max(0, group.total_byte_size) for group in groups]
    total = max(1, sum(plain))
    for group, plain_bytes in enumerate(plain):
        size = size_bytes * plain_bytes // total
        if gathered and gathered + size > bytes_target:
            ranges.append((start, group))
            start, gathered = group, 0
        gathered += size
    if any(group.num_rows for group in groups):
        ranges.append((start, len(groups)))
    return ranges


def chunk_ranges(count: int, size_bytes: int, bytes_target: int) -> list[tuple[int, int]]:
    """The same of chunks of which no sizes are told.

    >>> chunk_ranges(5, 100, 40), chunk_ranges(0, 100, 40)
    ([(0, 1), (1, 3), (3, 5)], [])
    """
    shares = min(count, -(-size_bytes // bytes_target))
    return [(count * at // shares, count * (at + 1) // shares) for at in range(shares)]


def byte_ranges(
    file: BinaryIO,
    size: int,
    file_format: Format,
    compression: Compression,
    dialect: Dialect,
    bytes_target: int,
) -> list[tuple[int, int]]:
    """First byte and the one after the last, of each share."""
    count = -(-size // bytes_target)
    if compression != "none" or file_format in DOCUMENTS or count == 1:
        return [(0, size)]
    if file_format == "csv":
        file.seek(0)
        if has_inner_line_ends(file, dialect):
            return [(0, size)]
    return [(size * share // count, size * (share + 1) // count) for share in range(count)]
