"""The bounds on what a method of one machine may do to another machine.

A machine of the protocol changes its own fields, fires triggers and emits effects through its own
ports. It may read other machines and call methods of theirs that change nothing. A machine of the
environment does the same towards the protocol; machines of the environment are one party, and write
each other's fields. `WRITES_OTHERS` exempts a machine, such as one that renumbers identities, and
`IS_SEPARATED = False` a system: a design of others that does not run.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import TYPE_CHECKING

from epochgate.fsm.subset import tree, ways
from epochgate.fsm.subset.names import Callee, OneMachine
from epochgate.fsm.subset.statements import Method

if TYPE_CHECKING:
    from epochgate.fsm.machine import Machine

IsChanging = Callable[[Callee, frozenset[str]], bool]
"""Whether a method writes anything, or makes a call of one of these sorts."""
SENDS, SENDS_OR_FIRES = frozenset({"message"}), frozenset({"message", "trigger"})


def check(method: Method, is_changing: IsChanging) -> None:
    """Raise DeclarationError for what a method must not do to another machine."""
    machine = method.machine
    if machine is None or machine.WRITES_OTHERS:
        return
    own = machine.__name__
    for path in method.written:
        other = _other(path)
        if other is not None and not other.IS_SHARED and not _are_one_party(machine, other):
            raise method.fault(
                path.at,
                f"`{path.text}` belongs to {other.__name__}, and {own} must not write it; fire a "
                f"trigger of {other.__name__} whose action does, or, in a model that does not run, "
                f"let machines share it: declare it in the class body of the closed system, and "
                f"write `self.system.{_field_name(path)}`",
            )
    for call in method.calls:
        other = _other(call.owner)
        if other is not None and (text := _fault(machine, other, call, is_changing)):
            raise method.fault(call.at, text)


def _fault(
    machine: type[Machine],
    other: type[Machine],
    call: tree.Call,
    is_changing: IsChanging,
) -> str:
    """Return what is wrong with a call that leads to another machine; empty if nothing is."""
    own, sort, name = machine.__name__, call.callee.sort, other.__name__
    path = ast.unparse(call.at.func) if isinstance(call.at, ast.Call) else call.text
    if sort == "message":
        return (
            f"`{path}` leaves through a port of {name}; give {own} a port of its own, or fire a "
            f"trigger of {name} whose action sends the message"
        )
    if sort == "trigger" and other.IS_ENVIRONMENT and not machine.IS_ENVIRONMENT:
        return (
            f"{name} belongs to the environment, whose triggers {own} must not fire; "
            f"send a message through a port of {own}, and let {name} handle it"
        )
    # From one party to the other a trigger is an event; within a party it waits in the same queue.
    counted = SENDS if machine.IS_ENVIRONMENT == other.IS_ENVIRONMENT else SENDS_OR_FIRES
    if (
        sort == "method"
        and not _are_one_party(machine, other)
        and is_changing(call.callee, counted)
    ):
        return (
            f"`{path}` changes {name}, and {own} must not do that; fire a trigger of {name} whose "
            f"action does"
        )
    return ""


def _other(path: tree.Path) -> type[Machine] | None:
    """The machine that a path leads to, unless it is the method's own."""
    found = ways.root(path)
    is_other = isinstance(found, tree.Machines | tree.Item)
    return found.place.machine if is_other and isinstance(found.place, OneMachine) else None


def _field_name(path: tree.Path) -> str:
    while isinstance(path, tree.Item) and not isinstance(path.array, tree.Machines):
        path = path.array
    return path.name if isinstance(path, tree.FieldOf) else "name"


def _are_one_party(machine: type[Machine], other: type[Machine]) -> bool:
    return machine.IS_ENVIRONMENT and other.IS_ENVIRONMENT
