"""One place in an object store, and the operations on it.

Decides how errors of the client library are told (as `OSError`s), and that a store which does not
keep its word about conditions is refused before anything depends on it. Leaves to others what is
stored. Credentials, region and endpoint come from the environment, as the vendors name them
(AWS_ACCESS_KEY_ID, AWS_ENDPOINT_URL and so on), or from a profile in ~/.aws, so that no secret
travels with a job.
Used on the driver and in tasks, on any thread.
"""

from __future__ import annotations

import contextlib
import errno
import os
import uuid
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Final, Protocol

from epochgate.runtime.filesystem import WritableFile
from epochgate.runtime.objects.errors import (
    ConditionsIgnored,
    ObjectMissing,
    ObjectReplaced,
    ObjectStoreError,
    ObjectStoreRefused,
    ObjectStoreUnusable,
    is_refusal,
    what_was_said,
)
from epochgate.runtime.objects.profiles import settings_of_profile

SCHEMES: Final = ("s3", "s3a", "gs", "az", "abfs", "abfss")
"""Of URLs that are opened here; the last three are Azure's."""

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_PROBES: Final = "_epochgate/probes"
_PAGE: Final = 1000
_REQUESTS_AT_ONCE: Final = 16
_FIRST_TRIES: Final = 3
_FIRST_PATIENCE: Final = timedelta(seconds=10)


@dataclass(frozen=True)
class ObjectStatus:
    """The entry of an object in a listing: its key, bytes, time stamp in ns since 1970, and ETag.

    An ETag is another whenever the object is; that of an object which was uploaded in parts is no
    hash of its content.
    """

    key: str
    size_bytes: int
    modified_ns: int
    etag: str


class ReadableObjects(Protocol):
    """The objects below one URL, by keys relative to it. Every operation may raise `OSError`."""

    @property
    def url(self) -> str:
        """The place of the store, for messages."""

    def get_range(self, key: str, offset: int, length: int, etag: str = "") -> bytes:
        """`length` bytes from `offset`; `FileNotFoundError` if there is no object, `ObjectReplaced`
        if it is not the one with this ETag, where one is given.
        """

    def status(self, key: str) -> ObjectStatus:
        """Return what a listing would tell of the object; `FileNotFoundError` if there is none."""

    def find(self, folder: str) -> Iterator[ObjectStatus]:
        """List the objects below `folder`, in the order of the keys' bytes; a page at a time."""


class ObjectStore(ReadableObjects, Protocol):
    """The objects below one URL, to be written too."""

    def find(self, folder: str, after: str = "") -> Iterator[ObjectStatus]:
        """List the objects below `folder`, of keys greater than `after`; else as above."""

    def get(self, key: str) -> bytes:
        """The whole object; `FileNotFoundError` if there is none."""

    def size(self, key: str) -> int:
        """The object's bytes; `FileNotFoundError` if there is none."""

    def sizes(self, keys: Sequence[str]) -> list[int]:
        """The bytes of each object; `FileNotFoundError` with the first key that has none."""

    def put(self, key: str, data: bytes) -> None:
        """Replace the object, all or nothing."""

    def create(self, key: str, data: bytes) -> None:
        """Make the object, all or nothing; `FileExistsError` if there is one."""

    def copy(self, key: str, to: str) -> None:
        """Make a copy within the store, in place of an object that is there."""

    def delete(self, key: str) -> None:
        """Remove the object, if there is one."""

    def list(self, folder: str) -> list[str]:
        """The keys below `folder`, sorted."""

    def upload(self, key: str) -> WritableFile:
        """Write an object in pieces; it is there once the file is closed."""


def is_url(path: str) -> bool:
    """Return whether `path` is a URL of an object store.

    >>> is_url("s3://bucket/out"), is_url("/data/out"), is_url("file:///data/out")
    (True, False, False)
    """
    return path.partition("://")[0] in SCHEMES and "://" in path


def is_remote(path: str) -> bool:
    """Return whether `path` is a URL of whatever store.

    >>> is_remote("hdfs://host/in"), is_remote("/data/in")
    (True, False)
    """
    return "://" in path


def open_url(url: str) -> ObjectStore:
    """The objects below `url`; requests that fail are tried again, for three minutes at most.

    Raises ObjectStoreUnusable.
    """
    return _opened(url)


def settings_of_library(url: str) -> dict[str, str]:
    """Return what a library that opens `url` by itself is told beside the environment: as here,
    a profile's keys, HTTP where the endpoint says so, and no name that is taken without a
    condition. Raises ObjectStoreUnusable.
    """
    if not _is_amazon(url):
        return {}
    found = settings_of_profile(url)
    if endpoint := _endpoint(found):
        found["AWS_ENDPOINT_URL"] = endpoint
    if endpoint.startswith("http://"):
        found["AWS_ALLOW_HTTP"] = "true"
    return {**found, "AWS_CONDITIONAL_PUT": "etag", "AWS_S3_ALLOW_UNSAFE_RENAME": "false"}


