"""A sheet of a workbook as JSON lines: each row as a record, by the names in the first one.

Decides what the records are: the first row with a value has the names of the columns, or they are
f0, f1 and so on; an empty cell is no field, an empty row no record. A line stands for each row of
the sheet, so that a bad one is told by its number there. A row with a cell that has no value which
could be taken becomes a line that is no record and says why. Runs on the driver and in tasks.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import cached_property, partial
from typing import BinaryIO

from epochgate.spark.files.dialect import Dialect
from epochgate.spark.files.record_lines import RecordLines
from epochgate.spark.files.rejected import faulty_line
from epochgate.spark.files.workbooks import Cells, Fault, Workbook


class SheetLines(RecordLines):
    """The rows of the sheet that the dialect names."""

    def __init__(self, raw: BinaryIO, dialect: Dialect) -> None:
        self._dialect = dialect
        super().__init__(raw, partial(lines_of_sheet, dialect=dialect))

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The columns; none of an empty sheet. Raises ValueError."""
        first = next(_rows(self._raw, self._dialect), None)
        return () if first is None else _names(first, self._dialect)


def lines_of_sheet(raw: BinaryIO, dialect: Dialect) -> Iterator[bytes]:
    """The lines. Raises ValueError for a workbook or header that cannot be read."""
    at, names = 0, None
    for cells in _rows(raw, dialect):
        yield b"\n" * (cells.row - at - 1)
        at = cells.row
        if names is None:
            names = _names(cells, dialect)
            if dialect.header:
                yield b"\n"
                continue
        yield _line(cells, names)


def _rows(raw: BinaryIO, dialect: Dialect) -> Iterator[Cells]:
    book = Workbook(raw)
    return book.rows(book.part_of(dialect.sheet))


def _names(first: Cells, dialect: Dialect) -> tuple[str, ...]:
    count = max(first.values) + 1
    if not dialect.header:
        return tuple(f"f{column}" for column in range(count))
    names = []
    for column in range(count):
        value = first.values.get(column, '""')
        plain = value.text if isinstance(value, Fault) else json.loads(value)
        names.append(plain if isinstance(plain, str) else str(value))
    if "" in names or len(set(names)) != count:
        raise ValueError(
            f"the header in row {first.row} needs distinct column names, found {names}; sheets "
            "without a header are read with --no-header (header=False in Python)"
        )
    return tuple(names)


def _line(cells: Cells, names: tuple[str, ...]) -> bytes:
    members: list[str] = []
    faults: dict[str, Fault] = {}
    for column, value in cells.values.items():
        if column >= len(names):
            return faulty_line(
                _record(members),
                {},
                f"it has a value in column {column + 1}, behind the {len(names)} of the header "
                f"({', '.join(names)})",
            )
        if isinstance(value, Fault):
            faults[names[column]] = value
        else:
            members.append(f"{json.dumps(names[column], ensure_ascii=False)}:{value}")
    if faults:
        reason = next(iter(faults.values())).reason
        texts = {name: fault.text for name, fault in faults.items()}
        return faulty_line(_record(members), texts, reason)
    return _record(members).encode() + b"\n"


def _record(members: list[str]) -> str:
    return "{" + ",".join(members) + "}"
