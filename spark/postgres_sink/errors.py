"""Errors of a table of PostgreSQL as a target, one exception type per cause.

Every type keeps its facts as constructor arguments, so it survives being pickled between processes.
No message shows a password.
"""

from __future__ import annotations

from epochgate.errors import EpochgateError, UsageError
from epochgate.runtime import CommitImpossible


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
