"""The journal of processed events, and its replay to the same state.

An entry is data: the machine's name and index, the trigger and its arguments. Replaying the entries
of a journal into a fresh system of the same constants, with nobody listening to the ports, must
give the same state; that it does is what makes a recorded run evidence.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Protocol

from epochgate.fsm.errors import ReplayDiverged
from epochgate.fsm.machine import Machine
from epochgate.fsm.system import System


@dataclass(frozen=True)
class JournalEntry:
    """One processed event: its number, the clock's seconds, and which trigger of which machine got
    what.
    """

    number: int
    now_s: float
    machine: str
    index: tuple[int, ...]
    trigger: str
    arguments: tuple[Any, ...]


class Journal(Protocol):
    """Where a queue writes down what it is about to process."""

    def record_call(
        self, number: int, now_s: float, trigger: Callable[..., Any], arguments: tuple[Any, ...]
    ) -> None:
        """Called before an event is processed; calls that are not a machine's trigger are the
        shell's own.
        """
        ...


class MemoryJournal:
    """Keeps all entries of one system in memory."""

    def __init__(self, system: System) -> None:
        self.entries: list[JournalEntry] = []
        self._system = system
        self._names = {machine: name for name, machine in system.MACHINES.items()}

    def record_call(
        self, number: int, now_s: float, trigger: Callable[..., Any], arguments: tuple[Any, ...]
    ) -> None:
        """Note a trigger of one of the system's machines; other calls leave no entry."""
        machine = getattr(trigger, "__self__", None)
        if isinstance(machine, Machine) and machine.system is self._system:
            name = self._names[type(machine)]
            entry = JournalEntry(number, now_s, name, machine.index, trigger.__name__, arguments)
            self.entries.append(entry)


def replay(
    entries: Iterable[JournalEntry], system: System, expected: dict[str, Any] | None = None
) -> None:
    """Fire the journalled triggers on `system`, a fresh one.

    Raises ReplayDiverged when the final state is not `expected` (as `System.values()` gave it),
    naming the first machine that differs; TransitionRefused when an entry is not possible at all.
    """
    for entry in entries:
        getattr(system.instance(entry.machine, entry.index), entry.trigger)(*entry.arguments)
    if expected is None:
        return
    reached = system.values()
    for name in sorted(reached.keys() | expected.keys()):
        if reached.get(name) != expected.get(name):
            raise ReplayDiverged(
                f"the journal leads {name} to {reached.get(name)}, "
                f"but it was recorded at {expected.get(name)}; the rows or the system's constants "
                f"have changed since, or something changed a machine without the queue"
            )
