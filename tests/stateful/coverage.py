"""The reach of a fuzzing session: rows of every machine, checkpoints, failovers, and the schedule
of the last example, which is the shrunk one when something was found.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

from epochgate.fsm import Machine, Row
from epochgate.models.job import Job
from tests.stateful.fuzzed import FuzzedJob


@dataclass
class Coverage:
    """Counts over all examples of a session; `progress` is told after each of them."""

    examples: int = 0
    steps: int = 0
    starts: int = 0
    rows: Counter[tuple[str, str, Row]] = field(default_factory=Counter)
    schedule: list[str] = field(default_factory=list)
    progress: Callable[[], None] | None = None
    _names: dict[type[Machine], str] = field(default_factory=dict)

    def observe(self, machine: Machine, source: str, row: Row) -> None:
        """Note that a row was taken."""
        kind = type(machine)
        if kind not in self._names:
            self._names[kind] = _name(kind)
        self.rows[self._names[kind], source, row] += 1

    def end_example(self, fuzzed: FuzzedJob) -> None:
        """Add up one example."""
        self.examples += 1
        self.steps += len(fuzzed.schedule)
        self.starts += fuzzed.simulated.starts
        self.schedule = fuzzed.schedule
        if self.progress is not None:
            self.progress()

    def taken(self, machine: str, trigger: str, dest: str | None) -> int:
        """Return how often a row with this trigger and dest was taken; None stays."""
        return sum(
            count
            for (name, _, row), count in self.rows.items()
            if (name, row.trigger, row.dest) == (machine, trigger, dest)
        )

    def taken_into(self, machine: str, dest: str) -> int:
        """Return how often a row of the machine led into this state."""
        return sum(
            n for (name, _, row), n in self.rows.items() if (name, row.dest) == (machine, dest)
        )

    def never_taken(self) -> list[str]:
        """The rows that no example took, as `machine: trigger in state (reason)`."""
        return [
            f"{name}: {row.trigger} in {source} ({row.because})"
            for name, machine in Job.MACHINES.items()
            for source, row in machine.expanded_rows()
            if (name, source, row) not in self.rows
        ]

    def rows_known(self) -> int:
        """Return how many rows there are, each once for each of its source states."""
        return sum(len(machine.expanded_rows()) for machine in Job.MACHINES.values())


def _name(machine: type[Machine]) -> str:
    for name, known in Job.MACHINES.items():
        if issubclass(machine, known):
            return name
    return machine.__name__
