"""How often the rows of a machine were taken, and by what, painted on its picture."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from epochgate.diagrams.description import Description, Mark, Painting
from epochgate.diagrams.passages import spaced
from epochgate.fsm import Row
from epochgate.fsm.tally import Place, Tally


@dataclass
class Taken:
    """What one kind of source (journals, tests, checks) took: how often, or for a check only that
    it did.
    """

    tally: Tally = field(default_factory=Tally)
    is_counted: bool = True

    def times(self, machine: Description, row: Row, state: str) -> int:
        """Return how often a row was taken in a state."""
        title = machine.title
        return sum(
            self.tally.counts[Place(name, each, row.trigger, state, row.because)]
            for name, each in self._known(machine.name, title)
        )

    def _known(self, name: str, title: str) -> set[tuple[str, str]]:
        """The names and classes under which the machine was seen."""
        seen = {(place.machine, place.title) for place in self.tally.counts}
        return {pair for pair in seen if pair[0] == name or pair[1] == title}


def painted(machine: Description, sources: Mapping[str, Taken]) -> Painting:
    """Paint each row with how often it was taken, and those that nothing took so that they stand
    out; a state is one that nothing came to if none of its rows was taken nor led there.
    """
    marks, met = dict[Row, Mark](), {machine.initial}
    for row in machine.rows:
        states = machine.sources(row)
        by_state = {
            state: sum(taken.times(machine, row, state) for taken in sources.values())
            for state in states
        }
        never = [state for state in states if not by_state[state]]
        if len(never) == len(states):
            marks[row] = Mark("never", "never taken", "never")
            continue
        met |= {row.dest or machine.initial, *(s for s in states if by_state[s])}
        told = [_told(name, taken, machine, row) for name, taken in sources.items()]
        if never:
            told.append(f"never in {', '.join(map(spaced, never))}")
        times = sum(
            taken.times(machine, row, state)
            for taken in sources.values()
            for state in states
            if taken.is_counted
        )
        marks[row] = Mark("", "; ".join(told), f"×{times:,}" if times else "taken")
    unmet = {s: Mark("never", "never reached") for s in machine.states if s not in met}
    return Painting(f"taken by {', '.join(sources)}", marks, unmet)


def _told(name: str, taken: Taken, machine: Description, row: Row) -> str:
    times = sum(taken.times(machine, row, state) for state in machine.sources(row))
    if not times:
        return f"{name}: never"
    return f"{name}: {times:,}" if taken.is_counted else f"{name}: taken"
