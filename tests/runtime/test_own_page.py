"""A job serves its own pages while it runs, and leaves no thread behind."""

from __future__ import annotations

import json
import socket
import threading
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

import pytest

from epochgate.pages.serving import CannotServe
from epochgate.runtime.observing.listening import HostWithoutPort, Listening
from epochgate.runtime.store import (
    CheckpointShelf,
    CheckpointStore,
    DirectoryCheckpointStore,
    InMemoryCheckpointStore,
    ObjectCheckpointStore,
)
from tests.browser.serving import asked
from tests.runtime.objects.stores import Memory
from tests.runtime.scripted import Script, simulated


def running(heard_by: Listening) -> Any:
    job = simulated(Script(), listeners=heard_by.listeners)
    job.settle()
    return job


def ended(job: Any) -> None:
    job.master.cancel("enough")
    job.flow()
    job.master.close()


@pytest.fixture(params=["directory", "objects"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> CheckpointStore:
    if request.param == "directory":
        return DirectoryCheckpointStore(str(tmp_path / "checkpoints"), job_id="job")
    return ObjectCheckpointStore(Memory().open("s3://jobs/one"), job_id="job")


def test_a_job_shows_itself_while_it_runs_and_ends_with_its_connections(
    store: CheckpointStore,
) -> None:
    before = set(threading.enumerate())
    heard_by = Listening([], store, ui=(0, None))
    url = heard_by.ui_url
    assert url is not None
    job = running(heard_by)
    deadline_s = time.monotonic() + 30
    while (state := json.loads(asked(url, "/status.json")[1]))["state"] != "running":
        assert time.monotonic() < deadline_s, state  # the history is written on its own thread
    assert state["run"]["job_id"] == "scripted"
    assert "scripted" in asked(url, "/")[1]
    assert asked(url, "/", "POST")[0] == 501
    port = int(url.rsplit(":", 1)[1].rstrip("/"))
    with socket.create_connection(("127.0.0.1", port)) as silent:
        ended(job)
        assert silent.recv(1) == b""
    with pytest.raises(OSError, match="refused"):
        urllib.request.urlopen(url, timeout=60)
    assert set(threading.enumerate()) <= before


@pytest.mark.parametrize("port", [70_000, -1, "7358"])
def test_a_port_that_is_none_is_refused_by_the_options_names(port: Any, tmp_path: Path) -> None:
    before = set(threading.enumerate())
    with (
        DirectoryCheckpointStore(str(tmp_path), job_id="job") as store,
        pytest.raises(CannotServe, match=r"port .*; --ui-port \(ui_port in Python\) 0 takes"),
    ):
        Listening([], store, metrics=(0, None), ui=(port, None))
    assert set(threading.enumerate()) <= before


def test_a_port_that_is_taken_is_refused(tmp_path: Path) -> None:
    with (
        DirectoryCheckpointStore(str(tmp_path), job_id="job") as store,
        socket.create_server(("127.0.0.1", 0)) as taken,
        pytest.raises(CannotServe, match="in use"),
    ):
        Listening([], store, ui=(taken.getsockname()[1], None))


def test_a_job_without_a_history_has_no_pages(tmp_path: Path) -> None:
    with pytest.raises(CannotServe, match="keeps no history"):
        Listening([], InMemoryCheckpointStore(CheckpointShelf(), job_id="job"), ui=(0, None))
    with (
        DirectoryCheckpointStore(str(tmp_path), job_id="job") as store,
        pytest.raises(CannotServe, match="leave has_history out"),
    ):
        Listening([], store, has_history=False, ui=(0, None))


def test_an_address_needs_a_port_and_may_be_of_ipv6(tmp_path: Path) -> None:
    with DirectoryCheckpointStore(str(tmp_path), job_id="job") as store:
        with pytest.raises(HostWithoutPort, match="no ui_port"):
            Listening([], store, ui=(None, "0.0.0.0"))
        heard_by = Listening([], store, ui=(0, "::1"))
        assert heard_by.ui_url is not None
        assert heard_by.ui_url.startswith("http://[::1]:")
        with urllib.request.urlopen(heard_by.ui_url, timeout=60) as answer:
            assert answer.status == 200
        with pytest.raises(LookupError), heard_by.closed_on_error():
            raise LookupError("no slots")
        with pytest.raises(urllib.error.URLError):
            urllib.request.urlopen(heard_by.ui_url, timeout=60)
