"""Random schedules for committers, by seed.

`wild` ones abort checkpoints that none, some or all subtasks have taken, end the input of single
subtasks, deliver notices late, out of order or never, and let the sink answer anything. In
`orderly` ones every checkpoint is completed and told, and all that is committed at once is answered
alike: there no difference is allowed.
"""

from __future__ import annotations

import random

from tests.conformance.committing.account import Account

ROUNDS_LEAST, ROUNDS_MOST = 4, 9
"""The bounds of a schedule's number of checkpoints."""


class Maker:
    """A schedule under construction."""

    def __init__(self, chance: random.Random, *, is_wild: bool) -> None:
        self.chance, self.is_wild = chance, is_wild
        self.account = Account()
        self.commands: list[str] = []
        self.subtasks = chance.choice((1, 2, 2, 3))
        self.names = self.last = 0
        self.untold: list[int] = []
        self.rarely = 0.3 if chance.random() < 0.3 else 0.06
        """How often something is done that would meet a listed difference."""
        self.say(f"new {self.subtasks} {chance.choice((0, 1, 2, 3))}")

    def make(self) -> list[str]:
        """The commands of a whole schedule."""
        for _ in range(self.chance.randint(ROUNDS_LEAST, ROUNDS_MOST)):
            self._checkpoint()
            if self.account.is_failed or self.happens(0.12):
                self._restart()
        return self.commands

    def say(self, command: str) -> None:
        self.commands.append(command)
        self.account.run([command])

    def happens(self, probability: float) -> bool:
        return self.chance.random() < probability

    def oddly(self) -> bool:
        """Whether something is done now that only a wild schedule does."""
        return self.is_wild and self.happens(self.rarely)

    def some_names(self) -> list[str]:
        made = [f"c{self.names + i + 1}" for i in range(self.chance.choice((0, 1, 1, 2)))]
        self.names += len(made)
        return made

    def _restart(self) -> None:
        self.untold.clear()
        self.say("restart")
        while self.account.is_failed:
            self.say("restart")

    def _checkpoint(self) -> None:
        self.last += 1
        order = self.chance.sample(range(self.subtasks), self.subtasks)
        made: list[str] = []
        for subtask in order:
            if self.oddly():
                self._end(order[order.index(subtask)])
            if self.oddly():
                self._abort()
                return
            if subtask in self.account.ended:
                self.say(f"barrier {subtask} {self.last} -")
                continue
            names = self.some_names()
            made += names
            self.say(f"barrier {subtask} {self.last} {','.join(names) or '-'}")
        if self.oddly():
            self._end(self.chance.choice(order))
        if self.oddly():
            self._abort()
            return
        self._answer(made)
        if self.oddly():
            self.untold.append(self.last)
            self.say(f"complete {self.last} late")
        else:
            self.say(f"complete {self.last}")
        if self.untold and self.happens(0.5):
            told = self.untold.pop(self.chance.randrange(len(self.untold)))
            self.say(f"told {told}")

    def _end(self, subtask: int) -> None:
        """The input of a subtask ends; one that has taken the barrier waits for the others."""
        if subtask not in self.account.ended:
            self.say(f"end {subtask} {','.join(self.some_names()) or '-'}")

    def _abort(self) -> None:
        self.say(f"abort {self.last}")

    def _answer(self, names: list[str]) -> None:
        """What the sink will say of what the checkpoint has brought."""
        if not names:
            return
        if not self.is_wild:
            said = self.chance.choice(("ok", "ok", "again", "error", "retry", "retry retry"))
            for name in names:
                for word in said.split() if said != "ok" else ():
                    self.say(f"answer {name} {word}")
            return
        for name in names:
            if self.happens(0.15):
                self.say(f"answer {name} {self.chance.choice(('again', 'error', 'retry'))}")
            while self.happens(self.rarely):
                self.say(f"answer {name} {self.chance.choice(('retry', 'retry', 'known'))}")


def schedule(seed: int, mode: str) -> list[str]:
    """The commands of one schedule; the same for the same seed and mode, `wild` or `orderly`."""
    return Maker(random.Random(f"committing {mode} {seed}"), is_wild=mode == "wild").make()
