"""The short sinks in docs/sinks.md, as a reader saves them, write each row once, whatever fails."""

from __future__ import annotations

import importlib
import json
import os
import random
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from epochgate.cli import main
from epochgate.pipeline import FunctionSource, Pipeline
from epochgate.runtime import Sink
from epochgate.runtime.testing.simulation import SimulatedJob
from epochgate.spark.java import ensure_java
from tests.spark.running import WAIT_S
from tests.spark.test_examples import kill_workers

GUIDE = Path(__file__).parents[3] / "docs" / "sinks.md"
SINKS = {
    "lines": "Lines",
    "lines_in_tasks": "LinesInTasks",
    "lines_compacted": "LinesCompacted",
    "lines_combined": "LinesCombined",
}
STEPS = {
    "lines": "when a checkpoint is completed: the committer on the driver",
    "lines_in_tasks": "on input: a committer in each task -> the committer on the driver",
    "lines_compacted": "on input: 1 operator on the driver -> a committer in each task -> "
    "1 operator on the driver -> the committer on the driver",
    "lines_combined": "on input: a committer in each task -> the combining committer on the driver",
}
"""As `epochgate status` shows them."""
ROWS = 4000


def programs() -> dict[str, str]:
    """The programs of the page, by the name of the file that their first line says."""
    blocks = re.findall(r"```python\n# (\w+)\.py\n(.*?)```", GUIDE.read_text(), re.DOTALL)
    return dict(blocks)


@pytest.fixture
def saved(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder with all programs of the page; what is imported from it is forgotten afterwards."""
    for name, code in programs().items():
        (tmp_path / f"{name}.py").write_text(code, encoding="utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))
    yield tmp_path
    for name in SINKS:
        sys.modules.pop(name, None)


def sink_of(module: str, target: Path) -> Sink:
    sink: Sink = getattr(importlib.import_module(module), SINKS[module])(str(target))
    return sink


def insist_on_each_row_once(target: Path, module: str, rows: int) -> None:
    """Readers of the files see each row once, and so do those of the manifests."""
    shown = sorted(target.glob("*.jsonl"))
    assert seen_in(shown) == list(range(rows))
    if module == "lines":
        return
    named: list[str] = []
    for manifest in sorted(target.glob("*.manifest")):
        said = json.loads(manifest.read_text())
        files = said["files"] if module == "lines_combined" else said
        named += files
        if module == "lines_combined":
            assert said["bytes"] == sum((target / file).stat().st_size for file in files)
    assert sorted(named) == [file.name for file in shown]
    if module == "lines_compacted":
        assert json.loads((target / "statistics.json").read_text())["files"] == len(shown)


def seen_in(files: list[Path]) -> list[int]:
    return sorted(json.loads(line)["n"] for file in files for line in file.read_text().splitlines())


def test_the_first_has_thirty_lines() -> None:
    code = [line for line in programs()["lines"].splitlines() if line.strip()]
    assert 25 < len(code) < 40
    assert set(programs()) == {*SINKS, "job"}


@pytest.mark.parametrize("module", SINKS)
@pytest.mark.parametrize("seed", range(8))
def test_each_row_is_there_once_whatever_dies(saved: Path, module: str, seed: int) -> None:
    chance, target = random.Random(f"{module} {seed}"), saved / "out"

    def read(first: int, position: int | None) -> Iterator[tuple[list[dict[str, int]], int]]:
        for number in range(first if position is None else position, first + 20):
            yield [{"n": number}], number + 1

    pipeline = Pipeline(source=FunctionSource([0, 20], read), sink=sink_of(module, target))
    job = SimulatedJob.of(pipeline, parallelism=2, checkpoint_interval_s=1.0)
    happenings: list[Callable[[], object]] = [job.crash_driver, lambda: job.transport.kill(1)]
    for _ in range(chance.randrange(100, 600)):
        if job.is_over:
            break
        steps = [step for step in job.steps() if job.can(step)]
        does = chance.random()
        if does < 0.4 and steps:
            job.step(chance.choice(steps))
        elif does < 0.8:
            job.drain(1)
        elif does < 0.95:
            job.run_blocking()
        elif does < 0.98:
            job.advance()
        elif does < 0.99:
            job.master.request_checkpoint()
        else:
            chance.choice(happenings)()
    job.finish()
    insist_on_each_row_once(target, module, 40)


def start(folder: Path) -> subprocess.Popen[str]:
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    return subprocess.Popen(
        [sys.executable, "job.py"],
        cwd=folder,
        env={**os.environ, "PATH": path, "JAVA_HOME": str(ensure_java())},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


@pytest.mark.kills
@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.timeout(400)
@pytest.mark.parametrize("module", SINKS)
def test_each_row_is_there_once_although_a_worker_and_the_driver_are_killed(
    saved: Path, module: str, capsys: pytest.CaptureFixture[str]
) -> None:
    shown, named = programs()["job"], SINKS[module]
    used = shown.replace("from lines import Lines", f"from {module} import {named}")
    used = used.replace("RateLimit(1000)", "RateLimit(300)")  # so that there is time for the kills
    (saved / "job.py").write_text(used.replace('sink=Lines("', f'sink={named}("'))
    driver, deadline_s = start(saved), time.monotonic() + WAIT_S
    try:
        while not list(saved.glob("out/*.jsonl")) and time.monotonic() < deadline_s:
            time.sleep(0.02)  # until a first commit
        driver.send_signal(signal.SIGKILL)
        driver.communicate(timeout=WAIT_S)
    finally:
        driver.kill()
    assert 0 < len(seen_in(sorted((saved / "out").glob("*.jsonl")))) < ROWS
    driver = start(saved)
    try:
        hit = kill_workers(driver, seed=1, kills=1, tasks=2)
        said, errors = driver.communicate(timeout=WAIT_S)
    finally:
        driver.kill()
    assert driver.returncode == 0, errors
    assert hit == 1
    assert said.splitlines()[-1] == "finished"
    insist_on_each_row_once(saved / "out", module, ROWS)
    assert main(["status", str(saved / "checkpoints")]) == 0
    shown_lines = [line.split(maxsplit=1) for line in capsys.readouterr().out.splitlines()]
    assert ["commit", STEPS[module]] in shown_lines
