"""What the guide on tests shows of simulated tests runs, and fails as it says."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from epochgate.runtime.testing.worlds.faults import FAULTS
from epochgate.testing import SimulationFailed
from tests.worlds.rules import Applying, ForgetfulRules, RulesProvider
from tests.worlds.test_suites import Numbers

GUIDE = (Path(__file__).parents[2] / "docs" / "testing.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"```python\n(.*?)```", GUIDE, re.DOTALL)


def shown(words: str, **known: Any) -> dict[str, Any]:
    """The names of the block that has these words, with what a reader has beside it."""
    [block] = [each for each in BLOCKS if words in each]
    names: dict[str, Any] = {**known, "__name__": "shown"}
    exec(compile(block, "docs/testing.md", "exec"), names)  # noqa: S102  # our own page
    return names


def test_the_ten_lines_find_what_the_guide_says() -> None:
    right = shown("def test_rules(", RulesProvider=RulesProvider, Applying=Applying)
    right["test_rules"]()
    wrong = shown(
        "def test_rules(", RulesProvider=lambda: RulesProvider(ForgetfulRules), Applying=Applying
    )
    with pytest.raises(SimulationFailed) as failed:
        wrong["test_rules"]()
    told = str(failed.value)
    for line in ("3:21 process 2 dies (task 1)", "4:11                     attempt[1]: restart"):
        assert line in told
        assert line in GUIDE


def test_the_suites_of_the_guide_pass_for_what_is_right() -> None:
    known = {"RulesProvider": RulesProvider, "Applying": Applying, "Numbers": Numbers}
    for test in ("test_rules_agree", "test_numbers_are_read_once", "test_every_number_is_doubled"):
        names = shown(f"def {test}", **known)
        [simulated] = [value for name, value in names.items() if name.startswith(test)]
        assert simulated.simulation.search().at_random(40, 0).failure is None


def test_the_guide_names_every_fault() -> None:
    for name, fault in FAULTS.items():
        assert f"| `{name}` | {fault.about} |" in GUIDE
