"""Parses the expressions of a method into the typed tree: what kind of value each is, and what it
calls.

Conditions are bools and not numbers, because `and` and `or` of numbers mean something else in
Python than a reader expects. An opaque value may only be handed on.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from epochgate.fsm.errors import DeclarationError
from epochgate.fsm.source import definition
from epochgate.fsm.subset import tree, ways
from epochgate.fsm.subset.constructs import CALLS, named
from epochgate.fsm.subset.containers import Containers, is_field
from epochgate.fsm.subset.loops import OPERATORS
from epochgate.fsm.subset.names import (
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
    in_set,
    in_system,
    shared_in,
)

if TYPE_CHECKING:
    from epochgate.fsm.machine import Machine
    from epochgate.fsm.system import System

NUMBERS = (Kind.INT, Kind.BOOL, Kind.UNKNOWN)
SET_OPERATORS = (ast.BitOr, ast.BitAnd, ast.BitXor, ast.Sub)
EQUALITIES: dict[type[ast.AST], str] = {ast.Eq: "==", ast.NotEq: "!="}
COMPARISONS: dict[type[ast.AST], str] = {
    **EQUALITIES,
    ast.Lt: "<",
    ast.LtE: "<=",
    ast.Gt: ">",
    ast.GtE: ">=",
}
ARGUMENTS_MIN = {"abs": 1, "max": 2, "min": 2}
CONSTANT_KINDS: dict[type, Kind] = {bool: Kind.BOOL, int: Kind.INT, str: Kind.STATE}


class Expressions(Containers):
    """The expressions of one method of a machine, or of a system if `machine` is None; `calls`,
    `changes` and `written` grow as they are parsed.
    """

    def __init__(
        self, machine: type[Machine] | None, name: str, system: type[System] | None
    ) -> None:
        self.machine, self.name, self._system = machine, name, system
        self._owner: Any = machine or system
        self._function: Any = getattr(self._owner, name)
        self.node = definition(self._function)
        self.calls: list[tree.Call] = []
        self.changes: list[tuple[ast.AST, str]] = []
        """What the method changes, in its machine or in others."""
        self.written: list[tree.Path] = []
        """The fields and channels that it changes."""
        self.behind_system: dict[str, Place] = {}
        """Where each name behind `self.system` has led."""
        self._is_outside = machine is None or machine.IS_ENVIRONMENT
        self._locals: dict[str, Kind] = {}
        self._loop_names: set[str] = set()
        annotations = self._function.__annotations__
        self.gives = KINDS.get(annotations.get("return", ""), Kind.UNKNOWN)

    def fault(self, node: ast.AST, text: str) -> DeclarationError:
        """Return the error that names where `node` stands."""
        path, line = self._function.__code__.co_filename, getattr(node, "lineno", 0)
        return DeclarationError(f"{path}:{line}: {self._owner.__name__}.{self.name}: {text}")

    def _outside(self, node: ast.AST, operator: ast.AST | None = None) -> DeclarationError:
        construct, instead = named(operator or node)
        return self.fault(node, f"{construct} is outside the checked subset; {instead}")

    def _demand(self, node: ast.AST, kind: Kind, wanted: Kind, what: str) -> None:
        is_handed_on = wanted is Kind.OPAQUE and kind in (Kind.INT, Kind.BOOL, Kind.STATE)
        if kind is not wanted and Kind.UNKNOWN not in (kind, wanted) and not is_handed_on:
            hint = (
                "; what comes out of a channel of ints is one if the field is annotated "
                "`name: Fifo[int] = Channel(...)`"
                if kind is Kind.OPAQUE
                else ""
            )
            raise self.fault(node, f"{what} is {wanted.value}, but here it gets {kind.value}{hint}")

    def _condition(self, node: ast.expr) -> tree.Expression:
        value = self._value(node)
        if value.kind not in (Kind.BOOL, Kind.UNKNOWN):
            raise self.fault(
                node,
                f"`{ast.unparse(node)}` is {value.kind.value} where a bool is needed; "
                f"{'only hand it on' if value.kind is Kind.OPAQUE else 'write a comparison'}",
            )
        return value

    def _number(self, node: ast.expr) -> tree.Expression:
        return self._as_number(node, self._value(node))

    def _as_number(self, node: ast.expr, value: tree.Expression) -> tree.Expression:
        if value.kind not in NUMBERS:
            raise self.fault(
                node,
                f"`{ast.unparse(node)}` is {value.kind.value}, and cannot be computed with; "
                f"{'only hand it on' if value.kind is Kind.OPAQUE else 'use an int'}",
            )
        return value

    def _value(self, node: ast.expr) -> tree.Expression:
        rule = EXPRESSIONS.get(type(node))
        if rule is None:
            raise self._outside(node)
        return rule(self, node)

    def _called(self, node: ast.Call) -> tree.Expression:
        value = self._call(node)
        if value.kind is Kind.NOTHING:
            raise self.fault(
                node, f"`{ast.unparse(node)}` gives nothing to go on with; make it a statement"
            )
        return value

    def _constant(self, node: ast.Constant) -> tree.Expression:
        return self._literal(node, node.value)

    def _literal(self, node: ast.expr, value: Any) -> tree.Expression:
        kind = CONSTANT_KINDS.get(type(value))
        if kind is None:
            raise self._outside(node)
        if kind is Kind.STATE:
            return tree.Text(node, value)
        return tree.Constant(node, kind, int(value))

    def _name(self, node: ast.Name) -> tree.Expression:
        if node.id in self._locals:
            return tree.LocalName(node, Value(self._locals[node.id]), node.id)
        constant = self._function.__globals__.get(node.id)
        if type(constant) not in CONSTANT_KINDS:
            owner = "self" if self.machine is None else "self.system"
            raise self.fault(
                node,
                f"the name {node.id!r} is neither a local nor a constant of the module; use a "
                f"field, a constant of the system (`{owner}.{node.id}`), or a module constant that "
                f"is an int or a state",
            )
        return self._literal(node, constant)

    def _subscript(self, node: ast.Subscript) -> tree.Expression:
        numbers = self.table(node.value)
        if numbers is None:
            return self._path(node)
        return tree.TableItem(node, numbers, self._number(node.slice))

    def table(self, node: ast.expr) -> tuple[int, ...] | None:
        """The numbers of a tuple that is written here, or is a constant of the module or class."""
        found: Any = None
        if isinstance(node, ast.Tuple):
            parts = [self._value(part) for part in node.elts]
            found = tuple(map(_known, parts))
            if None in found:
                raise self.fault(node, "a tuple holds numbers that are known, and nothing else")
        elif isinstance(node, ast.Name) and node.id not in self._locals:
            found = self._function.__globals__.get(node.id)
        elif isinstance(node, ast.Attribute) and ast.unparse(node.value) == "self":
            found = getattr(self._owner, node.attr, None)
        is_table = isinstance(found, tuple) and all(type(one) in (int, bool) for one in found)
        return found if is_table and found else None

    def _path(self, node: ast.expr) -> tree.Expression:
        path = self._place(node)
        if isinstance(path.place, Value | Anything):
            return path
        hint = "call it" if isinstance(path, tree.Member) else "use its items, fields or methods"
        raise self.fault(node, f"`{ast.unparse(node)}` is no value; {hint}")

    def _arithmetic(self, node: ast.BinOp) -> tree.Expression:
        if type(node.op) not in OPERATORS:
            raise self._outside(node, node.op)
        left, right = self._value(node.left), self._value(node.right)
        if Kind.SET in (left.kind, right.kind) and type(node.op) in SET_OPERATORS:
            self._demand(node.left, left.kind, Kind.SET, "what stands left")
            self._demand(node.right, right.kind, Kind.SET, "what stands right")
            return tree.Operation(node, OPERATORS[type(node.op)], left, right, Kind.SET)
        left, right = self._as_number(node.left, left), self._as_number(node.right, right)
        return tree.Operation(node, OPERATORS[type(node.op)], left, right)

    def _unary(self, node: ast.UnaryOp) -> tree.Expression:
        if isinstance(node.op, ast.Not):
            return tree.Inverse(node, self._condition(node.operand))
        if not isinstance(node.op, ast.USub):
            raise self._outside(node, node.op)
        return tree.Negative(node, self._number(node.operand))

    def _logic(self, node: ast.BoolOp) -> tree.Expression:
        operator = "and" if isinstance(node.op, ast.And) else "or"
        return tree.Logic(node, operator, tuple(map(self._condition, node.values)))

    def _compare(self, node: ast.Compare) -> tree.Expression:
        if any(isinstance(operator, ast.In | ast.NotIn) for operator in node.ops):
            return self._membership(node)
        if unknown := [operator for operator in node.ops if type(operator) not in COMPARISONS]:
            raise self._outside(node, unknown[0])
        operands = tuple(map(self._value, (node.left, *node.comparators)))
        is_of_states = False
        for operator, left, right in zip(node.ops, operands, operands[1:], strict=False):
            kinds = {left.kind, right.kind} - {Kind.UNKNOWN}
            if kinds == {Kind.STATE} and type(operator) in EQUALITIES:
                is_of_states = True
            elif not kinds <= self._comparable() or (Kind.SET in kinds and len(kinds) > 1):
                raise self.fault(
                    node,
                    f"`{ast.unparse(node)}` compares "
                    f"{' with '.join(sorted(kind.value for kind in kinds))}; "
                    f"compare ints, bools, or a state for equality",
                )
        operators = tuple(COMPARISONS[type(operator)] for operator in node.ops)
        return tree.Comparison(node, operators, operands, is_of_states)

    def _comparable(self) -> set[Kind]:
        """A claim of a system may look at what its machines only hand on."""
        return {Kind.INT, Kind.BOOL, Kind.SET, *([Kind.OPAQUE] if self.machine is None else [])}

    def _choice(self, node: ast.IfExp) -> tree.Expression:
        condition = self._condition(node.test)
        chosen, otherwise = self._value(node.body), self._value(node.orelse)
        self._demand(node, otherwise.kind, chosen.kind, "the other choice")
        return tree.Choice(node, chosen.kind, condition, chosen, otherwise)

    # Paths

    def _place(self, node: ast.expr) -> tree.Path:
        if isinstance(node, ast.Name) and node.id == "self":
            own = OneMachine(self.machine) if self.machine else WholeSystem()
            return tree.Itself(node, own)
        if isinstance(node, ast.Attribute):
            return self._attribute(node, self._place(node.value))
        if isinstance(node, ast.Subscript):
            return self._item(node, self._place(node.value))
        if isinstance(node, ast.Name):
            found = self._name(node)
            return found if isinstance(found, tree.Path) else tree.Path(node, Value(found.kind))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            raise self._foreign_call(node, node.func.id)
        raise self._outside(node)

    def _attribute(self, node: ast.Attribute, path: tree.Path) -> tree.Path:
        place = path.place
        try:
            if isinstance(place, OneMachine) and node.attr in place.machine.PEERS:
                return self._peer(node, path, place.machine)
            if isinstance(place, OneMachine):
                found = in_machine(place.machine, node.attr, self._system)
                return self._of_machine(node, path, place.machine, found)
            if isinstance(place, WholeSystem) and self._system is not None:
                found = in_system(self._system, node.attr, is_outside=self._is_outside)
                self.behind_system[node.attr] = found
                if isinstance(found, Callee):
                    return tree.Member(node, found, path, found)
                shared = shared_in(self._system)
                if shared is not None and node.attr in shared.FIELDS:
                    return ways.shared(node, shared, node.attr, found)
                kind = tree.SystemConstant if isinstance(found, Value) else tree.Machines
                return kind(node, found, node.attr)
            if isinstance(place, OutputPort):
                callee = in_port(place.port, node.attr)
                return tree.Member(node, callee, path, callee)
            if isinstance(place, Channel) or is_field(place):
                callee = (
                    in_channel(place, node.attr)
                    if isinstance(place, Channel)
                    else in_set(node.attr)
                )
                return tree.Member(node, callee, path, callee)
        except NoSuchName as error:
            raise self.fault(node, str(error)) from None
        if isinstance(place, Anything):
            return tree.Unknown(node, place)
        raise self.fault(node, f"`{ast.unparse(node.value)}` has no {node.attr!r}; {_hint(path)}")

    def _peer(self, node: ast.Attribute, path: tree.Path, machine: type[Machine]) -> tree.Path:
        if self._system is None:
            return tree.Unknown(node, Anything())
        name = machine.PEERS[node.attr]
        found = self.behind_system[name] = in_system(self._system, name)
        return ways.peer(node, path, machine, name, found)

    @staticmethod
    def _of_machine(
        node: ast.Attribute, path: tree.Path, machine: type[Machine], found: Place
    ) -> tree.Path:
        if isinstance(found, Callee):
            return tree.Member(node, found, path, found)
        if isinstance(found, Anything):
            return tree.Unknown(node, found)
        if isinstance(found, WholeSystem):
            return tree.TheSystem(node, found)
        if node.attr == "state":
            return tree.StateOf(node, found, path)
        for names, kind in (
            (machine.INDEX, tree.IndexOf),
            (machine.FIELDS, tree.FieldOf),
            (machine.PORTS, tree.PortOf),
        ):
            if node.attr in names:
                return kind(node, found, path, node.attr)
        raise AssertionError(f"{machine.__name__} has {node.attr}, but no place for it")

    def _item(self, node: ast.Subscript, path: tree.Path) -> tree.Path:
        nodes = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        index = tuple(map(self._number, nodes))
        place = path.place
        if isinstance(place, Anything):
            return tree.Unknown(node, place)
        if isinstance(place, MachineArray):
            if len(index) != len(place.machine.INDEX):
                raise self.fault(
                    node,
                    f"`{ast.unparse(node.value)}` is over {', '.join(place.machine.INDEX)}, "
                    f"but here it gets {len(index)} of these",
                )
            return tree.Item(node, OneMachine(place.machine), path, index)
        if isinstance(place, ArrayOf) and len(index) == 1:
            return tree.Item(node, place.item, path, index)
        if isinstance(place, Channel) and len(index) == 1:
            return tree.Item(node, Value(place.item), path, index)
        raise self.fault(node, f"`{ast.unparse(node.value)}` is no array of that shape")

    # Calls

    def _call(self, node: ast.Call) -> tree.Expression:
        if node.keywords or any(isinstance(argument, ast.Starred) for argument in node.args):
            raise self.fault(node, "arguments are given by position; name and star none")
        if isinstance(node.func, ast.Name):
            if node.func.id not in BUILT_IN:
                raise self._foreign_call(node, node.func.id)
            return BUILT_IN[node.func.id](self, node)
        if isinstance(node.func, ast.Attribute) and node.func.attr == "drain":
            return self._drain(node, node.func.value)
        if self._is_choice(node.func):
            return self._one_of(node)
        path = self._place(node.func)
        arguments = tuple(map(self._value, node.args))
        if isinstance(path, tree.Unknown):
            return path
        if not isinstance(path, tree.Member):
            raise self.fault(node, f"`{ast.unparse(node.func)}` cannot be called")
        callee = path.callee
        self._check_arguments(node, callee, [argument.kind for argument in arguments])
        call = tree.Call(node, callee.gives, path.owner, callee, arguments)
        self.calls.append(call)
        if callee.sort in ("trigger", "message", "change"):
            self.changes.append((node, f"it calls `{ast.unparse(node.func)}`"))
        if callee.sort == "change":
            self.written.append(path.owner)
        return call

    def _computed(self, node: ast.Call) -> tree.Expression:
        name = ast.unparse(node.func)
        if len(node.args) < ARGUMENTS_MIN[name] or (name == "abs" and len(node.args) > 1):
            wanted = "one number" if name == "abs" else "two numbers or more"
            raise self.fault(node, f"`{name}` takes {wanted}, each an argument of its own")
        return tree.Computed(node, name, tuple(map(self._number, node.args)))

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

    def _drain(self, node: ast.Call, channel: ast.expr) -> tree.Expression:
        paths = [self._place(channel), *(self._place(argument) for argument in node.args)]
        if len(paths) != 2 or not all(isinstance(p.place, Channel | Anything) for p in paths):
            raise self.fault(node, "`drain` empties one channel into another")
        self.changes.append((node, f"it drains into `{ast.unparse(channel)}`"))
        self.written += paths
        return tree.Drain(node, into=paths[0], source=paths[1])


def _known(part: tree.Expression) -> int | None:
    """The number that is written there; None for what is not known."""
    if isinstance(part, tree.Negative) and isinstance(part.operand, tree.Constant):
        return -part.operand.value
    return part.value if isinstance(part, tree.Constant) else None


def _hint(path: tree.Path) -> str:
    if isinstance(path, tree.LocalName):
        return (
            "a local holds an int, a bool or a state, and never a machine: write the whole path, "
            "`self.system.name[i].field`, each time"
        )
    return "is a subscript missing?"


BUILT_IN: dict[str, Callable[[Expressions, ast.Call], tree.Expression]] = {
    "abs": Expressions._computed,
    "all": Expressions._quantifier,
    "any": Expressions._quantifier,
    "len": Expressions._length,
    "set": Expressions._empty_set,
    "max": Expressions._computed,
    "min": Expressions._computed,
}
EXPRESSIONS: dict[type[ast.expr], Callable[[Expressions, Any], tree.Expression]] = {
    ast.Attribute: Expressions._path,
    ast.BinOp: Expressions._arithmetic,
    ast.BoolOp: Expressions._logic,
    ast.Call: Expressions._called,
    ast.Compare: Expressions._compare,
    ast.Constant: Expressions._constant,
    ast.IfExp: Expressions._choice,
    ast.Name: Expressions._name,
    ast.Set: Expressions._written_set,
    ast.Subscript: Expressions._subscript,
    ast.UnaryOp: Expressions._unary,
}
