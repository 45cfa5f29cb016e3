"""What can be wrong with an Iceberg table as a target, one exception type per cause.

Every type keeps its facts as constructor arguments, so it survives being pickled between processes.
"""

from __future__ import annotations

from epochgate.errors import EpochgateError, UsageError
from epochgate.runtime import AheadOfCheckpoint


class CatalogUnusable(UsageError):
    """The catalog cannot be used: its name, the reason."""

    def __str__(self) -> str:
        name, reason = self.args
        return (
            f"cannot use the Iceberg catalog {name!r}: {reason}. Describe it in .pyiceberg.yaml, "
            f"or by PYICEBERG_CATALOG__{name.upper()}__URI and ..__WAREHOUSE in the environment "
            "(properties of IcebergSink in Python)."
        )


class TableUnusable(UsageError):
    """The table has a property that this sink cannot honour: the table, the property, a way on."""

    def __str__(self) -> str:
        table, found, way_on = self.args
        return f"cannot write to the Iceberg table {table}: {found}. {way_on}"


class TableAhead(AheadOfCheckpoint):
    """The table holds checkpoints newer than the restored: the table, its last, restored."""

    def __str__(self) -> str:
        table, last, restored = self.args
        known = "no checkpoint" if restored is None else f"checkpoint {restored}"
        return (
            f"the Iceberg table {table} already holds checkpoint {last} of this job, which starts "
            f"from {known}: it would write the newer rows a second time. Give the "
            f"--checkpoint-dir (checkpoint_directory in Python) that holds checkpoint {last}, or a "
            "new table."
        )


class TableBehind(UsageError):
    """The restored state belongs to a table that is gone: the table, restored checkpoint."""

    def __str__(self) -> str:
        table, restored = self.args
        return (
            f"this job restores checkpoint {restored}, and {table} is not the Iceberg table to "
            "which it has committed: earlier rows would be missing. Restore that table, or "
            "start from the beginning with a new --checkpoint-dir (checkpoint_directory in Python)."
        )


class TableRolledBack(UsageError):
    """The table's main branch was set back behind a commit of the job: the table, checkpoint."""

    def __str__(self) -> str:
        table, checkpoint = self.args
        return (
            f"the Iceberg table {table} was set back: checkpoint {checkpoint} of this job is "
            "committed, and its snapshot is not in the history of the branch main any more, so its "
            "rows are missing. Set main forward to a snapshot that has it, or start again as it "
            "is: the refusal of the start names the ways on."
        )


class TableTakenOver(EpochgateError):
    """A later driver of the job has claimed the table: the table, this run."""

    def __str__(self) -> str:
        table, run = self.args
        return (
            f"run {run} may not commit to the Iceberg table {table}: a later driver of this job "
            "has claimed it. This driver was taken for dead and replaced; stop it. Nothing was "
            "changed."
        )


class TableOvertaken(EpochgateError):
    """Another commit has come between the look at the table and this one: the table, reason."""

    def __str__(self) -> str:
        return f"the Iceberg table {self.args[0]} has changed: {self.args[1]}"


class OutcomeUnknown(EpochgateError):
    """The catalog or a file failed, so what was asked for may be done or not: the table, reason."""

    def __str__(self) -> str:
        return f"the Iceberg table {self.args[0]}: {self.args[1]}"
