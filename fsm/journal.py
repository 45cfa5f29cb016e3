"""The journal of events and their effects, and its replay to the same state.

An entry is data: the machine's name and index, the trigger and its arguments, and the effects that
left the system in that step. Replaying the entries of a journal into a fresh system of the same
constants, without handlers, must give the same effects and the same state; that it does is what
makes a recorded run evidence.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace as with_changes
from typing import Any, Protocol

from epochgate.fsm.errors import ReplayDiverged
from epochgate.fsm.ports import Effect, Emitted
from epochgate.fsm.run_to_completion import Clock
from epochgate.fsm.system import System


@dataclass(frozen=True)
class JournalEntry:
    """One event: its number, the clock's seconds, which trigger of which machine got what, and the
    effects of the step.
    """

    number: int
    now_s: float
    machine: str
    index: tuple[int, ...]
    trigger: str
    arguments: tuple[Any, ...]
    effects: tuple[Effect, ...] = ()


class Journal(Protocol):
    """The place where a system writes down each event that it is about to process, and each step's
    effects.

    `clock` is set by the event queue that drives the system.
    """

    clock: Clock | None

    def record_event(self, event: tuple[str, tuple[Any, ...]], /) -> None:
        """Record an event before it is processed, its trigger and the machine with the arguments;
        the triggers inside its step follow from it.
        """
        ...

    def record_effects(self, emitted: Iterable[Emitted], /) -> None:
        """Record the effects of the step before they are handed to their handlers."""
        ...

    def between_events(self) -> None:
        """The queue is about to process events, and none is under way."""
        ...

    def due_in_s(self) -> float | None:
        """After how many seconds without an event the queue is to come back; None: it need not."""
        ...

    def close(self) -> None:
        """Nothing more is recorded."""
        ...


class UnwrittenJournal:
    """A journal that has nothing to write, and so nothing to do but to record."""

    clock: Clock | None = None

    def between_events(self) -> None:
        """There is nothing to write."""

    def due_in_s(self) -> float | None:
        """There is nothing to come back for."""
        return None

    def close(self) -> None:
        """There is nothing to close."""


class MemoryJournal(UnwrittenJournal):
    """Keeps all entries of one system in memory."""

    def __init__(self, system: System) -> None:
        self.entries: list[JournalEntry] = []
        self._names = {machine: name for name, machine in system.MACHINES.items()}

    def record_event(self, event: tuple[str, tuple[Any, ...]], /) -> None:
        """Append an entry."""
        trigger, (machine, *arguments) = event
        now_s = 0.0 if self.clock is None else self.clock.now_s()
        name = self._names[type(machine)]
        number = len(self.entries)
        self.entries.append(
            JournalEntry(number, now_s, name, machine.index, trigger, (*arguments,))
        )

    def record_effects(self, emitted: Iterable[Emitted], /) -> None:
        """Add the effects to the last entry."""
        if self.entries:
            last = self.entries[-1]
            effects = (kind(items) for kind, items in emitted)
            self.entries[-1] = with_changes(last, effects=(*last.effects, *effects))


def replay(
    entries: Iterable[JournalEntry], system: System, expected: dict[str, Any] | None = None
) -> None:
    """Fire the journalled triggers on `system`, a fresh one without handlers.

    Raises ReplayDiverged when a step has other effects than those recorded, or when the final state
    is not `expected` (as `System.values()` gave it), naming the first machine that differs;
    TransitionRefused when an entry is not possible at all.
    """
    for entry in entries:
        getattr(system.instance(entry.machine, entry.index), entry.trigger)(*entry.arguments)
        if system.effects != entry.effects:
            raise ReplayDiverged(
                f"entry {entry.number}, {entry.machine}.{entry.trigger}: its effects are "
                f"{[*system.effects]}, but {[*entry.effects]} were recorded; the rows or the "
                f"system's constants have changed since"
            )
        system.emitted.clear()
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
