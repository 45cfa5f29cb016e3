"""Public models have the published numbers of states and transitions, whatever counts them."""

from __future__ import annotations

import pytest

from epochgate.fsm.checker import Verdict, check
from tests.published.broken import BusyProbe
from tests.published.catalogue import BROKEN, MODELS, Broken
from tests.published.counting import counted, has_liveness
from tests.published.page import PAGE, kept, page

QUICK = [name for name, model in MODELS.items() if model.is_quick]
MODELS_MIN = 100
IN_PYTHON_MAX = 2_000_000
"""Steps that Python tries in a few seconds: states, times steps of instances."""
BY_MACHINES_MAX = 1_000
"""States that machines take in as long."""


def test_there_are_many_models_and_the_page_is_of_them() -> None:
    found = kept()
    assert len(MODELS) >= MODELS_MIN
    assert list(found) == list(MODELS)
    for name, model in MODELS.items():
        assert (found[name]["states"], found[name]["verdict"]) == (model.states, "PASS")
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


@pytest.mark.parametrize("broken", BROKEN, ids=lambda one: one.name)
def test_claims_that_are_published_as_broken_are_broken(broken: Broken) -> None:
    result = check(broken.system, engine="python")
    assert result.verdict is Verdict.FAIL
    assert [one.claim for one in result.properties if one.verdict is Verdict.FAIL] == [broken.claim]
    assert result.counterexample is not None
    assert broken.steps in (None, len(result.counterexample.steps))


def test_a_claim_that_is_published_to_need_more_fairness_holds_with_it() -> None:
    assert check(BusyProbe, engine="python").verdict is Verdict.PASS


@pytest.mark.extended
@pytest.mark.parametrize("name", MODELS)
def test_every_engine_has_the_published_counts(name: str) -> None:
    model = MODELS[name]
    alike = [counted(model, engine="llvm")]
    if model.states * len(model.system().step_instances()) <= IN_PYTHON_MAX:
        alike.append(counted(model, engine="python"))
    if model.states <= BY_MACHINES_MAX:
        alike.append(counted(model, engine="interpreted"))
    assert len({(one.transitions, one.depth, one.terminal_states) for one in alike}) == 1
    taken = [[row.is_taken for row in one.coverage] for one in alike]
    assert all(rows == taken[0] for rows in taken)


@pytest.mark.extended
@pytest.mark.parametrize("name", [n for n, one in MODELS.items() if not has_liveness(one)])
def test_two_workers_have_the_published_counts(name: str) -> None:
    counted(MODELS[name], engine="llvm", workers=2)
