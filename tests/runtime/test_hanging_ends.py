"""A call that hangs at the end of a job, or beside it, holds up neither its end nor the
interpreter's.
"""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from epochgate.runtime import (
    Committables,
    Committer,
    CoordinatorContext,
    JobEvent,
    JobListener,
)
from epochgate.runtime.api.coordinator import RequestNotHandled
from epochgate.runtime.api.job_events import Warned
from epochgate.runtime.shell.futures import for_client
from epochgate.runtime.store import CompletedCheckpoint, InMemoryCheckpointStore
from epochgate.runtime.store.contract import StoredInfo
from epochgate.runtime.testing.scripted import Script
from tests.runtime.hung import EndingTask, Hung
from tests.runtime.test_loop import OneTask

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


def test_a_coordinator_whose_close_hangs_after_the_last_commit_leaves_the_job_finished() -> None:
    script = Script()
    go = script.hang_at("op.close")
    job = Hung(script, task=EndingTask, end_timeout_s=LIMIT_S)
    result = job.loop.join(10)
    go.set()
    assert result.state == "finished", result.reason
    assert result.reason is None
    assert result.last_checkpoint_id == 1
    [warning] = result.report.warnings
    assert "coordinator 'op' has been in" in warning
    assert "end_timeout_s is 0.3" in warning
    assert 'scripted.py", line ' in warning


class Warns(JobListener):
    def __init__(self) -> None:
        self.is_set = threading.Event()

    def on_event(self, event: JobEvent) -> None:
        if isinstance(event, Warned):
            self.is_set.set()


@pytest.mark.parametrize("door", ["save", "commit", "run_async"])
def test_what_hangs_elsewhere_is_told_with_file_and_line(door: str) -> None:
    go, script = threading.Event(), Script()

    class Store(InMemoryCheckpointStore):
        def save(self, checkpoint: CompletedCheckpoint) -> StoredInfo:
            if door == "save":
                go.wait()
            return super().save(checkpoint)

    class Sink(Committer):
        def commit(self, checkpoint_id: int, committables: Committables) -> None:
            go.wait()

    warned = Warns()
    job = Hung(
        script,
        Sink(),
        Store(job_id="hung"),
        task=OneTask if door == "run_async" else EndingTask,
        listeners=[warned],
        work_warn_s=0.1,
        end_timeout_s=LIMIT_S,
        **{} if door == "run_async" else {f"{door.replace('save', 'store')}_timeout_s": LIMIT_S},
    )
    if door == "run_async":
        work = partial(script.coordinator.context.run_async, go.wait, lambda *_: None)
        job.loop.master.queue.post(work)
        assert warned.is_set.wait(10)
        job.loop.master.cancel()
    result = job.loop.join(10)
    go.set()
    assert any('.py", line ' in text for text in result.report.warnings), result.report.warnings
    assert door == "run_async" or 'test_hanging_ends.py", line ' in (result.reason or "")


def test_a_callback_of_a_client_that_hangs_or_raises_holds_up_neither_job_nor_others(
    caplog: pytest.LogCaptureFixture,
) -> None:
    go, is_called = threading.Event(), threading.Event()

    def leave(_: object) -> None:
        raise SystemExit(go.wait())

    job = Hung(Script())
    wanted = for_client(job.loop.master.request("op", "a question"))
    wanted.add_done_callback(leave)
    wanted.add_done_callback(lambda _: is_called.set())
    assert isinstance(wanted.exception(10), RequestNotHandled)
    assert is_called.wait(10)
    job.loop.master.cancel()
    assert job.loop.join(10).state == "canceled"
    [held] = [one for one in threading.enumerate() if one.name == "epochgate-callback"]
    go.set()
    held.join(10)
    assert "a callback of a future has raised" in caplog.text


LIMITS: dict[str, Any] = {"coordinator_call_timeout_s": LIMIT_S, "end_timeout_s": LIMIT_S}


HANDED: dict[str, Callable[[CoordinatorContext, Callable[..., Any], Script], object]] = {
    "asked": lambda context, hang, _: context.checkpoints.request().add_done_callback(hang),
    "sent": lambda _, hang, script: script.coordinator.send(0, "x").add_done_callback(hang),
    "posted": lambda context, hang, _: context.post(hang),
    "timer": lambda context, hang, _: context.post_later(0.01, hang),
    "async": lambda context, hang, _: context.run_async(lambda: 1, hang),
    "gauge": lambda context, hang, _: context.metrics.gauge("figure", hang),
}
"""What a coordinator hands over to be called."""
CALLED_AT_ONCE = ("posted", "timer", "async")


@pytest.mark.parametrize("door", HANDED)
def test_what_a_coordinator_hands_over_and_hangs_ends_the_job_at_a_limit(door: str) -> None:
    go, is_handed, is_called = threading.Event(), threading.Event(), threading.Event()
    script = Script()
    job = Hung(script, **LIMITS)
    wanted = job.loop.master.request_checkpoint()

    def hang(*_: Any) -> None:
        is_called.set()
        go.wait()

    def hand(left: int) -> None:
        if not script.coordinator.gateways and left:
            job.loop.master.queue.post(hand, left - 1)
            return
        HANDED[door](script.coordinator.context, hang, script)
        is_handed.set()

    job.loop.master.queue.post(hand, 100)
    assert is_handed.wait(10)
    if door in CALLED_AT_ONCE:
        assert is_called.wait(10)
    job.loop.master.cancel()
    result = job.loop.join(10)
    told = "\n".join([result.reason or "", *result.report.warnings])
    go.set()
    assert wanted.done()
    assert result.state in ("canceled", "failed")
    assert 'test_hanging_ends.py", line ' in told, told


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
        "a callback: canceled",
        "op.close: finished",
    ], ran.stderr
    assert ran.returncode == 0, ran.stderr
