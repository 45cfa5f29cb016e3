"""The meaning of names while a method is lowered: instances, fields, locals, and choices among
them.

Statements are appended to the block of the scope; an expression may need some before it, for
instance to take an item from a channel. What an expression can be at least and at most is known
where it can be told, so that checks of ranges and indices stay only where they can fail.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from epochgate.fsm.checker.compiler.ir import (
    COMPARISONS,
    Cell,
    Expr,
    Load,
    Local,
    Not,
    Op,
    Select,
    Stmt,
)
from epochgate.fsm.checker.compiler.layout import FifoCells
from epochgate.fsm.errors import DeclarationError
from epochgate.fsm.subset.tree import Node


@dataclass(frozen=True)
class Instance:
    """A machine of the system, or with name "" the system itself."""

    name: str
    index: tuple[int, ...]

    def __str__(self) -> str:
        return (self.name or "the system") + "".join(f"[{i}]" for i in self.index)


SYSTEM = Instance("", ())


@dataclass(frozen=True)
class Listener:
    """The machine that handles the effects of a port."""

    instance: Instance


@dataclass(frozen=True)
class AllOf:
    """All instances of a machine, before a subscript."""

    machine: str


@dataclass(frozen=True)
class StateOf:
    """The state of an instance, to be compared with a state's name."""

    instance: Instance


@dataclass(frozen=True)
class StateName:
    """The name of a state, as a constant."""

    name: str


@dataclass(frozen=True)
class Field:
    """One cell: an int or bool field, or an item of an array of these."""

    cell: str


@dataclass(frozen=True)
class Chosen:
    """One of several places, by an index that is known at run time only."""

    index: Expr
    options: tuple[Place, ...]


Place = (
    Instance
    | Listener
    | AllOf
    | StateOf
    | StateName
    | Field
    | FifoCells
    | Chosen
    | tuple["Place", ...]
    | int
    | Local
    | Load
    | Op
    | Not
    | Select
)
"""What a path leads to; a tuple is an array field."""


@dataclass
class Scope:
    """One method, or the rows of one trigger, while it is lowered."""

    instance: Instance
    method: Callable[..., Any]
    names: dict[str, Place]
    block: list[Stmt] = field(default_factory=list)

    @contextmanager
    def captured(self) -> Iterator[list[Stmt]]:
        """Collect the statements of a branch apart."""
        outer, self.block = self.block, []
        try:
            yield self.block
        finally:
            self.block = outer

    def refusal(self, node: Node, wanted: str) -> DeclarationError:
        """The error for what cannot be compiled."""
        return DeclarationError(
            f"{self.method.__code__.co_filename}:{node.line}: "
            f"{self.method.__qualname__}: `{node.text}` cannot be compiled; {wanted}"
        )


Bounds = tuple[int, int]
BOOLEAN: Bounds = (0, 1)


class Ranges:
    """The least and the greatest values of expressions; None when that is not known."""

    def __init__(self, cells: dict[str, Cell]) -> None:
        self._cells = cells
        self._locals: dict[str, Bounds | None] = {}

    def assign(self, name: str, value: Expr) -> None:
        """A local gets one more value."""
        bounds = self.of(value)
        if name in self._locals:
            bounds = _union(self._locals[name], bounds)
        self._locals[name] = bounds

    def narrow(self, name: str, bounds: Bounds) -> None:
        """A local is known to be in this range."""
        self._locals[name] = bounds

    def of(self, expr: Expr) -> Bounds | None:
        if isinstance(expr, int):
            return int(expr), int(expr)
        if isinstance(expr, Load):
            return 0, self._cells[expr.cell].span
        if isinstance(expr, Local):
            return self._locals.get(expr.name)
        if isinstance(expr, Not):
            return BOOLEAN
        if isinstance(expr, Select):
            return _union(self.of(expr.chosen), self.of(expr.otherwise))
        return self._operation(expr)

    def _operation(self, expr: Op) -> Bounds | None:
        if expr.operator in COMPARISONS or expr.operator in ("and", "or"):
            return BOOLEAN
        left, right = self.of(expr.left), self.of(expr.right)
        if expr.operator == "&":
            return _masked(left, right)
        if left is None or right is None:
            return None
        known = _computed(expr.operator, left, right)
        return known if known is None or max(map(abs, known)) < 1 << 62 else None

    def is_within(self, expr: Expr, low: int, high: int) -> bool:
        """Return whether the value certainly lies in a range."""
        bounds = self.of(expr)
        return bounds is not None and low <= bounds[0] and bounds[1] <= high


def _union(one: Bounds | None, other: Bounds | None) -> Bounds | None:
    if one is None or other is None:
        return None
    return min(one[0], other[0]), max(one[1], other[1])


def _computed(operator: str, left: Bounds, right: Bounds) -> Bounds | None:
    if operator == "+":
        return left[0] + right[0], left[1] + right[1]
    if operator == "-":
        return left[0] - right[1], left[1] - right[0]
    if operator == "%" and left[0] < 0 < right[0]:
        return 0, right[1] - 1
    if left[0] < 0 or right[0] < 0:
        return None
    if operator in ("//", "%") and right[0] > 0:
        low, high = left[0] // right[1], left[1] // right[0]
        return (low, high) if operator == "//" else (0, min(left[1], right[1] - 1))
    if operator in (">>", "<<"):
        return _shifted(operator, left, right)
    ones = (1 << max(left[1], right[1]).bit_length()) - 1
    return {
        "*": (left[0] * right[0], left[1] * right[1]),
        "|": (0, ones),
        "^": (0, ones),
    }.get(operator)


def _masked(left: Bounds | None, right: Bounds | None) -> Bounds | None:
    """Of `left & right`: at most what either is, if that one is not negative."""
    masks = [bounds[1] for bounds in (left, right) if bounds is not None and bounds[0] >= 0]
    return (0, min(masks)) if masks else None


def _shifted(operator: str, left: Bounds, right: Bounds) -> Bounds | None:
    if operator == ">>":
        return left[0] >> min(right[1], 63), left[1] >> right[0]
    return (left[0] << right[0], left[1] << right[1]) if right[1] < 63 else None
