"""The order of statements, or doing them twice, and the difference it makes: by what they read,
write and say.

Fields are those of the machine; a local variable counts as one. An effect is told, and a trigger of
another machine is fired. Effects leave after the step, and triggers wait until the row is done, so
that only the order among effects, that among triggers and the values in both count.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass, field

from epochgate.fsm import Machine
from epochgate.fsm.source import definition

READ_ALONE = ("head", "empty", "size")
"""What a channel can be asked without a change of it."""


@dataclass
class Touched:
    """The names that statements read and write, and whether they tell, fire or leave the method."""

    read: set[str] = field(default_factory=set)
    written: set[str] = field(default_factory=set)
    added: set[str] = field(default_factory=set)
    """Written on top of what was there."""
    tells: bool = False
    fires: bool = False
    leaves: bool = False

    def read_all(self, machine: type[Machine], body: list[ast.stmt]) -> Touched:
        for statement in body:
            for node in ast.walk(statement):
                self._read(machine, node)
        return self

    def _read(self, machine: type[Machine], node: ast.AST) -> None:
        match node:
            case ast.Return():
                self.leaves = True
            case ast.Call(func=ast.Attribute(value=target, attr=name)):
                self._read_call(machine, target, name)
            case ast.AugAssign():
                self.added |= _names(node.target)
                self.read |= _names(node.target)
            case ast.Subscript(ctx=ast.Store()):
                self.read |= _names(node)
                self.written |= _names(node.value)
            case ast.Attribute(ctx=ast.Store()) | ast.Name(ctx=ast.Store()):
                self.written |= _names(node)
            case ast.Attribute() | ast.Name():
                self.read |= _names(node)

    def _read_call(self, machine: type[Machine], target: ast.expr, name: str) -> None:
        if isinstance(target, ast.Name) and target.id == "self" and name in machine.TRIGGERS:
            self.fires = True
        elif isinstance(target, ast.Name) and target.id == "self":
            called = Touched().read_all(machine, definition(getattr(machine, name)).body)
            self.read |= called.read
            self.written |= called.written
            self.added |= called.added
            self.tells = self.tells or called.tells
            self.fires = self.fires or called.fires
        elif _names(target) & set(machine.PORTS):
            self.tells = True
        elif not (named := _names(target) & set(machine.FIELDS)):
            self.fires = True
        elif name not in READ_ALONE:
            self.written |= named
            self.added |= named


def _names(node: ast.AST) -> set[str]:
    """The fields of the machine and the local variables in an expression, told apart."""
    own = {
        each.attr
        for each in ast.walk(node)
        if isinstance(each, ast.Attribute)
        and isinstance(each.value, ast.Name)
        and each.value.id == "self"
    }
    local = {f"local {each.id}" for each in ast.walk(node) if isinstance(each, ast.Name)}
    return own | (local - {"local self"})


def is_order_free(machine: type[Machine], first: list[ast.stmt], then: list[ast.stmt]) -> bool:
    """Return whether the two come to the same in either order."""
    one, other = Touched().read_all(machine, first), Touched().read_all(machine, then)
    return not (
        (one.tells and other.tells)
        or (one.fires and other.fires)
        or one.leaves
        or other.leaves
        or one.written & (other.read | other.written)
        or other.written & one.read
    )


def is_repeatable(machine: type[Machine], body: list[ast.stmt]) -> bool:
    """Return whether doing it twice comes to the same as doing it once."""
    touched = Touched().read_all(machine, body)
    return not (touched.tells or touched.fires or touched.added or touched.written & touched.read)
