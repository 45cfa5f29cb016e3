"""The reasons why a message of a machine, or an argument of one, makes no difference in any closed
system.

The key is the machine, the port and the message, and the name of the argument. A test holds that
each of them is unheard, and that all else is heard.
"""

from __future__ import annotations

NOTHING: dict[str, str] = {}
"""Messages whose handlers are all empty."""

TEXT = "a text for people, which a closed system does not tell from others"
REASONS: dict[str, str] = {
    **dict.fromkeys(
        (
            "Checkpoint.driver.aborted: reason",
            "Checkpoint.driver.unknown: reason",
            "ExecutionVertex.record.outlived: reason",
            "Gateway.sender.lost: reason",
            "Holder.user.failed: reason",
            "JobLifecycle.driver.decided: outcome",
            "JobLifecycle.driver.ending: reason",
            "JobLifecycle.driver.restart_all: reason",
            "JobLifecycle.driver.restart_one: reason",
            "PostCommit.worker.stalled: reason",
            "Resident.process.replace: reason",
            "Task.operators.failed: reason",
        ),
        TEXT,
    ),
    "Task.operators.gap: coordinator": "no closed system comes to a gap between events",
}
"""Arguments that nothing has to look at."""
