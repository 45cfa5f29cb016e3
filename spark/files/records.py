"""The ends of records of CSV and JSON lines files, in bytes.

Decides: at which line ends a byte range may be cut. Leaves to others: what a record means, and
which line ends of a CSV file lie within a field (`quoting`). A line end is the byte 0x0A. Runs on
the calling thread, in a task or on the driver.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import BinaryIO, Protocol

from epochgate.spark.files.dialect import Dialect
from epochgate.spark.files.quoting import Quoting

RECORD_BYTES_MAX = 64 << 20
BYTE_ORDER_MARK = b"\xef\xbb\xbf"


class RecordTooLong(ValueError):
    """No record ends where one should: an unclosed quote, or not a file of lines at all."""


class RecordEnds(Protocol):
    """Finds line ends that end a record in bytes that begin with a record."""

    def first(self, data: bytes, at_least: int) -> int:
        """Index after the first record end at or after `at_least`; 0 if there is none."""

    def last(self, data: bytes) -> int:
        """Index after the last record end; 0 if there is none."""


class LineEnds:
    """Every line end ends a record: JSON lines, and CSV files known to have no quoted one."""

    def first(self, data: bytes, at_least: int) -> int:
        return data.find(b"\n", at_least) + 1

    def last(self, data: bytes) -> int:
        return data.rfind(b"\n") + 1


def csv_record_ends(dialect: Dialect) -> RecordEnds:
    """Return the way in which records of a CSV file end; without quotes and escapes, every line end
    ends one.
    """
    return Quoting(dialect) if dialect.quote or dialect.escape else LineEnds()


def has_inner_line_ends(file: BinaryIO, dialect: Dialect, block_bytes: int = 4 << 20) -> bool:
    """Return whether any line of a CSV file may not be a record, so that none may be cut off."""
    if not (dialect.quote or dialect.escape):
        return False
    quoting, rest = Quoting(dialect), file.read(len(BYTE_ORDER_MARK))
    rest = rest.removeprefix(BYTE_ORDER_MARK)
    while block := file.read(block_bytes):
        data = rest + block
        cut = data.rfind(b"\n") + 1
        rest = data[cut:]
        if len(rest) > RECORD_BYTES_MAX or quoting.has_inner_line_ends(data[:cut]):
            return True
    return quoting.has_inner_line_ends(rest)


def first_record_start(file: BinaryIO, start: int, block_bytes: int = 1 << 16) -> int:
    """Offset of the first record at or after byte `start`, if every line end ends a record.

    A record begins at byte 0 and after every line end.
    """
    if start == 0:
        return 0
    file.seek(start - 1)
    offset = start - 1
    while block := file.read(block_bytes):
        found = block.find(b"\n")
        if found >= 0:
            return offset + found + 1
        offset += len(block)
    return offset


def record_blocks(
    file: BinaryIO, offset: int, end: int | None, ends: RecordEnds, block_bytes: int
) -> Iterator[tuple[int, bytes]]:
    """Whole records of `file`, which stands at `offset`, the first byte of a record.

    Yields (offset, bytes) until no record begins before `end` (none: until the file ends). A block
    has about `block_bytes` bytes, or more if a record has. The last record may lack its line end.
    Raises `RecordTooLong` when none ends within `RECORD_BYTES_MAX`, or a quote is never closed.
    """
    data = b""
    while end is None or offset < end:
        block = file.read(block_bytes)
        if not block and not data:
            return
        whole = not block
        if end is None and isinstance(ends, LineEnds) and (cut := ends.last(block)):
            # Copied once, and not looked at again.
            yield offset, b"".join((data, memoryview(block)[:cut]))
            offset, data = offset + len(data) + cut, block[cut:]
            continue
        data += block
        if whole:
            # A missing last line end is added for the search, and is not part of what is yielded.
            cut = len(data) if ends.last(data + b"\n") == len(data) + 1 else ends.last(data)
            if cut == 0:
                raise RecordTooLong("a quoted field is not closed before the end of the file")
        else:
            cut = ends.last(data)
        if end is not None and offset + cut >= end:
            cut = ends.first(data, end - 1 - offset) or cut
        if cut:
            yield offset, data[:cut]
            offset, data = offset + cut, data[cut:]
        elif len(data) > RECORD_BYTES_MAX:
            raise RecordTooLong(f"no record ends within {len(data)} bytes; is a quote not closed?")
