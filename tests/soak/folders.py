"""The places of a landing zone's files, and of a table that an independent reader reads.

On a disk, files come by renames, and DuckDB reads the table where it is. In an object store, files
are put whole or in parts, and what the table's log shows is copied by another client than epochgate
has, Arrow's own; DuckDB reads the copies.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol

import pyarrow.fs
from obstore.store import from_url

LOG = "_epochgate/log"


class Folder(Protocol):
    """The files of a source by their names."""

    def put(self, name: str, content: bytes) -> None:
        """Let the file be there as a whole at once, in place of another."""

    def put_again(self, name: str, content: bytes) -> None:
        """Deliver the same content once more, in another way if there is one."""

    def touch(self, name: str) -> None:
        """Give the file another time stamp."""

    def read(self, name: str) -> bytes:
        """The whole file."""

    def remove(self, name: str) -> None:
        """Remove the file."""


class Directory:
    """A new directory at `path`."""

    def __init__(self, path: Path) -> None:
        self._path = path
        path.mkdir()

    def put(self, name: str, content: bytes) -> None:
        staged = self._path / f".{name}"
        staged.write_bytes(content)
        staged.rename(self._path / name)

    put_again = put

    def touch(self, name: str) -> None:
        os.utime(self._path / name)

    def read(self, name: str) -> bytes:
        return (self._path / name).read_bytes()

    def remove(self, name: str) -> None:
        (self._path / name).unlink()


class Prefix:
    """The objects below a URL of a server that does not encrypt."""

    def __init__(self, url: str) -> None:
        self._store: Any = from_url(url, client_options={"allow_http": True})

    def put(self, name: str, content: bytes) -> None:
        self._store.put(name, content, use_multipart=False)

    def put_again(self, name: str, content: bytes) -> None:
        """In parts: the ETag is another, and no hash of the content."""
        self._store.put(name, content, use_multipart=True)

    def touch(self, name: str) -> None:
        self.put(name, self.read(name))

    def read(self, name: str) -> bytes:
        return bytes(self._store.get(name).bytes())

    def remove(self, name: str) -> None:
        self._store.delete(name)


class Table(Protocol):
    """A table of Parquet files."""

    def files(self) -> Path:
        """The directory in which the files are that are visible now."""

    def set_back(self, commits: int, kept: Path) -> None:
        """Take the newest `commits` out of the table, as a backup would; the files of these lie in
        the new directory `kept` afterwards.
        """


class DirectoryTable:
    """A target on a disk: what is in the directory is visible."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def files(self) -> Path:
        return self._path

    def set_back(self, commits: int, kept: Path) -> None:
        kept.mkdir()
        gone = sorted(self._path.glob("checkpoint=*"))[-commits:]
        for directory in gone:
            directory.rename(kept / directory.name)
        numbers = {path.name.partition("=")[2] for path in gone}
        for path in self._path.with_name(f".{self._path.name}.epochgate").glob("manifests/*.json"):
            if path.stem.rpartition("-")[2] in numbers:
                path.unlink()


class ObjectTable:
    """A target at `bucket/key`, copied into the new directory `copies` as its log grows."""

    def __init__(self, place: str, copies: Path, variables: Mapping[str, str]) -> None:
        self._place, self._copies = place, copies
        copies.mkdir()
        self._entries: dict[str, Any] = {}
        self._s3 = pyarrow.fs.S3FileSystem(
            endpoint_override=variables["AWS_ENDPOINT_URL"].removeprefix("http://"),
            scheme="http",
            access_key=variables["AWS_ACCESS_KEY_ID"],
            secret_key=variables["AWS_SECRET_ACCESS_KEY"],
            region=variables["AWS_REGION"],
        )

    def files(self) -> Path:
        """The copies of what is visible; what was withdrawn is removed from them."""
        visible = {f"{number:06}.parquet": path for number, path in enumerate(self._visible())}
        there = {path.name for path in self._copies.iterdir()}
        for name in there - visible.keys():
            (self._copies / name).unlink()
        for name in visible.keys() - there:
            (self._copies / name).write_bytes(self._read(f"{self._place}/{visible[name]}"))
        return self._copies

    def set_back(self, commits: int, kept: Path) -> None:
        kept.mkdir()
        before = self._visible()
        made = sorted(path for path, entry in self._entries.items() if entry["kind"] == "commit")
        first = made[-commits:][0]
        for path in [path for path in self._entries if path >= first]:
            del self._entries[path]
            self._s3.delete_file(path)
        for number, path in enumerate(sorted(set(before) - set(self._visible()))):
            (kept / f"{number:06}.parquet").write_bytes(self._read(f"{self._place}/{path}"))
            self._s3.delete_file(f"{self._place}/{path}")

    def _visible(self) -> list[str]:
        """The files by the log alone, in the order in which they were committed."""
        selector = pyarrow.fs.FileSelector(f"{self._place}/{LOG}", allow_not_found=True)
        for info in self._s3.get_file_info(selector):
            if info.path not in self._entries:
                self._entries[info.path] = json.loads(self._read(info.path))
        files: dict[str, int] = {}
        for _, entry in sorted(self._entries.items()):
            if entry["kind"] == "commit":
                files.update(dict.fromkeys(entry["files"], entry["checkpoint"]))
            elif entry["kind"] == "withdraw":
                files = {path: at for path, at in files.items() if at <= entry["after"]}
        return list(files)

    def _read(self, path: str) -> bytes:
        with self._s3.open_input_stream(path) as stream:
            data: bytes = stream.read()
        return data
