"""Hints from the order of names: the objects behind the greatest known key of a source.

For writers whose names grow, such as those that begin with a time. An object whose name does not is
behind the mark, and found by the next listing. Costs one request where nothing is new, however much
is known.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any, Final

from epochgate.runtime.objects.client import ObjectStore
from epochgate.spark.files.content import Stamp
from epochgate.spark.files.object_finding import bucket_and_key, root_of_url
from epochgate.spark.ingest.hints.hint import Heard, HintsFailed

EVERY_S: Final = 1.0
"""From one request to the next, as a source without hints is listed."""
NAMED_MAX: Final = 10_000
"""That are looked at before the next request."""


class NewerNames:
    """The objects of a source behind a mark; `mark`: the greatest key that is known, empty for
    none.
    """

    def __init__(self, source: str, mark: str, open_objects: Callable[[str], ObjectStore]) -> None:
        self._source, self._mark = source, mark
        self._bucket = bucket_and_key(source)[0]
        self._folder = bucket_and_key(root_of_url(source))[1]
        self._open_objects = open_objects
        self._objects: ObjectStore | None = None

    @property
    def name(self) -> str:
        """The source, and the mark."""
        return f"the listing of {self._source} behind {self._mark!r}"

    def hear(self, wait_s: float) -> Heard:
        """List what is behind the mark, after a second at most."""
        time.sleep(min(wait_s, EVERY_S))
        named: dict[str, Stamp | None] = {}
        try:
            if self._objects is None:
                self._objects = self._open_objects(self._bucket)
            for one in self._objects.find(self._folder, after=self._mark):
                stamp = Stamp(one.size_bytes, one.modified_ns, one.etag)
                named[f"{self._bucket}/{one.key}"] = stamp
                self._mark = one.key
                if len(named) >= NAMED_MAX:
                    break
        except OSError as error:
            raise HintsFailed(self.name, str(error)) from error
        return Heard(named)

    def confirm(self, receipts: Sequence[Any]) -> None:
        """Do nothing: the mark is behind them."""

    def close(self) -> None:
        """Do nothing: requests end by themselves."""
