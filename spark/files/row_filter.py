"""Rows of files that fulfil a condition, and shares of files that have none.

Decides which share may have such rows: by the columns that its directories hold, and by the
smallest and largest values that a Parquet file keeps of each row group. A share of which that is
not known, or whose file is not as it was enumerated, may have some. A row whose column has no
value, or is not a number (NaN), fulfils no comparison of it. Runs where splits are planned, and in
tasks.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.fs as fs

from epochgate.runtime.objects.client import is_remote
from epochgate.runtime.objects.errors import OBJECT_ERRORS
from epochgate.spark.files.access import FileAccess
from epochgate.spark.files.condition import Comparison, ConditionWrong
from epochgate.spark.files.content import Stamp, is_as_it_was
from epochgate.spark.files.ddl import spark_type
from epochgate.spark.files.partitions import partition_value
from epochgate.spark.files.split import FileSplit, SourceLayout

_BUFFER_BYTES = 4096
"""For a look at the first value of a column."""


class RowFilter:
    """The comparisons of a condition with values, on the columns of a source; `text` names the
    condition in errors.
    """

    def __init__(self, text: str, comparisons: Sequence[Comparison]) -> None:
        self._text, self._comparisons = text, comparisons

    def matching(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """The rows that fulfil all comparisons. Raises ConditionWrong."""
        return self._filtered(batch, self._comparisons)

    def may_match(self, split: FileSplit, layout: SourceLayout, access: FileAccess) -> bool:
        """Return whether the share may have such rows. Raises ConditionWrong,
        PartitionValueInvalid, and ObjectStoreError where a store does not answer.
        """
        self._filtered(
            layout.output_schema.empty_table(), self._comparisons
        )  # each column is there
        partitions = layout.partitions.names
        by_directory = [one for one in self._comparisons if one.column in partitions]
        if by_directory:
            values = [partition_value(split.path, field) for field in layout.partitions]
            row = pa.RecordBatch.from_arrays(
                [pa.repeat(value, 1) for value in values], schema=layout.partitions
            )
            if not self._filtered(row, by_directory).num_rows:
                return False
        own = {*layout.own_schema.names} - {*partitions}
        others = [one for one in self._comparisons if one.column in own]
        if not others or split.format != "parquet":
            return True
        return self._has_groups(split, layout.output_schema, others, access)

    def _has_groups(
        self,
        split: FileSplit,
        schema: pa.Schema,
        comparisons: Sequence[Comparison],
        access: FileAccess,
    ) -> bool:
        stamp = Stamp(split.size_bytes, split.modified_ns, split.etag)
        try:
            share = _share(split, stamp, access)
            stored = share.physical_schema
            known = [
                one
                for one in comparisons
                if one.column in stored.names
                and stored.field(one.column).type == schema.field(one.column).type
            ]
            if not known:
                return True
            _require_readable(split, stamp, access, [one.column for one in known])
            left = share.subset(self._expression(schema, known), schema=stored)
            has_changed = not is_as_it_was(stamp, access.stamp_of(split.path))
        except OBJECT_ERRORS:
            raise
        except (OSError, pa.ArrowInvalid):
            return True  # the task that reads it says what is wrong with it
        return has_changed or left.num_row_groups > 0

    def _filtered(self, batch: Any, comparisons: Sequence[Comparison]) -> Any:
        return batch.filter(self._expression(batch.schema, comparisons)) if comparisons else batch

    def _expression(self, schema: pa.Schema, comparisons: Sequence[Comparison]) -> pc.Expression:
        parts = [self._compared(schema, one) for one in comparisons]
        whole = parts[0]
        for part in parts[1:]:
            whole &= part
        return whole

    def _compared(self, schema: pa.Schema, one: Comparison) -> pc.Expression:
        if one.column not in schema.names:
            raise ConditionWrong(
                self._text,
                f"there is no column {one.column!r} among {', '.join(schema.names)}",
            )
        column, kind = pc.field(one.column), schema.field(one.column).type
        if one.operator == "IN":
            scalars = [self._scalar(one, operand, kind) for operand in one.operand]
            same = [scalar.as_py() for scalar in scalars if scalar.type == kind]
            return column.isin(pa.array(same, kind))
        scalar = self._scalar(one, one.operand, kind)
        operators = {
            "=": column == scalar,
            "<": column < scalar,
            "<=": column <= scalar,
            ">": column > scalar,
            ">=": column >= scalar,
        }
        return operators[one.operator]

    def _scalar(self, one: Comparison, operand: Any, kind: pa.DataType) -> pa.Scalar:
        """The operand in the column's type, or in its own where the type has no such number."""
        problem = ConditionWrong(
            self._text,
            f"column {one.column!r} is {spark_type(kind)}, and cannot be compared with {operand!r}",
        )
        if not _is_comparable(operand, kind):
            raise problem
        try:
            return pc.cast(pa.scalar(operand), kind)
        except (pa.ArrowInvalid, OverflowError):
            if isinstance(operand, str):
                raise problem from None
            return pa.scalar(operand)
        except pa.ArrowNotImplementedError:
            raise problem from None


def _share(split: FileSplit, stamp: Stamp, access: FileAccess) -> ds.ParquetFileFragment:
    groups = list(range(split.start, split.end))
    if is_remote(split.path):
        opened = access.open(split.path, stamp)
        return ds.ParquetFileFormat().make_fragment(opened, row_groups=groups)
    # Arrow reads a path without Python.
    files = fs.LocalFileSystem()
    return ds.ParquetFileFormat().make_fragment(split.path, files, row_groups=groups)


def _require_readable(
    split: FileSplit, stamp: Stamp, access: FileAccess, columns: Sequence[str]
) -> None:
    """Look at a value of each column, since pyarrow ends the process when it is asked for the
    statistics of a column whose metadata is encrypted or damaged. Raises OSError, ArrowInvalid.
    """
    with access.parquet(split.path, stamp, buffer_bytes=_BUFFER_BYTES) as file:
        for group in range(split.start, split.end):
            next(file.iter_batches(1, [group], columns, use_threads=False), None)


def _is_comparable(operand: Any, kind: pa.DataType) -> bool:
    of = pa.types
    takes: dict[type, tuple[Callable[[pa.DataType], bool], ...]] = {
        bool: (of.is_boolean,),
        int: (of.is_integer, of.is_floating, of.is_decimal),
        float: (of.is_integer, of.is_floating, of.is_decimal),
        str: (of.is_string, of.is_large_string, of.is_string_view, of.is_temporal),
        bytes: (of.is_binary, of.is_large_binary),
    }
    return any(is_such(kind) for is_such in takes.get(type(operand), ()))
