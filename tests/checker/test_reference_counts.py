"""The reference model has the numbers of states and transitions that other checkers agree on."""

from __future__ import annotations

import pytest

from epochgate.fsm.checker import Verdict, check
from epochgate.models.studies.reference import Reference

SMALL = (
    ((1, 1, 1, 1, 1), 87, 184),
    ((1, 2, 2, 1, 1), 1_787, 5_501),
    ((3, 1, 1, 1, 1), 10_340, 48_117),
    ((2, 2, 1, 1, 1), 12_256, 50_778),
    ((2, 1, 2, 2, 1), 37_376, 160_782),
    ((2, 2, 2, 1, 1), 120_524, 561_792),
)
LARGE = (
    ((3, 1, 2, 2, 1), 1_876_258, 11_147_495),
    ((2, 2, 2, 2, 1), 6_957_956, 36_624_708),
)
BYTES_PER_STATE_MAX = 16


def reference(bounds: tuple[int, ...]) -> Reference:
    return Reference(**dict(zip("NCKEF", bounds, strict=True)))


@pytest.mark.parametrize(("bounds", "states", "transitions"), SMALL)
def test_machine_code_counts_what_others_count(
    bounds: tuple[int, ...], states: int, transitions: int
) -> None:
    result = check(reference(bounds), engine="llvm")
    assert (result.verdict, result.states, result.transitions) == (
        Verdict.PASS,
        states,
        transitions,
    )


@pytest.mark.parametrize(("bounds", "states", "transitions"), SMALL[:4])
def test_plain_python_counts_what_others_count(
    bounds: tuple[int, ...], states: int, transitions: int
) -> None:
    result = check(reference(bounds), engine="python")
    assert (result.states, result.transitions) == (states, transitions)


@pytest.mark.parametrize(("bounds", "states", "transitions"), SMALL[:2])
def test_the_machines_themselves_count_what_others_count(
    bounds: tuple[int, ...], states: int, transitions: int
) -> None:
    result = check(reference(bounds), engine="interpreted")
    assert (result.states, result.transitions) == (states, transitions)


@pytest.mark.parametrize(("bounds", "states", "transitions"), SMALL[4:])
def test_two_workers_count_what_one_counts(
    bounds: tuple[int, ...], states: int, transitions: int
) -> None:
    result = check(reference(bounds), workers=2)
    assert (result.states, result.transitions) == (states, transitions)


@pytest.mark.deep
@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize(("bounds", "states", "transitions"), LARGE)
def test_large_spaces_are_counted_in_little_memory(
    bounds: tuple[int, ...], states: int, transitions: int, workers: int
) -> None:
    result = check(reference(bounds), workers=workers)
    assert (result.states, result.transitions) == (states, transitions)
    assert result.bytes_per_state <= BYTES_PER_STATE_MAX


def test_a_derived_constant_follows_from_the_others() -> None:
    assert reference((3, 2, 2, 2, 1)).constants["wire"] == 6


@pytest.mark.parametrize("order", ["breadth", "depth"])
def test_the_order_of_the_search_does_not_change_what_there_is(order: str) -> None:
    result = check(reference((2, 2, 1, 1, 1)), order=order)
    assert (result.verdict, result.states, result.transitions) == (Verdict.PASS, 12_256, 50_778)
    plain = check(reference((1, 2, 2, 1, 1)), order=order, engine="python")
    assert (plain.states, plain.transitions) == (1_787, 5_501)
