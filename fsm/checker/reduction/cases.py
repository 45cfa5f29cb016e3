"""The cases of each step of a program: the conditions, what else is read, and what is written.
Beside them stand the observers: what a claim or a fault of a guard waits for, as a step that
changes nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace

from epochgate.fsm.checker.compiler.ir import (
    Assign,
    Call,
    Choose,
    Cover,
    Expr,
    If,
    Load,
    Post,
    Program,
    Store,
    reached,
    walk,
)
from epochgate.fsm.checker.compiler.layout import FifoCells
from epochgate.fsm.checker.reduction.paths import Path, Paths, TooManyPaths
from epochgate.fsm.checker.reduction.values import (
    Head,
    Pushed,
    Token,
    Unknown,
    Value,
    computed,
    loads,
    taken_bits,
    values,
)
from epochgate.fsm.closed import Property

OBSERVER = -1
"""In place of the number of a step."""


@dataclass(frozen=True)
class Table:
    """The value of a cell after a write, by what it held before."""

    after: tuple[tuple[int, int], ...]


@dataclass(frozen=True)
class Anything:
    """A write of which the value is not known."""


@dataclass(frozen=True)
class Append:
    """Items are put behind those that are there."""


@dataclass(frozen=True)
class Taken:
    """Items are taken from the front."""


Write = Table | Anything | Append | Taken


@dataclass
class Case:
    """A step where it goes one way; `step` is its number, or OBSERVER."""

    step: int
    within: dict[str, int] = field(default_factory=dict)
    """The values of single cells with which it is taken, as the bits of a number."""
    holds: tuple[tuple[Expr, bool], ...] = ()
    """Its other conditions."""
    reads: frozenset[Token] = frozenset()
    """What it reads beside its conditions."""
    writes: dict[str, Write] = field(default_factory=dict)
    hidden: frozenset[str] = frozenset()
    """The cells that decide when an observer's condition holds, which is not known itself."""
    covers: frozenset[tuple[int, Value]] = frozenset()
    """The rows that are taken, each in its state."""

    def joined(self, other: Case) -> Case | None:
        """Return one case for two that do the same under conditions of which one differs."""
        if self._effect() != other._effect():
            return None
        within, holds = dict(self.within), set(self.holds)
        cells = {c for c in within.keys() | other.within if within.get(c) != other.within.get(c)}
        opposed = holds ^ set(other.holds)
        if len(cells) == 1 and not opposed:
            (cell,) = cells
            if cell in self.writes:
                return None
            mask = within.pop(cell, None)
            if mask is not None and cell in other.within:
                within[cell] = mask | other.within[cell]
            return replace(self, within=within)
        if not cells and len(opposed) == 2 and len({condition for condition, _ in opposed}) == 1:
            return replace(self, holds=tuple(one for one in self.holds if one not in opposed))
        return self if not cells and not opposed else None

    def _effect(self) -> tuple[object, ...]:
        return self.step, self.writes, self.reads, self.hidden, self.covers


