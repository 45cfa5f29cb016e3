"""The search of a right system, kept from run to run by what it was made from.

The search of all systems takes longer than judging a mutant, and each process of `make test` needs
them. A file is written beside its place and then moved there, so none is half written.
"""

from __future__ import annotations

import hashlib
import inspect
import json
import os
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from epochgate.fsm.checker import Result, Verdict
from epochgate.fsm.closed import ClosedSystem
from tests.mutation.bodies import Case
from tests.mutation.sources import MODELS, meanings

ROOT = Path(__file__).resolve().parents[2]
KEPT = ROOT / ".pytest_cache" / "unbroken"


@dataclass(frozen=True)
class Unbroken:
    """One right system, explored as a whole."""

    states: int
    transitions: int
    never: frozenset[str]
    """The claims of something that happens which were not seen to."""
    taken: frozenset[Case]

    @classmethod
    def of(cls, result: Result) -> Unbroken:
        rows = (row for row in result.coverage if row.is_taken)
        taken = frozenset((row.machine, row.trigger, row.because) for row in rows)
        return cls(result.states, result.transitions, never(result), taken)


def never(result: Result) -> frozenset[str]:
    return frozenset(p.claim for p in result.properties if p.verdict is not Verdict.PASS)


def kept(system: ClosedSystem, search: Callable[[], Result], folder: Path = KEPT) -> Unbroken:
    """Return what an earlier run with the same sources has found, or the search finds now."""
    path = folder / f"{_key(system)}.json"
    if path.exists():
        found = json.loads(path.read_text(encoding="utf-8"))
        taken = frozenset((machine, trigger, why) for machine, trigger, why in found["taken"])
        return Unbroken(found["states"], found["transitions"], frozenset(found["never"]), taken)
    made = Unbroken.of(search())
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = path.with_name(f"{path.name}.{os.getpid()}")
    told = {**vars(made), "never": sorted(made.never), "taken": sorted(made.taken)}
    beside.write_text(json.dumps(told), encoding="utf-8")
    beside.replace(path)
    return made


def _key(system: ClosedSystem) -> str:
    kind = type(system)
    name = f"{kind.__module__}.{kind.__qualname__}"
    own = inspect.getsource(inspect.getmodule(kind) or kind)
    made_of = (each.__module__ for each in (*kind.__mro__, *kind.MACHINES.values()))
    models = meanings({module for module in made_of if module.startswith(MODELS)})
    parts = (_checker(), own, name, *models, json.dumps(system.constants, sort_keys=True))
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()


@cache
def _checker() -> str:
    """A digest of all that decides how a system is made and searched."""
    digest = hashlib.sha256()
    for path in sorted((ROOT / "fsm").rglob("*.py")):
        digest.update(f"{path.relative_to(ROOT)}\0".encode() + path.read_bytes() + b"\0")
    return digest.hexdigest()
