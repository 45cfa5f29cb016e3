"""The expressions of a method under check: what kind of value each is, and what it calls.

Conditions are bools and not numbers, because `and` and `or` of numbers mean something else in
Python than a reader expects. An opaque value may only be handed on.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from epochgate.fsm.constructs import CALLS, named
from epochgate.fsm.errors import DeclarationError
from epochgate.fsm.places import (
    KINDS,
    Anything,
    ArrayOf,
    Callee,
    Channel,
    Kind,
    MachineArray,
    NoSuchName,
    OneMachine,
    OutputPort,
    Place,
    Value,
    WholeSystem,
    in_channel,
    in_machine,
    in_port,
    in_system,
)
from epochgate.fsm.source import definition

if TYPE_CHECKING:
    from epochgate.fsm.machine import Machine
    from epochgate.fsm.system import System

NUMBERS = (Kind.INT, Kind.BOOL, Kind.UNKNOWN)
OPERATORS = (
    ast.Add,
    ast.Sub,
    ast.Mult,
    ast.FloorDiv,
    ast.Mod,
    ast.BitAnd,
    ast.BitOr,
    ast.BitXor,
    ast.LShift,
    ast.RShift,
)
ORDERS = (ast.Lt, ast.LtE, ast.Gt, ast.GtE)
EQUALITIES = (ast.Eq, ast.NotEq)
CONSTANT_KINDS: dict[type, Kind] = {bool: Kind.BOOL, int: Kind.INT, str: Kind.STATE}


class Expressions:
    """The expressions of one method; `calls` and `effects` grow as they are checked."""

    def __init__(self, machine: type[Machine], name: str, system: type[System] | None) -> None:
        self.machine, self.name, self._system = machine, name, system
        self._function: Any = getattr(machine, name)
        self.node = definition(self._function)
        self.calls: list[tuple[ast.AST, Callee]] = []
        self.effects: list[tuple[ast.AST, str]] = []
        self._locals: dict[str, Kind] = {}
        annotations = self._function.__annotations__
        self.gives = KINDS.get(annotations.get("return", ""), Kind.UNKNOWN)

    def fault(self, node: ast.AST, text: str) -> DeclarationError:
        """Return the error that names where `node` stands."""
        path, line = self._function.__code__.co_filename, getattr(node, "lineno", 0)
        return DeclarationError(f"{path}:{line}: {self.machine.__name__}.{self.name}: {text}")

    def _outside(self, node: ast.AST, operator: ast.AST | None = None) -> DeclarationError:
        construct, instead = named(operator or node)
        return self.fault(node, f"{construct} is outside the checked subset; {instead}")

    def _demand(self, node: ast.AST, kind: Kind, wanted: Kind, what: str) -> None:
        is_handed_on = wanted is Kind.OPAQUE and kind in (Kind.INT, Kind.BOOL)
        if kind is not wanted and Kind.UNKNOWN not in (kind, wanted) and not is_handed_on:
            raise self.fault(node, f"{what} is {wanted.value}, but here it gets {kind.value}")

    def _condition(self, node: ast.expr) -> None:
        kind = self._value(node)
        if kind not in (Kind.BOOL, Kind.UNKNOWN):
            raise self.fault(
                node,
                f"`{ast.unparse(node)}` is {kind.value} where a bool is needed; "
                f"{'only hand it on' if kind is Kind.OPAQUE else 'write a comparison'}",
            )

    def _number(self, node: ast.expr) -> None:
        kind = self._value(node)
        if kind not in NUMBERS:
            raise self.fault(
                node,
                f"`{ast.unparse(node)}` is {kind.value}, and cannot be computed with; "
                f"{'only hand it on' if kind is Kind.OPAQUE else 'use an int'}",
            )

    def _value(self, node: ast.expr) -> Kind:
        rule = EXPRESSIONS.get(type(node))
        if rule is None:
            raise self._outside(node)
        return rule(self, node)

    def _called(self, node: ast.Call) -> Kind:
        kind = self._call(node)
        if kind is Kind.NOTHING:
            raise self.fault(
                node, f"`{ast.unparse(node)}` gives nothing to go on with; make it a statement"
            )
        return kind

    def _constant(self, node: ast.Constant) -> Kind:
        kind = CONSTANT_KINDS.get(type(node.value))
        if kind is None:
            raise self._outside(node)
        return kind

    def _name(self, node: ast.Name) -> Kind:
        if node.id in self._locals:
            return self._locals[node.id]
        constant = self._function.__globals__.get(node.id)
        kind = CONSTANT_KINDS.get(type(constant))
        if kind is None:
            raise self.fault(
                node,
                f"the name {node.id!r} is neither a local nor a constant of the module; use a "
                f"field, a constant of the system, or a module constant that is an int or a state",
            )
        return kind

    def _path(self, node: ast.expr) -> Kind:
        place = self._place(node)
        if isinstance(place, Value):
            return place.kind
        if isinstance(place, Anything):
            return Kind.UNKNOWN
        hint = "call it" if isinstance(place, Callee) else "use its items, fields or methods"
        raise self.fault(node, f"`{ast.unparse(node)}` is no value; {hint}")

    def _arithmetic(self, node: ast.BinOp) -> Kind:
        if not isinstance(node.op, OPERATORS):
            raise self._outside(node, node.op)
        self._number(node.left)
        self._number(node.right)
        return Kind.INT

    def _unary(self, node: ast.UnaryOp) -> Kind:
        if isinstance(node.op, ast.Not):
            self._condition(node.operand)
            return Kind.BOOL
        if not isinstance(node.op, ast.USub):
            raise self._outside(node, node.op)
        self._number(node.operand)
        return Kind.INT

    def _logic(self, node: ast.BoolOp) -> Kind:
        for operand in node.values:
            self._condition(operand)
        return Kind.BOOL

    def _compare(self, node: ast.Compare) -> Kind:
        operands = [node.left, *node.comparators]
        for operator, left, right in zip(node.ops, operands, operands[1:], strict=False):
            if not isinstance(operator, (*ORDERS, *EQUALITIES)):
                raise self._outside(node, operator)
            kinds = {self._value(left), self._value(right)} - {Kind.UNKNOWN}
            if kinds <= {Kind.STATE} and isinstance(operator, EQUALITIES):
                continue
            if not kinds <= {Kind.INT, Kind.BOOL}:
                raise self.fault(
                    node,
                    f"`{ast.unparse(node)}` compares "
                    f"{' with '.join(sorted(kind.value for kind in kinds))}; "
                    f"compare ints, bools, or a state for equality",
                )
        return Kind.BOOL

    def _choice(self, node: ast.IfExp) -> Kind:
        self._condition(node.test)
        kind = self._value(node.body)
        self._demand(node, self._value(node.orelse), kind, "the other choice")
        return kind

    def _place(self, node: ast.expr) -> Place:
        if isinstance(node, ast.Name) and node.id == "self":
            return OneMachine(self.machine)
        if isinstance(node, ast.Attribute):
            return self._attribute(node, self._place(node.value))
        if isinstance(node, ast.Subscript):
            return self._item(node, self._place(node.value))
        if isinstance(node, ast.Name):
            return Value(self._name(node))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            raise self._foreign_call(node, node.func.id)
        raise self._outside(node)

    def _attribute(self, node: ast.Attribute, place: Place) -> Place:
        try:
            if isinstance(place, OneMachine):
                return in_machine(place.machine, node.attr, self._system)
            if isinstance(place, WholeSystem) and self._system is not None:
                return in_system(self._system, node.attr)
            if isinstance(place, OutputPort):
                return in_port(place.port, node.attr)
            if isinstance(place, Channel):
                return in_channel(place, node.attr)
        except NoSuchName as error:
            raise self.fault(node, str(error)) from None
        if isinstance(place, Anything):
            return place
        raise self.fault(
            node, f"`{ast.unparse(node.value)}` has no {node.attr!r}; is a subscript missing?"
        )

    def _item(self, node: ast.Subscript, place: Place) -> Place:
        indices = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        for index in indices:
            self._number(index)
        if isinstance(place, Anything):
            return place
        if isinstance(place, MachineArray):
            if len(indices) != len(place.machine.INDEX):
                raise self.fault(
                    node,
                    f"`{ast.unparse(node.value)}` is over {', '.join(place.machine.INDEX)}, "
                    f"but here it gets {len(indices)} of these",
                )
            return OneMachine(place.machine)
        if isinstance(place, ArrayOf) and len(indices) == 1:
            return place.item
        raise self.fault(node, f"`{ast.unparse(node.value)}` is no array of that shape")

    # Calls

    def _call(self, node: ast.Call) -> Kind:
        if node.keywords or any(isinstance(argument, ast.Starred) for argument in node.args):
            raise self.fault(node, "arguments are given by position; name and star none")
        if isinstance(node.func, ast.Name):
            if node.func.id in ("any", "all"):
                return self._quantifier(node)
            raise self._foreign_call(node, node.func.id)
        if isinstance(node.func, ast.Attribute) and node.func.attr == "drain":
            return self._drain(node, node.func.value)
        callee = self._place(node.func)
        given = [self._value(argument) for argument in node.args]
        if isinstance(callee, Anything):
            return Kind.UNKNOWN
        if not isinstance(callee, Callee):
            raise self.fault(node, f"`{ast.unparse(node.func)}` cannot be called")
        self._check_arguments(node, callee, given)
        self.calls.append((node, callee))
        if callee.sort in ("trigger", "message", "change"):
            self.effects.append((node, f"it calls `{ast.unparse(node.func)}`"))
        return callee.gives

    def _foreign_call(self, node: ast.Call, name: str) -> DeclarationError:
        instead = CALLS.get(name, "write it as a method of the machine")
        return self.fault(node, f"a call of `{name}` is outside the checked subset; {instead}")

    def _check_arguments(self, node: ast.Call, callee: Callee, given: list[Kind]) -> None:
        if len(given) != len(callee.takes):
            raise self.fault(
                node,
                f"the {callee.sort} {callee.name!r} takes {len(callee.takes)} arguments, "
                f"but here it gets {len(given)}",
            )
        for argument, kind, wanted in zip(node.args, given, callee.takes, strict=True):
            self._demand(argument, kind, wanted, f"an argument of {callee.name!r}")

    def _drain(self, node: ast.Call, channel: ast.expr) -> Kind:
        places = [self._place(channel), *(self._place(argument) for argument in node.args)]
        if len(places) != 2 or not all(isinstance(p, Channel | Anything) for p in places):
            raise self.fault(node, "`drain` empties one channel into another")
        self.effects.append((node, f"it drains into `{ast.unparse(channel)}`"))
        return Kind.NOTHING

    def _quantifier(self, node: ast.Call) -> Kind:
        generators = [a for a in node.args if isinstance(a, ast.GeneratorExp)]
        if len(generators) != 1 or len(node.args) != 1 or len(generators[0].generators) != 1:
            raise self.fault(
                node, "`any` and `all` take one `... for x in range(...)`; write it like that"
            )
        (each,) = generators[0].generators
        if not isinstance(each.target, ast.Name) or each.is_async:
            raise self.fault(node, "a loop has one plain name")
        outer = dict(self._locals)
        self._locals[each.target.id] = self._range(each.iter)
        for condition in each.ifs:
            self._condition(condition)
        self._condition(generators[0].elt)
        self._locals = outer
        return Kind.BOOL

    # Bounded loops

    def _range(self, node: ast.expr) -> Kind:
        is_range = (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Name)
            and node.func.id == "range"
            and 1 <= len(node.args) <= 2
            and not node.keywords
        )
        if not is_range:
            raise self.fault(
                node,
                f"a loop over `{ast.unparse(node)}` is outside the checked subset; loop over "
                f"`range(...)` of constants, or over `take_all()` of a channel",
            )
        assert isinstance(node, ast.Call)  # for the type checker; tested above
        for bound in node.args:
            self._constant_number(bound)
        return Kind.INT

    def _constant_number(self, node: ast.expr) -> None:
        if isinstance(node, ast.BinOp) and isinstance(node.op, OPERATORS):
            self._constant_number(node.left)
            self._constant_number(node.right)
            return
        is_constant = (
            (isinstance(node, ast.Constant) and type(node.value) is int)
            or (isinstance(node, ast.Name) and node.id not in self._locals)
            or (isinstance(node, ast.Attribute) and ast.unparse(node.value) == "self.system")
        )
        if not is_constant or self._value(node) not in (Kind.INT, Kind.UNKNOWN):
            raise self.fault(
                node,
                f"`{ast.unparse(node)}` is no constant, so nobody knows how long the loop is; "
                f"use a constant as the bound and an `if` inside the loop",
            )


EXPRESSIONS: dict[type[ast.expr], Callable[[Expressions, Any], Kind]] = {
    ast.Attribute: Expressions._path,
    ast.BinOp: Expressions._arithmetic,
    ast.BoolOp: Expressions._logic,
    ast.Call: Expressions._called,
    ast.Compare: Expressions._compare,
    ast.Constant: Expressions._constant,
    ast.IfExp: Expressions._choice,
    ast.Name: Expressions._name,
    ast.Subscript: Expressions._path,
    ast.UnaryOp: Expressions._unary,
}