def require_reachable(url: str) -> None:
    """Ask the store for what is below `url`, and do not wait long for the answer.

    Raises ObjectStoreUnusable.
    """
    retries = {
        "max_retries": _FIRST_TRIES,
        "retry_timeout": _FIRST_PATIENCE,
        "backoff": {
            "init_backoff": timedelta(milliseconds=100),
            "max_backoff": timedelta(seconds=1),
            "base": 2,
        },
    }
    try:
        next(_opened(url, retry_config=retries).find(""), None)
    except OSError as error:
        raise ObjectStoreUnusable(url, error.strerror) from error


def _opened(url: str, **settings: Any) -> ObjectStore:
    try:
        from obstore.store import from_url
    except ImportError as error:
        reason = "the package obstore is missing; install epochgate[objects]"
        raise ObjectStoreUnusable(url, reason) from error
    found = settings_of_profile(url) if _is_amazon(url) else {}
    options: Any = {"allow_http": True} if _endpoint(found).startswith("http://") else {}
    if found:
        settings["config"] = found
    try:
        return ObstoreObjects(url, from_url(url, client_options=options, **settings))
    except Exception as error:  # the client has no root for what it raises
        raise ObjectStoreUnusable(url, what_was_said(str(error))) from error


def _is_amazon(url: str) -> bool:
    return url.startswith(("s3://", "s3a://"))


def _endpoint(of_profile: Mapping[str, str]) -> str:
    found = os.environ.get("AWS_ENDPOINT_URL_S3") or os.environ.get("AWS_ENDPOINT_URL")
    return found or of_profile.get("AWS_ENDPOINT_URL", "")


def require_conditions(objects: ObjectStore) -> None:
    """Try whether the store honours conditions, and shows what was written.

    Raises ConditionsIgnored or ObjectStoreUnusable.
    """
    probe = f"{_PROBES}/{uuid.uuid4().hex}"
    try:
        with contextlib.suppress(FileExistsError):  # made already: the client has heard no answer
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

    Its operations raise ObjectMissing, FileExistsError, ObjectReplaced, ObjectStoreRefused, or
    ObjectStoreError for the rest.
    """

    def __init__(self, url: str, store: Any) -> None:
        self._url, self._store = url, store

    @property
    def url(self) -> str:
        """The place of the store."""
        return self._url

    def get(self, key: str) -> bytes:
        """The whole object."""
        with _told(key):
            return bytes(self._store.get(key).bytes())

    def get_range(self, key: str, offset: int, length: int, etag: str = "") -> bytes:
        """`length` bytes from `offset`, of the object with this ETag if one is given."""
        with _told(key):
            if not etag or etag.startswith("W/"):  # a weak one matches nothing (RFC 9110)
                return bytes(self._store.get_range(key, start=offset, length=length))
            from obstore.exceptions import PreconditionError

            options = {"range": (offset, offset + length), "if_match": etag}
            try:
                return bytes(self._store.get(key, options=options).bytes())
            except PreconditionError as error:
                raise ObjectReplaced(errno.ESTALE, "the object was replaced", key) from error

    def status(self, key: str) -> ObjectStatus:
        """Return what a listing would tell of the object."""
        with _told(key):
            return _status(self._store.head(key))

    def find(self, folder: str, after: str = "") -> Iterator[ObjectStatus]:
        """List the objects below `folder`, with keys greater than `after`."""
        pages = self._store.list(folder or None, offset=after or None, chunk_size=_PAGE)
        while True:
            with _told(folder):
                page = next(pages, None)
            if page is None:
                return
            yield from map(_status, page)

    def size(self, key: str) -> int:
        """The object's bytes."""
        with _told(key):
            return int(self._store.head(key)["size"])

    def sizes(self, keys: Sequence[str]) -> list[int]:
        """The bytes of each object; several requests wait for their answers at a time."""
        with ThreadPoolExecutor(_REQUESTS_AT_ONCE, "epochgate-sizes") as requests:
            return list(requests.map(self.size, keys))

    def put(self, key: str, data: bytes) -> None:
        """Replace the object."""
        with _told(key):
            self._store.put(key, data)

    def create(self, key: str, data: bytes) -> None:
        """Make the object, unless there is one."""
        with _told(key):
            self._store.put(key, data, mode="create", use_multipart=False)

    def copy(self, key: str, to: str) -> None:
        """Copy the object; the store does it, without a transfer."""
        with _told(key):
            self._store.copy(key, to)

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
        raise ObjectMissing(errno.ENOENT, "there is no such object", key) from error
    except exceptions.BaseError as error:
        said = str(error)
        kind = ObjectStoreRefused if is_refusal(said) else ObjectStoreError
        raise kind(errno.EIO, what_was_said(said), key) from error


def _status(found: Mapping[str, Any]) -> ObjectStatus:
    modified: datetime = found["last_modified"]
    since = modified - _EPOCH
    modified_ns = (since // timedelta(microseconds=1)) * 1_000
    etag = found["e_tag"] or ""
    if etag and not etag.startswith("W/"):
        etag = f'"{etag.strip(chr(34))}"'  # some stores leave the quotes out of listings
    return ObjectStatus(found["path"], found["size"], modified_ns, etag)
