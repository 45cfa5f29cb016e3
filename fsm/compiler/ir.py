"""The intermediate form: small functions over the cells of a packed state.

Expressions have no side effects and are 64-bit integers; booleans are 0 and 1. The first `Fail`
that is reached decides the step's verdict, whatever runs after it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Union

Const = int


@dataclass(frozen=True)
class Local:
    """A local variable or parameter of a function."""

    name: str


@dataclass(frozen=True)
class Cell:
    """Some bits of one word: an int, bool or state, or the length or the items of a FIFO."""

    name: str
    bits: int
    maximum: int
    word: int = 0
    shift: int = 0


@dataclass(frozen=True)
class Load:
    """The value of a cell."""

    cell: str


@dataclass(frozen=True)
class Op:
    """`left operator right`; comparisons, `and` and `or` give 0 or 1."""

    operator: str
    left: Expr
    right: Expr


@dataclass(frozen=True)
class Not:
    """1 if the operand is 0, else 0."""

    operand: Expr


@dataclass(frozen=True)
class Select:
    """`chosen` if the condition is not 0, else `otherwise`."""

    condition: Expr
    chosen: Expr
    otherwise: Expr


Expr = Union[int, Local, Load, Op, Not, Select]


@dataclass(frozen=True)
class Assign:
    """Give a local variable a value."""

    local: str
    value: Expr


@dataclass(frozen=True)
class Store:
    """Give a cell a value, which is known to fit."""

    cell: str
    value: Expr


@dataclass(frozen=True)
class If:
    """Run one of two blocks."""

    condition: Expr
    then: tuple[Stmt, ...]
    otherwise: tuple[Stmt, ...] = ()


@dataclass(frozen=True)
class Call:
    """Call a function; its result goes to `local` unless that is None."""

    function: str
    arguments: tuple[Expr, ...]
    local: str | None = None


@dataclass(frozen=True)
class Fail:
    """Something is wrong; `fault` numbers it in the program's list of faults."""

    fault: int


@dataclass(frozen=True)
class Cover:
    """The row of this number was taken."""

    row: int


Stmt = Union[Assign, Store, If, Call, Fail, Cover]


@dataclass
class Function:
    """A function over the state; `result` is None for one without."""

    name: str
    parameters: tuple[str, ...]
    body: tuple[Stmt, ...] = ()
    result: Expr | None = None


@dataclass(frozen=True)
class Fault:
    """What can go wrong at one place of the source."""

    kind: str
    message: str
    file: str
    line: int


@dataclass
class StepCode:
    """One step of one instance: when it is possible, and the function that takes it."""

    machine: str
    index: tuple[int, ...]
    trigger: str
    enabled: Expr
    function: str

    @property
    def label(self) -> str:
        """For instance `subtask[1].deliver`."""
        return self.machine + "".join(f"[{i}]" for i in self.index) + "." + self.trigger


@dataclass
class Program:
    """A closed system, lowered."""

    cells: dict[str, Cell]
    words: int
    functions: dict[str, Function]
    steps: list[StepCode]
    properties: dict[str, str]
    """Property name -> the function that evaluates it."""
    faults: list[Fault]
    rows: list[str]
    initial: tuple[int, ...]
    initial_values: dict[str, int] = field(default_factory=dict)


def fold(operator: str, left: Expr, right: Expr) -> Expr:
    """An operation, computed if both sides are known, simplified if one is neutral.

    >>> fold("+", 2, 3), fold("and", 1, Load("a")), fold("*", 0, Load("a"))
    (5, Load(cell='a'), 0)
    """
    if isinstance(left, int) and isinstance(right, int):
        return _compute(operator, left, right)
    if operator in ("and", "or"):
        for known, other in ((left, right), (right, left)):
            if isinstance(known, int):
                return other if bool(known) == (operator == "and") else int(operator == "or")
    if operator in ("+", "|", "^") and left == 0:
        return right
    if operator in ("+", "-", "|", "^", "<<", ">>") and right == 0:
        return left
    if operator == "*" and (left == 0 or right == 0):
        return 0
    if operator in ("*", "//") and right == 1:
        return left
    if operator == "*" and left == 1:
        return right
    return Op(operator, left, right)


def _compute(operator: str, left: int, right: int) -> int:
    if operator == "and":
        return int(bool(left) and bool(right))
    if operator == "or":
        return int(bool(left) or bool(right))
    compared = {
        "==": left == right,
        "!=": left != right,
        "<": left < right,
        "<=": left <= right,
        ">": left > right,
        ">=": left >= right,
    }
    if operator in compared:
        return int(compared[operator])
    return {
        "+": lambda: left + right,
        "-": lambda: left - right,
        "*": lambda: left * right,
        "//": lambda: left // right,
        "%": lambda: left % right,
        "&": lambda: left & right,
        "|": lambda: left | right,
        "^": lambda: left ^ right,
        "<<": lambda: left << right,
        ">>": lambda: left >> right,
    }[operator]()


def negate(operand: Expr) -> Expr:
    """Logical not."""
    if isinstance(operand, int):
        return int(not operand)
    return operand.operand if isinstance(operand, Not) else Not(operand)


def select(condition: Expr, chosen: Expr, otherwise: Expr) -> Expr:
    """A choice, decided if the condition is known or does not matter."""
    if isinstance(condition, int):
        return chosen if condition else otherwise
    return chosen if chosen == otherwise else Select(condition, chosen, otherwise)
