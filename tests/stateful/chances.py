"""The source of a session's draws: one generator, seeded with the session's number.

Hypothesis' own generator begins with small examples, makes most of the others from parts of earlier
ones, and takes constants from whatever modules are imported, so that a session differs with the
tests beside it. Equal chances find broken variants of the machines in fewer examples, and the same
number explores the same schedules in every process. Hypothesis shrinks what is found.
"""

from __future__ import annotations

import random
from typing import Any, ClassVar, Never

from hypothesis.internal.conjecture.providers import AVAILABLE_PROVIDERS, PrimitiveProvider

BACKEND = "epochgate"


class EqualChances(PrimitiveProvider):
    """Draws each value of a range with the same chance; Hypothesis makes one for each session."""

    session: ClassVar[int] = 0
    """The number of the next session: Hypothesis hands nothing to a provider that it makes."""

    def __init__(self, conjecturedata: Any, /) -> None:
        super().__init__(conjecturedata)
        self._draw = random.Random(self.session).random

    def draw_boolean(self, p: float = 0.5) -> bool:
        return self._draw() < p

    def draw_integer(
        self, min_value: int | None = None, max_value: int | None = None, **ignored: Any
    ) -> int:
        """Draw an integer between two bounds."""
        if min_value is None or max_value is None:
            self._refuse()
        return min_value + int(self._draw() * (max_value - min_value + 1))

    def _refuse(self, *arguments: Any, **ignored: Any) -> Never:
        raise NotImplementedError("the fuzzer draws booleans, and integers between two bounds")

    draw_float = draw_string = draw_bytes = _refuse


AVAILABLE_PROVIDERS[BACKEND] = f"{__name__}.{EqualChances.__name__}"
