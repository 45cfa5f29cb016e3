"""Record batches as the text that PostgreSQL's COPY reads.

Decides how values are written: as CSV, in which nothing stands for null and "" for an empty text.
Runs in the task; imports nothing of PostgreSQL.
"""

from __future__ import annotations

import io
from collections.abc import Iterator

import pyarrow as pa
import pyarrow.csv

from epochgate.spark.postgres_sink.errors import TypeNotWritten

PART = "epochgate_part"
"""The column of the staging table that says to which part a row belongs."""
CHECKPOINT = "epochgate_checkpoint"
"""A column of the table that gets the number of each row's checkpoint, if the table has it."""
_OPTIONS = pyarrow.csv.WriteOptions(include_header=False)


def as_csv(batch: pa.RecordBatch, part: str) -> bytes:
    r"""The rows, each with the name of its part. Raises TypeNotWritten.

    >>> as_csv(pa.RecordBatch.from_pydict({"x": [1, None], "y": ["", None]}), "p")
    b'1,"","p"\n,,"p"\n'
    """
    columns = [_written(name, batch[name]) for name in batch.schema.names]
    columns.append(pa.array([part] * batch.num_rows, pa.string()))
    table = pa.Table.from_arrays(columns, names=[*batch.schema.names, PART])
    written = io.BytesIO()
    pyarrow.csv.write_csv(table, written, _OPTIONS)
    return written.getvalue()


def slices(batch: pa.RecordBatch, rows_max: int) -> Iterator[pa.RecordBatch]:
    """The batch in slices of at most `rows_max` rows."""
    for begin in range(0, batch.num_rows, rows_max):
        yield batch.slice(begin, rows_max)


def _written(name: str, column: pa.Array) -> pa.Array:
    kind = column.type
    if pa.types.is_dictionary(kind):
        return _written(name, column.dictionary_decode())
    if pa.types.is_nested(kind) or pa.types.is_duration(kind):
        raise TypeNotWritten(name, str(kind))
    if pa.types.is_binary(kind) or pa.types.is_large_binary(kind):
        texts = [None if value is None else "\\x" + value.hex() for value in column.to_pylist()]
        return pa.array(texts, pa.string())
    if pa.types.is_decimal(kind) or pa.types.is_float16(kind) or pa.types.is_string_view(kind):
        return column.cast(pa.float32() if pa.types.is_float16(kind) else pa.string())
    return column
