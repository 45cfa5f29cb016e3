"""The least and the greatest values of expressions, where they can be told.

Checks of ranges and indices stay only where they can fail, and what 64 bits do not hold is refused.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import product

from epochgate.fsm.checker.compiler.ir import (
    COMPARISONS,
    Assign,
    Call,
    Cell,
    Expr,
    Function,
    Load,
    Local,
    Not,
    Op,
    Post,
    Select,
    walk,
)

Bounds = tuple[int, int]
BOOLEAN: Bounds = (0, 1)
LEAST, MOST = -(1 << 63), (1 << 63) - 1
"""The least and the greatest number of 64 bits."""


@dataclass(frozen=True)
class Doubt:
    """A value that is refused if it may be more than `most`; one that grows fast also if nothing is
    known of it.
    """

    value: Expr
    most: int
    is_fast: bool
    refusal: Callable[[], Exception]


class Ranges:
    """The least and the greatest values of expressions; None when that is not known."""

    def __init__(self, cells: dict[str, Cell]) -> None:
        self._cells = cells
        self._locals: dict[str, Bounds | None] = {}
        self._narrowed: set[str] = set()

    def assign(self, name: str, value: Expr) -> None:
        """A local gets one more value."""
        bounds = self.of(value)
        if name in self._locals:
            bounds = union(self._locals[name], bounds)
        self._locals[name] = bounds

    def narrow(self, name: str, bounds: Bounds | None) -> None:
        """A local is known to be in this range."""
        self._narrowed.add(name)
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
            return union(self.of(expr.chosen), self.of(expr.otherwise))
        known = self.exact(expr)
        return None if known is None or not _fits(known) else known

    def exact(self, expr: Expr) -> Bounds | None:
        """Return the bounds of its value in numbers without bound."""
        if not isinstance(expr, Op):
            return self.of(expr)
        if expr.operator in COMPARISONS or expr.operator in ("and", "or"):
            return BOOLEAN
        left, right = self.of(expr.left), self.of(expr.right)
        if expr.operator == "&":
            return _masked(left, right)
        if left is None or right is None:
            return None
        return COMPUTED[expr.operator](left, right)

    def settles(self, doubt: Doubt) -> bool:
        """Return whether a value is known to be small enough."""
        known = self.exact(doubt.value)
        return known is not None and known[0] >= LEAST and known[1] <= doubt.most

    def settle(self, functions: dict[str, Function], doubts: list[Doubt]) -> None:
        """Raise the refusal of what may be too large, by what all calls give as arguments."""
        given: dict[str, Bounds | None] = {}
        while doubts := [one for one in doubts if not self.settles(one)]:
            if (found := self._given(functions)) == given:
                break
            given = found
            for name, bounds in given.items():
                self.narrow(name, bounds)
            self._find_again(functions)
        for one in doubts:
            if one.is_fast or self.exact(one.value) is not None:
                raise one.refusal()

    def _given(self, functions: dict[str, Function]) -> dict[str, Bounds | None]:
        """Return the bounds of all arguments that calls give to each parameter."""
        found: dict[str, Bounds | None] = {}
        for stmt in (s for function in functions.values() for s in walk(function.body)):
            if isinstance(stmt, Call | Post):
                names = functions[stmt.function].parameters
                for name, argument in zip(names, stmt.arguments, strict=False):
                    bounds = self.of(argument)
                    found[name] = union(found[name], bounds) if name in found else bounds
        return found

    def _find_again(self, functions: dict[str, Function]) -> None:
        """Find the ranges of locals, those of a call after those of what it calls."""
        self._locals = {name: self._locals[name] for name in self._narrowed}
        found: set[str] = set()

        def assign(name: str, value: Expr) -> None:
            if name not in self._narrowed:
                self.assign(name, value)

        def visit(name: str) -> None:
            if name in found:
                return
            found.add(name)
            for stmt in walk(functions[name].body):
                if isinstance(stmt, Call):
                    visit(stmt.function)
                    if stmt.local is not None:
                        assign(stmt.local, returned(stmt.function))
                elif isinstance(stmt, Assign):
                    is_result = stmt.local == "result"
                    assign(returned(name).name if is_result else stmt.local, stmt.value)

        for name in functions:
            visit(name)

    def is_within(self, expr: Expr, low: int, high: int) -> bool:
        """Return whether the value certainly lies in a range."""
        bounds = self.of(expr)
        return bounds is not None and low <= bounds[0] and bounds[1] <= high


def returned(function: str) -> Local:
    """Return the local that stands for the values that a function gives."""
    return Local(f"{function} gives")


def _fits(bounds: Bounds) -> bool:
    return bounds[0] >= LEAST and bounds[1] <= MOST


def union(one: Bounds | None, other: Bounds | None) -> Bounds | None:
    """The least range with both; None if one is not known."""
    if one is None or other is None:
        return None
    return min(one[0], other[0]), max(one[1], other[1])


def _of_corners(operation: Callable[[int, int], int]) -> Callable[[Bounds, Bounds], Bounds]:
    """Return the bounds by an operation that is monotone in both of its operands."""

    def computed(left: Bounds, right: Bounds) -> Bounds:
        found = [operation(one, other) for one, other in product(left, right)]
        return min(found), max(found)

    return computed


def _divided(left: Bounds, right: Bounds) -> Bounds:
    """By anything but 0, which is reported."""
    if right[0] < 0 < right[1]:
        most = max(map(abs, left))
        return -most, most
    low, high = right[0] or 1, right[1] or -1
    return _of_corners(int.__floordiv__)(left, (min(low, high), max(low, high)))


def _remainder(left: Bounds, right: Bounds) -> Bounds:
    """It has the sign of the divisor."""
    if left[0] >= 0 and right[0] >= 0:
        return 0, min(left[1], max(0, right[1] - 1))
    return min(0, right[0] + 1), max(0, right[1] - 1)


def _joined(left: Bounds, right: Bounds) -> Bounds:
    """Of `|` and `^`: no more bits than both have."""
    ones = (1 << max(number.bit_length() for number in (*left, *right))) - 1
    return (0, ones) if min(left[0], right[0]) >= 0 else (~ones, ones)


def _masked(left: Bounds | None, right: Bounds | None) -> Bounds | None:
    """Of `left & right`: at most what either is, if that one is not negative."""
    masks = [bounds[1] for bounds in (left, right) if bounds is not None and bounds[0] >= 0]
    if masks:
        return 0, min(masks)
    return None if left is None or right is None else _joined(left, right)


def _shifted(operation: Callable[[int, int], int]) -> Callable[[Bounds, Bounds], Bounds]:
    """By a number of bits that was brought between 0 and 62."""

    def computed(left: Bounds, right: Bounds) -> Bounds:
        bits = max(0, min(right[0], 63)), max(0, min(right[1], 63))
        return _of_corners(operation)(left, bits)

    return computed


COMPUTED: dict[str, Callable[[Bounds, Bounds], Bounds]] = {
    "+": lambda left, right: (left[0] + right[0], left[1] + right[1]),
    "-": lambda left, right: (left[0] - right[1], left[1] - right[0]),
    "*": _of_corners(int.__mul__),
    "//": _divided,
    "%": _remainder,
    "|": _joined,
    "^": _joined,
    "<<": _shifted(int.__lshift__),
    ">>": _shifted(int.__rshift__),
}
