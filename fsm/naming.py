"""Numbers that a model names by constants, shown by these names wherever a state is told.

A field or channel says which constants it takes, `Int(SHUT, names="OPEN, SHUT")`; their values are
those of the module in which its class stands, so that no name can stand for another number than it
does in the code. What a state holds stays a number: it is compared, packed and written as one.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any, Self

from epochgate.fsm.errors import DeclarationError
from epochgate.fsm.fields import ArrayField, FieldSpec, FifoField, IntField

Names = dict[int, str]


class Named(int):
    """A number that is shown by a name."""

    name: str

    def __new__(cls, value: int, name: str) -> Self:
        self = super().__new__(cls, value)
        self.name = name
        return self

    def __reduce__(self) -> tuple[type[Self], tuple[int, str]]:
        return type(self), (int(self), self.name)

    def __repr__(self) -> str:
        return self.name

    __str__ = __repr__


def names_in(owner: str, module: str, specs: Mapping[str, FieldSpec]) -> dict[str, Names]:
    """The names of the values of each field that declares some, of a class `owner`.

    Raises DeclarationError for a name that is no such number, and for two names of one.
    """
    constants = vars(sys.modules[module]) if module in sys.modules else {}
    found: dict[str, Names] = {}
    for field, spec in specs.items():
        item = spec
        while isinstance(item, ArrayField):
            item = item.item
        if isinstance(item, IntField | FifoField) and item.names:
            try:
                found[field] = _names(item, constants)
            except DeclarationError as error:
                raise DeclarationError(f"{module}.{owner}.{field}: {error}") from None
    return found


def _names(spec: IntField | FifoField, constants: Mapping[str, Any]) -> Names:
    low, high = (spec.low, spec.bound) if isinstance(spec, IntField) else (0, spec.item)
    names = Names()
    for name in map(str.strip, spec.names.split(",")):
        value = constants.get(name)
        if type(value) is not int:
            raise DeclarationError(
                f"{name!r} in its names is no number of its module; write the name of a constant "
                "that stands above the class"
            )
        if value < low or (isinstance(high, int) and value > high):
            raise DeclarationError(
                f"{name!r} in its names is {value}, outside of {low} to {high}; leave it out, or "
                "let the field hold it"
            )
        if value in names:
            raise DeclarationError(
                f"{name!r} in its names is {value}, and so is {names[value]!r}; name one of them"
            )
        names[value] = name
    return names


def named(value: Any, names: Names) -> Any:
    """The value, or the values of an array, with their names.

    >>> named([0, 1, 2], {0: "OPEN", 1: "SHUT"})
    [OPEN, SHUT, 2]
    """
    if isinstance(value, list):
        return [named(one, names) for one in value]
    return Named(value, names[value]) if value in names else value


def unnamed(value: Any) -> Any:
    """The value without names, for a text that is run as a program.

    >>> unnamed(named([0, 2], {0: "OPEN"}))
    [0, 2]
    """
    if isinstance(value, list):
        return [unnamed(one) for one in value]
    return int(value) if isinstance(value, Named) else value


def worded(value: Any) -> Any:
    """Plain data with a text for each number that has a name, for a page that shows it.

    >>> worded({"door": [named(0, {0: "OPEN"}), 2]})
    {'door': ['OPEN', 2]}
    """
    if isinstance(value, dict):
        return {key: worded(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [worded(one) for one in value]
    return value.name if isinstance(value, Named) else value
