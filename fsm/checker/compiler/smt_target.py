"""Programs as terms of bit vectors, for a solver: what each step makes of any state at all.

A state is a variable for each cell, as wide as the cell. A step is run on these variables along
every way through its functions. Ways on which the same calls wait join again, as one term for each
value; the others stay apart, and ways that no state can go are dropped. Arithmetic is on 64 bits,
as in machine code.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import z3
from epochgate.fsm.checker.compiler.ir import (
    QUEUES,
    Assign,
    Call,
    Choose,
    Close,
    Cover,
    Expr,
    Fail,
    Function,
    If,
    Load,
    Local,
    Not,
    Post,
    Program,
    Return,
    Run,
    Select,
    Stmt,
    Store,
    reached,
    walk,
)
from epochgate.fsm.checker.compiler.layout import FifoCells, Layout
from epochgate.fsm.choosing import CHOICES_MAX

BITS = 64
Term = Any
"""A Python int, or a term of the solver: 64 bits, or a truth value."""
Cells = dict[str, Term]
Posted = tuple[str, tuple[Term, ...]]


@dataclass(frozen=True)
class Way:
    """One way through a step so far: the conditions that lead along it, and what it has changed."""

    conditions: tuple[Term, ...]
    cells: Cells
    locals: dict[str, Term] = field(default_factory=dict)
    queues: tuple[tuple[Posted, ...], ...] = ((), (), ())
    posts: tuple[int, ...] = (0, 0, 0)
    chosen: int = 0
    """How many values it has chosen."""
    covers: tuple[tuple[Term, int, Term], ...] = ()
    """When a row is taken, the first number of it, and the state in which it is."""
    has_returned: bool = False
    fault: int | None = None

    def shape(self) -> tuple[object, ...]:
        """Ways of the same shape differ in values alone."""
        queued = tuple(tuple(name for name, _ in queue) for queue in self.queues)
        return queued, self.has_returned, self.fault


IsPossible = Callable[[tuple[Term, ...]], bool]
"""Whether some state of those that are looked at fulfils all conditions."""


class SmtTarget:
    """Steps and properties of one program as terms over variables, one for each cell."""

    def __init__(self, program: Program, layout: Layout) -> None:
        self.program, self.layout = program, layout
        self.variables: Cells = {
            name: z3.BitVec(name, cell.bits) for name, cell in program.cells.items() if cell.bits
        }
        self.choices: list[Term] = []
        """A variable for each value that a step chooses."""
        self._plain = {name for name in program.functions if self._is_plain(name)}

    def _is_plain(self, name: str) -> bool:
        names = reached(self.program.functions, name)
        stmts = (s for n in names for s in walk(self.program.functions[n].body))
        return not any(isinstance(stmt, Post | Cover | Run) for stmt in stmts)

    def typed(self) -> list[Term]:
        """Return what makes the variables a typed state: each value in its range, each channel in
        its shape.
        """
        found = []
        for name, variable in self.variables.items():
            span, bits = self.program.cells[name].span, self.program.cells[name].bits
            if span + 1 < 1 << bits:
                found.append(z3.ULE(variable, span))
        for channel in self.layout.channels():
            found += self._shaped(channel)
        return found

    def _shaped(self, channel: FifoCells) -> Iterator[Term]:
        """Items in use are in their range, and bits that are not in use are 0."""
        if not self.program.cells[channel.length].bits:
            return
        length, items = self.variables[channel.length], self.variables[channel.items]
        bits = channel.item_bits
        for position in range(channel.capacity):
            item = z3.Extract((position + 1) * bits - 1, position * bits, items)
            yield z3.If(z3.UGT(length, position), z3.ULE(item, channel.item_maximum), item == 0)

    def holds(self, name: str) -> Term:
        """A property's method; where it would fail, it does not hold."""
        start = Way((), dict(self.variables))
        ways = self._called(start, self.program.properties[name], (), "holds", _always)
        found = [
            z3.And(*way.conditions, truth(way.locals["holds"])) for way in ways if way.fault is None
        ]
        return z3.simplify(z3.Or(*found))

    def ways(self, number: int, is_possible: IsPossible) -> list[Way]:
        """Every possible way through a step, up to its end or to a fault."""
        step = self.program.steps[number]
        ways = []
        for way in self._called(
            Way((), dict(self.variables)), step.enabled, (), "enabled", is_possible
        ):
            if way.fault is not None:
                ways.append(way)
                continue
            taken = _under(way, way.locals["enabled"])
            if taken is not None and is_possible(taken.conditions):
                taken = replace(taken, locals={})
                ways += self._called(taken, step.function, (), None, is_possible)
        return ways

    # Functions

    def _called(
        self,
        way: Way,
        name: str,
        arguments: tuple[Term, ...],
        local: str | None,
        is_possible: IsPossible,
    ) -> list[Way]:
        function, depth = self.program.functions[name], len(way.conditions)
        names = dict(zip(function.parameters, arguments, strict=False))
        inner = replace(way, locals={**names, "result": 0})
        ends = []
        for end in self._block(inner, function.body, is_possible):
            result = self._result(end, function) if end.fault is None else 0
            kept = {**way.locals, local: result} if local is not None else way.locals
            ends.append(replace(end, locals=kept, has_returned=False))
        return _joined(ends, depth)

    def _result(self, way: Way, function: Function) -> Term:
        return 0 if function.result is None else self._value(way, function.result)

    def _block(self, way: Way, block: Sequence[Stmt], is_possible: IsPossible) -> list[Way]:
        ways, ended = [way], []
        for stmt in block:
            following = []
            for one in ways:
                following += self._statement(one, stmt, is_possible)
            ended += [w for w in following if w.has_returned or w.fault is not None]
            ways = [w for w in following if not (w.has_returned or w.fault is not None)]
            if not ways:
                break
        return [*ways, *ended]

    def _statement(self, way: Way, stmt: Stmt, is_possible: IsPossible) -> list[Way]:
        if isinstance(stmt, If):
            return self._if(way, stmt, is_possible)
        if isinstance(stmt, Call):
            arguments = tuple(self._value(way, a) for a in stmt.arguments)
            return self._called(way, stmt.function, arguments, stmt.local, is_possible)
        if isinstance(stmt, Run):
            return self._run(way, stmt.function, is_possible)
        if isinstance(stmt, Close):
            return []
        return [self._simple(way, stmt)]

    def _simple(self, way: Way, stmt: Stmt) -> Way:
        if isinstance(stmt, Assign):
            value = self._value(way, stmt.value)
            return replace(way, locals={**way.locals, stmt.local: value})
        if isinstance(stmt, Store):
            bits = self.program.cells[stmt.cell].bits
            if not bits:
                return way
            value = z3.simplify(z3.Extract(bits - 1, 0, number(self._value(way, stmt.value))))
            return replace(way, cells={**way.cells, stmt.cell: value})
        if isinstance(stmt, Post):
            return self._post(way, stmt)
        if isinstance(stmt, Cover):
            cover = z3.And(*way.conditions), stmt.row, self._value(way, stmt.state)
            return replace(way, covers=(*way.covers, cover))
        if isinstance(stmt, Choose):
            return self._choose(way, stmt)
        if isinstance(stmt, Return):
            return replace(way, has_returned=True)
        assert isinstance(stmt, Fail)
        return replace(way, fault=stmt.fault)

    def _if(self, way: Way, stmt: If, is_possible: IsPossible) -> list[Way]:
        condition = self._value(way, stmt.condition)
        depth = len(way.conditions)
        is_looked_at = not (
            self._is_plain_block(stmt.then) and self._is_plain_block(stmt.otherwise)
        )
        ends = []
        for test, block in ((condition, stmt.then), (negated(condition), stmt.otherwise)):
            taken = _under(way, test)
            if taken is None:
                continue
            if is_looked_at and taken is not way and not is_possible(taken.conditions):
                continue
            ends += self._block(taken, block, is_possible)
        return _joined(ends, depth)

    def _is_plain_block(self, block: tuple[Stmt, ...]) -> bool:
        return not any(
            isinstance(stmt, Post | Cover | Run)
            or (isinstance(stmt, Call) and stmt.function not in self._plain)
            for stmt in walk(block)
        )

    def _choose(self, way: Way, stmt: Choose) -> Way:
        """Any number below the count, which is at least 1."""
        if way.chosen >= CHOICES_MAX:
            return replace(way, fault=self.program.crowded)
        position = z3.BitVec(f"choice {len(self.choices)}", BITS)
        self.choices.append(position)
        is_one = z3.ULT(position, number(self._value(way, stmt.count)))
        return replace(
            way,
            conditions=(*way.conditions, is_one),
            locals={**way.locals, stmt.local: position},
            chosen=way.chosen + 1,
        )

    # Queues

    def _post(self, way: Way, stmt: Post) -> Way:
        place = QUEUES.index(stmt.queue)
        if way.posts[place] >= self.program.calls_max:
            return replace(way, fault=self.program.endless)
        posted = stmt.function, tuple(self._value(way, a) for a in stmt.arguments)
        queues, posts = list(way.queues), list(way.posts)
        queues[place] = (*queues[place], posted)
        posts[place] += 1
        return replace(way, queues=tuple(queues), posts=tuple(posts))

    def _run(self, way: Way, first: str, is_possible: IsPossible) -> list[Way]:
        depth, outer = len(way.conditions), way.locals
        ended = []
        waiting = self._called(way, first, (), None, is_possible)
        while waiting:
            one = waiting.pop()
            place = next((n for n, queue in enumerate(one.queues) if queue), None)
            if one.fault is not None or place is None:
                ended.append(replace(one, locals=outer))
                continue
            (name, arguments), *left = one.queues[place]
            queues = list(one.queues)
            queues[place] = tuple(left)
            begun = replace(one, queues=tuple(queues))
            waiting += self._called(begun, name, arguments, None, is_possible)
        return _joined(ended, depth)

    # Expressions

    def _value(self, way: Way, expr: Expr) -> Term:
        if isinstance(expr, int):
            return expr
        if isinstance(expr, Local):
            return way.locals.get(expr.name, 0)
        if isinstance(expr, Load):
            bits = self.program.cells[expr.cell].bits
            return z3.ZeroExt(BITS - bits, way.cells[expr.cell]) if bits else 0
        if isinstance(expr, Not):
            return negated(self._value(way, expr.operand))
        if isinstance(expr, Select):
            condition = truth(self._value(way, expr.condition))
            chosen, otherwise = (self._value(way, e) for e in (expr.chosen, expr.otherwise))
            return chosen_by(condition, chosen, otherwise)
        return operation(expr.operator, self._value(way, expr.left), self._value(way, expr.right))


