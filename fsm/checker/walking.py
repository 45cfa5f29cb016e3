"""Random walks, a batch at a time: in machine code, or with the steps of another target.

Each walk has a number, from which and the seed its generator begins: the same walks are taken
whatever takes them, and in whatever order.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from epochgate.fsm.checker.compiler.ir import Program
from epochgate.fsm.checker.compiler.python_target import PythonTarget, StepFault
from epochgate.fsm.checker.engines.python_search import Target
from epochgate.fsm.checker.engines.search import DEADLOCK, PROPERTY, Words
from epochgate.fsm.checker.outcome import Walk
from epochgate.fsm.checker.random_numbers import (
    RETURNS_MAX,
    SKETCH_BITS,
    below,
    following,
    hashed,
    scrambled,
    sketched,
)
from epochgate.fsm.checker.retelling import Move

if TYPE_CHECKING:
    from epochgate.fsm.checker.compiler.machine_code import Optimisation

OPTIMISE_FROM = 1 << 23
"""Steps, which take some seconds in quickly compiled code."""


@dataclass
class Tally:
    """The observations of walks; `held` has a bit for each property that held somewhere."""

    transitions: int = 0
    walks: int = 0
    held: int = 0
    rows: set[int] = field(default_factory=set)
    terminal_states: int = 0
    longest: int = 0
    rounds: int = 0
    """Walks that have ended where they only went round."""
    sketch: bytes = bytes(1 << SKETCH_BITS)
    """What was kept of the states' hashes, to tell how many different ones there were."""
    found: Walk | None = None

    def covered(self) -> set[int]:
        return self.rows

    def add(self, other: Tally) -> None:
        """Add what the walks that come next have seen."""
        self.transitions += other.transitions
        self.walks += other.walks
        self.held |= other.held
        self.rows |= other.rows
        self.terminal_states += other.terminal_states
        self.longest = max(self.longest, other.longest)
        self.rounds += other.rounds
        self.sketch = bytes(map(max, self.sketch, other.sketch))
        self.found = self.found or other.found

    @property
    def distinct(self) -> int:
        """About how many different states were visited (the estimate of HyperLogLog)."""
        groups = len(self.sketch)
        empty = self.sketch.count(0)
        estimate = 0.7213 / (1 + 1.079 / groups) * groups**2 / sum(0.5**n for n in self.sketch)
        if estimate <= 2.5 * groups and empty:
            estimate = groups * math.log(groups / empty)
        return round(estimate)


@dataclass(frozen=True)
class Walks:
    """The values that all walks of a run have in common."""

    program: Program
    initial: list[Words]
    demanded: int
    """A bit for each property that has to hold in every state."""
    final: str | None
    seed: int
    length_max: int


class Walker(ABC):
    """Takes walks by their numbers; one thread uses it at a time."""

    @abstractmethod
    def batch(self, first: int, end: int, steps_max: int) -> Tally:
        """The walks of these numbers, up to the first violation or to the limit of steps in all,
        where the last walk is cut off.
        """


class PlainWalker(Walker):
    """Walks by a target that takes one step at a time."""

    def __init__(self, target: Target, walks: Walks) -> None:
        self._target, self._walks = target, walks
        self._base = scrambled(walks.seed)

    def batch(self, first: int, end: int, steps_max: int) -> Tally:
        tally, number = Tally(), first
        sketch = bytearray(tally.sketch)
        self._target.covered.clear()
        while number < end and tally.transitions < steps_max and tally.found is None:
            x, initial = scrambled(self._base + number), self._walks.initial
            if len(initial) > 1:
                x = following(x)
            begun = initial[below(x, len(initial))] if len(initial) > 1 else initial[0]
            length = min(self._walks.length_max, steps_max - tally.transitions)
            self._walk(tally, sketch, x, length, begun)
            tally.walks += 1
            number += 1
        tally.rows |= self._target.covered
        tally.sketch = bytes(sketch)
        return tally

    def _walk(self, tally: Tally, sketch: bytearray, x: int, length: int, begun: Words) -> None:
        state, taken = begun, list[Move]()
        step: int | None = None
        demanded, final = self._walks.demanded, self._walks.final
        due, returns, again = 1, 0, 0
        try:
            while True:
                step = None
                held = self._held(state)
                h = hashed(state)
                sketched(sketch, h)
                tally.held |= held
                if held & demanded != demanded:
                    tally.found = Walk(tuple(taken), PROPERTY, held, begun)
                    break
                returns += h == again
                if len(taken) >= length:
                    break
                if returns >= RETURNS_MAX:
                    tally.rounds += 1
                    break
                if len(taken) == due:
                    due, returns, again = due * 2, 0, h
                possible = self._target.enabled(state)
                ways = []
                for step in possible:
                    ways += self._ways(state, step)
                step = None
                if not ways:
                    if final and not self._target.holds(final, state):
                        tally.found = Walk(tuple(taken), DEADLOCK, 0, begun)
                    else:
                        tally.terminal_states += 1
                    break
                x = following(x)
                move, state = ways[below(x, len(ways))]
                taken.append(move)
        except StepFault as fault:
            moves = (*taken, (step, self._target.chosen(step))) if step is not None else (*taken,)
            tally.found = Walk(moves, fault.number, 0, begun)
        tally.transitions += len(taken)
        tally.longest = max(tally.longest, len(taken))

    def _ways(self, state: Words, step: int) -> list[tuple[Move, Words]]:
        """All ways are taken, as a target that makes all successors does, so that each of them
        finds a fault at the same step.
        """
        return [((step, choices), after) for choices, after in self._target.ways(state, step)]

    def _held(self, state: Words) -> int:
        names = enumerate(self._walks.program.properties)
        return sum(1 << bit for bit, name in names if self._target.holds(name, state))


