"""A search on disk, written level by level, from which a later run goes on.

The file begins with a line that says what is searched; then come records, one for each level: a
line of JSON, the words of its states, and their checksum. A level that was not written to its end
is dropped, and everything before it is kept.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import zlib
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, BinaryIO

from epochgate.errors import UsageError
from epochgate.exit_codes import RunFailed
from epochgate.fsm.checker.compiler.ir import Program
from epochgate.fsm.checker.engines.search import Level, Search, size
from epochgate.fsm.closed import Property

FORMAT = "epochgate search 2"
EARLIER = ("epochgate search 1",)
READ_BYTES = 1 << 20
CHECKSUM_BYTES = 4


class CannotSave(RunFailed):
    """The file of a search cannot be written or opened; that says nothing of the claims."""


class CannotResume(UsageError):
    """A file cannot be gone on with: it is of another system, or no search, or in use."""


def identity(program: Program, claims: Sequence[Property]) -> str:
    """A digest of everything that decides which states there are, how they are packed, and what was
    looked for in them.
    """
    parts = (
        [*program.cells.values()],
        [*program.functions.values()],
        [(step.label, step.enabled, step.function) for step in program.steps],
        program.properties,
        program.initial,
        [program.starts, program.start_conditions],
        program.blocks,
        sorted((claim.kind, claim.name, claim.then) for claim in claims),
    )
    return hashlib.sha256(repr(parts).encode()).hexdigest()


class SavedSearch:
    """One search's file, which is made when there is none."""

    def __init__(
        self, path: Path, program: Program, system: str, claims: Sequence[Property]
    ) -> None:
        self._path, self._identity, self._system = path, identity(program, claims), system
        self._state_bytes = program.words * 8
        self._file: BinaryIO | None = None
        self._end = self._levels = 0
        self.failure = ""
        """Why no more levels are saved; the search goes on without."""

    def levels(self, search: Search) -> Iterator[tuple[Level, dict[str, Any]]]:
        """Restore the levels that are there, one after the other, and get ready to add more."""
        if not self._path.exists():
            self._create()
            return
        try:
            self._file = file = self._path.open("r+b")
        except OSError as error:
            raise CannotSave(
                f"{self._path} cannot be opened: {error.strerror}; name another file"
            ) from error
        self._claim(file)
        self._check(file)
        kept = file.tell()
        while (record := self._record(file)) is not None:
            about, begin, states_bytes = record
            kept = file.tell()
            file.seek(begin)
            level = search.restore(self._pieces(file, states_bytes), set(about["rows"]))
            file.seek(kept)
            self._levels += 1
            yield level, about
        self._end = kept
        os.ftruncate(file.fileno(), kept)

    def _create(self) -> None:
        head = {"format": FORMAT, "system": self._system, "identity": self._identity}
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            self._file = self._path.open("xb")
        except OSError as error:
            raise CannotSave(f"{self._path} cannot be made: {error}; name another file") from error
        self._claim(self._file)
        try:
            self._append([json.dumps(head).encode() + b"\n"])
        except OSError as error:
            self._path.unlink()
            raise CannotSave(
                f"{self._path} cannot be written: {error.strerror}; name a file on another disk"
            ) from error

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
            form = head["format"]
        except (ValueError, KeyError, TypeError):
            form = None
        if form in EARLIER:
            raise CannotResume(
                f"{self._path} was written by an earlier version of epochgate, in the format "
                f"{form!r}; this one goes on from {FORMAT!r}: finish the search with that version, "
                f"or name another file and search from the beginning"
            )
        if form != FORMAT:
            raise CannotResume(f"{self._path} is no search of epochgate; name another file")
        if head["identity"] != self._identity:
            raise CannotResume(
                f"{self._path} is a search of {head['system']}, or of an earlier version of "
                f"{self._system}; its states or its claims are others here: name another file"
            )

    def _record(self, file: BinaryIO) -> tuple[dict[str, Any], int, int] | None:
        """Return what is written about the next level, where its states begin, and their bytes."""
        line = file.readline()
        try:
            about = json.loads(line)
            states_bytes = about["states"] * self._state_bytes
        except (ValueError, KeyError, TypeError):
            return None
        begin, crc, length = file.tell(), 0, 0
        for piece in self._pieces(file, states_bytes):
            crc, length = zlib.crc32(piece, crc), length + len(piece)
        if length < states_bytes or file.read(CHECKSUM_BYTES) != _checksum(crc):
            return None
        return about, begin, states_bytes

    def _pieces(self, file: BinaryIO, length: int) -> Iterator[bytes]:
        """The next `length` bytes of the file, some whole states at a time; fewer where it ends."""
        together = max(1, READ_BYTES // self._state_bytes) * self._state_bytes
        while length and (piece := file.read(min(together, length))):
            length -= len(piece)
            yield piece

    def add(self, search: Search, level: Level) -> None:
        """Write a level to the disk; it is there when this returns, unless there is a `failure`."""
        if self._file is None:
            return
        about = {
            "states": size(level),
            "transitions": search.transitions,
            "terminal": search.terminal_states,
            "held": search.held,
            "left_out": search.left_out,
            "rows": sorted(search.covered()),
        }
        try:
            self._append(self._record_of(about, search, level))
        except OSError as error:
            self.failure = (
                f"{self._path} has no room for more than {self._levels} levels ({error.strerror}): "
                f"move it to a larger disk, and --resume goes on from there"
            )
            os.ftruncate(self._file.fileno(), self._end)
            self.close()
        else:
            self._levels += 1

    def _record_of(self, about: dict[str, Any], search: Search, level: Level) -> Iterator[bytes]:
        yield json.dumps(about).encode() + b"\n"
        crc = 0
        for words in search.saved(level):
            crc = zlib.crc32(words, crc)
            yield words
        yield _checksum(crc)

    def _append(self, pieces: Iterable[bytes]) -> None:
        """Write behind everything that is there, and wait for the disk."""
        assert self._file is not None
        end = self._end
        for piece in pieces:
            rest = memoryview(piece)
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


def _checksum(crc: int) -> bytes:
    return crc.to_bytes(CHECKSUM_BYTES, "little")
