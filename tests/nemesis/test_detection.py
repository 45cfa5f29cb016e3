"""The failure detectors suspect no task that lives, and find one that is stopped or cut off soon.

Measured without Spark: twelve tasks on one host of the lab beat to a driver on another. What the
driver has heard is played to detectors with several thresholds afterwards; alarms are those of the
defaults. The figures stand in docs/hosts.md.
"""

from __future__ import annotations

import contextlib
import subprocess
import sys
from collections.abc import Iterator
from functools import partial
from typing import NamedTuple

import pytest

from epochgate.spark.wire import DETECTION, Detection
from tests.nemesis import faults
from tests.nemesis.beating import Verdict, judged_link, judged_process, read
from tests.nemesis.host import PATIENCE, wait_until
from tests.nemesis.lab import NET, ROOT, Lab, lab_in

pytestmark = [pytest.mark.nemesis, pytest.mark.timeout(900 * PATIENCE)]
PORT, TASKS = 41_100, 12
SECONDS, MEASURED_SECONDS = 75.0, 150.0
"""Of each trouble: longer than a detector takes to fill its window, and as long as for the figures
of the page where `--write` asks for figures.
"""
TIMEOUT_S = 10.0
THRESHOLDS = (1.0, 3.0, 5.0, 8.0, 12.0, 16.0)


class Trouble(NamedTuple):
    what: str
    pause_s: float = 0.0
    busy: int = 0
    is_lossy: bool = False


TROUBLES = (
    Trouble("nothing else"),
    Trouble("two busy processes", busy=2),
    Trouble("pauses up to 3 s", pause_s=3.0),
    Trouble("200 ms round trip, 5 % loss", is_lossy=True),
    Trouble("all of these", pause_s=3.0, busy=2, is_lossy=True),
)


@pytest.fixture(scope="module")
def hosts(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    with lab_in(tmp_path_factory.mktemp("beating")) as lab:
        yield lab


@contextlib.contextmanager
def troubled(lab: Lab, trouble: Trouble) -> Iterator[None]:
    with contextlib.ExitStack() as stack:
        if trouble.is_lossy:
            stack.callback(faults.slow(lab, lab.workers[0]))
        for _ in range(trouble.busy):
            busy = subprocess.Popen([sys.executable, "-c", "while True: pass"])
            stack.callback(busy.wait)
            stack.callback(busy.kill)
        yield


@pytest.mark.parametrize("trouble", TROUBLES, ids=lambda trouble: trouble.what)
def test_tasks_that_live_are_not_suspected(
    trouble: Trouble, hosts: Lab, counted: list[str], pytestconfig: pytest.Config
) -> None:
    seconds = MEASURED_SECONDS if pytestconfig.getoption("write") else SECONDS
    number = TROUBLES.index(trouble)
    file = hosts.folder / f"heard-{number}.json"
    port = str(PORT + number)
    variables = {"PYTHONPATH": str(ROOT), "PATH": "/usr/bin:/bin"}
    beating = [sys.executable, "-m", "tests.nemesis.beating"]
    with troubled(hosts, trouble):
        log = hosts.folder / "logs" / f"beating-{number}.txt"
        driver = [*beating, "driver", f"{NET}.1", port, str(seconds), str(file)]
        hosts.driver.start(driver, log, variables, ROOT)
        wait_until(partial(_listens, hosts, port), 20.0, "the driver of the tasks", log.read_text)
        tasks = [*beating, "tasks", f"{NET}.1", port, str(TASKS), str(trouble.pause_s)]
        hosts.workers[0].start(tasks, log, variables, ROOT)
        wait_until(file.exists, seconds + 60.0, "what the driver has heard", log.read_text)
    hosts.workers[0].kill("tests.nemesis.beating")
    heard = read(file)
    assert len(heard) == TASKS
    for threshold in THRESHOLDS:
        detection = Detection(threshold=threshold)
        process = judged_process(heard, detection, TIMEOUT_S)
        link = judged_link(heard, detection, TIMEOUT_S)
        counted.append(f"{trouble.what}: phi {threshold:g}: {_told(process)}; host: {_told(link)}")
    for pause_s in (0.0, 1.0, 2.0):
        plain = Detection(pause_s=pause_s, link_pause_s=pause_s)
        process = judged_process(heard, plain, TIMEOUT_S)
        link = judged_link(heard, plain, TIMEOUT_S)
        counted.append(f"{trouble.what}: pause {pause_s:g}: {_told(process)}; host: {_told(link)}")
    assert judged_process(heard, DETECTION, TIMEOUT_S).alarms == 0
    assert judged_link(heard, DETECTION, TIMEOUT_S).alarms == 0


def _listens(lab: Lab, port: str) -> bool:
    return f":{port} " in lab.driver.run("ss", "-ltn")


def _told(verdict: Verdict) -> str:
    found = verdict.found_s
    p50, p99 = found[len(found) // 2], found[int(len(found) * 0.99)]
    rate = verdict.alarms / verdict.hours
    return f"{rate:.1f} alarms an hour of {verdict.hours:.2f}, found in {p50:.1f} s, {p99:.1f} s"
