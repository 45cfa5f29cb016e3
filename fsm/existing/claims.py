"""Claims about a machine of another library, over the names of its states."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Claim:
    """A demand on a machine; `kind` is the name of the function that makes it."""

    kind: str
    states: tuple[str, ...] = ()
    holds: Callable[[str], bool] | None = None
    place: tuple[str, int] = field(default_factory=lambda: _caller(), compare=False)
    """The file and line in which it stands."""


def _caller() -> tuple[str, int]:
    frame = sys._getframe()  # what inspect reads as well, without its sources
    while frame.f_back is not None and frame.f_globals.get("__name__") in (__name__, "dataclasses"):
        frame = frame.f_back
    return frame.f_code.co_filename, frame.f_lineno


def always(holds: Callable[[str], bool]) -> Claim:
    """Claim that the function holds of the name of each state that is reached."""
    return Claim("always", (), holds)


def sometimes(holds: Callable[[str], bool]) -> Claim:
    """Claim that the function holds of the name of some state that is reached."""
    return Claim("sometimes", (), holds)


def never(*states: str) -> Claim:
    """Claim that none of the states is ever entered."""
    return Claim("never", states)


def before(first: str, then: str) -> Claim:
    """Claim that `then` is never entered unless `first` was entered earlier."""
    return Claim("before", (first, then))


def never_follows(first: str, then: str) -> Claim:
    """Claim that `then` is never entered directly from `first`."""
    return Claim("never_follows", (first, then))


def happens(*states: str) -> Claim:
    """Claim that some run enters these states in this order; others may come between."""
    return Claim("happens", states)
