"""JSON documents as JSON lines: the objects of an array, or one after the other, over any lines.

Decides where a record begins and ends, and nothing else of it: a line is the record as it stands in
the file, with a blank for each line end between its values. What stands between records, and a
record that does not end, makes the file bad there. No more than one record and a block is kept.
Runs on the driver and in tasks.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import BinaryIO

from epochgate.spark.files.records import BYTE_ORDER_MARK, RECORD_BYTES_MAX, RecordTooLong

_BLOCK_BYTES = 1 << 16
"""Small, since what is behind a record is copied when it is taken."""
_TOKEN = re.compile(rb'"(?:[^"\\\n\r]|\\.)*+"|["\[\]{}]')
_SCALAR = re.compile(rb'"(?:[^"\\\n\r]|\\.)*+"|[^\s,\]\[{}"]+')
_BLANKS = re.compile(rb"[ \t\r\n]*+")
_SHOWN_MAX = 40


class _Text:
    """The bytes from the next one that counts; `passed` are before them."""

    def __init__(self, raw: BinaryIO) -> None:
        self._raw = raw
        self.data = raw.read(_BLOCK_BYTES).removeprefix(BYTE_ORDER_MARK)
        self.passed, self._is_whole = 0, not self.data

    def more(self) -> bool:
        """Have more bytes behind; false if there are none."""
        if len(self.data) > RECORD_BYTES_MAX:
            raise RecordTooLong(f"no record ends within {len(self.data)} bytes")
        # As much again, so that a long record is not looked through too often.
        block = self._raw.read(max(_BLOCK_BYTES, len(self.data)))
        self.data += block
        return bool(block)

    def drop(self, count: int) -> None:
        self.data, self.passed = self.data[count:], self.passed + count

    def next(self) -> bytes:
        """The next byte that is no blank, none at the end."""
        while True:
            found = _BLANKS.match(self.data)
            assert found is not None
            if found.end() < len(self.data):
                self.drop(found.end())
                return self.data[:1]
            self.drop(len(self.data))
            if not self.more():
                return b""

    def value(self) -> bytes:
        """Take the value that begins here. Raises ValueError."""
        while True:
            end = _end_of(self.data)
            if end and (end < len(self.data) or self.data[end - 1 : end] in b'}]"'):
                break
            if not self.more():
                if end:
                    break
                raise self.wrong("a value begins that does not end")
        found = self.data[:end]
        self.drop(end)
        return found

    def wrong(self, why: str) -> ValueError:
        shown = self.data[:_SHOWN_MAX].decode(errors="backslashreplace")
        return ValueError(f"byte {self.passed}: {why}: {shown!r}")


def _end_of(data: bytes) -> int:
    """The index behind the value with which the bytes begin; 0 if it does not end. Raises
    ValueError.
    """
    if data[:1] not in (b"{", b"["):
        scalar = _SCALAR.match(data)
        return 0 if scalar is None else scalar.end()
    depth = 0
    for token in _TOKEN.finditer(data):
        text = token.group()
        if text == b'"':
            if b"\n" in (rest := data[token.end() :]) or b"\r" in rest:
                raise ValueError("a line ends within a string")
            return 0
        if text in b"{[":
            depth += 1
        elif text in b"}]":
            depth -= 1
            if not depth:
                return token.end()
    return 0


def lines_of_json(raw: BinaryIO) -> Iterator[bytes]:
    """The records. Raises ValueError for what is none, behind those before it."""
    text = _Text(raw)
    while first := text.next():
        if first == b"[":
            text.drop(1)
            yield from _items(text)
        elif first == b"{":
            yield _line(text.value())
        else:
            raise text.wrong("an object or an array of objects is expected")


def _items(text: _Text) -> Iterator[bytes]:
    """The records of the array that has begun. Raises ValueError."""
    first = text.next()
    while first != b"]":
        if first in (b"", b",", b"}"):
            raise text.wrong("an item of the array is expected")
        yield _line(text.value())
        first = text.next()
        if first == b",":
            text.drop(1)
            if (first := text.next()) == b"]":
                raise text.wrong("an item of the array is expected")
        elif first != b"]":
            raise text.wrong("a ',' or ']' is expected")
    text.drop(1)


def _line(value: bytes) -> bytes:
    return value.replace(b"\n", b" ").replace(b"\r", b" ") + b"\n"
