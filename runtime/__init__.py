"""What makes the machines act: the coordinator and operator APIs, the job master, stores,
transports.
"""

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
