"""Quotes and escapes of CSV files: where records end, and the same records as RFC 4180 has them.

Decides what a quote is: one that begins a field opens it, and one that is neither doubled nor
escaped closes it; within a field that does not begin with a quote, it is a letter. A record with
text after a closing quote, or with a carriage return alone outside of quotes, is malformed. An
escape counts within quotes, as Spark and MySQL write it, or, in files that quote nothing, in every
field, as Hive and MySQL do. Runs in tasks, and on the driver.

Most blocks are told to be well formed by the places of their quotes alone, which numpy finds; the
others by an expression for all their records, which takes some ten times as long.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import numpy as np

from epochgate.spark.files.dialect import Dialect

_CONTROLS = {b"n": b"\n", b"t": b"\t", b"r": b"\r", b"b": b"\b", b"0": b"\0", b"Z": b"\x1a"}
_SHOWN_MAX = 40
_PIECE_BYTES = 1 << 16
"""Looked at together: what numpy makes of so much stays in the processor's caches."""


class RecordMalformed(ValueError):
    """Records of which at least one breaks the rules of quotes: why, if it is alone."""


class Quoting:
    """Finds and checks the records of one dialect in bytes that begin with a record."""

    def __init__(self, dialect: Dialect) -> None:
        self._dialect = dialect
        self._quote, self._escape = dialect.quote.encode(), dialect.escape.encode()
        d, q, e = (
            re.escape(one.encode()) for one in (dialect.delimiter, dialect.quote, dialect.escape)
        )
        self._fields, lenient = _fields_of(d, q, e)
        # Possessive throughout: what is there is matched in one pass or not at all.
        self._records = re.compile(
            rb"(?:%b(?:%b%b)*+(?:\r?\n|\r?\Z))*+" % (self._fields, d, self._fields)
        )
        self._record = re.compile(rb"%b(?:%b%b)*+\n" % (lenient, d, lenient))
        self._field = re.compile(self._fields)
        self._begins = _table(self._dialect.delimiter, "\n")
        self._ends = _table(self._dialect.delimiter, "\r\n")
        # Where a block was cut, its quotes have been looked at; it is parsed next.
        self._seen: tuple[bytes, Any] = (b"", np.zeros(0, np.int64))

    def first(self, data: bytes, at_least: int) -> int:
        """Index after the first record end at or after `at_least`; 0 if there is none."""
        if not self._may_hide_line_ends(data):
            return data.find(b"\n", at_least) + 1
        lone = self._lone_quotes(data)
        if lone is None:
            return next((end for end in self._record_ends(data) if end > at_least), 0)
        found = data.find(b"\n", at_least)
        while found >= 0 and (before := int(np.searchsorted(lone, found))) % 2:
            found = data.find(b"\n", int(lone[before])) if before < len(lone) else -1
        return found + 1

    def last(self, data: bytes) -> int:
        """Index after the last record end; 0 if there is none."""
        if not self._may_hide_line_ends(data):
            return data.rfind(b"\n") + 1
        lone = self._lone_quotes(data)
        if lone is None:
            end = 0
            for end in self._record_ends(data):  # noqa: B007 - the last one is wanted
                pass
            return end
        found = data.rfind(b"\n")
        while found >= 0 and (before := int(np.searchsorted(lone, found))) % 2:
            found = data.rfind(b"\n", 0, int(lone[before - 1]))
        return found + 1

    def has_inner_line_ends(self, data: bytes) -> bool:
        """Return whether a line of the data, of which all are whole, may not be a record."""
        if not self._may_hide_line_ends(data):
            return False
        lone = self._lone_quotes(data)
        if lone is None or len(lone) % 2:
            return True
        ends = np.flatnonzero(np.frombuffer(data, np.uint8) == ord("\n"))
        return bool(np.any(np.searchsorted(lone, ends) % 2))

    def as_rfc(self, data: bytes) -> tuple[bytes, str]:
        """Whole records without escapes, and what quotes their fields, if anything does.

        Raises RecordMalformed.
        """
        has_escapes = self._escape in data if self._escape else False
        if not self._is_plain(data) and not self._records.fullmatch(data):
            raise RecordMalformed(self._why(data))
        if not has_escapes:
            return data, self._dialect.quote
        return self._field.sub(self._unescaped, data), self._dialect.quote or '"'

    def _may_hide_line_ends(self, data: bytes) -> bool:
        if self._quote:
            return self._quote in data
        return bool(self._escape) and self._escape in data

    def _is_plain(self, data: bytes) -> bool:
        """Return whether the records are surely well formed, as the places of the quotes tell."""
        if b"\r" in data and data.count(b"\r") != data.count(b"\r\n") + data.endswith(b"\r"):
            return False
        if self._may_hide_line_ends(data):
            lone = self._lone_quotes(data)
            return lone is not None and len(lone) % 2 == 0
        return True

    def _lone_quotes(self, data: bytes) -> Any:
        """The places of the quotes that open and close fields, in turn; none if a quote may be
        anything else.
        """
        seen, lone = self._seen
        if lone is None or not data or not seen.startswith(data):
            lone = self._found_lone_quotes(data)
            self._seen = data, lone
            return lone
        return lone[: np.searchsorted(lone, len(data))]

    def _found_lone_quotes(self, data: bytes) -> Any:
        if not self._quote or (self._escape and self._escape in data):
            return None
        found, at, is_inside = [np.zeros(0, np.int64)], 0, False
        while at < len(data):
            # Whole lines, so that what is beside a quote is in the same piece.
            line_end = data.rfind(b"\n", at, at + _PIECE_BYTES) + 1 or data.find(b"\n", at) + 1
            end = line_end or len(data)
            lone = self._lone_in(np.frombuffer(data, np.uint8, end - at, at), is_inside)
            if lone is None:
                return None
            found.append(lone + at)
            at, is_inside = end, is_inside ^ bool(len(lone) & 1)
        return np.concatenate(found)

    def _lone_in(self, text: Any, is_inside: bool) -> Any:
        places = np.flatnonzero(text == ord(self._quote))
        if not places.size:
            return places
        # The last byte of a piece that ends in a quote is followed by nothing, which is an end.
        after = text if places[-1] < len(text) - 1 else np.append(text, ord("\n"))
        before = text if places[0] > 0 else np.append(text, ord("\n"))  # which is at -1
        breaks = places[1:] - places[:-1] != 1
        if breaks.all():
            opens, closes = places[is_inside::2], places[1 - is_inside :: 2]
            good = self._begins[before[opens - 1]].all() and self._ends[after[closes + 1]].all()
            return places if good else None
        # Of quotes side by side each two are one, and one may be left, which opens or closes.
        at = np.flatnonzero(breaks)
        starts = np.concatenate((places[:1], places[at + 1]))
        ends = np.concatenate((places[at], places[-1:]))
        is_lone = (ends - starts) & 1 == 0
        is_open = (np.cumsum(is_lone, dtype=np.uint8) & 1).astype(bool) ^ is_inside
        was_open = is_open ^ is_lone
        good = (self._begins[before[starts - 1]] | was_open).all() and (
            self._ends[after[ends + 1]] | is_open
        ).all()
        return starts[is_lone] if good else None

    def _record_ends(self, data: bytes) -> Iterator[int]:
        position = 0
        while match := self._record.match(data, position):
            position = match.end()
            yield position

    def _unescaped(self, field: re.Match[bytes]) -> bytes:
        text, q, e = field[0], self._quote, self._escape
        if q and not text.startswith(q):
            return text
        if not q and (e not in text and b'"' not in text):
            return text
        if not q and text.decode() in (self._dialect.null or ()):
            return text
        q = q or b'"'
        inner = text[1:-1].replace(q + q, q) if self._quote else text
        parts = inner.split(e)
        done, at = [parts[0]], 1
        while at < len(parts):
            part = parts[at]
            if part:
                done.append(self._meant(part[:1]) + part[1:])
            else:
                # Two escapes are one, and what follows is as it stands.
                at += 1
                done.append(e + (parts[at] if at < len(parts) else b""))
            at += 1
        return q + b"".join(done).replace(q, q + q) + q

    def _meant(self, escaped: bytes) -> bytes:
        if escaped in _CONTROLS:
            return _CONTROLS[escaped]
        if escaped in (self._quote, self._dialect.delimiter.encode(), b"\n", b"\r"):
            return escaped
        shown = self._escape + escaped
        raise RecordMalformed(
            f"{shown.decode(errors='backslashreplace')!r} stands for nothing; if it is a field "
            "that means no value, name it by --null (null in Python)"
        )

    def _why(self, data: bytes) -> str:
        """Return the fault of a record, for a person; of several, not asked."""
        position = 0
        d = self._dialect.delimiter.encode()
        while position < len(data):
            field = self._field.match(data, position)
            rest = data[field.end() if field else position :]
            if field is None:
                return "a quoted field is not closed"
            if rest[:1] in (d, b"\n"):
                position = field.end() + 1
                continue
            if rest[:2] == b"\r\n":
                position = field.end() + 2
                continue
            shown = rest[:_SHOWN_MAX].decode(errors="backslashreplace")
            if rest.startswith(b"\r"):
                return (
                    "a carriage return alone stands outside of quotes; lines end with LF or CR LF"
                )
            advice = (
                ""
                if self._escape
                else "; if quotes are escaped by \\, start with --escape '\\' (escape in Python)"
            )
            return f"text follows a closing quote: {shown.rstrip()!r}{advice}"
        return "a quoted field is not closed"


def _fields_of(d: bytes, q: bytes, e: bytes) -> tuple[bytes, bytes]:
    """Expressions for a field: as it should be, and so that what follows is found in any case."""
    if not q:
        if e:
            escaped = rb"(?:[^%b%b\r\n]++|%b(?:\r\n|[\s\S]))*+" % (d, e, e)
            return escaped, escaped
        return rb"[^%b\r\n]*+" % d, rb"[^%b\n]*+" % d
    inner = rb"[^%b%b]++|%b%b" % (q, e, q, q) + (rb"|%b[\s\S]" % e if e else b"")
    quoted = rb"%b(?:%b)*+%b" % (q, inner, q)
    return (
        rb"(?:%b|(?!%b)[^%b\r\n]*+)" % (quoted, q, d),
        rb"(?:%b[^%b\n]*+|(?!%b)[^%b\n]*+)" % (quoted, d, q, d),
    )


def _table(*texts: str) -> Any:
    """For each byte, whether it is one of these characters."""
    table = np.zeros(256, bool)
    table[[*"".join(texts).encode()]] = True
    return table
