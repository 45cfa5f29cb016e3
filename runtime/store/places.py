"""The places of the committables of earlier checkpoints on their way to the global committer, as a
checkpoint stores them.

Decides the form of the property that says so. A job whose committables go straight from the writers
to the global committer stores none, but for commits that have failed. Pure values.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final

from epochgate.runtime.api.committing import Share
from epochgate.runtime.store.checkpoint import PLACES, CompletedCheckpoint

__all__ = ["PLACES", "Place", "places_of", "states_of"]

STATES: Final = "epochgate.committing.states"
"""The property of a job whose commits take several steps: the states of the operators with
parallelism 1: "before" and "behind" -> list of bytes.
"""
BEFORE, TASKS, BEHIND, GLOBAL = "before", "tasks", "behind", "global"
"""In front of the operators on the driver, in the tasks, in front of the operators behind them, and
at the global committer.
"""


@dataclass
class Place:
    """The place of one checkpoint. shares: in the tasks, the state of each subtask's part. tries:
    of each subtask how many of its commits have failed; at the global committer under -1.
    summaries: behind the tasks, [subtask, committables, failed] each.
    """

    at: str
    shares: list[Share] = field(default_factory=list)
    tries: dict[int, int] = field(default_factory=dict)
    summaries: list[list[int]] = field(default_factory=list)

    def flat(self) -> dict[str, Any]:
        """As it is stored."""
        shares = [share.flat() for share in self.shares]
        found = {"shares": shares, "tries": self.tries, "summaries": self.summaries}
        return {"at": self.at, **{name: value for name, value in found.items() if value}}


def places_of(checkpoint: CompletedCheckpoint) -> dict[int, Place]:
    """The places of earlier checkpoints; none of those that wait for the global committer, as all
    do in a job without other steps.
    """
    found: dict[int, dict[str, Any]] = checkpoint.properties.get(PLACES, {})
    return {
        number: Place(
            flat["at"],
            [Share(*share) for share in flat.get("shares", [])],
            dict(flat.get("tries", {})),
            list(flat.get("summaries", [])),
        )
        for number, flat in found.items()
    }


def states_of(checkpoint: CompletedCheckpoint | None, side: str) -> list[bytes] | None:
    """The states of the operators on the driver on one side of the tasks; none if it has none."""
    if checkpoint is None:
        return None
    states: dict[str, list[bytes]] = checkpoint.properties.get(STATES, {})
    return states.get(side)
