"""The output of a command: results as lines on stdout, and on stderr what happens while it works.

Decides that progress is for people: when stderr is not a terminal, bars and live displays show
nothing. And that text from a file or a job cannot control the terminal. Rich is imported at the
first use, so that `epochgate --help` answers at once.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress


def printable(text: str, keep: str = "") -> str:
    r"""Return `text` with escapes for what a terminal does not show as a character, except `keep`.

    >>> print(printable("id\x1b[2J\n"))
    id\x1b[2J\n
    """
    if text.isprintable():
        return text
    return "".join(
        one if one.isprintable() or one in keep else one.encode("unicode_escape").decode("ascii")
        for one in text
    )


def say(lines: Iterable[str]) -> None:
    """Print each of the lines as one line on stdout, with escapes for control characters."""
    sys.stdout.write("".join(f"{printable(line)}\n" for line in lines))


def console() -> Console:
    """Return a Rich console on the stderr of now."""
    from rich.console import Console

    return Console(stderr=True, highlight=False)


def is_interactive() -> bool:
    """Return whether a person watches stderr."""
    return console().is_terminal


def progress(unit: str = "steps") -> Progress:
    """Return a context manager that shows bars for tasks counted in `unit`; nothing without a
    terminal.

    with progress("files") as bars:
        task = bars.add_task("reading", total=len(files))
        for file in files:
            ...
            bars.advance(task)
    """
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    screen = console()
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn(unit),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
        console=screen,
        transient=True,
        disable=not screen.is_terminal,
    )


def note(text: str) -> None:
    """Tell a person who watches what happens now; `text` is Rich markup."""
    screen = console()
    if screen.is_terminal:
        screen.print(text)
