"""The values that a test draws: by Hypothesis, if it draws any.

Hypothesis is asked for one value after the other and remembers them, so that a run can draw the
same again, and its shrinker can look for simpler values under the same schedule. A run that draws
is begun by Hypothesis, and one that does not is none of its business: the first draw of a test ends
its run, which is begun again.
"""

from __future__ import annotations

import base64
from collections.abc import Callable
from types import ModuleType
from typing import Any, TypeVar

from epochgate.errors import UsageError

T = TypeVar("T")


class HypothesisNeeded(UsageError):
    """A test draws values, and Hypothesis is not installed."""


class NoOutcome(Exception):
    """A run ended without one: what was drawn is no possible value, or a search has seen enough."""


class FirstDraw(BaseException):
    """A run draws that Hypothesis has not begun."""


class Draws:
    """The values that one run draws: those of an earlier run, `values`, and behind these fresh ones
    from a seed; or whatever `draw` draws.
    """

    def __init__(
        self, seed: int = 0, values: bytes = b"", draw: Callable[[Any], Any] | None = None
    ) -> None:
        self._seed, self._given = seed, values
        self._draw = draw
        self.stop: BaseException | None = None
        """What has stopped a draw, and with it the run, although user code or runtime catch it."""

    def draw(self, strategy: Any) -> Any:
        """Draw a value; raises FirstDraw outside of `around`, within it what stops a test."""
        try:
            if self._draw is None:
                raise FirstDraw
            return self._draw(strategy)
        except BaseException as error:
            if not isinstance(error, Exception):
                self.stop = error
            raise

    def around(self, act: Callable[[], T], keeps: Callable[[T], bool]) -> tuple[T, bytes]:
        """Run `act`, within which values can be drawn.

        Returns what it returns, and the values if `keeps` says so. Raises NoOutcome,
        HypothesisNeeded, ValuesLost, and what `act` raises.
        """
        if self._draw is not None:
            return act(), b""

        def drawing(data: Any) -> T:
            self._draw, self.stop = data.draw, None
            return act()

        came: tuple[T, bytes] | None
        came = by_hypothesis().run_once(drawing, self._given, self._seed, keeps)
        if came is None:
            raise NoOutcome
        return came


def by_hypothesis() -> ModuleType:
    """Import what needs Hypothesis; raises HypothesisNeeded."""
    try:
        from epochgate.runtime.testing.worlds import by_hypothesis
    except ImportError as error:
        raise HypothesisNeeded(
            "world.draw needs Hypothesis, which is not installed: pip install hypothesis"
        ) from error
    return by_hypothesis


def packed(values: bytes) -> str:
    """Values as a word of letters, digits, - and _."""
    return base64.urlsafe_b64encode(values).decode().rstrip("=")


def unpacked(word: str) -> bytes:
    """The values of such a word; raises ValueError for no such word, and HypothesisNeeded."""
    values = base64.urlsafe_b64decode(word + "=" * (-len(word) % 4))
    if word and not by_hypothesis().is_known(values):
        raise ValueError(f"{word!r} holds no drawn values")
    return values
