"""What the commands around ingestion refuse, and what they say of a job's report."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from epochgate.cli import main, parser
from epochgate.commands.demo import MARK, FolderNotOurs, clean_folder
from epochgate.commands.ingest import options_from
from epochgate.commands.watching import Watcher
from epochgate.runtime.api.reports import CheckpointReport, FailureReport, JobReport, one_line
from epochgate.spark.ingest.chaos import Strike, kill_plan


def test_the_demonstration_replaces_its_own_folder_only(tmp_path: Path) -> None:
    folder = clean_folder(tmp_path / "run")
    assert (folder / MARK).exists()
    (folder / "flights").mkdir()
    (folder / "flights" / "old.parquet").touch()
    (folder / "notes.txt").touch()
    clean_folder(folder)
    assert sorted(path.name for path in folder.iterdir()) == [MARK, "notes.txt"]
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "source").mkdir()
    with pytest.raises(FolderNotOurs):
        clean_folder(tmp_path / "mine")
    assert (tmp_path / "mine" / "source").exists()


@pytest.mark.parametrize("arguments", [("--kills", "0"), ("--minutes", "0"), ("--keep", ".")])
def test_soak_refuses_what_cannot_be_meant(
    arguments: tuple[str, str], capfd: pytest.CaptureFixture[str]
) -> None:
    assert main(["soak", *arguments]) == 2
    assert arguments[0].removeprefix("--") in capfd.readouterr().err


def test_each_event_of_a_job_is_told_once() -> None:
    report = JobReport()
    handle: Any = SimpleNamespace(report=report, rows_committed=0)
    watcher = Watcher(handle)
    report.warnings.append("the disk is slow")
    report.metrics[0] = {"rows_read": 30}
    report.checkpoints.append(CheckpointReport(1, True, 0.25, 1500))
    report.checkpoints.append(CheckpointReport(2, False, 0.5, 0, "too late"))
    report.failures.append(FailureReport(1.0, 3, 1, "Traceback\nits process was killed"))
    watcher.note_strike(Strike("executor", 77, (1, 3), 0.5))
    lines = [line.split(" s  ", 1)[1] for line in watcher.lines()]
    assert lines == [
        "warning: the disk is slow",
        "killed (-9) executor 77, which ran subtasks 1, 3",
        "subtask 3 goes back to its last checkpoint: its process was killed",
        "checkpoint 1 complete: 0.25 s, 1.5 kB; 0 rows committed, 0 rows/s",
        "checkpoint 2 aborted: too late",
    ]
    assert watcher.lines() == []
    report.metrics[0] = {"rows_read": 20}
    watcher.lines()
    assert watcher.rows_read == 50


def test_a_long_reason_is_cut() -> None:
    assert len(one_line("word " * 100)) < 200
    assert one_line("") == ""
    assert one_line("KeyError: 'x'\n  File \"rules.py\", line 3, in clean\n    x['x']") == (
        "KeyError: 'x'"
    )


def test_a_plan_of_kills_holds_workers_executors_and_stops() -> None:
    kinds = kill_plan(16, seed=3, has_executors=True, stops=True)
    assert (kinds.count("executor"), kinds.count("stop")) == (4, 2)
    assert set(kill_plan(9, seed=3, has_executors=False)) == {"worker"}


def test_what_the_command_line_says_of_files_reaches_the_job() -> None:
    arguments = ["ingest", "in", "out", "--on-changed-file", "new", "--settle-s", "2.5"]
    options = options_from(parser().parse_args(arguments))
    assert (options.on_changed_file, options.settle_s) == ("new", 2.5)
    unsaid = options_from(parser().parse_args(arguments[:3]))
    assert (unsaid.on_changed_file, unsaid.settle_s) == (None, None)
