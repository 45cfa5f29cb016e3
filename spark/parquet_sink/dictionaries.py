"""Dictionaries of Parquet files: which columns are written with one, learnt from the files before.

A dictionary of mostly distinct values takes as long as the rest of the encoding, and the column is
then larger than its plain values. The smaller a row group, the more columns are of this kind.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import pyarrow as pa
import pyarrow.parquet as pq

LEARNT_FROM_BYTES: Final = 4 << 20
"""A file of less Arrow data says little about the files after it."""


class Dictionaries:
    """Those of the files of one writer and one schema: of all columns, until a file shows for which
    they do not pay.
    """

    def __init__(self) -> None:
        self.columns: bool | list[str] = True
        """For pyarrow: True for all, or the paths of the columns that have one."""

    def learn(self, metadata: pq.FileMetaData, plain: Mapping[str, int]) -> None:
        """Leave out the columns that are not smaller in a file than their `plain` bytes."""
        if sum(plain.values()) < LEARNT_FROM_BYTES:
            return
        written = _written_bytes(metadata)
        useless = {path for path, size in plain.items() if written.get(path, 0) >= size}
        tried = written.keys() if isinstance(self.columns, bool) else set(self.columns)
        if useless & tried:
            self.columns = sorted(tried - useless)


def plain_bytes(table: pa.Table) -> dict[str, int]:
    """Return about how many bytes the columns would have without dictionaries; without nested ones,
    and those that Arrow has as dictionaries itself.
    """
    return {
        field.name: column.nbytes
        for field, column in zip(table.schema, table.columns, strict=True)
        if not pa.types.is_nested(field.type) and not pa.types.is_dictionary(field.type)
    }


def _written_bytes(metadata: pq.FileMetaData) -> dict[str, int]:
    written: dict[str, int] = {}
    for group in map(metadata.row_group, range(metadata.num_row_groups)):
        for column in map(group.column, range(metadata.num_columns)):
            size = written.get(column.path_in_schema, 0)
            written[column.path_in_schema] = size + column.total_uncompressed_size
    return written
