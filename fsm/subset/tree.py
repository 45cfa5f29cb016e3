"""The typed tree of a method within the subset.

Every name is resolved: a node says whether it is a local, a field, a constant of the system, a
machine, a trigger or a message. Where a path leads behind a system that is not known yet, it is
`Unknown`; the tree of a method whose system is known has none.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

from epochgate.fsm.subset.names import Callee, Kind, Place, Value

if TYPE_CHECKING:
    from epochgate.fsm.machine import Machine

SET_BITS = 62
"""A set holds numbers below that."""


@dataclass(slots=True)
class Node:
    """Something that the source says at one place."""

    at: ast.AST

    @property
    def line(self) -> int:
        """The line in its file."""
        return getattr(self.at, "lineno", 0)

    @property
    def text(self) -> str:
        """The source, in Python's own layout."""
        return ast.unparse(self.at)


# Paths


@dataclass(slots=True)
class Path(Node):
    """The place that a name, an attribute or a subscript leads to."""

    place: Place

    @property
    def kind(self) -> Kind:
        """The kind of value that stands there; UNKNOWN where no value does."""
        return self.place.kind if isinstance(self.place, Value) else Kind.UNKNOWN


class Unknown(Path):
    """Something behind a system that is not known yet."""

    __slots__ = ()


class Itself(Path):
    """The machine, or the system, whose method this is."""

    __slots__ = ()


class TheSystem(Path):
    """The system of the machine."""

    __slots__ = ()


@dataclass(slots=True)
class Machines(Path):
    """The machines under one name of the system: one, or an array to be subscripted."""

    name: str


@dataclass(slots=True)
class SystemConstant(Path):
    """A constant of the system."""

    name: str


@dataclass(slots=True)
class LocalName(Path):
    """A local variable or a parameter."""

    name: str


@dataclass(slots=True)
class StateOf(Path):
    """The state of a machine."""

    machine: Path


@dataclass(slots=True)
class IndexOf(Path):
    """One position of a machine in its array."""

    machine: Path
    name: str


@dataclass(slots=True)
class FieldOf(Path):
    """A field of a machine."""

    machine: Path
    name: str


@dataclass(slots=True)
class PortOf(Path):
    """A port of a machine."""

    machine: Path
    name: str


@dataclass(slots=True)
class Item(Path):
    """One of an array of machines, fields or channels."""

    array: Path
    index: tuple[Expression, ...]


@dataclass(slots=True)
class Member(Path):
    """Something to call: a method, a trigger, a message, or an operation of a channel."""

    owner: Path
    callee: Callee


# Values


@dataclass(slots=True)
class Constant(Node):
    """An int or a bool."""

    kind: Kind
    value: int


@dataclass(slots=True)
class Text(Node):
    """The name of a state, or a text that is only handed on."""

    name: str
    kind: Kind = Kind.STATE


@dataclass(slots=True)
class Operation(Node):
    """`left operator right` of ints, or of sets."""

    operator: str
    left: Expression
    right: Expression
    kind: Kind = Kind.INT


@dataclass(slots=True)
class Negative(Node):
    """`-operand`."""

    operand: Expression
    kind: Kind = Kind.INT


@dataclass(slots=True)
class Computed(Node):
    """`min(...)`, `max(...)` or `abs(...)`."""

    name: str
    arguments: tuple[Expression, ...]
    kind: Kind = Kind.INT


@dataclass(slots=True)
class TableItem(Node):
    """An item of a tuple of numbers that is known."""

    numbers: tuple[int, ...]
    index: Expression
    kind: Kind = Kind.INT


@dataclass(slots=True)
class SetOf(Node):
    """A set that is written: `set()`, `{1, 3}`."""

    numbers: frozenset[int]
    kind: Kind = Kind.SET


@dataclass(slots=True)
class Contains(Node):
    """`item in container`: a channel, a set, or numbers that are known."""

    item: Expression
    container: Expression | Values
    kind: Kind = Kind.BOOL


@dataclass(slots=True)
class Length(Node):
    """`len(container)`."""

    container: Expression
    kind: Kind = Kind.INT


@dataclass(slots=True)
class Inverse(Node):
    """`not operand`."""

    operand: Expression
    kind: Kind = Kind.BOOL


