"""Errors that refuse a batch of a streaming query, one exception type for each cause.

Every type keeps its facts as constructor arguments, so it survives being pickled between processes.
"""

from __future__ import annotations

from epochgate.errors import EpochgateError, UsageError


class BatchRefused(EpochgateError):
    """A batch would duplicate rows or leave rows out. Nothing was changed."""


class LocationMoved(BatchRefused):
    """The query has committed from another checkpoint location: target, query, previous location,
    current location, batch, number of batches in the target.
    """

    def __str__(self) -> str:
        target, query, before, now, batch, number = self.args
        return (
            f"query {query} has committed {number} batches to {target} from the checkpoint "
            f"location {before!r}, and now commits batch {batch} from {now!r}. If one is a copy of "
            "the other, both would use the same batch numbers for different rows, so nothing was "
            "committed. For a separate query, use an empty checkpoint location. If you moved the "
            f'location, set .option("movedFrom", {before!r}) (moved_from of `once`): the query '
            f"then continues with batch {number}, and is refused at {before!r}."
        )


class LocationEmptied(BatchRefused):
    """The checkpoint location belongs to another query: target, query, previous query, location,
    number of batches of the previous query in the target.
    """

    def __str__(self) -> str:
        target, query, before, location, number = self.args
        replaces = f'.option("replaces", "{before}") (replaces of `once`)'
        if number == 0:
            return (
                f"the checkpoint location {location!r} was emptied: it belonged to query {before}, "
                f"of which {target} has no batch, and Spark has begun a new query, {query}. "
                "Nothing was committed. If you have emptied both to begin from the beginning, and "
                f"no driver of the previous query runs, set {replaces}: no row is written twice. "
                "To continue the previous query, restore the contents of the location and of the "
                "target."
            )
        return (
            f"the checkpoint location {location!r} was emptied: query {before} has committed "
            f"{number} batches to {target} from it. Spark has begun a new query, {query}, which "
            "would read its sources from the beginning and write these rows again. Nothing was "
            "committed. To continue, restore the contents of the location. For a separate query, "
            f"use another checkpoint location or another target. To write the rows again, set "
            f"{replaces}."
        )


class BatchesMissing(BatchRefused):
    """The target lacks batches before this one: target, query, batch, number of batches in the
    target, location ("" if it is not known).
    """

    def __str__(self) -> str:
        target, query, batch, number, location = self.args
        has = "no batch" if number == 0 else f"{number} batches"
        again = (
            f" To write them again, end the query, remove from {location}/commits the files of the "
            f"batches from {number} on and from {location}/offsets those from {number + 1} on, and "
            f"start it: this works while {location}/offsets/{number} is there and the sources have "
            "their rows."
        )
        late = (
            ' If they were written elsewhere, set .option("lateStart", "true") (late_start of '
            "`once`)."
        )
        return (
            f"query {query} commits batch {batch} to {target}, which has {has} of this query: the "
            "rows in between would be missing. The target was dropped, emptied or restored from a "
            "backup, or it is another target. Nothing was committed. Restore the target."
            f"{again if location else ''} To give their rows up, set "
            f'.option("giveUp", "{number}-{batch - 1}") (give_up of `once`).'
            f"{late if number == 0 else ''} Or start a new query with an empty checkpoint location "
            "and an empty target."
        )


class BatchesAhead(BatchRefused):
    """The target holds later batches: target, query, batch, number of batches in the target."""

    def __str__(self) -> str:
        target, query, batch, number = self.args
        empty = ", or one that was empty at the start" if batch == 0 else ""
        return (
            f"query {query} commits batch {batch} to {target}, which has its batches up to "
            f"{number - 1}. Either the checkpoint location is an older state (a backup, a "
            f"copy{empty}): restore the one that has batch {number - 1}. Or this driver was taken "
            "for dead and replaced: stop it. Nothing was committed."
        )


class OffsetsChanged(BatchRefused):
    """The batch was committed with other offsets: target, query, batch, location."""

    def __str__(self) -> str:
        target, query, batch, location = self.args
        return (
            f"batch {batch} of query {query} is in {target} with other offsets than those of "
            f"{location}/offsets/{batch}: the checkpoint location is an older state (a backup, a "
            "copy), and the same batch number was then used for other rows. Nothing was "
            f"committed. Restore the location that has the end of batch {batch}, or start a new "
            "query with an empty checkpoint location."
        )


class CountedElsewhere(BatchRefused):
    """The query has written to the Delta table in another way, which counts its batches otherwise:
    target, query, number of its batches.
    """

    def __str__(self) -> str:
        target, query, number = self.args
        return (
            f"query {query} has written {number} batches to {target} in another way: this sink, "
            "DeltaLedger of `once` and Delta's own sink do not know each other's batches, and the "
            "last one might be written twice. Nothing was committed. Continue as before, or use a "
            "new checkpoint location, and let the source begin where the previous query stopped."
        )


