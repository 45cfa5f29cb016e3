"""The examples run as they stand, with workers killed from outside, and are held to their word."""

from __future__ import annotations

import ast
import contextlib
import json
import random
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests.spark.running import WAIT_S, command, send_signal

EXAMPLES = Path(__file__).parents[2] / "examples"
RUN_AND_DUMP = """
import json, runpy, sys
from msgpack import unpackb
from epochgate.runtime.store import decode_checkpoint

shown = runpy.run_path(sys.argv[1], run_name="__main__")
agreed = []
for data in shown["store"].shelf.checkpoints.values():
    whole = decode_checkpoint(data, source="the shelf")
    rules = [unpackb(states["payments"])[1] for states in whole.subtasks.values()]
    agreed.append([unpackb(whole.coordinators["payments"]), rules])
with open(sys.argv[2], "w") as file:
    json.dump({"pages": list(shown["ledger"].pages.items()), "agreed": agreed}, file)
"""

LINES_MAX = 110
LINES_OF_A_PROTOCOL = 210
"""An example that is to be read: a protocol, the wire below it, and what it implements."""


def code_lines(program: str) -> int:
    """Lines that are neither blank nor documentation."""
    documentation = {
        number
        for node in ast.walk(ast.parse(program))
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        for number in range(node.lineno, (node.end_lineno or 0) + 1)
    }
    lines = enumerate(program.splitlines(), 1)
    return sum(1 for n, line in lines if line.strip(" #") and n not in documentation)


@pytest.mark.parametrize("example", sorted(EXAMPLES.glob("*.py")), ids=lambda path: path.stem)
def test_an_example_is_short_enough_to_be_copied(example: Path) -> None:
    lines_max = LINES_OF_A_PROTOCOL if example.stem == "alternating_bit" else LINES_MAX
    assert code_lines(example.read_text(encoding="utf-8")) <= lines_max


def connected_workers(driver: psutil.Process) -> list[psutil.Process]:
    """The processes below a driver that are connected to a port on which it listens."""
    ports = {c.laddr.port for c in driver.net_connections("tcp") if c.status == psutil.CONN_LISTEN}
    found = []
    for process in driver.children(recursive=True):
        with contextlib.suppress(psutil.Error):
            if "daemon pyspark.worker" in command(process):
                remotes = {getattr(c.raddr, "port", 0) for c in process.net_connections("tcp")}
                found += [process] if remotes & ports else []
    return found


def kill_workers(driver: subprocess.Popen[str], seed: int, kills: int, tasks: int = 3) -> int:
    """Kill workers at moments drawn from the seed, once all tasks work; how many were hit. The next
    ones are hit while the first come up again, since a job waits for no killer.
    """
    choice, hit = random.Random(seed), 0
    deadline_s = time.monotonic() + WAIT_S
    while hit < kills and driver.poll() is None and time.monotonic() < deadline_s:
        with contextlib.suppress(psutil.NoSuchProcess):
            up = connected_workers(psutil.Process(driver.pid))
            if len(up) < (1 if hit else tasks):
                time.sleep(0.02)
                continue
            time.sleep(choice.uniform(0.1, 0.7))  # the moment is the seed's
            send_signal(choice.choice(up).pid, signal.SIGKILL)
            hit += 1
    return hit


Rows = dict[int, dict[int, list[tuple[int, int]]]]
"""Task -> checkpoint -> number of the payment and version of the rule, for each payment."""


def rows_by_task(pages: list[Any]) -> Rows:
    tasks: Rows = {}
    for checkpoint, page in pages:
        for task, rows in page.items():
            tasks.setdefault(int(task), {})[checkpoint] = [(row[0], row[1]) for row in rows]
    return tasks


def changes(tasks: Rows) -> Iterator[tuple[int, int, int]]:
    """For each version of the rule: the newest checkpoint with a payment under an older version,
    and the oldest with one under this version or a newer, over all tasks.
    """
    seen = [(c, version) for task in tasks.values() for c in task for _, version in task[c]]
    for version in sorted({version for _, version in seen})[1:]:
        older = max(c for c, v in seen if v < version)
        newer = min(c for c, v in seen if v >= version)
        yield version, older, newer


@pytest.mark.kills
@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.timeout(300)
def test_all_tasks_change_the_rule_at_the_same_checkpoint_while_workers_are_killed(
    tmp_path: Path,
) -> None:
    example, dump = EXAMPLES / "rule_updates.py", tmp_path / "dump.json"
    arguments = [sys.executable, "-c", RUN_AND_DUMP, str(example), str(dump)]
    driver = subprocess.Popen(
        arguments, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    try:
        hit = kill_workers(driver, seed=4, kills=3)
        shown, errors = driver.communicate(timeout=WAIT_S)
    finally:
        driver.kill()
    assert driver.returncode == 0, errors
    assert hit == 3

    dumped = json.loads(dump.read_text(encoding="utf-8"))
    tasks = rows_by_task(dumped["pages"])
    assert sorted(tasks) == [0, 1, 2]
    for by_checkpoint in tasks.values():
        counted = [payment for rows in by_checkpoint.values() for payment, _ in rows]
        assert counted == list(range(1, 501)), "each payment once, in its order"
        versions = [version for rows in by_checkpoint.values() for _, version in rows]
        assert versions == sorted(versions)
    cut_over = list(changes(tasks))
    assert len(cut_over) >= 3
    for version, older, newer in cut_over:
        assert older <= newer, f"version {version}: some task was late, another early"
    for rule, rules_of_tasks in dumped["agreed"]:
        assert rules_of_tasks == [rule] * 3, "the tasks' rule at a checkpoint is the coordinator's"

    *table, last = shown.strip().splitlines()
    assert len(table) == 1 + len(dumped["pages"])
    restarts = re.fullmatch(r"finished: 1500 payments, (\d+) task restarts", last)
    assert restarts is not None, last
    assert int(restarts[1]) >= 2


def rows_of(folder: Path) -> list[int]:
    """The rows of the table that a coordinator has committed."""
    names = [name for entry in folder.glob("log/*.json") for name in json.loads(entry.read_text())]
    return sorted(row for name in names for row in json.loads((folder / name).read_text()))


@pytest.mark.kills
@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.timeout(300)
def test_a_coordinator_commits_each_row_once_although_workers_and_the_driver_are_killed(
    tmp_path: Path,
) -> None:
    arguments = [sys.executable, str(EXAMPLES / "committing_coordinator.py"), str(tmp_path)]

    def start() -> subprocess.Popen[str]:
        return subprocess.Popen(
            arguments, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )

    driver, deadline_s = start(), time.monotonic() + WAIT_S
    try:
        while not rows_of(tmp_path) and time.monotonic() < deadline_s:
            time.sleep(0.02)  # until a first commit
        driver.send_signal(signal.SIGKILL)
        driver.communicate(timeout=WAIT_S)
    finally:
        driver.kill()
    assert 0 < len(rows_of(tmp_path)) < 1200
    driver = start()
    try:
        hit = kill_workers(driver, seed=2, kills=2)
        shown, errors = driver.communicate(timeout=WAIT_S)
    finally:
        driver.kill()
    assert driver.returncode == 0, errors
    assert hit == 2
    assert shown.splitlines()[-1] == "finished: each row is there once: True"
    assert rows_of(tmp_path) == list(range(1200))
