"""The time at which a followed file counts as complete: once it has not changed for a while.

Decides by the file's own time stamp, or between two looks, since a clock of another machine may be
wrong. Where an object is there once it is complete, nothing has to be waited for. Used on the
driver.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from epochgate.spark.files.content import Stamp

SETTLE_S: Final = 5.0
TORN_PATIENCE: Final = 10
"""How many times as long a file must be unmodified that looks torn: then what cannot be read of it
is bad, and a last line without an end is a row.
"""
WHOLE_OBJECTS: Final = ("s3://", "s3a://", "gs://")
"""Where objects are whole from the first; in Azure's stores a file may grow, as on a disk."""


def usual_settle_s(source: str, follow: bool) -> float:
    """Return the seconds for which a file must not have changed, unless that is said.

    >>> usual_settle_s("/in", True), usual_settle_s("s3://bucket/in", True)
    (5.0, 0.0)
    """
    return SETTLE_S if follow and not source.startswith(WHOLE_OBJECTS) else 0.0


class Settling:
    """The files that may still be being written: path -> its stamp, and since when it has that.

    `settle_s`: how long a file must not have changed; `now`: seconds since 1970.
    """

    def __init__(self, settle_s: float, now: Callable[[], float]) -> None:
        self.settle_s, self._now = settle_s, now
        self.files: dict[str, tuple[Stamp, float]] = {}

    def copy(self) -> Settling:
        """The same, of which nothing is shared that changes."""
        other = Settling(self.settle_s, self._now)
        other.files = dict(self.files)
        return other

    def is_over(self, path: str, stamp: Stamp, *, looks_torn: bool = False) -> bool:
        """Return whether the file has been as it is for so long."""
        patience_s = self.settle_s * (TORN_PATIENCE if looks_torn else 1)
        now = self._now()
        if patience_s <= 0 or now - stamp.modified_ns / 1e9 >= patience_s:
            return True
        before, since = self.files.get(path, (None, now))
        if before != stamp:
            since = now
        self.files[path] = (stamp, since)
        return now - since >= patience_s

    def end(self, path: str) -> None:
        """Wait for the file no longer."""
        self.files.pop(path, None)
