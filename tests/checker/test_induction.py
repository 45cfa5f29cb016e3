"""Inductive checks: what the solver says is what all typed states, one by one, say."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from epochgate.fsm.checker import Result, Verdict, check, check_inductive
from epochgate.fsm.checker.compiler.ir import Program
from epochgate.fsm.checker.compiler.layout import FifoCells, Layout
from epochgate.fsm.checker.compiler.lowering import Lowering
from epochgate.fsm.checker.compiler.python_target import PythonTarget, StepFault
from tests.checker.random_systems import random_system

Words = tuple[int, ...]
SEEDS = range(8)
PAIRS = 5


def typed_states(layout: Layout) -> Iterator[Words]:
    """Every typed state, one after the other."""
    parts: list[list[dict[str, int]]] = []
    in_channels = set()
    for channel in layout.channels():
        in_channels |= {channel.length, channel.items}
        parts.append([*_contents(channel)])
    for name, cell in layout.cells.items():
        if name not in in_channels:
            parts.append([{name: bits} for bits in range(cell.span + 1)])
    for chosen in itertools.product(*parts):
        yield layout.pack({name: bits for part in chosen for name, bits in part.items()})


def _contents(channel: FifoCells) -> Iterator[dict[str, int]]:
    for length in range(channel.capacity + 1):
        for items in itertools.product(range(channel.item_maximum + 1), repeat=length):
            packed = sum(item << at * channel.item_bits for at, item in enumerate(items))
            yield {channel.length: length, channel.items: packed}


class Exhaustive:
    """What a system does in each of its typed states, in plain Python."""

    def __init__(self, program: Program, layout: Layout) -> None:
        self.program, self.target = program, PythonTarget(program)
        self.states = [*typed_states(layout)]
        self.count = layout.typed_states()
        self.steps: dict[Words, list[Words]] = {}
        self.faults: dict[Words, set[int]] = {}
        self.covers: dict[Words, set[int]] = {}
        for state in self.states:
            self._look(state)

    def _look(self, state: Words) -> None:
        self.steps[state], self.faults[state], self.covers[state] = [], set(), set()
        for number, step in enumerate(self.program.steps):
            self.target.covered.clear()
            try:
                if number in self.target.enabled(state):
                    self.steps[state].append(self.target.take(state, number))
                    self.covers[state] |= self.target.covered
            except StepFault as fault:
                self.faults[state].add(fault.number)
            assert step.label

    def holds(self, name: str, state: Words) -> bool:
        try:
            return self.target.holds(name, state)
        except StepFault:
            return False

    def is_inductive(self, claims: list[str], depth: int) -> bool:
        holding = [s for s in self.states if all(self.holds(c, s) for c in claims)]
        good = set(holding)
        level = {self.program.initial}
        for _ in range(depth):
            if not level <= good:
                return False
            level = {after for state in level for after in self.steps[state]}
        paths: list[tuple[Words, ...]] = [(state,) for state in holding]
        for _ in range(depth - 1):
            paths = [
                (*path, after)
                for path in paths
                for after in {*self.steps[path[-1]]}
                if after in good and after not in path
            ]
        return all(after in good for path in paths for after in self.steps[path[-1]])


def faults_told(result: Result, program: Program) -> set[int]:
    """The faults that a result names as not excluded."""
    told = [note.partition("may fail: ")[2] for note in result.notes]
    return {number for number, fault in enumerate(program.faults) if fault.message in told}


@pytest.mark.parametrize("seed", SEEDS)
def test_the_solver_says_what_all_typed_states_say(seed: int, tmp_path: Path) -> None:
    system = random_system(seed, tmp_path)
    lowering = Lowering(system())
    program = lowering.program()
    exhaustive = Exhaustive(program, lowering.layout)
    assert len({*exhaustive.states}) == exhaustive.count == 2 * 4 * 6 * 2 * 21
    draw = random.Random(seed)
    names = [*program.properties]
    reachable = {p.name for p in check(system, engine="python").properties}
    assert reachable == {*names}
    for _ in range(PAIRS):
        claims = draw.sample(names, draw.randint(1, 2))
        result = check_inductive(system, claims[:1], lemmas=claims[1:])
        is_shown = result.counterexample is None
        assert result.verdict is not Verdict.BOUNDED
        assert is_shown == exhaustive.is_inductive(claims, 1), claims
        good = [s for s in exhaustive.states if all(exhaustive.holds(c, s) for c in claims)]
        if program.initial in good:
            faults = set().union(*(exhaustive.faults[state] for state in good))
            messages = {program.faults[number].message for number in faults}
            told = {program.faults[number].message for number in faults_told(result, program)}
            assert told == messages
            covered = set().union(*(exhaustive.covers[state] for state in good))
            rows = {
                row.because + row.trigger + row.source for row in result.coverage if row.is_taken
            }
            places = {number: row for row in program.rows for _, number in row.places}
            taken = {places[number] for number in covered}
            assert rows == {row.because + row.trigger + row.source for row in taken}


@pytest.mark.parametrize("seed", SEEDS)
def test_with_a_depth_it_says_what_all_ways_through_typed_states_say(
    seed: int, tmp_path: Path
) -> None:
    system = random_system(seed, tmp_path)
    lowering = Lowering(system())
    program = lowering.program()
    exhaustive = Exhaustive(program, lowering.layout)
    for name in random.Random(seed).sample([*program.properties], 2):
        result = check_inductive(system, name, depth=2)
        assert (result.counterexample is None) == exhaustive.is_inductive([name], 2), name
