"""A Parquet file that is being written, by a task or by a compaction.

Decides how row groups, checksums of pages and the written schema get into a file. Leaves its name
and when it ends to others.
"""

from __future__ import annotations

import contextlib
from collections import Counter
from typing import Final

import pyarrow as pa
import pyarrow.parquet as pq

from epochgate.runtime.filesystem import WritableFile
from epochgate.spark.parquet_sink.committable import with_written_schema
from epochgate.spark.parquet_sink.dictionaries import Dictionaries, plain_bytes

ROW_GROUP_BYTES: Final = 16 << 20
"""So much of Arrow data is gathered for a row group; a barrier that arrives waits for its end."""
COMPRESSION: Final = "snappy"


class OpenFile:
    """A Parquet file being written; also the file object that pyarrow writes to.

    `schema` is what it holds, `agreed` the output's, with the columns of partitions.
    """

    def __init__(
        self,
        path: str,
        number: int,
        file: WritableFile,
        schema: pa.Schema,
        agreed: pa.Schema,
        dictionaries: Dictionaries,
        compression: str = COMPRESSION,
    ) -> None:
        self.path, self.number, self.agreed = path, number, agreed
        self.rows = 0
        self.size_bytes = 0
        self.closed = False
        self._file = file
        self._dropped = False
        self._dictionaries = dictionaries
        self._plain_bytes: Counter[str] = Counter()
        self._writer = pq.ParquetWriter(
            pa.PythonFile(self, mode="w"),
            schema,
            compression=compression,
            use_dictionary=dictionaries.columns,
            write_page_checksum=True,
        )
        self._writer.add_key_value_metadata(with_written_schema(agreed))

    def write(self, data: bytes) -> int:
        """Called by pyarrow, also by a writer that is being thrown away: that has no effect."""
        if not self._dropped:
            self.size_bytes += len(data)
            self._file.write(data)
        return len(data)

    def flush(self) -> None:
        """Called by pyarrow; only `finish` has to reach the device."""

    def close(self) -> None:
        """Called by pyarrow when the Parquet file is complete; `finish` closes the real one."""
        self.closed = True

    def write_table(self, table: pa.Table) -> None:
        self._writer.write_table(table, row_group_size=max(1, table.num_rows))
        self.rows += table.num_rows
        self._plain_bytes.update(plain_bytes(table))

    def finish(self) -> None:
        self._writer.close()
        self._dictionaries.learn(self._writer.writer.metadata, self._plain_bytes)
        self._file.fsync()
        self._file.close()

    def drop(self) -> None:
        self._dropped = True
        with contextlib.suppress(pa.ArrowException):
            self._writer.close()
        self._file.close()
