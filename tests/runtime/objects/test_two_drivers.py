"""Two drivers on one object store: a later start takes over, however long the earlier one is
suspended and at whichever request; on a real server, with real processes.
"""

from __future__ import annotations

import contextlib
import dataclasses
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from epochgate.environment import set_in_environment
from epochgate.runtime.objects.client import open_url
from epochgate.runtime.store import ObjectCheckpointStore
from tests.runtime.objects.servers import BUCKET, seaweedfs
from tests.runtime.store.mediums import JOB, checkpoint_of

ROOT = Path(__file__).parents[3]

DRIVER = """
import signal, sys
from dataclasses import replace
from epochgate.runtime.objects.client import open_url
from epochgate.runtime.store import CheckpointStoreLost, ObjectCheckpointStore
from tests.runtime.objects.faulty_objects import FaultyObjects
from tests.runtime.store.mediums import JOB, checkpoint_of

url, step, when = sys.argv[1:]

class Stopping(FaultyObjects):
    saves = False
    def change(self, name, key, do):
        is_it = self.saves and name == step
        if is_it and when == "before":
            self.stop()
        super().change(name, key, do)
        if is_it and when == "after":
            self.stop()
    def stop(self):
        self.saves = False
        signal.raise_signal(signal.SIGSTOP)  # of this thread, which goes no further

objects = Stopping(open_url)
store = ObjectCheckpointStore(objects.open(url), job_id=JOB)
store.save(replace(checkpoint_of(1), run_id="old"))
objects.saves = True
try:
    for number in (2, 3):
        store.save(replace(checkpoint_of(number), run_id="old"))
        print(number, flush=True)
except CheckpointStoreLost:
    print("lost", flush=True)
"""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    with seaweedfs(tmp_path_factory.mktemp("seaweedfs")) as variables:
        yield variables


@contextlib.contextmanager
def stopped_driver(
    url: str, step: str, when: str, server: dict[str, str]
) -> Iterator[subprocess.Popen[str]]:
    """A driver that stops itself (SIGSTOP) at a request of its second save."""
    process = subprocess.Popen(
        [sys.executable, "-c", DRIVER, url, step, when],
        stdout=subprocess.PIPE,
        text=True,
        cwd=ROOT,
        env={**os.environ, **server, "PYTHONPATH": str(ROOT)},
    )
    try:
        _, status = os.waitpid(process.pid, os.WUNTRACED)
        assert os.WIFSTOPPED(status), status
        yield process
    finally:
        process.kill()
        process.wait(timeout=30)


@pytest.mark.parametrize(
    ("step", "when", "told"),
    [
        ("put", "before", ["lost"]),
        ("put", "after", ["lost"]),
        ("create", "before", ["lost"]),
        ("create", "after", ["2", "lost"]),
    ],
)
def test_a_process_that_was_stopped_and_replaced_saves_nothing_more(
    server: dict[str, str], step: str, when: str, told: list[str]
) -> None:
    url = f"s3://{BUCKET}/{step}-{when}"
    with stopped_driver(url, step, when, server) as process, set_in_environment(server):
        new = ObjectCheckpointStore(open_url(url), job_id=JOB)
        first = (new.last_id or 0) + 1
        assert first == len(told) + 1, "what is in the log is seen"
        for number in (first, first + 1):
            new.save(dataclasses.replace(checkpoint_of(number), run_id="new"))
        process.send_signal(signal.SIGCONT)
        assert process.communicate(timeout=60)[0].split() == told
        new.save(dataclasses.replace(checkpoint_of(first + 2), run_id="new"))
        assert [new.load(number).run_id for number in new.ids()] == ["new"] * 3
        again = ObjectCheckpointStore(open_url(url), job_id=JOB)
        assert again.latest() == dataclasses.replace(checkpoint_of(first + 2), run_id="new")
