"""Translates statements and expressions of one function to LLVM's instructions."""

from __future__ import annotations

from typing import Any

import llvmlite.ir as ir
from epochgate.fsm.compiler.ir import (
    COMPARISONS,
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
    Select,
    Stmt,
    Store,
    assigned,
)

I1, I8, I64 = (ir.IntType(bits) for bits in (1, 8, 64))
WORDS = I64.as_pointer()
BYTES = I8.as_pointer()
DEPTH_MAX = 200
"""How often a function may be running at a time before its step counts as one without end."""


def number(value: int) -> ir.Constant:
    """A 64-bit constant."""
    return ir.Constant(I64, value)


class Body:
    """One function: its arguments are the words of the state, the fault and the depth of calls, the
    covered rows, and then its parameters.
    """

    def __init__(
        self,
        made: ir.Function,
        function: Function,
        cells: dict[str, Cell],
        compiled: dict[str, ir.Function],
        checked_calls: set[str],
    ) -> None:
        self.made, self.cells, self.compiled = made, cells, compiled
        self.checked_calls = checked_calls
        self.function = function
        self.builder = ir.IRBuilder(made.append_basic_block("entry"))
        self.exit = made.append_basic_block("exit")
        self.slots: dict[str, ir.Value] = {}
        for name in dict.fromkeys([*function.parameters, *assigned(function.body), "result"]):
            self.slots[name] = self.builder.alloca(I64)
        self.builder.store(number(0), self.slots["result"])
        for name, argument in zip(function.parameters, made.args[3:], strict=True):
            self.builder.store(argument, self.slots[name])

    def build(self, fault_when_deep: int | None) -> None:
        """Translate the body; a function that may call itself is given the fault for that."""
        b = self.builder
        if fault_when_deep is not None:
            self._enter(fault_when_deep)
        self.block(self.function.body)
        b.branch(self.exit)
        b.position_at_end(self.exit)
        if fault_when_deep is not None:
            depth = self._depth()
            b.store(b.sub(b.load(depth), number(1)), depth)
        result = self.function.result
        b.ret(number(0) if result is None else self.integer(result))

    def _depth(self) -> ir.Value:
        return self.builder.gep(self.made.args[1], [number(1)])

    def _enter(self, fault: int) -> None:
        b = self.builder
        depth = self._depth()
        deeper = b.add(b.load(depth), number(1))
        b.store(deeper, depth)
        self._if(b.icmp_signed(">", deeper, number(DEPTH_MAX)), (Fail(fault),), ())

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
            self._call(stmt)
        elif isinstance(stmt, Cover):
            b.store(ir.Constant(I8, 1), b.gep(self.made.args[2], [number(stmt.row)]))
        else:
            if isinstance(stmt, Fail):
                b.store(number(stmt.fault), self.made.args[1])
            b.branch(self.exit)
            # What follows in the same block is never reached, but has to stand somewhere.
            b.position_at_end(b.append_basic_block())

    def _call(self, stmt: Call) -> None:
        b = self.builder
        arguments = [*self.made.args[:3], *[self.integer(a) for a in stmt.arguments]]
        result = b.call(self.compiled[stmt.function], arguments)
        if stmt.local is not None:
            b.store(result, self.slots[stmt.local])
        if stmt.function in self.checked_calls:
            going_on = b.append_basic_block()
            failed = b.icmp_signed(">=", b.load(self.made.args[1]), number(0))
            b.cbranch(failed, self.exit, going_on)
            b.position_at_end(going_on)

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
        """Rounds down as Python does; the divisor is above 0."""
        b = self.builder
        quotient, rest = b.sdiv(left, right), b.srem(left, right)
        is_below = b.icmp_signed("<", rest, number(0))
        if operator == "//":
            return b.sub(quotient, b.zext(is_below, I64))
        return b.select(is_below, b.add(rest, right), rest)
