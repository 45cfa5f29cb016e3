"""Errors of an Iceberg table as a target, one exception type per cause.

Every type keeps its facts as constructor arguments, so it survives being pickled between processes.
"""

from __future__ import annotations

from epochgate.errors import EpochgateError, UsageError


class CatalogUnusable(UsageError):
    """The catalog cannot be used: its name, the reason."""

    def __str__(self) -> str:
        name, reason = self.args
        return (
            f"cannot use the Iceberg catalog {name!r}: {reason}. Describe it in .pyiceberg.yaml, "
            f"or by PYICEBERG_CATALOG__{name.upper()}__URI and ..__WAREHOUSE in the environment "
            "(properties of IcebergSink in Python)."
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


class TableOvertaken(EpochgateError):
    """Another commit has come between the look at the table and this one: the table, reason."""

    def __str__(self) -> str:
        return f"the Iceberg table {self.args[0]} has changed: {self.args[1]}"


class OutcomeUnknown(EpochgateError):
    """The catalog or a file failed, so what was asked for may be done or not: the table, reason."""

    def __str__(self) -> str:
        return f"the Iceberg table {self.args[0]}: {self.args[1]}"
