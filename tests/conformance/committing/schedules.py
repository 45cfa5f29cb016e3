"""Random schedules for committers, by seed.

`wild` ones abort checkpoints that none, some or all subtasks have taken, end the input of single
subtasks, deliver notices late, out of order or never, and let the sink answer anything. Most of
them do so only where that meets no listed difference: these must be answered alike. The others do
anything at any moment. In `orderly` ones every checkpoint is completed and told, and all that is
committed at once is answered alike. `upstream wild` and `upstream orderly` are the same for jobs
with a committer in each task.
"""

from __future__ import annotations

import random
from collections.abc import Sequence

from tests.conformance.committing.account import Account, Retelling
from tests.conformance.committing.upstream import UpstreamAccount

ROUNDS_LEAST, ROUNDS_MOST = 4, 9
"""The bounds of a schedule's number of checkpoints."""
ANYTHING_GOES = 0.22
"""The share of wild schedules that meet the listed differences at will."""


class Topology:
    """A global committer right behind the writers, and what Flink's has been told so far."""

    words = ""
    """What `new` says of it."""
    audiences: tuple[str, ...] = ("",)
    """Whose answers there are, as `answer` says it."""

    def __init__(self, subtasks: int) -> None:
        self.subtasks = subtasks
        self.account: Retelling = self.made()

    def made(self) -> Retelling:
        """An account of Flink's."""
        self._direct = Account()
        return self._direct

    def has_ended(self, subtask: int) -> bool:
        """Return whether a subtask's writer has nothing more to hand over."""
        return subtask in self._direct.ended

    def notices(self, checkpoint: int) -> list[str]:
        """The arguments of `told` for all notices of a completed checkpoint."""
        return [str(checkpoint)]


class Upstream(Topology):
    """A committer in each task in front of it."""

    words = " upstream"
    audiences = ("", " global")

    def made(self) -> Retelling:
        self._upstream = UpstreamAccount()
        return self._upstream

    def has_ended(self, subtask: int) -> bool:
        return self._upstream.tasks[subtask].is_ended

    def notices(self, checkpoint: int) -> list[str]:
        return [f"{checkpoint} {subtask}" for subtask in range(self.subtasks)]


class Maker:
    """A schedule under construction, in which anything may happen if it `is_wild`."""

    def __init__(
        self, chance: random.Random, topology: type[Topology] = Topology, *, is_wild: bool
    ) -> None:
        self.chance, self.is_wild = chance, is_wild
        self.subtasks = chance.choice((1, 2, 2, 3))
        self.topology = topology(self.subtasks)
        self.commands: list[str] = []
        self.names = self.last = 0
        self.untold: list[str] = []
        self.rarely = 0.3 if chance.random() < 0.3 else 0.06
        """How often something odd is done."""
        self.lately = chance.choice((self.rarely, 0.7))
        """How often a notice is late."""
        self.restive = chance.choice((0.1, 0.2, 0.5))
        """How often a committable is to be tried again."""
        self.say(f"new {self.subtasks} {chance.choice((0, 1, 2, 3))}{self.topology.words}")

    def make(self) -> list[str]:
        """The commands of a whole schedule."""
        for _ in range(self.chance.randint(ROUNDS_LEAST, ROUNDS_MOST)):
            self._checkpoint()
            if self.topology.account.is_failed or self.happens(0.12):
                self._restart()
        return self.commands

    def say(self, command: str) -> None:
        self.commands.append(command)
        self.topology.account.run([command])

    def happens(self, probability: float) -> bool:
        return self.chance.random() < probability

    def oddly(self) -> bool:
        """Return whether something is done now that only a wild schedule does."""
        return self.is_wild and self.happens(self.rarely)

    def some_names(self) -> list[str]:
        made = [f"c{self.names + i + 1}" for i in range(self.chance.choice((0, 1, 1, 2)))]
        self.names += len(made)
        return made

    def in_any_order(self) -> list[int]:
        return self.chance.sample(range(self.subtasks), self.subtasks)

    def _restart(self) -> None:
        self.untold.clear()
        self.say("restart")
        while self.topology.account.is_failed:
            self.say("restart")

    def _checkpoint(self) -> None:
        self.last += 1
        made: list[str] = []
        for subtask in self.in_any_order():
            if self.oddly():
                made += self._end(self.chance.randrange(self.subtasks), self.some_names())
            if self.oddly():
                self._abort()
                return
            self._tell_late()
            made += self._barrier(subtask, self._offered(subtask))
        if self.oddly():
            made += self._end(self.chance.randrange(self.subtasks), self.some_names())
        if self.oddly():
            self._abort()
            return
        self._answer(made)
        self._tell_late()
        self._complete(is_late=self.is_wild and self.happens(self.lately))
        self._tell_late()

    def _offered(self, subtask: int) -> list[str]:
        return [] if self.topology.has_ended(subtask) else self.some_names()

    def _end(self, subtask: int, names: Sequence[str]) -> Sequence[str]:
        """The input of a subtask ends; one that has taken the barrier waits for the others."""
        if self.topology.has_ended(subtask):
            return ()
        self.say(f"end {subtask} {','.join(names) or '-'}")
        return names

    def _barrier(self, subtask: int, names: Sequence[str]) -> Sequence[str]:
        self.say(f"barrier {subtask} {self.last} {','.join(names) or '-'}")
        return names

    def _abort(self) -> None:
        self.say(f"abort {self.last}")

    def _complete(self, *, is_late: bool) -> None:
        if is_late:
            self.untold += self.topology.notices(self.last)
        self.say(f"complete {self.last}{' late' if is_late else ''}")

    def _tell_late(self) -> None:
        while self.untold and self.happens(0.3):
            self.say(f"told {self.untold.pop(self.chance.randrange(len(self.untold)))}")

    def _answer(self, names: Sequence[str]) -> None:
        """Choose what the sink will say of what the checkpoint has brought."""
        for whose in self.topology.audiences if names else ():
            if self.is_wild:
                self._answer_anything(names, whose)
            else:
                said = self.chance.choice(("", "", "again", "error", "retry", "retry retry"))
                self._answer_so(whose, [(name, said.split()) for name in names])

    def _answer_so(self, whose: str, said: Sequence[tuple[str, Sequence[str]]]) -> None:
        for name, words in said:
            for word in words:
                self.say(f"answer {name} {word}{whose}")

    def _answer_anything(self, names: Sequence[str], whose: str) -> None:
        self._answer_so(whose, [(name, self._retries() + self._outcome()) for name in names])

    def _retries(self) -> list[str]:
        tries = 0
        while self.happens(self.restive):
            tries += 1
        return ["retry"] * tries

    def _outcome(self) -> list[str]:
        """Return what is said of a committable in the end; nothing if it is committed then."""
        if not self.happens(0.1 + self.rarely / 2):
            return []
        return [self.chance.choice(("again", "known", "known", "error"))]


