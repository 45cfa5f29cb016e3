"""Random walks: long runs of systems too large to explore, repeatable from a seed.

A walk begins in the initial state and ends where no step is possible, after `walk_max` steps, or in
a violation. What was seen says nothing about what was not: without a violation the verdict is
BOUNDED. `states` are the ones visited, counted each time.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from epochgate.fsm.checker.compiler.ir import Program
from epochgate.fsm.checker.compiler.lowering import Lowering
from epochgate.fsm.checker.compiler.python_target import PythonTarget, StepFault
from epochgate.fsm.checker.engines import choice
from epochgate.fsm.checker.engines.initial import initial_states
from epochgate.fsm.checker.engines.interpreted import InterpretedTarget
from epochgate.fsm.checker.engines.python_search import Target
from epochgate.fsm.checker.engines.search import DEADLOCK, PROPERTY, Words
from epochgate.fsm.checker.outcome import Outcome, StoppedEarly, Walk
from epochgate.fsm.checker.random_numbers import below, following, scrambled
from epochgate.fsm.checker.result import Result
from epochgate.fsm.closed import ClosedSystem

STUCK_WALKS_MAX = 1000
"""How many walks in a row may find no step possible in their initial states."""


@dataclass
class Tally:
    """What the walks have seen; `held` has a bit for each property that held somewhere."""

    transitions: int = 0
    walks: int = 0
    held: int = 0
    rows: set[int] = field(default_factory=set)
    terminal_states: int = 0

    def covered(self) -> set[int]:
        return self.rows


class Walker(ABC):
    """Takes walks with one target."""

    @abstractmethod
    def walk(
        self, tally: Tally, x: int, length_max: int, initial: Words
    ) -> tuple[int, Walk | None]:
        """One walk from this state; the generator's state after it, and a violation."""


class PlainWalker(Walker):
    """Walks by a target that takes one step at a time."""

    def __init__(self, target: Target, program: Program, demanded: int, final: str | None) -> None:
        self._target, self._program = target, program
        self._demanded, self._final = demanded, final

    def walk(
        self, tally: Tally, x: int, length_max: int, initial: Words
    ) -> tuple[int, Walk | None]:
        state, taken = initial, list[int]()
        step: int | None = None
        try:
            while len(taken) < length_max:
                step = None
                possible = self._target.enabled(state)
                # All are taken, as a target that makes all successors does, so that each of them
                # finds a fault at the same step.
                successors = {}
                for step in possible:
                    successors[step] = self._target.take(state, step)
                step = None
                if not possible:
                    if self._final and not self._target.holds(self._final, state):
                        return x, Walk(tuple(taken), DEADLOCK)
                    tally.terminal_states += 1
                    break
                x = following(x)
                chosen = possible[below(x, len(possible))]
                state = successors[chosen]
                taken.append(chosen)
                tally.transitions += 1
                held = self._held(state)
                tally.held |= held
                if held & self._demanded != self._demanded:
                    return x, Walk(tuple(taken), PROPERTY, held)
        except StepFault as fault:
            steps = (*taken, step) if step is not None else tuple(taken)
            return x, Walk(steps, fault.number)
        finally:
            tally.rows |= self._target.covered
        return x, None

    def _held(self, state: tuple[int, ...]) -> int:
        names = enumerate(self._program.properties)
        return sum(1 << bit for bit, name in names if self._target.holds(name, state))


class CompiledWalker(Walker):
    """Walks in machine code."""

    def __init__(self, program: Program, demanded: int, final: str | None, length_max: int) -> None:
        import numpy as np
        from epochgate.fsm.checker.engines.functions import Functions, Worker, compiled_target

        self._program, self._demanded = program, demanded
        self._call = Functions(compiled_target(program, final, 1).code).walk
        self._worker = Worker(program)
        self._state = np.zeros(program.words, np.int64)
        self._taken = np.zeros(length_max, np.uint16)
        self._random = np.zeros(1, np.uint64)
        self._held = np.zeros(2, np.int64)

    def walk(
        self, tally: Tally, x: int, length_max: int, initial: Words
    ) -> tuple[int, Walk | None]:
        from epochgate.fsm.checker.engines import kernels as k
        from epochgate.fsm.checker.engines.functions import address

        worker = self._worker
        self._state[:] = initial
        self._random[0] = x
        arrays = (self._state, worker.status, worker.out, worker.act, self._taken, self._random)
        places = [address(array) for array in arrays]
        code = self._call(
            *places, self._demanded, address(self._held), address(worker.covered), length_max
        )
        done = worker[k.TRANSITIONS]
        tally.transitions += done
        tally.held |= int(self._held[0])
        tally.rows |= {int(row) for row in worker.covered.nonzero()[0]}
        steps = tuple(int(step) for step in self._taken[:done])
        x = int(self._random[0])
        if code == k.DEADLOCKED:
            return x, Walk(steps, DEADLOCK)
        if code == k.VIOLATED and worker[k.FAULT] < 0:
            return x, Walk(steps, PROPERTY, int(self._held[1]))
        if code == k.VIOLATED:
            step = worker[k.STEP]
            is_step = worker[k.HEAD] == 0
            return x, Walk((*steps, step) if is_step else steps, worker[k.FAULT])
        tally.terminal_states += done < length_max
        return x, None


