"""The lies: a machine tells the outside one argument of one message wrong.

A number is told as the one before it, 0 as 1, a bool as its opposite; 0 takes the place of an
opaque value. The checker has to find each of them by a claim or an assertion of the surroundings: a
change that alters the count of states alone is no find.
"""

from __future__ import annotations

import ast
import copy
import sys
from collections.abc import Iterator
from functools import cache

from epochgate.fsm import Machine
from epochgate.fsm.source import definition
from epochgate.fsm.subset.names import Kind, kinds_taken
from tests.models.hearing import running
from tests.mutation.bodies import BodyMutant, reached
from tests.mutation.checking import Found, claimed
from tests.mutation.homes import HOMES, SYSTEMS_THAT_RUN

UNFOUND: dict[str, str] = {}
"""Lies that no claim finds, each with its reason."""


@cache
def lies() -> dict[str, tuple[BodyMutant, ...]]:
    """Argument, as `Machine.port.message: name` -> the lies about it, one for each place at which
    the message is sent.
    """
    names = {home.machine: name for name, home in HOMES.items()}
    found: dict[str, dict[str, BodyMutant]] = {}
    for system in SYSTEMS_THAT_RUN:
        for (attribute, method), affected in reached(system).items():
            machine = system.MACHINES[attribute]
            right, name = getattr(machine, method), names[machine]
            tree = definition(right)
            for number, node in enumerate(ast.walk(tree)):
                for argument, position, kind in _arguments(machine, node):
                    assert isinstance(node, ast.Call)
                    lying = copy.deepcopy(tree)
                    call = [*ast.walk(lying)][number]
                    assert isinstance(call, ast.Call)
                    call.args[position] = _lie(node.args[position], kind)
                    mutant = BodyMutant(
                        name,
                        HOMES[name],
                        method,
                        "argument",
                        f"`{ast.unparse(node)}`",
                        f"`{ast.unparse(call)}`",
                        ast.fix_missing_locations(lying),
                        right,
                        affected,
                    )
                    found.setdefault(argument, {}).setdefault(mutant.name, mutant)
    return {argument: tuple(mutants.values()) for argument, mutants in sorted(found.items())}


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


def _lie(told: ast.expr, kind: Kind) -> ast.expr:
    text = ast.unparse(told)
    if kind is Kind.OPAQUE:
        return ast.Constant(0)
    if kind is Kind.BOOL:
        return ast.parse(f"not ({text})", mode="eval").body
    return ast.parse(f"({text}) - 1 if ({text}) > 0 else 1", mode="eval").body


def found(argument: str) -> Iterator[tuple[BodyMutant, Found | None]]:
    """Each lie about an argument, and what the checker has against it."""
    for mutant in lies()[argument]:
        yield mutant, claimed(mutant)


if __name__ == "__main__":
    for argument in lies():
        if not sys.argv[1:] or any(argument.startswith(each) for each in sys.argv[1:]):
            for mutant, finding in found(argument):
                sys.stdout.write(f"{argument}; {mutant.name}: {finding or 'NOT FOUND'}\n")
                sys.stdout.flush()
