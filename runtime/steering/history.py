"""The decisions and updates of a control, read from outside: which batch ran with what, and since
when.

Decides nothing: which numbers count is a guard of the machine, and since when a version is in force
stands in the decisions, which never change. Reads while queries run; an entry that is removed
meanwhile is left out. Any process, any thread.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from epochgate.models.batch_decision import BatchDecisions
from epochgate.runtime.entries.numbered import Numbered
from epochgate.runtime.entries.stores import Entries
from epochgate.runtime.steering.deciding import Decision
from epochgate.runtime.steering.errors import HistoryForgotten
from epochgate.runtime.steering.layout import decisions_of, versions_of
from epochgate.runtime.steering.values import Value

_DECISIONS = BatchDecisions()


@dataclass(frozen=True)
class Update:
    """An update: its number, what it changed, what all up to it come to, when (seconds since 1970),
    and by whom.
    """

    version: int
    changes: Value
    value: Value
    updated_at: float
    updated_by: str


def updates(entries: Entries, control: str) -> list[Update]:
    """The newest updates, oldest first. Raises OSError, ValueError."""
    return [
        Update(one["version"], one["changes"], one["value"], one["at"], one["by"])
        for one in _newest_of(versions_of(entries, control))
    ]


def decisions(entries: Entries, control: str, query: str) -> list[Decision]:
    """The newest decisions for a query, oldest first. Raises OSError, ValueError."""
    return list(map(Decision.from_entry, _newest_of(decisions_of(entries, control, query))))


def kept(entries: Entries, control: str, query: str | None) -> dict[str, int]:
    """Figures of what is there: the newest update and how many are kept; of a query, how many
    decisions are, and of the newest its batch, its update, since which batch that is in force, and
    how many updates have come since. Raises OSError, ValueError.
    """
    there = _counting(versions_of(entries, control).numbers())
    newest = there[-1] if there else 0
    figures = {"version": newest, "versions_kept": len(there)}
    numbered = query and decisions_of(entries, control, query)
    decided = _counting(numbered.numbers()) if numbered else []
    if numbered and decided:
        last = Decision.from_entry(numbered.get(decided[-1]))
        figures |= {
            "decisions_kept": len(decided),
            "batch": last.batch,
            "effective_version": last.version,
            "effective_from": last.since,
            "pending": newest - last.version,
        }
    return figures


def effective_from(entries: Entries, control: str, query: str, version: int) -> int | None:
    """The first batch that ran, or is to run, with this version or a later one; none if there is
    none yet. Raises HistoryForgotten, OSError, ValueError.
    """
    numbered = decisions_of(entries, control, query)
    for _ in range(3):
        try:
            return _first(numbered, control, query, version)
        except FileNotFoundError:  # the oldest, which was removed while it was looked for
            continue
    return _first(numbered, control, query, version)


def _first(numbered: Numbered, control: str, query: str, version: int) -> int | None:
    there = _counting(numbered.numbers())
    low, high = 0, len(there)
    while low < high:
        middle = (low + high) // 2
        if Decision.from_entry(numbered.get(there[middle])).version < version:
            low = middle + 1
        else:
            high = middle
    if low == len(there):
        return None
    first = Decision.from_entry(numbered.get(there[low]))
    if low > 0 or first.version == version or first.batch == 0:
        return first.since
    raise HistoryForgotten(control, version, query, first.batch)


def _counting(numbers: list[int]) -> list[int]:
    """Without those that are forgotten by their number; of updates as of decisions."""
    (machine,) = _DECISIONS.batch_decision
    return [number for number in numbers if not machine.is_forgotten(numbers[-1] - number)]


def _newest_of(numbered: Numbered) -> Iterator[dict[str, Any]]:
    for number in _counting(numbered.numbers()):
        try:
            yield numbered.get(number)
        except FileNotFoundError:
            continue
