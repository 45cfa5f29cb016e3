"""A search on disk: level by level, a file for each partition, in a directory that all hosts see.

`search.json` says what is searched, and over how many partitions. The states of a level lie in
files whose names carry a random tag, so that what two attempts of a task write never mixes. A
level is complete once its manifest, `level-00012.json`, is there; it names the files that count,
with their checksums. All files are written beside their places, forced to the disk, and moved.
"""

from __future__ import annotations

import json
import secrets
import socket
import zlib
from collections.abc import Iterable, Iterator
from contextlib import closing
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np

from epochgate.errors import EpochgateError
from epochgate.fsm.checker.resuming import CannotResume
from epochgate.runtime.filesystem import FileLock, LocalFileSystem

FORMAT: Final = "epochgate search on Spark 2"
TAG_BITS: Final = 62
_files = LocalFileSystem()


class LevelDamaged(EpochgateError):
    """A file of a level is not as it was written."""


@dataclass(frozen=True)
class Part:
    """One partition's states of a level; the tag names the file."""

    tag: int
    states: int
    crc: int


@dataclass(frozen=True)
class Manifest:
    """A level, and what had been counted before it was expanded."""

    parts: tuple[Part, ...]
    transitions: int
    terminal: int
    held: int
    left_out: int
    rows: tuple[int, ...]

    @property
    def states(self) -> int:
        return sum(part.states for part in self.parts)


def write_part(
    directory: Path, level: int, partition: int, pieces: Iterable[bytes], state_bytes: int
) -> Part:
    """Write what a partition has of a level, given in pieces."""
    tag, size, crc = secrets.randbits(TAG_BITS) | 1, 0, 0
    path = part_path(directory, level, partition, tag)
    beside = path.with_name(f".{path.name}")
    with closing(_files.open_for_writing(beside)) as file:
        for piece in pieces:
            file.write(piece)
            size, crc = size + len(piece), zlib.crc32(piece, crc)
        file.fsync()
    if size:
        _files.rename(beside, path)
        _files.fsync_directory(directory)
    else:
        beside.unlink()
    return Part(tag, size // state_bytes, crc)


def part_path(directory: Path, level: int, partition: int, tag: int) -> Path:
    """The file with a partition's states of a level."""
    return directory / f"level-{level:05}.part-{partition:05}.{tag:016x}"


def read_part(directory: Path, level: int, partition: int, part: Part, words: int) -> Any:
    """The words of the states that a partition has of a level. Raises LevelDamaged."""
    if part.states == 0:
        return np.empty(0, np.int64)
    path = part_path(directory, level, partition, part.tag)
    states = np.fromfile(path, np.int64)
    if len(states) != part.states * words or zlib.crc32(states.data) != part.crc:
        raise LevelDamaged(
            f"{path} is not as it was written; remove it and {manifest_path(directory, level)}, "
            f"and --resume goes on from the level before"
        )
    return states


def manifest_path(directory: Path, level: int) -> Path:
    """The file that is there once a level is complete."""
    return directory / f"level-{level:05}.json"


def manifest(directory: Path, level: int) -> Manifest | None:
    """A level that is complete; None if it is not."""
    try:
        found = json.loads(manifest_path(directory, level).read_bytes())
    except FileNotFoundError:
        return None
    parts = tuple(Part(**part) for part in found.pop("parts"))
    return Manifest(parts=parts, rows=tuple(found.pop("rows")), **found)


def completed(directory: Path, token: str, first: int, last: int) -> list[Manifest]:
    """Complete levels, as a task reads them; the last may be -1. Raises LevelDamaged."""
    try:
        is_seen = json.loads((directory / "search.json").read_bytes())["token"] == token
    except (OSError, ValueError, KeyError, TypeError):
        is_seen = False
    if not is_seen:
        raise LevelDamaged(
            f"{socket.gethostname()} does not see the search that the driver keeps in {directory}: "
            f"name a directory of a file system that all hosts share, at the same path"
        )
    numbers = range(max(0, first), last + 1)
    found = [manifest(directory, number) for number in numbers]
    complete = [each for each in found if each is not None]
    if len(complete) != len(found):
        missing = manifest_path(directory, numbers[found.index(None)])
        raise LevelDamaged(f"{missing} is missing; search with another directory")
    return complete


class SearchDirectory:
    """The directory of one search, for its driver."""

    def __init__(self, path: Path, identity: str, system: str, parts: int) -> None:
        self.path, self._identity, self._system = path, identity, system
        _files.make_directory(path)
        self._lock = self._locked()
        try:
            self.parts, self.token = self._begun(parts)
            self.levels = [*self._complete()]
            self._remove_unnamed()
        except BaseException:
            self.close()
            raise

    def _locked(self) -> FileLock:
        lock = _files.try_lock(self.path / "lock")
        if lock is None:
            raise CannotResume(
                f"another process searches with {self.path} at this moment; wait for it to end, "
                f"or name another directory"
            )
        return lock

    def _begun(self, parts: int) -> tuple[int, str]:
        """The number of partitions, and the name of the search on the hosts."""
        path = self.path / "search.json"
        try:
            about = json.loads(path.read_bytes())
            is_search = about["format"] == FORMAT
        except FileNotFoundError:
            if [*self.path.glob("*")] != [self.path / "lock"]:
                raise CannotResume(
                    f"{self.path} is no directory of a search; name another one, or an empty one"
                ) from None
            about = {
                "format": FORMAT,
                "system": self._system,
                "identity": self._identity,
                "parts": parts,
                "token": secrets.token_hex(8),
            }
            _files.write_bytes_durably(path, json.dumps(about).encode())
            is_search = True
        except (ValueError, KeyError, TypeError):
            is_search = False
        if not is_search:
            raise CannotResume(f"{path} is no search of epochgate; name another directory")
        if about["identity"] != self._identity:
            raise CannotResume(
                f"{self.path} is a search of {about['system']}, or of an earlier version of "
                f"{self._system}; its states or its claims are others here: name another directory"
            )
        return about["parts"], about["token"]

    def _complete(self) -> Iterator[Manifest]:
        level = 0
        while (found := manifest(self.path, level)) is not None:
            yield found
            level += 1

    def _remove_unnamed(self) -> None:
        """Remove what tasks have written of a level that was not completed."""
        named = {
            part_path(self.path, level, partition, part.tag)
            for level, found in enumerate(self.levels)
            for partition, part in enumerate(found.parts)
        }
        for pattern in ("level-*.part-*", ".level-*"):
            for path in self.path.glob(pattern):
                if path not in named:
                    path.unlink(missing_ok=True)

    def add(self, found: Manifest) -> None:
        """Complete a level: it counts when this returns."""
        path = manifest_path(self.path, len(self.levels))
        _files.write_bytes_durably(path, json.dumps(asdict(found)).encode())
        self.levels.append(found)

    def close(self) -> None:
        """Let the directory go for searches elsewhere."""
        self._lock.release()
