"""Values in terms of the state before a step: expressions over cells, and what is left of those
that grow too large.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache

from epochgate.fsm.checker.compiler.ir import (
    COMPARISONS,
    COMPUTED,
    Expr,
    Load,
    Not,
    Op,
    Select,
    fold,
)
from epochgate.fsm.checker.compiler.layout import FifoCells


@dataclass(frozen=True)
class Head:
    """The first items of a channel, this many, which a push leaves as they are."""

    items: str
    count: int


Token = str | Head
"""What is read: a cell, or the first items of a channel."""


@dataclass(frozen=True)
class Unknown:
    """A value that depends on what is read here, in a way that is not kept."""

    reads: frozenset[Token]


@dataclass(frozen=True)
class Pushed:
    """The items of a channel with others behind them, which depend on what is read here."""

    reads: frozenset[Token]


Value = Expr | Unknown
Content = Value | Pushed


def pushed(channel: FifoCells, value: Expr) -> Expr | None:
    """Return the item, if what is stored are the items of a channel with this one behind them."""
    at = fold("*", Load(channel.length), channel.item_bits)
    match value:
        case Op("|", Load(cell), Op("<<", item, place)) if cell == channel.items and place == at:
            return item
    return None


def taken_bits(expr: Value | Pushed, items: str) -> int | None:
    """Return how many bits were shifted out of these items; None for what is something else."""
    match expr:
        case Load(cell) if cell == items:
            return 0
        case Op(">>", Load(cell), int(bits)) if cell == items:
            return bits
    return None


def normal(operator: str, left: Expr, right: Expr) -> Expr:
    """Return an operation; constants that are added or shifted by after each other are joined."""
    if left == right and operator in COMPARISONS:
        return int(operator in ("==", "<=", ">="))
    if isinstance(right, int) and isinstance(left, Op) and isinstance(left.right, int):
        if operator == left.operator == ">>" and left.right + right < 63:
            return fold(">>", left.left, left.right + right)
        if operator in ("+", "-") and left.operator in ("+", "-"):
            before = left.right if left.operator == "+" else -left.right
            total = before + (right if operator == "+" else -right)
            return fold("+", left.left, total) if total >= 0 else fold("-", left.left, -total)
    return fold(operator, left, right)


def values(mask: int) -> Iterable[int]:
    """Yield the numbers whose bits are set."""
    return (value for value in range(mask.bit_length()) if mask >> value & 1)


@lru_cache(1 << 16)
def loads(expr: Expr) -> frozenset[str]:
    """Return the cells in an expression."""
    if isinstance(expr, Load):
        return frozenset((expr.cell,))
    return frozenset().union(*(loads(part) for part in _parts(expr)))


@lru_cache(1 << 16)
def nodes(expr: Expr) -> int:
    """Return how many parts an expression has."""
    return 1 + sum(nodes(part) for part in _parts(expr))


def _parts(expr: Expr) -> tuple[Expr, ...]:
    match expr:
        case Op(_, left, right):
            return left, right
        case Not(operand):
            return (operand,)
        case Select(condition, chosen, otherwise):
            return condition, chosen, otherwise
    return ()


@lru_cache(1 << 18)
def computed(expr: Expr, cell: str, value: int) -> int:
    """Return an expression's value where the only cell in it has this value."""
    if isinstance(expr, int):
        return int(expr)
    if isinstance(expr, Load):
        assert expr.cell == cell
        return value
    if isinstance(expr, Not):
        return int(not computed(expr.operand, cell, value))
    if isinstance(expr, Select):
        chosen = expr.chosen if computed(expr.condition, cell, value) else expr.otherwise
        return computed(chosen, cell, value)
    assert isinstance(expr, Op)
    left = computed(expr.left, cell, value)
    if expr.operator == "and" and not left:
        return 0
    if expr.operator == "or" and left:
        return 1
    return COMPUTED[expr.operator](left, computed(expr.right, cell, value))
