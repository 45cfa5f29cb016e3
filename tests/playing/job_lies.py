"""Lies between the machines of a production job and its shells: where a port was bound, the handler
of a message hears what the lie says.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from epochgate.fsm import Handles, System
from epochgate.fsm.inside import machines_behind
from tests.playing.gates import Heard, Lie


def tell_lies(system: System, lie: Lie) -> None:
    """Put the lie between each machine and its handlers, which are bound already."""
    for name, machine in system.MACHINES.items():
        for port, kinds in machine.EFFECTS.items():
            messages = machine.PORTS[port].port.messages()
            for message, kind in kinds.items():
                place = name, port, message, messages[message]
                system._handlers[kind] = _lied_to(system._handlers[kind], place, lie)


def lying_handles(lie: Lie) -> Callable[..., Any]:
    """Return what stands in for `Handles` in the module of a shell that binds one port."""

    def make(system: Callable[..., System], **constants: int) -> Handles[Any]:
        handles = Handles(system, **constants)
        made = machines_behind(handles)

        def bind(name: str, port: str, handler: object) -> None:
            made.bind(name, port, handler)
            tell_lies(made, lie)

        handles.bind = bind
        return handles

    return make


def _lied_to(
    handler: Callable[..., Any], place: tuple[str, str, str, tuple[str, ...]], lie: Lie
) -> Callable[..., Any]:
    def hear(*told: Any) -> None:
        handler(*lie(Heard(*place, told)))

    return hear


def wrong(value: Any, by: int) -> Any:
    """The other bool, a number nearby that is not negative, or another opaque value."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, int):
        return value + by if value + by >= 0 else value - by
    return "another"


def lying(argument: str, by: int = 1, wrong: Callable[[Any, int], Any] = wrong) -> Lie:
    """Return what tells one argument wrong, `committer.sink.cover(checkpoint)`: numbers by `by`."""
    place, _, wanted = argument.removesuffix(")").partition("(")
    name, port, message = place.split(".")

    def lie(heard: Heard) -> tuple[Any, ...]:
        if (heard.machine, heard.port, heard.message) != (name, port, message):
            return heard.arguments
        index = len(heard.arguments) - len(heard.parameters)
        position = index + heard.parameters.index(wanted)
        arguments = list(heard.arguments)
        arguments[position] = wrong(arguments[position], by)
        return tuple(arguments)

    return lie


def arguments_of(system: type[System], *names: str) -> list[str]:
    """Every argument of every effect of these machines, or of all: `committer.sink.cover(...)`."""
    return [
        f"{name}.{port}.{message}({argument})"
        for name, machine in system.MACHINES.items()
        if name in names or not names
        for port, declared in machine.PORTS.items()
        for message, arguments in declared.port.messages().items()
        for argument in arguments
    ]
