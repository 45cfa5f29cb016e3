"""A token that no longer names what happens is said to, and is never a pass."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import strategies as st

from epochgate.runtime.testing.worlds.searching import token
from epochgate.testing import NotReplayed, TokenMalformed, World, replay, simulate
from tests.worlds.counting import Counting, CountingOn, sending
from tests.worlds.test_plugin import TEST, pytest_run

RIGHT = simulate(sending(Counting))


@pytest.mark.parametrize("absent", ["99:99hold", "0:0die", "1:1hear-late"])
def test_a_deviation_that_did_not_happen_is_named(absent: str) -> None:
    with pytest.raises(NotReplayed, match=f"the deviation {absent} did not happen: the test has"):
        replay(RIGHT, absent)()


def test_all_that_did_not_happen_are_named_and_what_happened_is_not() -> None:
    with pytest.raises(NotReplayed, match="the deviations 98:1hold, 99:99die did not happen"):
        replay(RIGHT, "1:9die,98:1hold,99:99die")()


def test_a_failure_counts_whatever_did_not_happen() -> None:
    found = simulate(sending(CountingOn)).simulation.search().at_random(200, 0)
    assert found.failure is not None
    again = simulate(sending(CountingOn)).simulation.search()
    assert again.replay(token(found.failure)).missed == ""
    assert again.replay(f"{token(found.failure)},99:99die").failure is not None


@pytest.mark.parametrize("word", ["4:3ho", "4:3xyz", "4:3hold-on"])
def test_a_kind_that_there_is_not_is_refused(word: str) -> None:
    with pytest.raises(TokenMalformed, match=f"'{word[3:]}' in the token .* go-on, delay, hold, "):
        replay(RIGHT, word)()


def test_values_that_are_none_are_refused() -> None:
    with pytest.raises(TokenMalformed, match="'zz' behind the \\+ of the token holds no drawn"):
        replay(RIGHT, "-+zz")()


def drawing(*limits: int, last: int) -> str:
    """The token of a run that draws a number up to each limit, and fails."""

    def body(world: World) -> None:
        numbers = [world.draw(st.integers(limit, limit + 9)) for limit in limits]
        assert numbers[-1] < last

    found = simulate(body).simulation.search().at_random(30, 0)
    assert found.failure is not None
    return token(found.failure)


def test_values_that_a_test_does_not_draw_any_more_are_said_and_further_ones_are_drawn() -> None:
    word = drawing(100, last=0)

    def body(world: World) -> None:
        world.draw(st.integers(100, 109))
        world.draw(st.text())

    replay(simulate(body), word)()

    def other(world: World) -> None:
        world.draw(st.text())

    with pytest.raises(NotReplayed, match="the values of the token were not drawn"):
        replay(simulate(other), word)()


@pytest.mark.programs
def test_a_malformed_token_is_refused_in_one_sentence_by_pytest(tmp_path: Path) -> None:
    (tmp_path / "test_rules.py").write_text(TEST)
    for word in ("garbage", "", "4:3xyz", "-+zz"):
        told = pytest_run(tmp_path, "-q", f"--epochgate-replay={word}")
        assert "Traceback" not in told
        assert told.startswith("ERROR: --epochgate-replay: ")
        assert len(told.strip().splitlines()) == 1
    told = pytest_run(tmp_path, "-q", "-k", "right", "--epochgate-replay=99:99hold")
    assert "1 failed" in told
    assert "test_right: the deviation 99:99hold did not happen" in told
    assert "simulate.py:" not in told, "no frame of the kit stands before the sentence"
