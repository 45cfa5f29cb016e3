"""Random schedules for committers, by seed.

`wild` ones abort checkpoints that none, some or all subtasks have taken, end the input of single
subtasks, deliver notices late, out of order or never, and let the sink answer anything. Most of
them do so only where that meets no listed difference: these must be answered alike. The others do
anything at any moment. In `orderly` ones every checkpoint is completed and told, and all that is
committed at once is answered alike.
"""

from __future__ import annotations

import random
from collections.abc import Sequence

from tests.conformance.committing.account import Account

ROUNDS_LEAST, ROUNDS_MOST = 4, 9
"""The bounds of a schedule's number of checkpoints."""
ANYTHING_GOES = 0.22
"""The share of wild schedules that meet the listed differences at will."""


class Maker:
    """A schedule under construction, in which anything may happen if it `is_wild`."""

    def __init__(self, chance: random.Random, *, is_wild: bool) -> None:
        self.chance, self.is_wild = chance, is_wild
        self.account = Account()
        self.commands: list[str] = []
        self.subtasks = chance.choice((1, 2, 2, 3))
        self.names = self.last = 0
        self.untold: list[int] = []
        self.rarely = 0.3 if chance.random() < 0.3 else 0.06
        """How often something odd is done."""
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
                self._end(subtask, self.some_names())
            if self.oddly():
                self._abort()
                return
            made += self._barrier(subtask, [] if self._has_ended(subtask) else self.some_names())
        if self.oddly():
            self._end(self.chance.choice(order), self.some_names())
        if self.oddly():
            self._abort()
            return
        self._answer(made)
        self._complete(is_late=self.oddly())
        if self.untold and self.happens(0.5):
            self._tell(self.untold.pop(self.chance.randrange(len(self.untold))))

    def _has_ended(self, subtask: int) -> bool:
        return subtask in self.account.ended

    def _end(self, subtask: int, names: Sequence[str]) -> Sequence[str]:
        """The input of a subtask ends; one that has taken the barrier waits for the others."""
        if not self._has_ended(subtask):
            self.say(f"end {subtask} {','.join(names) or '-'}")
        return names

    def _barrier(self, subtask: int, names: Sequence[str]) -> Sequence[str]:
        self.say(f"barrier {subtask} {self.last} {','.join(names) or '-'}")
        return names

    def _abort(self) -> None:
        self.say(f"abort {self.last}")

    def _complete(self, *, is_late: bool) -> None:
        if is_late:
            self.untold.append(self.last)
        self.say(f"complete {self.last}{' late' if is_late else ''}")

    def _tell(self, checkpoint: int) -> None:
        self.say(f"told {checkpoint}")

    def _answer(self, names: Sequence[str]) -> None:
        """What the sink will say of what the checkpoint has brought."""
        if not self.is_wild and names:
            said = self.chance.choice(("ok", "ok", "again", "error", "retry", "retry retry"))
            for name in names:
                for word in said.split() if said != "ok" else ():
                    self.say(f"answer {name} {word}")
        for name in names if self.is_wild else ():
            if self.happens(0.15):
                self.say(f"answer {name} {self.chance.choice(('again', 'error', 'retry'))}")
            while self.happens(self.rarely):
                self.say(f"answer {name} {self.chance.choice(('retry', 'retry', 'known'))}")


class CommonMaker(Maker):
    """A wild schedule that stays where both sides must show the same.

    A checkpoint that some subtasks have taken is given up with the attempt. What an aborted one
    held that all have taken is completed with one that brings nothing more. All inputs end before
    the same checkpoint. A notice is late, lost or repeated where nothing waits for it. What is
    committed at once asks for as many further tries together, and nothing is refused for a known
    reason.
    """

    def __init__(self, chance: random.Random) -> None:
        super().__init__(chance, is_wild=True)
        self.waiting: list[str] = []
        """What aborted checkpoints held, for the next one that is completed."""
        self.told: list[int] = []
        """The checkpoints that were completed in this attempt."""

    def _restart(self) -> None:
        self.waiting, self.told = [], []
        super()._restart()

    def _checkpoint(self) -> None:
        self.last += 1
        if self.oddly():
            self._abort()
            return
        order = self.chance.sample(range(self.subtasks), self.subtasks)
        ends = self.oddly() and not self.waiting
        made: list[str] = []
        for taken, subtask in enumerate(order):
            if (taken or ends) and self.oddly():
                self._give_up()
                return
            if ends:
                made += self._end(subtask, self._offered(subtask))
            made += self._barrier(subtask, self._offered(subtask))
        if self.oddly():
            self._abort()
            self.waiting += made
            return
        self._answer(made + self.waiting)
        self.told.append(self.last)
        self._complete(is_late=not made and not self.waiting and self.happens(0.5))
        self.waiting = []
        if self.oddly():
            self._tell(self.chance.choice(self.told))

    def _offered(self, subtask: int) -> list[str]:
        return [] if self.waiting or self._has_ended(subtask) else self.some_names()

    def _give_up(self) -> None:
        """The attempt ends in the middle of a checkpoint, which its coordinator may abort first."""
        if self.happens(0.5):
            self._abort()
        self._restart()

    def _answer(self, names: Sequence[str]) -> None:
        tries = 0
        while self.happens(self.rarely):
            tries += 1
        for name in names:
            last = ["again"] * self.happens(0.1) + ["error"] * self.happens(0.05)
            for word in ["retry"] * tries + last:
                self.say(f"answer {name} {word}")


def schedule(seed: int, mode: str) -> list[str]:
    """The commands of one schedule; the same for the same seed and mode, `wild` or `orderly`."""
    chance = random.Random(f"committing {mode} {seed}")
    if mode == "wild" and chance.random() >= ANYTHING_GOES:
        return CommonMaker(chance).make()
    return Maker(chance, is_wild=mode == "wild").make()
