"""An entry of a table's log as text, and what is in it. Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any


def actions_of(entry: bytes) -> list[dict[str, Any]]:
    """The actions of an entry."""
    return [json.loads(line) for line in entry.splitlines() if line.strip()]


def moment_of(text: str) -> datetime:
    """The moment of a commit, as the library (ms since 1970) or Spark (local time) says."""
    if text.isdecimal():
        return datetime.fromtimestamp(int(text) / 1000, UTC)
    return datetime.fromisoformat(text).astimezone()


def numbers_of(actions: Sequence[Mapping[str, Any]]) -> dict[str, int]:
    """The numbers of applications in an entry with these actions."""
    found = [one["txn"] for one in actions if "txn" in one]
    return {one["appId"]: int(one["version"]) for one in found}
