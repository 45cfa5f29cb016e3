"""Ports: the typed output channels through which a machine's effects leave it.

A port class lists messages as methods without bodies. The machine calls `self.task.barrier(7)`; who
listens is decided outside: the runtime binds a handler whose methods run, in order, after the step;
a closed system binds a channel; without either the messages are recorded, which is what tests look
at.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any, NamedTuple, TypeVar, cast

Effect = tuple[Callable[..., None], tuple[Any, ...]]
"""A handler's method and its arguments, waiting for the end of the step."""


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


P = TypeVar("P", bound=Port)


@dataclass(frozen=True)
class PortField:
    """The declaration of one output port in a machine's class body."""

    port: type[Port]


def output(port: type[P]) -> P:
    """Declare that a machine has an output port of this class."""
    return cast(P, PortField(port))


class Sent(NamedTuple):
    """A message that left through a recording port."""

    message: str
    arguments: tuple[Any, ...]


class RecordingPort:
    """Keeps the messages sent through it, oldest first, in `sent`."""

    def __init__(self, port: type[Port]) -> None:
        self.sent: list[Sent] = []
        self._messages = port.messages()

    def __getattr__(self, message: str) -> Callable[..., None]:
        """Make the method of one message when it is first used."""
        if message.startswith("_") or message not in self._messages:
            raise AttributeError(message)

        def record(*arguments: Any) -> None:
            self.sent.append(Sent(message, arguments))

        setattr(self, message, record)
        return record


class DeferredPort:
    """Puts each message on the system's list of effects, to be handled once the step is
    complete.
    """

    def __init__(
        self, port: type[Port], handler: object, index: tuple[int, ...], effects: list[Effect]
    ) -> None:
        self._messages = port.messages()
        self._handler, self._index, self._effects = handler, index, effects

    def __getattr__(self, message: str) -> Callable[..., None]:
        """Make the method of one message when it is first used."""
        if message.startswith("_") or message not in self._messages:
            raise AttributeError(message)
        method, index, effects = getattr(self._handler, message), self._index, self._effects

        def defer(*arguments: Any) -> None:
            effects.append((method, index + arguments))

        setattr(self, message, defer)
        return defer
