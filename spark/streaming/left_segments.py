"""The segments of known files that a query's process has left behind when it ended.

The machine `batch_plan` decides when they are removed: once a plan of this process counts, after
which no other process plans from what it had before. Finds those that were there when this process
began and that no plan refers to. Runs where Spark asks for offsets.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable
from typing import Any

from epochgate.runtime.source import Source
from epochgate.spark.files.known_segments import KnownSegments


class LeftSegments:
    """Those of one stream, as of now. Raises OSError."""

    def __init__(self, segments: KnownSegments, source: Source) -> None:
        self._segments, self._source = segments, source
        self._left = {*segments.names()}

    def remove(self, states: Iterable[tuple[int, Any]]) -> None:
        """Remove, once, what no state of an enumerator refers to; each state comes with its
        version. What cannot be read or removed now is left to the next process.
        """
        left, self._left = self._left, set()
        with contextlib.suppress(OSError, ValueError, KeyError):
            if left:
                for version, (state, _) in states:
                    named = self._source.files_of(version, state)
                    left -= {name.rpartition("/")[2] for name in named}
                self._segments.remove(sorted(left))
