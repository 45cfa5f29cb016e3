"""The query that a batch belongs to: the id that Spark keeps in the query's checkpoint location.

Spark tells a function of `foreachBatch` by a property of the thread that it runs on, and tells one
on a Spark Connect server nothing; there the location has to be named. Runs where Spark calls the
function.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from typing import Any, Final

from epochgate.runtime.entries.waits import USUAL
from epochgate.runtime.limited import limited
from epochgate.runtime.objects.client import ObjectStore, is_remote, is_url, open_url
from epochgate.runtime.steering.errors import QueryUnknown

QUERY_ID: Final = "sql.streaming.queryId"
_METADATA: Final = "metadata"


def query_of(
    frame: Any, checkpoint: str | None, open_objects: Callable[[str], ObjectStore] = open_url
) -> str:
    """The id of the query whose batch `frame` is. Raises QueryUnknown."""
    if checkpoint is not None:
        return query_at(checkpoint, open_objects)
    found = _property_of(frame)
    if found is None:
        raise QueryUnknown(
            "Spark does not say which query this batch belongs to (on Spark Connect it never "
            "does); give the query's checkpoint location: control.apply(function, "
            'checkpoint="...")'
        )
    return found


def query_at(checkpoint: str, open_objects: Callable[[str], ObjectStore] = open_url) -> str:
    """The id of the query that has this checkpoint location. Raises QueryUnknown."""
    try:
        text = limited(
            f"reading {checkpoint!r}", USUAL.store, lambda: _metadata(checkpoint, open_objects)
        )
        found = json.loads(text)["id"]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise QueryUnknown(
            f"{checkpoint!r} holds no query ({type(error).__name__}: {error}); give the location "
            "that the query has as its option checkpointLocation"
        ) from error
    return str(found)


def _metadata(checkpoint: str, open_objects: Callable[[str], ObjectStore]) -> bytes:
    if is_url(checkpoint):
        return open_objects(checkpoint).get(_METADATA)
    path = checkpoint.removeprefix("file://")
    if is_remote(path):
        raise QueryUnknown(
            f"{checkpoint!r} cannot be read from here; a checkpoint location that is named to a "
            "control is a path, or a URL that begins with s3://, gs:// or abfss://"
        )
    with open(os.path.join(path, _METADATA), "rb") as file:
        return file.read()


def _property_of(frame: Any) -> str | None:
    context = getattr(frame.sparkSession, "_sc", None)
    return None if context is None else context.getLocalProperty(QUERY_ID)
