"""Durations and moments as people write and read them.

Decides: which texts are durations. Leaves to others: which lengths make sense where.
Pure functions, for any thread.
"""

from __future__ import annotations

import re
import time
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


def clock(at: float, now: float) -> str:
    """A moment as local time, with the date unless it is today's; one that no calendar has as its
    seconds since 1970.

    >>> clock(1e300, 0.0)
    '1e+300 s since 1970'
    """
    try:
        moment = time.localtime(at)
    except (OverflowError, ValueError, OSError):
        return f"{at!r} s since 1970"
    is_today = moment[:3] == time.localtime(now)[:3]
    return time.strftime("%H:%M:%S" if is_today else "%Y-%m-%d %H:%M:%S", moment)


def span(seconds: float) -> str:
    """A duration for a reader.

    >>> span(0.25), span(75), span(7500), span(200_000)
    ('0.2 s', '1 min 15 s', '2 h 5 min', '2 d 7 h')
    """
    if seconds < 60:
        return f"{max(0.0, seconds):.1f} s"
    whole = int(seconds)
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    if whole < 86_400:
        return f"{whole // 3600} h {whole % 3600 // 60} min"
    return f"{whole // 86_400} d {whole % 86_400 // 3600} h"
