"""The maker of both kinds of random schedules: a source of chance, and an account of what the
commands so far have led to, so that the next one can be possible, or impossible on purpose.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

from tests.conformance.account import NAMES, Account

STEPS_LEAST, STEPS_MOST = 18, 50
"""The bounds of a schedule's number of steps; a step is one or a few commands."""


class Maker:
    """A schedule under construction."""

    KINDS: ClassVar[Sequence[tuple[Callable[[Any], None], float]]] = ()
    """The steps, and how often each is taken in relation to the others."""

    def __init__(self, chance: random.Random) -> None:
        self.chance = chance
        self.account = Account(NAMES)
        self.commands: list[str] = []
        self.subtasks = chance.choice((1, 2, 2, 3))
        self.events = 0
        self.last = 0
        """The newest checkpoint id that was used."""
        self.completed = 0
        is_manual = chance.random() < 0.75
        self.say(f"new {self.subtasks}" + " manual" * is_manual, "start")
        self.say(*(f"running {subtask}" for subtask in range(self.subtasks)))

    def make(self) -> list[str]:
        """The commands of a whole schedule."""
        kinds, weights = zip(*self.KINDS, strict=True)
        for _ in range(self.chance.randint(STEPS_LEAST, STEPS_MOST)):
            self.chance.choices(kinds, weights)[0](self)
        self.say("auto 1")
        return self.commands

    def say(self, *commands: str) -> list[str]:
        """Add commands; what they print."""
        self.commands += commands
        return [line for lines in self.account.run(commands) for line in lines]

    def happens(self, probability: float) -> bool:
        return self.chance.random() < probability

    def any_subtask(self) -> int:
        return self.chance.randrange(self.subtasks)

    def attempt(self, subtask: int) -> int:
        return self.account.attempts[subtask].number

    def under_way(self) -> list[str]:
        """The events whose calls wait for an answer, oldest first."""
        calls = (send for sends in self.account.in_flight.values() for send in sends)
        return [send.name for send in calls if send.is_ok is None]

    def event_name(self, prefix: str) -> str:
        self.events += 1
        return f"{prefix}{self.events}"

    def send(self, subtask: int, attempt: int) -> None:
        self.say(f"send {subtask} {attempt} {self.event_name('e')}")

    def event(self) -> None:
        subtask = self.any_subtask()
        self.say(f"event {subtask} {self.attempt(subtask)} {self.event_name('o')}")

    def toggle(self) -> None:
        self.say(f"auto {int(not self.account.is_automatic)}")
