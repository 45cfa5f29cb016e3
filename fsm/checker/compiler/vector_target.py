"""Functions that change nothing, evaluated for many packed states at once, with numpy."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final

import numpy as np
from epochgate.fsm.checker.compiler.ir import (
    Assign,
    Call,
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
)

Words = Sequence[Any]
"""An array for each word of a state, with an item for each state."""
NO_FAULT: Final = -1
FEW: Final = 4
"""A branch is run apart if it is for less than such a part of the states."""
OPERATORS: Final[dict[str, Callable[[Any, Any], Any]]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "//": operator.floordiv,
    "%": operator.mod,
    "<<": operator.lshift,
    ">>": operator.rshift,
    "&": operator.and_,
    "|": operator.or_,
    "^": operator.xor,
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


def satisfying(program: Program, words: Words, functions: Sequence[str]) -> tuple[Words, int]:
    """Return the words of those states in which the result of every function is not 0; and the
    fault that the first state reaches that fails, NO_FAULT if none does.
    """
    states, is_so = _States(program, words), np.full(len(words[0]), True)
    # What is computed for states in which it is not needed may divide by 0.
    with np.errstate(all="ignore"):
        for function in functions:
            is_so = is_so & truth(_Call(states, program.functions[function], is_so).result())
            is_so = is_so & (states.faults == NO_FAULT)
    failed = states.faults[states.faults != NO_FAULT]
    return [word[is_so] for word in words], int(failed[0]) if len(failed) else NO_FAULT


class _States:
    """Some states, and the first fault that was reached in each."""

    def __init__(self, program: Program, words: Words) -> None:
        self.program, self._words = program, words
        self._loaded: dict[str, Any] = {}
        self.faults = np.full(len(words[0]), NO_FAULT)

    def some(self, rows: Any) -> _States:
        """The states of these rows, with their faults."""
        found = _States(self.program, [word[rows] for word in self._words])
        found.faults = self.faults[rows]
        return found

    def loaded(self, name: str) -> Any:
        """The bits of a cell."""
        if name not in self._loaded:
            cell = self.program.cells[name]
            self._loaded[name] = self._words[cell.word] >> cell.shift & (1 << cell.bits) - 1
        return self._loaded[name]


class _Call:
    """One call of a function, in the states of a mask."""

    def __init__(self, states: _States, function: Function, mask: Any) -> None:
        self._states, self._function, self._going = states, function, mask
        self._locals: dict[str, Any] = {"result": 0}

    def give(self, arguments: Iterable[Any]) -> None:
        """Give the parameters their values."""
        self._locals.update(zip(self._function.parameters, arguments, strict=True))

    def result(self) -> Any:
        """Run the function, and return its result."""
        self._block(self._function.body, self._going)
        return self._value(self._function.result or 0)

    def _block(self, block: Sequence[Stmt], mask: Any) -> None:
        for stmt in block:
            mask = mask & self._going
            if not mask.any():
                return
            self._run(stmt, mask)

    def _branch(self, block: Sequence[Stmt], mask: Any) -> None:
        """Run a block; if it is for few of the states, apart from the others."""
        count = np.count_nonzero(mask)
        if not block or not count:
            return
        if FEW * count > len(mask):
            self._block(block, mask)
            return
        rows = np.flatnonzero(mask)
        apart = _Call(self._states.some(rows), self._function, self._going[rows])
        before = {n: v[rows] if np.ndim(v) else v for n, v in self._locals.items()}
        apart._locals = {**before}
        apart._block(block, apart._going)
        for name, value in apart._locals.items():
            if value is not before.get(name):
                values = np.array(np.broadcast_to(_number(self._locals.get(name, 0)), len(mask)))
                values[rows] = value
                self._locals[name] = values
        self._going = self._going.copy()
        self._going[rows] = apart._going
        self._states.faults[rows] = apart._states.faults

    def _run(self, stmt: Stmt, mask: Any) -> None:
        match stmt:
            case If(condition, then, otherwise):
                is_so = truth(self._value(condition))
                self._branch(then, mask & is_so)
                self._branch(otherwise, mask & ~is_so)
            case Assign(local, value):
                self._assign(local, self._value(value), mask)
            case Call(function, arguments, local):
                called = _Call(self._states, self._states.program.functions[function], mask)
                called.give(map(self._value, arguments))
                found = called.result()
                self._going = self._going & (self._states.faults == NO_FAULT)
                if local is not None:
                    self._assign(local, found, mask)
            case Return():
                self._going = self._going & ~mask
            case Fail(fault):
                self._states.faults[mask & (self._states.faults == NO_FAULT)] = fault
                self._going = self._going & ~mask
            case _:
                raise AssertionError(f"{stmt!r} changes the state")

    def _assign(self, local: str, value: Any, mask: Any) -> None:
        if not mask.all():
            value = np.where(mask, _number(value), _number(self._locals.get(local, 0)))
        self._locals[local] = value

    def _value(self, expr: Expr) -> Any:
        """An expression in each state; where the mask is not set it means nothing."""
        match expr:
            case int():
                return expr
            case Local(name):
                return self._locals.get(name, 0)
            case Load(cell):
                return self._states.loaded(cell)
            case Not(operand):
                return ~truth(self._value(operand))
            case Select(condition, chosen, otherwise):
                values = _number(self._value(chosen)), _number(self._value(otherwise))
                return np.where(truth(self._value(condition)), *values)
            case Op("and", left, right):
                return truth(self._value(left)) & truth(self._value(right))
            case Op("or", left, right):
                return truth(self._value(left)) | truth(self._value(right))
            case Op(name, left, right):
                return OPERATORS[name](_number(self._value(left)), _number(self._value(right)))
        raise AssertionError(f"{expr!r} is no expression")


def truth(value: Any) -> Any:
    """Return whether a value is not 0, of each state or of all."""
    return value if np.asarray(value).dtype.kind == "b" else np.not_equal(value, 0)


def _number(value: Any) -> Any:
    """A value with which can be reckoned: true is 1."""
    return np.asarray(value, np.int64)
