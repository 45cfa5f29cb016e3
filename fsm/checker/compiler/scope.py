"""The meaning of names while a method is lowered: instances, fields, locals, and choices among
them.

Statements are appended to the block of the scope; an expression may need some before it, for
instance to take an item from a channel.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from epochgate.fsm.checker.compiler.ir import Expr, Load, Local, Not, Op, Select, Stmt
from epochgate.fsm.checker.compiler.layout import FifoCells
from epochgate.fsm.errors import DeclarationError
from epochgate.fsm.subset.tree import Node


@dataclass(frozen=True)
class Instance:
    """A machine of the system, or with name "" the system itself."""

    name: str
    index: tuple[int, ...]

    def __str__(self) -> str:
        return (self.name or "the system") + "".join(f"[{i}]" for i in self.index)


SYSTEM = Instance("", ())


@dataclass(frozen=True)
class Listener:
    """The machine that handles the effects of a port."""

    instance: Instance


@dataclass(frozen=True)
class AllOf:
    """All instances of a machine, before a subscript."""

    machine: str


@dataclass(frozen=True)
class StateOf:
    """The state of an instance, to be compared with a state's name."""

    instance: Instance


@dataclass(frozen=True)
class StateName:
    """The name of a state, as a constant."""

    name: str


@dataclass(frozen=True)
class Field:
    """One cell: an int or bool field, or an item of an array of these."""

    cell: str


@dataclass(frozen=True)
class Chosen:
    """One of several places, by an index that is known at run time only."""

    index: Expr
    options: tuple[Place, ...]


Place = (
    Instance
    | Listener
    | AllOf
    | StateOf
    | StateName
    | Field
    | FifoCells
    | Chosen
    | tuple["Place", ...]
    | int
    | Local
    | Load
    | Op
    | Not
    | Select
)
"""What a path leads to; a tuple is an array field."""


@dataclass
class Scope:
    """One method, or the rows of one trigger, while it is lowered."""

    instance: Instance
    method: Callable[..., Any]
    names: dict[str, Place]
    block: list[Stmt] = field(default_factory=list)
    function: str = ""
    """The name of the function that the method becomes."""

    @contextmanager
    def captured(self) -> Iterator[list[Stmt]]:
        """Collect the statements of a branch apart."""
        outer, self.block = self.block, []
        try:
            yield self.block
        finally:
            self.block = outer

    def refusal(self, node: Node, wanted: str) -> DeclarationError:
        """The error for what cannot be compiled."""
        return DeclarationError(
            f"{self.method.__code__.co_filename}:{node.line}: "
            f"{self.method.__qualname__}: `{node.text}` cannot be compiled; {wanted}"
        )
