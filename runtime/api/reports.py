"""A job's reports: live figures, its history, and its result."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class CheckpointReport:
    """One finished checkpoint: seconds from trigger to end, bytes stored, and if it is not known to
    be completed why: it was aborted, or its save has an unknown outcome.
    """

    checkpoint_id: int
    is_completed: bool
    duration_s: float
    stored_bytes: int = 0
    reason: str = ""


@dataclass(frozen=True)
class FailureReport:
    """One failure: of an attempt, or with subtask None of the job as a whole; seconds by the job's
    clock.
    """

    at_s: float
    subtask: int | None
    attempt: int | None
    reason: str


@dataclass
class JobReport:
    """Grows while the job runs; read by others, written on the queue's thread only."""

    checkpoints: list[CheckpointReport] = field(default_factory=list)
    failures: list[FailureReport] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    metrics: dict[int, dict[str, int | float]] = field(default_factory=dict)
    """Subtask -> counters of its current attempt; after the end, of its last one."""
    coordinator_metrics: dict[str, Mapping[str, int | float]] = field(default_factory=dict)
    """Operator id -> figures of its coordinator, read when they are looked at."""
    regional_restarts: int = 0
    global_restarts: int = 0
    zombies_refused: int = 0
    committed_upto: int = 0
    failure_reason: str | None = None

    def completed(self) -> list[CheckpointReport]:
        """Return the checkpoints that were completed, oldest first."""
        return [report for report in self.checkpoints if report.is_completed]


@dataclass(frozen=True)
class JobResult:
    """How a job ended: "finished", "failed" or "canceled", why, and the report of its whole run."""

    state: str
    reason: str | None
    report: JobReport
    last_checkpoint_id: int

    def is_success(self) -> bool:
        """Whether the job has finished, instead of failing or being canceled."""
        return self.state == "finished"


def shortened(value: Any, characters_max: int = 2000) -> str:
    """The text of `value`, cut in the middle when it is longer than `characters_max`."""
    text = str(value)
    if len(text) <= characters_max:
        return text
    half = characters_max // 2
    return f"{text[:half]} ... {len(text) - 2 * half} characters ... {text[-half:]}"
