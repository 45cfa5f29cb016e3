"""The leavings of an attempt in its process are found, and those that go by themselves are waited
for.
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from epochgate.spark.left_behind import Inventory, left_since

NO_PATIENCE_S = 0.0
pytestmark = pytest.mark.skipif(
    not Path("/proc/self/fd").is_dir(), reason="only Linux tells what a process has open"
)


@pytest.fixture
def attempt() -> Iterator[ExitStack]:
    """Return what the attempt has; given back at the end of the test."""
    with ExitStack() as kept:
        yield kept


def test_an_attempt_that_has_closed_everything_leaves_nothing(tmp_path: Path) -> None:
    before = Inventory.taken()
    (tmp_path / "rows").write_text("1", encoding="utf-8")
    with socket.create_server(("127.0.0.1", 0)) as server, server.dup():
        thread = threading.Thread(target=lambda: None)
        thread.start()
        thread.join()
    subprocess.run([sys.executable, "-c", ""], check=True)
    assert left_since(before, NO_PATIENCE_S) == []


def test_a_thread_that_goes_on_is_left(attempt: ExitStack) -> None:
    before, is_over = Inventory.taken(), threading.Event()
    thread = threading.Thread(target=is_over.wait, name="poller", daemon=True)
    thread.start()
    attempt.callback(thread.join)
    attempt.callback(is_over.set)
    assert left_since(before, NO_PATIENCE_S) == ["thread 'poller'"]


def test_an_open_socket_is_left(attempt: ExitStack) -> None:
    before = Inventory.taken()
    attempt.enter_context(socket.create_server(("127.0.0.1", 0)))
    [left] = left_since(before, NO_PATIENCE_S)
    assert left.startswith("open socket socket:[")


def test_an_open_file_is_left_and_named(attempt: ExitStack, tmp_path: Path) -> None:
    before = Inventory.taken()
    attempt.enter_context((tmp_path / "rows").open("wb"))
    assert left_since(before, NO_PATIENCE_S) == [f"open file {tmp_path}/rows"]


def test_a_child_process_that_lives_is_left(attempt: ExitStack) -> None:
    before = Inventory.taken()
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    attempt.callback(child.communicate)
    left = left_since(before, NO_PATIENCE_S)
    assert f"child process {child.pid}" in left
    assert [what for what in left if what.startswith("open pipe")]


def test_a_thread_that_is_about_to_end_is_waited_for(attempt: ExitStack) -> None:
    before, is_over = Inventory.taken(), threading.Event()
    thread = threading.Thread(target=is_over.wait)
    thread.start()
    attempt.callback(thread.join)
    threading.Timer(0.05, is_over.set).start()
    assert left_since(before, patience_s=30.0) == []


def test_a_file_that_only_a_cycle_of_objects_holds_is_closed(tmp_path: Path) -> None:
    class Holder:
        def __init__(self) -> None:
            self.itself = self
            self.descriptor = Descriptor(tmp_path / "rows")

    class Descriptor:
        def __init__(self, path: Path) -> None:
            self.number = os.open(path, os.O_CREAT | os.O_WRONLY)

        def __del__(self) -> None:
            os.close(self.number)

    before = Inventory.taken()
    Holder()
    assert left_since(before, patience_s=30.0) == []


def test_a_pipe_by_which_the_process_wakes_itself_does_not_count(attempt: ExitStack) -> None:
    before = Inventory.taken()
    for end in os.pipe():
        attempt.callback(os.close, end)
    assert left_since(before, NO_PATIENCE_S) == []
