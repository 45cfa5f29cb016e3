"""Rows that replace those of the same key in a table, whichever kind of table it is.

Decides what an upsert is: the columns of the key, the columns by which one row of a key is newer
than another, and the condition of rows that delete. Looks at the rows of a batch, and marks those
that delete. Leaves to each target how rows of a key are found in the table. Runs in tasks, and for
the names of columns on the driver; imports nothing of any format.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from epochgate.errors import UsageError
from epochgate.runtime import CommitImpossible
from epochgate.spark.files.condition import parse_condition
from epochgate.spark.files.ddl import spark_type
from epochgate.spark.files.row_filter import RowFilter
from epochgate.spark.values.errors import RowsUnfit
from epochgate.spark.values.fitting import IsKind

DELETED: Final = "epochgate_deleted"
"""The column that is staged with the rows, and says which of them delete."""
_ORDERED: Final[tuple[IsKind, ...]] = (
    pa.types.is_integer,
    pa.types.is_decimal,
    pa.types.is_string,
    pa.types.is_binary,
    pa.types.is_boolean,
    pa.types.is_date32,
    pa.types.is_timestamp,
)
"""Types whose values every reader compares in the same way; floating-point numbers are not."""


def _of(where: str) -> str:
    return f" ({where})" if where else ""


class MergeUnusable(UsageError):
    """An upsert cannot be meant: the reason."""

    def __str__(self) -> str:
        return (
            f"{self.args[0]}. --merge-on (merge_on in Python) names the columns of a key, "
            "--merge-order (merge_order) those by which the greatest row of a key counts, and "
            "--merge-delete (merge_delete) is a condition of rows that delete, such as \"op = 'D'\""
        )


class ColumnOfMergeMissing(RowsUnfit):
    """The rows lack a column that an upsert names: column, those that are there, where."""

    def __str__(self) -> str:
        name, there, where = self.args
        return (
            "--merge-on, --merge-order or --merge-delete (merge_on, merge_order, merge_delete in "
            f"Python) names {name!r}, and the rows{_of(where)} have {there}. Name a column that "
            "all of them have, after the transform. Nothing of these rows has become visible."
        )


class KeyMissing(RowsUnfit):
    """A row without a value in a column of the key or the order: column, row, where."""

    @property
    def row(self) -> int | None:
        """The first such row of the batch."""
        return int(self.args[1])

    def __str__(self) -> str:
        name, _, where = self.args
        return (
            f"column {name!r}, by which rows are merged, has no value in a row{_of(where)}: it "
            "is not known which row of the table it replaces, or whether it is newer. Fill it in "
            "or leave the row out, in the transform, or name other columns in --merge-on and "
            "--merge-order (merge_on and merge_order in Python). Nothing of it has become visible."
        )


class KeyUnusable(RowsUnfit):
    """Values of a type that are not compared alike everywhere: column, its type, where."""

    def __str__(self) -> str:
        name, kind, where = self.args
        return (
            f"column {name!r}, by which rows are merged, is {kind}{_of(where)}, of which values "
            "are not compared in the same way everywhere. Merge by whole numbers, decimals, "
            "texts, days or times; --schema (schema in Python) declares them. Nothing of these "
            "rows has become visible."
        )


class KeyAmbiguous(CommitImpossible):
    """Rows of one key of which none is the last: the table, the key with its values."""

    def __str__(self) -> str:
        table, key = self.args
        return (
            f"several different rows of one checkpoint have the key {key}, and nothing says which "
            f"of them is the last for {table}: files are read at the same time. Name columns that "
            "do by --merge-order (merge_order in Python); --add-column file.modified --add-column "
            "file.name --add-column file.row make some: --merge-order "
            "file_modified,file_name,file_row. Nothing of this checkpoint has become visible."
        )


@dataclass(frozen=True)
class Merge:
    """Rows replace those of the table that have the same values in the columns `on`.

    order: columns by whose values, the first column first, the greatest row of a key counts, also
    beside the one in the table; none for the newest checkpoint. delete: a condition as
    `parse_condition` reads it, of rows that remove the row of their key; "" for none.

    Raises MergeUnusable or ConditionWrong.
    """

    on: tuple[str, ...]
    order: tuple[str, ...] = ()
    delete: str = ""

    def __post_init__(self) -> None:
        for name in (*self.on, *self.order):
            if not name:
                raise MergeUnusable("the name of a column is empty")
        if not self.on:
            raise MergeUnusable("rows are to be merged, and no column of a key is named")
        for names in (self.on, self.order):
            if twice := next((name for name in names if names.count(name) > 1), None):
                raise MergeUnusable(f"the column {twice!r} is named twice")
        if self.delete and (parameters := parse_condition(self.delete).names):
            found = min(parameters)
            raise MergeUnusable(f"the condition has a parameter :{found}, and takes values")

    @cached_property
    def columns(self) -> tuple[str, ...]:
        """The columns of key and order, each once."""
        return tuple(dict.fromkeys((*self.on, *self.order)))

    @cached_property
    def told_apart_by(self) -> tuple[str, ...]:
        """The columns of the condition."""
        if not self.delete:
            return ()
        return tuple(one.column for one in parse_condition(self.delete).comparisons)

    @cached_property
    def _filter(self) -> RowFilter:
        return RowFilter(self.delete, parse_condition(self.delete).bound({}))

    def accepts(self, schema: pa.Schema, where: str = "") -> None:
        """Raise ColumnOfMergeMissing for rows that lack a column, and ConditionWrong for one that
        cannot be compared.
        """
        for name in (*self.columns, *self.told_apart_by):
            if name not in schema.names:
                raise ColumnOfMergeMissing(name, ", ".join(schema.names), where)
        if DELETED in schema.names:
            raise MergeUnusable(f"the rows have a column {DELETED!r}, which an upsert fills in")
        self.deleted(schema.empty_table())

    def require_comparable(self, schema: pa.Schema, where: str = "") -> None:
        """Raise KeyUnusable for columns of types that formats compare each in its own way."""
        for name in self.columns:
            kind = schema.field(name).type
            if not any(is_it(kind) for is_it in _ORDERED):
                raise KeyUnusable(name, spark_type(kind), where)

    def require_values(self, batch: pa.RecordBatch, where: str) -> None:
        """Raise KeyMissing for a row without a key, or without its place in the order."""
        for name in self.columns:
            column = batch.column(name)
            if column.null_count:
                raise KeyMissing(name, pc.index(column.is_null(), True).as_py(), where)

    def deleted(self, rows: pa.RecordBatch | pa.Table) -> pa.BooleanArray:
        """Return of each row whether it deletes. Raises ConditionWrong."""
        numbers = pa.array(range(rows.num_rows), pa.int64())
        names = list(dict.fromkeys(self.told_apart_by))
        if not names or any(pa.types.is_null(rows.schema.field(name).type) for name in names):
            return pa.array([False] * rows.num_rows, pa.bool_())
        columns = [rows.column(name) for name in names]
        numbered = pa.Table.from_arrays([*columns, numbers], names=[*names, DELETED])
        found = self._filter.matching(numbered).column(DELETED)
        return pc.is_in(numbers, value_set=found)

    def marked(self, batch: pa.RecordBatch, names: Collection[str], where: str) -> pa.RecordBatch:
        """The batch with a column that says which rows delete, and without those of the condition
        that the table, with the columns `names`, lacks.

        Raises ColumnOfMergeMissing, KeyMissing, MergeUnusable or ConditionWrong.
        """
        self.accepts(batch.schema, where)
        self.require_values(batch, where)
        needless = set(self.told_apart_by).difference(names)
        kept = [name for name in batch.schema.names if name not in needless]
        columns = [*(batch.column(name) for name in kept), self.deleted(batch)]
        return pa.RecordBatch.from_arrays(columns, names=[*kept, DELETED])

    def require_possible(self, commit_in: str, evolution: str = "none") -> None:
        """Raise MergeUnusable where tasks would commit, or columns grow."""
        if evolution != "none":
            raise MergeUnusable(
                f"rows are merged into columns that stay, and --schema-evolution {evolution} "
                "(schema_evolution) is given as well; leave it out"
            )
        if commit_in != "driver":
            raise MergeUnusable(
                "rows are merged by the driver, which knows all of a key, and --commit-in "
                f"{commit_in} (commit_in) is given as well; leave it out"
            )


def shown_key(on: Sequence[str], values: Sequence[object]) -> str:
    """A key for a message.

    >>> shown_key(["id", "region"], [7, "north"])
    "id=7, region='north'"
    """
    return ", ".join(f"{name}={value!r}" for name, value in zip(on, values, strict=True))
