"""Claims about runs without end where a state stands for all that an exchange of instances makes of
it: the graph of these states, which says of each transition where each instance goes.

What a claim says does not depend on which instance is which, nor does the set of all demands of
fairness. A run of the system is one on the states that stand for others, with an instance for each
block of words; a transition that sorts the blocks moves the instances. A demand that names no
instance, such as one of any step, is one on this graph. A demand of each instance by itself is one
on the pairs of a state and a block: an instance goes from pair to pair as the run goes on. Within a
strongly connected component the transitions move blocks one to one, so the pairs fall into strongly
connected components that no instance leaves; in each pair of the run there is always some instance.
So a run that goes round in the component for ever can be fair to each instance exactly if each
component of pairs fulfils the demand; where one does not, no fair run comes back for ever to the
states whose pairs cause it. (After E. A. Emerson and A. P. Sistla, "Utilizing symmetry when model
checking under fairness assumptions", 1997, where this is shown for weak and strong fairness.)
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from epochgate.fsm.checker.compiler.ir import Program, StepCode
from epochgate.fsm.checker.compiler.python_target import PythonTarget
from epochgate.fsm.checker.demands import Demand
from epochgate.fsm.checker.engines.search import Search, Words, canonical
from epochgate.fsm.checker.fairness import Recurrence, Recurring, hurt
from epochgate.fsm.checker.graph import Graph, components_by, marks_in
from epochgate.fsm.closed import ClosedSystem

NO_MEMBER = -1


@dataclass
class Annotated(Graph):
    """A graph of states that stand for others."""

    moves: Any = None
    """For each transition, where each block goes."""
    unchanged: Any = None
    """For each transition, whether it leaves everything as it is."""

    def stutters(self, edges: Any) -> Any:
        return self.unchanged[edges]


def annotated(search: Search, program: Program) -> Annotated:
    """The graph of a finished search up to symmetry."""
    target = PythonTarget(program)
    start = [search.words(state) for state in search.initial]
    numbers = {words: number for number, words in enumerate(start)}
    states, frontier = [*start], deque(start)
    begins, targets, steps, moves, unchanged = [0], [], [], [], []
    while frontier:
        state = frontier.popleft()
        for step in target.enabled(state):
            for _, after in target.ways(state, step):
                order = blocks_in_order(program, after)
                sorted_ = canonical(program, after)
                if sorted_ not in numbers:
                    numbers[sorted_] = len(states)
                    states.append(sorted_)
                    frontier.append(sorted_)
                targets.append(numbers[sorted_])
                steps.append(step)
                moves.append(order)
                unchanged.append(after == state)
        begins.append(len(targets))
    return Annotated(
        np.array(begins, np.int64),
        np.array(targets, np.uint32),
        np.array(steps, np.uint16),
        marks_in(states, program, target),
        components_by(search),
        range(len(start)),
        states.__getitem__,
        np.array(moves, np.uint8).reshape(len(targets), program.blocks[0]),
        np.array(unchanged, bool),
    )


def blocks_in_order(program: Program, words: Words) -> list[int]:
    """Return the position of each block when they are sorted."""
    blocks, first, width = program.blocks
    parts = [words[first + b * width : first + (b + 1) * width] for b in range(blocks)]
    places = [0] * blocks
    for place, block in enumerate(sorted(range(blocks), key=parts.__getitem__)):
        places[block] = place
    return places


class Pairs:
    """The pairs of a state and a block, state by state, and where instances go from each."""

    def __init__(self, found: Annotated, blocks: int) -> None:
        self._of, self._blocks = found, blocks
        counts = np.repeat(np.diff(found.begins), blocks)
        begins = np.concatenate([[0], np.cumsum(counts)])
        offsets = np.repeat(found.begins[:-1], blocks)
        self.transitions = np.arange(begins[-1]) + np.repeat(offsets - begins[:-1], counts)
        """Of each transition between pairs, the one between states."""
        self.block = np.repeat(np.tile(np.arange(blocks), found.states), counts)
        moved = found.moves[self.transitions, self.block]
        targets = found.targets[self.transitions].astype(np.int64) * blocks + moved
        self.graph = Graph(
            begins,
            targets.astype(np.uint32),
            np.zeros(0, np.uint16),
            np.zeros(found.states * blocks, np.uint8),
            found.components_of,
        )

    def lost(self, inside: Any, demands: Sequence[Recurrence]) -> Any:
        component = self.graph.components(np.repeat(inside, self._blocks))
        parts = int(component.max()) + 1
        _, is_lost = hurt(self.graph, component, parts, demands)
        return is_lost.reshape(-1, self._blocks).any(axis=1) & inside

    def by(self, member_of: Any) -> Any:
        """The transitions between pairs by a step of the instance that is in the pair; `member_of`
        says of each step which instance takes it.
        """
        steps = self._of.steps[self.transitions]
        edges = np.flatnonzero(member_of[steps] == self.block)
        return edges[~self._of.stutters(self.transitions[edges])]


class OfEach:
    """Fairness to each instance of the index set by itself."""

    def __init__(self, pairs: Pairs, demands: Sequence[Demand], member_of: Any) -> None:
        self._pairs, self._member_of = pairs, member_of
        self.demand = Demand(
            ", ".join(one.told for one in demands), (), is_strong=demands[0].is_strong
        )

    def found(self) -> Recurring:
        edges = self._pairs.by(self._member_of)
        is_possible = np.zeros(self._pairs.graph.states, bool)
        is_possible[self._pairs.graph.sources[edges]] = True
        if self.demand.is_strong:
            return Recurring(is_possible, None, edges)
        return Recurring(None, ~is_possible, edges)


def divided(
    system: ClosedSystem, program: Program, index_set: str, demanded: Iterable[Demand]
) -> tuple[list[Demand], list[tuple[list[Demand], Any]]]:
    """The demands that name no member of the index set, and those of each member by itself, with
    the member that takes each step (or NO_MEMBER).
    """
    alike: list[Demand] = []
    families: dict[Any, list[Demand]] = {}
    codes = {code.label: code for code in program.steps}
    for demand in demanded:
        found = {label: _member(system, codes[label], index_set) for label in demand.steps}
        members = {member for member, _ in found.values()}
        if members == {NO_MEMBER} or len(members - {NO_MEMBER}) > 1:
            alike.append(demand)
            continue
        kind = demand.is_strong, frozenset(rest for _, rest in found.values())
        families.setdefault(kind, []).append(demand)
    size = system.constants[system.INDEX_SETS[index_set]]
    together: list[tuple[list[Demand], Any]] = []
    for demands in families.values():
        if size == 1:
            alike += demands
            continue
        assert len(demands) == size  # what is demanded of one is demanded of each
        member_of = np.full(1 << 16, NO_MEMBER, np.int64)
        labels = {label for demand in demands for label in demand.steps}
        for number, code in enumerate(program.steps):
            if code.label in labels:
                member_of[number] = _member(system, code, index_set)[0]
        together.append((demands, member_of))
    return alike, together


def _member(system: ClosedSystem, code: StepCode, index_set: str) -> tuple[int, Any]:
    """Return the member that takes a step, and what the step is beside that."""
    sets = system.MACHINES[code.machine].INDEX
    rest = tuple(n for n, name in zip(code.index, sets, strict=True) if name != index_set)
    member = next((n for n, s in zip(code.index, sets, strict=True) if s == index_set), NO_MEMBER)
    return member, (code.machine, code.trigger, rest)


def followed(program: Program, chain: Sequence[Words]) -> tuple[tuple[Words, ...], tuple[int, ...]]:
    """States, each reached from the one before, for which those of the chain stand; and the steps
    between them.
    """
    target, real, steps = PythonTarget(program), [chain[0]], []
    for following in chain[1:]:
        step, state = next(
            (step, after)
            for step in target.enabled(real[-1])
            for _, after in target.ways(real[-1], step)
            if canonical(program, after) == following
        )
        steps.append(step)
        real.append(state)
    return tuple(real), tuple(steps)


def unfolded(program: Program, start: Words, found: Annotated, inside: Any) -> tuple[Graph, Any]:
    """The graph of the states themselves that can be reached from one, as long as what stands for
    them is inside; and which of its states are.

    States outside are there, since a step to them is possible; what follows them is not.
    """
    target = PythonTarget(program)
    within = {found.words(int(state)) for state in np.flatnonzero(inside)}
    numbers, states, is_inside = {start: 0}, [start], [True]
    begins, targets, steps = [0], [], []
    for state, is_gone_on in zip(states, is_inside, strict=True):  # which grow
        for step in target.enabled(state) if is_gone_on else ():
            for _, after in target.ways(state, step):
                if after not in numbers:
                    numbers[after] = len(states)
                    is_inside.append(canonical(program, after) in within)
                    states.append(after)
                targets.append(numbers[after])
                steps.append(step)
        begins.append(len(targets))
    graph = Graph(
        np.array(begins, np.int64),
        np.array(targets, np.uint32),
        np.array(steps, np.uint16),
        marks_in(states, program, target),
        found.components_of,
        (0,),
        states.__getitem__,
    )
    return graph, np.array(is_inside)
