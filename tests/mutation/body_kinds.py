"""Further kinds of broken bodies, beside those of `bodies`:

* `constant by one`: a number is one more, or one less;
* `other field`: another field of the same type is read;
* `other argument`: a parameter or a constant that an effect tells is replaced by a field or another
  parameter of the same type, or two arguments change places;
* `sibling effect`: another message of the same port with as many parameters is sent;
* `statements swapped`: two statements that follow each other change places, unless the order of
  what they read, write and say is the same for both.
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Iterator
from functools import cache
from itertools import pairwise
from types import FunctionType
from typing import Any

from epochgate.fsm import Machine
from epochgate.fsm.fields import ArrayField, BoolField, FieldSpec, IntField
from epochgate.fsm.source import definition
from tests.mutation.bodies import (
    BodyMutant,
    Made,
    Path,
    body_mutants_of,
    differing,
    methods,
    node_at,
    paths,
    with_changed,
)
from tests.mutation.homes import HOMES
from tests.mutation.order import is_order_free

Change = tuple[str, Path, ast.AST]


@cache
def more_body_mutants_of(machine: str) -> tuple[BodyMutant, ...]:
    """Those of one machine, of these kinds alone."""
    earlier = body_mutants_of(machine)
    return tuple(
        mutant
        for name, right, affected in methods()
        if name == machine
        for mutant in differing(
            name,
            HOMES[name],
            right,
            affected,
            _made(HOMES[name].machine, right),
            [each for each in earlier if each.right is right],
        )
    )


def _made(machine: type[Machine], right: FunctionType) -> Iterator[Made]:
    tree = definition(right)
    for path in paths(tree, ()):
        for kind, where, new in _changes(machine, right, tree, path):
            yield kind, where, with_changed(tree, where, new)
    yield from _swapped(machine, tree)


def _changes(
    machine: type[Machine], right: FunctionType, tree: ast.FunctionDef, path: Path
) -> Iterator[Change]:
    match node_at(tree, path):
        case ast.Constant(value=int(value)) if not isinstance(value, bool):
            for near in (value + 1, value - 1):
                if near >= 0:
                    yield "constant by one", path, ast.Constant(near)
        case ast.Attribute(value=ast.Name(id="self"), attr=name, ctx=ast.Load()):
            for other in _alike(machine, name):
                yield "other field", path, _field(other)
        case ast.Call(func=ast.Attribute(value=ast.Attribute(attr=port), attr=message)) as call:
            if port in machine.PORTS:
                yield from _told_otherwise(machine, right, path, call, port, message)


def _told_otherwise(
    machine: type[Machine],
    right: FunctionType,
    path: Path,
    call: ast.Call,
    port: str,
    message: str,
) -> Iterator[Change]:
    messages = machine.PORTS[port].port.messages()
    for other, parameters in messages.items():
        if other != message and len(parameters) == len(messages[message]):
            sibling: Any = copy.deepcopy(call)
            sibling.func.attr = other
            yield "sibling effect", path, sibling
    for place, argument in enumerate(call.args):
        if place:
            swapped: Any = copy.deepcopy(call)
            swapped.args[place - 1 : place + 1] = reversed(swapped.args[place - 1 : place + 1])
            yield "other argument", path, swapped
        if isinstance(argument, ast.Name):
            for new in _in_place_of(machine, right, argument.id):
                replaced: Any = copy.deepcopy(call)
                replaced.args[place] = new
                yield "other argument", path, replaced


def _in_place_of(machine: type[Machine], right: FunctionType, name: str) -> Iterator[ast.expr]:
    """Return what has the type of a parameter, or of a number that the module names."""
    kinds: dict[str, str] = {k: str(v) for k, v in right.__annotations__.items() if k != "return"}
    kind = kinds.get(name, "")
    if not kind and isinstance(right.__globals__.get(name), int):
        kind = "int"
    yield from (ast.Name(other, ast.Load()) for other, of in kinds.items() if of == kind)
    wanted = {"int": IntField, "bool": BoolField}.get(kind)
    for other, spec in machine.FIELDS.items():
        if wanted is not None and isinstance(spec, wanted):
            yield _field(other)


def _alike(machine: type[Machine], name: str) -> Iterator[str]:
    """The other fields of a field's type."""
    fields: dict[str, FieldSpec] = machine.FIELDS
    for other, spec in fields.items():
        if name in fields and other != name and _shape(spec) == _shape(fields[name]):
            yield other


def _shape(spec: FieldSpec) -> tuple[Any, ...]:
    if isinstance(spec, ArrayField):
        return "array", spec.over, _shape(spec.item)
    # Channels may hold what is only passed on: their items have no type to go by.
    return (type(spec),) if isinstance(spec, IntField | BoolField) else (spec, id(spec))


def _field(name: str) -> ast.Attribute:
    return ast.Attribute(ast.Name("self", ast.Load()), name, ast.Load())


def _swapped(machine: type[Machine], tree: ast.FunctionDef) -> Iterator[Made]:
    every: list[Path] = [(), *paths(tree, ())]
    for path in every:
        node: Any = node_at(tree, path)
        for field in ("body", "orelse"):
            body = getattr(node, field, None)
            if not isinstance(body, list):
                continue
            for place, (first, then) in enumerate(pairwise(body)):
                if not _may_move(first) or not _may_move(then):
                    continue
                if not is_order_free(machine, [first], [then]):
                    yield "statements swapped", path, _exchanged(tree, path, field, place)


def _may_move(statement: ast.stmt) -> bool:
    is_text = isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)
    return not is_text and not isinstance(statement, ast.Assert)


def _exchanged(tree: ast.FunctionDef, path: Path, field: str, place: int) -> ast.FunctionDef:
    mutant = copy.deepcopy(tree)
    body = getattr(node_at(mutant, path), field)
    body[place : place + 2] = reversed(body[place : place + 2])
    return mutant
