"""Counts of the rows that were taken, by their sources, painted on a picture."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from epochgate.diagrams.description import Description, Mark, Painting
from epochgate.diagrams.passages import spaced
from epochgate.fsm import Row
from epochgate.fsm.tally import Place, Tally


@dataclass
class Taken:
    """The rows that one kind of source (journals, tests, checks) took: how often, or for a check
    only that it did.
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
    rows, places = dict[Row, Mark](), dict[tuple[Row, str], Mark]()
    met = {machine.initial}
    for row in machine.rows:
        states = machine.sources(row)
        rows[row] = _mark(machine, sources, row, states)
        places |= {(row, state): _mark(machine, sources, row, (state,)) for state in states}
        taken_in = [state for state in states if not places[row, state].paint]
        if taken_in:
            met |= {*taken_in, row.dest or taken_in[0]}
        if taken_in and len(taken_in) < len(states):
            never = ", ".join(spaced(state) for state in states if state not in taken_in)
            rows[row] = replace(rows[row], note=f"{rows[row].note}; never in {never}")
    unmet = {s: Mark("never", "never reached") for s in machine.states if s not in met}
    return Painting(f"taken by {', '.join(sources)}", rows, unmet, places)


def _mark(
    machine: Description, sources: Mapping[str, Taken], row: Row, states: Sequence[str]
) -> Mark:
    """Return the mark of a row that is shown for these states."""
    times = {
        name: sum(taken.times(machine, row, state) for state in states)
        for name, taken in sources.items()
    }
    if not any(times.values()):
        return Mark("never", "never taken", "×0")
    told = [
        f"{name}: {f'{count:,}' if sources[name].is_counted else 'taken'}"
        if count
        else f"{name}: never"
        for name, count in times.items()
    ]
    counted = sum(count for name, count in times.items() if sources[name].is_counted)
    return Mark("", "; ".join(told), f"×{counted:,}" if counted else "taken")
