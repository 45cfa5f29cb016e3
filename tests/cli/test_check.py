"""`epochgate check`: what it prints, and its exit codes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from epochgate.cli import main
from epochgate.commands.check import systems
from epochgate.models.catalogue import SYSTEMS
from epochgate.models.studies.broken.catalogue import BROKEN
from epochgate.models.studies.catalogue import STUDIES


def test_a_system_that_holds_is_reported_with_its_counts(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["check", "reference", "--set", "N=1", "--set", "C=1", "--set", "K=1"]) == 0
    shown = capsys.readouterr().out
    assert "reference N=1 C=1 K=1 E=1 F=1: PASS" in shown
    assert "87 states, 184 transitions" in shown
    assert "19 of 19 rows taken" in shown


def test_a_system_of_ones_own_that_fails_shows_the_way(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    path = tmp_path / "result.json"
    arguments = ["check", "tests.checker.broken:NoValve", "--set", "C=1", "--json", str(path)]
    assert main(arguments) == 1
    shown = capsys.readouterr().out
    assert "FAIL" in shown
    assert "9 steps from the initial state" in shown
    found = json.loads(path.read_text())
    assert (found["verdict"], found["system"], len(found["counterexample"]["steps"])) == (
        "FAIL",
        "NoValve",
        9,
    )


def test_a_variant_that_must_fail_is_named_as_in_the_catalogue(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["check", "planning.nothing_written"]) == 1
    shown = capsys.readouterr().out
    assert BROKEN["planning.nothing_written"].says in shown
    assert main(["check", "planning.nothing"]) == 2
    assert "models/studies/broken/catalogue.py" in capsys.readouterr().err


def test_json_on_stdout_is_nothing_else(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", "reference", "--set", "N=1", "--engine", "python", "--json", "-"]) == 0
    captured = capsys.readouterr()
    assert json.loads(captured.out)["states"] == 1_787
    assert "PASS" in captured.err


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["tests.checker.small_systems:NeverThere"], 3),
        (["reference", "--max-states", "100", "--engine", "python"], 4),
        (["reference", "--simulate", "500"], 4),
        (["reference", "--max-memory", "1M"], 4),
        (["reference", "--set", "N"], 2),
        (["reference", "--max-memory", "much"], 2),
        (["nothing"], 2),
        (["tests.checker.nothing:There"], 2),
        (["tests.checker.broken:Nothing"], 2),
        (["tests.checker.small_systems:FirstComes", "--symmetry"], 2),
        (["reference", "--engine", "abacus"], 2),
    ],
)
def test_each_outcome_has_an_exit_code_of_its_own(arguments: list[str], code: int) -> None:
    assert main(["check", *arguments]) == code


def test_the_list_shows_what_can_be_set(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", "--list"]) == 0
    shown = capsys.readouterr().out
    assert all(name in shown for name in (*SYSTEMS, *STUDIES))
    assert "N=2 C=2 K=2 E=1 F=1" in shown
    assert "  F                   failures that may happen" in shown
    assert "wire=" not in shown
    assert max(map(len, shown.splitlines())) <= 100


def test_without_names_the_systems_that_run_are_checked_and_no_study() -> None:
    assert systems([]) == SYSTEMS
    assert not SYSTEMS.keys() & STUDIES.keys()


def test_without_the_studies_the_list_and_the_choice_are_shorter(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    assert main(["check", "--list"]) == 0
    assert "reference" not in capsys.readouterr().out
    assert main(["check", "reference"]) == 2
    assert "choose from commit, " in capsys.readouterr().err
