"""The rules of the protocol: of each, docs/rules.toml names the rows that hold it, or what else
does, and the tests that show it; all of that is there.
"""

from __future__ import annotations

import inspect
import re
import subprocess
import tomllib
from typing import Any, Final

import pytest

from epochgate.fsm import Machine
from epochgate.fsm.closed import ClosedSystem
from epochgate.models.closed.catalogue import SYSTEMS
from epochgate.models.studies.broken.catalogue import BROKEN
from tests.setup.tables import ROOT, TEST, functions, missing_tests, owner_of, resolves

PAGE: Final = (ROOT / "docs" / "protocol.md").read_text(encoding="utf-8")
STATED: Final = dict(re.findall(r"^- \*\*([A-Z][0-9]+)\.\*\* (.+)$", PAGE, re.MULTILINE))
LIST: Final[dict[str, Any]] = tomllib.loads(
    (ROOT / "docs" / "rules.toml").read_text(encoding="utf-8")
)
MODULES: Final[tuple[str, ...]] = tuple(LIST.pop("modules"))
INVARIANTS: Final = [rule for rule in LIST if rule.startswith("I")]
RULES: Final = [rule for rule in LIST if rule not in INVARIANTS]


def is_trigger(name: str) -> bool:
    """Return whether a name is that of a machine's trigger."""
    owner, member = owner_of(name, MODULES), name.rpartition(".")[2]
    return inspect.isclass(owner) and issubclass(owner, Machine) and member in owner.triggers()


def test_the_page_states_each_rule_once_and_the_list_has_them_in_the_same_order() -> None:
    assert list(STATED) == list(LIST)
    assert len(RULES) > 70
    assert len(INVARIANTS) == 12
    assert len(re.findall(r"^- \*\*[A-Z][0-9]+\.", PAGE, re.MULTILINE)) == len(STATED)


@pytest.mark.parametrize("rule", RULES)
def test_each_rule_names_the_rows_that_hold_it_or_what_else_does(rule: str) -> None:
    rows, code = LIST[rule].get("rows", []), LIST[rule].get("code", [])
    assert [*rows, *code]
    assert [name for name in rows if not is_trigger(name)] == []
    assert [name for name in code if is_trigger(name) or not resolves(name, MODULES)] == []
    assert set(LIST[rule]) <= {"rows", "code", "shown_by", "variants"}


@pytest.mark.parametrize("rule", LIST)
def test_each_rule_and_each_invariant_is_shown_by_tests_that_are_there(rule: str) -> None:
    assert LIST[rule]["shown_by"]
    assert missing_tests(" ".join(f"`{test}`" for test in LIST[rule]["shown_by"])) == []
    assert [name for name in LIST[rule].get("variants", []) if name not in BROKEN] == []


def test_what_the_page_names_is_there_too() -> None:
    named = TEST.findall(PAGE)
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


@pytest.mark.parametrize("rule", INVARIANTS)
def test_each_invariant_is_claimed_by_the_systems_that_it_names(rule: str) -> None:
    assert set(LIST[rule]) <= {"claimed_by", "shown_by"}
    assert LIST[rule]["claimed_by"]
    for name in LIST[rule]["claimed_by"]:
        assert f"{rule}: " in claims(SYSTEMS[name])


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
    assert not cited - set(STATED)
