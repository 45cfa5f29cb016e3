"""The values that a test draws: by Hypothesis, if it draws any.

Hypothesis is asked for one value after the other and remembers its choices, so that a run can draw
the same again, and its shrinker can look for simpler values under the same schedule.
"""

from __future__ import annotations

import base64
import contextlib
import random
from collections.abc import Callable, Iterable
from typing import Any, Protocol, Self

from epochgate.errors import UsageError


class HypothesisNeeded(UsageError):
    """A test draws values, and Hypothesis is not installed."""


class NoOutcome(Exception):
    """A run ended without one: what was drawn is no possible value, or a search has seen enough."""


class Draws:
    """The values that one run draws: fresh from a seed, the same as `choices`, or by what `drawing`
    draws. `goes_on`: behind the choices from the seed. As a context manager it is one run:
    strategies that build objects, and those that draw when they are called, need Hypothesis to know
    of it.
    """

    def __init__(
        self,
        seed: int = 0,
        choices: tuple[Any, ...] | None = None,
        drawing: Drawing | None = None,
        goes_on: bool = False,
    ) -> None:
        self._seed, self._given, self._drawing = seed, choices, drawing
        self._goes_on = goes_on
        self._data: Any = None
        self._building = contextlib.ExitStack()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self._building.close()

    def draw(self, strategy: Any) -> Any:
        """Draw a value; raises HypothesisNeeded."""
        if self._drawing is not None:
            return self._drawing.draw(strategy)
        if self._data is None:
            self._data = self._made()
            from hypothesis.control import BuildContext

            self._building.enter_context(BuildContext(self._data, wrapped_test=self.draw))
        from hypothesis.errors import StopTest

        try:
            return self._data.draw(strategy)
        except StopTest as stop:
            raise NoOutcome from stop

    def _made(self) -> Any:
        try:
            from hypothesis.internal.conjecture.data import ConjectureData
        except ImportError as error:
            raise HypothesisNeeded(
                "world.draw needs Hypothesis, which is not installed: pip install 'epochgate[fuzz]'"
            ) from error
        if self._goes_on:
            return ConjectureData(random=random.Random(self._seed), prefix=self._given or ())
        if self._given is not None:
            return ConjectureData.for_choices(self._given)
        return ConjectureData(random=random.Random(self._seed))

    @property
    def choices(self) -> tuple[Any, ...]:
        """The choices so far."""
        if self._data is None:
            return ()
        return tuple(self._data.choices)


def packed(choices: tuple[Any, ...]) -> str:
    """Choices as a word of letters, digits, - and _."""
    if not choices:
        return ""
    from hypothesis.database import choices_to_bytes

    return base64.urlsafe_b64encode(choices_to_bytes(choices)).decode().rstrip("=")


def unpacked(word: str) -> tuple[Any, ...] | None:
    """The choices of such a word, None for the empty one; raises ValueError for no such word."""
    if not word:
        return None
    from hypothesis.database import choices_from_bytes

    data = base64.urlsafe_b64decode(word + "=" * (-len(word) % 4))
    choices = choices_from_bytes(data)
    if choices is None:
        raise ValueError(f"{word!r} holds no drawn values")
    return tuple(choices)


def shrunk(
    choices: tuple[Any, ...], fails: Callable[[Drawing], bool], calls_max: int
) -> tuple[Any, ...]:
    """The simplest choices, as Hypothesis orders them, with which `fails` is still true."""
    import hypothesis
    from hypothesis import strategies
    from hypothesis.database import ExampleDatabase, choices_to_bytes

    class Known(ExampleDatabase):
        """Holds the one failure from which shrinking begins."""

        def fetch(self, key: bytes) -> Iterable[bytes]:
            # Hypothesis shrinks its second best once more, and not its best.
            return [choices_to_bytes(choices)] if key.endswith(b".secondary") else []

        def save(self, key: bytes, value: bytes) -> None:
            """Nothing is kept: what is found goes into the token."""

        delete = save

    best, calls = [choices], 0

    @hypothesis.settings(
        database=Known(),
        phases=(hypothesis.Phase.reuse, hypothesis.Phase.shrink),
        deadline=None,
        print_blob=False,
        report_multiple_bugs=False,
        verbosity=hypothesis.Verbosity.quiet,
        suppress_health_check=list(hypothesis.HealthCheck),
    )
    @hypothesis.given(strategies.data())
    def search(data: Any) -> None:
        nonlocal calls
        calls += 1
        if calls <= calls_max and fails(data):
            best[0] = tuple(data.conjecture_data.choices)
            raise StillFails

    with contextlib.suppress(StillFails, hypothesis.errors.HypothesisException):
        search()
    return best[0]


class Drawing(Protocol):
    """A source of drawn values."""

    def draw(self, strategy: Any) -> Any:
        """Draw one."""
        ...


class StillFails(Exception):
    """A run with simpler values fails as well."""
