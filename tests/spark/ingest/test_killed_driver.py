"""The driver is killed (-9) between two steps of a checkpoint or a commit, and starts again."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from epochgate.spark.ingest.found_files import files_at
from tests.spark.ingest.simulated import visible, write_source

ROOT = Path(__file__).parents[3]
pytestmark = [pytest.mark.spark, pytest.mark.kills, pytest.mark.slow, pytest.mark.timeout(300)]

STEPS = [
    # The checkpoint is written and not yet valid: it never was.
    ("rename", "checkpoint-*.epochgate", "before"),
    # It is valid, and nothing of it is committed.
    ("rename", "checkpoint-*.epochgate", "after"),
    # Its files are half gathered for the commit.
    ("rename", "part-*.parquet", "after"),
    # The checkpoint is visible, and not announced.
    ("rename", "checkpoint=????????????", "after"),
]

REMOVALS = [
    # A complete checkpoint holds files, and the target does not have them.
    ("rename", "checkpoint-*.epochgate", "after"),
    ("rename", "checkpoint=????????????", "before"),
    # The target has a file, which is still in the source.
    ("remove", "*.csv", "before"),
    # A file has gone, and nothing says so.
    ("remove", "*.csv", "after"),
]


def driver(tmp_path: Path, *step: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [
            sys.executable,
            "-m",
            "tests.spark.ingest.killed_driver",
            str(tmp_path / "in"),
            str(tmp_path / "out"),
            *step,
        ],
        cwd=ROOT,
        env={**os.environ, "TMPDIR": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )


@pytest.mark.parametrize(
    "steps",
    [
        pytest.param(STEPS[1:3], id="between the checkpoint and its commit"),
        pytest.param(STEPS, id="at each named step", marks=pytest.mark.deep),
    ],
)
def test_every_row_once_although_the_driver_is_killed(
    tmp_path: Path, steps: list[tuple[str, ...]]
) -> None:
    rows = write_source(tmp_path, files=6, rows=2000)
    for step in steps:
        killed = driver(tmp_path, *step)
        assert killed.returncode == -signal.SIGKILL, (step, killed.stdout, killed.stderr)
        taken = visible(tmp_path / "out")
        assert taken == sorted(set(taken)), step
    last = driver(tmp_path)
    assert last.returncode == 0, last.stderr
    assert last.stdout.startswith("finished from "), last.stdout
    assert visible(tmp_path / "out") == rows


@pytest.mark.parametrize(
    "steps",
    [
        pytest.param(REMOVALS[::3], id="before the commit and after a removal"),
        pytest.param(REMOVALS, id="at each named step", marks=pytest.mark.deep),
    ],
)
def test_no_file_goes_before_the_target_has_it_although_the_driver_is_killed(
    tmp_path: Path, steps: list[tuple[str, ...]]
) -> None:
    rows = write_source(tmp_path, files=6, rows=1000)
    source, archive = tmp_path / "in", tmp_path / "archive"
    archive.mkdir()
    for step in steps:
        killed = driver(tmp_path, *step)
        assert killed.returncode == -signal.SIGKILL, (step, killed.stdout, killed.stderr)
        taken = visible(tmp_path / "out")
        assert taken == sorted(set(taken)), step
        for moved in archive.iterdir():
            begin = int(moved.stem)
            assert set(range(begin, begin + 1000)) <= set(taken), (step, moved)
    assert len(list(archive.iterdir())) >= 1
    last = driver(tmp_path)
    assert last.returncode == 0, last.stderr
    assert visible(tmp_path / "out") == rows
    assert list(source.iterdir()) == []
    assert len(list(archive.iterdir())) == 6
    found = files_at(str(tmp_path / "out"))
    assert [(one.state, one.rows) for one in found] == [("committed", 1000)] * 6
