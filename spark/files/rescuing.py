"""The column of rescued values: what stands in a row of text and does not fit its columns.

Decides its name and its form: a JSON object with the text of each such value as it stands in the
file, JSON as it is and all else as a string, and the path of the file. Pure; used in tasks.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Final

import pyarrow as pa

from epochgate.spark.files.rejected import ValueInvalid

RESCUED: Final = pa.field("_rescued", pa.string())
FILE_PATH: Final = "_file_path"
"""The member with the path of the file, as Auto Loader names it."""


def rescued_json(path: str, texts: Mapping[str, str]) -> str | None:
    """The object for one row, from the JSON texts of values by column; none if there are none.

    Raises ValueInvalid where it could not be told what is a value and what the path.

    >>> rescued_json("/in/a.csv", {"n": '"1,5"'})
    '{"n": "1,5", "_file_path": "/in/a.csv"}'
    """
    if not texts:
        return None
    if FILE_PATH in texts:
        raise ValueInvalid(FILE_PATH, "a value of this name cannot be rescued")
    members = [*texts.items(), (FILE_PATH, json.dumps(path, ensure_ascii=False))]
    told = ", ".join(f"{json.dumps(name, ensure_ascii=False)}: {text}" for name, text in members)
    return f"{{{told}}}"


def with_rescued(table: pa.Table, rescued: list[str | None]) -> pa.Table:
    """The rows with the column, if any of them has a value in it."""
    if not any(rescued):
        return table
    return table.append_column(RESCUED, pa.array(rescued, RESCUED.type))
