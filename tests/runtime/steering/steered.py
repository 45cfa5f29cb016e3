"""Drivers and updaters of a control, each a process of its own, on one store."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from epochgate.runtime.entries.stores import Entries, open_entries
from epochgate.runtime.steering import Deciding, Updating

CONTROL, QUERY = "pricing", "query-1"
INITIAL = {"limit": 900}


class Watched:
    """Entries that call `before` ahead of each request, with its kind and key, and `after` it."""

    def __init__(self, inner: Entries) -> None:
        self.inner = inner
        self.before: Callable[[str, str], None] = lambda kind, key: None
        self.after: Callable[[str, str], None] = lambda kind, key: None

    def get(self, key: str) -> bytes:
        found: bytes = self._done("get", key, lambda: self.inner.get(key))
        return found

    def create(self, key: str, data: bytes) -> None:
        self._done("create", key, lambda: self.inner.create(key, data))

    def delete(self, key: str) -> None:
        self._done("delete", key, lambda: self.inner.delete(key))

    def list(self, folder: str) -> list[str]:
        found: list[str] = self._done("list", folder, lambda: self.inner.list(folder))
        return found

    def sweep(self, folder: str) -> None:
        self.inner.sweep(folder)

    def place(self, key: str) -> str:
        return self.inner.place(key)

    def _done(self, kind: str, key: str, request: Callable[[], Any]) -> Any:
        self.before(kind, key)
        found = request()
        self.after(kind, key)
        return found


def entries_in(folder: Path) -> Entries:
    return open_entries(str(folder))


def driver(entries: Entries) -> Deciding:
    """A process that drives the query."""
    return Deciding(entries, "the store", CONTROL, QUERY, dict(INITIAL), now=lambda: 0.0)


def limit_of(entries: Entries, batch: int) -> Any:
    """With which limit a process that starts now runs a batch."""
    return driver(entries).decide(batch).value["limit"]


def update(entries: Entries, **changes: Any) -> int:
    """A process updates the control."""
    return Updating(entries, "the store", CONTROL, "a test", now=lambda: 0.0).update(changes)


def once(action: Callable[[], None], kind: str, part: str = "") -> Callable[[str, str], None]:
    """Return what a watched store calls: the action at the first such request."""
    is_done = False

    def call(request: str, key: str) -> None:
        nonlocal is_done
        if not is_done and request == kind and part in key:
            is_done = True
            action()

    return call
