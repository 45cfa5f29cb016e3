"""Translates statements and expressions of one function to LLVM's instructions."""

from __future__ import annotations

from typing import Any

import llvmlite.ir as ir
from epochgate.fsm.checker.compiler.ir import (
    COMPARISONS,
    QUEUES,
    Assign,
    Call,
    Cell,
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
    Op,
    Post,
    Program,
    Run,
    Select,
    Stmt,
    Store,
    assigned,
)
from epochgate.fsm.choosing import CHOICES_MAX

I1, I8, I64 = (ir.IntType(bits) for bits in (1, 8, 64))
WORDS = I64.as_pointer()
BYTES = I8.as_pointer()
DRAIN, CHOOSE, ADVANCE = "drain the queues", "choose", "advance"
CLOSED = 1 << 62
"""In the place of a fault: the step cannot be taken in this way."""
TAPE_WORDS = 2 + 2 * CHOICES_MAX


def number(value: int) -> ir.Constant:
    """A 64-bit constant."""
    return ir.Constant(I64, value)


class Queues:
    """The queues of a step in the scratch memory of its functions: behind the fault.

    Each begins with the offsets of the oldest entry and of the next one to come, both 0 when a step
    begins; an entry is the number of the function and its arguments. No entry is used twice in a
    step, so a queue that is full tells of an endless step.
    """

    def __init__(self, program: Program) -> None:
        functions = [program.functions[name] for name in program.posted]
        self.numbers = {name: position for position, name in enumerate(program.posted)}
        self.entry = 1 + max((len(f.parameters) for f in functions), default=0)
        self.size = program.calls_max * self.entry
        self.endless = program.endless
        self.tape = 1 + (len(QUEUES) * (2 + self.size) if functions else 0)
        """The place of what a step chooses: how many choices it has made, how many are known, their
        positions, and how many there were to choose from.
        """
        self.crowded = program.crowded
        self.words = self.tape + (TAPE_WORDS if program.crowded >= 0 else 0)

    def start(self, queue: str) -> int:
        """The place of a queue's first word."""
        return 1 + QUEUES.index(queue) * (2 + self.size)


