"""The errors epochgate raises: each says what was found, what was expected, and what to do next.

A user's mistake derives from `UsageError` (exit code 2), a result that is simply negative from
`NegativeResult` (exit code 1); anything else is a fault of the job or of its surroundings.
"""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches


class EpochgateError(Exception):
    """The root of every error that epochgate raises on purpose."""

    exit_code = 1


class UsageError(EpochgateError):
    """The caller asked for something that cannot be done as asked."""

    exit_code = 2


class NegativeResult(EpochgateError):
    """The work was done, and its answer is no."""


def instead_of(name: str, known: Iterable[str]) -> str:
    """Say which name was perhaps meant; all of them where none is near.

    >>> instead_of("paralelism", ["parallelism", "retained"])
    "did you mean 'parallelism'?"
    >>> instead_of("cores", ["parallelism", "retained"])
    'there are parallelism, retained'
    """
    known = list(known)
    near = get_close_matches(name, known, 1)
    return f"did you mean {near[0]!r}?" if near else f"there are {', '.join(known)}"


class InvariantBroken(EpochgateError):
    """epochgate itself is wrong: something that its protocol excludes has happened."""
