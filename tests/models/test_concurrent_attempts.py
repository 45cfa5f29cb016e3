"""Concurrent attempts on every interleaving in bounds; `test_designs` holds what breaks them."""

from __future__ import annotations

import pytest

from epochgate.fsm.explore import Verdict, check
from epochgate.models.closed_concurrent import ConcurrentAttempts


def test_at_its_own_bounds_everything_that_can_happen_does() -> None:
    result = check(ConcurrentAttempts())
    assert result.verdict is Verdict.PASS
    assert (result.states, result.transitions) == (142_500, 834_099)


@pytest.mark.parametrize(
    ("constants", "states", "transitions"),
    [
        ({"F": 2, "events": 0, "said": 0, "overtaking": 1}, 127_423, 424_674),
        ({"vertices": 2, "starts": 2, "events": 0, "said": 0}, 102_746, 439_373),
        ({"concurrent": 3, "starts": 4, "events": 0, "said": 0}, 133_664, 607_885),
    ],
)
def test_the_claims_hold_on_every_interleaving(
    constants: dict[str, int], states: int, transitions: int
) -> None:
    result = check(ConcurrentAttempts(**constants))
    assert result.counterexample is None
    assert (result.states, result.transitions) == (states, transitions)
