"""Concurrent attempts on every interleaving in bounds; `test_designs` holds what breaks them."""

from __future__ import annotations

import pytest

from epochgate.fsm.checker import Verdict, check
from epochgate.models.closed.concurrent import ConcurrentAttempts

BOUNDS: tuple[tuple[dict[str, int], int, int], ...] = (
    ({"F": 2, "events": 0, "said": 0, "overtaking": 1}, 171_110, 551_335),
    ({"vertices": 2, "starts": 2, "events": 0, "said": 0}, 115_834, 478_447),
    ({"concurrent": 3, "starts": 4, "events": 0, "said": 0}, 182_052, 789_501),
)


def test_at_its_own_bounds_everything_that_can_happen_does() -> None:
    result = check(ConcurrentAttempts())
    assert result.verdict is Verdict.PASS
    assert (result.states, result.transitions) == (173_268, 981_317)


@pytest.mark.parametrize(("constants", "states", "transitions"), BOUNDS)
def test_the_claims_hold_on_every_interleaving(
    constants: dict[str, int], states: int, transitions: int
) -> None:
    result = check(ConcurrentAttempts(**constants))
    assert result.counterexample is None
    assert (result.states, result.transitions) == (states, transitions)