def _always(_: tuple[Term, ...]) -> bool:
    return True


def _under(way: Way, condition: Term) -> Way | None:
    """The way where the condition holds; None if it never does."""
    condition = z3.simplify(truth(condition))
    if z3.is_true(condition):
        return way
    if z3.is_false(condition):
        return None
    return replace(way, conditions=(*way.conditions, condition))


def _joined(ways: list[Way], depth: int) -> list[Way]:
    """Join the ways of the same shape, whose conditions are the same up to `depth`."""
    groups: dict[tuple[object, ...], list[Way]] = {}
    for way in ways:
        groups.setdefault(way.shape(), []).append(way)
    return [_join(group, depth) for group in groups.values()]


def _join(group: list[Way], depth: int) -> Way:
    found, *others = group
    for other in others:
        first, second = z3.And(*found.conditions[depth:]), z3.And(*other.conditions[depth:])
        either = z3.simplify(z3.Or(first, second))
        begun = found.conditions[:depth]
        found = replace(
            found,
            conditions=begun if z3.is_true(either) else (*begun, either),
            cells=_chosen(first, found.cells, other.cells),
            locals=_chosen(first, found.locals, other.locals),
            posts=tuple(map(min, found.posts, other.posts)),
            chosen=min(found.chosen, other.chosen),
            covers=_added(found.covers, other.covers),
            queues=tuple(
                tuple(
                    (name, tuple(chosen_by(first, a, b) for a, b in zip(args, more, strict=True)))
                    for (name, args), (_, more) in zip(one, two, strict=True)
                )
                for one, two in zip(found.queues, other.queues, strict=True)
            ),
        )
    return found


