"""The directory of a search that keeps its states on disk.

`search.json` is the manifest: it names the files of each level, the file of words and pairs, and
how far the search has come. It is replaced in one step when all files that it names are on the
disk, so that the search goes on from it whenever it is killed; what it does not name is removed.
"""

from __future__ import annotations

import errno
import fcntl
import hashlib
import json
import os
import re
import shutil
import zlib
from pathlib import Path
from typing import Any

import numpy as np
from epochgate.fsm.checker.engines.key_files import Damaged, KeyFile, Writer
from epochgate.fsm.checker.engines.search import Stopped
from epochgate.fsm.checker.resuming import CannotResume

FORMAT = "epochgate spilled search 1"
MANIFEST, BESIDE = "search.json", "search.json.new"
OWN = re.compile(r"(keys|words)-\d+|search\.json\.new")
"""The names of files beside the manifest."""
FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}


class Directory:
    """One search's directory, which is made when there is none, and is this process's alone."""

    def __init__(self, path: Path, identity: str, system: str) -> None:
        self.path, self._identity, self._system = path, identity, system
        self.block_keys = 1 << 15
        self._number = 0
        self._descriptor = -1
        self._words: list[Any] = []
        self._named: set[str] = set()

    def open(self) -> dict[str, Any] | None:
        """Claim the directory; returns what the manifest says, None for a new search."""
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            self._descriptor = os.open(self.path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        except OSError as error:
            raise CannotResume(
                f"{self.path} is no directory, and cannot be made one ({error}); name another"
            ) from None
        if not os.access(self.path, os.W_OK | os.X_OK):
            raise CannotResume(f"{self.path} cannot be written to; name another directory")
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise CannotResume(
                f"another process searches in {self.path} at this moment; wait for it to end, or "
                f"name another directory"
            ) from error
        there = {entry.name for entry in self.path.iterdir()}
        foreign = sorted(name for name in there if name != MANIFEST and not OWN.fullmatch(name))
        if foreign:
            raise CannotResume(
                f"{self.path} holds {foreign[0]!r}, which is of no search: name an empty directory"
            )
        found = self._manifest() if MANIFEST in there else None
        if found is not None:
            self._words = found["words"]
            self._number = found["number"]
        self._named = _named(found)
        self._clear()
        return found

    def _manifest(self) -> dict[str, Any]:
        path = self.path / MANIFEST
        text, _, digest = path.read_text(encoding="utf-8").partition("\n")
        try:
            found: dict[str, Any] = json.loads(text)
            form = found["format"]
        except (ValueError, KeyError, TypeError):
            raise CannotResume(
                f"{path} is no manifest of a search: name another directory"
            ) from None
        if form != FORMAT:
            raise CannotResume(
                f"{path} is in the format {form!r}, and this version goes on from {FORMAT!r}: "
                f"finish the search with the version that began it, or name another directory"
            )
        if digest.strip() != hashlib.sha256(text.encode()).hexdigest():
            raise Damaged(path, "it has another checksum")
        if found["identity"] != self._identity:
            raise CannotResume(
                f"{self.path} holds a search of {found['system']}, or of an earlier version of "
                f"{self._system}; its states or its claims are others here: name another directory"
            )
        return found

    def files(self, found: dict[str, Any]) -> list[list[KeyFile]]:
        """The files of each level, all of which must be there as they were written."""
        levels = [[self._file(about) for about in level] for level in found["levels"]]
        for level in levels:
            for file in level:
                assert file.index is not None
        return levels

    def _file(self, about: list[Any]) -> KeyFile:
        name, size, checksum, blocks = about
        return KeyFile(self.path / name, size, checksum, blocks)

    def words(self) -> tuple[Any, Any]:
        """The slots and the values of the words and pairs that were saved."""
        name, slots, values, checksum = self._words
        path = self.path / name
        try:
            data = path.read_bytes()
        except OSError as error:
            raise Damaged(path, f"it cannot be read ({error.strerror})") from error
        if len(data) != 8 * (slots + values) or zlib.crc32(data) != checksum:
            raise Damaged(path, "it has another checksum")
        read = np.frombuffer(data, np.uint64)
        return read[:slots].copy(), read[slots:].view(np.int64).copy()

    def save_words(self, slots: Any, values: Any) -> None:
        """Write the words and pairs, for the next manifest to name."""
        data = slots.tobytes() + values.tobytes()
        path = self._new("words")
        self._write(path, data)
        self._words = [path.name, len(slots), len(values), zlib.crc32(data)]

    def writer(self) -> Writer:
        """A file of keys to come."""
        return Writer(self._new("keys"), self.block_keys)

    def commit(self, levels: list[list[KeyFile]], progress: dict[str, Any]) -> None:
        """Replace the manifest, and remove what the new one does not name."""
        found = {
            "format": FORMAT,
            "identity": self._identity,
            "system": self._system,
            "number": self._number,
            "words": self._words,
            "levels": [[file.to_json() for file in level] for level in levels],
            **progress,
        }
        text = json.dumps(found)
        digest = hashlib.sha256(text.encode()).hexdigest()
        beside = self.path / BESIDE
        beside.unlink(missing_ok=True)
        self._write(beside, f"{text}\n{digest}\n".encode())
        os.fsync(self._descriptor)
        beside.replace(self.path / MANIFEST)
        os.fsync(self._descriptor)
        self._named = _named(found)
        self._clear()

    def _clear(self) -> None:
        """Remove what the manifest does not name."""
        for entry in self.path.iterdir():
            if entry.name not in self._named and OWN.fullmatch(entry.name):
                entry.unlink()

    def _new(self, kind: str) -> Path:
        self._number += 1
        return self.path / f"{kind}-{self._number:06}"

    def _write(self, path: Path, data: bytes) -> None:
        with path.open("xb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())

    @property
    def free_bytes(self) -> int:
        """Return the free bytes of the disk."""
        return shutil.disk_usage(self.path).free

    def full(self, error: OSError) -> Stopped | None:
        """Return the reason to stop where a file could not be written since the disk is full."""
        if error.errno not in FULL:
            return None
        self._clear()
        return Stopped(
            f"{self.path} has no room for more ({error.strerror}); what the last manifest there "
            f"names is kept: free space, or move the directory to a larger disk, and the same "
            f"command goes on"
        )

    def close(self) -> None:
        """Let the directory go for searches elsewhere."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1


def _named(found: dict[str, Any] | None) -> set[str]:
    """The files that a manifest names."""
    if found is None:
        return set()
    return {found["words"][0], *(file[0] for level in found["levels"] for file in level)}
