"""The table of the outcomes of all mutants that were judged, which pytest prints at the end: those
of bodies under the name of their machine, and those of its rows beside them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

from tests.mutation.outcomes import COLUMNS

PROPERTY = "mutant"
"""What a test records about each mutant: its machine, the column in which it counts, its name."""


def lines(recorded: Iterable[tuple[str, str, str]]) -> Iterator[str]:
    """A line for each machine, one for all, and the names of the mutants that neither finds."""
    found = list(recorded)
    machines = dict.fromkeys(machine for machine, _, _ in found)
    width = max(map(len, [*machines, "machine"]), default=0)
    yield "  ".join(["machine".ljust(width), *COLUMNS])
    for machine in [*machines, "all"]:
        counts = Counter(column for of, column, _ in found if machine in (of, "all"))
        told = [counts.total(), *(counts[column] for column in COLUMNS[1:])]
        cells = [str(n).rjust(len(column)) for n, column in zip(told, COLUMNS, strict=True)]
        yield "  ".join([machine.ljust(width), *cells])
    yield from (f"by neither: {name}" for _, column, name in found if column == "by neither")
