"""What makes the machines act: the coordinator and operator APIs, the job master, stores,
transports.

Names are imported when they are first used: a worker needs few of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from epochgate.lazy import lazily

if TYPE_CHECKING:
    from epochgate.runtime.committer import Committables, Committer, RetryLater
    from epochgate.runtime.configuration import JobConfiguration, JobMisconfigured
    from epochgate.runtime.coordinator import (
        CoordinatorContext,
        CoordinatorProvider,
        OperatorCoordinator,
        SubtaskGateway,
    )
    from epochgate.runtime.job_master import JobMaster
    from epochgate.runtime.loop import JobLoop
    from epochgate.runtime.operator import FatalTaskError, Operator, OperatorContext, Program, Work
    from epochgate.runtime.reports import JobReport, JobResult
    from epochgate.runtime.send_future import EventLost, SendFuture
    from epochgate.runtime.transport import TaskInbox, Transport

__getattr__ = lazily(
    __name__,
    {
        "committer": (
            "Committables",
            "Committer",
            "RetryLater",
        ),
        "configuration": (
            "JobConfiguration",
            "JobMisconfigured",
        ),
        "coordinator": (
            "CoordinatorContext",
            "CoordinatorProvider",
            "OperatorCoordinator",
            "SubtaskGateway",
        ),
        "job_master": ("JobMaster",),
        "loop": ("JobLoop",),
        "operator": (
            "FatalTaskError",
            "Operator",
            "OperatorContext",
            "Program",
            "Work",
        ),
        "reports": (
            "JobReport",
            "JobResult",
        ),
        "send_future": (
            "EventLost",
            "SendFuture",
        ),
        "transport": (
            "TaskInbox",
            "Transport",
        ),
    },
)

__all__ = [
    "Committables",
    "Committer",
    "CoordinatorContext",
    "CoordinatorProvider",
    "EventLost",
    "FatalTaskError",
    "JobConfiguration",
    "JobLoop",
    "JobMaster",
    "JobMisconfigured",
    "JobReport",
    "JobResult",
    "Operator",
    "OperatorContext",
    "OperatorCoordinator",
    "Program",
    "RetryLater",
    "SendFuture",
    "SubtaskGateway",
    "TaskInbox",
    "Transport",
    "Work",
]
