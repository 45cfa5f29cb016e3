"""Ports and effects: what a machine tells the outside is a value in the outbox of the step.

A port class lists messages as methods without bodies. `self.task.barrier(7)` in an action appends
one effect to the system's outbox, as a pair of its class and its items; the class names machine,
port and message, the items are the machine's index and the arguments. `System.effects` shows the
outbox as `Effect`s, which can be printed, compared and journalled. They are handed to their
handlers, in order, once the step is complete: in production to the shell's handlers, in a closed
system to the machines of the environment.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any, ClassVar, TypeVar, cast


@dataclass(frozen=True)
class Answers:
    """The triggers of a message's own machine that say how carrying it out has ended."""

    failure: tuple[str, ...]
    success: tuple[str, ...] = ()
    """Empty where nothing waits for a success."""
    within: str = ""
    """The option that limits the wait, in seconds."""
    is_in_event: bool = False
    """Whether the handler itself answers, so that no other event comes between."""

    @property
    def all(self) -> tuple[str, ...]:
        """The triggers of success, then those of failure."""
        return self.success + self.failure


M = TypeVar("M", bound=Callable[..., None])


def fallible(
    fails: str, *, succeeds: str = "", within: str = "", in_event: bool = False
) -> Callable[[M], M]:
    """Declare that carrying out a message of a port can fail.

    `fails` and `succeeds` name the triggers of the port's machine that answer, comma-separated;
    without `succeeds` nothing waits for a success. `within` names the option that limits the wait;
    `in_event` says that the handler answers before any other event is processed.
    """
    answers = Answers(_names(fails), _names(succeeds), within, in_event)

    def mark(message: M) -> M:
        message.epochgate_answers = answers  # type: ignore[attr-defined]  # `Port.answers` reads it
        return message

    return mark


def _names(column: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in column.split(",") if part.strip())


class Port:
    """The base of port classes; a subclass's public methods are its messages."""

    @classmethod
    @cache
    def messages(cls) -> dict[str, tuple[str, ...]]:
        """Each message's name with the names of its parameters."""
        return {
            name: tuple(inspect.signature(method).parameters)[1:]
            for name, method in inspect.getmembers(cls, inspect.isfunction)
            if not name.startswith("_")
        }

    @classmethod
    def answers(cls, message: str) -> Answers | None:
        """Return how a message is answered; None for one that cannot fail."""
        return getattr(getattr(cls, message), "epochgate_answers", None)


P = TypeVar("P", bound=Port)


@dataclass(frozen=True)
class PortField:
    """The declaration of one output port in a machine's class body."""

    port: type[Port]


def output(port: type[P]) -> P:
    """Declare that a machine has an output port of this class."""
    return cast(P, PortField(port))


class Effect(tuple[Any, ...]):
    """One message that left a machine: the machine's index, then the message's arguments.

    Each message of each port of a machine has a subclass of its own, which names them. Effects are
    equal when class and items are.
    """

    __slots__ = ()

    machine: ClassVar[str] = ""
    port: ClassVar[str] = ""
    message: ClassVar[str] = ""
    index_size: ClassVar[int] = 0
    """How many items belong to the machine's index."""
    parameters: ClassVar[tuple[str, ...]] = ()

    @property
    def index(self) -> tuple[Any, ...]:  # type: ignore[override]  # not `tuple.index`, which searches
        """The index of the machine that the message left."""
        return tuple(self[: self.index_size])

    @property
    def arguments(self) -> tuple[Any, ...]:
        """The arguments of the message."""
        return tuple(self[self.index_size :])

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and tuple.__eq__(self, cast(Any, other))

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __hash__(self) -> int:
        return hash((type(self).__qualname__, *self))

    def __repr__(self) -> str:
        position = "".join(f"[{i}]" for i in self.index)
        told = ", ".join(
            f"{name}={value!r}" for name, value in zip(self.parameters, self.arguments, strict=True)
        )
        return f"{self.machine}{position}.{self.port}.{self.message}({told})"


def effect_kinds(machine: str, index: tuple[str, ...], name: str, port: type[Port]) -> Kinds:
    """Make the classes of effects that leave a machine through one of its ports, by message."""
    return {
        message: type(
            f"{machine}.{name}.{message}",
            (Effect,),
            {
                "__slots__": (),
                "machine": machine,
                "port": name,
                "message": message,
                "index_size": len(index),
                "parameters": parameters,
            },
        )
        for message, parameters in port.messages().items()
    }


Kinds = dict[str, type[Effect]]
Emitted = tuple[type[Effect], tuple[Any, ...]]
"""An effect in the outbox. Making and unpacking an `Effect` would cost 0.3 us for each."""
