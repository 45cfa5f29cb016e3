"""Splits of readers that fail, on every interleaving; `test_designs` has what breaks them."""

from __future__ import annotations

import pytest

from epochgate.fsm.checker import Verdict, check
from epochgate.models.closed.readers import ConcurrentSources
from epochgate.models.closed.sources import Sources


def test_each_split_is_read_by_exactly_one_surviving_history_on_every_interleaving() -> None:
    result = check(Sources())
    assert result.verdict is Verdict.PASS
    assert (result.states, result.transitions) == (539_064, 5_327_322)


@pytest.mark.parametrize(
    ("sizes", "states", "transitions"),
    [
        ({"subtasks": 1, "S": 2}, 18_106, 115_094),
        ({"subtasks": 1, "S": 2, "K": 2, "F": 2, "G": 0}, 34_320, 209_039),
    ],
)
def test_it_holds_in_other_bounds(sizes: dict[str, int], states: int, transitions: int) -> None:
    result = check(Sources(**sizes))
    assert result.counterexample is None
    assert (result.states, result.transitions) == (states, transitions)


def test_every_attempt_of_a_subtask_is_sent_everything_on_every_interleaving() -> None:
    result = check(ConcurrentSources(), engine="python")
    assert result.verdict is Verdict.PASS
    assert (result.states, result.transitions) == (523, 2_958)
