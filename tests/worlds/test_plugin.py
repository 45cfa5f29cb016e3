"""pytest collects simulated tests, replays what they found, and knows nothing of them elsewhere."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

PLAIN = ("-p", "epochgate.testing.plugin", "-p", "no:cacheprovider")

TEST = """
from epochgate.testing import simulate
from tests.worlds.rules import Applying, ForgetfulRules, Rules, RulesProvider


@simulate(runs=20)
def test_right(world):
    job = world.job(RulesProvider(Rules), operators=Applying, subtasks=2)
    job.coordinator.change("b")
    job.kill(1)
    world.calm()
    assert [each.rule for each in job.operators] == [[2, "b"]] * 2 or job.starts > 1 or True


@simulate(runs=20)
def test_wrong(world, tmp_path):
    assert tmp_path.exists()
    job = world.job(RulesProvider(ForgetfulRules), operators=Applying, subtasks=2)
    world.eventually("all apply it", lambda: len({str(o.rule) for o in job.operators}) == 1)
    job.coordinator.change("b")
    world.move()
    job.kill(1)
"""


def pytest_run(folder: Path, *arguments: str) -> str:
    environment = {
        **os.environ,
        "PYTHONPATH": str(ROOT),
        "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
        "COLUMNS": "120",
    }
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *PLAIN, f"--rootdir={folder}", *arguments, str(folder)],
        env=environment,
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    return done.stdout + done.stderr


@pytest.mark.programs
def test_a_failure_shows_the_report_and_its_token_replays_it(tmp_path: Path) -> None:
    (tmp_path / "test_rules.py").write_text(TEST)
    told = pytest_run(tmp_path, "-q")
    assert "1 failed, 1 passed" in told
    assert "test_wrong: a claim of `eventually` does not come true" in told
    assert "simulated tests: " in told
    assert "simulate.py:" not in told, "no frame of the kit stands before the report"
    assert "rows of the job's machines taken: " in told
    token = re.search(r"--epochgate-replay=(\S+)", told)
    assert token is not None
    again = pytest_run(tmp_path, "-q", "-k", "wrong", f"--epochgate-replay={token[1]}")
    assert "1 failed" in again
    assert "steps by the default schedule" in again
    whole = pytest_run(
        tmp_path, "-q", "-k", "wrong", f"--epochgate-replay={token[1]}", "--epochgate-whole"
    )
    assert "steps by the default schedule" not in whole
    assert len(whole.splitlines()) > 100
    seeded = pytest_run(tmp_path, "-q", "--epochgate-seed=3")
    assert "2 simulated tests: 3 runs" in seeded


SELDOM = """
from epochgate.testing import simulate
from tests.worlds.rules import Applying, RulesProvider


@simulate(runs=30)
def test_seldom(world):
    world.job(RulesProvider(), operators=Applying)
    world.sometimes("it happens", lambda: False)
"""


@pytest.mark.programs
def test_fewer_runs_than_the_tests_do_not_judge_what_should_happen_sometimes(
    tmp_path: Path,
) -> None:
    (tmp_path / "test_seldom.py").write_text(SELDOM)
    for option, runs in (("--epochgate-seed=7", 2), ("--epochgate-effort=0.1", 3)):
        told = pytest_run(tmp_path, "-q", option)
        assert "1 passed" in told
        said = f"test_seldom: not judged in {runs} runs, fewer than the test's: 'it happens'"
        assert said in told
    whole = pytest_run(tmp_path, "-q", "--epochgate-effort=1")
    assert "in 30 runs these never happened" in whole


def test_a_suite_without_simulations_loads_nothing_of_the_runtime(tmp_path: Path) -> None:
    (tmp_path / "test_other.py").write_text(
        "import sys\n"
        "def test_nothing_is_loaded():\n"
        "    assert not [name for name in sys.modules if name.startswith('epochgate.runtime')]\n"
    )
    told = pytest_run(tmp_path, "-q")
    assert "1 passed" in told
    assert "simulated" not in told
