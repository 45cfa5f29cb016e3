"""The ways to run a search, and which of them this machine has."""

from __future__ import annotations

from dataclasses import dataclass
from importlib.util import find_spec

from epochgate.errors import UsageError
from epochgate.fsm.checker.compiler.ir import Program
from epochgate.fsm.checker.compiler.layout import Layout
from epochgate.fsm.checker.compiler.python_target import PythonTarget
from epochgate.fsm.checker.engines.interpreted import InterpretedTarget
from epochgate.fsm.checker.engines.python_search import PlainSearch
from epochgate.fsm.checker.engines.search import Search
from epochgate.fsm.checker.memory_limit import usable_bytes
from epochgate.fsm.closed import ClosedSystem

ENGINES = ("llvm", "python", "interpreted")
"""From the fastest to the one that needs no compiler: the machines themselves."""


class EngineUnavailable(UsageError):
    """An engine was asked for that this machine, or this search, cannot use."""


@dataclass(frozen=True)
class Setting:
    """The requirements that an engine is made for."""

    system: ClosedSystem
    program: Program
    layout: Layout
    final: str | None
    workers: int
    memory_max: int | None
    """In bytes; None for most of what is free once the search is compiled."""
    optimise_from: int


def chosen(engine: str | None) -> str:
    """The engine of this name, or with None the fastest there is.

    Raises EngineUnavailable.
    """
    missing = {
        "llvm": [name for name in ("llvmlite", "numpy") if find_spec(name) is None],
    }
    if engine is None:
        return next(name for name in ENGINES if not missing.get(name))
    if engine not in ENGINES:
        raise EngineUnavailable(f"there is no engine {engine!r}; choose from {', '.join(ENGINES)}")
    if missing.get(engine):
        raise EngineUnavailable(
            f"the engine {engine!r} needs {' and '.join(missing[engine])}; `pip install "
            f"epochgate-proving` brings both; --engine python is the fastest without"
        )
    return engine


def search(engine: str, setting: Setting) -> Search:
    """A search by an engine; compiles what it needs."""
    program, final = setting.program, setting.final
    if engine != "llvm" and setting.workers > 1:
        raise EngineUnavailable(
            f"the engine {engine!r} works alone; take 'llvm' for {setting.workers} workers"
        )
    if engine == "llvm":
        from epochgate.fsm.checker.engines.compiled import CompiledSearch
        from epochgate.fsm.checker.engines.functions import compiled_target

        workers, threshold = setting.workers, setting.optimise_from
        target = compiled_target(program, final, workers, is_quick=threshold > 0)
        memory_max = usable_bytes() if setting.memory_max is None else setting.memory_max
        return CompiledSearch(program, target, workers, memory_max, threshold)
    if engine == "python":
        return PlainSearch(PythonTarget(program), program, final)
    interpreted = InterpretedTarget(setting.system, program, setting.layout)
    return PlainSearch(interpreted, program, final)


def is_compiled(found: Search) -> bool:
    """Return true if a search is one in machine code."""
    return type(found).__name__ == "CompiledSearch"
