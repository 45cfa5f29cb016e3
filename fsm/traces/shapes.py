"""The shapes of a system in its trace: names, the arguments that machines look at, and a digest of
all that decides.

An argument or a message's parameter that is `Opaque` is handed on and never looked at, so no step
depends on it: it is written as null, and nothing of a user's data gets into a trace.
"""

from __future__ import annotations

import ast
import hashlib
import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from operator import itemgetter
from typing import Any

from epochgate.fsm.fields import ArrayField, FieldSpec, IntField
from epochgate.fsm.machine import Machine
from epochgate.fsm.ports import Effect
from epochgate.fsm.source import definition
from epochgate.fsm.subset.names import Kind, kinds_taken
from epochgate.fsm.system import System

DIGEST_CHARACTERS = 16


@dataclass(frozen=True)
class Shape:
    """The shape in which a trigger's arguments, or an effect's items, are written: those at `seen`,
    by the place that each has among `size` written values.

    get: the seen ones of a tuple in which `offset` others stand in front, always as a tuple.
    """

    size: int
    seen: tuple[int, ...]
    get: Callable[[tuple[Any, ...]], tuple[Any, ...]]

    @cached_property
    def is_unbroken(self) -> bool:
        """True if the seen ones stand in front of all others."""
        return self.seen == (*range(len(self.seen)),)

    @cached_property
    def blanks(self) -> list[None]:
        """One for each that is not seen."""
        return [None] * (self.size - len(self.seen))

    def written(self, seen: Sequence[Any]) -> list[Any]:
        """The values as a line has them, null in the place of those that are not seen."""
        if self.is_unbroken:
            return [*seen, *self.blanks]
        values: list[Any] = [None] * self.size
        for place, value in zip(self.seen, seen, strict=False):
            values[place] = value
        return values


def _shape(kinds: Sequence[Kind], offset: int) -> Shape:
    seen = tuple(place for place, kind in enumerate(kinds) if kind in (Kind.INT, Kind.BOOL))
    return Shape(len(kinds), seen, _getter([place + offset for place in seen]))


def _getter(places: Sequence[int]) -> Callable[[tuple[Any, ...]], tuple[Any, ...]]:
    """Cuts these places out of a tuple; written in C, because every event passes here."""
    if not places:
        return itemgetter(slice(0))
    if places == [*range(places[0], places[-1] + 1)]:
        return itemgetter(slice(places[0], places[-1] + 1))
    return itemgetter(*places)


def trigger_shape(machine: type[Machine], trigger: str) -> Shape:
    """Of the arguments of a trigger, in a tuple that begins with the machine."""
    longest: tuple[Kind, ...] = ()
    for row in machine.ROWS:
        if row.trigger == trigger:
            for callback in (*row.conditions, *row.unless, *row.actions):
                longest = max(longest, kinds_taken(getattr(machine, callback)), key=len)
    return _shape(longest, 1)


@dataclass(frozen=True)
class EffectShape:
    """An effect: the machine's name in the system and `port.message`; of its items, the machine's
    index is part of its name.
    """

    machine: str
    message: str
    index_size: int
    arguments: Shape
    get_with_index: Callable[[tuple[Any, ...]], tuple[Any, ...]]
    """The index, and what is written of the arguments, of an effect's items."""

    def name(self, index: tuple[Any, ...]) -> str:
        """The name by which a line has it.

        >>> of = EffectShape("gateway", "wire.event", 2, Shape(0, (), tuple), tuple)
        >>> of.name((0, 3))
        'gateway[0][3].wire.event'
        """
        return f"{instance_name(self.machine, index)}.{self.message}"


def effect_shapes(system: type[System]) -> dict[type[Effect], EffectShape]:
    """The shape of each effect that leaves the system."""
    found = {}
    for name, machine in system.MACHINES.items():
        for port, kinds in machine.EFFECTS.items():
            for message, kind in kinds.items():
                taken = kinds_taken(getattr(machine.PORTS[port].port, message))
                size = kind.index_size
                shape = _shape(taken, size)
                places = [*range(size), *(size + place for place in shape.seen)]
                found[kind] = EffectShape(name, f"{port}.{message}", size, shape, _getter(places))
    return found


def instance_name(machine: str, index: Sequence[int]) -> str:
    """The name of one machine, as `System.values` has it.

    >>> instance_name("gateway", (0, 3))
    'gateway[0][3]'
    """
    return machine + "".join(f"[{position}]" for position in index)


def digest(system: type[System]) -> str:
    """A digest of all that decides what a system does: its machines' states, fields, ports and
    rows, and the guards, actions and other methods of their classes. Reasons, comments and
    docstrings have no part in it.
    """
    told = hashlib.sha256()

    def tell(*parts: Any) -> None:
        told.update(repr(parts).encode())

    tell(sorted(system.INDEX_SETS.items()))
    for name, machine in sorted(system.MACHINES.items()):
        tell(name, machine.INDEX, machine.STATES, machine.INITIAL, machine.TERMINAL)
        tell(sorted((field, repr(spec)) for field, spec in machine.FIELDS.items()))
        for field, spec in sorted(machine.FIELDS.items()):
            if extra := [getattr(spec, n) for n in ("wraps", "start") if _is_unusual(spec, n)]:
                tell(field, extra)
        for port, kinds in sorted(machine.EFFECTS.items()):
            tell(port, sorted((message, kind.parameters) for message, kind in kinds.items()))
        for row in machine.ROWS:
            tell(row.trigger, row.source, row.dest, row.when, row.actions, row.is_ignored)
        for method, function in sorted(_methods(machine).items()):
            tell(method, _text(definition(function)))
    return told.hexdigest()[:DIGEST_CHARACTERS]


def _is_unusual(spec: FieldSpec, attribute: str) -> bool:
    """Return whether a field has what its text does not say: it wraps, or its items begin
    differently.
    """
    told = isinstance(spec, IntField) if attribute == "wraps" else isinstance(spec, ArrayField)
    return told and bool(getattr(spec, attribute))


def _methods(machine: type[Machine]) -> dict[str, Callable[..., Any]]:
    """The guards, the actions, and what else the machine's class and its bases define."""
    return {
        name: function
        for name, function in inspect.getmembers(machine, inspect.isfunction)
        if function.__module__ != Machine.__module__
    }


def _text(function: ast.FunctionDef) -> str:
    """The statements without a docstring, in Python's own layout."""
    body = function.body[1:] if ast.get_docstring(function) is not None else function.body
    return ast.unparse(function.args) + ":" + "\n".join(map(ast.unparse, body))
