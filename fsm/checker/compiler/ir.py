"""The intermediate form: small functions over the cells of a packed state.

Expressions have no side effects and are 64-bit integers; booleans are 0 and 1. The first `Fail`
that is reached decides the step's verdict, whatever runs after it.
"""

from __future__ import annotations

import operator as arithmetic
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Local:
    """A local variable or parameter of a function."""

    name: str


@dataclass(frozen=True)
class Cell:
    """Some bits of one word: an int, bool or state, or the length or the items of a FIFO.

    The bits hold how much the value is above `low`; `span` is the most that they can hold.
    """

    name: str
    bits: int
    span: int
    low: int = 0
    word: int = 0
    shift: int = 0


@dataclass(frozen=True)
class Load:
    """The bits of a cell."""

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


Expr = int | Local | Load | Op | Not | Select

COMPARISONS = ("==", "!=", "<", "<=", ">", ">=")


@dataclass(frozen=True)
class Assign:
    """Give a local variable a value."""

    local: str
    value: Expr


@dataclass(frozen=True)
class Store:
    """Give a cell bits, which are known to fit."""

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
class Post:
    """Append a call to one of the step's queues: `triggers`, `effects` or `events`."""

    queue: str
    function: str
    arguments: tuple[Expr, ...]


@dataclass(frozen=True)
class Run:
    """Call a function, then what it has posted and what that posts, until the queues are empty."""

    function: str


@dataclass(frozen=True)
class Return:
    """Leave the function; its result is in the local variable `result`."""


@dataclass(frozen=True)
class Fail:
    """Something is wrong: leave the function; `fault` numbers it in the program's list of
    faults.
    """

    fault: int


@dataclass(frozen=True)
class Choose:
    """Give a local variable a number below `count`, which is at least 1, in each way another; there
    are at most `most`.
    """

    local: str
    count: Expr
    most: int


@dataclass(frozen=True)
class Close:
    """Leave the step: it cannot be taken in this way."""


@dataclass(frozen=True)
class Cover:
    """A row was taken: the one whose first number this is, in the state of this position."""

    row: int
    state: Expr


QUEUES = ("triggers", "effects", "events")
"""The queues of a step in the order of their urgency: what machines have fired, what has left them,
and what the environment has fired.
"""

Stmt = Assign | Store | If | Call | Post | Run | Return | Fail | Choose | Close | Cover


@dataclass
class Function:
    """A function over the state; `result` is None for one without."""

    name: str
    parameters: tuple[str, ...]
    body: tuple[Stmt, ...] = ()
    result: Expr | None = None


@dataclass(frozen=True)
class Fault:
    """A fault that can happen at one place of the source: `kind` is refused, assertion, range,
    overflow, empty, index, changed, choice, division, shift, crowded or endless.
    """

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
    enabled: str
    """The function whose result says whether the step is possible."""
    function: str
    ways: int = 0
    """In how many ways at most it can be taken, where it chooses something; 0 where not."""

    @property
    def instance(self) -> str:
        """For instance `subtask[1]`."""
        return self.machine + "".join(f"[{i}]" for i in self.index)

    @property
    def label(self) -> str:
        """For instance `subtask[1].deliver`."""
        return f"{self.instance}.{self.trigger}"


@dataclass(frozen=True)
class RowCode:
    """One row of one machine."""

    machine: str
    trigger: str
    source: str
    because: str
    is_ignored: bool
    file: str
    line: int
    is_environment: bool
    origin: str
    """The class that declares it; the variants of a machine have its rows."""
    places: tuple[tuple[str, int], ...]
    """Each of its source states, and the number that is covered when it is taken there."""


@dataclass(frozen=True)
class Reduction:
    """The function that decides which of the possible steps of a state are taken; see
    `checker.reduction`.
    """

    tables: tuple[int, ...]
    """Steps, their cases, the conditions of these and what depends on what, as numbers."""
    constants: Mapping[str, int]
    """How many of these there are, and where what stands in the tables."""
    looks: tuple[str, ...]
    """Functions of which each gives a bit for each of 64 conditions that hold in a state."""
    ranks: tuple[str, ...]
    """Functions whose results, the first counting most, put states into an order."""


