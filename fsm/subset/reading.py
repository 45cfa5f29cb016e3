"""The fields of its machines that a closed system reads anywhere.

A field that no guard, action, handler or claim reads decides nothing: it is superfluous, or what
should look at it is missing. What stands left of `=` or `+=`, what is pushed into a channel and
what clears it is written, not read.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import fields
from typing import TYPE_CHECKING, Any

from epochgate.fsm.subset import tree
from epochgate.fsm.subset.names import OneMachine

if TYPE_CHECKING:
    from epochgate.fsm.machine import Machine
    from epochgate.fsm.subset.checks import Subset

Method = tuple["type[Machine] | None", str]
"""A method of a machine, or of the system."""
WRITES = frozenset({"push", "clear", "add", "discard"})
"""The operations of a channel or set for which it does not matter what that holds."""


def fields_read(subset: Subset, methods: Iterable[Method]) -> set[tuple[type[Machine], str]]:
    """The machine and the name of each field that these methods, and those that they call, read.

    Raises DeclarationError for a method outside the subset.
    """
    seen: set[Method] = set()
    frontier, found = [*methods], set[tuple["type[Machine]", str]]()
    while frontier:
        method = frontier.pop()
        if method in seen:
            continue
        seen.add(method)
        for node in _read(subset.tree(*method).body):
            if isinstance(node, tree.FieldOf) and isinstance(node.machine.place, OneMachine):
                found.add((node.machine.place.machine, node.name))
            elif isinstance(node, tree.Call) and node.callee.sort == "method":
                frontier.append((node.callee.machine, node.callee.name))
    return found


def _read(part: Any) -> Iterator[tree.Node]:
    """Every node but the paths of what is written."""
    if isinstance(part, tuple):
        for each in part:
            yield from _read(each)
    elif isinstance(part, tree.Assign | tree.Update):
        yield from _written(part.target)
        yield from _read(part.value)
    elif isinstance(part, tree.Drain):
        yield from _written(part.into)
        yield from _read(part.source)
    elif (
        isinstance(part, tree.Call) and part.callee.sort == "change" and part.callee.name in WRITES
    ):
        yield from _written(part.owner)
        yield from _read(part.arguments)
    elif isinstance(part, tree.Node):
        yield part
        for field in fields(part):
            if field.name not in ("at", "place", "callee"):
                yield from _read(getattr(part, field.name))


def _written(path: tree.Path) -> Iterator[tree.Node]:
    """Return what is read to find the field that is written."""
    if isinstance(path, tree.FieldOf):
        yield from _read(path.machine)
    elif isinstance(path, tree.Item):
        yield from _written(path.array)
        yield from _read(path.index)
    else:
        yield from _read(path)
