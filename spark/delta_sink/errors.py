"""What can be wrong with a Delta table as a target, one exception type per cause.

Every type keeps its facts as constructor arguments, so it survives being pickled between processes.
What a target of Parquet files can suffer too has the types of `epochgate.spark.parquet_sink`.
"""

from __future__ import annotations

from epochgate.errors import EpochgateError, UsageError
from epochgate.runtime import AheadOfCheckpoint


class TableUnusable(UsageError):
    """The table has a property that this sink cannot honour: path, the property, the way on."""

    def __str__(self) -> str:
        path, found, way_on = self.args
        return f"cannot write to the Delta table {path!r}: {found}. {way_on}"


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


class TableAhead(AheadOfCheckpoint):
    """The table holds checkpoints newer than the restored: path, its last, restored."""

    def __str__(self) -> str:
        path, last, restored = self.args
        known = "no checkpoint" if restored is None else f"checkpoint {restored}"
        return (
            f"the Delta table {path!r} already holds checkpoint {last} of this job, which starts "
            f"from {known}: it would write the newer rows a second time. Give the "
            f"--checkpoint-dir (checkpoint_directory in Python) that holds checkpoint {last}, or a "
            "new table."
        )


class TableBehind(UsageError):
    """The restored state belongs to a table that is gone: path, restored checkpoint."""

    def __str__(self) -> str:
        path, restored = self.args
        return (
            f"this job restores checkpoint {restored}, and {path!r} is not the Delta table to "
            "which it has committed: earlier rows would be missing. Restore that table "
            "(with its working directory, which lies beside it), or start from the beginning "
            "with a new "
            "--checkpoint-dir (checkpoint_directory in Python)."
        )


class TableTakenOver(EpochgateError):
    """A later driver of the job has claimed the table: path, this run."""

    def __str__(self) -> str:
        path, run = self.args
        return (
            f"run {run} may not commit to the Delta table {path!r}: a later driver of this job has "
            "claimed it. This driver was taken for dead and replaced; stop it. Nothing was "
            "changed."
        )


class LogOvertaken(EpochgateError):
    """Another commit has come between the look at the log and this one: path, reason."""

    def __str__(self) -> str:
        return f"the log of the Delta table {self.args[0]!r} has changed: {self.args[1]}"


class LogFailed(EpochgateError):
    """The library could not read or write the log: path, reason."""

    def __str__(self) -> str:
        return f"the log of the Delta table {self.args[0]!r}: {self.args[1]}"
