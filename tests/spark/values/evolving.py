"""Tables that come in several files whose columns are not the same."""

from __future__ import annotations

import random
from collections.abc import Sequence

import pyarrow as pa

from epochgate.spark.files.evolution import SchemaEvolution
from tests.spark.values.cells import of_scalar

LACKING = 0.3
"""The share of columns that a file lacks, where it may."""
WHOLE = (pa.int8(), pa.int16(), pa.int32(), pa.int64())


def parts_of(
    table: pa.Table,
    count: int,
    chance: random.Random,
    *,
    may_lack: bool,
    evolution: SchemaEvolution,
    kept: Sequence[str] = (),
) -> tuple[pa.Table, list[pa.Table]]:
    """The rows in `count` shares, each of which may lack columns but those that are kept, and with
    "widen" have narrower types that hold its values; and the table that they come to together.
    """
    parts, whole = [], []
    for number in range(count):
        begin, end = (table.num_rows * n // count for n in (number, number + 1))
        part = table.slice(begin, end - begin)
        lacking = [
            column
            for column in range(table.num_columns)
            if may_lack and table.field(column).name not in kept and chance.random() < LACKING
        ][: table.num_columns - 1]
        for column in lacking:
            field = table.field(column)
            part = part.set_column(column, field, pa.nulls(part.num_rows, field.type))
        whole.append(part)
        part = part.select([n for n in range(table.num_columns) if n not in lacking])
        parts.append(_narrower(part, chance) if evolution == "widen" else part)
    return pa.concat_tables(whole), parts


def _narrower(part: pa.Table, chance: random.Random) -> pa.Table:
    for number, column in enumerate(part.columns):
        kinds = _narrower_than(column.type)
        if not kinds or chance.random() < 0.5:
            continue
        kind = chance.choice(kinds)
        try:
            narrow = column.cast(kind)
        except pa.ArrowInvalid:
            continue
        if list(map(of_scalar, narrow)) == list(map(of_scalar, column)):
            part = part.set_column(number, part.field(number).name, narrow)
    return part


def _narrower_than(kind: pa.DataType) -> list[pa.DataType]:
    if kind in WHOLE:
        return list(WHOLE[: WHOLE.index(kind)])
    if kind == pa.float64():
        return [pa.float32(), *WHOLE[:3]]
    if pa.types.is_decimal128(kind):
        return [pa.decimal128(kind.precision - 2, kind.scale), pa.decimal128(7, 1)]
    return []
