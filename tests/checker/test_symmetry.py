"""Interchangeable instances make a space smaller; what only looks like it is refused."""

from __future__ import annotations

import pytest

from epochgate.fsm.checker import Verdict, check
from epochgate.fsm.checker.asserting import assert_fails
from epochgate.fsm.checker.symmetry import NotSymmetric
from epochgate.fsm.closed import ClosedSystem
from epochgate.models.studies.reference import Reference
from tests.checker import small_systems as small
from tests.checker.broken import LateAcknowledgement

ENGINES = ("llvm", "python")


@pytest.mark.parametrize(("engine", "workers"), [("llvm", 1), ("llvm", 2), ("python", 1)])
def test_every_engine_has_the_same_smaller_space(engine: str, workers: int) -> None:
    system = Reference(N=2, C=1, K=2, E=2, F=1)
    result = check(system, symmetry="subtask", engine=engine, workers=workers)
    assert (result.verdict, result.states, result.transitions) == (Verdict.PASS, 19_026, 81_965)
    assert result.symmetry == "subtask"


def test_three_instances_make_it_smaller_by_nearly_six() -> None:
    full, folded = (check(Reference(N=3, C=1, K=1), symmetry=s) for s in (False, True))
    assert full.states / 6 <= folded.states < full.states / 4
    assert full.depth == folded.depth


@pytest.mark.parametrize("engine", [*ENGINES, "interpreted"])
def test_a_violation_is_found_as_soon(engine: str) -> None:
    assert_fails(LateAcknowledgement(C=1), steps=17, symmetry=True, engine=engine)


@pytest.mark.parametrize(
    ("system", "message"),
    [
        (small.FirstComes, "names an instance by a number"),
        (small.Favouring, "is compared, computed with"),
    ],
)
def test_instances_that_are_told_apart_are_not_interchangeable(
    system: type[ClosedSystem], message: str
) -> None:
    with pytest.raises(NotSymmetric, match=message) as refused:
        check(system, symmetry=True)
    assert f"{small.__file__}:" in str(refused.value)


def test_an_index_set_that_does_not_exist_is_refused() -> None:
    with pytest.raises(NotSymmetric, match="has no index set 'room'"):
        check(small.House, symmetry="room")
