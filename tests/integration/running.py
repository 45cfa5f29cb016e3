"""The configuration of the jobs of the integration tests, in simulation and on Spark."""

from __future__ import annotations

from typing import Any

from epochgate.runtime import CoordinatorProvider, JobConfiguration
from epochgate.runtime.api.restart_strategies import FixedDelay

JOB_ID = "integration"


def configuration(
    subtasks: int, *providers: CoordinatorProvider, **changes: Any
) -> JobConfiguration:
    """A job that takes checkpoints all the time, and restarts at once and as often as it must."""
    settings: dict[str, Any] = {
        "checkpoint_interval_s": 0.01,
        "checkpoint_timeout_s": 10.0,
        "tolerable_checkpoint_failures": 1000,
        "restart_strategy": FixedDelay(1000, 0.0),
        **changes,
    }
    return JobConfiguration(JOB_ID, subtasks, providers, **settings)
