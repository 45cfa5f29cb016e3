"""The future of a coordinator's snapshot, which notices when no code can complete it any more."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from typing import Any


class SnapshotFuture(Future[bytes]):
    """Calls `dropped(*arguments)` when it is garbage while still undone: on whichever thread drops
    it, possibly within the garbage collector, so `dropped` must neither wait nor take a lock.
    """

    def __init__(self, dropped: Callable[..., None], *arguments: Any) -> None:
        super().__init__()
        self._dropped, self._arguments = dropped, arguments

    def __del__(self) -> None:
        if not self.done():
            self._dropped(*self._arguments)
