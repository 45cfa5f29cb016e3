"""`epochgate check`: what it prints, and its exit codes."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from epochgate.cli import main
from epochgate.commands.check import found, systems
from epochgate.models.closed.catalogue import SYSTEMS, Catalogue
from epochgate.models.studies.broken.catalogue import BROKEN
from epochgate.models.studies.catalogue import CASES, STUDIES


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


def test_the_list_names_each_system_with_its_summary(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", "--list"]) == 0
    shown = capsys.readouterr().out
    assert all(name in shown for name in (*SYSTEMS, *STUDIES))
    assert max(map(len, shown.splitlines())) <= 100


@pytest.mark.parametrize("listed", [SYSTEMS, STUDIES, CASES], ids=["systems", "studies", "cases"])
def test_a_summary_is_the_first_line_of_the_docstring(listed: Catalogue) -> None:
    docstrings = {name: (system.__doc__ or "").splitlines()[0] for name, system in listed.items()}
    assert listed.summaries == docstrings


def test_the_list_shows_what_can_be_set_of_a_system(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", "--list", "reference", "commit", "valve.none"]) == 0
    shown = capsys.readouterr().out
    assert "  F                      1  failures that may happen" in shown
    assert "wire=" not in shown
    assert max(map(len, shown.splitlines())) <= 100


@pytest.mark.parametrize("listed", [SYSTEMS, STUDIES, CASES], ids=["systems", "studies", "cases"])
def test_each_constant_that_can_be_set_has_a_meaning(listed: Catalogue) -> None:
    for name, system in listed.items():
        meanings = found(name)[1]
        assert {*system.CONSTANTS} - {*system.DERIVED} <= {*meanings}, name


OWN = """
from epochgate.fsm import Machine, Row, Trigger, machines
from epochgate.fsm.closed import ClosedSystem, Step

class Door(Machine):
    STATES, INITIAL, TERMINAL = ("shut", "open"), "shut", ("open",)
    enter: Trigger
    ROWS = (Row("enter", "shut", "open", None, None, "it is free"),)

class House(ClosedSystem):
    STEPS = (Step("door", "enter"),)
    door: Door = machines(Door)
"""
DECLARED = """
import sys
from epochgate.cli import main
code = main(sys.argv[1:])
modules = [name for name in sys.modules if name.startswith("epochgate.models.")]
print(code, *modules)
"""


@pytest.mark.parametrize("arguments", [["own:House"], ["--list"]])
def test_no_system_is_declared_that_is_not_named(arguments: list[str], tmp_path: Path) -> None:
    (tmp_path / "own.py").write_text(OWN)
    command = [sys.executable, "-c", DECLARED, "check", *arguments]
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=60, check=True, cwd=tmp_path
    )
    code, *modules = done.stdout.splitlines()[-1].split()
    assert code == "0"
    declared = {name.removeprefix("epochgate.models.") for name in modules}
    assert declared <= {
        *("closed", "closed.catalogue", "closed.untaken"),
        *("studies", "studies.catalogue"),
    }


def test_without_names_the_systems_that_run_are_checked_and_no_study() -> None:
    assert systems([]) == SYSTEMS
    assert not SYSTEMS.keys() & STUDIES.keys()
