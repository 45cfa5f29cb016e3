"""Object stores in memory, and one that lies."""

from __future__ import annotations

from obstore.store import MemoryStore

from epochgate.runtime.objects.client import ObjectStore, ObstoreObjects


class Memory:
    """What outlives drivers: for each URL the objects below it."""

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