@dataclass(slots=True)
class Logic(Node):
    """Operands joined by `and`, or by `or`."""

    operator: str
    operands: tuple[Expression, ...]
    kind: Kind = Kind.BOOL


@dataclass(slots=True)
class Comparison(Node):
    """Operands with an operator between each two; `is_of_states` when they are states."""

    operators: tuple[str, ...]
    operands: tuple[Expression, ...]
    is_of_states: bool
    kind: Kind = Kind.BOOL


@dataclass(slots=True)
class Choice(Node):
    """`chosen if condition else otherwise`."""

    kind: Kind
    condition: Expression
    chosen: Expression
    otherwise: Expression


@dataclass(slots=True)
class Range(Node):
    """`range(...)` of one or two numbers, constants but for a choice."""

    bounds: tuple[Expression, ...]


@dataclass(slots=True)
class Quantified(Node):
    """`all(...)` or `any(...)` over the values of loops for which the conditions hold."""

    is_all: bool
    loops: tuple[tuple[str, Range], ...]
    conditions: tuple[Expression, ...]
    element: Expression
    kind: Kind = Kind.BOOL


@dataclass(slots=True)
class Values(Node):
    """Numbers that are known."""

    numbers: tuple[int, ...]


@dataclass(slots=True)
class Sieve(Node):
    """`name for name in range(...) if ...`: the numbers for which the conditions hold."""

    name: str
    range: Range
    conditions: tuple[Expression, ...]


@dataclass(slots=True)
class OneOf(Node):
    """`self.one_of(...)`: a number that the environment chooses."""

    options: Range | Values | Sieve
    kind: Kind = Kind.INT


@dataclass(slots=True)
class Call(Node):
    """A call of a method, a trigger, a message or an operation of a channel."""

    kind: Kind
    owner: Path
    callee: Callee
    arguments: tuple[Expression, ...]


@dataclass(slots=True)
class Drain(Node):
    """`into.drain(source)`: one channel is emptied into another."""

    into: Path
    source: Path
    kind: Kind = Kind.NOTHING


Expression = (
    Path
    | Constant
    | Text
    | Operation
    | Negative
    | Computed
    | TableItem
    | SetOf
    | Contains
    | Length
    | Inverse
    | Logic
    | Comparison
    | Choice
    | Quantified
    | OneOf
    | Call
    | Drain
)


# Statements


@dataclass(slots=True)
class Assign(Node):
    """`target = value`."""

    target: Path
    value: Expression


@dataclass(slots=True)
class Update(Node):
    """`target operator= value`."""

    target: Path
    operator: str
    value: Expression


@dataclass(slots=True)
class If(Node):
    """One of two blocks."""

    condition: Expression
    then: tuple[Statement, ...]
    otherwise: tuple[Statement, ...]


@dataclass(slots=True)
class ForRange(Node):
    """A block for each number of a range."""

    name: str
    range: Range
    body: tuple[Statement, ...]


@dataclass(slots=True)
class ForItems(Node):
    """A block for each item that is taken out of a channel."""

    name: str
    channel: Path
    body: tuple[Statement, ...]


@dataclass(slots=True)
class Assert(Node):
    """A condition that has to hold, and what is told when it does not."""

    condition: Expression
    told: str


@dataclass(slots=True)
class Return(Node):
    """The end of the method, with its value if it has one."""

    value: Expression | None


@dataclass(slots=True)
class Do(Node):
    """A call whose value is not used."""

    call: Expression


Statement = Assign | Update | If | ForRange | ForItems | Assert | Return | Do


@dataclass(slots=True)
class MethodTree(Node):
    """One method: its owner, its parameters, and its statements."""

    owner: type[Machine] | None
    """None for a method of the system."""
    function: Callable[..., Any]
    parameters: tuple[str, ...]
    reassigned: tuple[str, ...]
    """The parameters that the body gives other values."""
    gives: Kind
    body: tuple[Statement, ...]


def walk(part: Any) -> Iterator[Node]:
    """Every node of a tree, of a statement or of a value, itself included."""
    if isinstance(part, tuple):
        for each in part:
            yield from walk(each)
    elif isinstance(part, Node):
        yield part
        for field in fields(part):
            if field.name not in ("at", "place", "callee"):
                yield from walk(getattr(part, field.name))
