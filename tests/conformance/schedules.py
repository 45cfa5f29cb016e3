"""Random schedules by seed, of both kinds: `wild` and `orderly`."""

from __future__ import annotations

import random

from tests.conformance.maker import Maker
from tests.conformance.orderly import Orderly
from tests.conformance.wild import Wild

MODES: dict[str, type[Maker]] = {"wild": Wild, "orderly": Orderly}


def schedule(seed: int, mode: str) -> list[str]:
    """The commands of one schedule; the same for the same seed and mode, one of MODES."""
    return MODES[mode](random.Random(f"{mode} {seed}")).make()
