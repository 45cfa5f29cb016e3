"""`epochgate unread` lists what lies in a source and is not read."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from epochgate.cli import main
from epochgate.spark.files.finding import ADVICE


def test_paths_stand_below_their_reasons(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "a.csv").write_text("x\n1\n")
    assert main(["unread", str(tmp_path)]) == 0
    assert capsys.readouterr().out == "all files are read\n"
    for name in ("_SUCCESS", "b\x1b[2J.csv.tmp", "_a.csv"):
        (tmp_path / name).write_text("x\n1\n")
    assert main(["unread", str(tmp_path)]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "hidden: its name begins with '.' or '_'",
        f"  {tmp_path}/_SUCCESS",
        f"  {tmp_path}/_a.csv",
        f"unfinished: {ADVICE['unfinished']}",
        f"  {tmp_path}/b\\x1b[2J.csv.tmp",
    ]
    assert main(["unread", str(tmp_path), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)[0] == {
        "path": f"{tmp_path}/_SUCCESS",
        "reason": "hidden",
    }


def test_a_source_that_is_not_there_is_misuse(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["unread", str(tmp_path / "nowhere")]) == 2
    assert "does not exist" in capsys.readouterr().err


def test_an_argument_that_is_no_utf_8_is_misuse(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["ingest", "in", "caf\udce9"]) == 2
    assert capsys.readouterr().err == (
        "epochgate: argument caf\\udce9 has bytes that are no UTF-8; rename it\n"
    )