class Body:
    """One function: its arguments are the words of the state, its scratch memory (the fault, then
    the queues), the covered rows, and then its parameters.
    """

    def __init__(
        self,
        made: ir.Function,
        function: Function,
        cells: dict[str, Cell],
        compiled: dict[str, ir.Function],
        queues: Queues,
    ) -> None:
        self.made, self.cells, self.compiled = made, cells, compiled
        self.queues = queues
        self.function = function
        self.builder = ir.IRBuilder(made.append_basic_block("entry"))
        self.exit = made.append_basic_block("exit")
        self.slots: dict[str, ir.Value] = {}
        for name in dict.fromkeys([*function.parameters, *assigned(function.body), "result"]):
            self.slots[name] = self.builder.alloca(I64)
        self.builder.store(number(0), self.slots["result"])
        for name, argument in zip(function.parameters, made.args[3:], strict=True):
            self.builder.store(argument, self.slots[name])

    def build(self) -> None:
        """Translate the body."""
        b = self.builder
        self.block(self.function.body)
        b.branch(self.exit)
        b.position_at_end(self.exit)
        result = self.function.result
        b.ret(number(0) if result is None else self.integer(result))

    def block(self, block: tuple[Stmt, ...]) -> None:
        for stmt in block:
            self._statement(stmt)

    def _statement(self, stmt: Stmt) -> None:
        b = self.builder
        if isinstance(stmt, Assign):
            b.store(self.integer(stmt.value), self.slots[stmt.local])
        elif isinstance(stmt, Store):
            self._store(stmt)
        elif isinstance(stmt, If):
            self._if(self.truth(stmt.condition), stmt.then, stmt.otherwise)
        elif isinstance(stmt, Call):
            self._call(self.compiled[stmt.function], stmt.arguments, stmt.local)
        elif isinstance(stmt, Post):
            self._post(stmt)
        elif isinstance(stmt, Run):
            self._run(stmt)
        elif isinstance(stmt, Cover):
            place = b.add(number(stmt.row), self.integer(stmt.state))
            b.store(ir.Constant(I8, 1), b.gep(self.made.args[2], [place]))
        elif isinstance(stmt, Choose):
            self._choose(stmt)
        elif isinstance(stmt, Close):
            self._leave(CLOSED)
        else:
            self._leave(stmt.fault if isinstance(stmt, Fail) else None)

    def _leave(self, fault: int | None) -> None:
        b = self.builder
        if fault is not None:
            b.store(number(fault), self.made.args[1])
        b.branch(self.exit)
        # What follows in the same block is never reached, but has to stand somewhere.
        b.position_at_end(b.append_basic_block())

    def _run(self, stmt: Run) -> None:
        for queue in QUEUES:
            for offset in (0, 1):
                place = self._scratch(self.queues.start(queue) + offset)
                self.builder.store(number(0), place)
        self._call(self.compiled[stmt.function], ())
        self._call(self.compiled[DRAIN], ())

    def _call(
        self, function: ir.Function, arguments: tuple[Expr, ...], local: str | None = None
    ) -> None:
        """Call a function; a fault is seen after it, which costs nothing where it is in line."""
        b = self.builder
        result = b.call(function, [*self.made.args[:3], *map(self.integer, arguments)])
        if local is not None:
            b.store(result, self.slots[local])
        going_on = b.append_basic_block()
        failed = b.icmp_signed(">=", b.load(self.made.args[1]), number(0))
        b.cbranch(failed, self.exit, going_on)
        b.position_at_end(going_on)

    def _choose(self, stmt: Choose) -> None:
        b = self.builder
        tape = self._scratch(self.queues.tape)
        position = b.call(self.compiled[CHOOSE], [tape, self.integer(stmt.count)])
        is_full = b.icmp_signed("<", position, number(0))
        self._if(is_full, (Fail(self.queues.crowded),), ())
        b.store(position, self.slots[stmt.local])

    def _scratch(self, place: Any) -> ir.Value:
        place = number(place) if isinstance(place, int) else place
        return self.builder.gep(self.made.args[1], [place])

    def _post(self, stmt: Post) -> None:
        b, queues = self.builder, self.queues
        start = queues.start(stmt.queue)
        tail = self._scratch(start + 1)
        offset = b.load(tail)
        is_full = b.icmp_signed(">=", offset, number(queues.size))
        self._if(is_full, (Fail(queues.endless),), ())
        entry = [number(queues.numbers[stmt.function]), *map(self.integer, stmt.arguments)]
        for position, value in enumerate(entry):
            b.store(value, self._scratch(b.add(offset, number(start + 2 + position))))
        b.store(b.add(offset, number(queues.entry)), tail)

    def _if(self, condition: Any, then: tuple[Stmt, ...], otherwise: tuple[Stmt, ...]) -> None:
        b = self.builder
        chosen, after = b.append_basic_block(), b.append_basic_block()
        other = b.append_basic_block() if otherwise else after
        b.cbranch(condition, chosen, other)
        b.position_at_end(chosen)
        self.block(then)
        b.branch(after)
        if otherwise:
            b.position_at_end(other)
            self.block(otherwise)
            b.branch(after)
        b.position_at_end(after)

    def _store(self, stmt: Store) -> None:
        b = self.builder
        cell = self.cells[stmt.cell]
        if cell.bits == 0:
            return
        keep = ~(((1 << cell.bits) - 1) << cell.shift) & ((1 << 63) - 1)
        place = b.gep(self.made.args[0], [number(cell.word)])
        value = b.shl(self.integer(stmt.value), number(cell.shift))
        b.store(b.or_(b.and_(b.load(place), number(keep)), value), place)

    def _load(self, name: str) -> ir.Value:
        b = self.builder
        cell = self.cells[name]
        if cell.bits == 0:
            return number(0)
        word = b.load(b.gep(self.made.args[0], [number(cell.word)]))
        return b.and_(b.lshr(word, number(cell.shift)), number((1 << cell.bits) - 1))

    def integer(self, expr: Expr) -> ir.Value:
        value = self._value(expr)
        return self.builder.zext(value, I64) if value.type == I1 else value

    def truth(self, expr: Expr) -> ir.Value:
        value = self._value(expr)
        if value.type == I1:
            return value
        return self.builder.icmp_signed("!=", value, number(0))

    def _value(self, expr: Expr) -> ir.Value:
        b = self.builder
        if isinstance(expr, int):
            return number(expr)
        if isinstance(expr, Local):
            return b.load(self.slots[expr.name])
        if isinstance(expr, Load):
            return self._load(expr.cell)
        if isinstance(expr, Not):
            return b.not_(self.truth(expr.operand))
        if isinstance(expr, Select):
            condition = self.truth(expr.condition)
            return b.select(condition, self.integer(expr.chosen), self.integer(expr.otherwise))
        return self._operation(expr)

    def _operation(self, expr: Op) -> ir.Value:
        b = self.builder
        if expr.operator in ("and", "or"):
            left, right = self.truth(expr.left), self.truth(expr.right)
            return (b.and_ if expr.operator == "and" else b.or_)(left, right)
        left, right = self.integer(expr.left), self.integer(expr.right)
        if expr.operator in COMPARISONS:
            return b.icmp_signed(expr.operator, left, right)
        if expr.operator in ("//", "%"):
            return self._division(expr.operator, left, right)
        return {
            "+": b.add,
            "-": b.sub,
            "*": b.mul,
            "&": b.and_,
            "|": b.or_,
            "^": b.xor,
            "<<": b.shl,
            ">>": b.ashr,
        }[expr.operator](left, right)

    def _division(self, operator: str, left: Any, right: Any) -> ir.Value:
        """Rounds down as Python does; the divisor is not 0."""
        b = self.builder
        quotient, rest = b.sdiv(left, right), b.srem(left, right)
        if isinstance(right, ir.Constant) and right.constant > 0:
            is_below = b.icmp_signed("<", rest, number(0))
        else:
            is_apart = b.icmp_signed("<", b.xor(rest, right), number(0))
            is_below = b.and_(b.icmp_signed("!=", rest, number(0)), is_apart)
        if operator == "//":
            return b.sub(quotient, b.zext(is_below, I64))
        return b.select(is_below, b.add(rest, right), rest)


