"""Mutants that nothing finds but a test of the runtime that is named here.

Whoever breaks the machine in these ways sees exactly this test fail: it is run in a process of its
own, as it stands and then with the mutant planted.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.mutation.mutants import Mutant
from tests.mutation.seen import Seen

ROOT = Path(__file__).resolve().parents[2]
SECONDS_MAX = 120
NOTICES = "tests/runtime/test_job.py::test_an_operator_that_raises_in_a_notice_costs_one_attempt"
WORKER = "tests/runtime/test_worker.py::test_"

KILLED_BY: dict[str, tuple[str, ...]] = {
    f"{NOTICES}[operator aborted]": ("task: aborted from running: without call_aborted",),
    f"{WORKER}an_event_that_comes_once_more_is_handled_once": (
        "task: event from running when not is_next and is_old: refused",
        "task: event from running when not is_next and not is_old: regardless of is_old",
    ),
    f"{WORKER}an_event_after_one_that_is_missing_ends_the_attempt": (
        "task: event from running when not is_next and not is_old: without call_gap",
    ),
    f"{WORKER}a_process_that_has_nothing_to_do_leaves_when_it_is_told": (
        "task: finish from created: ignored",
        "task: finish from created: without call_finish",
    ),
}
"""Test -> the mutants with which it fails."""


def found_by_name(mutant: Mutant) -> Seen | None:
    """Run the test that is named for a mutant; None if there is none, or if it does not fail."""
    for test, names in KILLED_BY.items():
        if mutant.name in names and (failure := failure_of(test, mutant)):
            return Seen("test", f"{test}: {failure}")
    return None


def failure_of(test: str, mutant: Mutant) -> str:
    """How a test that passes as it stands fails with the mutant; empty if it does not."""
    with TemporaryDirectory() as folder:
        out = Path(folder) / "failed.json"
        plugin = ["-p", "tests.mutation.planted", "-p", "no:cacheprovider"]
        planting = ["--mutant", mutant.name, "--mutants-out", str(out)]
        done = subprocess.run(
            [sys.executable, "-m", "pytest", "-q", *plugin, *planting, test],
            cwd=ROOT,
            env={name: value for name, value in os.environ.items() if name[:7] != "PYTEST_"},
            capture_output=True,
            text=True,
            timeout=SECONDS_MAX,
            check=False,
        )
        if done.returncode != 0:
            raise RuntimeError(f"{test} fails as it stands:\n{done.stdout[-2000:]}{done.stderr}")
        failed: dict[str, dict[str, str]] = json.loads(out.read_text(encoding="utf-8"))
        return failed[mutant.name].get(test, "")