class TargetOfAnotherQuery(UsageError):
    """The directory of Parquet files belongs to another query: target, its query, this query."""

    def __str__(self) -> str:
        target, owner, query = self.args
        return (
            f"{target} holds Parquet files of {owner}, and this is {query}: such a directory "
            "belongs to one query, or to DataFrames. Nothing was committed. Give another path. "
            "If the checkpoint location is new and the rows are the same, use the previous "
            "location: a new one is a new query."
        )


class ColumnsDiffer(UsageError):
    """A batch has other columns than the target: target, columns of the target, of the batch."""

    def __str__(self) -> str:
        target, agreed, found = self.args
        return (
            f"the columns of the batch are not those of {target}.\n  target: {agreed}\n"
            f"  batch:  {found}\nA batch has every column, in the order of the target, also "
            "those without a value. Nothing of it is visible. Put them in order before writeStream "
            'or write, as in df.select("id", "amount"), or write to another target.'
        )


class OnceUnusable(UsageError):
    """An argument of `once` is not valid: what is wrong, and what to write."""


class LocationTemporary(UsageError):
    """The query has no checkpoint location, so Spark has made a temporary one: its path."""

    def __str__(self) -> str:
        return (
            f"the query has no checkpoint location: Spark keeps it in {self.args[0]!r}, which no "
            "other start uses. The next start would be a new query that reads its sources from "
            "the beginning, and `once` would call the function for rows that are written. The "
            'function was not called. Set .option("checkpointLocation", ...) on the query.'
        )


class LocationDiffers(UsageError):
    """`once` was given another checkpoint location than the query has: given, that of the query."""

    def __str__(self) -> str:
        given, found = self.args
        return (
            f"`once` was given checkpoint={given!r}, and the query has the checkpoint location "
            f"{found!r}: a copied or emptied location would not be noticed. The function was not "
            f"called. Give checkpoint={found!r}."
        )


class TransactionTaken(UsageError):
    """A function has asked for the transaction of its batch a second time: batch."""

    def __str__(self) -> str:
        return (
            f"the transaction of batch {self.args[0]} was taken before. Each write to a Delta "
            "table is a commit of its own, and the first one with the transaction is the batch: "
            "after a failure in between, the second write would never be made. If the first has "
            "taken effect, the batch counts as written, and rows of other writes have to be added "
            "by hand. Make one write of them (`unionByName`). To repeat a write that has failed, "
            "keep what properties() or options() returned."
        )


class TransactionUnused(UsageError):
    """A function has taken the transaction of its batch, and the log does not have it: path, batch,
    query.
    """

    def __str__(self) -> str:
        path, batch, query = self.args
        return (
            f"the function of batch {batch} of query {query} took the transaction and has "
            f"returned, and the log of {path} has no such entry. Either the write has failed and "
            "the function has caught the error, or the function has made no write. The batch is "
            "not recorded, and runs again. Let the error of the write leave the function; where a "
            "batch has nothing to write, call transaction.skip() instead of properties() or "
            "options()."
        )


class TransactionLost(UsageError):
    """The transaction that a function was given is not the one to commit any more: ledger, query,
    batch, what has ended it.
    """

    def __str__(self) -> str:
        ledger, query, batch, cause = self.args
        return (
            f"batch {batch} of query {query} cannot be committed to {ledger}: {cause}. The "
            "transaction with the entry of the batch was rolled back, and the batch runs again, "
            "unless the function has committed it: then it counts as written, with what came "
            "before that. Let errors leave the function, write what may fail inside `with "
            "connection.transaction():` (PostgreSQL), and neither commit, roll back nor close."
        )


class TransactionMissing(UsageError):
    """Rows of the ledger's table have changed without a transaction while a function ran that did
    not take the one of its batch: path, batch, the versions without one, the last before them.
    """

    def __str__(self) -> str:
        path, batch, versions, before = self.args
        if before is None:
            back = "Remove the table"
        else:
            back = f"Take back what it has written (`DeltaTable({path!r}).restore({before})`)"
        return (
            f"the function of batch {batch} has returned without having taken the transaction of "
            f"the batch, and the log of {path} has come to hold changes of rows without any "
            f"transaction, in version {', '.join(map(str, versions))}. If they are the function's, "
            "the rows would be written again after a failure. The batch is not recorded, and runs "
            "again. Pass transaction.properties() (deltalake) or transaction.options() (Spark's "
            f"Delta) to the write. {back} before you start the query again. If they are another "
            "writer's, and the function has nothing to write to this table, have it call "
            "transaction.skip(), and start the query again."
        )


class OptionsWrong(UsageError):
    """The options of the sink are incomplete or not valid."""


class NoQuery(UsageError):
    """The id of the query is unknown, for instance outside of `foreachBatch`."""
