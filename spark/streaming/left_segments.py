"""The segments of known files that a query's process has left behind when it ended.

Decides that one is needless which was there when this process began, and which no plan refers to
once this process has made one: a plan that another process makes later goes on behind that plan,
whatever it had written before. Runs where Spark asks for offsets.
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
        """Once a plan was made here: remove what no state of an enumerator refers to, by version
        and state; what cannot be told or removed now is left to the next process.
        """
        left, self._left = self._left, set()
        with contextlib.suppress(OSError, ValueError, KeyError):
            if left:
                for version, (state, _) in states:
                    named = self._source.files_of(version, state)
                    left -= {name.rpartition("/")[2] for name in named}
                self._segments.remove(sorted(left))
