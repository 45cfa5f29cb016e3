"""The meaning of a path in a guard or action: `self.held[0]`, `self.system.gateway[c, s].send`.

Without a system what lies behind `self.system` is unknown, and every use of it passes; with one it
is resolved. Names are decided here; what may be done with a place is the method check's affair.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any

from epochgate.fsm.declaration import parameters
from epochgate.fsm.fields import ArrayField, BoolField, FieldSpec, FifoField, SetField
from epochgate.fsm.ports import Port

if TYPE_CHECKING:
    from epochgate.fsm.machine import Machine
    from epochgate.fsm.system import System

SHARED = "shared"
"""The name of the machine that holds what all machines of a closed system share."""


class Kind(Enum):
    """The kind of a value to the compiler; `OPAQUE` is passed on but never looked at."""

    INT = "an int"
    BOOL = "a bool"
    STATE = "the name of a state"
    SET = "a set"
    OPAQUE = "an opaque value"
    NOTHING = "nothing"
    UNKNOWN = "unknown"


KINDS: dict[Any, Kind] = {
    **dict.fromkeys((int, "int"), Kind.INT),
    **dict.fromkeys((bool, "bool"), Kind.BOOL),
    **dict.fromkeys((Any, "Opaque", "Any"), Kind.OPAQUE),
    **dict.fromkeys((None, "None"), Kind.NOTHING),
}


class NoSuchName(Exception):
    """A path names something that is not there; the text says what is."""


@dataclass(frozen=True)
class Value:
    """An int, bool or state name; `is_field` when it may be assigned to."""

    kind: Kind
    is_field: bool = False


@dataclass(frozen=True)
class Channel:
    """A FIFO field."""

    item: Kind


@dataclass(frozen=True)
class ArrayOf:
    """A fixed array field."""

    item: Place


@dataclass(frozen=True)
class OneMachine:
    """A machine instance."""

    machine: type[Machine]


@dataclass(frozen=True)
class MachineArray:
    """All instances of a machine; a subscript with that many numbers leads to one of them."""

    machine: type[Machine]


@dataclass(frozen=True)
class WholeSystem:
    """`self.system`, when it is known."""


@dataclass(frozen=True)
class OutputPort:
    """An output port of a machine."""

    port: type[Port]


@dataclass(frozen=True)
class Callee:
    """Something to call: a method or trigger of a machine, or a message of a port."""

    sort: str
    name: str
    takes: tuple[Kind, ...]
    gives: Kind
    machine: type[Machine] | None = None


@dataclass(frozen=True)
class Anything:
    """Something behind a system that is not known yet."""


Place = (
    Value
    | Channel
    | ArrayOf
    | OneMachine
    | MachineArray
    | WholeSystem
    | OutputPort
    | Callee
    | Anything
)


def kinds_taken(function: Callable[..., Any]) -> tuple[Kind, ...]:
    """The kinds of a function's parameters without `self`, as annotated."""
    annotations = function.__annotations__
    return tuple(
        KINDS.get(annotations.get(name, ""), Kind.UNKNOWN) for name in parameters(function)
    )


def kind_given(function: Callable[..., Any]) -> Kind:
    """The kind of what a function returns, as annotated."""
    return KINDS.get(function.__annotations__.get("return", ""), Kind.UNKNOWN)


def field_place(machine: type[Machine], name: str, field: FieldSpec) -> Place:
    """Return where a field leads; a channel's items are opaque unless it is annotated as one of
    ints.
    """
    if isinstance(field, ArrayField):
        return ArrayOf(field_place(machine, name, field.item))
    if isinstance(field, FifoField):
        annotated = (vars(c).get("__annotations__", {}).get(name) for c in machine.__mro__)
        holds_ints = any("Fifo[int]" in str(annotation) for annotation in annotated)
        return Channel(Kind.INT if holds_ints else Kind.OPAQUE)
    if isinstance(field, SetField):
        return Value(Kind.SET, is_field=True)
    return Value(Kind.BOOL if isinstance(field, BoolField) else Kind.INT, is_field=True)


def _trigger(machine: type[Machine], name: str) -> Callee:
    longest: tuple[Kind, ...] = ()
    for row in machine.ROWS:
        if row.trigger == name:
            for callback in (*row.conditions, *row.unless, *row.actions):
                longest = max(longest, kinds_taken(getattr(machine, callback)), key=len)
    return Callee("trigger", name, longest, Kind.NOTHING, machine)


