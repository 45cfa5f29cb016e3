"""The progress of an ingestion, as lines and figures for a person.

Decides which of a job's events are worth a line on a terminal: failures, warnings and aborted
checkpoints are; of the others one line for each commit that shows progress, and one when a followed
source has nothing new, however long that lasts. It is a listener of the job, and changes nothing.
"""

from __future__ import annotations

import logging
import queue
import time
from collections import deque
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from epochgate.jobs.totals import FilesDone
from epochgate.runtime.api.job_events import (
    CheckpointEnded,
    Committed,
    JobEnded,
    JobEvent,
    JobListener,
    JobStarted,
    Warned,
)
from epochgate.runtime.api.reports import size

if TYPE_CHECKING:
    from epochgate.spark.ingest.run import IngestHandle

RATE_WINDOW_S = 5.0
RATE_SPAN_S_MIN = 0.2
LINES_SHOWN = 8


class Progress(JobListener):
    """Turns what happens to an ingestion into lines. `is_quiet`: those alone that a person has to
    know; `is_followed`: the source may have nothing new for long. `log` takes each line in place of
    `lines`, but for those of events, which the log has from the job itself. `name`: of the job,
    before each line, where there are several.
    """

    def __init__(
        self,
        *,
        is_followed: bool = False,
        is_quiet: bool = False,
        log: Callable[[str], object] | None = None,
        name: str = "",
    ) -> None:
        self._prefix = f"{name}: " if name else ""
        self._is_followed, self._is_quiet, self._log = is_followed, is_quiet, log
        self._began_s = time.monotonic()
        self._lines: queue.SimpleQueue[str] = queue.SimpleQueue()
        self._checkpoint: CheckpointEnded | None = None
        self._told: tuple[Any, ...] = ()
        self._told_rows = (0.0, 0)
        self._is_idle = False
        self._rows_by_subtask: dict[int, int] = {}
        self.rows_read = 0
        self._readings: deque[tuple[float, int]] = deque([(0.0, 0)])
        self.files: FilesDone | None = None
        """As of the newest checkpoint of this start; unknown before that."""

    @property
    def elapsed_s(self) -> float:
        """Seconds since this was made, which is before the job is submitted."""
        return time.monotonic() - self._began_s

    # what is told, on any thread

    def on_event(self, event: JobEvent) -> None:
        """Keep a line if the event is worth one."""
        if isinstance(event, CheckpointEnded):
            self._checkpoint = event
            if event.outcome == "completed":
                self.files = FilesDone.of(event.figures, event.coordinators.get("source", {}))
            else:
                self._tell(str(event))
        elif isinstance(event, Committed):
            self._note_commit(event)
        elif isinstance(event, Warned):
            self._tell(f"warning: {event}", is_needed=True)
        elif isinstance(event, JobEnded):
            # What it came to is said by the command, but late where others go on.
            if self._prefix and event.state == "failed":
                self._tell(f"failed: {event.reason}", is_needed=True)
        elif not isinstance(event, JobStarted):
            self._tell(f"{event}{event.details}", is_needed=event.level >= logging.WARNING)

    def note(self, line: str, *, is_needed: bool = False) -> None:
        """Keep a line; `is_needed`: also where the user wants quiet."""
        if self._log is not None:
            self._log(f"{self._prefix}{line}")
        elif is_needed or not self._is_quiet:
            self._lines.put(f"{self.elapsed_s:6.1f} s  {self._prefix}{line}")

    def _tell(self, line: str, *, is_needed: bool = False) -> None:
        """Keep a line of an event."""
        if self._log is None:
            self.note(line, is_needed=is_needed)

    def _note_commit(self, event: Committed) -> None:
        rows = int(event.figures.get("rows_committed", 0))
        read = 0 if self._checkpoint is None else self._checkpoint.figures.get("rows_read", 0)
        told = (rows, read, self.files)
        if told != self._told:
            self._told, self._is_idle = told, False
            self._note_progress(event, rows)
        elif self.files and self._is_followed and not self._is_idle and not event.committables:
            self._is_idle = True
            self._tell(f"{self.files}, {rows:,} rows committed; waiting for new files")

    def _note_progress(self, event: Committed, rows: int) -> None:
        now_s, (before_s, before) = self.elapsed_s, self._told_rows
        self._told_rows = (now_s, rows)
        rate = (rows - before) / max(now_s - before_s, RATE_SPAN_S_MIN)
        said, last = f"checkpoint {event.checkpoint_ids[-1]}", self._checkpoint
        if last is None or self.files is None:
            said += ", of an earlier start: " + (f"{rows:,} rows committed, " if rows else "")
            said += f"{int(event.figures.get('rows_visible', rows)):,} rows in the target"
        else:
            said += f": {last.duration_s:.2f} s, {size(last.stored_bytes)}; {self.files}, "
            said += f"{rows:,} rows committed, {rate:,.0f} rows/s"
        if rejected := int(event.figures.get("rows_rejected", 0)):
            said += f", {rejected:,} rows rejected"
        self._tell(said)

    # what is shown, on the command's thread

    def lines(self) -> list[str]:
        """Return what has happened since the last call."""
        lines = []
        while not self._lines.empty():
            lines.append(self._lines.get())
        return lines

    @property
    def rows_per_s(self) -> float:
        """Rows read, repeated ones included, per second of the last `RATE_WINDOW_S`."""
        (before_s, before), (now_s, now) = self._readings[0], self._readings[-1]
        return (now - before) / max(now_s - before_s, RATE_SPAN_S_MIN)

    def count_rows(self, metrics: Mapping[int, Mapping[str, float]]) -> None:
        """Take the tasks' counters of now."""
        for subtask, counters in dict(metrics).items():
            now = int(counters.get("rows_read", 0))
            before = self._rows_by_subtask.get(subtask, 0)
            self._rows_by_subtask[subtask] = now
            # A new attempt counts from 0 again.
            self.rows_read += now - before if now >= before else now
        self._readings.append((self.elapsed_s, self.rows_read))
        while self._readings[-1][0] - self._readings[0][0] > RATE_WINDOW_S:
            self._readings.popleft()

    def table(self, handle: IngestHandle, recent: list[str]) -> Any:
        """The live display: totals, subtasks, and the most recent lines."""
        from rich.console import Group
        from rich.table import Table
        from rich.text import Text

        report, status = handle.report, handle.status()
        self.count_rows(report.metrics)
        head = Text(
            f"{status.state} {self.elapsed_s:.0f} s   {self.files or ''}   "
            f"{handle.rows_committed:,} rows committed   {self.rows_per_s:,.0f} rows/s\n"
            f"{report.summary()}",
            style="bold",
        )
        tasks = Table("subtask", "attempt", "state", "process", "rows read", box=None)
        for task in status.tasks:
            rows = int(report.metrics.get(task.subtask, {}).get("rows_read", 0))
            process = "-" if task.pid is None else f"{task.pid} on {task.host}"
            tasks.add_row(str(task.subtask), str(task.attempt), task.state, process, f"{rows:,}")
        lines = (Text(line, overflow="ellipsis", no_wrap=True) for line in recent[-LINES_SHOWN:])
        return Group(head, tasks, *lines)


class LogLines(logging.Handler):
    """The log of epochgate beside the job's events, as lines of the display."""

    def __init__(self, progress: Progress) -> None:
        super().__init__(logging.INFO)
        self._progress = progress

    def emit(self, record: logging.LogRecord) -> None:
        """Keep a line for the record; the events themselves come as such."""
        if not hasattr(record, "event"):
            is_needed = record.levelno >= logging.WARNING
            prefix = f"{record.levelname.lower()}: " if is_needed else ""
            self._progress.note(f"{prefix}{self.format(record)}", is_needed=is_needed)
