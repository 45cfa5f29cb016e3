"""Files behind URLs that are of no object store: what fsspec reaches, read as objects are.

    hdfs://host/landing    sftp://user@host/landing    webdav://...    memory://...

Decides what stands for an ETag where there is none: size and time stamp, looked at again after each
read, since such a store reads what is there now. For sources alone: nothing is written, because
these have no conditional PUT. Each scheme takes a package of its own, which fsspec names. Used on
the driver and in tasks, on any thread.
"""

from __future__ import annotations

import contextlib
import errno
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any, Final

from epochgate.runtime.objects.client import ObjectStatus
from epochgate.runtime.objects.errors import (
    ObjectMissing,
    ObjectReplaced,
    ObjectStoreError,
    ObjectStoreRefused,
    ObjectStoreUnusable,
)

_TIMES: Final = ("mtime", "LastModified", "last_modified", "modified", "created")
_VERSIONS: Final = ("ETag", "etag", "checksum", "md5Hash")


def open_elsewhere(url: str) -> FsspecFiles:
    """Open the files below `url`, as fsspec reads them. Raises ObjectStoreUnusable."""
    try:
        from fsspec.core import url_to_fs
    except ImportError as error:
        reason = "the package fsspec is missing; install epochgate[fsspec]"
        raise ObjectStoreUnusable(url, reason) from error
    try:
        files, root = url_to_fs(url)
    except Exception as error:  # each file system of fsspec raises what its library does
        raise ObjectStoreUnusable(url, str(error).partition("\n")[0]) from error
    return FsspecFiles(url, files, str(root))


class FsspecFiles:
    """The files below `root` in a file system of fsspec: the part of `ObjectStore` that reads.

    Its operations raise ObjectMissing, ObjectReplaced, ObjectStoreRefused, or ObjectStoreError for
    the rest.
    """

    def __init__(self, url: str, files: Any, root: str) -> None:
        self._url, self._files, self._root = url, files, root.rstrip("/")

    @property
    def url(self) -> str:
        """The place of the files."""
        return self._url

    def get_range(self, key: str, offset: int, length: int, etag: str = "") -> bytes:
        """`length` bytes from `offset`, of the file that had this ETag before and after."""
        with _told(key):
            data = bytes(self._files.cat_file(self._path(key), offset, offset + length))
        if etag and self.status(key).etag != etag:
            raise ObjectReplaced(errno.ESTALE, "the file was replaced", key)
        return data

    def status(self, key: str) -> ObjectStatus:
        """Return what a listing would tell of the file."""
        with _told(key):
            self._files.invalidate_cache()
            info = self._files.info(self._path(key))
            if info["type"] == "directory":
                raise FileNotFoundError(key)
            return _status(key, info)

    def find(self, folder: str) -> Iterator[ObjectStatus]:
        """List the files below `folder`; nothing if there is no folder."""
        try:
            with _told(folder):
                self._files.invalidate_cache()
                found = self._files.find(self._path(folder), detail=True)
        except ObjectMissing:
            return
        for path, info in sorted(found.items()):
            key = str(path).removeprefix(self._root).lstrip("/")
            if key != folder:
                yield _status(key, info)

    def _path(self, key: str) -> str:
        return f"{self._root}/{key}".rstrip("/") or "/"


def _status(key: str, info: Mapping[str, Any]) -> ObjectStatus:
    modified_ns = next((_ns(info[name]) for name in _TIMES if info.get(name)), 0)
    version = next((info[name] for name in _VERSIONS if info.get(name)), "")
    size = int(info["size"] or 0)
    return ObjectStatus(key, size, modified_ns, f'"{size}-{modified_ns}-{version}"')


def _ns(time: object) -> int:
    """A time as fsspec's file systems give it: seconds since 1970, a datetime, or its text."""
    if isinstance(time, str):
        time = datetime.fromisoformat(time)
    if isinstance(time, datetime):
        time = (time if time.tzinfo else time.replace(tzinfo=UTC)).timestamp()
    assert isinstance(time, int | float), f"{time!r} is no time"
    return int(time * 1_000_000) * 1_000


@contextlib.contextmanager
def _told(key: str) -> Iterator[None]:
    try:
        yield
    except FileNotFoundError as error:
        raise ObjectMissing(errno.ENOENT, "there is no such file", key) from error
    except PermissionError as error:
        raise ObjectStoreRefused(errno.EACCES, error.strerror or str(error), key) from error
    except Exception as error:  # each file system of fsspec raises what its library does
        said = f"{type(error).__name__}: {error}".partition("\n")[0]
        raise ObjectStoreError(errno.EIO, said, key) from error
