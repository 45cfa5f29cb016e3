"""The zoo of bugs: each named finder still finds each bug, and the page says what was measured.

By default the checker searches again, and the schedules that were found are run again; what
no finder sees, and that nothing is found earlier, `make check-deep` shows.
"""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import pytest

from epochgate.testing import simulate
from tests.zoo import finding
from tests.zoo.bugs import BUGS
from tests.zoo.page import PAGE, found, is_found, page

KEPT = found()
PLANTED = [name for name, bug in BUGS.items() if bug.plant is not None]
RUNS = [name for name in PLANTED if KEPT[name]["fuzzed"]]
SCHEDULES = [name for name in PLANTED if KEPT[name]["explored"]["token"]]
BODIES: dict[str, Any] = {getattr(bug.body, "__name__", ""): bug.body for bug in BUGS.values()}
pytest.importorskip("hypothesis")


def without_seconds(one: Any) -> Any:
    """Return what is the same each time."""
    values = one if one is None or isinstance(one, dict) else asdict(one)
    return values and {name: value for name, value in values.items() if name != "seconds"}


def test_there_are_at_least_25_public_bugs_and_all_were_measured() -> None:
    assert list(KEPT) == list(BUGS)
    public = [name for name, bug in BUGS.items() if not bug.public.startswith("hazard")]
    assert len(public) >= 25
    assert sum(is_found(KEPT[name]) for name in public) >= 40


@pytest.mark.parametrize("name", BUGS)
def test_a_bug_is_found_or_a_reason_says_why_it_is_not(name: str) -> None:
    kept, bug = KEPT[name], BUGS[name]
    missed = bug.plant is not None and not (
        kept["checked"] or kept["fuzzed"] or kept["explored"]["token"]
    )
    assert bool(bug.note) is missed, "a reason is given for what no finder sees, and for no other"


@pytest.mark.mutants
@pytest.mark.parametrize("name", [name for name in BUGS if KEPT[name]["checked"]])
def test_the_checker_finds_it_in_the_machines_that_run(name: str) -> None:
    assert without_seconds(finding.checked(BUGS[name])) == without_seconds(KEPT[name]["checked"])


@pytest.mark.mutants
@pytest.mark.parametrize("name", RUNS)
def test_a_run_of_the_ci_profile_finds_it(name: str) -> None:
    kept = KEPT[name]["fuzzed"]
    assert finding.fuzzed_again(BUGS[name], kept["seed"]) == kept["says"]
    assert kept["run"] <= finding.CI_RUNS


@pytest.mark.mutants
@pytest.mark.parametrize("name", SCHEDULES)
def test_a_schedule_of_the_systematic_mode_finds_it(name: str) -> None:
    kept = KEPT[name]["explored"]
    assert finding.explored_again(BUGS[name], kept["token"]) == kept["says"]


def test_the_page_says_what_was_measured() -> None:
    text = PAGE.read_text(encoding="utf-8")
    assert page(text, KEPT) == text, "run: python -m tests.zoo.page --table"


@pytest.mark.deep
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("name", BUGS)
def test_everything_is_found_where_the_page_says_and_nowhere_else(name: str) -> None:
    again = finding.measured(BUGS[name])
    assert {what: without_seconds(one) for what, one in again.items()} == {
        what: without_seconds(one) for what, one in KEPT[name].items()
    }


@pytest.mark.deep
@pytest.mark.timeout(900)
@pytest.mark.parametrize("body", BODIES.values(), ids=BODIES)
def test_the_tests_of_the_zoo_pass_without_a_bug(body: Any) -> None:
    held = simulate(body).simulation.search().scan(range(finding.CI_RUNS - 1))
    assert held.first is None, finding.told(held.first)
