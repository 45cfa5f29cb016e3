"""The types of the fields of JSON records, from the values that stand in them.

Decides: strings are text; numbers are of the first type of which each, printed, is the same number
again; a field whose values are of several kinds, or whose numbers fit no type, is text. Leaves to
others: parsing (`json_values`). Where no kinds of values are told apart but by their texts (XML,
sheets), a text that prints again as a time is one, an empty one tells nothing, an array and its
item are arrays, and a text beside an object is a field of it. Pure; used on the driver, and in
tasks for new fields.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pyarrow as pa

from epochgate.spark.files.json_guard import is_printed_again
from epochgate.spark.files.json_values import VALUE, Number
from epochgate.spark.files.round_trip import CLOCK, DAY, MOMENT, typed

TYPE_DEPTH_MAX = 50
"""A type nested deeper than this is text: the serialized form of Arrow's types has a limit."""
_DIGITS_MAX = 38
_EXACT_DIGITS_MAX = 15


def schema_of(records: Iterable[dict[str, Any]], of_texts: bool = False) -> pa.Schema:
    """The columns of these records, in the order in which they come; null without a value.
    of_texts: whether the kinds of values are told by their texts.
    """
    found = _SeenTexts() if of_texts else _Seen()
    for record in records:
        # A text beside the fields of a record is one of them.
        _Seen.see(found, record)
    return pa.schema([(name, field.type_at(1)) for name, field in found.fields.items()])


def widened(known: pa.DataType, found: pa.DataType) -> pa.DataType:
    """The known type with the fields that another has as well, in structs of any depth."""
    if pa.types.is_struct(known) and pa.types.is_struct(found):
        return pa.struct(with_others(known, found))
    if pa.types.is_list(known) and pa.types.is_list(found):
        return pa.list_(widened(known.value_type, found.value_type))
    return known


def with_others(
    known: Iterable[pa.Field], found: Iterable[pa.Field]
) -> list[tuple[str, pa.DataType]]:
    """The known fields, widened, and those that are new."""
    types = {one.name: one.type for one in known}
    for one in found:
        types[one.name] = widened(types[one.name], one.type) if one.name in types else one.type
    return list(types.items())


class _Seen:
    """The kinds of values that have stood in one place of the records."""

    def __init__(self) -> None:
        self.fields: dict[str, _Seen] = {}
        self._item: _Seen | None = None
        self._kinds: set[type] = set()
        self._is_whole = self._has_64_bits = self._has_38_digits = self._is_double = True

    def see(self, value: Any) -> None:
        """Take one value into account."""
        if value is None:
            return
        self._kinds.add(type(value))
        if isinstance(value, dict):
            for name, one in value.items():
                if (field := self.fields.get(name)) is None:
                    field = self.fields[name] = type(self)()
                field.see(one)
        elif isinstance(value, list):
            self._item = self._item or type(self)()
            for one in value:
                self._item.see(one)
        elif isinstance(value, Number):
            self._see_number(value)

    def type_at(self, depth: int) -> pa.DataType:
        """The type, of a place so deep within others."""
        if not self._kinds:
            return pa.null()
        if len(self._kinds) > 1 or depth > TYPE_DEPTH_MAX:
            return pa.string()
        (kind,) = self._kinds
        if kind is dict and self.fields:
            return pa.struct([(name, one.type_at(depth + 1)) for name, one in self.fields.items()])
        if kind is list:
            assert self._item is not None
            return pa.list_(self._item.type_at(depth + 1))
        if kind is bool:
            return pa.bool_()
        return self._type_of_number() if kind is Number else pa.string()

    def _see_number(self, number: Number) -> None:
        if self._is_whole and number.removeprefix("-").isdigit():
            if len(number) >= len("9223372036854775807"):
                digits = len(number.removeprefix("-"))
                self._has_38_digits = self._has_38_digits and digits <= _DIGITS_MAX
                is_small = digits <= _DIGITS_MAX and -(2**63) <= int(number) < 2**63
                self._has_64_bits = self._has_64_bits and is_small
        else:
            self._is_whole = False
        is_short = len(number) <= _EXACT_DIGITS_MAX and "e" not in number and "E" not in number
        self._is_double = self._is_double and (is_short or is_printed_again(number))

    def _type_of_number(self) -> pa.DataType:
        if self._is_whole and self._has_38_digits:
            return pa.int64() if self._has_64_bits else pa.decimal128(_DIGITS_MAX, 0)
        return pa.float64() if self._is_double and not self._is_whole else pa.string()


class _SeenTexts(_Seen):
    """The same of records that are made of texts."""

    def __init__(self) -> None:
        super().__init__()
        self._texts: list[str] = []
        self._is_list = False

    def see(self, value: Any) -> None:
        """Take one value into account; those of an array as if they stood in its place."""
        if isinstance(value, list):
            self._is_list = True
            for one in value:
                self.see(one)
        elif isinstance(value, dict):
            # The text beside children is of this place, where others may be texts alone.
            for one in [value[VALUE]] if VALUE in value else []:
                self.see(one)
            super().see({name: one for name, one in value.items() if name != VALUE})
        elif value != "":
            super().see(value)
            if type(value) is str:
                self._texts.append(value)

    def type_at(self, depth: int) -> pa.DataType:
        kinds, self._kinds = self._kinds, self._kinds - {dict}
        own = self._type_of_texts() if self._kinds == {str} else super().type_at(depth + 1)
        self._kinds = kinds
        if dict in kinds and depth <= TYPE_DEPTH_MAX:
            fields = [(name, one.type_at(depth + 1)) for name, one in self.fields.items()]
            said = [] if kinds == {dict} else [(VALUE, own)]
            own = pa.struct([*fields, *said]) if fields or said else pa.string()
        return pa.list_(own) if self._is_list else own

    def _type_of_texts(self) -> pa.DataType:
        texts = pa.chunked_array([self._texts], pa.string())
        return next(
            (one for one in (DAY, CLOCK, MOMENT) if typed(texts, one) is not None), pa.string()
        )
