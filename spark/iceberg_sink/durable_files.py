"""Metadata files that survive a power cut: pyiceberg writes them without asking the device.

Decides that a local file of metadata is on the device before the catalog points to it, since a
catalog keeps its word of a commit better than a file system does. Other places are left as they
are. Named to pyiceberg as its `py-io-impl`; runs on the driver.
"""

from __future__ import annotations

import os
from typing import Any

from pyiceberg.io import OutputStream
from pyiceberg.io.pyarrow import PyArrowFile, PyArrowFileIO

LOCAL = "file"
NAME = f"{__name__}.DurableFiles"


class DurableFiles(PyArrowFileIO):
    """As `PyArrowFileIO`, with an fsync of what is written locally."""

    def new_output(self, location: str) -> PyArrowFile:
        """A file to be written."""
        scheme, netloc, path = self.parse_location(location, self.properties)
        kind = DurableFile if scheme == LOCAL else PyArrowFile
        return kind(fs=self.fs_by_scheme(scheme, netloc), location=location, path=path)


class DurableFile(PyArrowFile):
    """A local file."""

    def create(self, overwrite: bool = False) -> OutputStream:
        """Begin to write it."""
        stream: OutputStream = _Durable(super().create(overwrite), self._path)
        return stream


class _Durable:
    """A stream that is on the device once it is closed."""

    def __init__(self, stream: Any, path: str) -> None:
        self._stream, self._path = stream, path

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def write(self, data: bytes) -> int:
        return int(self._stream.write(data))

    def close(self) -> None:
        if self._stream.closed:
            return
        self._stream.close()
        directory = os.path.dirname(self._path)
        for path in (self._path, directory, os.path.dirname(directory)):
            _fsync(path)

    def __enter__(self) -> _Durable:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


def _fsync(path: str) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
