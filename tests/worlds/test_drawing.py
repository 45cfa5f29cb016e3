"""Any strategy of Hypothesis can be drawn in a world, and drawn again by a token."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import strategies as st

from epochgate.runtime.testing.worlds.searching import token
from epochgate.testing import World, WorldMisused, agree, simulate
from tests.worlds.rules import Applying, RulesProvider


def one() -> int:
    return 1


@st.composite
def pairs(draw: st.DrawFn) -> list[Any]:
    return [draw(st.sampled_from("ab")), draw(st.booleans())]


STRATEGIES: dict[str, st.SearchStrategy[Any]] = {
    "text": st.text(max_size=2),
    "lists": st.lists(st.sampled_from([1, 2])),
    "tuples": st.tuples(st.integers(), st.booleans()),
    "fixed_dictionaries": st.fixed_dictionaries({"a": st.integers()}),
    "dictionaries": st.dictionaries(st.text(max_size=2), st.integers()),
    "builds": st.builds(complex, st.integers(0, 3)),
    "map": st.integers().map(str),
    "filter": st.integers().filter(bool),
    "flatmap": st.integers(0, 3).flatmap(st.just),
    "one_of": st.one_of(st.integers(), st.text(max_size=2)),
    "from_regex": st.from_regex("a+", fullmatch=True),
    "from_type": st.from_type(bool),
    "recursive": st.recursive(st.none(), st.lists),
    "permutations": st.permutations([1, 2, 3]),
    "dates": st.dates(),
    "composite": pairs(),
    "functions": st.functions(like=one, returns=st.integers()),
    "data": st.data(),
}


STOPPED = st.integers().filter(lambda number: False)


@pytest.mark.parametrize("name", STRATEGIES)
def test_a_value_of_every_family_is_drawn_and_drawn_again_by_the_token(name: str) -> None:
    drawn: list[str] = []

    def body(world: World) -> None:
        drawn.clear()
        for _ in range(2):
            value = world.draw(STRATEGIES[name])
            if name == "functions":
                value = value()
            if name == "data":
                value = value.draw(st.tuples(st.integers()))
            drawn.append(repr(value))
        world.job(RulesProvider(), operators=Applying)
        assert not world.deviations

    search = simulate(body, faults=()).simulation.search()
    found = search.scan(range(10))
    assert found.first is not None, "some run leaves the default order"
    assert found.first.values
    before = list(drawn)
    again = search.replay(token(found.first))
    assert again.failure is not None
    assert drawn == before


def test_the_values_of_agree_may_be_built_of_any_strategy() -> None:
    def body(world: World) -> None:
        agree(
            world,
            RulesProvider(),
            Applying,
            act=lambda coordinator, change: coordinator.change(change["text"]),
            agrees=lambda coordinator, tasks: all(t.rule == coordinator.rule for t in tasks),
            values=st.lists(st.fixed_dictionaries({"text": st.text(max_size=2)}), min_size=1),
        )

    found = simulate(body).simulation.search().at_random(10, 0)
    assert found.failure is None, found.failure.broken


@pytest.mark.parametrize("strategy", [st.integers(), STOPPED])
def test_a_draw_that_is_stopped_ends_the_run_although_code_catches_it(
    strategy: st.SearchStrategy[int],
) -> None:
    def body(world: World) -> None:
        world.job(RulesProvider(), operators=Applying)
        try:
            world.draw(strategy)
        except BaseException as stop:
            raise AssertionError("taken for a failure of the user's code") from stop

    search = simulate(body).simulation.search()
    if strategy is STOPPED:
        with pytest.raises(WorldMisused, match="none of 100 runs came to an end"):
            search.at_random(5, 0)
    else:
        assert search.at_random(5, 0).failure is None
