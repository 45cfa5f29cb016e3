"""Lowers expressions and the paths in them.

`and`, `or` and conditional expressions evaluate what Python would evaluate, and no more: where an
operand needs statements of its own, they run under the condition that it is reached.
"""

from __future__ import annotations

import ast
from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import partial
from typing import Any

from epochgate.fsm.closed import ClosedSystem
from epochgate.fsm.compiler.ir import (
    Assign,
    Expr,
    Fail,
    Fault,
    If,
    Load,
    Local,
    Not,
    Op,
    Select,
    Stmt,
    fold,
    negate,
    select,
)
from epochgate.fsm.compiler.layout import FifoCells, Layout
from epochgate.fsm.compiler.scope import (
    OPERATORS,
    SYSTEM,
    AllOf,
    Chosen,
    Field,
    Instance,
    Place,
    Ranges,
    Scope,
    StateName,
    StateOf,
)
from epochgate.fsm.machine import Machine


class Expressions(ABC):
    """The part of the lowering that deals with values; calls are lowered by subclasses."""

    def __init__(self, system: ClosedSystem, layout: Layout) -> None:
        self.system, self.layout = system, layout
        self.ranges = Ranges(layout.cells)
        self.faults: dict[Fault, int] = {}
        self._fresh = 0

    @abstractmethod
    def call(self, scope: Scope, node: ast.Call) -> Expr:
        """Lower a call; 0 when it gives nothing."""

    def machine(self, instance: Instance) -> type[Machine]:
        return self.system.MACHINES[instance.name]

    def local(self, prefix: str, value: Expr, block: list[Stmt]) -> Local:
        """Keep a value in a new local."""
        self._fresh += 1
        name = f"{prefix}_{self._fresh}"
        self.assign_local(name, value, block)
        return Local(name)

    def assign_local(self, name: str, value: Expr, block: list[Stmt]) -> None:
        self.ranges.assign(name, value)
        block.append(Assign(name, value))

    def fail(self, scope: Scope, kind: str, message: str, node: ast.AST) -> Fail:
        """The statement that reports a fault at a place of the source."""
        fault = Fault(kind, message, scope.method.__code__.co_filename, getattr(node, "lineno", 0))
        return Fail(self.faults.setdefault(fault, len(self.faults)))

    # Values

    def values(self, scope: Scope, nodes: list[ast.expr]) -> list[Expr]:
        """Several values in their order: what a later one does changes no earlier one."""
        values: list[Expr] = []
        for node in nodes:
            mark = len(scope.block)
            value = self.expression(scope, node)
            if len(scope.block) > mark:
                kept: list[Stmt] = []
                values = [
                    v if isinstance(v, int | Local) else self.local("k", v, kept) for v in values
                ]
                scope.block[mark:mark] = kept
            values.append(value)
        return values

    def expression(self, scope: Scope, node: ast.expr) -> Expr:
        if isinstance(node, ast.Constant):
            if isinstance(node.value, int):
                return int(node.value)
            raise scope.refusal(node, "use ints, bools and names of states")
        if isinstance(node, ast.BinOp):
            return self._arithmetic(scope, node)
        if isinstance(node, ast.BoolOp):
            return self._logic(scope, node)
        if isinstance(node, ast.UnaryOp):
            operand = self.expression(scope, node.operand)
            return negate(operand) if isinstance(node.op, ast.Not) else fold("-", 0, operand)
        if isinstance(node, ast.Compare):
            return self._compare(scope, node)
        if isinstance(node, ast.IfExp):
            return self._choice(scope, node)
        if isinstance(node, ast.Call):
            return self.call(scope, node)
        return self.read(scope, self.place(scope, node), node)

    def _arithmetic(self, scope: Scope, node: ast.BinOp) -> Expr:
        left, right = self.values(scope, [node.left, node.right])
        return self.operation(scope, node, node.op, left, right)

    def operation(
        self, scope: Scope, node: ast.AST, operator: ast.AST, left: Expr, right: Expr
    ) -> Expr:
        symbol = OPERATORS.get(type(operator))
        if symbol is None:
            raise scope.refusal(node, "this operator is outside the checked subset")
        if symbol in ("//", "%") and not (isinstance(right, int) and right > 0):
            raise scope.refusal(node, "divide by constants above 0 only")
        if symbol in ("<<", ">>") and not self.ranges.is_within(right, 0, 62):
            raise scope.refusal(node, "shift by what is known to be from 0 to 62")
        return fold(symbol, left, right)

    def _logic(self, scope: Scope, node: ast.BoolOp) -> Expr:
        operator = "and" if isinstance(node.op, ast.And) else "or"
        value = self.expression(scope, node.values[0])
        for part in node.values[1:]:
            value = self.lazily(scope, operator, value, partial(self.expression, scope, part))
        return value

    def lazily(self, scope: Scope, operator: str, left: Expr, right: Callable[[], Expr]) -> Expr:
        """`left and right`, or `left or right`, with the right side evaluated only if it counts."""
        is_and = operator == "and"
        if isinstance(left, int):
            return right() if bool(left) == is_and else int(not is_and)
        with scope.captured() as inner:
            value = right()
        if not inner:
            return fold(operator, left, value)
        joined = self.local("l", left, scope.block)
        self.assign_local(joined.name, value, inner)
        scope.block.append(If(joined if is_and else negate(joined), tuple(inner)))
        return joined

    def _choice(self, scope: Scope, node: ast.IfExp) -> Expr:
        condition = self.expression(scope, node.test)
        if isinstance(condition, int):
            return self.expression(scope, node.body if condition else node.orelse)
        with scope.captured() as then:
            chosen = self.expression(scope, node.body)
        with scope.captured() as other:
            otherwise = self.expression(scope, node.orelse)
        if not then and not other:
            return select(condition, chosen, otherwise)
        result = self.local("e", 0, scope.block)
        self.assign_local(result.name, chosen, then)
        self.assign_local(result.name, otherwise, other)
        scope.block.append(If(condition, tuple(then), tuple(other)))
        return result

    def _compare(self, scope: Scope, node: ast.Compare) -> Expr:
        nodes = [node.left, *node.comparators]
        sides = [self._side(scope, part) for part in nodes]
        if any(_is_state(side) for side in sides):
            return self._compare_states(scope, node, sides)
        operands = self.values(scope, nodes)
        value: Expr = 1
        for operator, left, right in zip(node.ops, operands, operands[1:], strict=False):
            value = fold("and", value, self.operation(scope, node, operator, left, right))
        return value

    def _side(self, scope: Scope, node: ast.expr) -> Place | None:
        """What may be a state or the name of one; None for other operands."""
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            return StateName(node.value)
        is_path = isinstance(node, ast.Name) or (
            isinstance(node, ast.Attribute) and node.attr == "state"
        )
        return self.place(scope, node) if is_path else None

    def _compare_states(self, scope: Scope, node: ast.Compare, sides: list[Place | None]) -> Expr:
        states = [s for s in sides if s is not None and not isinstance(s, StateName)]
        is_equality = len(node.ops) == 1 and isinstance(node.ops[0], ast.Eq | ast.NotEq)
        if None in sides or not is_equality or not states:
            raise scope.refusal(
                node, "compare the state of a machine with the name of a state, by `==` or `!=`"
            )
        numbers = [self._state_number(scope, side, states[0], node) for side in sides if side]
        return fold(OPERATORS[type(node.ops[0])], numbers[0], numbers[1])

    def _state_number(self, scope: Scope, side: Place, other: Place, node: ast.AST) -> Expr:
        if not isinstance(side, StateName):
            return self.read(scope, side, node)
        while isinstance(other, Chosen):
            other = other.options[0]
        if not isinstance(other, StateOf):
            raise scope.refusal(node, "compare the name of a state with the state of a machine")
        states = self.machine(other.instance).STATES
        if side.name not in states:
            raise scope.refusal(node, f"{side.name!r} is none of {', '.join(states)}")
        return states.index(side.name)

    # Places

    def place(self, scope: Scope, node: ast.expr) -> Place:
        if isinstance(node, ast.Name):
            return self._name(scope, node)
        if isinstance(node, ast.Attribute):
            return self._attribute(scope, self.place(scope, node.value), node)
        if isinstance(node, ast.Subscript):
            base = self.place(scope, node.value)
            parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
            return self._item(scope, base, tuple(self.values(scope, [*parts])), node)
        return self.expression(scope, node)

    def _name(self, scope: Scope, node: ast.Name) -> Place:
        if node.id == "self":
            return scope.instance
        if node.id in scope.names:
            return scope.names[node.id]
        found = scope.method.__globals__.get(node.id)
        if isinstance(found, str):
            return StateName(found)
        if isinstance(found, int):
            return int(found)
        raise scope.refusal(node, "it is no field, no local, and no constant of the module")

    def _attribute(self, scope: Scope, base: Place, node: ast.Attribute) -> Place:
        if isinstance(base, Chosen):
            parts = tuple(self._attribute(scope, option, node) for option in base.options)
            return Chosen(base.index, parts)
        if not isinstance(base, Instance):
            raise scope.refusal(node, "it has no attributes; is a subscript missing?")
        return self._of_system(scope, node) if base == SYSTEM else self._of(scope, base, node)

    def _of_system(self, scope: Scope, node: ast.Attribute) -> Place:
        machine = self.system.MACHINES.get(node.attr)
        if machine is not None:
            return AllOf(node.attr) if machine.INDEX else Instance(node.attr, ())
        if node.attr in self.system.constants:
            return self.system.constants[node.attr]
        raise scope.refusal(node, "it is no machine and no constant of the system")

    def _of(self, scope: Scope, base: Instance, node: ast.Attribute) -> Place:
        name, machine = node.attr, self.machine(base)
        if name == "system":
            return SYSTEM
        if name in machine.INDEX:
            return base.index[machine.INDEX.index(name)]
        if name == "state":
            return StateOf(base)
        if name in machine.FIELDS:
            return _as_place(self.layout.places[base.name, base.index][name])
        if name not in machine.PORTS:
            raise scope.refusal(node, f"{base} has no such field, index or port")
        wire = f"{base.name}.{name}"
        target = self.system.WIRING.get(wire)
        if target is None:
            raise scope.refusal(
                node, f"nobody listens to the port {name!r}: add {wire!r} to WIRING of the system"
            )
        return Instance(target, base.index)

    def _item(
        self, scope: Scope, base: Place, index: tuple[Expr, ...], node: ast.Subscript
    ) -> Place:
        if isinstance(base, Chosen):
            options = tuple(self._item(scope, option, index, node) for option in base.options)
            return Chosen(base.index, options)
        sizes = self._sizes(scope, base, node)
        if len(sizes) != len(index):
            raise scope.refusal(node, f"it is over {len(sizes)} index sets")
        for position, part in enumerate(index):
            if isinstance(part, int):
                if not 0 <= part < sizes[position]:
                    raise scope.refusal(node, f"the index {part} is not below {sizes[position]}")
                continue
            known = self._checked_index(scope, part, sizes[position], node)
            options = tuple(
                self._item(scope, base, (*index[:position], i, *index[position + 1 :]), node)
                for i in range(sizes[position])
            )
            return Chosen(known, options)
        if isinstance(base, AllOf):
            return Instance(base.machine, tuple(part for part in index if isinstance(part, int)))
        assert isinstance(base, tuple)
        assert isinstance(index[0], int)
        return base[index[0]]

    def _sizes(self, scope: Scope, base: Place, node: ast.Subscript) -> list[int]:
        if isinstance(base, tuple):
            return [len(base)]
        if isinstance(base, AllOf):
            sets = self.system.MACHINES[base.machine].INDEX
            return [self.system.constants[self.system.INDEX_SETS[name]] for name in sets]
        raise scope.refusal(node, "only arrays and machines have items")

    def _checked_index(self, scope: Scope, index: Expr, size: int, node: ast.Subscript) -> Expr:
        if self.ranges.is_within(index, 0, size - 1):
            return index
        kept = self.local("n", index, scope.block)
        outside = fold("or", fold("<", kept, 0), fold(">=", kept, size))
        message = f"{scope.instance}: `{ast.unparse(node)}` has an index outside 0 to {size - 1}"
        scope.block.append(If(outside, (self.fail(scope, "index", message, node),)))
        self.ranges.narrow(kept.name, (0, size - 1))
        return kept

    def read(self, scope: Scope, place: Place, node: ast.AST) -> Expr:
        """The value of a place."""
        if isinstance(place, int | Local | Load | Op | Not | Select):
            return place
        if isinstance(place, Field):
            return Load(place.cell) if self.layout.cells[place.cell].maximum > 0 else 0
        if isinstance(place, StateOf):
            places = self.layout.places[place.instance.name, place.instance.index]
            return Load(places["state"]) if "state" in places else 0
        if isinstance(place, Chosen):
            value = self.read(scope, place.options[-1], node)
            for number, option in reversed([*enumerate(place.options[:-1])]):
                this = self.read(scope, option, node)
                value = select(fold("==", place.index, number), this, value)
            return value
        raise scope.refusal(node, "it has no value of its own")

    def field(self, scope: Scope, place: Place, node: ast.AST) -> FifoCells:
        """A channel; refused for anything else."""
        if not isinstance(place, FifoCells):
            raise scope.refusal(node, "this is no channel")
        return place


def _as_place(found: Any) -> Place:
    if isinstance(found, str):
        return Field(found)
    if isinstance(found, list):
        return tuple(_as_place(item) for item in found)
    assert isinstance(found, FifoCells)
    return found


def _is_state(place: Place | None) -> bool:
    while isinstance(place, Chosen):
        place = place.options[0]
    return isinstance(place, StateOf | StateName)
