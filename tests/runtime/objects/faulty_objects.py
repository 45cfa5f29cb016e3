"""An object store made to fail, at any request that changes something; for tests, also users' own.

Passes everything on, counts the requests that change something, over all URLs that were opened
through it, and strikes where it is told to. A request whose answer is lost has been carried out:
that is what "after" means, and where commits go wrong.
"""

from __future__ import annotations

import errno
from collections.abc import Callable, Iterator, Sequence

from epochgate.runtime.filesystem import WritableFile
from epochgate.runtime.objects.client import ObjectStatus, ObjectStore
from epochgate.runtime.testing.faulty_filesystem import Fault, Operation, SimulatedCrash


class FaultyObjects:
    """Opens URLs by `open_url`, and strikes at one of all requests that change something.

    A fault of kind "crash" raises SimulatedCrash before or after its request, and from then on at
    each; one of kind "error" raises OSError once. Nothing is ever half done: "during" is "after".
    """

    def __init__(self, open_url: Callable[[str], ObjectStore], fault: Fault | None = None) -> None:
        self._open_url, self._fault = open_url, fault
        self._has_crashed = False
        self.operations: list[Operation] = []

    def open(self, url: str) -> ObjectStore:
        """Return what is below `url`."""
        return _Struck(self, self._open_url(url))

    def crash(self) -> None:
        """End the process that these requests are of."""
        self._has_crashed = True

    def require_alive(self) -> None:
        """Raises SimulatedCrash once the process has crashed."""
        if self._has_crashed:
            raise SimulatedCrash("the process of this object store's client has crashed")

    def change(self, name: str, key: str, do: Callable[[], None]) -> None:
        """Carry out one request, or let it fail. Raises SimulatedCrash or OSError."""
        self.require_alive()
        self.operations.append(Operation(name, key))
        fault = self._fault
        is_it = fault is not None and len(self.operations) == fault.at + 1
        if fault is None or not is_it:
            do()
            return
        if fault.when != "before":
            do()
        if fault.kind == "crash":
            self.crash()
            self.require_alive()
        raise OSError(errno.EIO, "the answer was lost, by order of the test", key)


class _Struck:
    def __init__(self, faults: FaultyObjects, inner: ObjectStore) -> None:
        self._faults, self._inner = faults, inner
        self.url = inner.url

    def get(self, key: str) -> bytes:
        self._faults.require_alive()
        return self._inner.get(key)

    def get_range(self, key: str, offset: int, length: int, etag: str = "") -> bytes:
        self._faults.require_alive()
        return self._inner.get_range(key, offset, length, etag)

    def status(self, key: str) -> ObjectStatus:
        self._faults.require_alive()
        return self._inner.status(key)

    def find(self, folder: str, after: str = "") -> Iterator[ObjectStatus]:
        self._faults.require_alive()
        return self._inner.find(folder, after)

    def size(self, key: str) -> int:
        self._faults.require_alive()
        return self._inner.size(key)

    def sizes(self, keys: Sequence[str]) -> list[int]:
        self._faults.require_alive()
        return self._inner.sizes(keys)

    def list(self, folder: str) -> list[str]:
        self._faults.require_alive()
        return self._inner.list(folder)

    def put(self, key: str, data: bytes) -> None:
        self._faults.change("put", key, lambda: self._inner.put(key, data))

    def create(self, key: str, data: bytes) -> None:
        self._faults.change("create", key, lambda: self._inner.create(key, data))

    def copy(self, key: str, to: str) -> None:
        self._faults.change("copy", to, lambda: self._inner.copy(key, to))

    def delete(self, key: str) -> None:
        self._faults.change("delete", key, lambda: self._inner.delete(key))

    def upload(self, key: str) -> WritableFile:
        self._faults.require_alive()
        return _StruckUpload(self._faults, key, self._inner.upload(key))


class _StruckUpload:
    """An upload; only its end changes anything that others can see."""

    def __init__(self, faults: FaultyObjects, key: str, inner: WritableFile) -> None:
        self._faults, self._key, self._inner = faults, key, inner
        self._is_closed = False

    def write(self, data: bytes) -> int:
        self._faults.require_alive()
        return self._inner.write(data)

    def fsync(self) -> None:
        self._inner.fsync()

    def close(self) -> None:
        if not self._is_closed:
            self._is_closed = True
            self._faults.change("upload", self._key, self._inner.close)
