"""A job's events as lines of the module `logging`, one for each.

Decides nothing: an event knows its line, its level, its logger, and whether the frames of the
user's code belong below the line. A whole reason is logged at DEBUG; the line has the telling part.
A record carries the event as its attribute `event`, for handlers that want the figures.

    epochgate.job               start, all subtasks up, warnings, end
    epochgate.job.checkpoints   each checkpoint
    epochgate.job.commits       each commit; commits of nothing at DEBUG
    epochgate.job.failover      failures and restarts
"""

from __future__ import annotations

import logging

from epochgate.runtime.api.job_events import JobEvent, JobListener

LOGGER = "epochgate.job"


class JobLog(JobListener):
    """Logs what happens to a job."""

    def on_event(self, event: JobEvent) -> None:
        """Log its line."""
        logger = logging.getLogger(f"{LOGGER}.{event.topic}" if event.topic else LOGGER)
        if not logger.isEnabledFor(event.level):
            return
        logger.log(event.level, "%s%s", event, event.details, extra={"event": event})
        reason = getattr(event, "reason", None)
        if reason and "\n" in reason.strip():
            logger.debug("in full: %s", reason)
