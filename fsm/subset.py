"""The checked subset of Python: what guards and actions may be made of, so that they can be
compiled.

`check_machine` runs when a machine class is created, over its guards, its actions and the methods
of its own that they call; `check_system` runs when a system class is created, over the same and the
methods of other machines that they reach, with every name behind `self.system` resolved. Both raise
DeclarationError with file, line, the construct, and what to write instead. What one method may hold
is `epochgate.fsm.method`'s to say; here it is decided which methods are looked at, that guards
change nothing, and that no method calls itself.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from epochgate.fsm.method import Method
from epochgate.fsm.places import Callee, Kind

if TYPE_CHECKING:
    from epochgate.fsm.machine import Machine
    from epochgate.fsm.system import System


@dataclass(frozen=True)
class Interaction:
    """A method of one machine fires a trigger, or sends a message, of another machine or its
    own.
    """

    machine: type[Machine]
    method: str
    target: type[Machine] | None
    """None for a message of a port."""
    name: str


class Subset:
    """The methods of one system's machines under check, or of one machine without its system."""

    def __init__(self, system: type[System] | None = None) -> None:
        self._system = system
        self._methods: dict[tuple[type[Machine], str], Method] = {}

    def check(self, machine: type[Machine]) -> None:
        """Check everything that the rows of one machine lead to."""
        guards = dict.fromkeys(name for row in machine.ROWS for name, _ in row.literals)
        actions = dict.fromkeys(name for row in machine.ROWS for name in row.actions)
        for name in (*guards, *actions):
            self._reach(machine, name, ())
        for name in guards:
            guard = self._methods[machine, name]
            if guard.gives is not Kind.BOOL:
                raise guard.fault(guard.node, "a guard must return a bool; annotate it `-> bool`")
            self._check_purity(guard, guard)

    def _reach(self, machine: type[Machine], name: str, callers: tuple[Any, ...]) -> None:
        key = machine, name
        if key in callers:
            method = self._methods[key]
            raise method.fault(method.node, "it calls itself; write a loop over a range instead")
        if key in self._methods:
            return
        method = self._methods[key] = Method(machine, name, self._system)
        method.check()
        for _, callee in method.calls:
            if owner := self._checked(callee):
                self._reach(owner, callee.name, (*callers, key))

    @staticmethod
    def _checked(callee: Callee) -> type[Machine] | None:
        """The machine whose method this is, if its methods are checked."""
        machine = callee.machine if callee.sort == "method" else None
        return machine if machine is not None and machine.IS_CHECKED else None

    def _check_purity(self, guard: Method, method: Method) -> None:
        for node, effect in method.effects:
            raise method.fault(
                node,
                f"{effect}, although the guard {guard.name!r} runs it; a guard only looks, "
                f"so that a refused trigger changes nothing: do this in an action",
            )
        for _, callee in method.calls:
            if owner := self._checked(callee):
                self._check_purity(guard, self._methods[owner, callee.name])

    def interactions(self) -> Iterator[Interaction]:
        """What the methods that were reached fire and send, in the order of their text."""
        for (machine, name), method in self._methods.items():
            for _, callee in method.calls:
                if callee.sort in ("trigger", "message"):
                    yield Interaction(machine, name, callee.machine, callee.name)


def check_machine(machine: type[Machine]) -> None:
    """Check one machine's guards and actions; names behind `self.system` are taken on trust."""
    Subset().check(machine)


def check_system(system: type[System]) -> Subset:
    """Check all machines of a system, with every name resolved, and return what was learnt."""
    subset = Subset(system)
    for machine in system.MACHINES.values():
        if machine.IS_CHECKED:
            subset.check(machine)
    return subset
