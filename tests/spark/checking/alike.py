"""The part of a result that searches of the same system agree on, wherever they run."""

from __future__ import annotations

import dataclasses
from typing import Any

from epochgate.fsm.checker import Result


def found(result: Result) -> dict[str, Any]:
    """All that depends neither on the place of a search nor on its choice of a shortest way."""
    told = dataclasses.asdict(result)
    counterexample = result.counterexample
    way = None if counterexample is None else (counterexample.kind, len(counterexample.steps))
    names = ("system", "constants", "verdict", "depth", "symmetry", "notes")
    counts = ("states", "transitions", "terminal_states", "coverage", "properties")
    same = {name: told[name] for name in (*names, *(counts if way is None else ()))}
    return {**same, "way": way}
