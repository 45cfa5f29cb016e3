"""The growth of a schema: columns that may be missing, and types that hold all of narrower ones.

Decides, for the one place that agrees on a target's schema and for those that read toward it: what
"add" and "widen" allow. The rules are those of Delta's mergeSchema and type widening; BIGINT does
not become DOUBLE, because Spark could not read the older files as that. Pure functions.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, Literal

import pyarrow as pa

from epochgate.errors import UsageError
from epochgate.spark.files.ddl import spark_type
from epochgate.spark.values.plain_types import plain

SchemaEvolution = Literal["none", "add", "widen"]

_WHOLE = (pa.int8(), pa.int16(), pa.int32(), pa.int64())
_IN_DOUBLE = (pa.int8(), pa.int16(), pa.int32(), pa.float32(), pa.float64())
_DIGITS_MAX = 38


class EvolutionRefused(UsageError):
    """The output's columns are not those of the target, nor may become so: mode, differences, and
    which types become wider ones.
    """

    def __str__(self) -> str:
        mode, differences, wider_ones = self.args
        may = {
            "none": "--schema-evolution none takes no change",
            "add": "--schema-evolution add takes new columns and no other change",
            "widen": f"--schema-evolution widen takes new columns, and wider types: {wider_ones}",
        }[mode]
        return (
            "the output's columns are not those of the target:\n  "
            + "\n  ".join(differences)
            + f"\n{may} (schema_evolution in Python). Nothing of these rows was taken. Give the "
            "types by --schema (schema), cast or rename the columns in the transform, or give "
            "a new target."
        )


@dataclass(frozen=True)
class Rules:
    """The kind of target that columns grow in. widens: whether a column of its may turn from one
    type into a wider one; wider_ones: the same in words. holds: whether a column, by its name and
    type, takes values of another type one by one, so that it stays as it is. demands: whether its
    columns say what they demand of values, which stays.
    """

    widens: Callable[[pa.DataType, pa.DataType], bool] = lambda _before, _after: True
    wider_ones: str = (
        "from INT to BIGINT or DOUBLE, from FLOAT to DOUBLE, and more digits of DECIMAL; not from "
        "BIGINT to DOUBLE, since Spark could not read the older files then"
    )
    holds: Callable[[str, pa.DataType, pa.DataType], bool] = lambda _name, _held, _found: False
    demands: bool = False


OF_FILES: Final = Rules()
"""A directory, or a prefix in an object store."""


def evolved(
    agreed: pa.Schema, wished: pa.Schema, mode: SchemaEvolution, rules: Rules = OF_FILES
) -> pa.Schema:
    """The schema that holds what both hold: new columns last, each of which may lack values. A
    column that has no value and no type yet fits every type, and is not new before it has one.

    Raises EvolutionRefused with every difference that `mode` does not allow.
    """
    fields = {one.name: one if rules.demands else pa.field(one.name, one.type) for one in agreed}
    lower = {name.lower(): name for name in fields}
    differences = []
    for field in wished:
        found = fields.get(field.name)
        if pa.types.is_null(field.type):
            continue
        if found is None:
            if (known := lower.setdefault(field.name.lower(), field.name)) != field.name:
                differences.append(f"{field.name}: the target has {known}, the same name to Spark")
                continue
            fields[field.name] = pa.field(field.name, field.type)
            if mode == "none":
                differences.append(f"{field.name}: {spark_type(field.type)} is new")
            continue
        common = wider(found.type, field.type, mode, rules)
        if common is not None:
            fields[field.name] = found.with_type(common)
        elif not rules.holds(field.name, found.type, field.type):
            told = f"the target has {spark_type(found.type)}, found {spark_type(field.type)}"
            differences.append(f"{field.name}: {told}")
    if differences:
        raise EvolutionRefused(mode, differences, rules.wider_ones)
    return pa.schema(list(fields.values()), agreed.metadata if rules.demands else None)


def can_hold(
    agreed: pa.Schema,
    schema: pa.Schema,
    mode: SchemaEvolution = "widen",
    rules: Rules = OF_FILES,
) -> bool:
    """Return whether rows of `schema` fit into `agreed` as it is."""
    try:
        return bool(evolved(agreed, schema, mode, rules).equals(agreed))
    except EvolutionRefused:
        return False


def have_common_types(one: pa.Schema, other: pa.Schema, mode: SchemaEvolution = "widen") -> bool:
    """Return whether each column of both has a type that holds the values of both, in `mode`."""
    return all(
        wider(field.type, other.field(field.name).type, mode) is not None
        for field in one
        if field.name in other.names
    )


def fitted(batch: pa.RecordBatch, agreed: pa.Schema) -> pa.RecordBatch:
    """The batch with the agreed columns, which can hold it; null where it has none."""
    columns = []
    for field in agreed:
        index = batch.schema.get_field_index(field.name)
        if index < 0:
            columns.append(pa.nulls(batch.num_rows, field.type))
        else:
            columns.append(batch.column(index).cast(field.type))
    return pa.RecordBatch.from_arrays(columns, schema=agreed)


def wider(
    one: pa.DataType, other: pa.DataType, mode: SchemaEvolution, rules: Rules = OF_FILES
) -> pa.DataType | None:
    """The type that holds all of both, into which `one` may turn; none if there is none, or it is
    not to be had in `mode`.

    >>> wider(pa.int32(), pa.int64(), "widen"), wider(pa.int32(), pa.int64(), "add")
    (DataType(int64), None)
    """
    if one == other:
        return one
    if pa.types.is_struct(one) and pa.types.is_struct(other):
        return _wider_struct(one, other, mode, rules)
    if pa.types.is_list(one) and pa.types.is_list(other):
        item = wider(one.value_type, other.value_type, mode, rules)
        return None if item is None else pa.list_(one.value_field.with_type(item))
    common = _wider_plain(one, other) if mode == "widen" else None
    return common if common is not None and (common == one or rules.widens(one, common)) else None


def is_readable_as(found: pa.DataType, expected: pa.DataType) -> bool:
    """Return whether a column of type `found` may be read as `expected`: values that would be lost
    in it are refused when they come.
    """
    if found == expected:
        return True
    found = plain(found)
    if pa.types.is_timestamp(found) and pa.types.is_timestamp(expected):
        return (found.tz is None) == (expected.tz is None)
    if pa.types.is_time(found):
        return bool(pa.types.is_time(expected))
    if pa.types.is_struct(found) and pa.types.is_struct(expected):
        found_types = {field.name: field.type for field in found}
        return len(found) == len(expected) and all(
            field.name in found_types and is_readable_as(found_types[field.name], field.type)
            for field in expected
        )
    if pa.types.is_list(expected) and pa.types.is_list(found):
        return is_readable_as(found.value_type, expected.value_type)
    return bool(wider(found, expected, "widen") == expected)


def _wider_struct(
    one: pa.StructType, other: pa.StructType, mode: SchemaEvolution, rules: Rules
) -> pa.DataType | None:
    fields = {field.name: field.type for field in one}
    for field in other:
        if field.name not in fields:
            if mode == "none":
                return None
            fields[field.name] = field.type
            continue
        common = wider(fields[field.name], field.type, mode, rules)
        if common is None:
            return None
        fields[field.name] = common
    return pa.struct(list(fields.items()))


def _wider_plain(one: pa.DataType, other: pa.DataType) -> pa.DataType | None:
    both = (one, other)
    if all(kind in _WHOLE for kind in both):
        return max(both, key=_WHOLE.index)
    if all(kind in _IN_DOUBLE for kind in both):
        return pa.float64()
    if all(pa.types.is_decimal128(kind) for kind in both):
        scale = max(one.scale, other.scale)
        digits = max(one.precision - one.scale, other.precision - other.scale) + scale
        return pa.decimal128(digits, scale) if digits <= _DIGITS_MAX else None
    return None


def difference(found: pa.Schema, expected: pa.Schema) -> list[str]:
    """Tell the differences of two schemas, by column, one line each."""
    finds = {field.name: spark_type(field.type) for field in found}
    expects = {field.name: spark_type(field.type) for field in expected}
    lines: list[str] = []
    lines += [f"{name}: {kind} is new" for name, kind in finds.items() if name not in expects]
    lines += [f"{name}: {kind} is missing" for name, kind in expects.items() if name not in finds]
    lines += [
        f"{name}: expected {expects[name]}, found {kind}"
        for name, kind in finds.items()
        if name in expects and kind != expects[name]
    ]
    return lines


def other_names(names: Sequence[str], known: pa.Schema) -> list[str]:
    """Tell what differs where a file names its columns alone, a line for each column."""
    return [
        *(f"{name} is new" for name in names if name not in known.names),
        *(
            f"{one.name}: {spark_type(one.type)} is missing"
            for one in known
            if one.name not in names
        ),
    ]


def with_one_of(schema: pa.Schema, wanted: pa.Schema, elsewhere: Sequence[str]) -> pa.Schema:
    """The columns of a file with the first of those that are wanted, unless the file has one of
    them, or they are `elsewhere`: a batch without a column has no rows.
    """
    if not {*schema.names, *elsewhere}.isdisjoint(wanted.names):
        return schema
    return schema.append(wanted.field(0).with_nullable(True))


def merged(
    schemas: Sequence[pa.Schema], mode: SchemaEvolution, rules: Rules = OF_FILES
) -> pa.Schema:
    """Merge these schemas one after the other, where they can; the first type else."""
    known = schemas[0]
    for schema in schemas[1:]:
        fields = {field.name: field.type for field in known}
        for field in schema:
            before = fields.get(field.name, field.type)
            fields[field.name] = wider(before, field.type, mode, rules) or before
        known = pa.schema([pa.field(name, kind) for name, kind in fields.items()])
    return known
