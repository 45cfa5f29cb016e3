"""A job's reports: live figures, its history, and its result."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Final, NamedTuple, TypeVar

from epochgate.runtime.api.notebooks import fragment

RECENT_MAX: Final = 1000
"""How many of the newest entries a report keeps at least; it holds at most twice as many."""
REASON_CHARACTERS_MAX: Final = 160
SHOWN_MAX: Final = 20
"""How many of the newest failures and warnings are told as plain values."""
T = TypeVar("T")


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


class FailureReport(NamedTuple):
    """One failure: of an attempt, or with subtask None of the job as a whole. at_s: seconds since
    the job was started.
    """

    at_s: float
    subtask: int | None
    attempt: int | None
    reason: str


@dataclass(repr=False)
class JobReport:
    """The figures of a job while it runs and after; read by others, written on the queue's thread
    only. Of checkpoints, failures and warnings the newest are kept, `RECENT_MAX` at least; the
    numbers count all of them.
    """

    checkpoints: list[CheckpointReport] = field(default_factory=list)
    failures: list[FailureReport] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    metrics: dict[int, dict[str, int | float]] = field(default_factory=dict)
    """Subtask -> counters of its current attempt; after the end, of its last one."""
    coordinator_metrics: dict[str, Mapping[str, int | float]] = field(default_factory=dict)
    """Operator id -> figures of its coordinator, read when they are looked at."""
    checkpoints_completed: int = 0
    checkpoints_aborted: int = 0
    """Those included of which the store cannot tell whether they exist."""
    regional_restarts: int = 0
    global_restarts: int = 0
    zombies_refused: int = 0
    committed_upto: int = 0
    failure_reason: str | None = None

    def completed(self) -> list[CheckpointReport]:
        """Return the completed ones of the checkpoints that are kept, oldest first."""
        return [report for report in self.checkpoints if report.is_completed]

    def summary(self) -> str:
        """Checkpoints, failovers and warnings in one line."""
        line = (
            f"checkpoints: {self.checkpoints_completed} completed, {self.checkpoints_aborted} "
            f"aborted; failovers: {self.regional_restarts} of one subtask, "
            f"{self.global_restarts} of all"
        )
        return f"{line}; warnings: {len(self.warnings)}" if self.warnings else line

    def __repr__(self) -> str:
        return f"<JobReport: {self.summary()}>"

    def _repr_html_(self) -> str:
        return fragment("JobReport", self.summary(), self.figures(), self.failure_reason)

    def figures(self) -> list[tuple[str, object]]:
        """The figures by names for a reader, those of the tasks summed."""
        last = self.completed()[-1:]
        return [
            ("checkpoints completed", self.checkpoints_completed),
            ("checkpoints aborted", self.checkpoints_aborted),
            (
                "the last one",
                f"{last[0].duration_s:.2f} s, {size(last[0].stored_bytes)}" if last else "",
            ),
            ("failovers of one subtask", self.regional_restarts),
            ("failovers of all", self.global_restarts),
            ("warnings", len(self.warnings)),
            *(
                (name.replace("_", " "), value)
                for name, value in sorted(summed(self.metrics).items())
            ),
        ]

    def to_json(self) -> dict[str, Any]:
        """The figures as plain values, with the newest failures and warnings."""
        return {
            "checkpoints_completed": self.checkpoints_completed,
            "checkpoints_aborted": self.checkpoints_aborted,
            "regional_restarts": self.regional_restarts,
            "global_restarts": self.global_restarts,
            "zombies_refused": self.zombies_refused,
            "committed_upto": self.committed_upto,
            "last_checkpoint": asdict(self.checkpoints[-1]) if self.checkpoints else None,
            "failures": [failure._asdict() for failure in self.failures[-SHOWN_MAX:]],
            "warnings": self.warnings[-SHOWN_MAX:],
            "metrics": summed(self.metrics),
            "coordinator_metrics": {
                name: dict(figures) for name, figures in self.coordinator_metrics.items()
            },
        }


@dataclass(frozen=True, repr=False)
class JobResult:
    """The end of a job: "finished", "failed" or "canceled", why, and the report of its run."""

    state: str
    reason: str | None
    report: JobReport
    last_checkpoint_id: int

    def is_success(self) -> bool:
        """Return whether the job has finished, instead of failing or being canceled."""
        return self.state == "finished"

    def __repr__(self) -> str:
        why = "" if self.reason is None else f", because {telling_line(self.reason)!r}"
        return (
            f"<JobResult: {self.state}{why}; last checkpoint "
            f"{self.last_checkpoint_id or 'none'}; {self.report.summary()}>"
        )

    def _repr_html_(self) -> str:
        own = ("last checkpoint", self.last_checkpoint_id or "none")
        return fragment("JobResult", self.state, [own, *self.report.figures()], self.reason)

    def to_json(self) -> dict[str, Any]:
        """Everything as plain values."""
        return {
            "state": self.state,
            "reason": self.reason,
            "last_checkpoint_id": self.last_checkpoint_id,
            **self.report.to_json(),
        }


def keep_recent(kept: list[T], one: T) -> None:
    """Append to a list of a report, and let go of the oldest when it has grown too long."""
    kept.append(one)
    if len(kept) > 2 * RECENT_MAX:
        del kept[:-RECENT_MAX]


def summed(metrics: Mapping[int, Mapping[str, int | float]]) -> dict[str, int | float]:
    """Each counter over all subtasks.

    >>> summed({0: {"rows": 3}, 1: {"rows": 4, "bytes": 9}})
    {'rows': 7, 'bytes': 9}
    """
    sums: dict[str, int | float] = {}
    for counters in dict(metrics).values():
        for name, value in counters.items():
            sums[name] = sums.get(name, 0) + value
    return sums


def size(count: int) -> str:
    """Bytes for a reader.

    >>> size(900), size(12_345), size(3_000_000), size(7_250_000_000)
    ('900 B', '12.3 kB', '3.0 MB', '7.2 GB')
    """
    if count < 1000:
        return f"{count} B"
    for unit, bytes_each in (("kB", 10**3), ("MB", 10**6)):
        if count < 1000 * bytes_each:
            return f"{count / bytes_each:.1f} {unit}"
    return f"{count / 1e9:.1f} GB"


def counted(number: int, what: str) -> str:
    """A number with its noun.

    >>> counted(1, "subtask"), counted(1200, "subtask")
    ('1 subtask', '1,200 subtasks')
    """
    return f"{number:,} {what}" if number == 1 else f"{number:,} {what}s"


def telling_line(text: str) -> str:
    r"""The telling line of a reason: the first of the message, also of one behind a traceback.

    >>> telling_line("failed: it has changed.\n  from: a\n  to: b\nGive a new target.")
    'failed: it has changed.'
    """
    message = re.split(r"^Traceback\b.*\n", text.strip(), flags=re.MULTILINE)[-1]
    lines = [line for line in message.splitlines() if line and not line.startswith("  ")]
    return (lines or [""])[0].strip()


def one_line(text: str) -> str:
    """The telling line of a reason, cut to fit."""
    line = telling_line(text)
    return line if len(line) <= REASON_CHARACTERS_MAX else line[:REASON_CHARACTERS_MAX] + " ..."


def shortened(value: Any, characters_max: int = 2000) -> str:
    """The text of `value`, cut in the middle when it is longer than `characters_max`."""
    text = str(value)
    if len(text) <= characters_max:
        return text
    half = characters_max // 2
    return f"{text[:half]} ... {len(text) - 2 * half} characters ... {text[-half:]}"
