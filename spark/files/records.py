"""Where records of CSV and JSON lines files begin and end, in bytes.

Decides: at which line ends a byte range may be cut. Leaves to others: what a record means.
A line end is the byte 0x0A. In CSV one inside a quoted field ends no record (RFC 4180); a quote
opens a field only as its first byte. Runs on the calling thread, in a task or on the driver.

Blind spot: the fast path counts quotes instead of parsing fields, so a line that holds both a
quote inside an unquoted field and a quoted field with a line end can be cut wrongly. Such a line
breaks RFC 4180; it is read right or refused, unless both halves happen to have all columns.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import BinaryIO, Protocol

RECORD_BYTES_MAX = 64 << 20
BYTE_ORDER_MARK = b"\xef\xbb\xbf"


def _all_but(quote: str) -> bytes:
    """Every byte that is neither this quote nor a line end; to be left out where both count."""
    return bytes(sorted(set(range(256)) - {ord(quote), ord("\n")}))


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


class CsvRecordEnds:
    """A line end ends a record unless it lies in a quoted field."""

    def __init__(self, delimiter: str = ",", quote: str = '"') -> None:
        self._quote = quote
        d, q = re.escape(delimiter.encode()), re.escape(quote.encode())
        field = rb"(?:%b(?:[^%b]++|%b%b)*+%b[^%b\n]*+|[^%b%b\n][^%b\n]*+)?+" % (
            *(q, q, q, q, q, d),
            *(q, d, d),
        )
        # Possessive throughout: a record is matched in one pass or not at all.
        self._record = re.compile(rb"(?:%b%b)*+%b\n" % (field, d, field))

    def first(self, data: bytes, at_least: int) -> int:
        if not may_quote_line_ends(data, self._quote):
            return data.find(b"\n", at_least) + 1
        return next((end for end in self._ends(data) if end > at_least), 0)

    def last(self, data: bytes) -> int:
        if not may_quote_line_ends(data, self._quote):
            return data.rfind(b"\n") + 1
        end = 0
        for end in self._ends(data):  # noqa: B007 - the last one is wanted
            pass
        return end

    def _ends(self, data: bytes) -> Iterator[int]:
        position = 0
        while match := self._record.match(data, position):
            position = match.end()
            yield position


def csv_record_ends(delimiter: str, quote: str) -> RecordEnds:
    """How records of a CSV file end; without a quote, every line end ends one."""
    return CsvRecordEnds(delimiter, quote) if quote else LineEnds()


def may_quote_line_ends(data: bytes, quote: str = '"') -> bool:
    r"""Whether a line end in `data`, or its end, has an odd number of quotes before it.

    >>> may_quote_line_ends(b'1,"a"\n2,"b"\n'), may_quote_line_ends(b'1,"a\nb"\n')
    (False, True)
    """
    q = quote.encode()
    if q not in data:
        return False
    # Pairs of quotes with no line end between them cancel out, so any quote that is left is odd.
    return q in data.translate(None, _all_but(quote)).replace(q + q, b"")


def has_quoted_line_ends(file: BinaryIO, quote: str = '"', block_bytes: int = 4 << 20) -> bool:
    """Whether any line of a CSV file has an odd number of quotes, so that none may be cut off."""
    if not quote:
        return False
    rest = b""
    while block := file.read(block_bytes):
        data = rest + block
        cut = data.rfind(b"\n") + 1
        if may_quote_line_ends(data[:cut], quote):
            return True
        # Of the unfinished line only the quotes matter, so a long line takes little memory.
        rest = data[cut:].translate(None, _all_but(quote))
    return may_quote_line_ends(rest, quote)


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
        data += block
        if not data:
            return
        whole = not block
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
