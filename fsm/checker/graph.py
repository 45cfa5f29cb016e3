"""All states and transitions of a finished search as arrays, for claims about runs without end."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from epochgate.fsm.checker.compiler.ir import Program
from epochgate.fsm.checker.compiler.python_target import PythonTarget
from epochgate.fsm.checker.engines.graph_kernels import components
from epochgate.fsm.checker.engines.search import Search, Words

FEW_STEPS = 8
"""Steps up to which the transitions by each are looked for one after the other."""


@dataclass
class Graph:
    """Transitions of state i are those from begins[i] to begins[i + 1]; `marks` has a bit for each
    property that holds in a state.
    """

    begins: Any
    targets: Any
    steps: Any
    marks: Any
    components_of: Any
    """A function like the kernel `components`, but of arrays."""
    initial: Sequence[int] = ()
    words: Callable[[int], Words] = lambda state: ()
    """The packed state of a number."""

    @property
    def states(self) -> int:
        return len(self.marks)

    @cached_property
    def sources(self) -> Any:
        """The state that each transition leaves."""
        return np.repeat(np.arange(self.states, dtype=np.uint32), np.diff(self.begins))

    def by(self, steps: Sequence[int]) -> Any:
        """The numbers of the transitions by these steps, without those that change nothing."""
        if len(steps) > FEW_STEPS:
            is_meant = np.zeros(1 << 16, bool)
            is_meant[[*steps]] = True
            is_by = is_meant[self.steps]
        else:
            is_by = np.zeros(len(self.steps), bool)
            for step in steps:
                is_by |= self.steps == step
        edges = np.flatnonzero(is_by)
        return edges[~self.stutters(edges)]

    def stutters(self, edges: Any) -> Any:
        """Return whether each of some transitions leaves everything as it is."""
        return self.sources[edges] == self.targets[edges]

    def components(self, inside: Any) -> Any:
        """For each state that is inside its strongly connected component, from 1; 0 elsewhere."""
        halves = [np.zeros(self.states, np.uint32) for _ in range(4)]
        edges, component = np.zeros(self.states, np.int64), np.zeros(self.states, np.uint32)
        self.components_of(
            self.states,
            self.begins,
            self.targets,
            inside.astype(np.uint8),
            *halves,
            edges,
            component,
        )
        return component


def graph(search: Search, program: Program) -> Graph:
    """The graph of a finished search by one worker."""
    from epochgate.fsm.checker.engines.choice import is_compiled

    if is_compiled(search):
        return _from_machine_code(search, program)
    return _from_python(search, program)


def _from_machine_code(search: Any, program: Program) -> Graph:
    from epochgate.fsm.checker.engines.functions import address
    from epochgate.fsm.checker.engines.memory import reserved

    (table,), worker, call, values = search.tables, search.workers[0], search.kernels, search.values
    count, room = search.states, search.transitions
    numbers, queue = reserved(table.length, np.uint32), reserved(count, np.uint32)
    queue[: len(search.initial)] = [table.slot(key, call) for key in search.initial]
    numbers[queue[: len(search.initial)]] = np.arange(len(search.initial)) + 1
    begins, marks = np.zeros(count + 1, np.int64), np.zeros(count, np.int64)
    targets, steps = reserved(room, np.uint32), reserved(room, np.uint16)
    call.link(
        *table.arguments,
        address(numbers),
        address(queue),
        len(search.initial),
        *values.arguments,
        values.slots.address,
        *[worker.at[name] for name in ("status", "scratch", "out", "act")],
        *[address(array) for array in (begins, targets, steps, marks)],
        worker.at["covered"],
    )

    def words(number: int) -> Words:
        found: Words = search.words(table.key(int(queue[number]), call))
        return found

    initial = range(len(search.initial))
    return Graph(begins, targets, steps, marks, components_by(search), initial, words)


def components_by(search: Search) -> Any:
    """The function that numbers components for graphs of this search."""
    from epochgate.fsm.checker.engines.choice import is_compiled

    if is_compiled(search):
        from epochgate.fsm.checker.engines.functions import address

        call: Any = search

        def compiled(number: int, *arrays: Any) -> None:
            call.kernels.components(number, *[address(array) for array in arrays])

        return compiled
    return python_components


def python_components(number: int, *arrays: Any) -> None:
    """Number components in Python."""
    lists = [array.tolist() for array in arrays]
    components(number, *lists)
    arrays[-1][:] = lists[-1]


def _from_python(search: Search, program: Program) -> Graph:
    target = PythonTarget(program)
    words = [search.words(state) for state in range(search.states)]
    numbers = {packed: number for number, packed in enumerate(words)}
    begins, targets, steps = [0], [], []
    for state in words:
        for step in target.enabled(state):
            for _, after in target.ways(state, step):
                targets.append(numbers[after])
                steps.append(step)
        begins.append(len(targets))

    return Graph(
        np.array(begins, np.int64),
        np.array(targets, np.uint32),
        np.array(steps, np.uint16),
        marks_in(words, program, target),
        python_components,
        search.initial,
        search.words,
    )


def marks_in(states: Sequence[Words], program: Program, target: PythonTarget) -> Any:
    """For each state a bit for each property that holds in it."""
    names = [*enumerate(program.properties)]
    found = [sum(1 << bit for bit, name in names if target.holds(name, state)) for state in states]
    return np.array(found, np.int64)
