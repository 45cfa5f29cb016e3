"""The simulated tests that the guide on tests shows run, and fail as it says."""

from __future__ import annotations

import linecache
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from epochgate.runtime.testing.worlds.faults import FAULTS
from epochgate.runtime.testing.worlds.feedback import feedback
from epochgate.testing import SimulationFailed
from tests.worlds.test_suites import Numbers

GUIDE = (Path(__file__).parents[2] / "docs" / "testing.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"```python\n(.*?)```", GUIDE, re.DOTALL)


def shown(
    words: str, *, known: Mapping[str, Any] | None = None, changed: tuple[str, str] = ("", "")
) -> dict[str, Any]:
    """The names of the block that has these words, with what a reader has beside it; `changed`: a
    part of it and what stands there instead.
    """
    [block] = [each for each in BLOCKS if words in each]
    assert changed[0] in block
    names: dict[str, Any] = {**(known or {}), "__name__": "shown"}
    text, file = block.replace(*changed, 1), "tests/test_rules.py"
    linecache.cache[file] = len(text), None, text.splitlines(keepends=True), file
    code = compile(text, file, "exec", dont_inherit=True)
    exec(code, names)  # noqa: S102  # our own page
    return names


FIRST = "def test_rules("
RESENT = """        self.gateways[subtask] = gateway
        gateway.send_event(self.rule)
"""


def test_the_first_example_is_complete_and_passes() -> None:
    shown(FIRST)["test_rules"]()


def test_the_first_example_without_its_line_fails_with_the_report_of_the_guide() -> None:
    wrong = shown(FIRST, changed=(RESENT, RESENT.splitlines(keepends=True)[0]))
    with pytest.raises(SimulationFailed) as failed:
        wrong["test_rules"]()
    assert f"```text\n{failed.value}\n```" in GUIDE


def test_the_first_example_says_what_its_runs_were_too_few_for() -> None:
    found = shown(FIRST)["test_rules"].simulation.search().at_random(300, 0)
    [line] = [one for one in feedback({"test_rules": found}, is_long=False) if "too few" in one]
    assert f"```text\n{line}\n```" in GUIDE


TICKETS = "def test_each_ticket_is_printed_once("


def test_the_coordinator_that_takes_back_what_it_gave_passes() -> None:
    shown(TICKETS)["test_each_ticket_is_printed_once"]()


@pytest.mark.parametrize(
    "changed",
    [
        ("self.free += [one[0] for one in self.given if is_lost(*one)]", "pass"),
        ("epoch >= checkpoint_id\n", "epoch > checkpoint_id\n"),
        ("self.epoch = checkpoint_id    #", "pass    #"),
        ("del self.printed[: self.handed_over[checkpoint_id]]", "self.printed.clear()"),
    ],
    ids=["taken back", "given since", "the epoch", "handed over again"],
)
def test_without_one_of_its_lines_a_ticket_is_lost(changed: tuple[str, str]) -> None:
    wrong = shown(TICKETS, changed=changed)
    with pytest.raises(SimulationFailed, match="an assertion of the test failed"):
        wrong["test_each_ticket_is_printed_once"]()


def test_the_suites_of_the_guide_pass_for_what_is_right() -> None:
    known = {**shown(FIRST), "Numbers": Numbers}
    for test in ("test_rules_agree", "test_numbers_are_read_once", "test_every_number_is_doubled"):
        names = shown(f"def {test}", known=known)
        [simulated] = [value for name, value in names.items() if name.startswith(test)]
        assert simulated.simulation.search().at_random(40, 0).failure is None


def test_the_guide_names_every_fault() -> None:
    for name, fault in FAULTS.items():
        assert f"| `{name}` | {fault.about} |" in GUIDE
