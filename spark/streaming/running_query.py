"""The part of the query that a batch belongs to which Spark knows: its id, and where its checkpoint
lies.

Spark sets the id for the thread on which it calls a function of `foreachBatch`, and keeps the
queries that run by their ids. With Spark Connect the function runs in another process, which is
told neither. Runs where Spark calls the function.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, Final

from py4j.protocol import Py4JError

from epochgate.spark.streaming.errors import LocationDiffers, LocationTemporary
from epochgate.spark.streaming.identity import QUERY_ID, location_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_TEMPORARY: Final = "temporary-"
"""How the name of the directory begins that Spark makes for a query without a location."""


def id_in_spark(df: DataFrame) -> str | None:
    """The id of the query; none where Spark does not tell it."""
    context = getattr(df.sparkSession, "_sc", None)
    found = None if context is None else context.getLocalProperty(QUERY_ID)
    return None if found is None else str(found)


def location_in_spark(df: DataFrame) -> str | None:
    """The checkpoint location of the query, as `location_of` writes it; none where Spark does not
    tell it.
    """
    query = id_in_spark(df)
    if query is None:
        return None
    session: Any = df.sparkSession  # of classic Spark
    try:
        jvm = session.sparkContext._jvm
        running = session._jsparkSession.sharedState().activeStreamingQueries()
        root = running.get(jvm.java.util.UUID.fromString(query)).resolvedCheckpointRoot()
    except (Py4JError, AttributeError):
        # These are internals of Spark: one that lacks them tells no location.
        return None
    return location_of(str(root))


def require_location(df: DataFrame, given: str) -> None:
    """LocationTemporary for a query without a checkpoint location, and LocationDiffers if `given`
    is another than that of the query; "" for none that was given.
    """
    found = location_in_spark(df)
    if found is None:
        return
    if os.path.basename(found).startswith(_TEMPORARY):
        raise LocationTemporary(found)
    if given and given != found:
        raise LocationDiffers(given, found)
