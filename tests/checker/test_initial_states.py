"""A search may begin in several states at once."""

from __future__ import annotations

import random
from itertools import chain, islice

import pytest

from epochgate.fsm.checker.compiler.lowering import Lowering
from epochgate.fsm.checker.engines.search import canonical
from epochgate.models.studies.reference import Reference
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
