"""NAME=JSON on the command line."""

from __future__ import annotations

import json
from typing import Any

from epochgate.errors import UsageError


class AssignmentRefused(UsageError):
    """The assignment is not NAME=JSON."""


def assigned(text: str) -> tuple[str, Any]:
    """Return the name and the value. Raises AssignmentRefused."""
    name, sign, value = text.partition("=")
    try:
        return name, json.loads(value)
    except ValueError:
        quoted = f"{name}='{json.dumps(value)}'"
        hint = f"; a word stands in quotes, {quoted}" if sign else ""
        raise AssignmentRefused(f"{text!r} is not NAME=JSON{hint}") from None
