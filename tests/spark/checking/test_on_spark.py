"""Searches in real Spark sessions give the counts and the counterexamples of one machine."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from epochgate.cli import main
from epochgate.fsm.checker import Verdict, check
from epochgate.models.studies.reference import Reference
from epochgate.spark.checking import check_on_spark
from tests.agreement.searching import levels_noted, seen, within, without_promises
from tests.agreement.systems import every
from tests.checker.broken import LateAcknowledgement
from tests.spark import shared
from tests.spark.checking.alike import found

pytestmark = [pytest.mark.spark, pytest.mark.extended]
EVERY = every()
SAMPLE = ("closed/in_doubt", "closed/compacting", "broken/pipelining.taken_late")
STATES_MAX = 2_000_000
"""Larger spaces are compared down to a level."""


def test_the_reference_model_has_the_counts_that_other_checkers_agree_on(spark: Any) -> None:
    result = check_on_spark(spark, Reference(N=2, C=2, K=2, E=1, F=1))
    assert (result.verdict, result.states, result.transitions, result.workers) == (
        Verdict.PASS,
        120_524,
        561_792,
        2,
    )


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=[] if name in SAMPLE else [pytest.mark.deep]) for name in EVERY],
)
def test_every_system_is_judged_alike(spark: Any, name: str) -> None:
    system = without_promises(EVERY[name]())
    alone, options = within(STATES_MAX, system)
    with levels_noted() as levels:
        apart = seen(check_on_spark(spark, system, **options), levels)
    assert apart.differs(alone) == ""


def test_the_shortest_counterexample_is_told_step_by_step(spark: Any) -> None:
    result = check_on_spark(spark, LateAcknowledgement(C=1))
    assert result.counterexample is not None
    assert len(result.counterexample.steps) == 17
    assert found(result) == found(check(LateAcknowledgement(C=1)))


def test_a_search_stopped_by_its_budget_goes_on(spark: Any, tmp_path: Path) -> None:
    first = check_on_spark(spark, Reference(), directory=tmp_path, max_states=40_000)
    assert first.verdict is Verdict.BOUNDED
    assert found(check_on_spark(spark, Reference(), directory=tmp_path)) == found(
        check(Reference())
    )


def test_the_command_starts_a_session_of_its_own(capsys: pytest.CaptureFixture[str]) -> None:
    shared.stop()
    arguments = ["reference", "--set", "N=1", "--set", "C=1", "--set", "K=1", "--max-seconds", "99"]
    assert main(["check", *arguments, "--master", "local[2]"]) == 0
    told = capsys.readouterr().out
    assert "87 states, 184 transitions" in told
    assert "spark, 2 workers" in told
