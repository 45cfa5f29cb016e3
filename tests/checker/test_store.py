"""The compressed store keeps every state once, however its tables grow and its keys change."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

from epochgate.fsm.checker import check
from epochgate.fsm.checker.compiler import layout
from epochgate.fsm.checker.compiler.lowering import Lowering
from epochgate.fsm.checker.engines import keeping, plan, replanning, store
from epochgate.fsm.checker.engines.functions import Functions, compiled_target
from epochgate.fsm.checker.engines.plan import Plan
from epochgate.fsm.checker.engines.store import Table
from epochgate.fsm.closed import ClosedSystem
from epochgate.models.studies.reference import Reference
from tests.checker import small_systems
from tests.checker.broken import LateAcknowledgement
from tests.checker.gymnasium import Gymnasium
from tests.checker.relay import Relay
from tests.checker.searching import explored, made

SMALL = [
    system
    for system in vars(small_systems).values()
    if isinstance(system, type) and issubclass(system, ClosedSystem) and system is not ClosedSystem
]
WIDE = (
    Gymnasium,
    Relay,
    lambda: Reference(N=3, C=1, K=1, E=1),
    lambda: Reference(N=2, C=1, K=1, E=2),
)


def verdict(system: Any, **options: Any) -> tuple[Any, ...]:
    found = check(system, **options)
    steps = len(found.counterexample.steps) if found.counterexample else None
    return found.verdict, found.states, found.transitions, found.depth, steps


@pytest.mark.parametrize("system", SMALL, ids=lambda s: s.__name__)
def test_small_systems_are_explored_as_in_plain_python(system: type[ClosedSystem]) -> None:
    assert verdict(system, engine="llvm") == verdict(system, engine="python")


@pytest.fixture
def restless(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Makes words narrow, so that there are many, tables begin small and levels need more bits, and
    has other plans made time and again; the list holds how many parts their keys had.
    """
    parts: list[int] = []
    choose = plan.plan

    def noted(words: int, count: int, states: Any) -> Plan:
        parts.append(count)
        return choose(words, count, states)

    monkeypatch.setattr(store, "SLOTS_BEGIN", 1 << 13)
    monkeypatch.setattr(store, "LEVEL_BITS_MIN", 3)
    monkeypatch.setattr(keeping, "PLANNED_FROM", 40)
    monkeypatch.setattr(layout, "WORD_BITS", 20)
    monkeypatch.setattr(plan, "KEY_BITS", 44)
    monkeypatch.setattr(plan, "SPARE_BITS", 0)
    monkeypatch.setattr(replanning, "plan", noted)
    return parts


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("system", WIDE, ids=["Gymnasium", "Relay", "three", "two"])
def test_states_stay_the_same_when_keys_and_tables_change(
    system: Any, workers: int, restless: list[int]
) -> None:
    initial = [Lowering(system()).program().initial]
    plain = explored(made(system(), "python"), initial)
    found = explored(made(system(), "llvm", workers=workers), initial)
    assert (found.states, found.transitions, found.levels) == (
        plain.states,
        plain.transitions,
        plain.levels,
    )


def test_keys_with_fewer_parts_are_made_while_levels_and_stacks_hold_the_old_ones(
    restless: list[int],
) -> None:
    for order in ("breadth", "depth"):
        result = check(Reference(N=3, C=1, K=1, E=1), order=order)
        assert (result.states, result.transitions) == (10_340, 48_117)
    assert len(set(restless)) > 1


@pytest.mark.parametrize("workers", [1, 2])
def test_the_way_to_a_violation_is_the_first_of_the_shortest(
    workers: int, restless: list[int]
) -> None:
    plain = check(LateAcknowledgement(C=1), engine="python").counterexample
    found = check(LateAcknowledgement(C=1), workers=workers).counterexample
    assert plain is not None
    assert found is not None
    assert len(found.steps) == len(plain.steps) == 17
    if workers == 1:
        assert found == plain


@pytest.mark.parametrize("when", [1, 2, 9, 17, 18, 25])
def test_the_way_to_a_violation_stays_when_keys_change_while_it_is_sought(
    when: int, restless: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = check(LateAcknowledgement(C=1), engine="python").counterexample
    asked, ask = [0], keeping.Keeping.have_numbers

    def have_numbers(search: Any, worker: Any, needed: int = 0, **options: Any) -> None:
        if "spare_bytes" in options:
            asked[0] += 1
            if asked[0] == when:
                replanning.replan(search)
        ask(search, worker, needed, **options)

    monkeypatch.setattr(keeping.Keeping, "have_numbers", have_numbers)
    assert check(LateAcknowledgement(C=1)).counterexample == plain
    assert asked[0] > when


KEYS = 6_000


@pytest.mark.parametrize("parts", [2, 3, 4])
@pytest.mark.parametrize("number_bits", [9, 15])
def test_a_table_gives_back_what_was_put_into_it(parts: int, number_bits: int) -> None:
    draw = random.Random(parts * number_bits)
    calls = Functions(compiled_target(Lowering(Reference()).program(), None, 1).code)
    made_plan = Plan((), tuple(range(parts)))
    table = Table(0, made_plan, 1 << 13)
    table.hold_numbers(1 << number_bits, calls)
    levels: dict[int, int] = {}
    while len(levels) < KEYS:
        key = 0
        for _ in range(parts):
            # Close to each other, as numbers of words are.
            number = draw.randrange(1 << draw.randrange(1, number_bits + 1))
            key = key << made_plan.part_bits | number
        levels.setdefault(key, draw.randrange(200))

    def kept() -> dict[int, int]:
        pieces = list(table.collected(calls, 0, table.level_max))
        keys = np.concatenate([keys for keys, _ in pieces]).tolist()
        found = np.concatenate([found for _, found in pieces]).tolist()
        assert len(set(keys)) == len(keys)
        return dict(zip(keys, found, strict=True))

    table.put(calls, np.array([*levels], np.int64), np.array([*levels.values()], np.uint32), 0)
    assert kept() == levels
    with pytest.raises(store.NoRoom):
        table.put(calls, np.array([next(iter(levels))], np.int64), np.array([0], np.uint32), 0)
    assert table.count == KEYS
    for spare_bytes in (1_000, 40_000, 1 << 20):
        table.grow(calls, table.wider(spare_bytes))
        assert kept() == levels
    table.hold_level(70_000, calls)
    table.hold_numbers(1 << number_bits + 1, calls)
    assert kept() == levels
    assert all(table.level(key, calls) == level for key, level in list(levels.items())[:200])


def test_words_that_are_often_alike_together_make_a_pair() -> None:
    draw = np.random.default_rng(1)
    first, second = draw.integers(0, 500, 4_000), draw.integers(0, 500, 4_000)
    states = np.stack([first, second, first * 7, second + 9], axis=1)
    assert set(plan.plan(4, 2, states).pairs) == {(0, 2), (1, 3)}
    assert plan.plan(4, 4, states) == Plan((), (0, 1, 2, 3))
    assert [plan.parts_for(5, numbers) for numbers in (1_000, 10_000, 1 << 25)] == [4, 3, 2]
