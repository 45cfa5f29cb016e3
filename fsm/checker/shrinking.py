"""Makes the schedule of a walk into a violation short: the same violation, by fewer steps.

First the loops of the walk are cut out, then steps are left out, many at once and then fewer (delta
debugging); what is no longer possible is left out with them. At last a breadth-first search looks
for a shorter way from states of what is left, the nearest to the end first.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from epochgate.fsm.checker.compiler.ir import Program
from epochgate.fsm.checker.compiler.python_target import PythonTarget, StepFault
from epochgate.fsm.checker.engines.search import DEADLOCK, PROPERTY, Words
from epochgate.fsm.checker.outcome import Walk
from epochgate.fsm.checker.retelling import Move
from epochgate.fsm.checker.walking import Walks
from epochgate.fsm.closed import Property

REPLAYED_MAX = 100_000
"""How many steps are taken to leave some out."""
SEARCHED_MAX = 10_000
"""How many states are looked at for a shorter way."""
FIRST_DISTANCE = 4
"""How far from the end the first search begins; each later one twice as far."""

Failure = tuple[object, ...]
"""What is wrong, whichever instance it is."""


@dataclass(frozen=True)
class Way:
    """Steps into a violation, and the states before each of them."""

    moves: tuple[Move, ...]
    states: tuple[Words, ...]
    fault: int
    failure: Failure


def shortened(program: Program, walks: Walks, walk: Walk, declared: Sequence[Property]) -> Walk:
    """A walk into the same violation by as few steps as were found, at most those it has."""
    shrinking = _Shrinking(program, walks.final, [p for p in declared if p.kind == "always"])
    way = shrinking.replay(walk.initial, walk.moves)
    if way is None:
        return walk
    way = shrinking.without_parts(shrinking.without_loops(way))
    way = shrinking.by_search(way)
    if len(way.moves) >= len(walk.moves):
        return walk
    return replace(walk, moves=way.moves, fault=way.fault, held=shrinking.held(way))


class _Shrinking:
    """Plays schedules in plain Python, up to what is wrong."""

    def __init__(self, program: Program, final: str | None, demanded: Sequence[Property]) -> None:
        self._program, self._target, self._final = program, PythonTarget(program), final
        self._demanded = [p.name for p in demanded]
        self._replayed = 0

    # What is wrong

    def _of_state(self, state: Words) -> tuple[int, Failure] | None:
        """Return what is wrong in a state, apart from its steps."""
        try:
            for name in self._demanded:
                if not self._target.holds(name, state):
                    return PROPERTY, ("always", name)
        except StepFault as fault:
            return self._of_fault(fault.number)
        return None

    def _of_fault(self, number: int) -> tuple[int, Failure]:
        fault = self._program.faults[number]
        return number, (fault.kind, fault.file, fault.line)

    def _steps(self, state: Words) -> list[int] | tuple[int, Failure]:
        """The possible steps, or what is wrong with their guards, or with there being none."""
        try:
            possible = self._target.enabled(state)
            if not possible and self._final and not self._target.holds(self._final, state):
                return DEADLOCK, ("deadlock",)
        except StepFault as fault:
            return self._of_fault(fault.number)
        return possible

    def held(self, way: Way) -> int:
        """A bit for each property that holds where the way ends, for one into a broken claim."""
        if way.fault != PROPERTY:
            return 0
        state = way.states[-1]
        names = enumerate(self._program.properties)
        return sum(1 << bit for bit, name in names if self._target.holds(name, state))

    # Ways

    def replay(self, initial: Words, moves: Iterable[Move]) -> Way | None:
        """Take the steps that are possible, up to what is wrong; None where nothing is."""
        state, taken, states = initial, list[Move](), [initial]
        for move in (*moves, None):
            self._replayed += 1
            if (wrong := self._of_state(state)) is not None:
                return Way(tuple(taken), tuple(states), *wrong)
            possible = self._steps(state)
            if isinstance(possible, tuple):
                return Way(tuple(taken), tuple(states), *possible)
            if move is None or move[0] not in possible:
                continue
            try:
                after = self._after(state, move)
            except StepFault as fault:
                taken.append((move[0], self._target.chosen(move[0])))
                return Way(tuple(taken), tuple(states), *self._of_fault(fault.number))
            if after is not None:
                state = after
                taken.append(move)
                states.append(state)
        return None

    def _after(self, state: Words, move: Move) -> Words | None:
        """The state after a step that chooses so; None where there is no such choice."""
        step, choices = move
        ways = self._target.ways(state, step)
        return next((after for chosen, after in ways if chosen == choices), None)

    def _same(self, way: Way, moves: Sequence[Move]) -> Way | None:
        """The way of other steps, if it ends in the same failure."""
        found = self.replay(way.states[0], moves)
        return found if found is not None and found.failure == way.failure else None

    def without_loops(self, way: Way) -> Way:
        """Each state once: what lies between two visits is left out."""
        last = {state: position for position, state in enumerate(way.states)}
        moves, position = list[Move](), 0
        while position < len(way.states):
            position = last[way.states[position]]
            moves += way.moves[position : position + 1]
            position += 1
        return self._same(way, moves) or way

    def without_parts(self, way: Way) -> Way:
        """As many steps left out as can be, as long as few enough were taken to find out."""
        size = len(way.moves) // 2
        while size:
            start = 0
            while start < len(way.moves):
                if self._replayed > REPLAYED_MAX:
                    return way
                left = (*way.moves[:start], *way.moves[start + size :])
                found = self._same(way, left)
                if found is not None and len(found.moves) < len(way.moves):
                    way = found
                else:
                    start += size
            size = min(size // 2, len(way.moves) // 2) if size > 1 else 0
        return way

    def by_search(self, way: Way) -> Way:
        """A shorter end of the way, from as far back as few enough states lead there."""
        distance = FIRST_DISTANCE
        while True:
            start = max(0, len(way.moves) - distance)
            end = self._shortest(way.states[start], way.moves[start:], way.failure)
            if end is None:
                return way
            if len(end) < len(way.moves) - start:
                way = self._same(way, (*way.moves[:start], *end)) or way
            if start == 0:
                return way
            distance *= 2

    def _shortest(
        self, start: Words, known: tuple[Move, ...], failure: Failure
    ) -> tuple[Move, ...] | None:
        """The fewest steps into the failure, the known ones if there are no fewer; None where that
        takes too many states.
        """
        before: dict[Words, tuple[Words, Move] | None] = {start: None}
        level = [start]
        for _ in range(len(known)):
            following = []
            for state in level:
                for move, after, wrong in self._onwards(state):
                    if wrong is not None and wrong[1] == failure and after is None:
                        return (*_path(before, state), *move)
                    if after is None or after in before:
                        continue
                    before[after] = state, move[0]
                    if wrong is None:
                        following.append(after)
                    elif wrong[1] == failure:
                        return _path(before, after)
            if len(before) > SEARCHED_MAX:
                return None
            level = following
        return known

    def _onwards(
        self, state: Words
    ) -> Iterator[tuple[tuple[Move, ...], Words | None, tuple[int, Failure] | None]]:
        """Each step from a state, where it leads, and what is wrong there; or no step, where there
        is something wrong with the guards or with the end of the run.
        """
        possible = self._steps(state)
        if isinstance(possible, tuple):
            yield (), None, possible
            return
        for step in possible:
            try:
                for choices, after in self._target.ways(state, step):
                    yield ((step, choices),), after, self._of_state(after)
            except StepFault as fault:
                move = step, self._target.chosen(step)
                yield (move,), None, self._of_fault(fault.number)


def _path(before: dict[Words, tuple[Words, Move] | None], state: Words) -> tuple[Move, ...]:
    moves = []
    while (found := before[state]) is not None:
        state, move = found
        moves.append(move)
    return tuple(reversed(moves))