def _added(one: tuple[Any, ...], other: tuple[Any, ...]) -> tuple[Any, ...]:
    """All of both, each once."""
    return tuple({id(part): part for part in (*one, *other)}.values())


def _chosen(condition: Term, one: dict[str, Term], other: dict[str, Term]) -> dict[str, Term]:
    """Each value of `one` where the condition holds, else of `other`; a local that only one of
    them has is not read where the other one came from.
    """
    if one is other:
        return one
    return {
        name: chosen_by(condition, one.get(name, other.get(name)), other.get(name, one.get(name)))
        for name in {**one, **other}
    }


def number(term: Term) -> Term:
    """As 64 bits."""
    if isinstance(term, int):
        return z3.BitVecVal(term, BITS)
    return z3.If(term, z3.BitVecVal(1, BITS), z3.BitVecVal(0, BITS)) if z3.is_bool(term) else term


def truth(term: Term) -> Term:
    """As a truth value."""
    if isinstance(term, int):
        return z3.BoolVal(bool(term))
    return term if z3.is_bool(term) else term != 0


def negated(term: Term) -> Term:
    """Logical not."""
    return int(not term) if isinstance(term, int) else z3.Not(truth(term))


def chosen_by(condition: Term, chosen: Term, otherwise: Term) -> Term:
    """`chosen` where the condition holds, else `otherwise`."""
    if chosen is otherwise or (
        not isinstance(chosen, int) and not isinstance(otherwise, int) and chosen.eq(otherwise)
    ):
        return chosen
    if isinstance(chosen, int) and isinstance(otherwise, int) and chosen == otherwise:
        return chosen
    are_terms = not isinstance(chosen, int) and not isinstance(otherwise, int)
    if are_terms and chosen.sort() == otherwise.sort():
        return z3.If(condition, chosen, otherwise)
    return z3.If(condition, number(chosen), number(otherwise))


