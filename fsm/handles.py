"""Handles: the triggers of a system's machines, without their states, fields and guards.

A shell fires triggers and carries effects out; with what it read of a machine it would take a
decision that is no row. So a shell makes its system as `Handles(Sales, orders=3)` and holds no
machine: a read raises AttributeError, and `mypy_plugin` refuses it beforehand. How a trigger has
ended is not for a shell either: to type checkers its call returns None. `inside` has the two doors,
one for what is displayed and one for tests.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar

from epochgate.fsm.journal import Journal
from epochgate.fsm.machine import Machine
from epochgate.fsm.run_to_completion import Clock, EventQueue
from epochgate.fsm.system import System

M = TypeVar("M", bound=Machine, covariant=True)
S = TypeVar("S", bound=System, covariant=True)


class Handle(Generic[M]):
    """The triggers of one machine: an attribute for each, a function that fires it."""

    def __init__(self, machine: M) -> None:
        # Bound beforehand, a trigger costs its caller no more than one of the machine's own.
        self.__dict__.update({name: getattr(machine, name) for name in machine.TRIGGERS})

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {', '.join(vars(self))}>"

    def __getattr__(self, name: str) -> Callable[..., None]:
        raise AttributeError(
            f"{name!r} is no trigger: outside of its rows a machine is not read. Let a row decide, "
            "and an effect of the row say what is to be done"
        )


class Handles(Generic[S]):
    """The handles of one system: under the name of each machine its handle, or a list or dict of
    handles, as the system has machines.

    `system` makes the system from `constants`. Raises what it raises.
    """

    def __init__(self, system: Callable[..., S], **constants: int) -> None:
        made = system(**constants)
        for name in made.MACHINES:
            setattr(self, name, _handled(getattr(made, name)))
        self.bind = made.bind
        """`System.bind`."""
        self.settle = made.settle
        """`System.settle`."""

    def __getattr__(self, name: str) -> Handle[Any]:
        raise AttributeError(f"{name!r} is no machine of this system")


def drive(
    handles: Handles[S], clock: Clock, journal: Callable[[S], Journal] | None = None
) -> EventQueue:
    """Make the event queue that drives the system; `journal` makes what records its events."""
    system = system_of(handles)
    return EventQueue(system, clock, None if journal is None else journal(system))


def system_of(handles: Handles[S]) -> S:
    """Return the system itself; for `inside`."""
    system: S = handles.bind.__self__  # type: ignore[attr-defined]  # its type tells no owner
    return system


def _handled(held: Any) -> Any:
    if isinstance(held, Machine):
        return Handle(held)
    if isinstance(held, dict):
        return {index: Handle(machine) for index, machine in held.items()}
    return [Handle(machine) for machine in held]
