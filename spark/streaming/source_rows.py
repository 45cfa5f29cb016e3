"""The rows of a split as Spark takes them: batches of Arrow, or tuples by the schema's columns.

Runs in a task.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql import datasource

from epochgate.errors import EpochgateError
from epochgate.runtime.source import SourceReader, SourceSplit
from epochgate.runtime.source.batches.planned import SplitFilter
from epochgate.spark.files import ReadBatch
from epochgate.spark.files.evolution import is_readable_as
from epochgate.spark.streaming.errors import OptionsWrong
from epochgate.spark.values.plain_types import plain

if TYPE_CHECKING:
    from pyspark.sql.types import StructType


@dataclass
class SplitsPartition(datasource.InputPartition):
    """The splits that one task reads."""

    splits: list[tuple[SourceSplit, SplitFilter | None]]
    """Each with the filter in the plan of its batch; none of a frame."""
    stream: str = ""


class SplitWithoutEnd(EpochgateError):
    """A split has nothing at the moment, and a batch waits for its end: the split's id."""

    def __str__(self) -> str:
        return (
            f"split {self.args[0]!r} has nothing at the moment and may have more later; a batch of "
            "a streaming query consists of splits that end. Let the enumerator give out what is "
            "there as a split of its own, or read this source in a resident job"
        )


class RowUnfit(EpochgateError):
    """A record does not have the columns of the schema: the record, the columns."""

    def __str__(self) -> str:
        record, columns = self.args
        return (
            f"the source gave {record!r}, and a row has the columns {', '.join(columns)}; give a "
            "tuple or list of as many values, a dict with these names, or a RecordBatch"
        )


class NoRow(EpochgateError):
    """A record of a text is no row, so that nothing of it can be rescued: it as it was rejected."""

    def __str__(self) -> str:
        one = self.args[0]
        return (
            f"line {one.line} of {one.file}: {one.reason}. It is no row, and a stream has no table "
            "of rejected rows: correct the file, or read it by `epochgate ingest`"
        )


INFERRED = "epochgate.inferred"
"""What Spark keeps beside a column whose type the files have told, and no user."""


def inferred(schema: pa.Schema) -> StructType:
    """The types of Spark for columns of files, as those that no user has declared. Raises
    OptionsWrong for a type that Spark has not.
    """
    from pyspark.errors import PySparkTypeError
    from pyspark.sql.pandas.types import from_arrow_type
    from pyspark.sql.types import StructField, StructType

    fields = []
    for column in schema:
        try:
            kind = from_arrow_type(plain(column.type))
            columns_of(StructType([StructField(column.name, kind)]))
        except (PySparkTypeError, ValueError) as error:
            raise OptionsWrong(
                f"column {column.name!r} of the files is {column.type}, which no type of Spark "
                "holds. Leave it out: .schema(...) names the columns that are read"
            ) from error
        fields.append(StructField(column.name, kind, True, {INFERRED: True}))
    return StructType(fields)


def is_inferred(schema: StructType) -> bool:
    """Return whether no column of the schema is declared."""
    return all(field.metadata.get(INFERRED, False) for field in schema.fields)


def columns_of(schema: StructType) -> pa.Schema:
    """The types of Arrow in which Spark takes the columns; moments in UTC. Raises OptionsWrong for
    two columns of one name.
    """
    from pyspark.sql.pandas.types import to_arrow_schema

    if twice := next((one for one in schema.names if schema.names.count(one) > 1), None):
        raise OptionsWrong(f".schema(...) has two columns of the name {twice!r}; name each once")
    return to_arrow_schema(schema, timezone="UTC")


def rows_of(
    reader: SourceReader,
    split: SourceSplit,
    columns: pa.Schema,
    matching: Callable[[pa.RecordBatch], pa.RecordBatch] | None = None,
) -> Iterator[Any]:
    """All rows of a split, or those of its batches that match. Raises SplitWithoutEnd, RowUnfit,
    NoRow, and what the reader raises.
    """
    for fetched in reader.open_split(split, None):
        if fetched is None:
            raise SplitWithoutEnd(split.split_id)
        for record in fetched.records:
            if isinstance(record, ReadBatch | pa.RecordBatch):
                if isinstance(record, ReadBatch) and record.rejected:
                    raise NoRow(record.rejected[0])
                batch = record.batch if isinstance(record, ReadBatch) else record
                if matching is not None:
                    batch = matching(batch)
                if batch.num_rows:
                    yield _conformed(batch, columns)
            else:
                yield _tuple(record, columns.names)


def _conformed(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """With the types that Spark has for the columns, in its order."""
    if missing := [name for name in schema.names if name not in batch.schema.names]:
        raise RowUnfit(f"batches with {', '.join(batch.schema.names)}", [*missing])
    if unfit := [
        f"{one.name}: {one.type}"
        for one in schema
        if not is_readable_as(batch.schema.field(one.name).type, one.type)
    ]:
        found = ", ".join(f"{one.name}: {one.type}" for one in batch.schema)
        raise RowUnfit(f"batches with {found}", unfit)
    columns = [batch.column(field.name).cast(field.type) for field in schema]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def _tuple(record: Any, names: list[str]) -> tuple[Any, ...]:
    if isinstance(record, dict) and record.keys() <= set(names):
        return tuple(record.get(name) for name in names)
    if isinstance(record, tuple | list) and len(record) == len(names):
        return tuple(record)
    if len(names) == 1 and not isinstance(record, dict | tuple | list):
        return (record,)
    raise RowUnfit(record, names)