def build_drain(made: ir.Function, queues: Queues, compiled: dict[str, ir.Function]) -> None:
    """The function that runs what waits in the queues, until nothing does or a fault is found."""
    state, scratch, covered = made.args
    b = ir.IRBuilder(made.append_basic_block("entry"))
    taken = b.alloca(I64)
    loop, leave, run = (made.append_basic_block() for _ in range(3))
    b.branch(loop)
    b.position_at_end(loop)
    for queue in QUEUES:
        start = queues.start(queue)
        head, tail = (b.gep(scratch, [number(start + offset)]) for offset in (0, 1))
        offset, end = b.load(head), b.load(tail)
        take, pass_over = made.append_basic_block(), made.append_basic_block()
        b.cbranch(b.icmp_signed("<", offset, end), take, pass_over)
        b.position_at_end(take)
        b.store(b.add(offset, number(queues.entry)), head)
        b.store(b.add(offset, number(start + 2)), taken)
        b.branch(run)
        b.position_at_end(pass_over)
    b.branch(leave)
    b.position_at_end(run)
    entry = b.load(taken)
    after = made.append_basic_block()
    choice = b.switch(b.load(b.gep(scratch, [entry])), leave)
    for name, position in queues.numbers.items():
        case = made.append_basic_block()
        choice.add_case(number(position), case)
        b.position_at_end(case)
        function = compiled[name]
        arguments = [
            b.load(b.gep(scratch, [b.add(entry, number(1 + k))]))
            for k in range(len(function.args) - 3)
        ]
        b.call(function, [state, scratch, covered, *arguments])
        b.branch(after)
    b.position_at_end(after)
    b.cbranch(b.icmp_signed(">=", b.load(scratch), number(0)), leave, loop)
    b.position_at_end(leave)
    b.ret(number(0))
