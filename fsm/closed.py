"""Closed systems: machines with nothing outside, whose every possible step is listed.

What stands outside a production system (processes, wires, users, time) is made of machines too. A
port is wired to one of them, whose methods of the same names take its messages; a `Step` lets an
instance fire a trigger by itself. A step can be taken when a row of the trigger, other than an
ignoring one, holds. Properties are methods of the system over what its machines hold.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, TypeVar

from epochgate.fsm.errors import DeclarationError
from epochgate.fsm.machine import Machine
from epochgate.fsm.system import System


@dataclass(frozen=True)
class Step:
    """Any instance of the machine may fire the trigger, at any time; `is_fair` steps are not put
    off for ever once they stay possible (weak fairness).
    """

    machine: str
    trigger: str
    is_fair: bool = True


@dataclass(frozen=True)
class Property:
    """A claim about a closed system: `kind` is always, sometimes, eventually or leads_to."""

    kind: str
    name: str
    claim: str


F = TypeVar("F", bound=Callable[..., Any])


def _mark(kind: str, claim: str) -> Callable[[F], F]:
    def mark(method: F) -> F:
        method.epochgate_property = (kind, claim)  # type: ignore[attr-defined]  # a tag
        return method

    return mark


def always(claim: str) -> Callable[[F], F]:
    """Claim that the method holds in every reachable state."""
    return _mark("always", claim)


def sometimes(claim: str) -> Callable[[F], F]:
    """Claim that the method holds in some reachable state: what is checked does happen."""
    return _mark("sometimes", claim)


class ClosedSystem(System):
    """The base of closed systems.

    STEPS lists what can happen; WIRING maps "machine.port" to the machine that takes its messages
    (same index sets); CONSTANTS holds the bounds that fields name.
    """

    STEPS: ClassVar[tuple[Step, ...]] = ()
    WIRING: ClassVar[dict[str, str]] = {}

    def __init__(self, **constants: int) -> None:
        super().__init__(**constants)
        for wire, target in self.WIRING.items():
            name, port = wire.split(".")
            for machine in self.instances(name):
                setattr(machine, port, self.instance(target, machine.index))

    @classmethod
    def properties(cls) -> tuple[Property, ...]:
        """All properties, in the order of their declaration."""
        found = []
        for name in dict.fromkeys(n for c in reversed(cls.__mro__) for n in vars(c)):
            tag = getattr(getattr(cls, name, None), "epochgate_property", None)
            if tag is not None:
                found.append(Property(tag[0], name, tag[1]))
        return tuple(found)

    def step_instances(self) -> list[tuple[Step, Machine]]:
        """Each step with each instance that may take it, in the order of STEPS and indices."""
        return [(step, machine) for step in self.STEPS for machine in self.instances(step.machine)]

    def is_enabled(self, step: Step, machine: Machine) -> bool:
        """Whether a row of the step's trigger holds now, other than an ignoring one."""
        if step.trigger not in machine.triggers():
            raise DeclarationError(f"{machine!r} has no trigger {step.trigger!r}")
        for source, row in machine.expanded_rows():
            if row.trigger == step.trigger and source == machine.state and not row.is_ignored:
                if all(bool(machine.bound_callback(n)()) == e for n, e in row.literals):
                    return True
        return False
