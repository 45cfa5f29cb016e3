"""What can be wrong with a table of PostgreSQL as a target, one exception type per cause.

Every type keeps its facts as constructor arguments, so it survives being pickled between processes.
No message shows a password.
"""

from __future__ import annotations

from epochgate.errors import EpochgateError, UsageError
from epochgate.runtime import AheadOfCheckpoint, CommitImpossible


class DsnUnreadable(UsageError):
    """The connection string cannot be taken apart. It is not shown, since it may hold a password:
    the place at which reading ends is often within it.
    """

    def __str__(self) -> str:
        return (
            "the connection string of the PostgreSQL database cannot be read, and is not shown "
            "here, because it may hold a password. In a URL, write a '%' of a password as %25, a "
            "blank as %20, '@' as %40, '/' as %2F; in the form key=value, put a value with blanks "
            "between single quotes. A passfile=... instead of a password needs none of that."
        )


class ColumnReserved(EpochgateError):
    """A column of the rows is one that the sink writes itself: table, where, column."""

    def __str__(self) -> str:
        table, where, column = self.args
        return (
            f"the rows of {where} for the PostgreSQL table {table} have a column {column!r}, which "
            "this sink fills in itself. Leave it out in the transform, or give it another name. "
            "Nothing of them has become visible."
        )


class DatabaseUnreachable(UsageError):
    """No connection at the start of a job: the database, the driver's reason."""

    def __str__(self) -> str:
        return (
            f"cannot connect to PostgreSQL ({self.args[0]}): {self.args[1].strip()}. Check the "
            "connection string, and that the driver and the tasks reach the server."
        )


class RelationUnusable(UsageError):
    """The table cannot be a target: its name, what was found, the way on."""

    def __str__(self) -> str:
        table, found, way_on = self.args
        return f"cannot write to the PostgreSQL table {table}: {found}. {way_on}"


class RelationAhead(AheadOfCheckpoint):
    """The table holds checkpoints newer than the restored: name, its last, restored."""

    def __str__(self) -> str:
        table, last, restored = self.args
        known = "no checkpoint" if restored is None else f"checkpoint {restored}"
        return (
            f"the PostgreSQL table {table} already holds checkpoint {last} of this job, which "
            f"starts from {known}: it would write the newer rows a second time. Give the "
            f"--checkpoint-dir (checkpoint_directory in Python) that holds checkpoint {last}, or "
            "another table. Where checkpoints were lost, a table with a column "
            "`epochgate_checkpoint bigint`, which no other job writes, has these rows deleted, if "
            f"it has rows that say they are of {known} or before."
        )


class RelationBehind(UsageError):
    """The ledger does not know a job that goes on: name, restored checkpoint."""

    def __str__(self) -> str:
        table, restored = self.args
        return (
            f"this job restores checkpoint {restored}, and the ledger beside the PostgreSQL "
            f"table {table} does not know it: earlier rows would be missing. Connect to the "
            "previous database, or start from the beginning with a new --checkpoint-dir "
            "(checkpoint_directory "
            "in Python)."
        )


class RelationTakenOver(EpochgateError):
    """A later driver of the job has claimed the table: name, this run."""

    def __str__(self) -> str:
        table, run = self.args
        return (
            f"run {run} may not commit to the PostgreSQL table {table}: a later driver of this job "
            "has claimed it. This driver was taken for dead and replaced; stop it. Nothing was "
            "changed."
        )


class RowsRefused(EpochgateError):
    """The database does not take rows: name, where they come from, its reason."""

    def __str__(self) -> str:
        table, where, reason = self.args
        return (
            f"the PostgreSQL table {table} refuses rows of {where}: {reason.strip()}\nNothing of "
            "them has become visible. Change the transform or the table, then start again."
        )


class RowsMissing(CommitImpossible):
    """Staged rows that a checkpoint promised are not there: name, checkpoint, expected, found."""

    def __str__(self) -> str:
        table, checkpoint, expected, found = self.args
        return (
            f"checkpoint {checkpoint} needs {expected} staged rows for the PostgreSQL table "
            f"{table}, and {found} are there. Was the staging table emptied, or the database "
            "restored from a backup? Nothing of this checkpoint has become visible."
        )


class RowsLeftOut(CommitImpossible):
    """The table takes other rows than it is given: name, where they are from, how many it is given,
    takes, and changes, and the triggers and rules that may do so.
    """

    def __str__(self) -> str:
        table, where, given, taken, changed, names = self.args
        done = f"changes {changed}" if given == taken else f"leaves out {given - taken}"
        cause = f"by {', '.join(names)}" if names else "and has no trigger or rule that would"
        return (
            f"the PostgreSQL table {table} {done} of {given} rows ({where}), {cause}. Disable "
            f"what does so (alter table {table} disable trigger ...), or let it pass the rows of "
            "application_name 'epochgate'; leave such rows out in the transform, or columns by "
            "--columns (columns in Python). Then start again. Nothing of these rows has become "
            "visible."
        )
