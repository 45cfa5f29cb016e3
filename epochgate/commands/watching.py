"""The display of a running ingestion: live on a terminal, or plain lines.

Decides where lines go, and what Ctrl-C means. Used by the commands that run ingestions, on their
own thread.
"""

from __future__ import annotations

import contextlib
import logging
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from types import FrameType, TracebackType
from typing import TYPE_CHECKING, Any, Self

from epochgate.commands.progress import LINES_SHOWN, Progress
from epochgate.console import console
from epochgate.runtime.observing.log import JsonLines

if TYPE_CHECKING:
    from epochgate.spark.ingest.run import IngestHandle

POLL_S = 0.2


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


def json_lines(*, is_quiet: bool) -> logging.Handler:
    """Return what writes records as JSON objects on stderr; if quiet, those from WARNING on."""
    handler = logging.StreamHandler()
    handler.setFormatter(JsonLines())
    handler.setLevel(logging.WARNING if is_quiet else logging.INFO)
    return handler


@contextlib.contextmanager
def logging_to(
    handler: logging.Handler, level: str, *, usual: int = logging.WARNING
) -> Iterator[None]:
    """Let `handler` have what epochgate logs, and py4j be silent: what a lost process makes it say
    is said in the job's own words. `level`: of the command's --log-level; `usual`: from which level
    on epochgate logs where that is not info.
    """
    ours, py4j = logging.getLogger("epochgate"), logging.getLogger("py4j")
    before = (ours.level, ours.propagate, py4j.level)
    ours.addHandler(handler)
    ours.propagate = False
    ours.setLevel(logging.INFO if level == "info" else usual)
    py4j.setLevel(logging.CRITICAL if level == "error" else logging.WARNING)
    try:
        yield
    finally:
        ours.removeHandler(handler)
        ours.setLevel(before[0])
        ours.propagate = before[1]
        py4j.setLevel(before[2])


def watch(
    handle: IngestHandle,
    progress: Progress,
    *,
    each: Callable[[], None] = lambda: None,
    say: Callable[[str], None] | None = None,
) -> None:
    """Show the job until it is over; `each` is called every `POLL_S` seconds.

    `say` takes the lines; by default a live display on a terminal, or else stderr.
    """
    screen = console()
    if say is not None or not screen.is_terminal:
        tell = say or say_on_stderr
        watch_all([(handle, progress)], each=each, say=tell)
        return
    from rich.live import Live

    recent: list[str] = []
    with Live(console=screen, transient=True, auto_refresh=False) as live:

        def show(lines: list[str]) -> None:
            recent.extend(lines)
            live.update(progress.table(handle, recent), refresh=True)

        _poll([(handle, progress)], each, show)
    for line in recent[-LINES_SHOWN:]:
        screen.print(line, markup=False)


def watch_all(
    jobs: Sequence[tuple[IngestHandle, Progress]],
    *,
    each: Callable[[], None] = lambda: None,
    say: Callable[[str], None],
) -> None:
    """The same of several jobs side by side, until all of them are over, as lines."""

    def show(lines: list[str]) -> None:
        for line in lines:
            say(line)

    _poll(jobs, each, show)


def say_on_stderr(line: str) -> None:
    """A line of its own, at once."""
    print(line, file=sys.stderr, flush=True)


def _poll(
    jobs: Sequence[tuple[IngestHandle, Progress]],
    each: Callable[[], None],
    show: Callable[[list[str]], object],
) -> None:
    while running := [handle for handle, _ in jobs if not handle.is_over]:
        each()
        show([line for _, progress in jobs for line in progress.lines()])
        with contextlib.suppress(TimeoutError):
            running[0].job.wait(POLL_S)
    for handle, _ in jobs:
        handle.job.wait()  # until those who listen have heard the end
    show([line for _, progress in jobs for line in progress.lines()])
