"""Blocks of records as tables, with each bad record alone.

Decides how a bad record is found: a block of CSV that does not parse is halved until the bad record
stands alone, and one of JSON lines is read line by line, so that which rows are read does not
depend on where a block began. A block without a bad record is parsed once, and no line of it is
counted. Runs in a task.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import BinaryIO

import pyarrow as pa

from epochgate.spark.files.json_lines import JsonLines, LinesUnsure
from epochgate.spark.files.layout import cause_of
from epochgate.spark.files.lines import LineCounter
from epochgate.spark.files.parsing import RecordParser
from epochgate.spark.files.quoting import RecordMalformed
from epochgate.spark.files.records import RecordEnds
from epochgate.spark.files.rejected import RejectedRow, ValueInvalid, raw_text
from epochgate.spark.files.split import FileSplit
from epochgate.spark.files.text import NotText, as_utf8
from epochgate.spark.files.text_lines import TextLines


@dataclass(frozen=True)
class Piece:
    """Whole records from byte `at` to byte `after`: a table, or one that is bad."""

    at: int
    after: int
    content: pa.Table | RejectedRow


class RecordBlocks:
    """Parses blocks of one split's records; `lines` counts those of the file, which `reopened`
    opens once more. rescues: whether a bad record is a row, if values of it fit.
    """

    def __init__(
        self,
        split: FileSplit,
        parser: RecordParser | JsonLines | TextLines,
        ends: RecordEnds,
        encoding: str,
        lines: LineCounter,
        reopened: Callable[[], BinaryIO],
        rescues: bool = False,
    ) -> None:
        self._rescues = rescues
        self._split, self._parser, self._ends = split, parser, ends
        self._reopened = reopened
        self._encoding, self._lines = encoding, lines

    def parse(self, offset: int, data: bytes) -> Iterator[Piece]:
        """The pieces of a block that begins at `offset`, in order."""
        try:
            table = self._parser.parse(as_utf8(data, self._encoding, offset))
        except LinesUnsure:
            yield from self._by_line(offset, data)
            return
        except (pa.ArrowException, NotText, RecordMalformed, ValueInvalid) as error:
            middle = self._ends.last(data[: len(data) // 2]) or self._ends.first(data, 0)
            if middle in (0, len(data)):
                content = self._rescued(offset, data, error) or self._explained(offset, data, error)
                yield Piece(offset, offset + len(data), content)
                return
            yield from self.parse(offset, data[:middle])
            yield from self.parse(offset + middle, data[middle:])
            return
        yield Piece(offset, offset + len(data), table)

    def _by_line(self, offset: int, data: bytes) -> Iterator[Piece]:
        assert isinstance(self._parser, JsonLines)
        ends = [0, *itertools.accumulate(len(line) + 1 for line in data.split(b"\n"))]
        at = 0
        for lines, content in self._parser.by_line(as_utf8(data, self._encoding, offset)):
            first, after = ends[at], min(ends[at + lines], len(data))
            at += lines
            if isinstance(content, ValueInvalid):
                content = self._explained(offset + first, data[first:after], content)
            yield Piece(offset + first, offset + after, content)

    def _rescued(self, offset: int, data: bytes, error: Exception) -> pa.Table | None:
        if not self._rescues or isinstance(error, NotText):
            return None
        assert isinstance(self._parser, RecordParser)
        return self._parser.rescue(as_utf8(data, self._encoding, offset))

    def _explained(self, offset: int, data: bytes, error: Exception) -> RejectedRow:
        raw = raw_text(data, self._encoding)
        if isinstance(error, NotText):
            column, reason = None, cause_of(error, self._reopened)
        elif isinstance(error, ValueInvalid):
            column, reason, raw = error.column, error.reason, error.record or raw
        else:
            assert isinstance(self._parser, RecordParser)
            column, reason = self._parser.explain(error, raw)
        return RejectedRow(self._split.path, self._lines.line_at(offset), column, reason, raw)
