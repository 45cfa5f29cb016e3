"""The options of a streaming source on how its files are read, from the texts that Spark has.

Runs wherever Spark makes its objects.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

import pyarrow as pa

from epochgate.spark.files.ddl import SchemaUnreadable, parse_schema
from epochgate.spark.files.dialect import Dialect, DialectUnusable, delimiter_named
from epochgate.spark.files.modified import (
    ANY_TIME,
    ModifiedBetween,
    TimeUnreadable,
    parse_modified,
)
from epochgate.spark.files.rejected import OnBadRow
from epochgate.spark.files.source_columns import (
    SourceColumns,
    SourceColumnUnusable,
    parse_added,
)
from epochgate.spark.files.text import UTF_8, EncodingUnusable, usable_encoding
from epochgate.spark.streaming.errors import OptionsWrong

OF_FILES: Final = ("schemaHints", "onBadRow", "modifiedAfter", "modifiedBefore", "newOnly")
"""The options of `Taking`; a class of the user's has none of them."""


@dataclass(frozen=True)
class Taking:
    """The files that are taken, and what is made of values that do not fit: fields as the options
    of `FileEnumeration`. new_only: files that were there when `state` was first used are not read.
    """

    hints: pa.Schema = field(default_factory=lambda: pa.schema([]))
    on_bad_row: OnBadRow = "fail"
    modified: ModifiedBetween = ANY_TIME
    new_only: bool = False

    @property
    def rescues(self) -> bool:
        """True if values that do not fit go into a column of their own."""
        return self.on_bad_row == "rescue"


def taking_of(given: Mapping[str, str], *, is_named: bool) -> Taking:
    """Return it as these options say. Raises OptionsWrong."""
    if is_named and (one := next((name for name in OF_FILES if name in given), None)):
        raise OptionsWrong(f"{one} is an option of files, and the source is a class of yours")
    new_only = given.get("newOnly", "false").lower()
    if new_only not in ("true", "false"):
        raise OptionsWrong(f"newOnly={given['newOnly']!r} is neither true nor false")
    on_bad_row = given.get("onBadRow", "fail")
    if on_bad_row not in ("fail", "rescue"):
        raise OptionsWrong(
            f"onBadRow={on_bad_row!r} is neither fail nor rescue; rows are rejected into a table "
            "of their own by `epochgate ingest --on-bad-row reject` alone"
        )
    try:
        modified = parse_modified(given.get("modifiedAfter"), given.get("modifiedBefore"))
    except TimeUnreadable as error:
        flag, text = error.args
        name = "modifiedAfter" if flag == "modified-after" else "modifiedBefore"
        raise OptionsWrong(
            f"{name}={text!r} is no time; write it as 2026-11-29 or 2026-11-29T12:30:00+01:00"
        ) from error
    return Taking(
        _hints_of(given.get("schemaHints", "")),
        "rescue" if on_bad_row == "rescue" else "fail",
        modified,
        new_only == "true",
    )


def _hints_of(text: str) -> pa.Schema:
    if not text.strip():
        return pa.schema([])
    try:
        hints = parse_schema(text, "schemaHints")
    except SchemaUnreadable as error:
        raise OptionsWrong(str(error)) from error
    if demanded := next((one.name for one in hints if not one.nullable), None):
        raise OptionsWrong(
            f"schemaHints: {demanded!r} is NOT NULL, which a column of Spark's does not demand of "
            "its files; filter the rows of the stream, or let `epochgate ingest` read them"
        )
    return hints


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


def number_of(given: Mapping[str, str], name: str, default: int | None) -> int | None:
    """A number above 0. Raises OptionsWrong."""
    try:
        number = default if name not in given else int(given[name])
    except ValueError:
        number = 0
    if number is not None and number < 1:
        raise OptionsWrong(f"{name}={given[name]!r} is no number above 0")
    return number


def seconds_of(given: Mapping[str, str], name: str, default: float) -> float:
    """A time, 0 or more. Raises OptionsWrong."""
    try:
        seconds = float(given.get(name, default))
    except ValueError:
        seconds = -1.0
    if not 0 <= seconds < math.inf:
        raise OptionsWrong(f"{name}={given[name]!r} is no number of seconds, 0 or more")
    return seconds