def _walks(
    walker: Walker, tally: Tally, limits: tuple[int, int], seed: int, initial: list[Words]
) -> Iterator[tuple[Walk | None, Words]]:
    """Walks, with the state that each began in, until the limit of steps in all; the second limit
    is that of one walk.
    """
    steps, walk_max = limits
    x = scrambled(seed)
    while tally.transitions < steps:
        if len(initial) > 1:
            x = following(x)
        begun = initial[below(x, len(initial))]
        x, found = walker.walk(tally, x, min(walk_max, steps - tally.transitions), begun)
        tally.walks += 1
        yield found, begun


def simulate(
    system: ClosedSystem | type[ClosedSystem],
    *,
    steps: int = 1_000_000,
    walk_max: int = 10_000,
    seed: int = 1,
    engine: str | None = None,
    max_seconds: float | None = None,
) -> Result:
    """Take random walks until `steps` steps were taken in all, and return what was found.

    The same seed gives the same walks with every engine. Raises DeclarationError for what cannot be
    compiled, and EngineUnavailable.
    """
    begun_s = time.perf_counter()
    made = system if isinstance(system, ClosedSystem) else system()
    lowering = Lowering(made)
    program, declared = lowering.program(), made.properties()
    final = next((p.name for p in declared if p.kind == "terminal"), None)
    bits = {name: 1 << bit for bit, name in enumerate(program.properties)}
    demanded = sum(bits[p.name] for p in declared if p.kind == "always")
    name = choice.chosen(engine)
    walker: Walker
    if name == "llvm":
        walker = CompiledWalker(program, demanded, final, walk_max)
    else:
        target: Target = PythonTarget(program)
        if name == "interpreted":
            target = InterpretedTarget(made, program, lowering.layout)
        walker = PlainWalker(target, program, demanded, final)
    initial = initial_states(program, type(made).__name__)
    ready_s = time.perf_counter()
    tally = Tally()
    found: Walk | StoppedEarly = StoppedEarly(f"{steps:,} random steps were taken, seed {seed}")
    for walk, begun in _walks(walker, tally, (steps, walk_max), seed, initial):
        if walk is not None:
            found = replace(walk, initial=begun)
        elif max_seconds is not None and time.perf_counter() - ready_s > max_seconds:
            found = StoppedEarly(f"the budget of {max_seconds:g} seconds is used up, seed {seed}")
        elif not tally.transitions and tally.walks == min(len(initial), STUCK_WALKS_MAX):
            found = StoppedEarly("no step is possible where the walks began")
        else:
            continue
        break
    outcome = Outcome(made, program, lowering.layout, tally, declared, found)
    return Result(
        system=type(made).__name__,
        constants={n: v for n, v in made.constants.items() if n not in made.DERIVED},
        engine=name,
        workers=1,
        verdict=outcome.verdict,
        states=tally.transitions + tally.walks,
        transitions=tally.transitions,
        depth=0,
        terminal_states=tally.terminal_states,
        compile_seconds=ready_s - begun_s,
        search_seconds=time.perf_counter() - ready_s,
        bytes_per_state=0.0,
        properties=outcome.properties,
        coverage=outcome.coverage,
        counterexample=outcome.counterexample,
        stopped=found.reason if isinstance(found, StoppedEarly) else "",
        order="random",
        notes=[f"{tally.walks:,} random walks; states are counted at each visit"],
    )


__all__: Sequence[str] = ["Tally", "simulate"]