def in_machine(machine: type[Machine], name: str, system: type[System] | None) -> Place:
    """Return where an attribute of a machine leads; raises NoSuchName."""
    if name == "system":
        return WholeSystem() if system is not None else Anything()
    if name == "state":
        return Value(Kind.STATE)
    if name in machine.INDEX:
        return Value(Kind.INT)
    if name in machine.FIELDS:
        return field_place(machine, name, machine.FIELDS[name])
    if name in machine.PORTS:
        return OutputPort(machine.PORTS[name].port)
    if name in machine.triggers():
        return _trigger(machine, name)
    function = getattr(machine, name, None)
    if inspect.isfunction(function) and function.__module__ != "epochgate.fsm.machine":
        return Callee("method", name, kinds_taken(function), kind_given(function), machine)
    known = sorted((*machine.FIELDS, *machine.PORTS, *machine.INDEX, *machine.triggers()))
    raise NoSuchName(
        f"{machine.__name__} has no field, port, trigger or method {name!r}; "
        f"it has {', '.join(known)} and its methods"
    )


def shared_in(system: type[System]) -> type[Machine] | None:
    """The machine that holds what all machines of the system share, if it has one."""
    return next((m for m in system.MACHINES.values() if m.IS_SHARED), None)


def in_system(system: type[System], name: str, *, is_outside: bool = False) -> Place:
    """Return where an attribute of a system leads; raises NoSuchName.

    The methods of the system are there for itself and for its environment only.
    """
    if name in system.CONSTANTS:
        return Value(Kind.INT)
    if (shared := shared_in(system)) is not None and name in shared.FIELDS:
        return field_place(shared, name, shared.FIELDS[name])
    if name in system.MACHINES:
        machine = system.MACHINES[name]
        return MachineArray(machine) if machine.INDEX else OneMachine(machine)
    function = getattr(system, name, None)
    if is_outside and inspect.isfunction(function) and function.__module__[:14] != "epochgate.fsm.":
        return Callee("method", name, kinds_taken(function), kind_given(function))
    hint = "; a constant is an attribute by its own name" if name == "constants" else ""
    raise NoSuchName(
        f"{system.__name__} has no machine or constant {name!r}; "
        f"it has {', '.join((*system.MACHINES, *system.CONSTANTS))}{hint}"
    )


def in_port(port: type[Port], name: str) -> Callee:
    """Return where an attribute of a port leads; raises NoSuchName."""
    if name not in port.messages():
        raise NoSuchName(
            f"{port.__name__} has no message {name!r}; it has {', '.join(port.messages())}"
        )
    return Callee("message", name, kinds_taken(getattr(port, name)), Kind.NOTHING)


def in_channel(channel: Channel, name: str) -> Callee:
    """Return where a channel's method leads, except `drain` and `take_all`; raises NoSuchName."""
    methods = {
        "push": Callee("change", name, (channel.item,), Kind.NOTHING),
        "pop": Callee("change", name, (), channel.item),
        "clear": Callee("change", name, (), Kind.NOTHING),
        "take": Callee("change", name, (Kind.INT,), channel.item),
        "remove": Callee("change", name, (channel.item,), Kind.NOTHING),
        "head": Callee("look", name, (), channel.item),
        "empty": Callee("look", name, (), Kind.BOOL),
        "size": Callee("look", name, (), Kind.INT),
    }
    if name not in methods:
        raise NoSuchName(f"a channel has no method {name!r}; it has {', '.join(methods)}, drain")
    return methods[name]


def in_set(name: str) -> Callee:
    """Return where a method of a set leads; raises NoSuchName."""
    methods = {
        "add": Callee("change", name, (Kind.INT,), Kind.NOTHING),
        "discard": Callee("change", name, (Kind.INT,), Kind.NOTHING),
        "remove": Callee("change", name, (Kind.INT,), Kind.NOTHING),
        "clear": Callee("change", name, (), Kind.NOTHING),
        "copy": Callee("look", name, (), Kind.SET),
    }
    if name not in methods:
        raise NoSuchName(
            f"a set has no method {name!r} here; it has {', '.join(methods)}, and `|`, `&`, `-`, "
            f"`^`, `<=`, `in` and `len`"
        )
    return methods[name]
