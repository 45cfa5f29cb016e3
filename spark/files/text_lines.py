"""Lines of text as rows of one column.

Decides what a line is: the text up to LF or CR LF, which is left out, so that a line without a
letter is a row with an empty text. Runs in a task.
"""

from __future__ import annotations

import pyarrow as pa

from epochgate.spark.files.split import SourceLayout

LINE = pa.schema([pa.field("value", pa.string())])
"""The column, unless a schema names it."""


class TextLines:
    """Reads the lines of one layout."""

    def __init__(self, layout: SourceLayout) -> None:
        self._schema = pa.schema([one.with_nullable(True) for one in layout.schema])

    def parse(self, text: bytes) -> pa.Table:
        """Whole lines as a table."""
        lines = text.decode().split("\n")
        if lines[-1] == "":
            lines.pop()
        found = pa.array([line.removesuffix("\r") for line in lines], self._schema.field(0).type)
        return pa.Table.from_arrays([found], schema=self._schema)
