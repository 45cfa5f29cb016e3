"""Random walks: long runs of systems too large to explore, repeatable from a seed.

A walk begins in an initial state and ends where no step is possible, where it only goes round,
after `walk_max` steps, or in a violation, which is then made short. What was seen says nothing
about what was not: without a violation the verdict is BOUNDED. `states` are the ones visited,
counted each time.

Walks are numbered, shared out in batches, and counted in the order of their numbers, so that the
result is the same whatever number of workers takes them.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from queue import SimpleQueue
from typing import Any

from epochgate.fsm.checker.compiler.ir import Program
from epochgate.fsm.checker.compiler.lowering import Lowering
from epochgate.fsm.checker.compiler.python_target import PythonTarget
from epochgate.fsm.checker.engines import choice
from epochgate.fsm.checker.engines.initial import initial_states
from epochgate.fsm.checker.engines.interpreted import InterpretedTarget
from epochgate.fsm.checker.engines.python_search import Target
from epochgate.fsm.checker.outcome import Outcome, StoppedEarly, Walk
from epochgate.fsm.checker.result import Result
from epochgate.fsm.checker.shrinking import shortened
from epochgate.fsm.checker.walking import Code, CompiledWalker, PlainWalker, Tally, Walker, Walks
from epochgate.fsm.closed import ClosedSystem

STUCK_WALKS_MAX = 1000
"""How many walks may find no step possible in their initial states."""
BATCH_STEPS = {"llvm": 1 << 15, "python": 1 << 11, "interpreted": 1 << 9}
"""About how many steps a batch of walks has: some hundredths of a second."""
AHEAD = 2
"""Batches for each worker that are begun before they are counted."""


class _Run:
    """The walks of one simulation, by some workers."""

    def __init__(self, walkers: Sequence[Walker], steps: int, batch_steps: int) -> None:
        self._steps, self._batch_steps, self._count = steps, batch_steps, len(walkers)
        self._idle: SimpleQueue[Walker] = SimpleQueue()
        for walker in walkers:
            self._idle.put(walker)

    def take(self, starts: int, reason_to_stop: Callable[[], str]) -> tuple[Tally, str]:
        """Take walks up to the first violation, the last step, or a reason to stop, which is asked
        for between batches; returns it with what was seen.
        """
        tally = Tally()
        with ThreadPoolExecutor(self._count) as executor:
            for first, end, found in self._batches(executor):
                left = self._steps - tally.transitions
                if found.transitions > left or (found.found and found.transitions == left):
                    found = self._batch(first, end, left)
                tally.add(found)
                if tally.found is not None or tally.transitions >= self._steps:
                    break
                if not tally.transitions and tally.walks >= min(starts, STUCK_WALKS_MAX):
                    return tally, "no step is possible where the walks began"
                if reason := reason_to_stop():
                    return tally, reason
        return tally, ""

    def _batches(self, executor: ThreadPoolExecutor) -> Iterator[tuple[int, int, Tally]]:
        """Walks and what they have seen, in the order of their numbers. The first ones tell how
        many make up a batch.
        """
        count = self._batch(0, STUCK_WALKS_MAX, min(self._steps, self._batch_steps)).walks
        waiting: deque[tuple[int, Future[Tally]]] = deque()
        first = 0
        try:
            while True:
                while len(waiting) < AHEAD * self._count:
                    future = executor.submit(self._batch, first, first + count, self._steps)
                    waiting.append((first, future))
                    first += count
                number, future = waiting.popleft()
                yield number, number + count, future.result()
        finally:
            for _, future in waiting:
                future.cancel()

    def _batch(self, first: int, end: int, steps_max: int) -> Tally:
        walker = self._idle.get()
        try:
            return walker.batch(first, end, steps_max)
        finally:
            self._idle.put(walker)


def simulate(
    system: ClosedSystem | type[ClosedSystem],
    *,
    steps: int = 1_000_000,
    walk_max: int = 10_000,
    seed: int = 1,
    engine: str | None = None,
    workers: int = 1,
    max_seconds: float | None = None,
    is_shortened: bool = True,
) -> Result:
    """Take random walks until `steps` steps were taken in all, and return what was found.

    The same seed gives the same walks with every engine and every number of `workers`, which are
    threads, for llvm. The violation of the walk with the least number is returned, with fewer
    steps than the walk took where these do as well, unless `is_shortened` is False.

    Raises DeclarationError for what cannot be compiled, and EngineUnavailable.
    """
    begun_s = time.perf_counter()
    made = system if isinstance(system, ClosedSystem) else system()
    lowering = Lowering(made)
    program, declared = lowering.program(), made.claims()
    walks = _what_walks_share(made, program, seed, walk_max)
    name = choice.chosen(engine)
    code = Code(walks, steps) if name == "llvm" else None
    walkers = _walkers(name, made, lowering, walks, workers, code)
    ready_s = time.perf_counter()

    def reason_to_stop() -> str:
        if code is not None:
            code.improve()
        if max_seconds is not None and time.perf_counter() - ready_s > max_seconds:
            return f"the budget of {max_seconds:g} seconds is used up, seed {seed}"
        return ""

    try:
        run = _Run(walkers, steps, BATCH_STEPS[name])
        tally, reason = run.take(len(walks.initial), reason_to_stop)
    finally:
        if code is not None:
            code.close()
    walked_s = time.perf_counter() - ready_s
    found: Walk | StoppedEarly
    found = tally.found or StoppedEarly(reason or f"{steps:,} random steps were taken, seed {seed}")
    notes = []
    if isinstance(found, Walk) and is_shortened:
        before, found = found, shortened(program, walks, found, declared)
        notes.append(f"{len(before.moves):,} steps had led there, {len(found.moves)} do as well")
    outcome = Outcome(made, program, lowering.layout, tally, declared, found)
    return Result(
        **_of_system(made),
        **_of_walks(tally, walked_s),
        engine=name,
        workers=workers,
        verdict=outcome.verdict,
        compile_seconds=ready_s - begun_s,
        search_seconds=time.perf_counter() - ready_s,
        properties=outcome.properties,
        coverage=outcome.coverage,
        counterexample=outcome.counterexample,
        stopped=found.reason if isinstance(found, StoppedEarly) else "",
        notes=[*made.NOTES, *notes],
    )


def _what_walks_share(system: ClosedSystem, program: Program, seed: int, walk_max: int) -> Walks:
    bits = {name: 1 << bit for bit, name in enumerate(program.properties)}
    declared = system.claims()
    return Walks(
        program,
        initial_states(program, type(system).__name__),
        demanded=sum(bits[p.name] for p in declared if p.kind == "always"),
        final=next((p.name for p in declared if p.kind == "terminal"), None),
        seed=seed,
        length_max=walk_max,
    )


def _of_system(system: ClosedSystem) -> dict[str, Any]:
    constants = {n: v for n, v in system.constants.items() if n not in system.DERIVED}
    return {"system": type(system).__name__, "constants": constants}


def _of_walks(tally: Tally, walked_s: float) -> dict[str, Any]:
    """The figures of a result."""
    return {
        "states": tally.transitions + tally.walks,
        "transitions": tally.transitions,
        "depth": tally.longest,
        "terminal_states": tally.terminal_states,
        "bytes_per_state": 0.0,
        "order": "random",
        "effort": f"{tally.walks:,} walks of {tally.transitions:,} steps in all, the longest of "
        f"{tally.longest:,}; {tally.terminal_states:,} to where no step is possible, "
        f"{tally.rounds:,} to where they only went round; about {tally.distinct:,} distinct "
        f"states; {tally.transitions / walked_s:,.0f} steps/s",
    }


def _walkers(
    engine: str,
    system: ClosedSystem,
    lowering: Lowering,
    walks: Walks,
    workers: int,
    code: Code | None,
) -> list[Walker]:
    if code is not None:
        return [CompiledWalker(code, walks) for _ in range(workers)]
    if workers > 1:
        raise choice.EngineUnavailable(
            f"the engine {engine!r} works alone; take 'llvm' for {workers} workers"
        )
    target: Target = PythonTarget(walks.program)
    if engine == "interpreted":
        target = InterpretedTarget(system, walks.program, lowering.layout)
    return [PlainWalker(target, walks)]


__all__: Sequence[str] = ["simulate"]
