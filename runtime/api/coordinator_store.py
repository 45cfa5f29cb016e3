"""The store by which the coordinators of one job tell each other: values under keys, in the
driver's memory.

Decides nothing and keeps nothing: a value lives until it is removed or the job is over, survives
failovers, and is gone when the driver is. What has to be exactly once belongs into a coordinator's
checkpoint; here belong listeners, current watermarks, the coordinator to hand something to. Source:
Apache Flink's CoordinatorStore.

Any thread; each method is atomic, the functions given to the compute methods included.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable
from typing import Any


class CoordinatorStore:
    """Values under keys, shared by all coordinators of a job. None stands for "not there".

    >>> store = CoordinatorStore()
    >>> store.put_if_absent("listener", "first"), store.put_if_absent("listener", "second")
    (None, 'first')
    >>> store.compute("watermark", lambda old: max(old or 0, 7))
    7
    """

    def __init__(self) -> None:
        # Reentrant, so that a function given to `compute` may look something up.
        self._lock = threading.RLock()
        self._values: dict[Hashable, Any] = {}

    def get(self, key: Hashable) -> Any:
        """Return the value under `key`, None when there is none."""
        with self._lock:
            return self._values.get(key)

    def contains(self, key: Hashable) -> bool:
        """Say whether there is a value under `key`."""
        with self._lock:
            return key in self._values

    def put(self, key: Hashable, value: Any) -> Any:
        """Set the value and return the one before; None removes it."""
        with self._lock:
            before = self._values.get(key)
            self._set(key, value)
            return before

    def put_if_absent(self, key: Hashable, value: Any) -> Any:
        """Set the value unless there is one; returns the one that was there, None if none was."""
        with self._lock:
            if (before := self._values.get(key)) is None:
                self._set(key, value)
            return before

    def compute(self, key: Hashable, change: Callable[[Any], Any]) -> Any:
        """Set what `change` makes of the value (None when there is none), and return that.

        None removes it. What `change` raises passes, and the value stays as it was.
        """
        with self._lock:
            value = change(self._values.get(key))
            self._set(key, value)
            return value

    def compute_if_present(self, key: Hashable, change: Callable[[Any], Any]) -> Any:
        """Like `compute` when there is a value; None, and nothing is called, when there is none."""
        with self._lock:
            return self.compute(key, change) if key in self._values else None

    def compute_if_absent(self, key: Hashable, make: Callable[[], Any]) -> Any:
        """Return the value under `key`, and make it first when there is none."""
        with self._lock:
            return self._values[key] if key in self._values else self.compute(key, lambda _: make())

    def remove(self, key: Hashable) -> Any:
        """Take the value out and return it; None when there was none."""
        return self.put(key, None)

    def fenced(self, is_open: Callable[[], bool]) -> CoordinatorStore:
        """Return another access to the same values, which changes nothing once `is_open()` is
        false.
        """
        return _FencedStore(self, is_open)

    def _set(self, key: Hashable, value: Any) -> None:
        if value is None:
            self._values.pop(key, None)
        else:
            self._values[key] = value


class _FencedStore(CoordinatorStore):
    def __init__(self, store: CoordinatorStore, is_open: Callable[[], bool]) -> None:
        self._lock, self._values = store._lock, store._values
        self._store, self._is_open = store, is_open

    def _set(self, key: Hashable, value: Any) -> None:
        if self._is_open():
            self._store._set(key, value)
