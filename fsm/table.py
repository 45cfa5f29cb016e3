"""The full product of states and triggers: what each machine takes, ignores and refuses.

A reviewer reads it to see what is missing; a snapshot of it is a test.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from itertools import product

from epochgate.fsm.machine import Machine
from epochgate.fsm.rows import Row


class Handling(Enum):
    """The handling of a (state, trigger) pair, whatever its guards say: `partly` refuses some guard
    outcomes.
    """

    TAKEN = "taken"
    IGNORED = "ignored"
    PARTLY = "partly"
    REFUSED = "refused"


@dataclass(frozen=True)
class TableCell:
    """One state and trigger with the rows that take or ignore it, and whether these cover every
    guard outcome.
    """

    state: str
    trigger: str
    rows: tuple[Row, ...]
    handling: Handling


def _covers_everything(rows: tuple[Row, ...]) -> bool:
    guards = sorted({name for row in rows for name, _ in row.literals})
    outcomes = (
        dict(zip(guards, values, strict=True))
        for values in product((False, True), repeat=len(guards))
    )
    return all(
        any(all(outcome[name] == expected for name, expected in row.literals) for row in rows)
        for outcome in outcomes
    )


def handling(rows: tuple[Row, ...]) -> Handling:
    """Say how the rows of one state and trigger handle it."""
    if not rows:
        return Handling.REFUSED
    if not _covers_everything(rows):
        return Handling.PARTLY
    return Handling.IGNORED if all(row.is_ignored for row in rows) else Handling.TAKEN


def handling_table(machine: type[Machine]) -> tuple[TableCell, ...]:
    """One cell for every state and trigger, by state and then in the order of the alphabet."""
    cells = []
    for state in machine.STATES:
        for trigger in machine.triggers():
            rows = tuple(
                row
                for source, row in machine.expanded_rows()
                if source == state and row.trigger == trigger
            )
            cells.append(TableCell(state, trigger, rows, handling(rows)))
    return tuple(cells)
