"""The choice of steps in random walks: each walk likes other kinds of steps."""

from __future__ import annotations

import random
from collections import defaultdict

SEEN_MAX = 2
"""A walk that comes back to a state more often goes round in circles."""


class Swarm:
    """Draws steps: of all processes or for a while of one `alone`, each kind as often as this walk
    likes it, and first of all those that are not in `taken` yet.
    """

    def __init__(self, seed: int, taken: set[str]) -> None:
        self._draw, self._taken = random.Random(seed), taken
        self._liked = defaultdict[str, float](lambda: self._draw.choice((1, 0.1, 0.01)))
        self._alone = ""
        self.counts = True
        """What is drawn now is taken note of."""

    def draw(self, possible: list[str]) -> str:
        """One of the possible steps."""
        draw = self._draw
        if draw.random() < 0.1:
            self._alone = draw.choice(["", "[0]", "[1]"])
        near = [step for step in possible if self._alone in step or "[" not in step] or possible
        new = [step for step in possible if self.counts and kind(step) not in self._taken]
        weights = [self._liked[kind(step)] for step in near]
        step = draw.choice(new) if new else draw.choices(near, weights)[0]
        if self.counts:
            self._taken.add(kind(step))
        return step


def kind(step: str) -> str:
    """For instance `client.lose`, whichever client it is."""
    return "".join(part.rpartition("]")[2] for part in step.split("["))
