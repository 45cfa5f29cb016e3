"""The rules of the protocol: each names the rows that hold it, or what else does, and the tests
that show it; all of that is there.
"""

from __future__ import annotations

import inspect
import re
import subprocess

import pytest

from epochgate.fsm import Machine
from epochgate.fsm.closed import ClosedSystem
from epochgate.models.closed.catalogue import SYSTEMS
from tests.setup.tables import (
    NAME,
    ROOT,
    TEST,
    Line,
    functions,
    lines_of,
    missing_tests,
    owner_of,
    resolves,
)

PAGE = ROOT / "docs" / "protocol.md"
LINES = lines_of(PAGE)
RULES = [line for line in LINES if line.header == ("rule", "what holds", "held by", "shown by")]
INVARIANTS = [
    line for line in LINES if line.header == ("invariant", "what holds", "claimed by", "shown by")
]
NO_ROW = "no row: "


def rows_named(line: Line) -> list[str]:
    """The names of a rule that are triggers of machines."""
    found = []
    for name in NAME.findall(line.cells[2]):
        owner, member = owner_of(name, line.modules), name.rpartition(".")[2]
        if inspect.isclass(owner) and issubclass(owner, Machine) and member in owner.triggers():
            found.append(name)
    return found


def test_the_page_is_tables_of_rules_and_of_invariants() -> None:
    assert len(RULES) > 70
    assert len(INVARIANTS) == 11
    assert len(RULES) + len(INVARIANTS) == len(LINES)
    assert not [str(line) for line in LINES if not all(re.search(r"\w", c) for c in line.cells)]
    assert not [str(line) for line in LINES if len(line.cells) != 4]


@pytest.mark.parametrize("line", RULES, ids=lambda line: line.cells[0])
def test_each_rule_names_the_rows_that_hold_it_or_says_that_there_are_none(line: Line) -> None:
    names = NAME.findall(line.cells[2])
    assert names
    assert not [name for name in names if not resolves(name, line.modules)]
    assert bool(rows_named(line)) != line.cells[2].startswith(NO_ROW)
    rows, _, others = line.cells[2].removeprefix(NO_ROW).partition("; ")
    if not line.cells[2].startswith(NO_ROW):
        assert rows_named(line) == NAME.findall(rows), "rows come before the semicolon"
        assert others == "" or NAME.search(others)


@pytest.mark.parametrize("line", LINES, ids=lambda line: line.cells[0])
def test_each_rule_and_each_invariant_is_shown_by_tests_that_are_there(line: Line) -> None:
    assert TEST.search(line.cells[3])
    assert missing_tests(line.cells[3]) == []


def test_what_the_text_between_the_tables_names_is_there_too() -> None:
    tables = {line.number for line in LINES}
    text = [t for n, t in enumerate(PAGE.read_text("utf-8").splitlines(), 1) if n not in tables]
    named = TEST.findall("\n".join(text))
    assert named
    assert not [file for file, _ in named if not (ROOT / file).is_file()]
    assert not [f"{file}::{name}" for file, name in named if name not in {"", *functions(file)}]


def claims(system: type[ClosedSystem]) -> str:
    """Return what a closed system claims, and its surroundings with it."""
    machines = [machine for kind in system.MACHINES.values() for machine in kind.__mro__]
    asserting = {inspect.getmodule(machine) for machine in machines} - {inspect.getmodule(Machine)}
    sources = [
        inspect.getsource(module) for module in asserting if module and hasattr(module, "__file__")
    ]
    return "\n".join([*(claim.claim for claim in system.properties()), *sources])


@pytest.mark.parametrize("line", INVARIANTS, ids=lambda line: line.cells[0])
def test_each_invariant_is_claimed_by_the_systems_that_it_names(line: Line) -> None:
    systems = NAME.findall(line.cells[2])
    assert systems
    for name in systems:
        assert f"{line.cells[0]}: " in claims(SYSTEMS[name])


def test_every_rule_that_a_program_cites_stands_on_the_page() -> None:
    listed = subprocess.run(
        ["git", "grep", "-hoE", r"\brules? [A-Z][0-9]+(( to |, | and )[A-Z][0-9]+)*", "--", "*.py"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )
    if listed.returncode > 1:
        pytest.skip("the programs are those of a git checkout, and this is none")
    cited = set(re.findall(r"\b[A-Z][0-9]+\b", listed.stdout))
    assert len(cited) > 5
    assert not cited - {line.cells[0] for line in LINES}
