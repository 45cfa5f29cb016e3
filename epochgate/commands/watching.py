"""What a person is told of a running ingestion: a live display on a terminal, or plain lines.

Decides which of a job's figures are worth a line. Used by the commands that run ingestions, on
their own thread; it reads the job's report and changes nothing.
"""

from __future__ import annotations

import contextlib
import signal
import sys
import time
from collections import deque
from collections.abc import Callable
from types import FrameType, TracebackType
from typing import TYPE_CHECKING, Any, Self

from epochgate.console import console
from epochgate.runtime.api.reports import one_line, size

if TYPE_CHECKING:
    from epochgate.spark.ingest.chaos import Strike
    from epochgate.spark.ingest.run import IngestHandle

POLL_S = 0.2
RATE_WINDOW_S = 5.0


class Interrupts:
    """Ctrl-C and SIGTERM, counted while a job runs; before `begin` they raise KeyboardInterrupt."""

    def __init__(self) -> None:
        self.count = 0
        self._is_counting = False
        self._before: dict[signal.Signals, Any] = {}

    def __enter__(self) -> Self:
        for number in (signal.SIGINT, signal.SIGTERM):
            self._before[number] = signal.signal(number, self._handle)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def begin(self) -> None:
        """From now on they only count."""
        self._is_counting = True

    def _handle(self, number: int, frame: FrameType | None) -> None:
        self.count += 1
        if not self._is_counting:
            raise KeyboardInterrupt


class Watcher:
    """Turns what is new in a job's report into lines."""

    def __init__(self, handle: IngestHandle) -> None:
        self._handle = handle
        self._began_s = time.monotonic()
        self._checkpoints = self._failures = self._warnings = 0
        self._rows_by_subtask: dict[int, int] = {}
        self._committed_before = (0.0, 0)
        self._strikes: list[Strike] = []
        self._strikes_told = 0
        self.rows_read = 0
        self._readings: deque[tuple[float, int]] = deque([(0.0, 0)])

    def note_strike(self, strike: Strike) -> None:
        """Something was killed; any thread."""
        self._strikes.append(strike)

    @property
    def elapsed_s(self) -> float:
        """Seconds since the job was submitted."""
        return time.monotonic() - self._began_s

    @property
    def rows_per_s(self) -> float:
        """Rows read, repeated ones included, per second of the last `RATE_WINDOW_S`."""
        (before_s, before), (now_s, now) = self._readings[0], self._readings[-1]
        return (now - before) / max(now_s - before_s, POLL_S)

    def lines(self) -> list[str]:
        """What has happened since the last call."""
        self._count_rows()
        report = self._handle.report
        lines = [f"warning: {text}" for text in report.warnings[self._warnings :]]
        self._warnings += len(lines)
        for strike in self._strikes[self._strikes_told :]:
            lines.append(told_strike(strike))
            self._strikes_told += 1
        for failure in report.failures[self._failures :]:
            self._failures += 1
            who = "the job" if failure.subtask is None else f"subtask {failure.subtask}"
            lines.append(f"{who} goes back to its last checkpoint: {one_line(failure.reason)}")
        for checkpoint in report.checkpoints[self._checkpoints :]:
            self._checkpoints += 1
            if checkpoint.is_completed:
                lines.append(
                    f"checkpoint {checkpoint.checkpoint_id} complete: {checkpoint.duration_s:.2f} s"
                    f", {size(checkpoint.stored_bytes)}; {self._committed()}"
                )
            else:
                lines.append(
                    f"checkpoint {checkpoint.checkpoint_id} aborted: {one_line(checkpoint.reason)}"
                )
        return [f"{self.elapsed_s:6.1f} s  {line}" for line in lines]

    def _committed(self) -> str:
        now_s, rows = self.elapsed_s, self._handle.rows_committed
        before_s, before = self._committed_before
        self._committed_before = (now_s, rows)
        rate = (rows - before) / max(now_s - before_s, POLL_S)
        return f"{rows:,} rows committed, {rate:,.0f} rows/s"

    def _count_rows(self) -> None:
        for subtask, metrics in dict(self._handle.report.metrics).items():
            now = int(metrics.get("rows_read", 0))
            before = self._rows_by_subtask.get(subtask, 0)
            self._rows_by_subtask[subtask] = now
            # A new attempt counts from 0 again.
            self.rows_read += now - before if now >= before else now
        self._readings.append((self.elapsed_s, self.rows_read))
        while self._readings[-1][0] - self._readings[0][0] > RATE_WINDOW_S:
            self._readings.popleft()

    def table(self, recent: list[str]) -> Any:
        """The live display: totals, subtasks, and the most recent lines."""
        from rich.console import Group
        from rich.table import Table
        from rich.text import Text

        handle, report, status = self._handle, self._handle.report, self._handle.status()
        completed = len(report.completed())
        head = Text(
            f"{status.state}  {self.elapsed_s:.0f} s   {handle.rows_committed:,} rows committed   "
            f"{self.rows_per_s:,.0f} rows/s   {completed} checkpoints "
            f"({len(report.checkpoints) - completed} aborted)   "
            f"failovers: {report.regional_restarts} of a subtask, {report.global_restarts} of all",
            style="bold",
        )
        tasks = Table("subtask", "attempt", "state", "process", "rows read", box=None)
        for task in status.tasks:
            rows = int(report.metrics.get(task.subtask, {}).get("rows_read", 0))
            process = "-" if task.pid is None else f"{task.pid} on {task.host}"
            tasks.add_row(str(task.subtask), str(task.attempt), task.state, process, f"{rows:,}")
        return Group(head, tasks, *(Text(line, overflow="ellipsis") for line in recent[-8:]))


def watch(
    handle: IngestHandle,
    watcher: Watcher,
    *,
    each: Callable[[], None] = lambda: None,
    say: Callable[[str], None] | None = None,
) -> None:
    """Show the job until it is over; `each` is called every `POLL_S` seconds.

    `say` takes the lines; by default a live display on a terminal, or else stderr.
    """
    screen = console()
    if say is not None or not screen.is_terminal:
        tell = say or (lambda line: print(line, file=sys.stderr, flush=True))
        _poll(handle, watcher, each, lambda lines: [tell(line) for line in lines])
        return
    from rich.live import Live

    recent: list[str] = []
    with Live(console=screen, transient=True, auto_refresh=False) as live:

        def show(lines: list[str]) -> None:
            recent.extend(lines)
            live.update(watcher.table(recent), refresh=True)

        _poll(handle, watcher, each, show)
    for line in recent[-8:]:
        screen.print(line, markup=False)


def _poll(
    handle: IngestHandle,
    watcher: Watcher,
    each: Callable[[], None],
    show: Callable[[list[str]], object],
) -> None:
    while not handle.is_over:
        each()
        show(watcher.lines())
        with contextlib.suppress(TimeoutError):
            handle.job.wait(POLL_S)
    show(watcher.lines())


def told_strike(strike: Strike) -> str:
    """What was killed, in words."""
    felt = ", ".join(str(subtask) for subtask in strike.subtasks)
    plural = "s" if len(strike.subtasks) != 1 else ""
    if strike.kind == "executor":
        return f"killed (-9) executor {strike.pid}, which ran subtask{plural} {felt}"
    if strike.kind == "stop":
        return f"stopped (SIGSTOP) Python worker {strike.pid} of subtask {felt}"
    return f"killed (-9) Python worker {strike.pid} of subtask {felt}"
