"""A real SIGINT, in a program and in the kernel of a notebook: the job stops after a last
checkpoint, lets go of its store, and the next start goes on from there.
"""

from __future__ import annotations

import json
import os
import queue
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from epochgate.spark.java import ensure_java

pytestmark = [pytest.mark.spark, pytest.mark.extended, pytest.mark.timeout(300)]
LAST = 4000
JOB = f"""
import json, sys, time
from pathlib import Path
from pyspark.sql import SparkSession
from epochgate.pipeline import FunctionSource, Pipeline, RateLimit

def keep(numbers):
    return [number for number in numbers if "bad" not in sys.argv]

def write(checkpoint, rows):
    Path(f"kept-{{checkpoint:06}}.json").write_text(json.dumps(rows))

source = FunctionSource(range(0, {LAST}, 100), lambda first: range(first, first + 100))
spark = SparkSession.builder.master("local[2,1000]").getOrCreate()
options = {{"parallelism": 2, "checkpoint_interval_s": 0.3}}

def made(rate, function=keep):
    return Pipeline(source=source, map=function, sink=write, coordinators=[RateLimit(rate)])
"""
RUN = "print(made(float(sys.argv[1])).run(spark, 'checkpoints', **options).state)"
BLOCK = """
with made(float(sys.argv[1])).start(spark, "checkpoints", **options) as job:
    while not job.is_over:
        time.sleep(0.05)
print(job.wait().state)
"""


def numbers(folder: Path) -> list[int]:
    return [n for file in sorted(folder.glob("kept-*.json")) for n in json.loads(file.read_text())]


def until(condition: Callable[[], object], what: str) -> None:
    deadline_s = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline_s, what
        time.sleep(0.05)


@contextmanager
def started(text: str, folder: Path, rate: int) -> Iterator[subprocess.Popen[str]]:
    (folder / "program.py").write_text(text)
    with subprocess.Popen(
        [sys.executable, "program.py", str(rate)],
        cwd=folder,
        env={**os.environ, "JAVA_HOME": str(ensure_java())},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as process:
        try:
            yield process
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)


@pytest.mark.parametrize("text", [RUN, BLOCK], ids=["run", "block"])
def test_ctrl_c_ends_a_program_with_a_last_checkpoint(text: str, tmp_path: Path) -> None:
    with started(JOB + text, tmp_path, 400) as first:
        until(lambda: len(numbers(tmp_path)) > 300, "rows")
        os.killpg(first.pid, signal.SIGINT)
        told = first.communicate(timeout=100)[1]
    assert first.returncode == -signal.SIGINT, told
    said = re.search(
        r"KeyboardInterrupt: the job has stopped after checkpoint (\d+); start it", told
    )
    assert said, told
    assert told.count("interrupted: the job takes a last checkpoint and stops") == 1
    assert int(said[1]) >= max(int(file.stem[-6:]) for file in tmp_path.glob("kept-*.json"))
    assert "failed" not in told
    before = len(numbers(tmp_path))
    with started(JOB + text, tmp_path, 100_000) as second:
        out, told = second.communicate(timeout=100)
    assert out == "finished\n", told
    assert 300 < before < LAST
    assert sorted(numbers(tmp_path)) == list(range(LAST))


def test_a_second_ctrl_c_does_not_wait_for_the_last_checkpoint(tmp_path: Path) -> None:
    slow = JOB.replace('Path(f"kept', 'time.sleep(checkpoint > 2 and 60)\n    Path(f"kept')
    with started(slow + RUN, tmp_path, 400) as first:
        until(lambda: numbers(tmp_path), "rows")
        time.sleep(1)  # a commit hangs by now, for which the last checkpoint waits
        for _ in range(2):
            os.killpg(first.pid, signal.SIGINT)
            time.sleep(1)
        told = first.communicate(timeout=30)[1]
    assert "KeyboardInterrupt: the job was canceled: it was interrupted twice; its last" in told


class Notebook:
    """A kernel, and the outputs of its cells: their kinds and texts."""

    def __init__(self, folder: Path) -> None:
        manager = pytest.importorskip("jupyter_client.manager")
        pytest.importorskip("ipykernel")
        self._manager = manager.KernelManager(kernel_name="python3")
        self._manager.start_kernel(
            cwd=str(folder), env={**os.environ, "JAVA_HOME": str(ensure_java())}
        )
        self._client = self._manager.client()
        self._client.start_channels()
        self._client.wait_for_ready(timeout=60)

    def run(
        self, cell: str, interrupt: Callable[[], object] = lambda: False
    ) -> list[tuple[str, str]]:
        """Run a cell; interrupt it as soon as a condition holds."""
        number = self._client.execute(cell)
        found: list[tuple[str, str]] = []
        deadline_s, is_struck = time.monotonic() + 120, False
        while time.monotonic() < deadline_s:
            try:
                message = self._client.get_iopub_msg(timeout=0.05)
            except queue.Empty:
                message = {"parent_header": {}}
            if not is_struck and interrupt():
                is_struck = True
                self._manager.interrupt_kernel()
            if message["parent_header"].get("msg_id") != number:
                continue
            kind, content = message["msg_type"], message["content"]
            if content.get("execution_state") == "idle":
                return found
            found += [(kind, text) for text in told(kind, content)]
        raise AssertionError(f"the cell has not ended: {found}")

    def close(self) -> None:
        self._client.stop_channels()
        self._manager.shutdown_kernel(now=True)


def told(kind: str, content: dict[str, Any]) -> Iterator[str]:
    if kind == "stream":
        yield content["text"]
    elif kind == "error":
        yield content["ename"] + ": " + content["evalue"]
    elif "data" in content:
        yield content["data"].get("text/html", content["data"]["text/plain"])


@pytest.fixture
def notebook(tmp_path: Path) -> Iterator[Notebook]:
    notebook = Notebook(tmp_path)
    yield notebook
    notebook.close()


def test_a_cell_is_interrupted_and_runs_again_to_the_end(
    notebook: Notebook, tmp_path: Path
) -> None:
    notebook.run(JOB)
    cell = "made({}).run(spark, 'checkpoints', **options)"
    shown = notebook.run(cell.format(400), lambda: len(numbers(tmp_path)) > 300)
    kinds = [kind for kind, _ in shown]
    assert kinds.count("display_data") == 1
    assert kinds.count("update_display_data") >= 2
    assert "<b>checkpoints</b>: finished" in shown[-2][1], shown
    assert shown[-1][0] == "error"
    assert re.fullmatch(
        r"KeyboardInterrupt: the job has stopped after checkpoint \d+; run the cell again to go on "
        "from there",
        shown[-1][1],
    )
    assert len(numbers(tmp_path)) < LAST
    shown = notebook.run(cell.format(100_000))
    assert shown[-1][0] == "execute_result", shown
    assert sorted(numbers(tmp_path)) == list(range(LAST))

    bad = (
        "from epochgate.runtime.api.restart_strategies import NoRestart\n"
        "def bad(numbers):\n    for number in numbers:\n        1 / number\n"
        "made(100_000, bad).run(spark, 'others', restart_strategy=NoRestart(), **options)"
    )
    shown = notebook.run(bad)
    texts = [text for kind, text in shown if kind in ("stream", "error")]
    assert [text.count("\n    1 / number") for text in texts] == [1, 1]
    place = re.search(r'File "(Cell In ?\[\d+\])", line 4, in bad', texts[-1])
    assert place, texts
