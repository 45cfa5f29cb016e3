"""Logs of epochgate can be one JSON object a line."""

from __future__ import annotations

import json
import logging
from typing import Any

import pytest

from epochgate.commands.progress import Progress
from epochgate.commands.watching import json_lines, logging_to
from epochgate.runtime import CheckpointEnded, Warned
from epochgate.runtime.observing.log import JobLog, JsonLines


def record(**more: Any) -> logging.LogRecord:
    values = {"name": "epochgate.job", "levelno": logging.INFO, "levelname": "INFO"}
    return logging.makeLogRecord({**values, "created": 1.5, **more})


def test_an_event_is_told_with_its_figures() -> None:
    event = CheckpointEnded(13.0, 3, "completed", 0.5, stored_bytes=512)
    told = json.loads(JsonLines().format(record(msg="%s", args=(event,), event=event)))
    assert told["time"] == "1970-01-01T00:00:01.500+00:00"
    assert (told["level"], told["logger"]) == ("INFO", "epochgate.job")
    assert told["message"] == str(event)
    assert told["event"]["event"] == "CheckpointEnded"
    assert told["event"]["stored_bytes"] == 512


def test_a_message_of_several_lines_and_a_traceback_are_one_line() -> None:
    try:
        raise LookupError("no\nsuch")
    except LookupError as error:
        line = JsonLines().format(record(msg="it\nfailed", exc_info=(type(error), error, None)))
    assert "\n" not in line
    told = json.loads(line)
    assert told["message"] == "it\nfailed"
    assert "LookupError: no\nsuch" in told["exception"]


def test_a_command_tells_each_event_once(capsys: pytest.CaptureFixture[str]) -> None:
    logger = logging.getLogger("epochgate.ingest")
    log, progress = JobLog(), Progress(log=logger.info)
    with logging_to(json_lines(is_quiet=False), "error", usual=logging.INFO):
        for listener in (log, progress):
            listener.on_event(Warned(0.0, "the disk is slow"))
            listener.on_event(CheckpointEnded(1.0, 1, "aborted", 0.5, reason="too late"))
        progress.note("metrics: http://127.0.0.1:9109/metrics", is_needed=True)
    told = [json.loads(line) for line in capsys.readouterr().err.splitlines()]
    assert [one.get("event", {}).get("event") for one in told] == [
        "Warned",
        "CheckpointEnded",
        None,
    ]
    assert [one["level"] for one in told] == ["WARNING", "INFO", "INFO"]
    assert told[2]["message"] == "metrics: http://127.0.0.1:9109/metrics"
    assert progress.lines() == []


def test_quiet_tells_warnings_and_errors(capsys: pytest.CaptureFixture[str]) -> None:
    with logging_to(json_lines(is_quiet=True), "error", usual=logging.INFO):
        logging.getLogger("epochgate.ingest").info("starting")
        logging.getLogger("epochgate.ingest").error("the job has failed")
    [line] = capsys.readouterr().err.splitlines()
    assert json.loads(line)["message"] == "the job has failed"
