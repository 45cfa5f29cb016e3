"""Counts of the rows that were taken: an observer of systems, and its file.

`system.observer = tally` counts what one system takes. Several files are added up, and
`epochgate draw --taken-by` paints them on the pictures of the machines.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

from epochgate.errors import UsageError
from epochgate.fsm.machine import Machine
from epochgate.fsm.rows import Row
from epochgate.fsm.run_to_completion import Observer, Running

FORMAT = "epochgate rows taken, 1"


class NoTally(UsageError):
    """A file does not hold the counts of rows."""


class Place(NamedTuple):
    """A row in one of its states: of the machine with this name in its system, and this class."""

    machine: str
    title: str
    trigger: str
    source: str
    because: str


class Tally:
    """Counts rows; an instance is an observer."""

    def __init__(self, counts: Iterable[tuple[Place, int]] = ()) -> None:
        self.counts: Counter[Place] = Counter(dict(counts))
        self._names: dict[tuple[type, type], str] = {}

    def __call__(
        self, machine: Machine, source: str, row: Row, arguments: tuple[Any, ...] = ()
    ) -> None:
        """Count a row that a machine has taken."""
        kind, system = type(machine), type(machine.system)
        name = self._names.get((system, kind))
        if name is None:
            named = (name for name, each in system.MACHINES.items() if each is kind)
            name = self._names[system, kind] = next(named, kind.__name__)
        self.counts[Place(name, kind.__name__, row.trigger, source, row.because)] += 1

    def write(self, path: Path) -> None:
        """Write the counts to a file. Raises OSError."""
        rows = [[*place, times] for place, times in sorted(self.counts.items())]
        path.write_text(json.dumps({"format": FORMAT, "rows": rows}) + "\n", encoding="utf-8")

    def hear_all(self) -> None:
        """Count what every system of this process takes from now on, beside its own observer."""
        Running.observer = _Beside(self)  # type: ignore[assignment]  # read as an observer is

    @classmethod
    def of(cls, values: Any, path: Path) -> Tally:
        """Read the values of a file. Raises NoTally."""
        try:
            if values["format"] != FORMAT:
                raise NoTally(f"{path} has the format {values['format']!r}, not {FORMAT!r}")
            return cls((Place(*place), int(times)) for *place, times in values["rows"])
        except (KeyError, TypeError, ValueError) as error:
            raise NoTally(f"{path} does not hold the counts of rows: {error!r}") from error


class _Beside:
    """The attribute `observer` of all systems while a tally hears them."""

    def __init__(self, tally: Tally) -> None:
        self._tally = tally

    def __get__(self, system: Any, kind: type | None = None) -> Observer:
        return vars(system).get("observer") or self._tally

    def __set__(self, system: Any, observer: Observer | None) -> None:
        # One that was read here and is put back hears for the tally already.
        if not (observer is None or observer is self._tally or isinstance(observer, _Both)):
            observer = _Both(self._tally, observer)
        vars(system)["observer"] = observer


class _Both:
    def __init__(self, tally: Tally, observer: Observer) -> None:
        self._tally, self._observer = tally, observer

    def __call__(self, machine: Machine, source: str, row: Row, arguments: tuple[Any, ...]) -> None:
        self._tally(machine, source, row)
        self._observer(machine, source, row, arguments)
