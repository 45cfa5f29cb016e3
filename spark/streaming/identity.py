"""The identity of one batch of one query: ids that stay the same in every replay.

Decides how a checkpoint location is written, what stands for the offsets of a batch, and how the
runs are called under whose names tasks stage. The query's id and the batch's come from Spark, in
the properties of every task; the location from the options. Runs in tasks and beside the driver.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
from dataclasses import dataclass

QUERY_ID = "sql.streaming.queryId"
BATCH_ID = "streaming.sql.batchId"
_LOCAL = re.compile(r"file:(//)?(?=/)")


@dataclass(frozen=True)
class BatchIdentity:
    """One batch: the query's id, or the name that stands for it; its number; the checkpoint
    location; and what stands for its offsets, "" where they cannot be read from here.
    """

    query: str
    batch: int
    location: str
    offsets: str = ""


def location_of(path: str) -> str:
    """A checkpoint location as one text, however it was written.

    >>> location_of("file:///data/check/"), location_of("/data//check")
    ('/data/check', '/data/check')
    >>> location_of("s3a://bucket/check/")
    's3a://bucket/check'
    """
    path = _LOCAL.sub("", path)
    return path.rstrip("/") if "://" in path else os.path.abspath(path)


def offsets_of(location: str, batch: int) -> str:
    """A digest of what Spark has logged as the batch's offsets, with its time and watermark: it is
    written once, before the batch first runs. "" for a location that is no mounted directory.
    """
    if "://" in location:
        return ""
    path = os.path.join(location, "offsets", str(batch))
    with contextlib.suppress(FileNotFoundError), open(path, "rb") as file:
        return hashlib.sha256(file.read()).hexdigest()[:32]
    return ""


def run_id(query: str, batch: int, nonce: str) -> str:
    """Return the name by which tasks stage for a batch: `nonce` is another one for each try of it.

    >>> run_id("5f0c", 7, "ab12")
    '5f0c-7-ab12'
    """
    return f"{prefix_of(query)}{batch}-{nonce}"


def prefix_of(query: str) -> str:
    """Return the prefix of the names of all runs of a query; letters, digits and '-' alone."""
    return re.sub(r"[^0-9A-Za-z]", "", query) + "-"


def counter_of(query: str) -> str:
    """The application id by which a Delta log counts the batches that the sink has committed.

    Delta's own sink and `DeltaLedger` use the query's id, and the number of the last batch where
    the sink has 1 more.

    >>> counter_of("5f0c")
    '5f0c/batches'
    """
    return f"{query}/batches"


def is_swept(run: str, query: str, batch: int) -> bool:
    """Return whether what this run has staged is of the query, and of this batch or one before.

    >>> is_swept("5f0c-7-ab12", "5f0c", 7), is_swept("5f0c-8-cd34", "5f0c", 7)
    (True, False)
    """
    prefix = prefix_of(query)
    number = run.removeprefix(prefix).partition("-")[0]
    return run.startswith(prefix) and number.isdigit() and int(number) <= batch
