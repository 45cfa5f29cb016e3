"""One start of a job with what is kept of each of its events, for those who look back.

Decides what is kept, and how much: `KEPT_MAX` of each kind, the newest, so that a run of months
does no harm. Events are taken in their plain form, as by `RunSummary`, with which it goes along:
the page of a running job, and a reader of the history, come to the same.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from epochgate.runtime.observing.run_summary import SUMS, Plain, RunSummary

KEPT_MAX: Final = 5000
LISTS: Final[Mapping[str, str]] = {
    "CheckpointEnded": "checkpoints",
    "Committed": "commits",
    "CommitFailed": "commits",
    "SavepointWritten": "savepoints",
    "SubtasksUp": "failovers",
    "SubtaskFailed": "failovers",
    "SubtaskRestarted": "failovers",
    "AttemptOutlived": "failovers",
    "JobRestarts": "failovers",
    "Warned": "warnings",
    "CoordinatorTold": "told",
}
"""The list that keeps an event, by its kind."""


def _few() -> deque[dict[str, Any]]:
    return deque(maxlen=KEPT_MAX)


@dataclass
class RecordedRun:
    """The run summed up, and the newest of its events, oldest first. A checkpoint has the figures
    of tasks and coordinators as of its end.
    """

    summary: RunSummary = field(default_factory=RunSummary)
    checkpoints: deque[dict[str, Any]] = field(default_factory=_few)
    commits: deque[dict[str, Any]] = field(default_factory=_few)
    savepoints: deque[dict[str, Any]] = field(default_factory=_few)
    failovers: deque[dict[str, Any]] = field(default_factory=_few)
    warnings: deque[dict[str, Any]] = field(default_factory=_few)
    told: deque[dict[str, Any]] = field(default_factory=_few)

    def apply(self, told: Plain) -> None:
        """Take in one event, in its plain form; kinds that are not known are passed over."""
        self.summary.apply(told)
        kind = str(told.get("event"))
        if kind not in LISTS:
            return
        kept: deque[dict[str, Any]] = getattr(self, LISTS[kind])
        one = dict(told)
        if kind == "CheckpointEnded":
            # The history leaves out figures that are those of the event before.
            one |= {name: getattr(self.summary, name) for name in SUMS}
        kept.append(one)

    def go_on_with(self, summary: RunSummary) -> None:
        """Take a run summed up so far in place of events that were lost, or did not fit: of the
        newest checkpoints in it those that are not kept yet.
        """
        self.summary = summary
        last = self.checkpoints[-1]["checkpoint_id"] if self.checkpoints else 0
        figures = {name: getattr(summary, name) for name in SUMS}
        for one in summary.checkpoints:
            if one["checkpoint_id"] > last:
                self.checkpoints.append({"event": "CheckpointEnded", **one, **figures})