COMPARED: dict[str, Callable[[Term, Term], Term]] = {
    "==": lambda left, right: left == right,
    "!=": lambda left, right: left != right,
    "<": lambda left, right: left < right,
    "<=": lambda left, right: left <= right,
    ">": lambda left, right: left > right,
    ">=": lambda left, right: left >= right,
}
COMPUTED: dict[str, Callable[[Term, Term], Term]] = {
    "+": lambda left, right: left + right,
    "-": lambda left, right: left - right,
    "*": lambda left, right: left * right,
    "&": lambda left, right: left & right,
    "|": lambda left, right: left | right,
    "^": lambda left, right: left ^ right,
    "<<": lambda left, right: left << right,
    ">>": lambda left, right: left >> right,
}


def operation(operator: str, left: Term, right: Term) -> Term:
    """`left operator right`, rounding down as Python does; comparisons are signed."""
    if operator in ("and", "or"):
        return (z3.And if operator == "and" else z3.Or)(truth(left), truth(right))
    one, other = number(left), number(right)
    if operator in COMPARED:
        return COMPARED[operator](one, other)
    if operator in COMPUTED:
        return COMPUTED[operator](one, other)
    rest = z3.SRem(one, other)
    is_apart = z3.And(rest != 0, (rest ^ other) < 0)
    if operator == "//":
        return z3.If(is_apart, one / other - 1, one / other)
    return z3.If(is_apart, rest + other, rest)
