"""Where the machines live in Spark: the session, the driver's service, tasks, sources and sinks.

Names are imported when they are first used, because tasks import from here too and need little.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from epochgate.spark.job import JobHandle, JobStatus, TaskStatus, run_job
    from epochgate.spark.session import local_session, validate_session

_HOMES = {
    "JobHandle": "epochgate.spark.job",
    "JobStatus": "epochgate.spark.job",
    "TaskStatus": "epochgate.spark.job",
    "run_job": "epochgate.spark.job",
    "local_session": "epochgate.spark.session",
    "validate_session": "epochgate.spark.session",
}

__all__ = [
    "JobHandle",
    "JobStatus",
    "TaskStatus",
    "local_session",
    "run_job",
    "validate_session",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(_HOMES[name]), name)
