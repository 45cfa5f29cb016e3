"""The Arrow types that the columns of each format have, and what others become.

Decides the conversions that lose nothing; a type that a format, or a reader that the guide names,
does not have is refused by name. Runs in the task; imports nothing of any format.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pyarrow as pa

from epochgate.spark.files.column_names import NameTwice, same_name
from epochgate.spark.files.evolution import Rules
from epochgate.spark.values.errors import TypeNotInTable
from epochgate.spark.values.fitting import LISTS, IsKind, is_of, may_hold, types_in

_SAME: tuple[IsKind, ...] = (
    pa.types.is_boolean,
    pa.types.is_int32,
    pa.types.is_int64,
    pa.types.is_float32,
    pa.types.is_float64,
    pa.types.is_date32,
    pa.types.is_string,
    pa.types.is_binary,
)
_OTHER: tuple[tuple[IsKind, pa.DataType], ...] = (
    (pa.types.is_null, pa.string()),
    (pa.types.is_uint16, pa.int32()),
    (pa.types.is_uint32, pa.int64()),
    (pa.types.is_uint64, pa.decimal128(20, 0)),
    (pa.types.is_float16, pa.float32()),
    (pa.types.is_date64, pa.date32()),
    (pa.types.is_large_string, pa.string()),
    (pa.types.is_string_view, pa.string()),
    (pa.types.is_large_binary, pa.binary()),
    (pa.types.is_binary_view, pa.binary()),
    (pa.types.is_fixed_size_binary, pa.binary()),
)
DIGITS_MAX = 38


@dataclass(frozen=True)
class TableTypes:
    """The types of a format, by its name: `same` are its own, `other` become one of these.
    `tells_capitals`: whether names that differ in capitals alone are two columns. `keeps_forms`:
    whether zones, units above the microsecond, dictionaries and forms of lists stay as they are.
    `widens`: whether a column of a table may turn from one type into a wider one, `wider_ones` the
    same in words.
    """

    format: str
    same: tuple[IsKind, ...] = ()
    other: tuple[tuple[IsKind, pa.DataType], ...] = ()
    tells_capitals: bool = True
    keeps_forms: bool = False
    widens: Callable[[pa.DataType, pa.DataType], bool] = lambda _before, _after: False
    wider_ones: str = "none"

    @property
    def rules(self) -> Rules:
        """The rules by which columns of a table grow: one that is there takes values of another
        type that fit, unless it turns into a wider one.
        """
        return Rules(
            self.widens, self.wider_ones, lambda _, held, found: may_hold(held, found), demands=True
        )

    def schema(self, schema: pa.Schema) -> pa.Schema:
        """The schema of a table for such batches, in which every value may be missing.

        Raises TypeNotInTable or NameTwice.
        """
        self._require_apart(schema.names)
        return pa.schema([pa.field(one.name, self.type(one.name, one.type)) for one in schema])

    def accepts(self, schema: pa.Schema) -> None:
        """Raise TypeNotInTable for columns of which there can be none."""
        for one in schema:
            self.type(one.name, one.type)

    def type(self, name: str, kind: pa.DataType) -> pa.DataType:
        """The type of a column, `name`, for such values. Raises TypeNotInTable."""
        if any(is_it(kind) for is_it in (*self.same, *_SAME)):
            return kind
        for is_it, other in (*self.other, *_OTHER):
            if is_it(kind):
                return other
        if pa.types.is_timestamp(kind):
            if self.keeps_forms:
                return pa.timestamp("us", kind.tz) if kind.unit == "ns" else kind
            return pa.timestamp("us", None if kind.tz is None else "UTC")
        if pa.types.is_decimal(kind) and 0 <= kind.scale <= kind.precision <= DIGITS_MAX:
            return pa.decimal128(kind.precision, kind.scale)
        if isinstance(kind, pa.BaseExtensionType):
            return self.type(name, kind.storage_type)
        return self._of_others(name, kind)

    def _of_others(self, name: str, kind: pa.DataType) -> pa.DataType:
        if pa.types.is_dictionary(kind):
            made = self.type(name, kind.value_type)
            return kind if self.keeps_forms and made == kind.value_type else made
        if pa.types.is_map(kind):
            made = pa.map_(self.type(name, kind.key_type), self.type(name, kind.item_type))
        elif pa.types.is_struct(kind) and kind.num_fields:
            fields = [kind.field(number) for number in range(kind.num_fields)]
            self._require_apart([f"{name}.{field.name}" for field in fields])
            inner = [pa.field(f.name, self.type(f"{name}.{f.name}", f.type)) for f in fields]
            made = pa.struct(inner)
        elif is_of(LISTS, kind):
            made = pa.list_(pa.field("element", self.type(name, kind.value_type)))
        else:
            raise TypeNotInTable(self.format, name, _told(kind))
        return kind if self.keeps_forms and types_in(made) == types_in(kind) else made

    def _require_apart(self, names: list[str]) -> None:
        if both := same_name(names, tells_capitals=self.tells_capitals):
            raise NameTwice(self.format, *both)


def _told(kind: pa.DataType) -> str:
    return "a struct without fields" if kind == pa.struct([]) else str(kind)


PARQUET = TableTypes(
    "Parquet as Spark reads it",
    same=(
        pa.types.is_null,
        pa.types.is_integer,
        pa.types.is_large_string,
        pa.types.is_string_view,
        pa.types.is_large_binary,
        pa.types.is_binary_view,
        pa.types.is_fixed_size_binary,
    ),
    tells_capitals=False,
    keeps_forms=True,
)
DELTA = TableTypes(
    "Delta Lake",
    same=(pa.types.is_signed_integer,),
    other=((pa.types.is_uint8, pa.int16()),),
    tells_capitals=False,
)


def _is_promoted(before: pa.DataType, after: pa.DataType) -> bool:
    """Return whether the specification of Iceberg lets a column turn from one type into the other:
    of decimals, the digits before the point may become more.
    """
    if pa.types.is_decimal(before) and pa.types.is_decimal(after):
        return bool(before.scale == after.scale)
    both = (before, after)
    return both in ((pa.int32(), pa.int64()), (pa.float32(), pa.float64()))


ICEBERG = TableTypes(
    "Iceberg",
    widens=_is_promoted,
    wider_ones=(
        "from INT to BIGINT, from FLOAT to DOUBLE, and more digits of DECIMAL before the point, "
        "as Iceberg has them"
    ),
    other=(
        (pa.types.is_int8, pa.int32()),
        (pa.types.is_int16, pa.int32()),
        (pa.types.is_uint8, pa.int32()),
        (pa.types.is_time, pa.time64("us")),
    ),
)
FORMATS = {"Parquet": PARQUET, "Delta": DELTA, "Iceberg": ICEBERG}
