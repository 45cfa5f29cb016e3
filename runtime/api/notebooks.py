"""A job, its state or its result as a notebook shows it: a small table, by `_repr_html_`, or one
that is kept up to date while a cell runs.

Decides nothing of what they tell, which their `repr` and their fields do. The template escapes it.
IPython is used where it is loaded, and never imported.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Any, Final

from epochgate.runtime.api.cells import ipython

ROWS_MAX: Final = 100
"""Rows of a table; a notebook keeps what it has shown in its file."""
PERIOD_S: Final = 1.0
Show = Callable[[], None]


def fragment(
    name: str,
    state: str,
    figures: Iterable[tuple[str, object]],
    reason: str | None = None,
    head: Sequence[str] = (),
    rows: Sequence[Sequence[object]] = (),
    link: str | None = None,
) -> str:
    """Return the HTML of something with a state and figures by name, a table under them, and a link
    to more.
    """
    from epochgate.pages import page

    return page(
        "notebook.html",
        name=name,
        state=state,
        figures=[(one, value) for one, value in figures if value not in (None, "", 0)],
        reason=reason or "",
        head=head,
        rows=rows[:ROWS_MAX],
        more=max(0, len(rows) - ROWS_MAX),
        link=link or "",
    )


def is_notebook() -> bool:
    """Return whether this process is the kernel of a notebook."""
    return hasattr(ipython(), "kernel")


def show_while(
    thing: object,
    wait: Callable[[float | None], object],
    scope: AbstractContextManager[None],
    timeout_s: float | None = None,
) -> None:
    """Show `thing` each `PERIOD_S`, within `scope`, until `wait(seconds)` returns and raises no
    TimeoutError, or until `timeout_s` is over; behind that once more, also where something raises.
    """
    until_s = None if timeout_s is None else time.monotonic() + timeout_s
    with (_in_cell if is_notebook() else _on_terminal)(thing) as show:
        try:
            with scope:
                _show_until_over(show, wait, until_s)
        finally:
            show()


def _show_until_over(
    show: Show, wait: Callable[[float | None], object], until_s: float | None
) -> None:
    while True:
        show()
        left_s = PERIOD_S if until_s is None else until_s - time.monotonic()
        try:
            wait(max(0.0, min(PERIOD_S, left_s)))
        except TimeoutError:
            if left_s > 0:
                continue
        return


@contextmanager
def _in_cell(thing: object) -> Iterator[Show]:
    """An output of the cell, which is replaced."""
    outputs: list[Any] = []

    def show() -> None:
        if outputs:
            outputs[0].update(thing)
        else:
            outputs.append(sys.modules["IPython.display"].display(thing, display_id=True))

    yield show


@contextmanager
def _on_terminal(thing: object) -> Iterator[Show]:
    """A line that is replaced; where stderr is no terminal, one line in the end."""
    from rich.live import Live
    from rich.text import Text

    from epochgate.console import console

    with Live(console=console(), auto_refresh=False) as live:
        yield lambda: live.update(Text(repr(thing)), refresh=True)