@dataclass
class Program:
    """A closed system, lowered."""

    cells: dict[str, Cell]
    words: int
    functions: dict[str, Function]
    steps: list[StepCode]
    posted: list[str]
    """The functions that are called from a queue."""
    calls_max: int
    """How many calls a step may append to each queue; with more it is endless."""
    endless: int
    """The fault of an endless step."""
    properties: dict[str, str]
    """The name of a property's method -> the function that evaluates it."""
    faults: list[Fault]
    rows: list[RowCode]
    covers: int
    """How many numbers can be covered: one for each row and each state of its machine."""
    initial: tuple[int, ...]
    """The first of the initial states."""
    starts: dict[str, tuple[int, ...]] = field(default_factory=dict)
    """The bits that cells may begin with, where these are several."""
    start_conditions: tuple[str, ...] = ()
    """The functions that hold in each initial state."""
    crowded: int = -1
    """The fault of a step that chooses too much."""
    blocks: tuple[int, int, int] = (0, 0, 0)
    """With symmetry: how many interchangeable blocks there are, the first word of the first, and
    the words of each.
    """
    reduction: Reduction | None = None
    """With partial-order reduction."""

    @property
    def fanout(self) -> int:
        """The number of successors that a state may have."""
        return sum(max(1, step.ways) for step in self.steps)

    @property
    def used_bits(self) -> int:
        """The number of bits that a state of one word uses."""
        return max((cell.shift + cell.bits for cell in self.cells.values()), default=0)


def walk(block: tuple[Stmt, ...]) -> Iterator[Stmt]:
    """Every statement of a block, those inside `If` too."""
    for stmt in block:
        yield stmt
        if isinstance(stmt, If):
            yield from walk(stmt.then)
            yield from walk(stmt.otherwise)


def assigned(block: tuple[Stmt, ...]) -> list[str]:
    """The local variables that a block gives values, each once."""
    names = dict.fromkeys(
        stmt.local
        for stmt in walk(block)
        if isinstance(stmt, Assign | Call | Choose) and stmt.local is not None
    )
    return list(names)


def reached(functions: dict[str, Function], first: str) -> set[str]:
    """The functions that a call of the first one may lead to, itself included."""
    found, frontier = {first}, [first]
    while frontier:
        new = {
            stmt.function
            for stmt in walk(functions[frontier.pop()].body)
            if isinstance(stmt, Call | Post | Run)
        }
        frontier += new - found
        found |= new
    return found


def ways(functions: dict[str, Function], first: str, most: int) -> int:
    """In how many ways a call of the function can go on, at most `most`; 0 if it chooses nothing.

    What is posted may run again and again if it leads back to itself, and counts as `most` then.
    """
    known: dict[str, int] = {}

    def of_block(block: tuple[Stmt, ...]) -> int:
        total = 1
        for stmt in block:
            if isinstance(stmt, If):
                total *= max(of_block(stmt.then), of_block(stmt.otherwise))
            elif isinstance(stmt, Choose):
                total *= stmt.most
            elif isinstance(stmt, Call | Post | Run):
                total *= of_function(stmt.function)
            total = min(total, most)
        return total

    def of_function(name: str) -> int:
        if name not in known:
            known[name] = most if chooses(name) else 1
            if chooses(name):
                known[name] = of_block(functions[name].body)
        return known[name]

    def chooses(name: str) -> bool:
        statements = (s for f in reached(functions, name) for s in walk(functions[f].body))
        return any(isinstance(s, Choose) for s in statements)

    return of_function(first) if chooses(first) else 0


def fold(operation: str, left: Expr, right: Expr) -> Expr:
    """An operation, computed if both sides are known, simplified if one is neutral.

    >>> fold("+", 2, 3), fold("and", 1, Load("a")), fold("*", 0, Load("a"))
    (5, Load(cell='a'), 0)
    """
    if isinstance(left, int) and isinstance(right, int):
        return COMPUTED[operation](left, right)
    if operation in ("and", "or"):
        for known, other in ((left, right), (right, left)):
            if isinstance(known, int):
                return other if bool(known) == (operation == "and") else int(operation == "or")
    if isinstance(right, int) and (operation, right) in NEUTRAL_RIGHT:
        return left
    if isinstance(left, int) and (operation, left) in NEUTRAL_LEFT:
        return right
    if operation == "*" and (left == 0 or right == 0):
        return 0
    return Op(operation, left, right)


NEUTRAL_LEFT: set[tuple[str, int]] = {("+", 0), ("|", 0), ("^", 0), ("*", 1)}
NEUTRAL_RIGHT: set[tuple[str, int]] = {
    *((operation, 0) for operation in ("+", "-", "|", "^", "<<", ">>")),
    ("*", 1),
    ("//", 1),
}
COMPUTED: dict[str, Callable[[int, int], int]] = {
    "and": lambda left, right: int(bool(left) and bool(right)),
    "or": lambda left, right: int(bool(left) or bool(right)),
    "==": lambda left, right: int(left == right),
    "!=": lambda left, right: int(left != right),
    "<": lambda left, right: int(left < right),
    "<=": lambda left, right: int(left <= right),
    ">": lambda left, right: int(left > right),
    ">=": lambda left, right: int(left >= right),
    "+": arithmetic.add,
    "-": arithmetic.sub,
    "*": arithmetic.mul,
    "//": arithmetic.floordiv,
    "%": arithmetic.mod,
    "&": arithmetic.and_,
    "|": arithmetic.or_,
    "^": arithmetic.xor,
    "<<": arithmetic.lshift,
    ">>": arithmetic.rshift,
}


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
