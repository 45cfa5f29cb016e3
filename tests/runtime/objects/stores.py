"""Object stores in memory, and one that lies."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from obstore.store import MemoryStore

from epochgate.runtime.objects.client import ObjectStatus, ObjectStore, ObstoreObjects


class Memory:
    """The memory that outlives drivers: for each URL the objects below it."""

    def __init__(self) -> None:
        self.stores: dict[str, MemoryStore] = {}

    def open(self, url: str) -> ObjectStore:
        return ObstoreObjects(url, self.stores.setdefault(url, MemoryStore()))


class Lying(ObstoreObjects):
    """Ignores conditions."""

    def create(self, key: str, data: bytes) -> None:
        self.put(key, data)


class Forgetful(ObstoreObjects):
    """Does not list what was just written."""

    def list(self, folder: str) -> list[str]:
        return []


class Observed(Memory):
    """Opens stores that count the requests for objects, and fail where `before` raises.

    before: called with the kind of a request and its key, ahead of it.
    """

    def __init__(self) -> None:
        super().__init__()
        self.requests: list[tuple[str, str]] = []
        self.before: Callable[[str, str], None] = lambda kind, key: None

    def open(self, url: str) -> ObjectStore:
        return _Observed(self, url, self.stores.setdefault(url, MemoryStore()))

    def note(self, kind: str, key: str) -> None:
        self.requests.append((kind, key))
        self.before(kind, key)


class _Observed(ObstoreObjects):
    def __init__(self, memory: Observed, url: str, store: MemoryStore) -> None:
        super().__init__(url, store)
        self._memory = memory

    def get_range(self, key: str, offset: int, length: int, etag: str = "") -> bytes:
        self._memory.note("get", key)
        return super().get_range(key, offset, length, etag)

    def status(self, key: str) -> ObjectStatus:
        self._memory.note("head", key)
        return super().status(key)

    def find(self, folder: str, after: str = "") -> Iterator[ObjectStatus]:
        self._memory.note("list", folder)
        return super().find(folder, after)
