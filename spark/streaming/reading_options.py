"""The options of a streaming source on how its files are read, from the texts that Spark has.

Runs wherever Spark makes its objects.
"""

from __future__ import annotations

from collections.abc import Mapping

from epochgate.spark.files.dialect import Dialect, DialectUnusable, delimiter_named
from epochgate.spark.files.source_columns import (
    SourceColumns,
    SourceColumnUnusable,
    parse_added,
)
from epochgate.spark.files.text import UTF_8, EncodingUnusable, usable_encoding
from epochgate.spark.streaming.errors import OptionsWrong


def dialect_of(given: Mapping[str, str]) -> Dialect:
    """The dialect of CSV files. Raises OptionsWrong."""
    header = given.get("header", "true").lower()
    if header not in ("true", "false"):
        raise OptionsWrong(f"header={given['header']!r} is neither true nor false")
    try:
        return Dialect(
            delimiter_named(given.get("delimiter", ",")),
            given.get("quote", '"'),
            header == "true",
            (given["null"],) if "null" in given else None,
            given.get("escape", ""),
        )
    except DialectUnusable as error:
        flag, value, why = error.args
        raise OptionsWrong(f"{flag.strip('-')}={value!r} {why}") from error


def added_of(given: Mapping[str, str], *, is_named: bool) -> SourceColumns:
    """The columns that say where a row comes from. Raises OptionsWrong."""
    texts = [text for text in given.get("addColumn", "").split(",") if text.strip()]
    if is_named and texts:
        raise OptionsWrong("addColumn is an option of files, and the source is a class of yours")
    try:
        return parse_added(texts)
    except SourceColumnUnusable as error:
        raise OptionsWrong(f"addColumn={error.args[0]!r}: {error.args[1]}") from error


def encoding_of(given: Mapping[str, str]) -> str:
    """The encoding of text files. Raises OptionsWrong."""
    try:
        return usable_encoding(given.get("encoding", UTF_8))
    except EncodingUnusable as error:
        raise OptionsWrong(
            f"encoding={error.args[0]!r}: {error.args[1]}; give utf-8, or an encoding with one "
            "byte for each character, such as latin-1"
        ) from error
