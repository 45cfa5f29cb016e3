"""The output of `epochgate compact`, for people and for programs, and its exit code."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from epochgate.cli import main
from tests.spark.compaction.targets import Rows, claimed, committed, rows_in, small_files


def printed(capsys: pytest.CaptureFixture[str], *arguments: str, code: int = 0) -> list[str]:
    assert main(["compact", *arguments]) == code
    return capsys.readouterr().out.splitlines()


def test_it_says_for_each_partition_what_has_changed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    target = claimed(tmp_path / "out", "r1", None)
    for n in range(1, 7):
        rows: Rows = {"x": [n, n, n], "c": ["a", "a", "b"]}
        committed(target, "r1", n, rows, partition_by=("c",))
    target.release()
    path = str(tmp_path / "out")
    dry = printed(capsys, path, "--dry-run")
    assert dry[0] == f"{path}: 18 files would become about 11; 9 rows in these partitions:"
    assert dry[1].split() == ["partition", "files", "bytes"]
    assert [line.split()[:4] for line in dry[2:4]] == [
        ["c=a", "6", "->", "~1"],
        ["c=b", "3", "->", "~1"],
    ]
    assert dry[4] == "the newest 3 checkpoints stay as they are (--keep-checkpoints)"
    lines = printed(capsys, path)
    assert lines[0] == f"{path}: 18 files became 11; 9 rows in these partitions:"
    assert [line.split()[:4] for line in lines[2:4]] == [
        ["c=a", "6", "->", "1"],
        ["c=b", "3", "->", "1"],
    ]
    again = printed(capsys, path)
    assert again[0].startswith(f"{path}: nothing to merge; 11 files, ")
    last = printed(capsys, path, "--keep-checkpoints", "1", "--json")
    assert json.loads(last[0])["kept_checkpoints"] == 1
    assert "the newest checkpoint stays as it is (--keep-checkpoints)" in printed(
        capsys, path, "--keep-checkpoints", "1"
    )


def test_options_reach_the_compaction(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = small_files(tmp_path / "out")
    path = str(tmp_path / "out")
    assert "nothing to merge" in printed(capsys, path, "--min-files", "7")[0]
    assert "nothing to merge" in printed(capsys, path, "--file-size", "100B")[0]
    url = (tmp_path / "out").as_uri()
    assert "12 files became 1;" in printed(capsys, url, "--keep-checkpoints", "0")[0]
    assert rows_in(tmp_path / "out") == rows


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--keep-for", "1d"], "is a directory"),
        (["--min-files", "1"], "give 2 or more"),
        (["--file-size", "128"], "has no unit"),
        ([], "was not written by epochgate"),
    ],
)
def test_what_cannot_be_is_told_in_one_message(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], said: str
) -> None:
    assert main(["compact", str(tmp_path / "none"), *arguments]) == 2
    error = capsys.readouterr().err
    assert error.startswith("epochgate compact: ")
    assert said in error
