"""A job with failures, restarts, a savepoint and growing figures, and no job at all."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from epochgate.runtime import (
    CheckpointEnded,
    Committed,
    JobEnded,
    JobEvent,
    JobRestarts,
    JobStarted,
    SubtaskFailed,
    SubtaskRestarted,
    SubtasksUp,
    Warned,
)
from epochgate.runtime.api.job_events import SavepointWritten
from epochgate.runtime.observing.history import History
from epochgate.runtime.store import DirectoryCheckpointStore

BEGIN = 1_700_000_000.0
REASON = "ValueError: <script>alert(1)</script>\n  in user code"


def events(run_id: str = "a" * 32, checkpoints: int = 120) -> list[JobEvent]:
    """A run of as many checkpoints, each four seconds after the one before, the last one ended."""
    found: list[JobEvent] = [
        JobStarted(BEGIN, "orders", run_id, 3, 0, 4711, "vm", "the committer on the driver"),
        SubtasksUp(BEGIN + 1, 3, 0, 1.0),
    ]
    for number in range(1, checkpoints + 1):
        at = BEGIN + 4.0 * number
        if number == 30:
            found.append(SubtaskFailed(at - 3, 1, 0, REASON, 0.2))
            found.append(SubtaskRestarted(at - 1, 1, 1, number - 1, 2.0, "vm", 4712))
        if number == 60:
            found.append(JobRestarts(at - 3, "the wire <b>broke</b>", 1.0))
            found.append(SubtasksUp(at - 1, 3, number - 1, 2.0))
        found.append(ended_checkpoint(number, at))
        if number % 40:
            figures = {"rows_committed": 900 * number, "rows_visible": 900, "rows_rejected": number}
            found.append(Committed(at + 0.1, (number,), 0.05, 0, 2, figures))
    found.append(SavepointWritten(BEGIN + 4.0 * checkpoints, checkpoints, "/saved/one", 4096))
    found.append(Warned(BEGIN + 5, "the disk is slow"))
    return found


def ended_checkpoint(number: int, at: float) -> CheckpointEnded:
    """The checkpoint of this number; every fortieth is aborted."""
    completed = CheckpointEnded(
        at,
        number,
        "completed",
        0.2 + number % 7 / 10,
        1500 + number,
        0.01,
        {0: 0.1, 1: 0.2, 2: 0.15},
        (),
        0.02,
        "",
        {"rows_read": 1000 * number, "files_open": 1, "bytes_open": 100},
        {"source": {"files_found": 200, "files_waiting": 120, "bytes_waiting": 90_000 - number}},
    )
    if number % 40:
        return completed
    return replace(completed, outcome="aborted", missing=(2,), reason="took <too> long")


def ended(checkpoints: int = 120) -> JobEnded:
    """The end of that run."""
    at = BEGIN + 4.0 * checkpoints + 1
    return JobEnded(at, "finished", None, checkpoints, at - BEGIN, 117, 3, 1, 1)


def job(directory: Path) -> Path:
    """Checkpoints of a job with two starts, of which the second has finished."""
    with DirectoryCheckpointStore(str(directory), job_id="orders") as store:
        history = History(str(directory / "history"), epoch=store.epoch)
        for event in [*events("b" * 32, 3), *events(), ended()]:
            history.on_event(event)
        history.close()
    return directory


def empty(directory: Path) -> Path:
    """Checkpoints that a driver has claimed, without a history."""
    DirectoryCheckpointStore(str(directory), job_id="orders").close()
    return directory
