"""Into which shares a file is cut: the fewest of at most a target of bytes each.

Decides: whole row groups for Parquet, by compressed size; bytes for text, unless the file is
compressed, or a quoted field of a CSV file might hold a line end, for which it is read once. Runs
on the driver.
"""

from __future__ import annotations

from typing import BinaryIO

import pyarrow.parquet as pq

from epochgate.spark.files.dialect import Dialect
from epochgate.spark.files.records import has_inner_line_ends
from epochgate.spark.files.split import Compression, Format


def row_group_ranges(metadata: pq.FileMetaData, bytes_target: int) -> list[tuple[int, int]]:
    """First row group and the one after the last, of each share; none for a file without rows."""
    ranges: list[tuple[int, int]] = []
    start, gathered = 0, 0
    for group in range(metadata.num_row_groups):
        row_group = metadata.row_group(group)
        columns = range(row_group.num_columns)
        size = sum(row_group.column(column).total_compressed_size for column in columns)
        if gathered and gathered + size > bytes_target:
            ranges.append((start, group))
            start, gathered = group, 0
        gathered += size
    if metadata.num_rows:
        ranges.append((start, metadata.num_row_groups))
    return ranges


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
    if compression != "none" or count == 1:
        return [(0, size)]
    if file_format == "csv":
        file.seek(0)
        if has_inner_line_ends(file, dialect):
            return [(0, size)]
    return [(size * share // count, size * (share + 1) // count) for share in range(count)]
