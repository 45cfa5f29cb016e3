"""Public models have the published numbers of states and transitions, whatever counts them."""

from __future__ import annotations

import pytest

from epochgate.fsm.checker import Verdict, check
from epochgate.fsm.checker.symmetry import NotSymmetric
from tests.published.catalogue import MODELS
from tests.published.counting import counted, has_liveness
from tests.published.page import PAGE, kept, page
from tests.published.puzzles import CheckedIncrement

QUICK = [name for name, model in MODELS.items() if model.is_quick]
MODELS_MIN = 40
IN_PYTHON_MAX = 100_000
BY_MACHINES_MAX = 1_000
"""States, above which an engine takes more than some seconds."""


def test_there_are_many_models_and_the_page_is_of_them() -> None:
    found = kept()
    assert len(MODELS) >= MODELS_MIN
    assert list(found) == list(MODELS)
    for name, model in MODELS.items():
        assert (found[name]["states"], found[name]["verdict"]) == (model.states, model.verdict)
        assert model.transitions in (None, found[name]["transitions"])
    text = PAGE.read_text(encoding="utf-8")
    assert page(text, found) == text, "run python -m tests.published.page --table"


@pytest.mark.parametrize("name", QUICK)
def test_small_models_have_the_published_counts(name: str) -> None:
    counted(MODELS[name], engine="python")


@pytest.mark.parametrize("name", [name for name, one in MODELS.items() if one.symmetric])
def test_the_published_symmetric_counts_come_out_too(name: str) -> None:
    result = check(MODELS[name].system(), symmetry=True, engine="python")
    assert result.states == MODELS[name].symmetric


def test_a_claim_that_is_published_as_broken_is_broken_in_as_many_steps() -> None:
    result = check(CheckedIncrement, engine="python")
    assert result.verdict is Verdict.FAIL
    assert result.counterexample is not None
    assert len(result.counterexample.steps) == 4


@pytest.mark.extended
@pytest.mark.parametrize("name", MODELS)
def test_every_engine_has_the_published_counts(name: str) -> None:
    model = MODELS[name]
    alike = [counted(model, engine="llvm")]
    if not has_liveness(model):
        alike.append(counted(model, engine="llvm", workers=2))
    if model.states <= IN_PYTHON_MAX:
        alike.append(counted(model, engine="python"))
    if model.states <= BY_MACHINES_MAX:
        alike.append(counted(model, engine="interpreted"))
    assert len({(one.transitions, one.depth, one.terminal_states) for one in alike}) == 1
    taken = [[row.is_taken for row in one.coverage] for one in alike]
    assert all(rows == taken[0] for rows in taken)


@pytest.mark.extended
@pytest.mark.parametrize("name", [n for n, one in MODELS.items() if not has_liveness(one)])
def test_symmetry_changes_the_count_and_not_the_verdict(name: str) -> None:
    model = MODELS[name]
    try:
        result = check(model.system(), symmetry=True)
    except NotSymmetric:
        return
    assert result.verdict.value == model.verdict
    assert result.states <= model.states
