"""`foreachBatch(once(ledger, function))`: a function that is called once for each batch.

Decides nothing: the machine of the sink's commits does, and the function takes the place of the
table. Runs where Spark calls functions of `foreachBatch`: in the driver's Python, or with Spark
Connect in a process of the server. Holds plain values alone, so it can be pickled.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from epochgate.runtime.limited import limited
from epochgate.spark.streaming.batch_commit import COMMIT_TIMEOUT_S, BatchCommit, commit_limit
from epochgate.spark.streaming.errors import NoQuery, OnceUnusable
from epochgate.spark.streaming.identity import BatchIdentity, location_of, offsets_of
from epochgate.spark.streaming.ledgers import Ledger
from epochgate.spark.streaming.noted_target import NotedTarget
from epochgate.spark.streaming.options import Accepted, batches
from epochgate.spark.streaming.running_query import id_in_spark, require_location

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def once(
    ledger: Ledger,
    function: Callable[..., Any],
    *,
    query: str = "",
    checkpoint: str = "",
    moved_from: str = "",
    replaces: str = "",
    late_start: bool = False,
    give_up: str = "",
    commit_timeout_s: float = COMMIT_TIMEOUT_S,
) -> Callable[[DataFrame, int], None]:
    """Return a function for `foreachBatch` that calls `function` once for each batch.

    It calls `function(df, batch)`, or `function(df, batch, transaction)` if the ledger has a
    transaction, unless the ledger has the batch.

    query: a name of the query, the same at each start and unique in the ledger; by default Spark's
    query id, which is unknown with Spark Connect. checkpoint: the query's checkpoint location; with
    it, a copied or emptied location is refused. moved_from: the previous location, if it was moved.
    replaces: the id of the query that had this location, to run its batches again. late_start:
    earlier batches of the query were written without the ledger. give_up: "FIRST-LAST", batches
    that the ledger lacks since it was set back, and that are lost. commit_timeout_s: how many
    seconds the ledger may take to be read and to be written; `function` has no limit, and is named
    in a warning from a minute on.

    The returned function raises BatchRefused if a batch would be repeated or left out,
    LocationTemporary if the query has no checkpoint location, LocationDiffers if `checkpoint` is
    not the location of the query, and the errors of `function`.

    Raises OnceUnusable and OptionsWrong.
    """
    _insist_on_call(ledger, function)
    return Once(
        ledger,
        function,
        query,
        location_of(checkpoint) if checkpoint else "",
        Accepted(moved_from, replaces, late_start, batches("give_up", give_up)),
        commit_timeout_s,
    )


@dataclass(frozen=True)
class Once:
    """The function that `once` returns."""

    ledger: Ledger
    function: Callable[..., Any]
    query: str
    location: str
    accepted: Accepted
    commit_timeout_s: float = COMMIT_TIMEOUT_S

    def __call__(self, df: DataFrame, batch: int) -> None:
        """Process one batch."""
        require_location(df, self.location)
        query = self.query or query_of(df)
        limit = commit_limit(self.commit_timeout_s)
        target, accepts, held = limited(
            f"the ledger of batch {batch}", limit, lambda: self._begun(query, df, batch)
        )
        commit = BatchCommit(target, timeout_s=self.commit_timeout_s, calls_user=True)
        commit.commit(batch, accepts, held)

    def _begun(self, query: str, df: DataFrame, batch: int) -> tuple[NotedTarget, int, int]:
        location = self.location or f"query {query}"
        offsets = offsets_of(self.location, batch) if self.location else ""
        identity = BatchIdentity(query, batch, location, offsets)
        ledger, call = self.ledger, functools.partial(self.function, df, batch)
        notes = ledger.notes()
        target = NotedTarget(ledger, notes, identity, lambda own: ledger.call(query, batch, call))
        return target, *self.accepted.code(notes.read(), query, location, batch)


def _insist_on_call(ledger: Any, function: Any) -> None:
    if not isinstance(ledger, Ledger) or not callable(function):
        wrong = repr(function) if isinstance(ledger, Ledger) else repr(ledger)
        raise OnceUnusable(
            "`once` takes a ledger first and a function second, as in "
            f'once(DirectoryLedger("ledger"), write); {wrong} is none'
        )
    if ledger.third is None:
        return
    given = ["df", "batch", *([ledger.third] if ledger.third else [])]
    try:
        signature = inspect.signature(function)
    except ValueError:
        return  # a function that is built in may show none
    try:
        signature.bind(*given)
    except TypeError:
        name = getattr(function, "__qualname__", repr(function))
        raise OnceUnusable(
            f"with {type(ledger).__name__} the function is called as function({', '.join(given)}), "
            f"and it is {name}{signature}. With a control, write "
            "once(ledger, control.apply(function))"
        ) from None


def query_of(df: DataFrame) -> str:
    """Return the id of the batch's query, which Spark sets for its thread. Raises NoQuery."""
    found = id_in_spark(df)
    if found is None:
        raise NoQuery(
            "the id of the query is unknown: Spark Connect does not tell it, and there is none "
            'outside of foreachBatch. Name the query: once(ledger, function, query="orders")'
        )
    return found
