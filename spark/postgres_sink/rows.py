"""Record batches as the text that PostgreSQL's COPY reads.

Decides how values are written: as CSV, in which nothing stands for null and "" for an empty text.
Runs in the task; imports nothing of PostgreSQL.
"""

from __future__ import annotations

import io
from collections.abc import Iterator, Mapping

import pyarrow as pa
import pyarrow.csv

from epochgate.spark.values.relations import ColumnType, sent

PART = "epochgate_part"
"""The column of the staging table that says to which part a row belongs."""
CHECKPOINT = "epochgate_checkpoint"
"""A column of the table that gets the number of each row's checkpoint, if the table has it."""
_OPTIONS = pyarrow.csv.WriteOptions(include_header=False)


def as_sent(batch: pa.RecordBatch, columns: Mapping[str, ColumnType], where: str) -> pa.RecordBatch:
    """The rows as `as_csv` writes them; what the table has no column for, the server refuses.

    Raises ColumnNeverFits and ValueDoesNotFit.
    """
    nothing = pa.nulls(batch.num_rows, pa.string())
    arrays = [
        sent(column, name, columns[name], where) if name in columns else nothing
        for name, column in zip(batch.schema.names, batch.columns, strict=True)
    ]
    return pa.RecordBatch.from_arrays(arrays, names=batch.schema.names)


def as_csv(batch: pa.RecordBatch, part: str) -> bytes:
    r"""The rows, each with the name of its part.

    >>> as_csv(pa.RecordBatch.from_pydict({"x": [1, None], "y": ["", None]}), "p")
    b'1,"","p"\n,,"p"\n'
    """
    columns = [*batch.columns, pa.array([part] * batch.num_rows, pa.string())]
    table = pa.Table.from_arrays(columns, names=[*batch.schema.names, PART])
    written = io.BytesIO()
    pyarrow.csv.write_csv(table, written, _OPTIONS)
    return written.getvalue()


def slices(batch: pa.RecordBatch, rows_max: int) -> Iterator[pa.RecordBatch]:
    """The batch in slices of at most `rows_max` rows."""
    for begin in range(0, batch.num_rows, rows_max):
        yield batch.slice(begin, rows_max)
