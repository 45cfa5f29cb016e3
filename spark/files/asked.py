"""The way in which the files of a source are asked to be read, as users say it.

Pure values; used on the driver.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TypedDict

import pyarrow as pa

from epochgate.errors import UsageError
from epochgate.spark.files.dialect import Dialect
from epochgate.spark.files.evolution import SchemaEvolution
from epochgate.spark.files.rejected import OnBadRow
from epochgate.spark.files.source_columns import SourceColumns
from epochgate.spark.files.text import UTF_8, usable_encoding

SAMPLE_BYTES_MAX = 8 << 20


class ReadingChanged(UsageError):
    """A start is to read its files in another way than those before: options, before, now."""

    def __str__(self) -> str:
        options, before, now = self.args
        return (
            f"{options}: this job goes on from a checkpoint, and has begun to read its files in "
            f"another way.\n  before: {before}\n  now:    {now}\nGive the same again; or start "
            "afresh, with a new target and a new --checkpoint-dir (checkpoint_directory in "
            "Python). With --schema-evolution add (schema_evolution) or widen, files that are new "
            "may be read by another schema."
        )


class ReadingOptions(TypedDict, total=False):
    """The arguments of `Reading.of`, each as the field says; `on_bad_row` as for a reader."""

    schema: pa.Schema | None
    projection: Sequence[str] | None
    dialect: Dialect | None
    encoding: str
    sample_bytes_max: int
    on_bad_row: OnBadRow
    evolution: SchemaEvolution
    leaves_out_others: bool
    accepts: Callable[[pa.Schema], None] | None
    added: SourceColumns


@dataclass(frozen=True)
class Reading:
    """The way in which the files of a source are asked to be read.

    schema: none to infer it, or to take it from Parquet; a column that is not nullable needs a
    value in each row. projection: the columns to read. dialect: of CSV files. encoding: of text
    files. sample_bytes_max: bytes of a file that its schema is inferred from. leaves_bad_rows:
    whether rows that do not fit are rejected one by one, so that the first may be one. evolution:
    how the columns may change between files. leaves_out_others: whether columns that the schema
    lacks are left out, instead of refused. accepts: raises RowsUnfit for columns that the target
    cannot hold; none if that is not known. added: columns that say where a row comes from.
    """

    schema: pa.Schema | None = None
    projection: tuple[str, ...] | None = None
    dialect: Dialect = field(default_factory=Dialect)
    encoding: str = UTF_8
    sample_bytes_max: int = SAMPLE_BYTES_MAX
    leaves_bad_rows: bool = False
    evolution: SchemaEvolution = "none"
    leaves_out_others: bool = False
    accepts: Callable[[pa.Schema], None] | None = None
    added: SourceColumns = ()

    @classmethod
    def of(cls, options: ReadingOptions) -> Reading:
        """The way that these options ask for. Raises EncodingUnusable."""
        projection = options.get("projection")
        return cls(
            options.get("schema"),
            None if projection is None else tuple(projection),
            options.get("dialect") or Dialect(),
            usable_encoding(options.get("encoding", UTF_8)),
            options.get("sample_bytes_max", SAMPLE_BYTES_MAX),
            options.get("on_bad_row", "fail") != "fail",
            options.get("evolution", "none"),
            options.get("leaves_out_others", False),
            options.get("accepts"),
            options.get("added", ()),
        )
