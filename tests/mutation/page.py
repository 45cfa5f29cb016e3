"""The tables of docs/mutants.md, made of the verdicts that are kept."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from tests.mutation.every import KINDS
from tests.mutation.homes import HOMES
from tests.mutation.verdicts import (
    NOT_ASKED,
    NOWHERE,
    REFUSED,
    SURVIVES,
    UNSEARCHED,
    UNTESTED,
    UNTRIED,
    kept,
)

PAGE = Path(__file__).parents[2] / "docs" / "mutants.md"
START, END = "<!-- mutants:start -->", "<!-- mutants:end -->"
COLUMNS = (
    "made",
    "refused",
    "nowhere",
    "by the checker",
    "by tests",
    "with a reason",
    "surviving",
    "not judged",
)
WORDS = {
    REFUSED: "refused",
    NOWHERE: "nowhere",
    "": "not judged",
    UNTRIED: "not judged",
    UNSEARCHED: "not judged",
    UNTESTED: "not judged",
    NOT_ASKED: "with a reason",
}

Cell = tuple[str, str]
"""A machine and a kind."""


def counted(reason_for: Callable[[str], str]) -> dict[Cell, Counter[str]]:
    """Return how many mutants of each machine and kind belong in each column."""
    counts: dict[Cell, Counter[str]] = {}
    for machine in HOMES:
        if (told := kept(machine)) is None:
            continue
        for kind, verdicts in told.kinds.items():
            columns = Counter(_column(each) for each in verdicts if each != SURVIVES)
            for name in told.surviving.get(kind, ()):
                columns["with a reason" if reason_for(name) else "surviving"] += 1
            counts[machine, kind] = columns
    return counts


def _column(verdict: str) -> str:
    return WORDS.get(verdict) or ("by the checker" if verdict.startswith("checker") else "by tests")


def tables(reason_for: Callable[[str], str]) -> Iterator[str]:
    """The lines of all tables."""
    counts = counted(reason_for)
    yield from _table("machine", HOMES, counts, 0)
    yield ""
    yield from _table("kind", KINDS, counts, 1)
    yield ""
    yield "Made, and in brackets found by the checker and by tests, for each kind and machine:"
    yield ""
    judged = [machine for machine in HOMES if any(cell[0] == machine for cell in counts)]
    yield _line("kind", *judged)
    yield _line(*["---"] * (len(judged) + 1))
    for kind in KINDS:
        yield _line(kind, *(_cell(counts.get((machine, kind))) for machine in judged))
    if left := [*_left(reason_for)]:
        yield from ("", "These survive, and have no reason:", "")
        yield from (f"- `{name}`" for name in left)


def _table(
    head: str, names: Iterable[str], counts: dict[Cell, Counter[str]], of: int
) -> Iterator[str]:
    yield _line(head, *COLUMNS)
    yield _line("---", *["---:"] * len(COLUMNS))
    for name in [*names, "all"]:
        own: Counter[str] = Counter()
        for cell, columns in counts.items():
            own += columns if name in (cell[of], "all") else Counter()
        told = own.total() or "", *(own[column] or "" for column in COLUMNS[1:])
        yield _line(name if own else f"{name} (not judged)", *map(str, told))


def _cell(columns: Counter[str] | None) -> str:
    if columns is None:
        return ""
    return f"{columns.total()} ({columns['by the checker']}, {columns['by tests']})"


def _left(reason_for: Callable[[str], str]) -> Iterator[str]:
    for machine in HOMES:
        told = kept(machine)
        for names in told.surviving.values() if told else ():
            yield from (name for name in names if not reason_for(name))


def _line(*cells: str) -> str:
    return f"| {' | '.join(cells)} |"


def page(text: str, reason_for: Callable[[str], str]) -> str:
    """The page with these tables in it."""
    before, rest = text.split(START)
    _, after = rest.split(END)
    told = "\n".join(tables(reason_for))
    return f"{before}{START}\n{told}\n{END}{after}"
