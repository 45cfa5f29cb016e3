"""A search may begin in several states at once."""

from __future__ import annotations

import random
from itertools import chain, islice
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from epochgate.fsm.checker.compiler.lowering import Lowering
from epochgate.fsm.checker.compiler.python_target import PythonTarget, StepFault
from epochgate.fsm.checker.compiler.vector_target import NO_FAULT, satisfying
from epochgate.fsm.checker.engines import initial as initial_combinations
from epochgate.fsm.checker.engines.search import canonical
from epochgate.models.studies.reference import Reference
from tests.checker.arithmetic import Arithmetic, Dividing
from tests.checker.beginnings import Cells, Shares, TokenRing
from tests.checker.gymnasium import Gymnasium
from tests.checker.random_systems import random_system
from tests.checker.relay import Relay
from tests.checker.searching import explored, made
from tests.checker.small_systems import House

REFERENCE = {"N": 2, "C": 1, "K": 1, "E": 1}


def drawn() -> list[tuple[int, ...]]:
    """Some states of the reference model, one of them twice, and not the initial one."""
    system = Reference(**REFERENCE)
    everything = explored(made(system, "python"), [Lowering(system).program().initial])
    chosen = random.Random(1).sample(sorted(everything.states), 40)
    return [*chosen, chosen[0]]


@pytest.mark.parametrize(("engine", "workers"), [("llvm", 1), ("llvm", 2)])
def test_a_search_from_several_states_finds_what_each_of_them_leads_to(
    engine: str, workers: int
) -> None:
    initial = drawn()
    single = set[tuple[int, ...]]()
    for words in initial[:5]:
        single |= explored(made(Reference(**REFERENCE), "python"), [words]).states
    found = explored(made(Reference(**REFERENCE), engine, workers=workers), initial[:5])
    assert found.states == single
    plain = explored(made(Reference(**REFERENCE), "python"), initial)
    found = explored(made(Reference(**REFERENCE), engine, workers=workers), initial)
    assert (found.states, found.transitions, found.levels) == (
        plain.states,
        plain.transitions,
        plain.levels,
    )
    assert found.levels[0] == len(set(initial))


@pytest.mark.parametrize("engine", ["llvm", "python"])
def test_every_way_begins_in_one_of_the_initial_states(engine: str) -> None:
    initial = drawn()
    search = explored(made(Reference(**REFERENCE), engine), initial).search
    assert [search.words(state) for state in search.initial] == [*dict.fromkeys(initial)]
    for state in islice(chain.from_iterable(search.everything()), 0, None, 40):
        assert search.words(search.chain(state)[0]) in initial


@pytest.mark.parametrize("engine", ["llvm", "python"])
def test_states_that_an_exchange_makes_alike_are_one_initial_state(engine: str) -> None:
    search = made(House(visitors=3), engine, symmetry=True)
    program = Lowering(House(visitors=3), "visitor").program()
    blocks, first, width = program.blocks
    words = program.initial
    other = (*words[first : first + width],)
    shifted = tuple(w ^ 1 for w in other)
    one = (*words[:first], *shifted, *other * (blocks - 1), *words[first + blocks * width :])
    last = (*words[:first], *other * (blocks - 1), *shifted, *words[first + blocks * width :])
    (level,) = search.begin([one, last, words])
    assert [search.words(state) for state in level] == [canonical(program, one), words]


@pytest.mark.parametrize("engine", ["llvm", "python"])
def test_a_descent_begins_in_each_of_them(engine: str) -> None:
    initial = drawn()
    broad = explored(made(Reference(**REFERENCE), engine), initial)
    deep = made(Reference(**REFERENCE), engine)
    deep.begin(initial)
    assert deep.descend(lambda: None) is None
    found = {deep.words(state) for state in chain.from_iterable(deep.everything())}
    assert (found, deep.transitions) == (broad.states, broad.transitions)


def one_by_one(
    target: PythonTarget, functions: list[str], states: list[tuple[int, ...]]
) -> tuple[list[tuple[int, ...]], int]:
    """The states in which all functions hold, and the first fault."""
    kept, first = [], NO_FAULT
    for state in states:
        try:
            if all(target.value(function, state) for function in functions):
                kept.append(state)
        except StepFault as fault:
            first = fault.number if first == NO_FAULT else first
    return kept, first


@pytest.mark.parametrize(
    "system",
    [
        *(pytest.param(seed, id=f"random-{seed}") for seed in range(25)),
        *(
            Reference(N=1, C=1),
            Gymnasium(),
            Relay(),
            Arithmetic(),
            Dividing(),
            Shares(cells=4, age_max=5),
        ),
    ],
    ids=lambda system: type(system).__name__,
)
def test_states_are_judged_together_as_one_by_one(system: Any, tmp_path: Path) -> None:
    made_system = random_system(system, tmp_path)() if isinstance(system, int) else system
    program = Lowering(made_system).program()
    target, draw = PythonTarget(program), random.Random(7)
    # Most are no states of the system: they lead into the branches for faults, too.
    cells = [cell for cell in program.cells.values() if cell.bits]
    states = [program.initial]
    while len(states) < 700:
        words = [*draw.choice(states)]
        for cell in draw.choices(cells, k=3):
            words[cell.word] ^= draw.getrandbits(cell.bits) << cell.shift
        states.append(tuple(words))
    columns = [np.array(column) for column in zip(*states, strict=True)]
    functions = [*program.properties.values(), *(step.enabled for step in program.steps)]
    faults = set()
    for chosen in [
        *([name] for name in functions),
        *(draw.choices(functions, k=3) for _ in "12345"),
    ]:
        together, fault = satisfying(program, columns, chosen)
        expected = one_by_one(target, chosen, states)
        assert ([*zip(*(word.tolist() for word in together), strict=True)], fault) == expected
        faults.add(fault)
    if isinstance(system, Shares):
        assert len(faults) > 2


@pytest.mark.parametrize("system", [Cells(cells=3), TokenRing()])
def test_combinations_are_those_that_are_made_without_numpy(
    system: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = Lowering(system).program()
    plain = initial_combinations.initial_states(program, "it")
    monkeypatch.setattr(initial_combinations, "FEW", 0)
    monkeypatch.setattr(initial_combinations, "TOGETHER", 7)
    assert initial_combinations.initial_states(program, "it") == plain
