"""The settings with which a process of a job begins: they come with Spark's own task, and never
over the wire.
"""

from __future__ import annotations

from typing import Any, TypedDict


class TaskSettings(TypedDict):
    """Settings of `task_main.run_task`.

    certificate: of a private wire, or None. coordinators: operator ids. commits_in_tasks: whether
    the job asks its tasks to commit. program: a pickled callable from the subtask to its `Program`.
    detection, tracing: the fields of a `Detection`, and of a `Tracing` where a trace is written.
    """

    host: str
    port: int
    key: bytes
    certificate: bytes | None
    run_id: str
    parallelism: int
    coordinators: list[str]
    commits_in_tasks: bool
    program: bytes
    heartbeat_interval_s: float
    silence_timeout_s: float
    detection: dict[str, Any]
    message_bytes_max: int
    tracing: dict[str, Any] | None


class ShippedSettings(TaskSettings):
    """These, and where the package is. archive: what `ship` gave."""

    archive: str
    carried: tuple[str, ...]
    carried_folder: str
