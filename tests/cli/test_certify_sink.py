"""`epochgate certify-sink` prints what holds, and the shortest schedule of what does not."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from epochgate import cli
from epochgate.commands import certify_sink

BROKEN = "tests.runtime.broken_sinks"


def test_a_broken_sink_is_refused_with_the_schedule_that_shows_it(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert cli.main(["certify-sink", f"{BROKEN}:FileByFile", "--first"]) == 1
    told = capsys.readouterr()
    assert "  atomic             FAILS in 1 schedule\n" in told.out
    assert "  expected  no rows, or rows 0-1, 1000-1001\n" in told.out
    assert told.out.endswith("driver run-0: commit(1)\n\nFileByFile is not certified.\n")
    assert told.err == ""


def test_the_report_as_json_has_every_guarantee(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    file = tmp_path / "certificate.json"
    arguments = ["certify-sink", f"{BROKEN}:AppendsInCommit", "--first", "--json"]
    assert cli.main([*arguments, str(file)]) == 1
    told = json.loads(file.read_text())
    assert told["module"] == BROKEN
    assert (told["sink"], told["passed"], told["schedules"]) == ("AppendsInCommit", False, 1)
    by_name = {guarantee["name"]: guarantee for guarantee in told["guarantees"]}
    assert by_name["idempotent replay"]["verdict"] == "fails"
    assert by_name["idempotent replay"]["schedule"][-1] == "driver run-1: commit(4)"
    assert (by_name["order"]["verdict"], by_name["fencing"]["verdict"]) == ("holds", "not tried")
    capsys.readouterr()
    assert cli.main([*arguments, "-"]) == 1
    again = capsys.readouterr()
    assert json.loads(again.out)["points"] == told["points"]
    assert again.err.endswith("AppendsInCommit is not certified.\n")


def test_without_a_terminal_progress_is_a_line_now_and_then(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(certify_sink, "PROGRESS_EVERY_S", 0.0)
    assert cli.main(["certify-sink", f"{BROKEN}:AppendsInCommit", "--stride", "200"]) == 1
    lines = capsys.readouterr().err.splitlines()
    assert lines[0] == f"1 of {len(lines)} schedules"
    assert lines[-1] == f"{len(lines)} of {len(lines)} schedules"


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("no_such_module:Case", "there is no module 'no_such_module'"),
        (f"{BROKEN}:NoSuchCase", "is no SinkCase"),
        (f"{BROKEN}:InlineWriter", "is no SinkCase"),
        (f"{BROKEN}:InlineSink", "cannot be made without arguments"),
    ],
)
def test_what_is_no_case_is_refused(
    name: str, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["certify-sink", name]) == 2
    assert message in capsys.readouterr().err


def test_a_stride_is_a_whole_number_above_zero(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["certify-sink", f"{BROKEN}:FileByFile", "--stride", "0"]) == 2
    assert "'0' is not a whole number above 0" in capsys.readouterr().err
