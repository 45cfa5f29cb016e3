"""What hangs at the end of a job, or beside it, holds up neither its end nor the interpreter's."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path

from epochgate.runtime import Committables, Committer
from epochgate.runtime.store import InMemoryCheckpointStore
from epochgate.runtime.testing.scripted import Script
from tests.runtime.hung import Hung

ROOT = Path(__file__).parents[2]
LIMIT_S = 0.3


class StoreThatHangs(InMemoryCheckpointStore):
    def __init__(self, go: threading.Event) -> None:
        super().__init__(job_id="hung")
        self._go = go

    def close(self) -> None:
        self._go.wait()


class CommitterThatHangs(Committer):
    def __init__(self, go: threading.Event) -> None:
        self._go = go

    def commit(self, checkpoint_id: int, committables: Committables) -> None: ...

    def close(self) -> None:
        self._go.wait()


def test_a_store_whose_close_hangs_holds_up_no_end_and_is_named_with_file_and_line() -> None:
    go = threading.Event()
    job = Hung(Script(), store=StoreThatHangs(go), end_timeout_s=LIMIT_S)
    job.loop.master.cancel()
    result = job.loop.join(10)
    go.set()
    assert result.state == "canceled"
    [warning] = result.report.warnings
    assert "the store could not be closed, and stays locked" in warning
    assert 'test_hanging_ends.py", line ' in warning


def test_a_committer_whose_close_hangs_is_named_with_file_and_line() -> None:
    go = threading.Event()
    job = Hung(Script(), CommitterThatHangs(go), end_timeout_s=LIMIT_S)
    job.loop.master.cancel()
    result = job.loop.join(10)
    go.set()
    assert result.state == "canceled"
    assert any('test_hanging_ends.py", line ' in text for text in result.report.warnings)


def test_the_interpreter_exits_whatever_hangs() -> None:
    ran = subprocess.run(
        [sys.executable, "-m", "tests.runtime.hanging_program"],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert ran.stdout.splitlines() == [
        "store.close: canceled",
        "committer.close: canceled",
        "op.close: canceled",
        "op.handle_client_request: canceled",
    ], ran.stderr
    assert ran.returncode == 0, ran.stderr
