"""Durations as people write them: a number and its unit.

Decides: which texts are durations. Leaves to others: which lengths make sense where.
Pure functions, for any thread.
"""

from __future__ import annotations

import re
from decimal import Decimal

from epochgate.errors import UsageError

DURATION_S_MAX = 100 * 365.25 * 24 * 3600
"""A century: what is longer is a slip of the keyboard."""

_SECONDS = {
    "ms": Decimal("0.001"),
    "s": Decimal(1),
    "m": Decimal(60),
    "min": Decimal(60),
    "h": Decimal(3600),
    "d": Decimal(86400),
}
_FORM = re.compile(r"([0-9]{1,18}(?:\.[0-9]{1,9})?)\s*([a-zA-Z]*)")


class InvalidDuration(UsageError):
    """A text that was expected to be a duration is none."""


def parse_duration_s(text: str) -> float:
    """The seconds that `text` stands for, from 0. Raises `InvalidDuration`.

    >>> parse_duration_s("150ms"), parse_duration_s("2s"), parse_duration_s("1.5 min")
    (0.15, 2.0, 90.0)
    >>> parse_duration_s("10")
    Traceback (most recent call last):
        ...
    epochgate.runtime.durations.InvalidDuration: '10' has no unit. Write it as 10ms, 10s, 10m or 10h
    """
    match = _FORM.fullmatch(text.strip())
    if match is None:
        raise InvalidDuration(
            f"{text!r} is not a duration. Expected a number and a unit, such as 150ms, 2s, 1.5m or "
            "1h"
        )
    number, unit = match.groups()
    if not unit:
        raise InvalidDuration(
            f"{text!r} has no unit. Write it as {number}ms, {number}s, {number}m or {number}h"
        )
    if unit not in _SECONDS:
        raise InvalidDuration(
            f"{text!r} has the unit {unit!r}. Expected one of {', '.join(_SECONDS)}"
        )
    duration_s = float(Decimal(number) * _SECONDS[unit])
    if duration_s > DURATION_S_MAX:
        raise InvalidDuration(f"{text!r} is longer than a century. Check the number and its unit")
    return duration_s
