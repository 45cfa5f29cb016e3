"""The part of a result that searches of the same system agree on, wherever they run."""

from __future__ import annotations

import dataclasses
from typing import Any

from epochgate.fsm.checker import Result
from epochgate.fsm.claims import WITHOUT_END
from epochgate.fsm.closed import ClosedSystem


def without_promises(system: ClosedSystem) -> ClosedSystem:
    """The system without claims about runs without end."""
    kept = tuple(claim for claim in system.properties() if claim.kind not in WITHOUT_END)
    system.properties = lambda: kept  # type: ignore[method-assign]
    return system


def found(result: Result) -> dict[str, Any]:
    """All that depends neither on the place of a search nor on its choice of a shortest way."""
    told = dataclasses.asdict(result)
    counterexample = result.counterexample
    way = None if counterexample is None else (counterexample.kind, len(counterexample.steps))
    names = ("system", "constants", "verdict", "depth", "symmetry", "notes")
    counts = ("states", "transitions", "terminal_states", "coverage", "properties")
    same = {name: told[name] for name in (*names, *(counts if way is None else ()))}
    return {**same, "way": way}
