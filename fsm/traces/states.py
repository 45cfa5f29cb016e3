"""The whole state of a system as JSON has it, and a system that is put into it."""

from __future__ import annotations

from typing import Any

from epochgate.fsm.fields import Fifo
from epochgate.fsm.machine import Machine
from epochgate.fsm.subset.names import ArrayOf, Channel, Kind, Place, field_place
from epochgate.fsm.system import System

State = dict[str, dict[str, Any]]


class StateMalformed(Exception):
    """A written state does not fit the system; the text says where."""


def written_state(system: System) -> State:
    """As `System.values`, with null for each opaque value."""
    values = system.values()
    for name, of_machine in values.items():
        machine = system.MACHINES[name.partition("[")[0]]
        for field_name, spec in machine.FIELDS.items():
            place = field_place(machine, field_name, spec)
            of_machine[field_name] = _written(place, of_machine[field_name])
    return values


def _written(place: Place, value: Any) -> Any:
    if isinstance(place, ArrayOf):
        return [_written(place.item, item) for item in value]
    if isinstance(place, Channel) and place.item is Kind.OPAQUE:
        return [None] * len(value)
    return value


def put_into(system: System, state: State) -> None:
    """Give every machine what was written of it; raises StateMalformed."""
    instances = {
        name + "".join(f"[{position}]" for position in machine.index): machine
        for name in system.MACHINES
        for machine in system.instances(name)
    }
    if instances.keys() != state.keys():
        odd = sorted(instances.keys() ^ state.keys())
        raise StateMalformed(f"the state and the system differ in the machines {odd[:5]}")
    for name, machine in instances.items():
        _put(machine, name, state[name])


def _put(machine: Machine, name: str, values: dict[str, Any]) -> None:
    if values.keys() != {"state", *machine.FIELDS} or values["state"] not in machine.STATES:
        raise StateMalformed(f"{name} cannot be {values}")
    machine.state = values["state"]
    for field_name in machine.FIELDS:
        setattr(machine, field_name, _held(getattr(machine, field_name), values[field_name], name))


def _held(present: Any, value: Any, name: str) -> Any:
    """The value, in the kind of what the field holds."""
    if isinstance(present, Fifo):
        held: Fifo[Any] = Fifo()
        for item in value:
            held.push(item)
        return held
    if isinstance(present, list):
        if not isinstance(value, list) or len(value) != len(present):
            raise StateMalformed(f"{name} has an array of {len(present)}, and {value} was written")
        return [_held(one, item, name) for one, item in zip(present, value, strict=True)]
    if type(value) is not type(present):
        raise StateMalformed(f"{name} has {present!r} where {value!r} was written")
    return value
