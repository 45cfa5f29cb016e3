"""Which machines exist: the protocol of coordinators, gateways, checkpoints, attempts and commits."""

from epochgate.models.attempt import Attempt
from epochgate.models.catalogue import MACHINES
from epochgate.models.checkpoint import Checkpoint
from epochgate.models.committer import GlobalCommitter
from epochgate.models.gateway import Gateway
from epochgate.models.holder import Holder
from epochgate.models.job import Job, TaskSystem
from epochgate.models.lifecycle import JobLifecycle
from epochgate.models.request import CheckpointRequest
from epochgate.models.snapshot import CoordinatorSnapshot
from epochgate.models.task import Task

__all__ = [
    "MACHINES",
    "Attempt",
    "Checkpoint",
    "CheckpointRequest",
    "CoordinatorSnapshot",
    "Gateway",
    "GlobalCommitter",
    "Holder",
    "Job",
    "JobLifecycle",
    "Task",
    "TaskSystem",
]
