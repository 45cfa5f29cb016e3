"""A schedule: the default one, and the sparse list of what differs from it.

The default schedule is first in, first out, without faults. Whatever else can happen is a deviation
at a numbered step, so that a schedule is as long as it is strange: fewer deviations are a simpler
schedule, and a token of a few words replays it. Steps are counted within each call of the test, so
that what is left out of one call moves nothing in the next. Who decides on them (`Choosing`) is
chance (`AtRandom`), or a list (`Listed`).
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final, Protocol

from epochgate.errors import UsageError

GO_ON: Final = "go-on"
"""The test's next line happens now, and not when the job has come to rest."""
DELAY: Final = "delay"
"""Whose turn it is goes to the end of the line."""
HOLD: Final = "hold"
"""Whose turn it is waits until nothing else moves."""
ORDERS: Final = (GO_ON, DELAY, HOLD)
"""Deviations that are no faults."""


class TokenMalformed(UsageError):
    """A token that names no schedule."""


At = tuple[int, int]
"""The number of a call of the test, from 1, and of a step within it, from 1."""


@dataclass(frozen=True, order=True)
class Deviation:
    """At step `at`, `what` happens, to the `which`-th of those to which it can happen."""

    at: At
    what: str
    which: int = 0

    @property
    def is_fault(self) -> bool:
        """True if something goes wrong, and not only late."""
        return self.what not in ORDERS

    def __str__(self) -> str:
        call, step = self.at
        return f"{call}:{step}{self.what}" + (f".{self.which}" if self.which else "")


ONE: Final = re.compile(r"(\d+):(\d+)([a-z][a-z-]*)(?:\.(\d+))?")


def token_of(deviations: Iterable[Deviation]) -> str:
    """A schedule as one word; `-` is the default schedule.

    >>> token_of([Deviation((1, 3), "hold"), Deviation((2, 12), "die", 1)])
    '1:3hold,2:12die.1'
    """
    return ",".join(map(str, deviations)) or "-"


def deviations_of(token: str) -> list[Deviation]:
    """The deviations that a token names; raises TokenMalformed."""
    found = []
    for word in [] if token == "-" else token.split(","):
        match = ONE.fullmatch(word)
        if match is None:
            raise TokenMalformed(
                f"{word!r} in the token {token!r} is no deviation; a token looks like "
                "'1:3hold,2:12die.1' and stands in the report of a failure: copy it as it is"
            )
        at = int(match[1]), int(match[2])
        found.append(Deviation(at, match[3], int(match[4] or 0)))
    return found


class Moment(Protocol):
    """One step of a run, as far as a choice needs to know it."""

    @property
    def at(self) -> At:
        """The number of the step."""
        ...

    def options(self, what: str) -> int:
        """To how many a deviation can happen at this moment."""
        ...

    def doing(self) -> str:
        """Tell what the job does, in a word."""
        ...


class Choosing(Protocol):
    """Decides what differs from the default schedule."""

    def at(self, moment: Moment) -> Sequence[Deviation]:
        """Return what deviates before this step."""
        ...


class Listed:
    """Does what a list says; what cannot happen when its step comes is left out."""

    def __init__(self, deviations: Iterable[Deviation]) -> None:
        self._due: dict[At, list[Deviation]] = {}
        for deviation in deviations:
            self._due.setdefault(deviation.at, []).append(deviation)

    def at(self, moment: Moment) -> Sequence[Deviation]:
        """Return what the list has for this step."""
        return self._due.get(moment.at, ())


class Looking:
    """The default schedule, which is asked what could have deviated: `points` has each fault with
    what the job was doing.
    """

    def __init__(self, kinds: Iterable[str]) -> None:
        self._faults = [kind for kind in kinds if kind not in ORDERS]
        self.points: set[tuple[str, str]] = set()

    def at(self, moment: Moment) -> Sequence[Deviation]:
        """Nothing."""
        doing = moment.doing()
        self.points |= {(kind, doing) for kind in self._faults if moment.options(kind)}
        return ()


RATES: Final = (0.003, 0.03, 0.1, 0.3)
"""How often the order is changed, one of them in each run: few deviations find what many hide."""
SWARMS: Final = (0.1, 0.3, 0.6)
"""Which part of the kinds a run has."""


class AtRandom:
    """Draws deviations, the same for the same seed and the same default schedule.

    Each fault has a moment, one of the steps of the default schedule, and happens as soon as it can
    from then on, so that what can happen seldom is as likely as the rest. Swarm testing:
    each run leaves most kinds out, so that those which are left meet each other more often.
    """

    def __init__(
        self, seed: int, faults_max: int, steps: Sequence[At], kinds: Sequence[str]
    ) -> None:
        self._random = draws = random.Random(seed)
        self._rate = draws.choice(RATES)
        share = draws.choice(SWARMS)
        swarm = [kind for kind in kinds if draws.random() < share] or list(kinds)
        self._orders = [kind for kind in swarm if kind in ORDERS] or [GO_ON]
        faults = [kind for kind in swarm if kind not in ORDERS]
        count = draws.randint(0 if self._rate > RATES[0] else 1, faults_max) if faults else 0
        self._due = sorted((draws.choice(steps), draws.choice(faults)) for _ in range(count))

    def at(self, moment: Moment) -> Sequence[Deviation]:
        """Nothing, most of the time."""
        for position, (step, kind) in enumerate(self._due):
            if step > moment.at:
                break
            if options := moment.options(kind):
                del self._due[position]
                return (Deviation(moment.at, kind, self._random.randrange(options)),)
        if self._random.random() < self._rate:
            kind = self._random.choice(self._orders)
            if moment.options(kind):
                return (Deviation(moment.at, kind),)
        return ()
