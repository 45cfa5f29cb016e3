"""`epochgate set` shows and changes the settings of a job that runs."""

from __future__ import annotations

import json
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from epochgate.cli import main
from epochgate.runtime.pipeline.setting import RateLimit, Setting
from epochgate.runtime.pipeline.setting_requests import KIND, requested
from epochgate.runtime.requests.listening import JobRequests
from epochgate.runtime.requests.place import FOLDER, RequestPlace
from epochgate.runtime.store import DirectoryCheckpointStore

SETTINGS = (Setting("mode", "fast"), RateLimit(None, name="rate"))


class Job:
    """Makes each change at once."""

    def __init__(self) -> None:
        self.values: dict[str, Any] = {one.name: one.initial for one in SETTINGS}

    def request(self, operator_id: str, request: Any) -> Future[Any]:
        if request[0] == "set":
            self.values[operator_id] = request[1]
        answer: Future[Any] = Future()
        answer.set_result(self.values[operator_id])
        return answer


@contextmanager
def running(directory: Path, settings: tuple[Setting, ...] = SETTINGS) -> Iterator[Job]:
    """A driver that holds the checkpoints, and looks for requests."""
    job = Job()
    with DirectoryCheckpointStore(directory, job_id="orders"):
        requests = JobRequests(RequestPlace(str(directory)), {KIND: requested(settings, job)})
        requests.start()
        try:
            yield job
        finally:
            requests.close()
            requests.join()


def test_settings_are_shown_and_changed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with running(tmp_path) as job:
        assert main(["set", str(tmp_path), "rate=5000", 'mode="strict"']) == 0
        assert job.values == {"mode": "strict", "rate": 5000}
        assert capsys.readouterr().out.split() == ["rate", "5000", "mode", '"strict"']
        assert main(["set", str(tmp_path), "rate=null", "--json"]) == 0
        assert json.loads(capsys.readouterr().out) == {"rate": None}
        assert main(["set", str(tmp_path)]) == 0
        assert capsys.readouterr().out.split() == ["mode", '"strict"', "rate", "null"]
    assert list((tmp_path / FOLDER).iterdir()) == []


def test_what_the_job_does_not_take_changes_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with running(tmp_path) as job:
        assert main(["set", str(tmp_path), "rate=7", "speed=5"]) == 1
        assert "no setting 'speed'; it has mode, rate" in capsys.readouterr().err
        assert main(["set", str(tmp_path), 'rate="fast"']) == 1
        assert "no rate" in capsys.readouterr().err
        assert main(["set", str(tmp_path), "mode=strict"]) == 2
        assert """mode='"strict"'""" in capsys.readouterr().err
        assert job.values == {"mode": "fast", "rate": None}


def test_where_no_job_runs_that_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    DirectoryCheckpointStore(tmp_path, job_id="orders").close()
    assert main(["set", str(tmp_path), "rate=5"]) == 2
    assert "no job runs" in capsys.readouterr().err
    with running(tmp_path, ()):
        assert main(["set", str(tmp_path)]) == 0
    assert "no settings" in capsys.readouterr().out
