"""What can be wrong with rows on their way into a table, one exception type per cause.

Every type keeps its facts as constructor arguments, so it survives being pickled between processes.
"""

from __future__ import annotations

from epochgate.errors import EpochgateError


class TypeNotInTable(EpochgateError):
    """The table's format has no type for a column: the format, the column's name, its type."""

    def __str__(self) -> str:
        table_format, name, kind = self.args
        return (
            f"{table_format} has no type for column {name!r}, which is {kind}. Cast it before "
            "it is written, for example to text or to a whole number, or leave it out."
        )


class ValueMissing(EpochgateError):
    """A column of the table may not be null, and a row is: column, where."""

    def __str__(self) -> str:
        column, where = self.args
        return (
            f"column {column!r} of the table is declared not null, and a row without a value "
            f"came ({where}). Fill it in or leave the row out. Nothing of it has become visible."
        )


class ValueDoesNotFit(EpochgateError):
    """A column of a batch cannot be written as the table's type: column, type, reason, where."""

    def __str__(self) -> str:
        column, kind, reason, where = self.args
        return (
            f"column {column!r} cannot be written as {kind} ({where}): {reason}. Cast it to that "
            "type before it is written. Nothing of it has become visible."
        )
