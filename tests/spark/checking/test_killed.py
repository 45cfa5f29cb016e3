"""A search goes on, with the same counts, after executors, workers or the driver were killed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from tests.spark.checking import search_program
from tests.spark.checking.search_program import STATES, TRANSITIONS
from tests.spark.running import command, send_signal, wait_for

pytestmark = [pytest.mark.spark, pytest.mark.kills, pytest.mark.slow]

CLUSTER = "local-cluster[2,1,1024]"
PATIENCE_S = 240.0
FOUND = f"PASS {STATES} {TRANSITIONS} 26"


def start(directory: Path, master: str) -> subprocess.Popen[str]:
    root = str(Path(__file__).parents[3])
    return subprocess.Popen(
        [sys.executable, search_program.__file__, str(directory), master],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        cwd=root,
        env={**os.environ, "PYTHONPATH": root},
    )


def wait_for_level(directory: Path, level: int) -> None:
    path = directory / f"level-{level:05}.json"
    wait_for(path.exists, f"level {level}", PATIENCE_S)


def kill_one(driver: psutil.Process, words: str) -> None:
    """Kill a process below the driver whose command has these words, once there is one."""
    found: list[psutil.Process] = []

    def is_there() -> bool:
        found[:] = [one for one in driver.children(recursive=True) if words in command(one)]
        return bool(found)

    wait_for(is_there, f"a process of {words}")
    send_signal(found[-1].pid, signal.SIGKILL)


@pytest.mark.parametrize("words", ["CoarseGrainedExecutorBackend", "epochgate.spark.worker_daemon"])
def test_counts_are_the_same_after_an_executor_or_its_workers_were_killed(
    tmp_path: Path, words: str
) -> None:
    with start(tmp_path, CLUSTER) as running:
        driver = psutil.Process(running.pid)
        for level in (3, 9, 15):
            wait_for_level(tmp_path, level)
            kill_one(driver, words)
        told, _ = running.communicate(timeout=PATIENCE_S)
    assert told.strip() == FOUND


def test_counts_are_the_same_after_drivers_were_killed(tmp_path: Path) -> None:
    for level in (4, 11, 18):
        with start(tmp_path, "local[2]") as running:
            wait_for_level(tmp_path, level)
            running.send_signal(signal.SIGKILL)
        assert running.returncode == -signal.SIGKILL
    # The processes of the last driver end when they notice that it is gone.
    with start(tmp_path, CLUSTER) as running:
        told, _ = running.communicate(timeout=PATIENCE_S)
    assert told.strip() == FOUND
