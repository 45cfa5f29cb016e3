"""What two searches of the same system must agree on, wherever they run."""

from __future__ import annotations

import dataclasses
from typing import Any

from epochgate.fsm.checker import Result


def found(result: Result) -> dict[str, Any]:
    """What does not depend on where a search runs, nor which of several shortest ways it tells."""
    told = dataclasses.asdict(result)
    counterexample = result.counterexample
    way = None if counterexample is None else (counterexample.kind, len(counterexample.steps))
    names = ("system", "constants", "verdict", "depth", "symmetry", "notes")
    counts = ("states", "transitions", "terminal_states", "coverage", "properties")
    same = {name: told[name] for name in (*names, *(counts if way is None else ()))}
    return {**same, "way": way}
