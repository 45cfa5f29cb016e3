"""The methods that are parsed, and what they may do to each other.

`check_machine` runs when a machine class is created, over its guards, its actions and the methods
of its own that they call; `check_system` runs when a system class is created, over the same and the
methods of other machines that they reach, with every name behind `self.system` resolved. Both raise
DeclarationError with file, line, the construct, and what to write instead. `statements` says what
one method may hold; here it is decided which methods are parsed, that guards change nothing, that
no method calls itself, and, by `separation`, what machines may do to each other.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from epochgate.fsm.faults import Faults
from epochgate.fsm.subset import answers, separation, tree
from epochgate.fsm.subset.names import Callee, Kind
from epochgate.fsm.subset.statements import Method

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
    """The methods of one system, parsed; or those of one machine without its system."""

    def __init__(self, system: type[System] | None = None) -> None:
        self._system = system
        self._methods: dict[tuple[type[Machine] | None, str], Method] = {}
        self._trees: dict[tuple[type[Machine] | None, str], tree.MethodTree] = {}

    def tree(self, machine: type[Machine] | None, name: str) -> tree.MethodTree:
        """The tree of a machine's method, or of the system's if `machine` is None.

        Raises DeclarationError for a method outside the subset that no check has seen before: one
        of an unchecked machine, or of the system.
        """
        key = machine, name
        if key not in self._trees:
            if base := self._base_with(machine, name):
                self._methods[key], self._trees[key] = base._methods[key], base._trees[key]
            else:
                method = self._methods[key] = Method(machine, name, self._system)
                self._trees[key] = method.parse()
        return self._trees[key]

    def _base_with(self, machine: type[Machine] | None, name: str) -> Subset | None:
        """The methods of the nearest base of the system in which this one has the same tree."""
        if machine is None or self._system is None:
            return None
        for kind in self._system.__mro__[1:]:
            base: Subset | None = vars(kind).get("SUBSET")
            if base is not None and (machine, name) in base._trees:
                method = base._methods[machine, name]
                return base if method.is_same_in(self._system) else None
        return None

    def check(self, machine: type[Machine]) -> None:
        """Check everything that the rows of one machine lead to."""
        guards = dict.fromkeys(name for row in machine.ROWS for name, _ in row.literals)
        actions = dict.fromkeys(name for row in machine.ROWS for name in row.actions)
        faults = Faults()
        for name in dict.fromkeys((*guards, *actions)):
            with faults.kept():
                self._reach(machine, name, ())
                if name in guards:
                    self._check_guard(machine, name)
        faults.tell()
        answers.check(machine, self)

    def _check_guard(self, machine: type[Machine], name: str) -> None:
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
        self.tree(machine, name)
        for call in self._methods[key].calls:
            if owner := self._checked(call.callee):
                self._reach(owner, call.callee.name, (*callers, key))

    @staticmethod
    def _checked(callee: Callee) -> type[Machine] | None:
        """The machine whose method this is, if its methods are checked."""
        machine = callee.machine if callee.sort == "method" else None
        return machine if machine is not None and machine.IS_CHECKED else None

    def _check_purity(self, guard: Method, method: Method) -> None:
        for node, change in method.changes:
            raise method.fault(
                node,
                f"{change}, although the guard {guard.name!r} runs it; a guard only looks, "
                f"so that a refused trigger changes nothing: do this in an action",
            )
        for call in method.calls:
            if owner := self._checked(call.callee):
                self._check_purity(guard, self._methods[owner, call.callee.name])

    def check_separation(self) -> None:
        """Check what each parsed method of a machine does to other machines."""
        faults = Faults()
        if self._system is not None and self._system.IS_SEPARATED:
            for method in [*self._methods.values()]:
                with faults.kept():
                    separation.check(method, self._is_changing)
        faults.tell()

    def _is_changing(self, callee: Callee, sorts: frozenset[str]) -> bool:
        """Return whether a method, or one that it calls, writes anything or makes such a call."""
        if callee.sort in sorts:
            return True
        owner = self._checked(callee)
        if owner is None:
            return False
        self.tree(owner, callee.name)
        method = self._methods[owner, callee.name]
        return bool(method.written) or any(self._is_changing(c.callee, sorts) for c in method.calls)

    def interactions(self) -> Iterator[Interaction]:
        """Return what the methods of machines fire and send, in the order of their text."""
        for (machine, name), method in self._methods.items():
            for call in method.calls:
                if machine is not None and call.callee.sort in ("trigger", "message"):
                    yield Interaction(machine, name, call.callee.machine, call.callee.name)


def check_machine(machine: type[Machine]) -> None:
    """Check one machine's guards and actions; names behind `self.system` are taken on trust."""
    Subset().check(machine)


def check_system(system: type[System]) -> Subset:
    """Check all machines of a system, with every name resolved, and return their methods."""
    subset, faults = Subset(system), Faults()
    for machine in system.MACHINES.values():
        with faults.kept():
            if machine.IS_CHECKED:
                subset.check(machine)
    faults.tell()
    subset.check_separation()
    return subset
