"""Random walks: each likes other kinds of steps, and all take first what none has taken yet.

Source: Groce et al., Swarm Testing (ISSTA 2012), for leaving out kinds of steps by chance.
"""

from __future__ import annotations

import itertools
import random
from collections import Counter, defaultdict
from collections.abc import Mapping
from typing import Any

from tests.checker.side_by_side import drawn

SEEN_MAX = 2
"""A walk that comes back to a state more often goes round in circles."""
EAGERNESS = 0.5
"""How often what waits is processed, if a step could begin instead."""


class Swarm:
    """Draws steps: of all processes or for a while of one, each kind as often as this walk likes
    it, and first of all those that are not in `taken` yet. With `usual`, which tells of each
    whether it happens unless something goes wrong, mostly these, and all kinds alike.
    """

    def __init__(self, seed: int, taken: set[str], usual: Mapping[str, bool] | None = None) -> None:
        self.chance, self._taken = random.Random(seed), taken
        self._usual = dict(usual or {})
        self._liked = defaultdict[str, float](lambda: self.chance.choice((1, 0.1, 0.01)))
        self._alone = ""

    def new(self, possible: list[str]) -> list[str]:
        """Those of a kind that was not taken yet."""
        return [step for step in possible if kind(step) not in self._taken]

    def draw(self, possible: list[str], *, counts: bool = True) -> str:
        """One of the possible steps, which is taken then; unless it `counts`, not for new."""
        step = self._drawn(possible, self.new(possible) if counts else [])
        if counts:
            self._taken.add(kind(step))
        return step

    def _drawn(self, possible: list[str], new: list[str]) -> str:
        chance = self.chance
        if new:
            return chance.choice(new)
        if self._usual:
            return drawn(chance, self._usual, possible)
        if chance.random() < 0.1:
            self._alone = chance.choice(["", "[0]", "[1]"])
        near = [step for step in possible if self._alone in step or "[" not in step] or possible
        return chance.choices(near, [self._liked[kind(step)] for step in near])[0]


def swarm_of(stage: Any, seed: int, taken: set[str]) -> Swarm:
    """Every other walk takes what is usual at a stage."""
    return Swarm(seed, taken, None if seed % 2 else stage.steps)


def walk(stage: Any, swarm: Swarm, steps_max: int | None = None) -> None:
    """Take random steps, each of which ends before the next one begins, until a state is there for
    the third time; with `steps_max` as many steps as that.
    """
    seen = Counter[tuple[int, ...]]()
    for _ in itertools.count() if steps_max is None else range(steps_max):
        if not (possible := stage.possible()):
            return
        if steps_max is None:
            words = stage.machines.words()
            if seen[words] == SEEN_MAX:
                return
            seen[words] += 1
        stage.take(swarm.draw(possible))


def interleave(stage: Any, swarm: Swarm, steps_max: int) -> None:
    """Begin random steps while the events of earlier ones wait; kinds that begin so count."""
    for _ in range(steps_max):
        possible, waits = stage.possible(), bool(stage.waiting)
        new = swarm.new(possible)
        if waits and not new and (not possible or swarm.chance.random() < EAGERNESS):
            stage.process()
        elif possible:
            stage.begin(swarm.draw(possible, counts=waits))
        else:
            return
    while stage.waiting:
        stage.process()


def kind(step: str) -> str:
    """For instance `client.lose`, whichever client it is."""
    return "".join(part.rpartition("]")[2] for part in step.split("["))
