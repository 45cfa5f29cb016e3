"""The NumPy target: a program's functions over columns of states, every branch under a mask.

A function gets the columns `t` of the packed words, the mask `k` of the states that it is for, the
faults `f` (a number, or -1) and the set `c` of covered rows. States that have left a function, by
its end or by a fault, are no longer in `live`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from epochgate.fsm.compiler.ir import (
    COMPARISONS,
    Assign,
    Call,
    Cover,
    Expr,
    Fail,
    Function,
    If,
    Load,
    Local,
    Not,
    Op,
    Program,
    Return,
    Select,
    Stmt,
    Store,
    assigned,
)

Columns = list[Any]


class NumpyTarget:
    """Steps and properties of many packed states at once."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.covered: set[int] = set()
        self._names = {f: f"f{n}" for n, f in enumerate(program.functions)}
        names: dict[str, Any] = {"np": np}
        lines = [line for f in program.functions.values() for line in self._function(f)]
        # The text is made by the compiler from names it numbered, not by a user.
        exec(compile("\n".join(lines), "<compiled system>", "exec"), names)  # noqa: S102
        self._functions: dict[str, Callable[..., Any]] = {
            function: names[name] for function, name in self._names.items()
        }

    def enabled(self, columns: Columns, number: int) -> tuple[Any, Any]:
        """Where a step is possible, and the faults of its guards."""
        return self._evaluate(self.program.steps[number].enabled, columns, len(columns[0]))

    def holds(self, name: str, columns: Columns) -> tuple[Any, Any]:
        """Where a property's method holds, and its faults."""
        return self._evaluate(self.program.properties[name], columns, len(columns[0]))

    def _evaluate(self, function: str, columns: Columns, count: int) -> tuple[Any, Any]:
        everywhere, faults = np.ones(count, bool), np.full(count, -1)
        value = self._functions[function]([*columns], everywhere, faults, self.covered)
        return np.broadcast_to(np.asarray(value) != 0, count), faults

    def take(self, columns: Columns, number: int) -> tuple[Columns, Any]:
        """The columns after a step that is possible everywhere, and the faults."""
        count = len(columns[0])
        after, faults = [*columns], np.full(count, -1)
        function = self._functions[self.program.steps[number].function]
        try:
            function(after, np.ones(count, bool), faults, self.covered)
        except RecursionError:
            if count > 1:
                return self._one_by_one(columns, number)
            return [*columns], np.full(1, len(self.program.faults) - 1)
        return after, faults

    def _one_by_one(self, columns: Columns, number: int) -> tuple[Columns, Any]:
        """As `take`, when some of the states make machines trigger each other without end."""
        count = len(columns[0])
        parts = [self.take([c[i : i + 1] for c in columns], number) for i in range(count)]
        words = zip(*[after for after, _ in parts], strict=True)
        return [np.concatenate(w) for w in words], np.concatenate([faults for _, faults in parts])

    def _function(self, function: Function) -> list[str]:
        parameters = "".join(f", v_{name}" for name in function.parameters)
        lines = [f"def {self._names[function.name]}(t, k0, f, c{parameters}):"]
        names = {*assigned(function.body), "result"} - {*function.parameters}
        lines += [f"    v_{name} = 0" for name in sorted(names)]
        lines.append("    live = k0")
        lines += self._block(function.body, 1, 0)
        result = 0 if function.result is None else function.result
        lines.append(f"    return {self._integer(result)}")
        return lines

    def _block(self, block: tuple[Stmt, ...], indent: int, mask: int) -> list[str]:
        pad, lines = "    " * indent, []
        for stmt in block:
            lines += [pad + line for line in self._statement(stmt, mask)]
            if isinstance(stmt, If):
                for branch, test in ((stmt.then, "q"), (stmt.otherwise, "np.logical_not(q)")):
                    if branch:
                        lines.append(f"{pad}k{mask + 1} = k{mask} & live & {test}")
                        lines.append(f"{pad}q{mask + 1} = q")
                        lines.append(f"{pad}if k{mask + 1}.any():")
                        lines += self._block(branch, indent + 1, mask + 1)
                        lines.append(f"{pad}q = q{mask + 1}")
            if not isinstance(stmt, Assign | Store | Cover):
                lines.append(f"{pad}k{mask} = k{mask} & live")
        return lines

    def _statement(self, stmt: Stmt, mask: int) -> list[str]:
        k = f"k{mask}"
        if isinstance(stmt, Assign):
            name = f"v_{stmt.local}"
            return [f"{name} = np.where({k}, {self._integer(stmt.value)}, {name})"]
        if isinstance(stmt, Store):
            return self._store(stmt, k)
        if isinstance(stmt, If):
            return [f"q = {self._truth(stmt.condition)}"]
        if isinstance(stmt, Call):
            return self._call(stmt, k)
        if isinstance(stmt, Cover):
            return [f"if {k}.any(): c.add({stmt.row})"]
        leave = [f"live = live & ~{k}"]
        if isinstance(stmt, Fail):
            return [f"np.copyto(f, {stmt.fault}, where={k} & (f < 0))", *leave]
        assert isinstance(stmt, Return)
        return leave

    def _call(self, stmt: Call, k: str) -> list[str]:
        arguments = "".join(f", {self._integer(a)}" for a in stmt.arguments)
        call = f"{self._names[stmt.function]}(t, {k}, f, c{arguments})"
        if stmt.local is not None:
            name = f"v_{stmt.local}"
            call = f"{name} = np.where({k}, {call}, {name})"
        return [f"if {k}.any(): {call}", "live = live & (f < 0)"]

    def _store(self, stmt: Store, k: str) -> list[str]:
        cell = self.program.cells[stmt.cell]
        if cell.bits == 0:
            return []
        keep = ~(((1 << cell.bits) - 1) << cell.shift) & ((1 << 63) - 1)
        word, value = f"t[{cell.word}]", self._integer(stmt.value)
        return [f"{word} = np.where({k}, {word} & {keep} | ({value}) << {cell.shift}, {word})"]

    def _truth(self, expr: Expr) -> str:
        return self._expr(expr) if _is_truth(expr) else f"({self._expr(expr)} != 0)"

    def _integer(self, expr: Expr) -> str:
        return f"({self._expr(expr)} * 1)" if _is_truth(expr) else self._expr(expr)

    def _expr(self, expr: Expr) -> str:
        if isinstance(expr, int):
            return str(int(expr))
        if isinstance(expr, Local):
            return f"v_{expr.name}"
        if isinstance(expr, Load):
            cell = self.program.cells[expr.cell]
            ones = (1 << cell.bits) - 1
            return f"(t[{cell.word}] >> {cell.shift} & {ones})" if cell.bits else "0"
        if isinstance(expr, Not):
            return f"np.logical_not({self._truth(expr.operand)})"
        if isinstance(expr, Select):
            chosen, otherwise = self._integer(expr.chosen), self._integer(expr.otherwise)
            return f"np.where({self._truth(expr.condition)}, {chosen}, {otherwise})"
        if expr.operator in ("and", "or"):
            symbol = "&" if expr.operator == "and" else "|"
            return f"({self._truth(expr.left)} {symbol} {self._truth(expr.right)})"
        return f"({self._integer(expr.left)} {expr.operator} {self._integer(expr.right)})"


def _is_truth(expr: Expr) -> bool:
    """Whether the text of an expression gives bools."""
    if isinstance(expr, Op):
        return expr.operator in COMPARISONS or expr.operator in ("and", "or")
    return isinstance(expr, Not)
