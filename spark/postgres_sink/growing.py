"""The columns of a PostgreSQL table that grow with the rows: first of the staging table, by the
task that needs them, and of the table itself by the transaction that moves the rows.

Decides which columns a batch needs, by the rules of all targets, and which types they have. The
staging table is what subtasks agree on: one of them changes it at a time, under its lock. Until the
commit the table is as it was, and a commit that is not made leaves it so; one that is repeated
finds nothing to change. Runs in tasks and on the driver.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import pyarrow as pa
from psycopg import sql

from epochgate.spark.files.evolution import Rules, SchemaEvolution, evolved, wider
from epochgate.spark.postgres_sink.database import Relation, Run, columns_of
from epochgate.spark.values.errors import TypeNotInTable
from epochgate.spark.values.fitting import is_bytes, is_of, is_text
from epochgate.spark.values.relations import ColumnType, why_never

_PLAIN: Final[Mapping[pa.DataType, str]] = {
    pa.bool_(): "boolean",
    pa.int16(): "smallint",
    pa.int32(): "integer",
    pa.int64(): "bigint",
    pa.float32(): "real",
    pa.float64(): "double precision",
    pa.string(): "text",
    pa.binary(): "bytea",
    pa.date32(): "date",
    pa.time64("us"): "time without time zone",
    pa.timestamp("us"): "timestamp without time zone",
    pa.timestamp("us", "UTC"): "timestamp with time zone",
}
_OTHER: Final[Mapping[pa.DataType, pa.DataType]] = {
    pa.int8(): pa.int16(),
    pa.uint8(): pa.int16(),
    pa.uint16(): pa.int32(),
    pa.uint32(): pa.int64(),
    pa.uint64(): pa.decimal128(20, 0),
    pa.float16(): pa.float32(),
    pa.date64(): pa.date32(),
}
_WIDER: Final = "from SMALLINT and INTEGER to BIGINT or DOUBLE PRECISION, from REAL to DOUBLE " + (
    "PRECISION, and more digits of NUMERIC; not from BIGINT to DOUBLE PRECISION"
)


def type_of(kind: pa.DataType) -> str | None:
    """The type of PostgreSQL, as it shows it, of a column of these values; none if it has none.

    >>> type_of(pa.int64()), type_of(pa.decimal128(9, 2)), type_of(pa.list_(pa.int64()))
    ('bigint', 'numeric(9,2)', None)
    """
    kind = _column(kind)
    if pa.types.is_decimal(kind) and 0 <= kind.scale <= kind.precision:
        return f"numeric({kind.precision},{kind.scale})"
    return _PLAIN.get(kind)


def _column(kind: pa.DataType) -> pa.DataType:
    """The type of the same values in a column of its own."""
    if pa.types.is_dictionary(kind):
        return _column(kind.value_type)
    if isinstance(kind, pa.BaseExtensionType):
        return _column(kind.storage_type)
    if pa.types.is_timestamp(kind):
        return pa.timestamp("us", None if kind.tz is None else "UTC")
    if pa.types.is_time(kind):
        return pa.time64("us")
    if is_of(is_text, kind):
        return pa.string()
    if is_of(is_bytes, kind):
        return pa.binary()
    return _OTHER.get(kind, kind)


def changes(
    columns: Mapping[str, ColumnType], schema: pa.Schema, mode: SchemaEvolution
) -> dict[str, str]:
    """The columns, with their types, that a table with these columns lacks for rows of this schema,
    or has of a narrower type; a column without a type yet fits every table.

    Raises EvolutionRefused for a difference that `mode` does not allow, and TypeNotInTable.

    >>> changes({"x": ColumnType("integer", "int4")}, pa.schema({"x": pa.int64()}), "widen")
    {'x': 'bigint'}
    """
    for one in schema:
        is_new = one.name not in columns and not pa.types.is_null(one.type)
        if is_new and type_of(one.type) is None:
            raise TypeNotInTable("PostgreSQL", one.name, str(one.type))
    held = pa.schema({name: _held(kind) for name, kind in columns.items()})
    rules = Rules(
        wider_ones=_WIDER,
        holds=lambda name, _held, _found: not why_never(schema.field(name).type, columns[name]),
    )
    wished = pa.schema({one.name: _column(one.type) for one in schema})
    grown = evolved(held, wished, mode, rules)
    return {
        one.name: type_of(one.type) or ""
        for one in grown
        if one.name not in columns or one.type != held.field(one.name).type
    }


def _held(kind: ColumnType) -> pa.DataType:
    """The type of a column's values if the column may turn into a wider one; a column of a domain
    stays one.
    """
    held = kind.held
    return held if held is not None and type_of(held) == kind.shown else pa.null()


def grow_staged(
    run: Run, relation: Relation, schema: pa.Schema, mode: SchemaEvolution
) -> dict[str, ColumnType]:
    """Let the staging table have the columns of rows of this schema; returns those that it has
    then. Raises what `changes` raises.
    """
    columns = columns_of(run, relation.staged)
    if not changes(columns, schema, mode):
        return columns
    run("lock table {staged} in access exclusive mode")  # another subtask may be at the same
    columns = columns_of(run, relation.staged)
    for name, kind in changes(columns, schema, mode).items():
        _change(run, "{staged}", name, kind, is_new=name not in columns)
    return columns_of(run, relation.staged)


def grow_table(run: Run, relation: Relation, names: Sequence[str], mode: SchemaEvolution) -> None:
    """Let the table have those of these columns that the staging table has, and with "widen" their
    types.
    """
    if _lacking(run, relation, names, mode):
        run("lock table {table} in access exclusive mode")
        for name, (kind, is_new) in _lacking(run, relation, names, mode).items():
            _change(run, "{table}", name, kind, is_new=is_new)


def _lacking(
    run: Run, relation: Relation, names: Sequence[str], mode: SchemaEvolution
) -> dict[str, tuple[str, bool]]:
    """The columns that the table lacks or has of a narrower type: their type, and whether they are
    new.
    """
    table, staged = columns_of(run, relation.table), columns_of(run, relation.staged)
    return {
        name: (staged[name].shown, name not in table)
        for name in names
        if name in staged
        and (name not in table or (mode == "widen" and _is_wider(table[name], staged[name])))
    }


def serves(
    staged: Mapping[str, ColumnType], table: Mapping[str, ColumnType], mode: SchemaEvolution
) -> bool:
    """Return whether a staging table that has grown is still one of this table: it may have more
    columns, and with "widen" wider types.
    """
    return mode != "none" and all(
        name in staged
        and (kind == staged[name] or (mode == "widen" and _is_wider(kind, staged[name])))
        for name, kind in table.items()
    )


def _is_wider(one: ColumnType, other: ColumnType) -> bool:
    before, after = _held(one), _held(other)
    return before != after and bool(wider(before, after, "widen") == after)


def _change(run: Run, table: str, name: str, kind: str, *, is_new: bool) -> None:
    change = "add column {names}" if is_new else "alter column {names} type"
    run(f"alter table {table} {change} {kind}", sql.Identifier(name))
