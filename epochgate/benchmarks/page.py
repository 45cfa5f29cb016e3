"""Keeps the figures in docs/benchmarks.md: one section for each question, between two markers.

Decides that a question which was not measured now keeps what was written before.
"""

from __future__ import annotations

import re
from pathlib import Path

from epochgate.benchmarks.figures import Table
from epochgate.errors import UsageError

START, END = "<!-- bench:start -->", "<!-- bench:end -->"


class NoPlaceForFigures(UsageError):
    """The file has no, or not exactly one, place for figures."""


def section(table: Table, measured_on: str) -> str:
    """Return what stands in the page for one question."""
    return f"<!-- bench:{table.question} -->\n{table.markdown()}\n\nMeasured on {measured_on}."


def with_sections(text: str, sections: dict[str, str], order: tuple[str, ...]) -> str:
    r"""Return `text` with these sections in place of those of the same questions.

    Raises NoPlaceForFigures.

    >>> text = f"before\n{START}\n{END}\nafter\n"
    >>> text = with_sections(text, {"b": "<!-- bench:b -->\n2"}, ("a", "b"))
    >>> print(with_sections(text, {"a": "<!-- bench:a -->\n1"}, ("a", "b")))
    before
    <!-- bench:start -->
    <!-- bench:a -->
    1
    <BLANKLINE>
    <!-- bench:b -->
    2
    <!-- bench:end -->
    after
    <BLANKLINE>
    """
    if text.count(START) != 1 or text.count(END) != 1 or text.index(END) < text.index(START):
        raise NoPlaceForFigures(
            f"there is no place for figures: expected one line {START} and, after it, one {END}; "
            "add them, or run without --write"
        )
    before, rest = text.split(START)
    old, after = rest.split(END)
    parts = re.split(r"(?=<!-- bench:[\w-]+ -->)", old)
    found = {
        re.findall(r"bench:([\w-]+)", part)[0]: part.strip() for part in parts if "bench:" in part
    }
    found.update(sections)
    kept = "\n\n".join(found[question] for question in order if question in found)
    return f"{before}{START}\n{kept}\n{END}{after}"


def write(page: Path, sections: dict[str, str], order: tuple[str, ...]) -> None:
    """Put the sections into a file; NoPlaceForFigures, also when there is no such file."""
    try:
        text = page.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise NoPlaceForFigures(
            f"there is no {page}; run this in epochgate's own folder, or without --write"
        ) from None
    page.write_text(with_sections(text, sections, order), encoding="utf-8")
