"""Hints from the kernel on files of a local directory, through watchfiles.

The watch begins when hints are first asked for, so a listing has to come after it. What the kernel
leaves out, because too much has happened or a directory is on another machine, is found by the next
listing.
"""

from __future__ import annotations

import glob
import os
import threading
from collections.abc import Iterator, Sequence
from typing import Any, Final

from epochgate.spark.ingest.hints.hint import Heard, HintsFailed

STEP_MS: Final = 50
"""The kernel has nothing more to say for so long when hints are handed over."""
DEBOUNCE_MS: Final = 500


class InotifyHints:
    """The changes below the directory that a source is, or in which its pattern begins."""

    def __init__(self, source: str) -> None:
        root = source
        while glob.has_magic(root) or not os.path.isdir(root):
            root = os.path.dirname(root)
        self._root, self._is_closed = root, threading.Event()
        self._changes: Iterator[set[tuple[Any, str]]] | None = None

    @property
    def name(self) -> str:
        """The directory."""
        return f"inotify of {self._root}"

    def hear(self, wait_s: float) -> Heard:
        """Wait for changes; the first time, only begin to watch."""
        try:
            if self._changes is None:
                self._changes = self._watched(1)
                next(self._changes, None)
                return Heard()
            changes: set[tuple[Any, str]] = set()
            for _ in range(max(1, int(wait_s))):
                changes = next(self._changes, set())
                if changes or self._is_closed.is_set():
                    break
        except (OSError, RuntimeError) as error:
            self._changes = None
            raise HintsFailed(self.name, str(error)) from error
        return Heard(dict.fromkeys(path for _, path in changes))

    def _watched(self, wait_s: int) -> Iterator[set[tuple[Any, str]]]:
        from watchfiles import watch

        return watch(
            self._root,
            watch_filter=None,
            debounce=DEBOUNCE_MS,
            step=STEP_MS,
            stop_event=self._is_closed,
            rust_timeout=wait_s * 1000,
            yield_on_timeout=True,
            raise_interrupt=False,
        )

    def confirm(self, receipts: Sequence[Any]) -> None:
        """Do nothing: the kernel tells each change once."""

    def close(self) -> None:
        """End the watch."""
        self._is_closed.set()
