"""Columns that say where a row comes from: the file, and the row of it.

Decides: which facts there are, of which types, and the value of each in a row. They depend on the
file as it was enumerated, and on the place of the row in it, so they are the same whenever the row
is read. Runs on the driver, and for the values in tasks.
"""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Iterable
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa

from epochgate.errors import UsageError
from epochgate.spark.files.rescuing import RESCUED

if TYPE_CHECKING:
    from epochgate.spark.files.split import FileSplit

SourceColumns = tuple[tuple[str, str], ...]
"""Names of columns, each with the fact that it holds."""

ROW: Final = "file.row"
FACTS: Final = MappingProxyType(
    {
        "file.path": pa.string(),
        "file.name": pa.string(),
        "file.size": pa.int64(),
        "file.modified": pa.timestamp("us", tz="UTC"),
        ROW: pa.int64(),
    }
)
_OF_FILE: Final[MappingProxyType[str, Callable[[FileSplit], Any]]] = MappingProxyType(
    {
        "file.path": lambda split: split.path,
        "file.name": lambda split: posixpath.basename(split.path),
        "file.size": lambda split: split.size_bytes,
        "file.modified": lambda split: split.modified_ns // 1000,
    }
)


class SourceColumnUnusable(UsageError):
    """A column of the source cannot be added: as it was given, why."""

    def __str__(self) -> str:
        given, why = self.args
        return (
            f"--add-column {given} (add_columns in Python): {why}. Write NAME=FACT, such as "
            f"source_file=file.path, or FACT alone for the name file_path. The facts: "
            f"{', '.join(FACTS)}."
        )


class SourceColumnInFile(UsageError):
    """A column that is added is one of the files' own: path, name."""

    def __str__(self) -> str:
        path, name = self.args
        begin = f"{path!r} has a column {name!r}, which"
        hides = "adds as well: the one would hide the other."
        if name.lower() == RESCUED.name:
            told = (
                f"{begin} --on-bad-row rescue (on_bad_row in Python) {hides} Read other columns "
                "with --columns (columns in Python)"
            )
        else:
            told = (
                f"{begin} --add-column (add_columns in Python) {hides} Name the added one _{name} "
                "for instance"
            )
        return (
            f"{told}, or start with --on-bad-file skip (on_bad_file), which records the file and "
            "continues without it."
        )


def parse_added(texts: Iterable[str]) -> SourceColumns:
    """The columns that these texts name. Raises SourceColumnUnusable.

    >>> parse_added(["source_file=file.path", "file.row"])
    (('source_file', 'file.path'), ('file_row', 'file.row'))
    """
    added: dict[str, str] = {}
    for text in texts:
        name, equals, fact = (part.strip() for part in text.rpartition("="))
        if fact == "checkpoint.id":
            raise SourceColumnUnusable(
                text,
                "which checkpoint a row is committed with is known only after the row is written. "
                "A Parquet target tells it by its directories, checkpoint=N",
            )
        if fact not in FACTS:
            raise SourceColumnUnusable(text, f"there is no fact {fact!r}")
        if equals and not name:
            raise SourceColumnUnusable(text, "the column has no name")
        name = name or fact.replace(".", "_")
        if name.lower() == RESCUED.name:
            raise SourceColumnUnusable(text, f"{name!r} is the column of rescued values")
        if name.lower() in map(str.lower, added):
            raise SourceColumnUnusable(text, f"the name {name!r} is given twice")
        added[name] = fact
    return tuple(added.items())


def schema_of(added: SourceColumns) -> pa.Schema:
    """The columns with their types; each has a value in each row."""
    return pa.schema([pa.field(name, FACTS[fact]) for name, fact in added])


def described(added: SourceColumns) -> str:
    """The columns on one line."""
    return ", ".join(f"{name}={fact}" for name, fact in added) or "(none)"


def without(columns: pa.Schema, added: SourceColumns, *, rescues: bool) -> pa.Schema:
    """The columns but those that are added, and that of rescued values where there is one."""
    names = {name for name, _ in added} | ({RESCUED.name} if rescues else set())
    return pa.schema([field for field in columns if field.name not in names])


def require_apart(path: str, added: SourceColumns, names: Iterable[str], *, rescues: bool) -> None:
    """Refuse a file that has a column of an added one's name. Raises SourceColumnInFile."""
    known = {name.lower() for name, _ in added} | ({RESCUED.name} if rescues else set())
    if known and (both := next((name for name in names if name.lower() in known), None)):
        raise SourceColumnInFile(path, both)


def counts_rows(added: SourceColumns) -> bool:
    """Return whether the number of a row in its file has to be known."""
    return any(fact == ROW for _, fact in added)


class Facts:
    """The values of the added columns in the rows of one split."""

    def __init__(self, added: SourceColumns, split: FileSplit) -> None:
        self._scalars = {
            name: pa.scalar(_OF_FILE[fact](split), FACTS[fact])
            for name, fact in added
            if fact != ROW
        }
        self._names = [name for name, _ in added]

    def columns(self, first_row: int, count: int) -> list[pa.Array]:
        """Those of `count` rows, of which the first has this number in its file."""
        return [
            pa.repeat(self._scalars[name], count)
            if name in self._scalars
            else pa.array(np.arange(first_row, first_row + count))
            for name in self._names
        ]