class Cases:
    """All cases of a program."""

    def __init__(
        self, program: Program, channels: Iterable[FifoCells], properties: Iterable[Property]
    ) -> None:
        self._program = program
        self.paths = Paths(program, channels)
        self.found: list[Case] = []
        self.coarse: list[str] = []
        """The steps of which the ways through are too many to be told apart."""
        for number in range(len(program.steps)):
            self.found += _joined(self._of_step(number))
        declared = [*properties]
        for name, function in program.properties.items():
            wanted = {
                found.kind == "sometimes" or found.name != name
                for found in declared
                if found.kind != "terminal" and name in (found.name, found.then)
            }
            self.found += self._observers(function, wanted)

    def _of_step(self, number: int) -> Iterator[Case]:
        step = self._program.steps[number]
        enabled = self._where(step.enabled)
        if enabled is None:
            yield self._hidden(step.enabled)
            yield self._roughly(number, None)
            self.coarse.append(step.label)
            return
        yield from (self._case(OBSERVER, path) for path, _ in enabled if path.fails)
        possible = [path for path, holds in enabled if holds]
        try:
            found = [
                self._case(number, way)
                for path in possible
                for way in self.paths.through(path.copy(), step.function)
            ]
        except TooManyPaths:
            self.coarse.append(step.label)
            found = [self._roughly(number, path) for path in possible]
        yield from found

    def _observers(self, function: str, wanted: set[bool]) -> Iterator[Case]:
        """Return what waits for a condition to hold or not to hold, and for a fault of it."""
        ways = self._where(function)
        if ways is None:
            yield self._hidden(function)
            return
        for path, holds in ways:
            if path.fails or holds in wanted:
                yield self._case(OBSERVER, path)

    def _where(self, function: str) -> list[tuple[Path, bool]] | None:
        """The ways through a condition, None if they are too many; each with a fresh frame."""
        try:
            return self.paths.where(self.paths.begin(), function)
        except TooManyPaths:
            return None

    def _hidden(self, function: str) -> Case:
        """An observer of something that is decided by these cells."""
        read, _ = self._cells(function)
        return Case(OBSERVER, hidden=read)

    def _roughly(self, number: int, path: Path | None) -> Case:
        """A step of which only the cells are known, and perhaps when it is possible."""
        step = self._program.steps[number]
        read, written = self._cells(step.function)
        asked, _ = self._cells(step.enabled)
        writes: dict[str, Write] = {cell: Anything() for cell in written}
        found = Case(number, reads=read | asked, writes=writes)
        if path is not None:
            found.within, found.holds = dict(path.within), (*path.holds.items(),)
        return found

    def _cells(self, function: str) -> tuple[frozenset[str], frozenset[str]]:
        """The cells that a function, with all that it calls, may read and write."""
        functions = self._program.functions
        read: set[str] = set()
        written: set[str] = set()
        for name in reached(functions, function):
            if functions[name].result is not None:
                read |= loads(functions[name].result or 0)
            for stmt in walk(functions[name].body):
                exprs: tuple[Expr, ...] = ()
                if isinstance(stmt, Assign | Store):
                    exprs = (stmt.value,)
                elif isinstance(stmt, If):
                    exprs = (stmt.condition,)
                elif isinstance(stmt, Call | Post):
                    exprs = stmt.arguments
                elif isinstance(stmt, Cover):
                    exprs = (stmt.state,)
                elif isinstance(stmt, Choose):
                    exprs = (stmt.count,)
                read = read.union(*(loads(expr) for expr in exprs))
                if isinstance(stmt, Store):
                    written.add(stmt.cell)
        return frozenset(read), frozenset(written)

    def _case(self, step: int, path: Path) -> Case:
        reads = set(path.reads)
        writes = {} if path.fails or step == OBSERVER else self._writes(path, reads)
        found = Case(step if writes else OBSERVER, dict(path.within), (*path.holds.items(),))
        found.reads, found.writes, found.covers = frozenset(reads), writes, path.covers
        if not writes:
            # Where it reads something beside its conditions, these may not be all.
            found.hidden = frozenset(t.items if isinstance(t, Head) else t for t in reads)
        return found

    def _writes(self, path: Path, reads: set[Token]) -> dict[str, Write]:
        """Return what a way leaves in the cells; adds what that depends on to `reads`."""
        found: dict[str, Write] = {}
        for cell, content in path.cells.items():
            if content == Load(cell):
                continue
            if isinstance(content, Pushed):
                reads |= content.reads
                found[cell] = Append()
            elif isinstance(content, Unknown):
                reads |= content.reads
                found[cell] = Anything()
            elif cell in self.paths.channels and (bits := taken_bits(content, cell)) is not None:
                reads.add(Head(cell, bits // self.paths.channels[cell].item_bits))
                found[cell] = Taken()
            elif self.paths.is_small(cell) and loads(content) <= {cell}:
                possible = path.within.get(cell, self.paths.all_values(cell))
                table = tuple((v, computed(content, cell, v)) for v in values(possible))
                if any(before != after for before, after in table):
                    found[cell] = Table(table)
            else:
                reads |= self.paths.tokens(content)
                found[cell] = Anything()
        return found


def _joined(cases: Iterable[Case]) -> list[Case]:
    """Join what a step does alike: a guard that is asked before, and fails for another reason, then
    makes nothing depend on that reason.
    """
    found: list[Case] = []
    for case in cases:
        position = 0
        while position < len(found):
            if both := found[position].joined(case):
                del found[position]
                case, position = both, 0
            else:
                position += 1
        found.append(case)
    return found
