"""The reach of all simulated tests together: which rows of the job's machines no run has taken, and
which faults met which moments.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Final

from epochgate.models.job import Job
from epochgate.runtime.testing.worlds.exploring import Explored
from epochgate.runtime.testing.worlds.report import by_fault, moments
from epochgate.runtime.testing.worlds.searching import Found

NAMED_MAX: Final = 3
"""Of how many faults a short line says which moments they have not met."""


def feedback(found: Mapping[str, Found], is_long: bool, option: str = "-v") -> Iterator[str]:
    """A few lines on all tests; `is_long` lists every row that was not taken, which `option`
    asks for.
    """
    runs, steps = sum(f.runs for f in found.values()), sum(f.steps for f in found.values())
    taken = set().union(*(f.taken for f in found.values()))
    known = [
        (name, source, row)
        for name, machine in Job.MACHINES.items()
        for source, row in machine.expanded_rows()
    ]
    never = [one for one in known if one not in taken]
    tests = f"{len(found)} simulated test{'s' * (len(found) > 1)}"
    yield f"{tests}: {runs:,} runs, {steps:,} steps"
    yield f"rows of the job's machines taken: {len(known) - len(never)} of {len(known)}"
    for name, one in found.items():
        if isinstance(one, Explored):
            yield f"{name}: {one.told()}"
        if one.unmet and one.failure is None:
            yield f"{name}: {_unmet(one, is_long, option)}"
        if one.is_part and one.never:
            never_met = ", ".join(map(repr, one.never))
            yield f"{name}: not judged in {one.runs} runs, fewer than the test's: {never_met}"
    counts = Counter(name for name, *_ in never)
    if not is_long:
        told = ", ".join(f"{name} {count}" for name, count in counts.items())
        yield f"never taken, by machine: {told or 'none'} ({option} lists them)"
        return
    for name, source, row in never:
        yield f"  never: {name}.{row.trigger} in {source} ({row.because})"
    for name, one in found.items():
        yield f"faults of {name} and what the job was doing:"
        for line in moments(one):
            yield f"  {line}"


def _unmet(one: Found, is_long: bool, option: str) -> str:
    """Tell what these runs were too few for."""
    met, lines = len(one.points) - len(one.unmet), by_fault(one.unmet)
    shown = lines if is_long else lines[:NAMED_MAX]
    rest = len(lines) - len(shown)
    more = f"; and {rest} other faults ({option} lists them)" if rest > 0 else ""
    return (
        f"{one.runs:,} runs are too few for each fault at each moment: {met} of {len(one.points)} "
        f"happened. Not met: {'; '.join(shown)}{more}"
    )
