"""Looks for a simpler run that breaks the same claim: fewest faults, then fewest deviations from
the default schedule, then simpler values, and each deviation as early as it can be.

Each try is a run, so that whatever is reported was seen. Values are shrunk by Hypothesis, under the
same schedule.
"""

from __future__ import annotations

import copy
import random
from collections.abc import Callable, Iterator
from typing import Any, Final

from epochgate.runtime.testing.worlds.data import Draws, by_hypothesis
from epochgate.runtime.testing.worlds.running import Run
from epochgate.runtime.testing.worlds.schedule import Deviation

TRIES_MAX: Final = 1500
"""How many runs shrinking may take."""
DATA_TRIES_MAX: Final = 300
ELSEWHERE_TRIES_MAX: Final = 300
SOON: Final = 6
"""Steps after a call of the test, in which more is under way than later."""
PLAIN: Final = ("die", "crash", "fail-everything")
"""Faults that anyone understands; each is tried in the place of a stranger one."""

Again = Callable[[list[Deviation], Draws], Run | None]
"""Runs a schedule; None without an outcome."""


class Shrinking:
    """Shrinks one failure; `tries` counts the runs that it took."""

    def __init__(self, again: Again) -> None:
        self._again = again
        self.tries = 0

    def shrunk(self, failing: Run) -> Run:
        """The simplest that is found within `TRIES_MAX` runs."""
        best = self._same(failing, failing.deviations) or failing
        best, size = self._elsewhere(self._with_fewer(best)), None
        while size != self._size(best):
            size = self._size(best)
            best = self._with_fewer(best)
            best = self._with_simpler_values(best)
            best = self._with_earlier(best)
        return best

    def _size(self, one: Run) -> tuple[Any, ...]:
        values = len(one.values), one.values
        return one.faults, len(one.deviations), values, tuple(one.deviations)

    def _same(self, failing: Run, deviations: list[Deviation]) -> Run | None:
        """The run of these deviations, if it breaks the same claim."""
        if self.tries >= TRIES_MAX:
            return None
        self.tries += 1
        one = self._again(deviations, Draws(0, failing.values))
        return one if one is not None and is_like(one, failing) else None

    def _with_fewer(self, best: Run) -> Run:
        """Leave out deviations, faults first: many at once, then one by one."""
        for chosen in (True, False):
            size = max(1, sum(d.is_fault is chosen for d in best.deviations))
            while size >= 1:
                for chunk in _chunks([d for d in best.deviations if d.is_fault is chosen], size):
                    rest = [d for d in best.deviations if d not in chunk]
                    if len(rest) < len(best.deviations):
                        best = self._simpler(best, rest)
                size //= 2
        return best

    def _elsewhere(self, best: Run) -> Run:
        """Try fewer deviations of the same kinds at other steps: leaving one out shifts the others,
        so that the same failure with one less need not be near.
        """
        draws, tries = random.Random(best.steps), 0
        while len(best.deviations) > 1 and tries < ELSEWHERE_TRIES_MAX:
            tries += 1
            simpler = self._simpler(best, _moved(best, draws))
            if simpler is not best:
                best, tries = self._with_fewer(simpler), 0
        return best

    def _simpler(self, best: Run, deviations: list[Deviation]) -> Run:
        one = self._same(best, deviations)
        return one if one is not None and self._size(one) < self._size(best) else best

    def _with_simpler_values(self, best: Run) -> Run:
        if not best.values:
            return best
        found = by_hypothesis().shrunk(
            best.values, lambda data: self._with_values(best, data), DATA_TRIES_MAX
        )
        if found is None:
            return best
        simpler, values = found
        self.tries += 1
        one = self._again(simpler.deviations, Draws(0, values))
        return one if one is not None and is_like(one, best) else best

    def _with_values(self, best: Run, data: Any) -> Run | None:
        """The run with these values, if it breaks the same claim. Where the test makes fewer calls
        with them, the deviations may be as much earlier, so that they meet the same calls as
        before.
        """
        drawn: list[Any] = []

        def draw(strategy: Any) -> Any:
            value = data.draw(strategy)
            drawn.append(_copied(value))
            return value

        self.tries += 1
        one = self._again(best.deviations, Draws(draw=draw))
        if one is None or is_like(one, best):
            return one
        fewer = best.calls - one.calls
        earlier = [_called_earlier(each, fewer) for each in best.deviations]
        if fewer < 1 or earlier == best.deviations:
            return None
        self.tries += 1
        again = iter(drawn)
        other = self._again(earlier, Draws(draw=lambda strategy: next(again)))
        return other if other is not None and is_like(other, best) else None

    def _with_earlier(self, best: Run) -> Run:
        """Let each fault be a plain one, and each deviation happen as early as it shows the same,
        to the first that it can happen to.
        """
        for position in range(len(best.deviations)):
            for other in _easier(best.deviations[position]):
                changed = list(best.deviations)
                changed[position] = other
                simpler = self._simpler(best, sorted(changed, key=lambda d: d.at))
                if simpler is not best:
                    best = simpler
                    break
        return best


def is_like(one: Run, other: Run) -> bool:
    """Return whether two runs break the same claim."""
    if one.broken is None or other.broken is None:
        return False
    return one.broken.is_like == other.broken.is_like


def _copied(value: Any) -> Any:
    """A value as it was drawn, whatever the test makes of it."""
    try:
        return copy.deepcopy(value)
    except (TypeError, RuntimeError):  # a generator or a function's closure, say
        return value


def _moved(one: Run, draws: random.Random) -> list[Deviation]:
    """All faults and some other deviations, half of them at other steps, some as plain faults."""
    faults = [each for each in one.deviations if each.is_fault]
    others = [each for each in one.deviations if not each.is_fault]
    kept = [*faults, *draws.sample(others, draws.randrange(len(others)))] if others else faults
    moved = []
    for each in kept:
        what = draws.choice(PLAIN) if each.is_fault and draws.random() < 0.5 else each.what
        at = each.at if draws.random() < 0.3 else draws.choice(one.moments)
        if at != each.at and draws.random() < 0.5:
            at = at[0], draws.randint(1, SOON)
        moved.append(Deviation(at, what, 0 if what != each.what else each.which))
    return sorted(moved, key=lambda each: each.at)


def _called_earlier(one: Deviation, calls: int) -> Deviation:
    """The deviation at a call as much earlier; one at the first calls stays where it is."""
    call, step = one.at
    return one if call <= calls else Deviation((call - calls, step), one.what, one.which)


def _chunks(deviations: list[Deviation], size: int) -> Iterator[list[Deviation]]:
    for begin in range(0, len(deviations), size):
        yield deviations[begin : begin + size]


def _easier(one: Deviation) -> Iterator[Deviation]:
    if one.is_fault and one.what not in PLAIN:
        for plain in PLAIN:
            yield Deviation(one.at, plain, one.which)
    if one.which:
        yield Deviation(one.at, one.what, 0)
    call, step = one.at
    for earlier in dict.fromkeys((1, step // 2, step - step // 4, step - 1)):
        if 0 < earlier < step:
            yield Deviation((call, earlier), one.what, one.which)
