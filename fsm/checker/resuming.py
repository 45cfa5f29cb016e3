"""A search on disk, written level by level, from which a later run goes on.

The file begins with a line that says what is searched; then come records, one for each level: a
line of JSON, and the words and parents of its states. A record carries its length and checksum, so
a level that was not written to its end is dropped, and everything before it is kept.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

from epochgate.errors import UsageError
from epochgate.fsm.checker.compiler.ir import Program
from epochgate.fsm.checker.engines.search import Search, Span, Unsuited

FORMAT = "epochgate search 1"


class CannotResume(UsageError):
    """A file cannot be gone on with: it is of another system, or no search, or in use."""


def identity(program: Program) -> str:
    """A digest of everything that decides which states there are and how they are packed."""
    parts = (
        [*program.cells.values()],
        [*program.functions.values()],
        [(step.label, step.enabled, step.function) for step in program.steps],
        program.properties,
        program.initial,
        [program.starts, program.start_conditions],
        program.blocks,
    )
    return hashlib.sha256(repr(parts).encode()).hexdigest()


class SavedSearch:
    """One search's file, which is made when there is none."""

    def __init__(self, path: Path, program: Program, system: str) -> None:
        self._path, self._identity, self._system = path, identity(program), system
        self._state_bytes = program.words * 8 + 4
        self._file: BinaryIO | None = None
        self._end = self._levels = 0
        self.failure = ""
        """Why no more levels are saved; the search goes on without."""

    def levels(self, search: Search) -> Iterator[tuple[list[Span], dict[str, Any]]]:
        """Restore the levels that are there, one after the other, and get ready to add more."""
        if not self._path.exists():
            self._create()
            return
        self._file = file = self._path.open("r+b")
        self._claim(file)
        self._check(file)
        kept = file.tell()
        while (record := self._record(file)) is not None:
            about, words, parents = record
            kept = file.tell()
            spans = [(first, end) for first, end in about["spans"]]
            try:
                search.restore(spans, words, parents, set(about["rows"]))
            except Unsuited as reason:
                raise CannotResume(f"{self._path}: {reason}") from reason
            self._levels += 1
            yield spans, about
        self._end = kept
        os.ftruncate(file.fileno(), kept)

    def _create(self) -> None:
        head = {"format": FORMAT, "system": self._system, "identity": self._identity}
        self._path.parent.mkdir(parents=True, exist_ok=True)
        self._file = self._path.open("xb")
        self._claim(self._file)
        try:
            self._append(json.dumps(head).encode() + b"\n")
        except OSError as error:
            self._path.unlink()
            raise CannotResume(f"{self._path} cannot be written: {error.strerror}") from error

    def _claim(self, file: BinaryIO) -> None:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise CannotResume(
                f"another process searches with {self._path} at this moment; wait for it to end, "
                f"or name another file"
            ) from error

    def _check(self, file: BinaryIO) -> None:
        try:
            head = json.loads(file.readline(4096))
            is_search = head["format"] == FORMAT
        except (ValueError, KeyError, TypeError):
            is_search = False
        if not is_search:
            raise CannotResume(f"{self._path} is no search of epochgate; name another file")
        if head["identity"] != self._identity:
            raise CannotResume(
                f"{self._path} is a search of {head['system']}, or of an earlier version of "
                f"{self._system}; its states mean something else here: name another file"
            )

    def _record(self, file: BinaryIO) -> tuple[dict[str, Any], bytes, bytes] | None:
        line = file.readline()
        try:
            about = json.loads(line)
            states = sum(end - first for first, end in about["spans"])
        except (ValueError, KeyError, TypeError):
            return None
        packed = file.read(states * self._state_bytes)
        if len(packed) < states * self._state_bytes or zlib.crc32(packed) != about["crc"]:
            return None
        return about, packed[: -4 * states], packed[-4 * states :]

    def add(self, search: Search, level: list[Span]) -> None:
        """Write a level to the disk; it is there when this returns, unless there is a `failure`."""
        if self._file is None:
            return
        words, parents = search.saved(level)
        packed = words + parents
        about = {
            "spans": level,
            "transitions": search.transitions,
            "terminal": search.terminal_states,
            "held": search.held,
            "rows": sorted(search.covered()),
            "crc": zlib.crc32(packed),
        }
        try:
            self._append(json.dumps(about).encode() + b"\n" + packed)
        except OSError as error:
            self.failure = (
                f"{self._path} has no room for more than {self._levels} levels ({error.strerror}): "
                f"move it to a larger disk, and --resume goes on from there"
            )
            os.ftruncate(self._file.fileno(), self._end)
            self.close()
        else:
            self._levels += 1

    def _append(self, data: bytes) -> None:
        """Write behind everything that is there, and wait for the disk."""
        assert self._file is not None
        rest, end = memoryview(data), self._end
        while rest:
            written = os.pwrite(self._file.fileno(), rest, end)
            rest, end = rest[written:], end + written
        os.fsync(self._file.fileno())
        self._end = end

    def close(self) -> None:
        """Let the file go for searches elsewhere."""
        if self._file is not None:
            self._file.close()
            self._file = None
