"""The system that runs on the driver: everything that is decided about one job."""

from __future__ import annotations

from typing import ClassVar

from epochgate.fsm import System, machines
from epochgate.models.attempt import Attempt
from epochgate.models.checkpoint import Checkpoint
from epochgate.models.committer import GlobalCommitter
from epochgate.models.gateway import Gateway
from epochgate.models.holder import Holder
from epochgate.models.lifecycle import JobLifecycle
from epochgate.models.post_commit import PostCommit
from epochgate.models.request import CheckpointRequest
from epochgate.models.snapshot import CoordinatorSnapshot


class Job(System):
    """Everything that the driver decides about one job.

    Constants: `subtasks` and `coordinators`, how many there are; `tolerable_failures`, how many
    checkpoints may fail in a row; `commit_retries`, how often a commit, and work after one, is tried
    again; `periodic`, 1 if checkpoints are taken without being asked for; `after_commit`, 1 if there
    is work after each commit.
    """

    INDEX_SETS: ClassVar[dict[str, str]] = {
        "subtask": "subtasks",
        "coordinator": "coordinators",
    }
    CONSTANTS: ClassVar[dict[str, int]] = {
        "subtasks": 1,
        "coordinators": 0,
        "tolerable_failures": 0,
        "commit_retries": 10,
        "periodic": 0,
        "after_commit": 0,
    }

    subtasks: int
    coordinators: int
    tolerable_failures: int
    commit_retries: int
    periodic: int
    after_commit: int

    lifecycle: JobLifecycle = machines(JobLifecycle)
    attempt: list[Attempt] = machines(Attempt)
    holder: list[Holder] = machines(Holder)
    gateway: dict[tuple[int, int], Gateway] = machines(Gateway)
    snapshot: list[CoordinatorSnapshot] = machines(CoordinatorSnapshot)
    request: CheckpointRequest = machines(CheckpointRequest)
    checkpoint: Checkpoint = machines(Checkpoint)
    committer: GlobalCommitter = machines(GlobalCommitter)
    post_commit: PostCommit = machines(PostCommit)
