"""Parts of a picture, made from the rows of a machine.

Rows that lead from one state to another are grouped by (source, dest); sources whose rows to a dest
are the same share one passage. Rows that stay are listed inside their state, or, when three
states or more have them, once for all. Ignored events are left to the table, but for those that
have changed.
"""

from __future__ import annotations

from dataclasses import dataclass

from epochgate.diagrams.description import Description
from epochgate.fsm import Row

STATES_SHARED_MIN = 3


@dataclass(frozen=True)
class Passage:
    """The rows that lead from each of `sources` to `dest`."""

    sources: tuple[str, ...]
    dest: str
    rows: tuple[Row, ...]


@dataclass(frozen=True)
class Shared:
    """Rows that the same several states take without being left."""

    states: tuple[str, ...]
    rows: tuple[Row, ...]


def passages(machine: Description) -> tuple[Passage, ...]:
    """Group the rows from state to state, by dest and then by source, in the order of STATES."""
    found = []
    for dest in machine.states:
        by_rows: dict[tuple[Row, ...], list[str]] = {}
        for source in machine.states:
            rows = tuple(
                row
                for row in machine.rows
                if row.dest == dest != source and source in machine.sources(row)
            )
            if rows:
                by_rows.setdefault(rows, []).append(source)
        found += [Passage(tuple(sources), dest, rows) for rows, sources in by_rows.items()]
    return tuple(found)


def staying(machine: Description, row: Row) -> tuple[str, ...]:
    """The states that `row` takes an event in without leaving them."""
    if row.is_ignored and row not in machine.drawn_ignored:
        return ()
    return tuple(s for s in machine.sources(row) if row.dest in (None, s))


def inner(machine: Description, state: str) -> tuple[Row, ...]:
    """The rows that are listed inside a state."""
    return tuple(
        row
        for row in machine.rows
        if state in (states := staying(machine, row)) and len(states) < STATES_SHARED_MIN
    )


def shared(machine: Description) -> tuple[Shared, ...]:
    """The rows that are listed once for several states."""
    groups: dict[tuple[str, ...], list[Row]] = {}
    for row in machine.rows:
        states = staying(machine, row)
        if len(states) >= STATES_SHARED_MIN:
            groups.setdefault(states, []).append(row)
    return tuple(Shared(states, tuple(rows)) for states, rows in groups.items())


def described(machine: Description, states: tuple[str, ...]) -> str:
    """Name several states in the shortest way: all, all but a few, or each."""
    others = [state for state in machine.states if state not in states]
    if not others:
        return "in every state"
    if len(others) <= 2 < len(states):
        return f"in every state but {' and '.join(map(spaced, others))}"
    return f"in {', '.join(map(spaced, states))}"


def spaced(name: str) -> str:
    """Write an identifier as words, as pictures do.

    >>> spaced("put_on_wire")
    'put on wire'
    """
    return name.replace("_", " ")


def guards(row: Row) -> str:
    """The condition of a row in words, empty when there is none."""
    return " and ".join(
        spaced(name) if held else f"not {spaced(name)}" for name, held in row.literals
    )


def reason(row: Row) -> str:
    """Return the reason of a row; empty in a table that gives none but the trigger."""
    return "" if row.because == row.trigger else row.because
