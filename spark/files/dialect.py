"""The form in which the fields of a CSV file are written: delimiter, quotes, escapes, header, and
no value; and where the records of XML documents and of workbooks stand.

Decides which dialects can be read, and when a delimiter is surely the wrong one: the header is one
column and another delimiter that is common stands in it, outside of quotes. Pure values; used on
the driver and in tasks.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from epochgate.errors import UsageError

COMMON_DELIMITERS = (",", ";", "\t", "|")
_SPELLED = {"tab": "\t", "\\t": "\t", "comma": ",", "semicolon": ";", "pipe": "|"}


class DialectUnusable(UsageError):
    """The files of a source cannot be read in this way: the option's flag, its value, why."""

    def __str__(self) -> str:
        flag, value, why = self.args
        return f"{flag} {value!r} ({flag.strip('-')} in Python) {why}"


@dataclass(frozen=True)
class Dialect:
    """delimiter, quote: one ASCII character each, no quote for files that quote nothing. header:
    whether the first record of each file names the columns. null: texts that mean no value, in
    columns of text as well; none for those that mean it in columns of other types by custom (an
    empty field, NA, null and the like). escape: an ASCII character that takes its meaning from the
    one behind it within quotes, or everywhere without a quote; empty, or the quote, for none.
    row_tag: the name of the element of XML that is a record. sheet: the name of the sheet of a
    workbook, or its number from 1; empty for the first. header: of a sheet, too.

    Raises DialectUnusable.
    """

    delimiter: str = ","
    quote: str = '"'
    header: bool = True
    null: tuple[str, ...] | None = None
    escape: str = ""
    row_tag: str = ""
    sheet: str = ""

    def __post_init__(self) -> None:
        if self.escape == self.quote:
            # A quote that escapes a quote is a doubled one, which is read in any case.
            object.__setattr__(self, "escape", "")
        for flag, value in (
            ("--delimiter", self.delimiter),
            ("--quote", self.quote),
            ("--escape", self.escape),
        ):
            if flag != "--delimiter" and not value:
                continue
            if len(value) != 1 or not value.isascii() or value in "\r\n":
                raise DialectUnusable(
                    flag, value, "must be one ASCII character, such as ';', or the word tab"
                )
        if self.delimiter == self.quote:
            raise DialectUnusable("--quote", self.quote, "is the delimiter as well; give another")
        if self.delimiter == self.escape:
            raise DialectUnusable("--escape", self.escape, "is the delimiter as well; give another")

    def to_list(self) -> list[Any]:
        """A list of plain values, for msgpack."""
        null = None if self.null is None else list(self.null)
        rest = [self.escape, self.row_tag, self.sheet]
        while rest and not rest[-1]:
            rest.pop()
        return [self.delimiter, self.quote, self.header, null, *rest]

    @classmethod
    def from_list(cls, values: Sequence[Any]) -> Dialect:
        """Inverse of `to_list`; `ValueError` for anything else."""
        delimiter, quote, header, null, *rest = values
        return cls(delimiter, quote, header, None if null is None else tuple(null), *rest)


def delimiter_named(text: str) -> str:
    r"""A delimiter as it is given on a command line, where a tab is hard to type.

    >>> delimiter_named("tab"), delimiter_named("\\t"), delimiter_named(";")
    ('\t', '\t', ';')
    """
    return _SPELLED.get(text, text)


def show_delimiter(delimiter: str) -> str:
    r"""The delimiter as one would type it behind the flag.

    >>> show_delimiter("\t"), show_delimiter(";")
    ('tab', "';'")
    """
    return "tab" if delimiter == "\t" else f"'{delimiter}'"


def other_delimiter(line: str, dialect: Dialect) -> str | None:
    """The delimiter that a line of one field was more likely written with; none if there is none.

    >>> other_delimiter("id;name", Dialect()), other_delimiter('"id;name"', Dialect())
    (';', None)
    """
    if dialect.delimiter in line or (dialect.quote and dialect.quote in line):
        return None
    found = {other: line.count(other) for other in COMMON_DELIMITERS if other in line}
    return max(found, key=lambda other: found[other]) if found else None
