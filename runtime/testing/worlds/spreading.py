"""Simulated tests outside pytest: found by name, run in parts that processes or executors share,
and the first failure shrunk where the parts were handed out.

A part is a test with a range of seeds. What comes back is small and can be pickled, so that a part
runs in this process, in others, or in tasks of Spark alike.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from importlib import import_module
from typing import Final

from epochgate.fsm import Row
from epochgate.runtime.testing.worlds.searching import Found
from epochgate.runtime.testing.worlds.simulate import Simulation, simulate

SEEDS_PER_PART: Final = 50


@dataclass(frozen=True)
class Part:
    """A range of seeds of one test; `folder` is looked into first for the module."""

    module: str
    test: str
    first_seed: int
    seeds: int
    seconds: float
    folder: str


@dataclass
class Scanned:
    """The outcome of a part; `seeds` are those that were tried, each once."""

    test: str
    seeds: int = 0
    runs: int = 0
    steps: int = 0
    seconds: float = 0.0
    failing_seed: int | None = None
    taken: set[tuple[str, str, Row]] = field(default_factory=set)
    struck: set[tuple[str, str]] = field(default_factory=set)
    points: set[tuple[str, str]] = field(default_factory=set)
    reached: dict[str, bool] = field(default_factory=dict)


def simulations(module_name: str, name: str = "") -> dict[str, Simulation]:
    """The simulated tests of a module by name, or the one that is named; a plain function whose
    first parameter is `world` is one as well.
    """
    module = import_module(module_name)
    named = {name: getattr(module, name, None)} if name else dict(vars(module))
    found = {}
    for key, value in named.items():
        if name and callable(value) and not hasattr(value, "simulation"):
            code = getattr(value, "__code__", None)
            if code is not None and code.co_varnames[:1] == ("world",):
                value = simulate(value)
        simulation = getattr(value, "simulation", None)
        if isinstance(simulation, Simulation):
            found[key] = simulation
    return found


def scan(part: Part) -> Scanned:
    """Run a part, wherever this is."""
    sys.path.insert(0, part.folder)
    try:
        simulation = simulations(part.module, part.test)[part.test]
    finally:
        sys.path.remove(part.folder)
    seeds = range(part.first_seed, part.first_seed + part.seeds)
    found = simulation.search().scan(seeds, part.seconds)
    return Scanned(
        part.test,
        found.seeds,
        found.runs,
        found.steps,
        found.seconds,
        None if found.first is None else found.seed,
        found.taken,
        found.struck,
        found.points,
        found.reached,
    )


def add(found: Found, scanned: Scanned) -> None:
    """Add what came of a part to what is known of its test."""
    found.seeds += scanned.seeds
    found.runs += scanned.runs
    found.steps += scanned.steps
    found.seconds += scanned.seconds
    found.taken |= scanned.taken
    found.struck |= scanned.struck
    found.points |= scanned.points
    for text, has_come_true in scanned.reached.items():
        found.reached[text] = found.reached.get(text, False) or has_come_true


def shrunk(simulation: Simulation, seed: int) -> Found:
    """The failure of a seed, found once more and shrunk."""
    return simulation.search().at_random(2, seed)
