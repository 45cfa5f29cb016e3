"""Errors of a Delta table as a target, one exception type per cause.

Every type keeps its facts as constructor arguments, so it survives being pickled between processes.
What a target of Parquet files can suffer too has the types of `epochgate.spark.parquet_sink`.
"""

from __future__ import annotations

from epochgate.errors import EpochgateError, UsageError


class SchemaImpossible(UsageError):
    """No table can be made with the schema: path, the columns that are in the way, the reason."""

    def __str__(self) -> str:
        path, columns, reason = self.args
        named = ", ".join(map(repr, columns)) or "its columns together"
        return (
            f"the Delta table {path!r} cannot be made, because of {named}: {reason}. Cast them in "
            "a transform, or leave them out with --columns (columns in Python) and begin with a "
            "new --checkpoint-dir (checkpoint_directory). Nothing has become visible."
        )


class LogOvertaken(EpochgateError):
    """Another commit has come between the look at the log and this one: path, reason."""

    def __str__(self) -> str:
        return f"the log of the Delta table {self.args[0]!r} has changed: {self.args[1]}"


class LogFailed(EpochgateError):
    """The library could not read or write the log: path, reason."""

    def __str__(self) -> str:
        return f"the log of the Delta table {self.args[0]!r}: {self.args[1]}"
