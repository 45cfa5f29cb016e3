"""Errors of a table as a target, whichever system it is of: one type for each cause.

Every type keeps its facts as constructor arguments, so it survives being pickled between processes.
The first one is the table, such as "the Delta table '/data/orders'".
"""

from __future__ import annotations

from epochgate.errors import EpochgateError, UsageError
from epochgate.runtime import AheadOfCheckpoint


class TableUnusable(UsageError):
    """The table is not there, or is one that this sink cannot write to: table, reason, way on."""

    def __str__(self) -> str:
        table, found, way_on = self.args
        return f"cannot write to {table}: {found}. {way_on}"


class TableAhead(AheadOfCheckpoint):
    """The table holds checkpoints newer than the restored: table, its last, the restored, what may
    be done instead of starting from the last.
    """

    def __str__(self) -> str:
        table, last, restored, way_on = self.args
        known = "no checkpoint" if restored is None else f"checkpoint {restored}"
        return (
            f"{table} already holds checkpoint {last} of this job, which starts from {known}: it "
            "would write the newer rows a second time. Give the --checkpoint-dir "
            f"(checkpoint_directory in Python) that holds checkpoint {last}, or {way_on}"
        )


class TableBehind(UsageError):
    """The restored state belongs to a table that is gone: table, restored checkpoint, way on."""

    def __str__(self) -> str:
        table, restored, way_on = self.args
        return (
            f"this job restores checkpoint {restored}, and has not committed to {table}: earlier "
            f"rows would be missing. {way_on}, or start from the beginning with a new "
            "--checkpoint-dir (checkpoint_directory in Python)."
        )


class TableTakenOver(EpochgateError):
    """A later driver of the job has claimed the table: table, this run."""

    def __str__(self) -> str:
        table, run = self.args
        return (
            f"run {run} may not commit to {table}: a later driver of this job has claimed it. This "
            "driver was taken for dead and replaced; stop it. Nothing was changed."
        )
