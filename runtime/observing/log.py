"""A job's events as lines of the module `logging`, one for each.

Decides nothing: an event knows its line, its level, its logger, and whether the frames of the
user's code belong below the line. A whole reason is logged at DEBUG; the line has the telling part.
A record carries the event as its attribute `event`, for handlers that want the figures.

    epochgate.job               start, all subtasks up, warnings, end
    epochgate.job.checkpoints   each checkpoint
    epochgate.job.commits       each commit; commits of nothing at DEBUG
    epochgate.job.failover      failures and restarts

`JsonLines` writes records as JSON objects, for collectors of logs.
"""

from __future__ import annotations

import json
import logging
from datetime import UTC, datetime

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


class JsonLines(logging.Formatter):
    """Formats each record as one line of JSON: time (UTC), level, logger, message; exception where
    there is one; and event, with the figures, where the record is of a job's event.

    Any handler may have it: `handler.setFormatter(JsonLines())`.
    """

    def format(self, record: logging.LogRecord) -> str:
        """Return the line, without its end."""
        told = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname,
            "logger": record.name,
            "message": record.getMessage(),
        }
        if record.exc_info:
            told["exception"] = self.formatException(record.exc_info)
        event = getattr(record, "event", None)
        figures = {"event": event.to_json()} if isinstance(event, JobEvent) else {}
        return json.dumps({**told, **figures}, default=str)
