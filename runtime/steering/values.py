"""The values of a control: a dict of plain values.

Decides that a value is read back before anything runs with it, so that the first run of a batch and
a later one get the same; and how large it may be.  Pure; any thread.
"""

from __future__ import annotations

import math
from typing import Any, Final

from epochgate.runtime.api.plain_values import problem_of
from epochgate.runtime.entries.encoding import BYTES, from_json, to_json
from epochgate.runtime.steering.errors import ValueRefused

VALUE_BYTES_MAX: Final = 1 << 20
"""Of a control's value as it is written: it travels with each task of each batch."""

Value = dict[str, Any]


def checked(control: str, value: Any) -> Value:
    """The value as every run of a batch gets it, nothing of it shared. Raises ValueRefused.

    >>> checked("pricing", {"limit": 900, "regions": ("north", b"x")})
    {'limit': 900, 'regions': ['north', b'x']}
    """
    if type(value) is not dict or not all(type(key) is str for key in value):
        raise ValueRefused(
            f"control {control!r} holds named values, a dict with str as keys, and not {value!r}"
        )
    problem = problem_of(value) or _problem_in_json(value)
    if problem is not None:
        raise ValueRefused(
            f"control {control!r} cannot hold {value!r}: {problem}. It takes None, bool, int of "
            "64 bits, float, str, bytes, and lists and dicts of these. Write a date as text, and "
            "a number of numpy as int(x) or float(x); keep what is larger, such as a model, in a "
            "file of its own, and its name here"
        )
    written = to_json(value)
    if len(written) > VALUE_BYTES_MAX:
        largest = max(value, key=lambda key: len(to_json(value[key])))
        raise ValueRefused(
            f"the value of control {control!r} has {len(written):,} bytes, and may have "
            f"{VALUE_BYTES_MAX:,}: it travels with every task. Most of it is {largest!r}; keep "
            "that in a file of its own, and its name here"
        )
    again: Value = from_json(written)
    return again


def checked_returned(control: str, value: Any) -> Any:
    """Return what the function of a control returned, as its coordinator gets it. Raises
    ValueRefused.
    """
    if (problem := problem_of(value)) is not None:
        raise ValueRefused(
            f"the function of control {control!r} returned {value!r}: {problem}. What it returns "
            "is given to the coordinator: return None, bool, int of 64 bits, float, str, bytes, "
            "or lists and dicts of these"
        )
    return value


def _problem_in_json(value: Any) -> str | None:
    """JSON has other keys than str for nothing, and one of ours stands for bytes; and no NaN, which
    is not equal to itself when it is read back.
    """
    if isinstance(value, float) and math.isnan(value):
        return "NaN is not equal to itself; None can stand for no number"
    if isinstance(value, dict):
        strange = [key for key in value if type(key) is not str or key == BYTES]
        if strange:
            return f"the key {strange[0]!r} cannot be written"
        value = value.values()
    elif not isinstance(value, list | tuple):
        return None
    return next(filter(None, map(_problem_in_json, value)), None)
