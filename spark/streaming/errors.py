"""Why a batch of a streaming query is not committed, one exception type per cause.

Every type keeps its facts as constructor arguments, so it survives being pickled between processes.
"""

from __future__ import annotations

from epochgate.errors import EpochgateError, UsageError


class BatchRefused(EpochgateError):
    """A batch that would double rows or leave some out; nothing was changed."""


class LocationMoved(BatchRefused):
    """The query has committed from another checkpoint location: target, query, the location of
    before, that of now, batch, batches that are there.
    """

    def __str__(self) -> str:
        target, query, before, now, batch, number = self.args
        return (
            f"query {query} has committed {number} batches to {target} from the checkpoint "
            f"location {before!r}, and commits batch {batch} from {now!r} now. If that is a copy, "
            "both would give the same numbers to different rows, so nothing was committed. For a "
            "query of its own, give an empty checkpoint location. If the location was moved, set "
            f'.option("movedFrom", {before!r}) (moved_from of `once`): the query then goes on with '
            f"batch {number}, and is refused at the location of before."
        )


class LocationEmptied(BatchRefused):
    """The checkpoint location belongs to another query: target, query, the query of before, the
    location, batches of that query.
    """

    def __str__(self) -> str:
        target, query, before, location, number = self.args
        return (
            f"the checkpoint location {location!r} was emptied: query {before} has committed "
            f"{number} batches to {target} from it, and Spark has begun a new query, {query}, "
            "which would read its sources from the beginning and write these rows again. Nothing "
            "was committed. Bring the contents of the location back to go on; or give another "
            "checkpoint location or another target. If the rows are meant to be written again, "
            f'set .option("replaces", "{before}") (replaces of `once`).'
        )


class BatchesMissing(BatchRefused):
    """Batches before this one are not in the target: target, query, batch, batches that are."""

    def __str__(self) -> str:
        target, query, batch, number = self.args
        has = "no batch" if number == 0 else f"{number} batches"
        late = (
            ' If earlier batches went elsewhere on purpose, set .option("lateStart", "true") '
            "(late_start of `once`)."
        )
        return (
            f"query {query} commits batch {batch} to {target}, which has {has} of it: the rows in "
            "between would be missing. Was the target dropped, emptied or restored from a backup, "
            "or is it another one? Nothing was committed. Bring it back, or start a new query with "
            f"an empty checkpoint location.{late if number == 0 else ''}"
        )


class BatchesAhead(BatchRefused):
    """Later batches are in the target: target, query, batch, batches that are."""

    def __str__(self) -> str:
        target, query, batch, number = self.args
        return (
            f"query {query} commits batch {batch} to {target}, which has its batches up to "
            f"{number - 1}. Either the checkpoint location is an older state of itself (a backup, "
            f"a copy): bring back the one that has batch {number - 1}. Or this driver was taken "
            "for dead and replaced: let it end. Nothing was committed."
        )


class OffsetsChanged(BatchRefused):
    """The batch has taken effect with other offsets: target, query, batch, location."""

    def __str__(self) -> str:
        target, query, batch, location = self.args
        return (
            f"batch {batch} of query {query} is in {target} already, with other offsets than "
            f"{location}/offsets/{batch} has now: the checkpoint location is an older state of "
            "itself (a backup, a copy), and other rows were given the same number since. Bring "
            f"back the one that has the end of batch {batch}, or start a new query with an empty "
            "checkpoint location. Nothing was committed."
        )


class OptionsWrong(UsageError):
    """The options of the sink do not say where to write."""


class NoQuery(UsageError):
    """Something that belongs to a streaming query was called outside of one."""
