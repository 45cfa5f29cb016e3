"""Rows of several Parquet files in a few larger ones, in the order of the files.

Decides what is held in memory: the batches of one row group, beside what pyarrow decodes of one
row group of the file that is read. Types and columns become those of the target's schema, which
holds all files. Leaves to others which files, and where the new ones are. Runs where the command
runs; imports pyarrow, never pyspark.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq

from epochgate.runtime.filesystem import WrittenOnce
from epochgate.spark.files.evolution import fitted
from epochgate.spark.parquet_sink.committable import footer_crc32, schema_id
from epochgate.spark.parquet_sink.dictionaries import Dictionaries
from epochgate.spark.parquet_sink.errors import CommittableDamaged
from epochgate.spark.parquet_sink.open_file import ROW_GROUP_BYTES, OpenFile
from epochgate.spark.parquet_sink.partitions import without
from epochgate.spark.parquet_sink.tree import VisibleFile

READ_BYTES: Final = 8 << 20
"""About so much is decoded at a time."""
READ_ROWS_MAX: Final = 1 << 16


@dataclass(frozen=True)
class Source:
    """A file to be merged: how it is recognised, where it lies, and how pyarrow reads it there."""

    file: VisibleFile
    path: str
    open: Callable[[str], Any]


class Merger:
    """Writes merged files through `files`, each of at least `file_bytes` but the last.

    schema: the target's, with the columns of partitions, which are `partition_columns`.
    """

    def __init__(
        self,
        files: WrittenOnce,
        schema: pa.Schema,
        partition_columns: Iterable[str],
        file_bytes: int,
    ) -> None:
        self._files, self._file_bytes = files, file_bytes
        self._agreed = pa.schema([pa.field(field.name, field.type) for field in schema])
        self._schema = without(self._agreed, tuple(partition_columns))
        self._dictionaries = Dictionaries()
        self._row_group_bytes = min(ROW_GROUP_BYTES, file_bytes)

    def merge(
        self, sources: Iterable[Source], path_of: Callable[[int], str]
    ) -> list[tuple[str, int, int, int, str]]:
        """Write the rows of `sources` to the paths that `path_of` gives by number, durably.

        Returns path, rows, bytes, checksum of the footer and schema of each new file. Raises
        CommittableDamaged for a source that is not as it was committed, and OSError.
        """
        written: list[tuple[str, int, int, int, str]] = []
        file: OpenFile | None = None
        try:
            for table in self._row_groups(sources):
                if file is None:
                    file = self._start(path_of(len(written)), len(written))
                file.write_table(table)
                if file.size_bytes >= self._file_bytes:
                    written.append(self._finish(file))
                    file = None
            if file is not None:
                written.append(self._finish(file))
                file = None
        finally:
            if file is not None:
                with contextlib.suppress(OSError):
                    file.drop()
        return written

    def _row_groups(self, sources: Iterable[Source]) -> Iterator[pa.Table]:
        gathered: list[pa.RecordBatch] = []
        gathered_bytes = 0
        for source in sources:
            for batch in self._batches(source):
                gathered.append(fitted(batch, self._schema))
                gathered_bytes += gathered[-1].nbytes
                if gathered_bytes >= self._row_group_bytes:
                    yield pa.Table.from_batches(gathered)
                    gathered, gathered_bytes = [], 0
        if gathered:
            yield pa.Table.from_batches(gathered)

    def _batches(self, source: Source) -> Iterator[pa.RecordBatch]:
        self._require_intact(source)
        opened = pq.ParquetFile(source.open(source.path), page_checksum_verification=True)
        try:
            shape = opened.metadata
            held = sum(shape.row_group(n).total_byte_size for n in range(shape.num_row_groups))
            rows = max(1, min(READ_ROWS_MAX, READ_BYTES * shape.num_rows // max(1, held)))
            yield from opened.iter_batches(batch_size=rows)
        except (pa.ArrowException, OSError) as error:
            if isinstance(error, OSError) and error.errno is not None:
                raise  # of the system; pyarrow tells what it cannot read without a number
            expected = f"{source.file.rows} rows"
            raise CommittableDamaged(source.path, expected, str(error)) from error
        finally:
            opened.close()

    def _require_intact(self, source: Source) -> None:
        file, path = source.file, source.path
        size_bytes = self._files.size(path)
        if size_bytes != file.size_bytes:
            found = f"{size_bytes} bytes"
            raise CommittableDamaged(path, f"{file.size_bytes} bytes", found)
        if file.footer_crc32 is None:
            return
        found_crc = footer_crc32(self._files, path, size_bytes)
        if found_crc != file.footer_crc32:
            expected = f"footer checksum {file.footer_crc32}"
            raise CommittableDamaged(path, expected, f"footer checksum {found_crc}")

    def _start(self, path: str, number: int) -> OpenFile:
        file = self._files.open_for_writing(path)
        try:
            return OpenFile(path, number, file, self._schema, self._agreed, self._dictionaries)
        except BaseException:
            file.close()
            raise

    def _finish(self, file: OpenFile) -> tuple[str, int, int, int, str]:
        file.finish()
        size_bytes = self._files.size(file.path)
        crc32 = footer_crc32(self._files, file.path, size_bytes)
        if crc32 is None or size_bytes != file.size_bytes:
            expected = f"{file.size_bytes} bytes and a footer"
            raise CommittableDamaged(file.path, expected, f"{size_bytes} bytes")
        return file.path, file.rows, size_bytes, crc32, schema_id(self._agreed)
