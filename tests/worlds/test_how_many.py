"""The guide says by which run bugs of users are found, as it is measured here."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

import pytest

from epochgate.testing import World, read_once, simulate
from tests.worlds.counting import CountingOn, CountingTooEarly, sending
from tests.worlds.limiter import Forgetting, limited
from tests.worlds.rules import StrictRules
from tests.worlds.test_guide import GUIDE, TICKETS, shown
from tests.worlds.test_simulate import changed_twice
from tests.worlds.test_suites import Forgetting as Dropping, Numbers

DOCS = Path(__file__).parents[2] / "docs"
Body = Callable[[World], Any]
SEARCHES, RUNS_MAX = 9, 1000


def tickets(*changed: str) -> Body:
    before, after = changed
    names = shown(TICKETS, changed=(before, after))
    body: Body = names["test_each_ticket_is_printed_once"].simulation.body
    return body


BUGS: dict[str, Body] = {
    "an operator deletes more than it has handed over (tickets)": tickets(
        "del self.printed[: self.handed_over[checkpoint_id]]", "self.printed.clear()"
    ),
    "a coordinator takes for granted that an attempt that fails was ready": changed_twice(
        StrictRules
    ),
    "a source counts a record as read before it has handed it over": lambda world: read_once(
        world, Numbers(8, behind=1), range(8)
    ),
    "an operator forgets at a notice what came after the barrier (rate limiter)": limited(
        Forgetting
    ),
    "a coordinator does not take back what it told a task after the checkpoint": sending(
        CountingOn
    ),
    "a coordinator never counts its checkpoints (tickets)": tickets(
        "self.epoch = checkpoint_id    #", "pass    #"
    ),
    "an enumerator drops the splits that come back": lambda world: read_once(
        world, Numbers(8, Dropping), range(8)
    ),
    "a snapshot is older than its completion": sending(CountingTooEarly),
}


def found_by_run(body: Body, first_seed: int) -> int:
    search = simulate(body, runs=RUNS_MAX).simulation.search()
    found = search.scan(range(first_seed, first_seed + RUNS_MAX - 1))
    assert found.first is not None
    return found.runs


@pytest.mark.extended
@pytest.mark.parametrize("bug", BUGS)
def test_a_bug_is_found_by_the_runs_that_the_guide_says(bug: str) -> None:
    runs = [found_by_run(BUGS[bug], number * RUNS_MAX) for number in range(SEARCHES)]
    assert f"| {bug} | {median(runs)} | {max(runs)} |" in GUIDE


def test_the_guide_has_a_line_for_each_bug_and_no_other() -> None:
    section = GUIDE.partition("## How many runs\n")[2].partition("\n## ")[0]
    assert re.findall(r"^\| (an? .*?) \| \d+ \| \d+ \|$", section, re.MULTILINE) == [*BUGS]


def test_the_guide_counts_what_the_fuzzer_finds_of_the_zoo() -> None:
    found = json.loads((Path(__file__).parents[1] / "zoo" / "found.json").read_text("utf-8"))
    tried = re.search(r"(\d+) run in the production runtime", (DOCS / "zoo.md").read_text("utf-8"))
    assert tried is not None
    runs = [each["fuzzed"]["run"] for each in found.values() if each.get("fuzzed")]
    by_50, by_100 = (sum(run <= most for run in runs) for most in (50, 100))
    assert (
        f"Of the {tried[1]} public bugs that [the zoo](zoo.md) plants in a running job, 400 runs "
        f"find {len(runs)}: {by_50} of them by run 50, {by_100} by run 100, one by run {max(runs)}."
    ) in GUIDE
