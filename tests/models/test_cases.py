"""Public bugs of other projects: each fails as its page says, holds once it is mended, and the
pages under docs/cases show what the checker finds.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from epochgate.cli import main
from epochgate.fsm.checker import Result, Verdict, check
from epochgate.fsm.closed import ClosedSystem
from epochgate.models.studies.broken.catalogue import BROKEN
from epochgate.models.studies.cases.hudi import Hudi
from epochgate.models.studies.cases.iceberg import IcebergConnect
from epochgate.models.studies.cases.paimon import OneMessage, Paimon
from epochgate.models.studies.cases.risingwave import RisingWave
from epochgate.models.studies.cases.sinkv2 import SinkV2
from epochgate.models.studies.catalogue import CASES
from epochgate.reports.sequence import sequence_diagram

PAGES = Path(__file__).parents[2] / "docs" / "cases"
INDEX = (PAGES / "README.md").read_text(encoding="utf-8")
TEXTS = {path.stem: path.read_text(encoding="utf-8") for path in PAGES.glob("[a-z]*.md")}
DIAGRAM = re.compile(r"<!-- ([\w.]+) -->\n```mermaid\n(.*?)```\n", re.DOTALL)
FOUND: dict[str, Result] = {}
MENDED = [name for name in CASES if name not in BROKEN]
FAILING = [name for name in CASES if name in BROKEN]


def found(name: str) -> Result:
    """Return what a check of a case finds; searched once."""
    if name not in FOUND:
        FOUND[name] = check(CASES[name], engine="python")
    return FOUND[name]


@pytest.mark.parametrize("name", MENDED)
def test_a_mended_case_holds_on_every_interleaving(name: str) -> None:
    assert found(name).verdict is Verdict.PASS


@pytest.mark.parametrize(
    "system",
    [
        Paimon(N=3),
        OneMessage(N=3),
        IcebergConnect(E=4, F=3),
        Hudi(jobs=3),
        RisingWave(K=5, F=4),
        RisingWave(N=3, F=1),
        SinkV2(K=6),
    ],
    ids=lambda system: f"{type(system).__name__}-{sum(system.constants.values())}",
)
def test_a_mended_case_holds_within_larger_bounds(system: ClosedSystem) -> None:
    assert check(system, engine="python").verdict is Verdict.PASS


CHANGED = {
    "paimon.two_messages": ("writer", {"restore"}),
    "iceberg.last_offset": ("coordinator", {"data_written"}),
    "hudi.two_coordinators": ("coordinator", {"commit"}),
    "risingwave.empty_pre_commit": ("coordinator", {"pre_commit_nothing"}),
    "sinkv2.early_end": ("committer", {"end_input", "notify_checkpoint_complete"}),
}
"""Where rows differ: in one row or the guards of one, but for an action that moves to another."""


@pytest.mark.parametrize("name", CHANGED)
def test_broken_and_mended_differ_in_the_rows_that_the_page_names(name: str) -> None:
    machine, triggers = CHANGED[name]
    mended, broken = CASES[name.partition(".")[0]].MACHINES, CASES[name].MACHINES
    assert {other for other in mended if mended[other] is not broken[other]} == {machine}
    changed = set(mended[machine].ROWS) ^ set(broken[machine].ROWS)
    assert {row.trigger for row in changed} == triggers


def test_restarts_do_not_help_a_sink_that_is_stuck() -> None:
    counterexample = found("risingwave.empty_pre_commit").counterexample
    assert counterexample is not None
    assert counterexample.cycle == 9
    repeated = [step.trigger for step in counterexample.steps[counterexample.cycle :]]
    assert repeated == ["request", "request", "restart"]


@pytest.mark.parametrize("page", TEXTS)
def test_the_diagrams_of_a_page_are_what_the_checker_finds(page: str) -> None:
    shown = dict(DIAGRAM.findall(TEXTS[page]))
    assert [name for name in FAILING if name.partition(".")[0] == page] == list(shown)
    for name, diagram in shown.items():
        assert diagram == sequence_diagram(name, found(name)), (
            f"`epochgate check {name} --mermaid FILE` writes what belongs there"
        )


@pytest.mark.parametrize("name", FAILING)
def test_a_page_says_how_many_steps_its_counterexample_has(name: str) -> None:
    assert f"`{name}` {BROKEN[name].steps}" in INDEX
    assert f"{BROKEN[name].steps} steps" in TEXTS[name.partition(".")[0]]


def test_the_index_names_every_case_its_page_and_its_size() -> None:
    assert {f"{page}.md" for page in TEXTS} == set(re.findall(r"\]\((\w+\.md)\)", INDEX))
    said = dict(re.findall(r"`([\w.]+)` (\d+)", INDEX))
    assert said.keys() == CASES.keys()
    assert {name: int(said[name]) for name in MENDED} == {
        name: found(name).states for name in MENDED
    }


def test_the_rules_that_take_the_step_away_are_rules_of_the_protocol() -> None:
    protocol = (PAGES.parent / "protocol.md").read_text(encoding="utf-8")
    known = set(re.findall(r"(?m)^- \*\*([A-Z]\d+)\.\*\*", protocol))
    rows = re.findall(r"(?m)^\| .*\((\w+)\.md\).*\| ([A-Z\d, ]+) \|$", INDEX)
    assert {page for page, _ in rows} == TEXTS.keys()
    for page, rules in rows:
        assert set(rules.split(", ")) <= known
        assert [rule for rule in rules.split(", ") if rule not in TEXTS[page]] == []


def test_a_case_is_checked_by_its_name(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", "iceberg", "--engine", "python"]) == 0
    assert main(["check", "iceberg.last_offset", "--engine", "python"]) == 1
    assert "not always: a data file is in the table once" in capsys.readouterr().out
