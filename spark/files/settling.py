"""When a followed file counts as complete: once it has not changed for a while.

Decides by the file's own time stamp, or between two looks, since a clock of another machine may be
wrong. Where an object is there once it is complete, nothing has to be waited for. Changes nothing
but the list of files that are waited for; used on the driver.
"""

from __future__ import annotations

from typing import Final

from epochgate.spark.files.content import Stamp

SETTLE_S: Final = 5.0
WHOLE_OBJECTS: Final = ("s3://", "s3a://", "gs://")
"""Where objects are whole from the first; in Azure's stores a file may grow, as on a disk."""


def usual_settle_s(source: str, follow: bool) -> float:
    """How long a file must not have changed, unless that is said.

    >>> usual_settle_s("/in", True), usual_settle_s("s3://bucket/in", True)
    (5.0, 0.0)
    """
    return SETTLE_S if follow and not source.startswith(WHOLE_OBJECTS) else 0.0


def is_settled(
    settling: dict[str, tuple[Stamp, float]],
    path: str,
    stamp: Stamp,
    patience_s: float,
    now: float,
) -> bool:
    """Whether the file has been as it is for so long; `settling` has since when others have."""
    if patience_s <= 0 or now - stamp.modified_ns / 1e9 >= patience_s:
        return True
    before, since = settling.get(path, (None, now))
    if before != stamp:
        since = now
    settling[path] = (stamp, since)
    return now - since >= patience_s
