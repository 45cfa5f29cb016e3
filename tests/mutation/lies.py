"""The lies: a machine tells the outside one argument of one message wrong.

A number is told as the one before it, 0 as 1, a bool as its opposite; 0 takes the place of an
opaque value. A claim or an assertion of the surroundings has to find each of them, or the play of
the machine on its production shell: that a test of the runtime finds one is not enough.
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Iterator
from functools import cache
from types import FunctionType

from epochgate.fsm import Machine
from epochgate.fsm.source import definition
from epochgate.fsm.subset.names import Kind, kinds_taken
from tests.models.hearing import running
from tests.models.unheard import REASONS
from tests.mutation.bodies import BodyMutant, Case, methods
from tests.mutation.homes import HOMES

BY_THE_PLAY: dict[str, str] = {}
"""Argument, as `Machine.port.message: name`, of which the play alone finds lies -> its test."""
UNFOUND: dict[str, str] = {
    "Gateway.sender.turned_away: event": (
        "no closed system renews a gateway that holds events: see `models.closed.untaken`"
    ),
    "Task.operators.gap: number": REASONS["Task.operators.gap: coordinator"],
}
"""Argument of which a lie may be found by none -> why, beside those that nothing has to look at."""
KIND = "argument"


@cache
def lies() -> dict[str, tuple[str, BodyMutant]]:
    """Name -> the argument that is told wrong, as `Machine.port.message: name`, and the mutant."""
    return {
        mutant.name: (argument, mutant)
        for machine, right, affected in methods()
        for argument, mutant in _lies(machine, right, affected)
    }


def lies_of(machine: str) -> list[BodyMutant]:
    """Those of one machine."""
    return [mutant for _, mutant in lies().values() if mutant.machine == machine]


def reason_for(name: str) -> str:
    """Return why no claim need find this lie; empty if one has to, or if it is none."""
    argument, _ = lies().get(name, ("", None))
    lists = (REASONS, UNFOUND, BY_THE_PLAY)
    return next((reasons[argument] for reasons in lists if argument in reasons), "")


def _lies(
    machine: str, right: FunctionType, affected: frozenset[Case]
) -> Iterator[tuple[str, BodyMutant]]:
    home, tree = HOMES[machine], definition(right)
    made: dict[str, int] = {}
    for number, node in enumerate(ast.walk(tree)):
        for argument, position, kind in _arguments(home.machine, node):
            assert isinstance(node, ast.Call)
            lying = copy.deepcopy(tree)
            call = [*ast.walk(lying)][number]
            assert isinstance(call, ast.Call)
            _lie(lying, call, position, kind)
            change = f"`{ast.unparse(node)}`", f"`{ast.unparse(call)}`"
            # A method may send the same message at several places.
            made[change[1]] = made.get(change[1], 0) + 1
            at = f" at place {made[change[1]]}" if made[change[1]] > 1 else ""
            fixed = ast.fix_missing_locations(lying)
            yield (
                argument,
                BodyMutant(
                    machine,
                    home,
                    right.__name__,
                    KIND,
                    change[0],
                    change[1] + at,
                    fixed,
                    right,
                    affected,
                ),
            )


def _arguments(machine: type[Machine], node: ast.AST) -> Iterator[tuple[str, int, Kind]]:
    """The name, position and kind of each argument, if this sends a message of the machine's."""
    match node:
        case ast.Call(
            func=ast.Attribute(
                value=ast.Attribute(value=ast.Name(id="self"), attr=port), attr=message
            )
        ) if port in machine.PORTS:
            kind = machine.PORTS[port].port
            key = f"{running(machine, port, message)}.{port}.{message}"
            kinds = kinds_taken(getattr(kind, message))
            for position, name in enumerate(kind.messages()[message]):
                yield f"{key}: {name}", position, kinds[position]


def _lie(tree: ast.AST, call: ast.Call, position: int, kind: Kind) -> None:
    told: ast.expr = call.args[position]
    text = ast.unparse(told)
    if ".pop()" in text:  # what is taken out of a channel is taken out once
        block = next(block for block in _blocks(tree) if any(_is(each, call) for each in block))
        number = next(number for number, each in enumerate(block) if _is(each, call))
        block.insert(number, ast.Assign([ast.Name("told", ast.Store())], told))
        text = "told"
    if kind is Kind.OPAQUE:
        call.args[position] = ast.Constant(0)
    elif kind is Kind.BOOL:
        call.args[position] = ast.parse(f"not ({text})", mode="eval").body
    else:
        lie = f"({text}) - 1 if ({text}) > 0 else 1"
        call.args[position] = ast.parse(lie, mode="eval").body


def _blocks(tree: ast.AST) -> Iterator[list[ast.stmt]]:
    for node in ast.walk(tree):
        for name in ("body", "orelse"):
            block = getattr(node, name, None)
            if isinstance(block, list):
                yield block


def _is(statement: ast.stmt, call: ast.Call) -> bool:
    return isinstance(statement, ast.Expr) and statement.value is call
