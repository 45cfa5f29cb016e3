"""Ways through a system: to peers, to what is shared, and to the machine that a path leads to."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from epochgate.fsm.subset.names import SHARED, Kind, MachineArray, OneMachine, Place, Value
from epochgate.fsm.subset.tree import (
    FieldOf,
    IndexOf,
    Item,
    Machines,
    Member,
    Path,
    PortOf,
    StateOf,
)

if TYPE_CHECKING:
    from epochgate.fsm.machine import Machine


def peer(at: ast.AST, path: Path, machine: type[Machine], name: str, found: Place) -> Path:
    """The way to a machine's peer: `self.system.name[self.index]`, or `self.system.name`."""
    machines = Machines(at, found, name)
    if not isinstance(found, MachineArray):
        return machines
    number = Value(Kind.INT)
    index = tuple(IndexOf(at, number, path, one) for one in machine.INDEX)
    return Item(at, OneMachine(found.machine), machines, index)


def shared(at: ast.AST, machine: type[Machine], name: str, found: Place) -> Path:
    """The way to a field that all machines share: `self.system.shared.name`."""
    return FieldOf(at, found, Machines(at, OneMachine(machine), SHARED), name)


def root(path: Path) -> Path:
    """The machine that a path leads through last: of a field, a port or an item, its owner."""
    while True:
        if isinstance(path, StateOf | IndexOf | FieldOf | PortOf):
            return path.machine
        if isinstance(path, Member):
            path = path.owner
        elif isinstance(path, Item) and not isinstance(path.array, Machines):
            path = path.array
        else:
            return path
