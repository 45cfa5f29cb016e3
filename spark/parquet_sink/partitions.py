"""Rows by the values of columns, for directories in Hive's manner: `country=DE/day=3`.

Decides which columns can be partitioned by, how a value is written in a directory's name, and how
it comes back. Readers show the columns, which are in no file, and infer their types: a text `07`
comes back as the number 7 from most of them. Spark's rules: a value that is missing is
`__HIVE_DEFAULT_PARTITION__`, which readers show as missing. Sinks refuse an empty text, of which
Spark makes the same. Used in tasks and by `read`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Final
from urllib.parse import quote, unquote

import pyarrow as pa
import pyarrow.compute as pc

from epochgate.errors import UsageError
from epochgate.spark.values.fitting import require, tried

MISSING: Final = "__HIVE_DEFAULT_PARTITION__"
VALUE_BYTES_MAX: Final = 200
"""Of a value as it is written; file systems take names of 255 bytes."""


class PartitionUnusable(UsageError):
    """The output cannot be partitioned like this: column, reason."""

    def __str__(self) -> str:
        return f"cannot partition by {self.args[0]!r}: {self.args[1]}."


def require_partitionable(
    schema: pa.Schema, columns: Sequence[str], more: Iterable[Callable[[pa.DataType], bool]] = ()
) -> None:
    """Raise PartitionUnusable unless rows of `schema` can be partitioned by `columns`, of which
    some may be of kinds that only this table has (`more`).
    """
    for name in columns:
        if schema.get_all_field_indices(name) == []:
            raise PartitionUnusable(name, f"the output has {', '.join(schema.names)}")
        kind = schema.field(name).type
        is_text = pa.types.is_string(kind) or pa.types.is_large_string(kind)
        if not (is_text or any(is_kind(kind) for is_kind in (*_KINDS, *more))):
            reason = f"it is {kind}; take a text, an integer, a boolean or a date"
            raise PartitionUnusable(name, reason)
    if columns and len(set(columns)) == len(schema.names):
        raise PartitionUnusable(columns[-1], "no column would be left for the files")


_KINDS = (pa.types.is_integer, pa.types.is_boolean, pa.types.is_date)


def require_told(batch: pa.RecordBatch, columns: Iterable[str], where: str) -> None:
    """Raise ValueDoesNotFit for a text of these columns that readers would show as missing."""
    for name in columns:
        if pa.types.is_string(batch.schema.field(name).type):
            tried(batch.column(name), name, "a partition's value", where, _told)


def _told(texts: pa.Array) -> pa.Array:
    told = "readers show an empty text of a partition as missing (of CSV, --null '' reads it so)"
    require(pc.not_equal(texts, ""), told)
    require(pc.not_equal(texts, MISSING), "readers show this text of a partition as missing")
    return texts


def without(schema: pa.Schema, columns: Sequence[str]) -> pa.Schema:
    """Return the schema of the files, in which these columns are left out."""
    return pa.schema([field for field in schema if field.name not in columns])


def partitioned(table: pa.Table, columns: Sequence[str]) -> list[tuple[str, pa.Table]]:
    """The rows of each directory, in the order of the first row of each; without `columns`: all.

    Raises PartitionUnusable for a value that is too long.

    >>> table = pa.table({"c": ["b", None, "b"], "x": [1, 2, 3]})
    >>> [(name, part["x"].to_pylist()) for name, part in partitioned(table, ["c"])]
    [('c=b', [1, 3]), ('c=__HIVE_DEFAULT_PARTITION__', [2])]
    """
    if not columns:
        return [("", table)]
    keys = zip(*(_texts(table[name]) for name in columns), strict=True)
    rows: dict[str, list[int]] = {}
    named: dict[tuple[str | None, ...], str] = {}
    for number, values in enumerate(keys):
        if values not in named:
            pairs = zip(columns, values, strict=True)
            named[values] = "/".join(_directory(name, value) for name, value in pairs)
        rows.setdefault(named[values], []).append(number)
    kept = table.drop_columns(list(columns))
    return [(name, kept.take(pa.array(numbers))) for name, numbers in rows.items()]


def with_columns(table: pa.Table, directory: str, schema: pa.Schema) -> pa.Table:
    """The rows of a file in `directory`, with the columns and in the order of `schema`."""
    for name, value in values_of(directory).items():
        array = pa.array([value] * table.num_rows, pa.string()).cast(schema.field(name).type)
        table = table.append_column(name, array)
    return table.select(schema.names)


def values_of(directory: str) -> dict[str, str | None]:
    """The values that a directory names, as texts, by column; none for one that is missing.

    >>> values_of("country=DE/day=__HIVE_DEFAULT_PARTITION__/of=a%2Fb")
    {'country': 'DE', 'day': None, 'of': 'a/b'}
    """
    pairs = (one.split("=", 1) for one in directory.split("/") if one)
    return {unquote(name): None if text == MISSING else unquote(text) for name, text in pairs}


def columns_of(directory: str) -> list[str]:
    """The columns that a directory names, in their order.

    >>> columns_of("country=DE/day=3")
    ['country', 'day']
    """
    return list(values_of(directory))


class PartitioningChanged(UsageError):
    """The target is partitioned by other columns: path, its columns, those asked for."""

    def __str__(self) -> str:
        path, found, asked = self.args
        return (
            f"target {path!r} is partitioned by {', '.join(found) or 'nothing'}, and this start "
            f"asks for {', '.join(asked) or 'nothing'}: readers would find directories of two "
            "kinds. Give the same --partition-by (partition_by in Python), or a new target."
        )


def _texts(column: pa.ChunkedArray) -> list[str | None]:
    """The values as they are written; a moment in UTC in the form of ISO 8601."""
    texts = column.cast(pa.string()).to_pylist()
    if pa.types.is_timestamp(column.type) and column.type.tz is not None:
        return [text and text.replace(" ", "T") for text in texts]
    return texts  # type: ignore[no-any-return]  # of Arrow


def _directory(name: str, text: str | None) -> str:
    if text == MISSING:
        raise PartitionUnusable(name, f"the text {text!r} stands for a missing value")
    written = _escaped(text) if text else MISSING
    if len(written.encode()) > VALUE_BYTES_MAX:
        raise PartitionUnusable(
            name, f"the value {str(text)[:40]!r}... is too long for a directory"
        )
    return f"{_escaped(name)}={written}"


def _escaped(text: str) -> str:
    """Characters of ASCII that a path may not hold as %2F; others stay, since Spark reads each
    escape as one character.
    """
    return "".join(one if one > "\x7f" else quote(one, safe=" ,;@&()!~") for one in text)