class CommonMaker(Maker):
    """A wild schedule that stays where both sides must show the same.

    A checkpoint that some subtasks have taken is given up with the attempt. What an aborted one
    held that all have taken is completed with one that brings nothing more. All inputs end before
    the same checkpoint, and bring nothing more where the tasks would have to pass it on. Late
    notices come newest first, to tasks before the next barrier. Of what is committed in one go the
    later committables are tried as often again as the earlier ones, or more often, and nothing that
    is completed while a notice is late.
    """

    def __init__(self, chance: random.Random, topology: type[Topology] = Topology) -> None:
        super().__init__(chance, topology, is_wild=True)
        self.waiting: list[str] = []
        """What aborted checkpoints held, for the next one that is completed."""
        self.told: list[str] = []
        """The notices of this attempt."""
        self.is_quiet = False

    @property
    def has_committers(self) -> bool:
        return self.topology.words != ""

    @property
    def has_failed(self) -> bool:
        return self.topology.account.is_failed

    def _restart(self) -> None:
        self.waiting, self.told = [], []
        super()._restart()

    def _checkpoint(self) -> None:
        self.last += 1
        if self.oddly():
            self._abort()
            return
        while self.has_committers and self.untold and not self.has_failed:
            self._tell_one()
        ends = self.oddly() and not self.waiting
        self.is_quiet = bool(self.waiting) or (ends and self.has_committers)
        made: list[str] = []
        for taken, subtask in enumerate(self.in_any_order()):
            if (taken or ends) and self.oddly():
                self._give_up()
                return
            self._tell_late()
            if self.has_failed:
                return
            if ends:
                made += self._end(subtask, self._offered(subtask))
            made += self._barrier(subtask, self._offered(subtask))
        if self.oddly():
            self._abort()
            self.waiting += made
            return
        self._answer(made + self.waiting)
        is_late = self.happens(self.lately)
        if self.untold:
            self.told += self.untold
            self.untold = []
        self._complete(is_late=is_late)
        if not is_late:
            self.told += self.topology.notices(self.last)
        self.waiting = []
        self._tell_late()

    def _offered(self, subtask: int) -> list[str]:
        return [] if self.is_quiet else super()._offered(subtask)

    def _tell_late(self) -> None:
        while self.untold and not self.has_failed and self.happens(0.3):
            self._tell_one()
        if self.told and not self.untold and not self.has_failed and self.oddly():
            self.say(f"told {self.chance.choice(self.told)}")

    def _tell_one(self) -> None:
        self.told.append(self.untold.pop(self.chance.randrange(len(self.untold))))
        self.say(f"told {self.told[-1]}")

    def _give_up(self) -> None:
        """The attempt ends in the middle of a checkpoint, which its coordinator may abort first."""
        if self.happens(0.5):
            self._abort()
        self._restart()

    def _answer_anything(self, names: Sequence[str], whose: str) -> None:
        tries = iter(sorted(self._retries() for _ in names))
        self._answer_so(whose, [(name, next(tries) + self._outcome()) for name in names])

    def _retries(self) -> list[str]:
        return [] if self.untold else super()._retries()


def schedule(seed: int, kind: str) -> list[str]:
    """The commands of one schedule; the same for the same seed and kind."""
    chance = random.Random(f"committing {kind} {seed}")
    *upstream, mode = kind.split()
    topology = Upstream if upstream else Topology
    if mode == "wild" and chance.random() >= ANYTHING_GOES:
        return CommonMaker(chance, topology).make()
    return Maker(chance, topology, is_wild=mode == "wild").make()
