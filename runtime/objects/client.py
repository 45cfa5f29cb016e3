"""One place in an object store, and the operations on it.

Decides how errors of the client library are told (as `OSError`s), and that a store which does not
keep its word about conditions is refused before anything depends on it. Leaves to others what is
stored. Credentials, region and endpoint come from the environment, as the vendors name them
(AWS_ACCESS_KEY_ID, AWS_ENDPOINT_URL and so on), so that no secret travels with a job.
Used on the driver and in tasks, on any thread.
"""

from __future__ import annotations

import contextlib
import errno
import os
import uuid
from collections.abc import Iterator
from typing import Any, Final, Protocol

from epochgate.errors import UsageError
from epochgate.runtime.filesystem import WritableFile

SCHEMES: Final = ("s3", "s3a", "gs", "az", "abfs", "abfss")
"""Of URLs that are opened here; the last three are Azure's."""

_PROBES: Final = "_epochgate/probes"


class ObjectStoreError(OSError):
    """A request has failed, after what the client has tried by itself: key, what the store said."""

    def __str__(self) -> str:
        return f"{self.strerror} (object {self.filename!r})"


class ObjectStoreUnusable(UsageError):
    """The URL cannot be opened, or the store behind it not be used: URL, reason."""

    def __str__(self) -> str:
        return (
            f"cannot use {self.args[0]!r}: {self.args[1]}. Check the URL, and in the environment "
            "the credentials, the region and the endpoint (AWS_ACCESS_KEY_ID, "
            "AWS_SECRET_ACCESS_KEY, AWS_REGION, AWS_ENDPOINT_URL for s3://)."
        )


class ConditionsIgnored(UsageError):
    """The store overwrites an object that was to be created only if it is not there: URL."""

    def __str__(self) -> str:
        return (
            f"the store behind {self.args[0]!r} ignores conditions: an object that was to be "
            "created only if it is not there (If-None-Match) was overwritten. Two drivers could "
            "both commit there, and rows would be lost or doubled, so nothing was started. Use a "
            "store with conditional writes, such as Amazon S3, Google Cloud Storage, Azure, MinIO "
            "or SeaweedFS."
        )


class ObjectStore(Protocol):
    """What is below one URL, by keys relative to it. Every operation may raise `OSError`."""

    @property
    def url(self) -> str:
        """Where it is, for messages."""

    def get(self, key: str) -> bytes:
        """The whole object; `FileNotFoundError` if there is none."""

    def get_range(self, key: str, offset: int, length: int) -> bytes:
        """`length` bytes from `offset`; `FileNotFoundError` if there is no object."""

    def size(self, key: str) -> int:
        """The object's bytes; `FileNotFoundError` if there is none."""

    def put(self, key: str, data: bytes) -> None:
        """Replace the object, all or nothing."""

    def create(self, key: str, data: bytes) -> None:
        """Make the object, all or nothing; `FileExistsError` if there is one."""

    def delete(self, key: str) -> None:
        """Remove the object, if there is one."""

    def list(self, folder: str) -> list[str]:
        """The keys below `folder`, sorted."""

    def upload(self, key: str) -> WritableFile:
        """Write an object in pieces; it is there once the file is closed."""


def is_url(path: str) -> bool:
    """Whether `path` is a URL of an object store.

    >>> is_url("s3://bucket/out"), is_url("/data/out"), is_url("file:///data/out")
    (True, False, False)
    """
    return path.partition("://")[0] in SCHEMES and "://" in path


def open_url(url: str) -> ObjectStore:
    """The objects below `url`. Raises ObjectStoreUnusable."""
    try:
        from obstore.store import from_url
    except ImportError as error:
        reason = "the package obstore is missing; install epochgate[objects]"
        raise ObjectStoreUnusable(url, reason) from error
    endpoint = os.environ.get("AWS_ENDPOINT_URL_S3") or os.environ.get("AWS_ENDPOINT_URL", "")
    options: Any = {"allow_http": True} if endpoint.startswith("http://") else {}
    try:
        return ObstoreObjects(url, from_url(url, client_options=options))
    except Exception as error:  # the client has no root for what it raises
        raise ObjectStoreUnusable(url, str(error).partition("\n")[0]) from error


def require_conditions(objects: ObjectStore) -> None:
    """Try whether the store honours conditions, and shows what was written.

    Raises ConditionsIgnored or ObjectStoreUnusable.
    """
    probe = f"{_PROBES}/{uuid.uuid4().hex}"
    try:
        objects.create(probe, b"first")
        try:
            objects.create(probe, b"second")
        except FileExistsError:
            is_honoured = objects.get(probe) == b"first"
        else:
            is_honoured = False
        is_listed = probe in objects.list(_PROBES)
        objects.delete(probe)
    except OSError as error:
        raise ObjectStoreUnusable(objects.url, str(error)) from error
    if not is_honoured:
        raise ConditionsIgnored(objects.url)
    if not is_listed:
        raise ObjectStoreUnusable(objects.url, "it does not list an object that was just written")


class ObstoreObjects:
    """An `ObjectStore` on a store of the package obstore.

    Its operations raise FileNotFoundError, FileExistsError, or ObjectStoreError for the rest.
    """

    def __init__(self, url: str, store: Any) -> None:
        self._url, self._store = url, store

    @property
    def url(self) -> str:
        """Where it is."""
        return self._url

    def get(self, key: str) -> bytes:
        """The whole object."""
        with _told(key):
            return bytes(self._store.get(key).bytes())

    def get_range(self, key: str, offset: int, length: int) -> bytes:
        """`length` bytes from `offset`."""
        with _told(key):
            return bytes(self._store.get_range(key, start=offset, length=length))

    def size(self, key: str) -> int:
        """The object's bytes."""
        with _told(key):
            return int(self._store.head(key)["size"])

    def put(self, key: str, data: bytes) -> None:
        """Replace the object."""
        with _told(key):
            self._store.put(key, data)

    def create(self, key: str, data: bytes) -> None:
        """Make the object, unless there is one."""
        with _told(key):
            self._store.put(key, data, mode="create", use_multipart=False)

    def delete(self, key: str) -> None:
        """Remove the object."""
        with _told(key), contextlib.suppress(FileNotFoundError):
            self._store.delete(key)

    def list(self, folder: str) -> list[str]:
        """The keys below `folder`."""
        with _told(folder):
            pages = self._store.list(folder)
            return sorted(found["path"] for page in pages for found in page)

    def upload(self, key: str) -> WritableFile:
        """Write an object in pieces."""
        from obstore import open_writer

        with _told(key):
            return _Upload(key, open_writer(self._store, key))


class _Upload:
    """A multipart upload; what makes it durable is its end."""

    def __init__(self, key: str, writer: Any) -> None:
        self._key, self._writer = key, writer

    def write(self, data: bytes) -> int:
        with _told(self._key):
            self._writer.write(data)
        return len(data)

    def fsync(self) -> None:
        """Nothing is durable before the end, and everything is after it."""

    def close(self) -> None:
        with _told(self._key):
            if not self._writer.closed():
                self._writer.close()


@contextlib.contextmanager
def _told(key: str) -> Iterator[None]:
    from obstore import exceptions

    try:
        yield
    except (exceptions.AlreadyExistsError, exceptions.PreconditionError) as error:
        raise FileExistsError(errno.EEXIST, "the object is there already", key) from error
    except FileNotFoundError as error:
        raise FileNotFoundError(errno.ENOENT, "there is no such object", key) from error
    except exceptions.BaseError as error:
        said = str(error).partition("\n")[0]
        raise ObjectStoreError(errno.EIO, said, key) from error
