"""What makes the machines act: the coordinator and operator APIs, the job master, stores,
transports.

Names are imported when they are first used: a worker needs few of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from epochgate.lazy import lazily

if TYPE_CHECKING:
    from epochgate.runtime.batch_snapshots import BatchSnapshotFailed, BatchSnapshotRefused
    from epochgate.runtime.checkpoints import CheckpointAborted
    from epochgate.runtime.client_requests import JobOver, UnknownOperator
    from epochgate.runtime.committer import Committables, Committer, RetryLater
    from epochgate.runtime.concurrent_attempts import NoCheckpointAmongAttempts
    from epochgate.runtime.configuration import JobConfiguration, JobMisconfigured
    from epochgate.runtime.coordinator import (
        BATCH_CHECKPOINT,
        NO_CHECKPOINT,
        CheckpointAccess,
        CoordinatorContext,
        CoordinatorProvider,
        OperatorCoordinator,
        RequestNotHandled,
        RunningCoroutine,
        SubtaskGateway,
    )
    from epochgate.runtime.coordinator_metrics import CoordinatorMetrics, MetricNameTaken
    from epochgate.runtime.coordinator_store import CoordinatorStore
    from epochgate.runtime.job_master import JobMaster
    from epochgate.runtime.loop import JobLoop
    from epochgate.runtime.operator import FatalTaskError, Operator, OperatorContext, Program, Work
    from epochgate.runtime.plain import ValueNotPlain
    from epochgate.runtime.quiesced_context import CoordinatorReplaced
    from epochgate.runtime.recreate_on_reset import CoordinatorNotClosed, RecreateOnReset
    from epochgate.runtime.reports import JobReport, JobResult
    from epochgate.runtime.send_future import EventLost, SendFuture
    from epochgate.runtime.transport import TaskInbox, Transport
    from epochgate.runtime.user_code import CannotLoad

__getattr__ = lazily(
    __name__,
    {
        "batch_snapshots": (
            "BatchSnapshotFailed",
            "BatchSnapshotRefused",
        ),
        "checkpoints": ("CheckpointAborted",),
        "client_requests": (
            "ClientRequests",
            "JobOver",
            "UnknownOperator",
        ),
        "committer": (
            "Committables",
            "Committer",
            "RetryLater",
        ),
        "concurrent_attempts": ("NoCheckpointAmongAttempts",),
        "configuration": (
            "JobConfiguration",
            "JobMisconfigured",
        ),
        "coordinator": (
            "BATCH_CHECKPOINT",
            "CheckpointAccess",
            "CoordinatorContext",
            "CoordinatorProvider",
            "NO_CHECKPOINT",
            "OperatorCoordinator",
            "RequestNotHandled",
            "RunningCoroutine",
            "SubtaskGateway",
        ),
        "coordinator_metrics": (
            "CoordinatorMetrics",
            "Counter",
            "MetricNameTaken",
        ),
        "coordinator_store": ("CoordinatorStore",),
        "job_master": ("JobMaster",),
        "loop": ("JobLoop",),
        "operator": (
            "FatalTaskError",
            "Operator",
            "OperatorContext",
            "Program",
            "Work",
        ),
        "plain": ("ValueNotPlain",),
        "quiesced_context": ("CoordinatorReplaced",),
        "recreate_on_reset": (
            "CoordinatorNotClosed",
            "RecreateOnReset",
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
        "user_code": ("CannotLoad",),
    },
)

__all__ = [
    "BATCH_CHECKPOINT",
    "NO_CHECKPOINT",
    "BatchSnapshotFailed",
    "BatchSnapshotRefused",
    "CannotLoad",
    "CheckpointAborted",
    "CheckpointAccess",
    "Committables",
    "Committer",
    "CoordinatorContext",
    "CoordinatorMetrics",
    "CoordinatorNotClosed",
    "CoordinatorProvider",
    "CoordinatorReplaced",
    "CoordinatorStore",
    "EventLost",
    "FatalTaskError",
    "JobConfiguration",
    "JobLoop",
    "JobMaster",
    "JobMisconfigured",
    "JobOver",
    "JobReport",
    "JobResult",
    "MetricNameTaken",
    "NoCheckpointAmongAttempts",
    "Operator",
    "OperatorContext",
    "OperatorCoordinator",
    "Program",
    "RecreateOnReset",
    "RequestNotHandled",
    "RetryLater",
    "RunningCoroutine",
    "SendFuture",
    "SubtaskGateway",
    "TaskInbox",
    "Transport",
    "UnknownOperator",
    "ValueNotPlain",
    "Work",
]
