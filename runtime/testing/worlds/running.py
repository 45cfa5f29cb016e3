"""One run of a test: a world is made, the test's body acts in it, the faults end, and what came of
it is kept. A run depends on its test, its schedule and what is drawn, and on nothing else.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from traceback import extract_tb
from typing import Any

from epochgate.errors import UsageError
from epochgate.fsm import Row
from epochgate.runtime.testing.worlds.claims import ClaimBroken, Place
from epochgate.runtime.testing.worlds.data import Draws, NoOutcome
from epochgate.runtime.testing.worlds.differences import Sides, sides_of_assertion
from epochgate.runtime.testing.worlds.escapes import Escapes
from epochgate.runtime.testing.worlds.schedule import At, Choosing, Deviation
from epochgate.runtime.testing.worlds.trace import Happening, Keeps
from epochgate.runtime.testing.worlds.world import World

Body = Callable[[World], Any]


@dataclass
class Run:
    """The outcome of one run; `broken` is None when every claim held."""

    deviations: list[Deviation]
    trace: list[Happening]
    drawn: list[tuple[str, Any]]
    broken: ClaimBroken | None
    values: bytes = b""
    """What Hypothesis has drawn, to draw it again, of a run that fails or is replayed."""
    cause: BaseException | None = None
    """The assertion that failed in the test's body."""
    taken: set[tuple[str, str, Row]] = field(default_factory=set)
    struck: set[tuple[str, str]] = field(default_factory=set)
    reached: dict[str, bool] = field(default_factory=dict)
    """Each sentence of `sometimes`, and whether it came true."""
    steps: int = 0
    calls: int = 0
    """Of the test, before the faults ended."""
    own: dict[str, dict[str, str]] = field(default_factory=dict)
    """What the user's objects had when the claim broke."""

    @property
    def moments(self) -> list[At]:
        """The steps at which something happened."""
        return [happening.at for happening in self.trace] or [(1, 1)]

    @property
    def faults(self) -> int:
        """The number of faults that happened."""
        return sum(deviation.is_fault for deviation in self.deviations)


def run(
    body: Body,
    choosing: Choosing,
    draws: Draws,
    escapes: Escapes,
    *,
    keeps: Keeps = "nothing",
) -> Run:
    """Run the body once, within `escapes`' guard.

    Raises UsageError for what the test cannot mean, and what stops a run without an outcome:
    `DrawnTooMuch`, an assumption of Hypothesis that does not hold, the end of a search.
    """
    world = World(choosing, draws.draw, keeps=keeps)
    broken, cause = None, None
    try:
        try:
            body(world)
            world.conclude()
        finally:
            if draws.stop is not None:
                escapes.found.clear()
                raise draws.stop
            escapes.raise_first()
    except ClaimBroken as error:
        broken, cause = error, error.__cause__
    except (UsageError, NoOutcome):
        raise
    except Exception as error:  # the test's body may raise anything, by this schedule
        if type(error).__name__ == "UnsatisfiedAssumption":
            raise NoOutcome from error
        broken, cause = _failed(error), error
    one = _kept(world, broken, cause)
    if broken is not None and broken.kind == "assertion" and isinstance(cause, AssertionError):
        with world.only_looking():
            broken.sides = _sides_of(cause, broken.place)
    return one


def _sides_of(error: AssertionError, place: Place | None) -> Sides | None:
    if place is None:
        return None
    return sides_of_assertion(error.__traceback__, place.file, place.line)


def _kept(world: World, broken: ClaimBroken | None, cause: BaseException | None) -> Run:
    claims = world.claims
    return Run(
        deviations=world.deviations,
        trace=list(world.trace),
        drawn=world.drawn,
        broken=broken,
        cause=cause,
        taken=world.rows_taken,
        struck=world.struck,
        reached={text: text in claims.reached for text in claims.sometimes},
        steps=world.steps,
        calls=world.calls,
        own={} if broken is None else world.own_values(),
    )


def _failed(error: Exception) -> ClaimBroken:
    """An assertion of the body, or another error in it, as a claim at its line."""
    frames = [f for f in extract_tb(error.__traceback__) if not _is_ours(f.filename)]
    last = frames[-1] if frames else None
    place = None if last is None else Place(last.filename, last.lineno or 0)
    told = str(error).split("\n")[0]
    line = last.line if last is not None and last.line else "assert"
    text = line if not told or told.startswith("assert ") else told
    if not isinstance(error, AssertionError):
        text = f"{type(error).__name__}: {text}"
    return ClaimBroken("assertion", text, str(error), place)


HERE = Path(__file__).parent


def _is_ours(file: str) -> bool:
    return Path(file).parent == HERE
