"""The checks of a closed system when its class is created: steps, claims, peers and wires.

All that is wrong is told at once.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import TYPE_CHECKING

from epochgate.fsm import choosing
from epochgate.fsm.choosing import start_conditions
from epochgate.fsm.claims import OF_STATES, Step
from epochgate.fsm.declaration import expand
from epochgate.fsm.errors import DeclarationError
from epochgate.fsm.faults import Faults
from epochgate.fsm.fields import ArrayField, FieldSpec, FifoField, IntField, SetField
from epochgate.fsm.machine import Machine
from epochgate.fsm.rows import ANY
from epochgate.fsm.source import class_place

if TYPE_CHECKING:
    from epochgate.fsm.closed import ClosedSystem


Fault = Callable[[str], DeclarationError]
"""Makes the error that names the place of the class."""


def check(cls: type[ClosedSystem]) -> None:
    """Raise DeclarationError for all that is wrong with a closed system, beside its machines."""

    def fault(text: str) -> DeclarationError:
        file, line = class_place(cls)
        place = f"{file}:{line}: " if line else ""
        return DeclarationError(f"{place}{cls.__module__}.{cls.__name__}: {text}")

    faults = Faults()
    for step in cls.STEPS:
        with faults.kept():
            _step(cls, step, fault)
    known = {
        name
        for machine_name, machine in cls.MACHINES.items()
        for row in machine.ROWS
        for place in ("", *(f" from {state}" for state in expand(machine.STATES, row)))
        for name in (
            f"{machine_name}.{row.trigger}{place}",
            f"{machine_name}.{row.trigger}{place}: {row.because}",
        )
    }
    for name in cls.UNTAKEN:
        with faults.kept():
            if name not in known:
                raise fault(f"UNTAKEN names {name!r}, which is no trigger or row of a machine")
    checks = (_peers, _wires) if faults else (_fairness, _step_claims, _bounds, _peers, _wires)
    for part in checks:
        with faults.kept():
            part(cls, fault)
    faults.tell()
    if cls.STEPS:
        _claims(cls)


def _step(cls: type[ClosedSystem], step: Step, fault: Fault) -> None:
    machine = cls.MACHINES.get(step.machine)
    if machine is None:
        raise fault(f"a step names the machine {step.machine!r}, but there are {[*cls.MACHINES]}")
    if step.trigger not in machine.triggers():
        raise fault(
            f"{step.machine!r} has no trigger {step.trigger!r} to take a step by; it has "
            f"{', '.join(machine.triggers())}"
        )
    names = machine.trigger_parameters(step.trigger)
    if len(names) != len(step.over):
        raise fault(
            f"{step.machine}.{step.trigger} takes {', '.join(names) or 'nothing'}, but a "
            f"step gets {len(step.over) or 'no'} arguments, those of `over=(...)`; give it "
            f"a choice for each, or let a machine of the surroundings fire it"
        )
    for over in step.over:
        if wrong := choosing.fault_of(over, cls.CONSTANTS):
            raise fault(f"{step.machine}.{step.trigger} is over {wrong}")


def _claims(cls: type[ClosedSystem]) -> None:
    """Hold the methods of claims to the subset, but for those of refinements, which are Python."""
    faults = Faults()
    compiled = [claim for claim in cls.properties() if claim.kind != "implements"]
    names = [n for claim in compiled for n in (claim.name, claim.then) if n]
    for name in dict.fromkeys((*names, *start_conditions(cls))):
        with faults.kept():
            cls.SUBSET.tree(None, name)
    faults.tell()


def _bounds(cls: type[ClosedSystem], fault: Fault) -> None:
    """Every field of a system that can be checked is bounded by constants."""
    faults = Faults()
    for name, machine in cls.MACHINES.items() if cls.STEPS else ():
        for field, spec in machine.FIELDS.items():
            for bound in _bounds_of(spec):
                with faults.kept():
                    if isinstance(bound, str) and bound not in cls.CONSTANTS:
                        raise fault(
                            f"{name}.{field} is bounded by {bound!r}, which is no constant of "
                            f"{cls.__name__}; add it to CONSTANTS, a field without a bound cannot "
                            f"be checked"
                        )
    faults.tell()


def _bounds_of(spec: FieldSpec) -> tuple[str | int, ...]:
    if isinstance(spec, ArrayField):
        return _bounds_of(spec.item)
    if isinstance(spec, FifoField):
        return spec.item, spec.capacity
    if isinstance(spec, SetField):
        return (spec.over,)
    return (spec.bound,) if isinstance(spec, IntField) else ()


def _fairness(cls: type[ClosedSystem], fault: Fault) -> None:
    known = {step.name: cls.MACHINES[step.machine] for step in cls.STEPS}
    for one in cls.FAIRNESS:
        meant = known if one.steps == (ANY,) else one.steps
        if not meant:
            raise fault("FAIRNESS names no step; name some, or ANY")
        for name in meant:
            if name not in known:
                raise fault(f"FAIRNESS names the step {name!r}, but there are {[*known]}")
            sets = known[name].INDEX
            if one.each and one.each not in sets:
                raise fault(
                    f"FAIRNESS is demanded for each {one.each!r}, but {name!r} is a step of a "
                    f"machine with INDEX {sets!r}; leave it out, or `each`"
                )


def _step_claims(cls: type[ClosedSystem], fault: Fault) -> None:
    for claim in cls.properties():
        given = (claim.each,) if claim.each else ()
        for name in filter(None, (claim.name, claim.then)):
            code = getattr(getattr(cls, name, None), "__code__", None)
            own = code.co_varnames[1 : 1 + len(given)] if code else ()
            if claim.each and (claim.each not in cls.INDEX_SETS or own != given):
                raise fault(
                    f"{name} is claimed for each {claim.each!r}: that is one of the index "
                    f"sets {[*cls.INDEX_SETS]}, and the first parameter is named for it"
                )
            if claim.kind in OF_STATES and code and code.co_argcount > 1 + len(given):
                taken = code.co_varnames[1 : code.co_argcount]
                raise fault(
                    f"{name} of a claim takes {', '.join(taken)}; to claim it for each member "
                    f"of an index set, let it take the member alone, and add `each=...`"
                )
        if claim.kind != "each_step":
            continue
        for name in cls.measured(claim):
            method = getattr(cls, name, None)
            code = method.__code__ if inspect.isfunction(method) else None
            if code is None or code.co_varnames[1 : code.co_argcount] != given:
                raise fault(
                    f"{claim.name} takes {name!r}, but {cls.__name__} has no method of that "
                    f"name with the parameters (self{', ' + claim.each if given else ''}), "
                    f"which would say what it was before the step"
                )


def _peers(cls: type[ClosedSystem], fault: Fault) -> None:
    for machine in cls.MACHINES.values():
        for name, target in machine.PEERS.items():
            told = f"PEERS of {machine.__name__} lead {name!r} to {target!r}"
            if target not in cls.MACHINES:
                raise fault(f"{told}, which is no machine")
            if cls.MACHINES[target].INDEX not in ((), machine.INDEX):
                raise fault(
                    f"{told}, which has INDEX {cls.MACHINES[target].INDEX!r}: name one "
                    f"that has INDEX {machine.INDEX!r}, or none"
                )


def _wires(cls: type[ClosedSystem], fault: Fault) -> None:
    for wire, target in cls.WIRING.items():
        name, _, port = wire.partition(".")
        if name not in cls.MACHINES or port not in cls.MACHINES[name].PORTS:
            raise fault(f"WIRING names {wire!r}, which is no port of a machine")
        if target not in cls.MACHINES:
            raise fault(f"WIRING leads {wire!r} to {target!r}, which is no machine")
        if not cls.MACHINES[target].IS_ENVIRONMENT:
            raise fault(
                f"WIRING leads {wire!r} to {target!r}, but effects leave the protocol: let "
                f"{cls.MACHINES[target].__name__} be a subclass of Environment"
            )
        sets, taken = cls.MACHINES[name].INDEX, cls.MACHINES[target].INDEX
        if sets != taken:
            raise fault(
                f"WIRING leads {wire!r}, a port of each {' and '.join(sets) or 'machine'}, to "
                f"{target!r}, which has INDEX {taken!r}: give it INDEX = {sets!r}, and let it "
                f"fire triggers of a machine that all of them share"
            )
        for message, names in cls.MACHINES[name].PORTS[port].port.messages().items():
            _handler(cls, f"{wire}.{message}", cls.MACHINES[target], message, names, fault)
    cls.SUBSET.check_separation()  # of the handlers too


def _handler(
    cls: type[ClosedSystem],
    message: str,
    machine: type[Machine],
    name: str,
    given: tuple[str, ...],
    fault: Fault,
) -> None:
    told = f"{machine.__name__} handles {message}({', '.join(given)})"
    if name in machine.triggers():
        taken = machine.trigger_parameters(name)
        if len(taken) > len(given):
            raise fault(f"{told} by a trigger that takes {', '.join(taken)}")
        return
    if not inspect.isfunction(getattr(machine, name, None)):
        raise fault(f"{told}, but has no trigger or method {name!r}")
    handler = cls.SUBSET.tree(machine, name)
    if len(handler.parameters) != len(given):
        taken = handler.parameters
        raise fault(f"{told} by a method that takes {', '.join(taken) or 'nothing'}")
