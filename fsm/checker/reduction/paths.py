"""Follows a function of a program in all ways that it can take, over what the state is before it.

A path ends with the conditions on that state under which it is taken, with what else it reads, and
with what it leaves in the cells. Conditions on one cell of few values are kept as the set of values
that fulfil them, so that a path which contradicts itself is left out. Values and conditions that
grow too large are known by the cells that they depend on.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from epochgate.fsm.checker.compiler.ir import (
    QUEUES,
    Assign,
    Call,
    Cell,
    Cover,
    Expr,
    Fail,
    Function,
    If,
    Load,
    Local,
    Not,
    Op,
    Post,
    Program,
    Return,
    Run,
    Select,
    Stmt,
    Store,
    negate,
    select,
)
from epochgate.fsm.checker.compiler.layout import FifoCells
from epochgate.fsm.checker.reduction.values import (
    Content,
    Head,
    Pushed,
    Token,
    Unknown,
    Value,
    computed,
    loads,
    nodes,
    normal,
    pushed,
    taken_bits,
    values,
)

SMALL_MAX = 62
"""Values of a cell above 0 that a set of values, in one word, has room for."""
NODES_MAX = 60
"""Parts of an expression that is kept as it is."""
PATHS_MAX = 64
"""Ways through one step that are told apart; of a step with more, only the cells are known."""
WORK_MAX = 20_000
"""Statements that are followed on all ways through one step."""


PARTIAL = ("//", "%", "<<", ">>")
"""What is not computed by every right side, and is not looked at where it would not be reached."""


class TooManyPaths(Exception):
    """A function has more ways through it than are told apart."""


@dataclass
class Path:
    """One way, so far."""

    within: dict[str, int] = field(default_factory=dict)
    """The values that a cell may have before, as the bits of a number."""
    holds: dict[Expr, bool] = field(default_factory=dict)
    """The other conditions, and whether they hold."""
    reads: set[Token] = field(default_factory=set)
    covers: frozenset[tuple[int, Value]] = frozenset()
    """The rows that are taken, each in its state."""
    cells: dict[str, Content] = field(default_factory=dict)
    frames: list[dict[str, Value]] = field(default_factory=lambda: [{}])
    queues: dict[str, tuple[tuple[str, tuple[Value, ...]], ...]] = field(default_factory=dict)
    leaves: bool = False
    """The function is left; its caller goes on."""
    fails: bool = False
    """A fault was reached, so the step ends."""

    def copy(self) -> Path:
        """Return the same way, to go on differently."""
        return Path(
            dict(self.within),
            dict(self.holds),
            set(self.reads),
            self.covers,
            dict(self.cells),
            [dict(frame) for frame in self.frames],
            dict(self.queues),
            self.leaves,
            self.fails,
        )


class Paths:
    """Follows the functions of one program."""

    def __init__(self, program: Program, channels: Iterable[FifoCells]) -> None:
        self.cells: dict[str, Cell] = program.cells
        self._functions: dict[str, Function] = program.functions
        self.channels = {channel.items: channel for channel in channels}
        self._work = self._paths = 0

    def begin(self) -> Path:
        """Return a way that has not begun; the limits hold from here on."""
        self._work, self._paths = 0, 1
        return Path()

    def through(self, path: Path, function: str) -> list[Path]:
        """Return all ways through a function that takes no arguments.

        Raises TooManyPaths.
        """
        return self._call(path, function, ())

    def where(self, path: Path, function: str) -> list[tuple[Path, bool]]:
        """Return all ways through a function that gives a condition, and whether it holds.

        Those that reach a fault are among them. Raises TooManyPaths.
        """
        found: list[tuple[Path, bool]] = []
        for one in self._call(path, function, (), "result"):
            if one.fails:
                found.append((one, False))
            else:
                found += self._split(one, one.frames[-1]["result"])
        return found

    # Statements

    def _block(self, block: tuple[Stmt, ...], path: Path) -> list[Path]:
        going, done = [path], []
        for stmt in block:
            after: list[Path] = []
            for one in going:
                after += self._statement(stmt, one)
            done += [one for one in after if one.leaves or one.fails]
            going = [one for one in after if not (one.leaves or one.fails)]
        return done + going

    def _statement(self, stmt: Stmt, path: Path) -> list[Path]:
        self._work += 1
        if self._work > WORK_MAX:
            raise TooManyPaths
        match stmt:
            case If(condition, then, otherwise):
                return [
                    after
                    for one, is_true in self._split(path, self.value(path, condition))
                    for after in self._block(then if is_true else otherwise, one)
                ]
            case Call(function, arguments, local):
                values = tuple(self.value(path, argument) for argument in arguments)
                return self._call(path, function, values, local)
            case Run(function):
                return self._run(path, function)
        self._straight(stmt, path)
        return [path]

    def _straight(self, stmt: Stmt, path: Path) -> None:
        """A statement behind which there is one way."""
        match stmt:
            case Assign(local, value):
                path.frames[-1][local] = self.value(path, value)
            case Store():
                self._store(stmt, path)
            case Post(queue, function, arguments):
                values = tuple(self.value(path, argument) for argument in arguments)
                path.queues[queue] = (*path.queues.get(queue, ()), (function, values))
            case Return():
                path.leaves = True
            case Fail():
                path.fails = True
            case Cover(row, state):
                position = self.value(path, state)
                path.covers |= {(row, position)}
                path.reads |= self.tokens(position)
            case _:
                raise TooManyPaths  # a statement whose effect is not known here

    def _call(
        self, path: Path, name: str, arguments: tuple[Value, ...], local: str | None = None
    ) -> list[Path]:
        function = self._functions[name]
        path.frames.append(dict(zip(function.parameters, arguments, strict=True)))
        found = self._block(function.body, path)
        for one in found:
            one.leaves = False
            result: Value = 0
            if function.result is not None and not one.fails:
                result = self.value(one, function.result)
            one.frames.pop()
            if local is not None:
                one.frames[-1][local] = result
        return found

    def _run(self, path: Path, function: str) -> list[Path]:
        """Call a function, then what waits in the queues."""
        pending, done = self._call(path, function, ()), []
        while pending:
            one = pending.pop()
            queue = next((name for name in QUEUES if one.queues.get(name)), None)
            if one.fails or queue is None:
                done.append(one)
                continue
            (called, arguments), *others = one.queues[queue]
            one.queues[queue] = tuple(others)
            pending += self._call(one, called, arguments)
        return done

    def _store(self, stmt: Store, path: Path) -> None:
        channel = self.channels.get(stmt.cell)
        if channel is not None and (item := pushed(channel, stmt.value)) is not None:
            content = path.cells.get(stmt.cell, Load(stmt.cell))
            reads = self.tokens(self.value(path, item))
            if isinstance(content, Pushed):
                reads |= content.reads
            if isinstance(content, Pushed) or content == Load(stmt.cell):
                path.cells[stmt.cell] = Pushed(reads)
                return
        path.cells[stmt.cell] = self.value(path, stmt.value)

    # Conditions

    def _split(self, path: Path, condition: Value) -> list[tuple[Path, bool]]:
        """Go on in both ways, where the condition holds and where it does not."""
        if isinstance(condition, int):
            return [(path, bool(condition))]
        if isinstance(condition, Unknown):
            path.reads |= condition.reads
            return self._fork(path)
        if isinstance(condition, Not):
            return [(one, not holds) for one, holds in self._split(path, condition.operand)]
        if (cell := self.only_cell(condition)) is not None:
            return self._by_values(path, condition, cell)
        if isinstance(condition, Op) and condition.operator in ("and", "or"):
            found = []
            for one, holds in self._split(path, condition.left):
                if holds == (condition.operator == "and"):
                    found += self._split(one, condition.right)
                else:
                    found.append((one, holds))
            return found
        if condition in path.holds:
            return [(path, path.holds[condition])]
        both = self._fork(path)
        for one, holds in both:
            one.holds[condition] = holds
        return both

    def _fork(self, path: Path) -> list[tuple[Path, bool]]:
        self._paths += 1
        if self._paths > PATHS_MAX:
            raise TooManyPaths
        return [(path, True), (path.copy(), False)]

    def _by_values(self, path: Path, condition: Expr, cell: str) -> list[tuple[Path, bool]]:
        possible = path.within.get(cell, self.all_values(cell))
        fulfilling = 0
        for value in values(possible):
            if computed(condition, cell, value):
                fulfilling |= 1 << value
        if fulfilling in (0, possible):
            return [(path, fulfilling != 0)]
        both = self._fork(path)
        for one, holds in both:
            one.within[cell] = fulfilling if holds else possible & ~fulfilling
        return both

    def all_values(self, cell: str) -> int:
        """Return the values that a cell may have as the bits of a number."""
        return (2 << self.cells[cell].span) - 1

    def is_small(self, cell: str) -> bool:
        """Tell whether a set of values of this cell fits into a word; items are kept apart."""
        return self.cells[cell].span <= SMALL_MAX and cell not in self.channels

    def only_cell(self, expr: Expr) -> str | None:
        """Return the cell, of few values, that alone decides the expression; None without one."""
        names = loads(expr)
        if len(names) != 1:
            return None
        (name,) = names
        return name if self.is_small(name) else None

    # Values

    def value(self, path: Path, expr: Expr) -> Value:
        """Return what an expression is, in terms of the state before the step."""
        if isinstance(expr, int):
            return expr
        if isinstance(expr, Local):
            return path.frames[-1].get(expr.name, 0)
        if isinstance(expr, Load):
            return self._load(path, expr.cell)
        if isinstance(expr, Not):
            operand = self.value(path, expr.operand)
            return operand if isinstance(operand, Unknown) else negate(operand)
        if isinstance(expr, Select):
            parts = [self.value(path, e) for e in (expr.condition, expr.chosen, expr.otherwise)]
            if any(isinstance(part, Unknown) for part in parts):
                return self._joined(parts)
            return self._bounded(select(*parts))  # type: ignore[arg-type]  # none is Unknown
        left, right = self.value(path, expr.left), self.value(path, expr.right)
        if isinstance(left, Unknown) or isinstance(right, Unknown):
            return self._joined((left, right))
        if expr.operator in PARTIAL and not (isinstance(right, int) and 0 < right < 63):
            return self._joined((left, right))
        return self._bounded(normal(expr.operator, left, right))

    def _load(self, path: Path, cell: str) -> Value:
        content = path.cells.get(cell, Load(cell))
        if isinstance(content, Pushed):
            return Unknown(content.reads | {cell, self.channels[cell].length})
        if isinstance(content, Load) and content.cell in path.within:
            found = [*values(path.within[content.cell])]
            if len(found) == 1:
                return found[0]
        return content

    def _joined(self, parts: Iterable[Value]) -> Unknown:
        return Unknown(frozenset().union(*(self.tokens(part) for part in parts)))

    def _bounded(self, expr: Expr) -> Value:
        return expr if nodes(expr) <= NODES_MAX else Unknown(self.tokens(expr))

    def tokens(self, value: Value) -> frozenset[Token]:
        """Return what a value depends on."""
        if isinstance(value, Unknown):
            return value.reads
        found: set[Token] = set()
        self._collect(value, found)
        return frozenset(found)

    def _collect(self, expr: Expr, found: set[Token]) -> None:
        if isinstance(expr, Load):
            found.add(expr.cell)
        elif isinstance(expr, Not):
            self._collect(expr.operand, found)
        elif isinstance(expr, Select):
            for part in (expr.condition, expr.chosen, expr.otherwise):
                self._collect(part, found)
        elif isinstance(expr, Op):
            if (head := self._head(expr)) is not None:
                found.add(head)
                return
            self._collect(expr.left, found)
            self._collect(expr.right, found)

    def _head(self, expr: Op) -> Head | None:
        """The first items of a channel, if that is what is read."""
        if expr.operator != "&" or not isinstance(expr.right, int):
            return None
        for items, channel in self.channels.items():
            if expr.right == (1 << channel.item_bits) - 1:
                taken = taken_bits(expr.left, items)
                if taken is not None and taken % channel.item_bits == 0:
                    return Head(items, taken // channel.item_bits + 1)
        return None