class Code:
    """The walks in machine code, for all threads; optimised where there are many steps to take."""

    def __init__(self, walks: Walks, steps: int) -> None:
        from epochgate.fsm.checker.engines.functions import Functions, compiled_target

        self._target = compiled_target(walks.program, walks.final, 1)
        self.functions = Functions(self._target.code)
        self._optimisation: Optimisation | None = None
        if steps >= OPTIMISE_FROM and not self._target.is_optimised:
            self._optimisation = self._target.optimise()

    def improve(self) -> None:
        """Go over to optimised code once it is there."""
        if self._optimisation is not None and self._optimisation.is_done:
            from epochgate.fsm.checker.engines.functions import Functions

            if (code := self._optimisation.code()) is not None:
                self.functions = Functions(code)
            self.close()

    def close(self) -> None:
        """Give up what is not done."""
        if self._optimisation is not None:
            self._optimisation.close()
            self._optimisation = None


class CompiledWalker(Walker):
    """Walks in machine code, on a thread of their own."""

    def __init__(self, code: Code, walks: Walks) -> None:
        import numpy as np
        from epochgate.fsm.checker.engines.functions import Worker

        self._code, self._walks = code, walks
        self._again = PlainWalker(PythonTarget(walks.program), walks)
        self._initial = np.array(walks.initial, np.int64)
        self._worker = Worker(walks.program)
        self._state = np.zeros(walks.program.words, np.int64)
        self._taken = np.zeros(walks.length_max, np.uint16)
        base = scrambled(walks.seed)
        self._base = base - (1 << 64) if base >> 63 else base

    def batch(self, first: int, end: int, steps_max: int) -> Tally:
        import numpy as np
        from epochgate.fsm.checker.engines import kernels as k
        from epochgate.fsm.checker.engines.functions import address

        worker, walks = self._worker, self._walks
        worker.covered[:] = 0
        held, sums = np.zeros(2, np.int64), np.zeros(6, np.int64)
        sketch = np.zeros(1 << k.SKETCH_BITS, np.uint8)
        arrays = (self._state, worker.status, worker.out, worker.act, self._taken)
        code = self._code.functions.walks(
            address(self._initial),
            len(walks.initial),
            self._base,
            first,
            end,
            *(address(array) for array in arrays),
            walks.demanded,
            address(held),
            address(worker.covered),
            address(sketch),
            walks.length_max,
            steps_max,
            address(sums),
        )
        steps, count, ended, longest, start, rounds = map(int, sums)
        rows = {int(row) for row in worker.covered.nonzero()[0]}
        found = self._violation(code, walks.initial[start], held)
        if found is not None and walks.program.crowded >= 0:
            # Machine code keeps the steps alone; the same walk says what they chose.
            number = first + count - 1
            found = self._again.batch(number, number + 1, walks.length_max).found
        return Tally(
            steps, count, int(held[0]), rows, ended, longest, rounds, sketch.tobytes(), found
        )

    def _violation(self, code: int, begun: Words, held: Any) -> Walk | None:
        from epochgate.fsm.checker.engines import kernels as k

        worker = self._worker
        steps: tuple[Move, ...]
        steps = tuple((int(step), ()) for step in self._taken[: worker[k.TRANSITIONS]])
        if code == k.DEADLOCKED:
            return Walk(steps, DEADLOCK, 0, begun)
        if code != k.VIOLATED:
            return None
        fault, step = worker[k.FAULT], worker[k.STEP]
        worker.status[[k.FAULT, k.STEP]] = -1
        if fault < 0:
            return Walk(steps, PROPERTY, int(held[1]), begun)
        return Walk((*steps, (step, ())) if worker[k.HEAD] == 0 else steps, fault, 0, begun)
