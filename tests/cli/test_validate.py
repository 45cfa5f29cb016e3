"""`epochgate validate` says which traces are accepted, and names the first wrong line of others."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from epochgate import cli
from tests.traces.stories import told


@pytest.fixture(scope="module")
def story(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return told(tmp_path_factory.mktemp("story"))


def test_accepted_traces_are_listed_and_summed_up(
    story: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["validate", str(story)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[1] == f"{story}/task-0-1: task 0 (identity 1) of story, 43 events"
    assert lines[-1].startswith("PASS: 4 of 4 traces accepted, 1,025 events in ")
    assert lines[-1].endswith("messages between driver and 3 tasks agree")


def test_quiet_says_the_sum_alone(story: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["validate", "--quiet", str(story)]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 1


def test_a_refused_trace_is_shown_with_file_line_and_event(
    story: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = (story / "driver.000001.jsonl").read_bytes().splitlines(keepends=True)
    path = tmp_path / "driver.000001.jsonl"
    path.write_bytes(b"".join([*lines[:5], *lines[6:]]))
    assert cli.main(["validate", str(path)]) == 1
    assert capsys.readouterr().out.splitlines()[:2] == [
        f"{path}:6: event 5: event 5 is missing: a line was lost, or moved [missing]",
        "    driver of story, 4 events before were accepted",
    ]


def test_json_is_one_object_with_the_verdict_of_each(
    story: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["validate", "--json", str(story)]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["is_accepted"] is True
    assert found["joined"] == 3
    assert [one["events"] for one in found["traces"]] == [764, 43, 88, 130]


def test_a_trace_that_was_cut_off_is_refused_where_all_must_be_whole(
    story: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data = (story / "task-0-1.000001.jsonl").read_bytes()
    path = tmp_path / "task-0-1.000001.jsonl"
    path.write_bytes(data[:-40])
    assert cli.main(["validate", str(path)]) == 0
    assert (
        "cut off within a line, after event 43: its process was killed" in capsys.readouterr().out
    )
    assert cli.main(["validate", "--whole", str(path)]) == 1
    assert "[cut]" in capsys.readouterr().out


def test_no_trace_is_misuse(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["validate", str(tmp_path)]) == 2
    assert "there is no trace in" in capsys.readouterr().err
