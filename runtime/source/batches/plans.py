"""The layout of the plans of a stream in its state.

STATE/STREAM ID/plans/000000000000042.json    the splits of the 42nd batch of a source
"""

from __future__ import annotations

from typing import Final

from epochgate.runtime.entries.numbered import Kind, Numbered
from epochgate.runtime.entries.stores import Entries

PLANS: Final = "plans"
_PLAN: Final = Kind(
    frozenset(("batch", "splits", "version", "state")),
    "batch",
    "Restore the file from a backup, or use an empty checkpoint location",
)


def plans_of(entries: Entries, stream: str) -> Numbered:
    """The plans of a stream."""
    return Numbered(entries, f"{stream}/{PLANS}", _PLAN)
