"""Rows that could not be read: what is kept of each, and as which columns.

Decides the columns of the table of rejected rows. Leaves to others: what makes a row bad
(`parsing`, `reader`), and writing the table. Pure values; used in tasks.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import astuple, dataclass
from typing import Literal

import pyarrow as pa

MISSING = "there is no value, and the column is NOT NULL"
OnBadRow = Literal["fail", "reject", "rescue"]

REJECTED_SCHEMA = pa.schema(
    [
        pa.field("file", pa.string()),
        pa.field("line", pa.int64()),
        pa.field("column_name", pa.string()),
        pa.field("reason", pa.string()),
        pa.field("raw", pa.string()),
    ]
)


class ValueInvalid(ValueError):
    """A value does not fit its column: the column's name, none if it is the record that is wrong;
    why; the record, where a line only stands for it.
    """

    def __init__(self, column: str | None, reason: str, record: str | None = None) -> None:
        super().__init__(column, reason)
        self.column, self.reason, self.record = column, reason, record

    def __str__(self) -> str:
        return self.reason


@dataclass(frozen=True)
class RejectedRow:
    """A row that could not be read.

    line: of the file, from 1; of a Parquet file, the row. column_name: none if the fault is not one
    column's. raw: the text without its line end, bytes that are no text escaped; of Parquet, JSON.
    """

    file: str
    line: int
    column_name: str | None
    reason: str
    raw: str


def position_of(line: int | str, column: str | None) -> str:
    """A bad row's position, for a person.

    >>> position_of(7, "x"), position_of("row group 0, row 2", None)
    ("line 7, column 'x'", 'row group 0, row 2')
    """
    where = f"line {line}" if isinstance(line, int) else line
    return where if column is None else f"{where}, column {column!r}"


def rejected_batch(rows: Sequence[RejectedRow]) -> pa.RecordBatch:
    """The rows as they are written."""
    columns = list(zip(*map(astuple, rows), strict=True)) or [()] * len(REJECTED_SCHEMA)
    arrays = [
        pa.array(values, field.type) for values, field in zip(columns, REJECTED_SCHEMA, strict=True)
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=REJECTED_SCHEMA)


def raw_text(data: bytes, encoding: str) -> str:
    r"""A record as text; what is no text in this encoding is escaped.

    >>> raw_text(b"1,M\xfcller\r\n", "utf-8")
    '1,M\\xfcller'
    """
    return data.rstrip(b"\r\n").decode(encoding, "backslashreplace")


_FAULTY = "!"
"""Begins a line that is no record, among those that are made of a document."""


def faulty_line(record: str, faults: Mapping[str, str], reason: str) -> bytes:
    """A line that says why a record is none: what there is of it as JSON, and the texts that stand
    where a column has no value.
    """
    told = json.dumps([record, dict(faults), reason], ensure_ascii=False)
    return f"{_FAULTY}{told}\n".encode()


def faults_of(line: str) -> tuple[str, dict[str, str], str] | None:
    """Read such a line: the record, the texts and the reason; none if it is another.

    >>> faults_of(faulty_line("{}", {"a": "#N/A"}, "an error").decode())
    ('{}', {'a': '#N/A'}, 'an error')
    """
    if not line.startswith(_FAULTY):
        return None
    record, faults, reason = json.loads(line[1:])
    return record, faults, reason
