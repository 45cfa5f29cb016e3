"""One run is begun by Hypothesis, once, from a seed or from the values of an earlier one."""

from __future__ import annotations

import contextlib
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import assume, strategies as st
from hypothesis.errors import HypothesisException

from epochgate.runtime.testing import worlds
from epochgate.runtime.testing.worlds import by_hypothesis
from epochgate.runtime.testing.worlds.data import HypothesisNeeded
from epochgate.testing import World, replay, simulate
from tests.worlds.rules import Applying, RulesProvider
from tests.worlds.test_plugin import pytest_run

NUMBERS = st.lists(st.integers(0, 1000), min_size=1)


def numbers(data: Any) -> list[int]:
    drawn: list[int] = data.draw(NUMBERS)
    return drawn


def drawn(number: int, known: bytes = b"") -> tuple[list[int], bytes]:
    came = by_hypothesis.run_once(numbers, known, number, lambda _: True)
    assert came is not None
    return came


def test_a_seed_draws_the_same_and_another_seed_something_else() -> None:
    assert drawn(5) == drawn(5)
    assert len({tuple(drawn(number)[0]) for number in range(20)}) > 15


def test_kept_values_are_drawn_again_whatever_the_seed() -> None:
    came, values = drawn(5)
    assert drawn(6, values) == (came, values)


def test_behind_kept_values_others_come_from_the_seed() -> None:
    came, values = drawn(5)

    def act(data: Any) -> tuple[list[int], int]:
        return numbers(data), data.draw(st.integers(0, 2**60))

    behind = [
        by_hypothesis.run_once(act, values, number, lambda _: False) for number in (1, 1, 2, 3)
    ]
    assert all(one is not None and one[0][0] == came for one in behind)
    first, again, *others = [one and one[0][1] for one in behind]
    assert first == again
    assert {first} != {*others}


@pytest.mark.parametrize("known", [False, True])
@pytest.mark.parametrize("ends", ["well", "kept", "raising", "assuming", "overrunning"])
def test_a_run_is_made_once_however_it_ends(ends: str, known: bool) -> None:
    calls = []

    def act(data: Any) -> list[int]:
        calls.append(numbers(data))
        if ends == "raising":
            raise LookupError("what the body raises")
        if ends == "assuming":
            assume(False)
        if ends == "overrunning":
            data.draw(st.integers().filter(lambda number: False))
        return calls[0]

    values = drawn(1)[1] if known else b""
    raised = {"raising": LookupError, "assuming": HypothesisException}.get(ends)
    with contextlib.nullcontext() if raised is None else pytest.raises(raised):
        came = by_hypothesis.run_once(act, values, 1, lambda _: ends == "kept")
        assert (came is None) is (ends == "overrunning")
    assert len(calls) == 1


def test_values_shrink_as_long_as_they_fail() -> None:
    failing = next(drawn(number) for number in range(100) if sum(drawn(number)[0]) > 500)

    def fails(data: Any) -> list[int] | None:
        came = numbers(data)
        return came if sum(came) > 100 else None

    found = by_hypothesis.shrunk(failing[1], fails, 500)
    assert found is not None
    simplest, values = found
    assert simplest == [101]
    assert drawn(0, values)[0] == simplest
    assert by_hypothesis.shrunk(failing[1], lambda data: None, 500) is None


def test_values_that_hypothesis_cannot_read_are_none() -> None:
    assert by_hypothesis.is_known(drawn(1)[1])
    assert not by_hypothesis.is_known(b"\xcf")


def test_tests_that_draw_nothing_run_without_hypothesis(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(worlds, "by_hypothesis")
    monkeypatch.setitem(sys.modules, by_hypothesis.__name__, None)

    def plain(world: World) -> None:
        world.job(RulesProvider(), operators=Applying)

    def drawing(world: World) -> None:
        world.draw(NUMBERS)

    assert simulate(plain).simulation.search().at_random(5, 0).runs == 5
    for test in (simulate(drawing), replay(simulate(plain), "-+AQ")):
        with pytest.raises(HypothesisNeeded, match="which is not installed: pip install"):
            test()


TEST = """
from hypothesis import strategies as st
from epochgate.testing import World, simulate
from tests.worlds.rules import Applying, RulesProvider

@simulate(runs=5)
def test_numbers(world: World) -> None:
    number = world.draw(st.integers(0, 9))
    world.job(RulesProvider(), operators=Applying)
    assert number < 0
"""


@pytest.mark.programs
def test_an_option_that_takes_the_values_away_is_named(tmp_path: Path) -> None:
    (tmp_path / "test_numbers.py").write_text(TEST)
    seeded = pytest_run(tmp_path, "-q", "-p", "_hypothesis_pytestplugin", "--hypothesis-seed=1")
    assert "leave out --hypothesis-seed" in seeded
