"""Columns that the names of directories hold, in Hive's manner: `dt=2024-01-01/hour=07/`.

Decides which directories count, what type a column has if no schema says it, and which value a name
stands for. Runs on the driver, and for the values in tasks.
"""

from __future__ import annotations

import datetime
import glob
import os
from collections.abc import Iterable
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.compute as pc

from epochgate.errors import UsageError
from epochgate.runtime.objects.client import is_remote
from epochgate.spark.files.checkpoint_directory import checkpoint_of
from epochgate.spark.files.ddl import spark_type
from epochgate.spark.files.object_finding import root_of_url

NO_VALUE = "__HIVE_DEFAULT_PARTITION__"
INT64_DIGITS_MAX = 18


class PartitionsDiffer(UsageError):
    """A file lies in directories of other columns: path, its columns, first path, its columns."""

    def __str__(self) -> str:
        path, found, first, expected = self.args
        return (
            "the columns of the directories change between files.\n"
            f"  {first}: {', '.join(expected) or '(none)'}\n"
            f"  {path}: {', '.join(found) or '(none)'}\n"
            "All files of one source lie in directories of the same columns. Move the file, narrow "
            "the source with a pattern, or start with --on-bad-file skip (on_bad_file in Python), "
            "which records it and continues without it."
        )


class PartitionValueInvalid(UsageError):
    """The name of a directory holds no value of the column's type: path, column, text, type."""

    def __str__(self) -> str:
        path, column, text, kind = self.args
        return (
            f"{path!r} lies in a directory {column}={text}, and {text!r} is no {spark_type(kind)}, "
            f"which the "
            f"column {column!r} is. Give the column another type by --schema (schema in Python), "
            f"such as '{column} STRING', rename the directory, or start with --on-bad-file skip "
            "(on_bad_file), which records the file and continues without it."
        )


class PartitionColumnInFile(UsageError):
    """A column is in the files, and in the names of their directories: path, column."""

    def __str__(self) -> str:
        path, column = self.args
        return (
            f"{path!r} has a column {column!r}, and lies in a directory that names it as well: the "
            "one would hide the other. Rename the directory or the column, narrow the source with "
            "a pattern to one directory at a time, or start with --on-bad-file skip (on_bad_file "
            "in Python), which records the file and continues without it."
        )


def root_of(source: str) -> str:
    """The directory below which the names of directories hold columns.

    >>> root_of("/data/in/dt=*/*.csv")
    '/data/in'
    """
    if is_remote(source):
        return root_of_url(source)
    if os.path.isdir(source):
        return source
    parts = source.split(os.sep)
    plain = next((i for i, part in enumerate(parts) if glob.has_magic(part)), len(parts) - 1)
    return os.sep.join(parts[:plain]) or os.sep


def partition_texts(path: str, root: str) -> dict[str, str | None]:
    """Return the values that the directories between `root` and the file say, in their order; as
    text.

    >>> partition_texts("/in/dt=2024-01-01/k=a%20b/x.csv", "/in")
    {'dt': '2024-01-01', 'k': 'a b'}
    """
    texts: dict[str, str | None] = {}
    below = path.removeprefix(root) if is_remote(path) else os.path.relpath(path, root)
    for name in os.path.dirname(below).split(os.sep):
        column, equals, text = name.partition("=")
        # The number of a checkpoint is no data of the target that is read here.
        if equals and column and checkpoint_of(name) is None:
            texts[unquote(column)] = None if text == NO_VALUE else unquote(text)
    return texts


def infer_type(texts: Iterable[str | None]) -> pa.DataType:
    """BIGINT, DATE or STRING: the first that all these texts are.

    >>> infer_type(["1", "-20"]), infer_type(["2024-01-01", None]), infer_type(["1", "x"])
    (DataType(int64), DataType(date32[day]), DataType(string))
    """
    values = {text for text in texts if text is not None}
    if not values:
        return pa.string()
    if all(_is_number(text) for text in values):
        return pa.int64()
    if all(_is_date(text) for text in values):
        return pa.date32()
    return pa.string()


def partition_value(path: str, field: pa.Field) -> pa.Scalar:
    """The value that the innermost directory of this column has. Raises PartitionValueInvalid."""
    text = partition_texts(path, os.sep).get(field.name)
    try:
        if text is None and not field.nullable:
            raise pa.ArrowInvalid("no value")
        return pc.cast(pa.scalar(text, pa.string()), field.type)
    except pa.ArrowException as error:
        raise PartitionValueInvalid(path, field.name, text or NO_VALUE, field.type) from error


def _is_number(text: str) -> bool:
    digits = text.removeprefix("-")
    # A leading zero is part of a name, such as that of an hour or a post code.
    return (
        digits.isascii()
        and digits.isdigit()
        and len(digits) <= INT64_DIGITS_MAX
        and (digits == "0" or not digits.startswith("0"))
    )


def _is_date(text: str) -> bool:
    try:
        return datetime.date.fromisoformat(text).isoformat() == text
    except ValueError:
        return False
