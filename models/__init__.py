"""Which machines exist: the protocol of coordinators, gateways, checkpoints, attempts and commits.

Names are imported when they are first used: a worker needs one machine of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from epochgate.lazy import lazily

if TYPE_CHECKING:
    from epochgate.models.attempt import Attempt
    from epochgate.models.batch_snapshot import BatchSnapshot, BatchSnapshots
    from epochgate.models.catalogue import MACHINES
    from epochgate.models.checkpoint import Checkpoint
    from epochgate.models.committer import GlobalCommitter
    from epochgate.models.gateway import Gateway
    from epochgate.models.holder import Holder
    from epochgate.models.job import Job
    from epochgate.models.lifecycle import JobLifecycle
    from epochgate.models.recreation import Recreation, Recreations
    from epochgate.models.request import CheckpointRequest
    from epochgate.models.snapshot import CoordinatorSnapshot
    from epochgate.models.task import Task, TaskSystem

__getattr__ = lazily(
    __name__,
    {
        "attempt": ("Attempt",),
        "batch_snapshot": ("BatchSnapshot", "BatchSnapshots"),
        "catalogue": ("MACHINES",),
        "checkpoint": ("Checkpoint",),
        "committer": ("GlobalCommitter",),
        "gateway": ("Gateway",),
        "holder": ("Holder",),
        "job": ("Job",),
        "lifecycle": ("JobLifecycle",),
        "recreation": ("Recreation", "Recreations"),
        "request": ("CheckpointRequest",),
        "snapshot": ("CoordinatorSnapshot",),
        "task": (
            "TaskSystem",
            "Task",
        ),
    },
)

__all__ = [
    "MACHINES",
    "Attempt",
    "BatchSnapshot",
    "BatchSnapshots",
    "Checkpoint",
    "CheckpointRequest",
    "CoordinatorSnapshot",
    "Gateway",
    "GlobalCommitter",
    "Holder",
    "Job",
    "JobLifecycle",
    "Recreation",
    "Recreations",
    "Task",
    "TaskSystem",
]
