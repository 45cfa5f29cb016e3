"""A job, its state or its result as a notebook shows it: a small table, by `_repr_html_`.

Decides nothing of what they tell, which their `repr` and their fields do. The template escapes it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

ROWS_MAX = 100
"""Rows of a table; a notebook keeps what it has shown in its file."""


def fragment(
    name: str,
    state: str,
    figures: Iterable[tuple[str, object]],
    reason: str | None = None,
    head: Sequence[str] = (),
    rows: Sequence[Sequence[object]] = (),
) -> str:
    """Return the HTML of something with a state and figures by name, and a table under them."""
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
    )
