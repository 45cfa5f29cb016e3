"""Sizes as people write them: a number and its unit.

Decides: which texts are sizes; 1MB is 1,000,000 bytes, 1MiB 1,048,576. Leaves to others: which
sizes make sense where. Pure functions, for any thread.
"""

from __future__ import annotations

import re
from decimal import Decimal

from epochgate.errors import UsageError

_BYTES = {
    "B": 1,
    "kB": 10**3,
    "KiB": 2**10,
    "MB": 10**6,
    "MiB": 2**20,
    "GB": 10**9,
    "GiB": 2**30,
}
_FORM = re.compile(r"([0-9]{1,15}(?:\.[0-9]{1,9})?)\s*([a-zA-Z]*)")


class InvalidSize(UsageError):
    """A text that was expected to be a size is none."""


def parse_size_bytes(text: str) -> int:
    """The bytes that `text` stands for. Raises `InvalidSize`.

    >>> parse_size_bytes("256MiB"), parse_size_bytes("1.5 GB"), parse_size_bytes("100mb")
    (268435456, 1500000000, 100000000)
    >>> parse_size_bytes("10")
    Traceback (most recent call last):
        ...
    epochgate.runtime.sizes.InvalidSize: '10' has no unit. Write it as 10kB, 10MB or 10GB
    """
    match = _FORM.fullmatch(text.strip())
    if match is None:
        raise InvalidSize(f"{text!r} is not a size. Expected a number and a unit, such as 256MB")
    number, unit = match.groups()
    if not unit:
        raise InvalidSize(f"{text!r} has no unit. Write it as {number}kB, {number}MB or {number}GB")
    known = {name.lower(): count for name, count in _BYTES.items()}
    if unit.lower() not in known:
        raise InvalidSize(f"{text!r} has the unit {unit!r}. Expected one of {', '.join(_BYTES)}")
    return int(Decimal(number) * known[unit.lower()])
