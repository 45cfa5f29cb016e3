"""Files that tell their types, as chunks of rows: row groups of Parquet, stripes of ORC, and the
whole of an Avro or other file.

Decides how each is opened, and that no value comes out as another than it went in: what a library
would change is refused, with the column. Leaves to others: how rows are numbered, and what is read
of them (`reader`). Runs in a task, and on the driver for schema and shares.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, BinaryIO, Final, Protocol

import pyarrow as pa
import pyarrow.compute as pc

from epochgate.spark.files.parquet_values import require_microseconds, require_utf_8, rows_at_once

if TYPE_CHECKING:
    import pyarrow.parquet as pq

GREGORIAN: Final = pa.scalar(datetime.date(1582, 10, 15), pa.date32())
CONTENT: Final = pa.schema([pa.field("content", pa.binary())])
"""The column of a file that is read as it is."""
CONTENT_BYTES_MAX: Final = 1 << 30
_SPARK_TYPE: Final = b"spark.sql.catalyst.type"


class Chunks(Protocol):
    """An open file; chunks count from 0."""

    @property
    def schema(self) -> pa.Schema:
        """The columns of the file."""

    @property
    def unit(self) -> str:
        """The name of a chunk, for a person."""

    @property
    def count(self) -> int:
        """The number of chunks."""

    def rows_before(self, chunk: int) -> int | None:
        """Count the rows of the chunks before this one, if the file tells them."""

    def rows_in(self, chunk: int) -> int | None:
        """Count the rows of one, if the file tells them."""

    def batches(
        self, chunk: int, columns: Sequence[str], batch_rows: int
    ) -> Iterator[pa.RecordBatch]:
        """These columns of a chunk. Raises ValueError, and what the library raises."""

    def close(self) -> None:
        """Close the file."""


class ParquetChunks:
    """Row groups; `opened` opens the file once more."""

    unit = "row group"

    def __init__(self, opened: Callable[..., pq.ParquetFile]) -> None:
        self._opened = opened
        self._file = opened(verified=True)
        self.schema, self.count = self._file.schema_arrow, self._file.num_row_groups
        self._counted = 0, 0
        """A row group, and the rows before it."""

    def rows_before(self, chunk: int) -> int:
        """Count on from the chunk before, since a file may have many."""
        at, rows = self._counted if self._counted[0] <= chunk else (0, 0)
        self._counted = chunk, rows + sum(map(self.rows_in, range(at, chunk)))
        return self._counted[1]

    def rows_in(self, chunk: int) -> int:
        rows: int = self._file.metadata.row_group(chunk).num_rows
        return rows

    def batches(
        self, chunk: int, columns: Sequence[str], batch_rows: int
    ) -> Iterator[pa.RecordBatch]:
        """As many rows as the footer tells of. Raises ValueError."""
        group = self._file.metadata.row_group(chunk)
        batch_rows, taken = rows_at_once(group, batch_rows), 0
        require_microseconds(self._file, self._opened, chunk, columns, batch_rows)
        for batch in self._file.iter_batches(
            batch_size=batch_rows, row_groups=[chunk], columns=columns, use_threads=False
        ):
            require_utf_8(batch)
            taken += batch.num_rows
            yield batch
        if taken != group.num_rows:
            raise ValueError(f"the footer tells of {group.num_rows} rows in the row group")

    def close(self) -> None:
        self._file.close()


class OrcChunks:
    """Stripes. A timestamp of ORC is what a clock shows, and has nanoseconds."""

    unit = "stripe"

    def __init__(self, file: Any) -> None:
        from pyarrow import orc

        self._source = file
        self._file = orc.ORCFile(file)
        self.schema = pa.schema([_as_spark_meant(field) for field in self._file.schema])
        self.count = self._file.nstripes

    def rows_before(self, chunk: int) -> None:
        """None is told."""

    def rows_in(self, chunk: int) -> None:
        """None is told."""

    def batches(
        self, chunk: int, columns: Sequence[str], batch_rows: int
    ) -> Iterator[pa.RecordBatch]:
        """Of the stripe as a whole. Raises ValueError."""
        # Of no column the library reads no row.
        stripe = self._file.read_stripe(chunk, columns=list(columns) or self.schema.names[:1])
        require_utf_8(stripe)
        arrays = []
        for name in columns:
            array, kind = stripe.column(name), self.schema.field(name).type
            _require_gregorian(name, array)
            arrays.append(array if array.type == kind else array.cast(kind))
        fields = [self.schema.field(name) for name in columns]
        whole = stripe.select([])
        if columns:
            whole = pa.RecordBatch.from_arrays(arrays, schema=pa.schema(fields))
        for first in range(0, whole.num_rows, batch_rows):
            yield whole.slice(first, batch_rows)

    def close(self) -> None:
        if not isinstance(self._source, str):
            self._source.close()


def _as_spark_meant(field: pa.Field) -> pa.Field:
    """Spark writes wall clocks as numbers of microseconds, and says so beside the column."""
    said = (field.metadata or {}).get(_SPARK_TYPE)
    kind = pa.timestamp("us") if said == b"timestamp_ntz" else field.type
    return pa.field(field.name, kind)


def _require_gregorian(name: str, array: pa.Array) -> None:
    """Refuse days that writers of ORC count by the Julian calendar, and Arrow does not."""
    for part in _days(array):
        first = pc.min(part)
        if first.is_valid and pc.less(first, GREGORIAN).as_py():
            raise ValueError(
                f"column {name!r} has a date before 1582-10-15, of which ORC does not tell the "
                "calendar. Write it as text, or leave the column out: --columns (columns in "
                "Python) names those read"
            )


def _days(array: pa.Array) -> Iterator[pa.Array]:
    kind = array.type
    if pa.types.is_date32(kind):
        yield array
    elif pa.types.is_struct(kind):
        for one in array.flatten():
            yield from _days(one)
    elif pa.types.is_map(kind):
        yield from _days(array.keys)
        yield from _days(array.items)
    elif pa.types.is_list(kind):
        yield from _days(array.flatten())


class WholeFile:
    """A file as one row, whose value is its bytes."""

    unit, schema, count = "file", CONTENT, 1

    def __init__(self, file: BinaryIO) -> None:
        self._file = file

    def rows_before(self, chunk: int) -> None:
        """None is told."""

    def rows_in(self, chunk: int) -> None:
        """None is told."""

    def batches(
        self, chunk: int, columns: Sequence[str], batch_rows: int
    ) -> Iterator[pa.RecordBatch]:
        """The one row. Raises ValueError for a file that is too large for a value."""
        content = self._file.read(CONTENT_BYTES_MAX + 1)
        if len(content) > CONTENT_BYTES_MAX:
            raise ValueError(f"it has more than {CONTENT_BYTES_MAX} bytes, the most of one value")
        names = [name for name in columns if name in self.schema.names]
        yield pa.RecordBatch.from_pylist([{"content": content}], schema=CONTENT).select(names)

    def close(self) -> None:
        self._file.close()
