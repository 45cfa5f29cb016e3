"""Errors of rows on their way into a target, one exception type per cause.

Every type keeps its facts as constructor arguments, so it survives being pickled between processes.
"""

from __future__ import annotations

from typing import Self

from epochgate.errors import UsageError

_CAST = (
    "Cast it in the query, or in the --transform (transform in Python) of an ingestion, and start "
    "again; or begin with --schema (schema), a new target and a new --checkpoint-dir "
    "(checkpoint_directory)"
)


class RowsUnfit(UsageError):
    """Rows that a target cannot hold. The last argument says where they are from."""

    @property
    def row(self) -> int | None:
        """The first such row of the batch, counted from 0; none for all of them."""
        return None

    def of(self, place: str) -> Self:
        """The same, of rows from `place`."""
        return type(self)(*self.args[:-1], place)


class TypeNotInTable(RowsUnfit):
    """A format has no type for a column: the format, the column's name, its type, where."""

    def __init__(self, table_format: str, name: str, kind: str, where: str = "") -> None:
        super().__init__(table_format, name, kind, where)

    def __str__(self) -> str:
        table_format, name, kind, where = self.args
        return (
            f"{table_format} has no type for column {name!r}, which is {kind}{_from(where)}. Leave "
            "the column out by --columns (columns in Python), or give it another type, for example "
            "text, by --schema (schema), in the --transform (transform) of an ingestion or in the "
            "query. Nothing of these rows has become visible."
        )


class ColumnNeverFits(RowsUnfit):
    """No value of a type goes into a column: column, the column's type, the values', why, where."""

    def __str__(self) -> str:
        column, kind, found, reason, where = self.args
        return (
            f"column {column!r} of the table is {kind}, and does not take {found}{_from(where)}: "
            f"{reason}. {_CAST}; or give the table's column another type. Nothing of these rows "
            "has become visible."
        )


class ValueMissing(RowsUnfit):
    """A column of the table may not be null, and a row is: column, row of the batch, where."""

    @property
    def row(self) -> int | None:
        """The first such row of the batch."""
        return int(self.args[1])

    def __str__(self) -> str:
        column, _, where = self.args
        return (
            f"column {column!r} of the table is declared not null, and a row without a value "
            f"came{_from(where)}. Fill it in or leave the row out, in the transform of an "
            "ingestion or in the query. Nothing of it has become visible."
        )


class ValueDoesNotFit(RowsUnfit):
    """A value cannot be written as the table's type: column, type, value, reason, row of the batch,
    where.
    """

    @property
    def row(self) -> int | None:
        """The first such row of the batch."""
        return int(self.args[4])

    def __str__(self) -> str:
        column, kind, value, reason, _, where = self.args
        return (
            f"column {column!r} cannot be written as {kind}{_from(where)}: the value {value} would "
            f"change, {reason}. {_CAST}; or give the table's column a wider type. Nothing of it "
            "has become visible."
        )


class RowsUnwritable(RowsUnfit):
    """The library of a format cannot write rows of these columns, now or later: reason, where."""

    def __str__(self) -> str:
        reason, where = self.args
        return (
            f"the rows cannot be written{_from(where)}: {reason.rstrip('.')}. {_CAST}. Nothing of "
            "them has become visible."
        )


def _from(where: str) -> str:
    return f" ({where})" if where else ""
