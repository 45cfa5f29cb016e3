"""The refusals of the commands around ingestion, and what they say of a job's report."""

from __future__ import annotations

import logging
from dataclasses import fields
from pathlib import Path

import pytest

from epochgate.chaos.striking import Strike, kill_plan
from epochgate.cli import parser
from epochgate.commands.demo import MARK, FolderNotOurs, clean_folder
from epochgate.commands.ingest import exit_code, options_from
from epochgate.commands.progress import LogLines, Progress
from epochgate.commands.watching import logging_to
from epochgate.runtime import CheckpointEnded, Committed, JobStarted, SubtaskFailed, Warned
from epochgate.runtime.api.reports import one_line
from epochgate.spark.ingest.run import IngestResult


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


@pytest.mark.parametrize(
    ("state", "rows_rejected", "is_interrupted", "code"),
    [
        ("finished", 0, False, 0),
        ("finished", 0, True, 0),
        ("finished", 2, False, 7),
        ("failed", 2, False, 1),
        ("canceled", 0, True, 130),
        ("canceled", 0, False, 1),
    ],
)
def test_the_exit_code_of_a_run(
    state: str, rows_rejected: int, is_interrupted: bool, code: int
) -> None:
    none = dict.fromkeys((one.name for one in fields(IngestResult)), None)
    found = none | {"state": state, "rows_rejected": rows_rejected, "newly_skipped": []}
    arguments = parser().parse_args(["ingest", "in", "out", "--exit-code-left-out", "7"])
    result = IngestResult(**found)  # type: ignore[arg-type]  # of the rest nothing is asked
    left_out = arguments.exit_code_left_out
    assert exit_code(result, left_out, is_interrupted=is_interrupted) == code


def told(progress: Progress) -> list[str]:
    return [line.split(" s  ", 1)[1] for line in progress.lines()]


def completed(number: int, waiting: int, rows: int = 0) -> CheckpointEnded:
    source = {"files_found": 5, "files_waiting": float(waiting), "bytes_waiting": waiting * 1000}
    figures = {"rows_read": rows, "files_open": 0.0, "bytes_open": 0}
    if waiting:
        figures |= {"files_open": 1.0, "bytes_open": 400}
    return CheckpointEnded(
        0.0, number, "completed", 0.25, 1500, figures=figures, coordinators={"source": source}
    )


def committed(number: int, rows: int, committables: int = 1) -> Committed:
    return Committed(0.0, (number,), 0.01, 0, committables, {"rows_committed": rows})


def test_what_happens_to_a_job_is_told_once_and_in_order() -> None:
    progress = Progress()
    progress.on_event(JobStarted(0.0, "job", "run", 2, 0, 1, "host"))
    progress.on_event(Warned(0.0, "the disk is slow"))
    progress.note(str(Strike("executor", 77, (1, 3), 0.5)))
    progress.on_event(SubtaskFailed(0.0, 3, 1, "Traceback\nits process was killed", 0.2))
    progress.on_event(completed(1, waiting=2, rows=30))
    progress.on_event(committed(1, 30))
    progress.on_event(CheckpointEnded(0.0, 2, "aborted", 0.5, reason="too late"))
    assert [line.replace("150 rows/s", "R rows/s") for line in told(progress)] == [
        "warning: the disk is slow",
        "killed (-9) executor 77, which ran subtasks 1, 3",
        "subtask 3 failed in attempt 1, restarts in 0.2 s: its process was killed",
        "checkpoint 1: 0.25 s, 1.5 kB; 2 of 5 files, 2.4 kB to go, 30 rows committed, R rows/s",
        "checkpoint 2 aborted after 0.50 s: too late",
    ]
    assert progress.lines() == []


def test_the_commit_of_an_earlier_starts_checkpoint_tells_no_figures_that_are_not_known() -> None:
    progress = Progress()
    progress.on_event(JobStarted(0.0, "job", "run", 2, 9, 1, "host"))
    figures = {"rows_committed": 0, "rows_visible": 3202}
    progress.on_event(Committed(0.0, (9,), 0.01, 0, 4, figures))
    assert told(progress) == ["checkpoint 9, of an earlier start: 3,202 rows in the target"]
    figures = {"rows_committed": 12, "rows_visible": 3214}
    progress.on_event(completed(10, waiting=0, rows=12))
    progress.on_event(Committed(0.0, (10,), 0.01, 0, 1, figures))
    assert told(progress)[0].startswith(
        "checkpoint 10: 0.25 s, 1.5 kB; 5 of 5 files, 12 rows committed, "
    )


def test_a_checkpoint_that_an_earlier_start_left_uncommitted_counts_its_rows() -> None:
    progress = Progress()
    figures = {"rows_committed": 40, "rows_visible": 3242}
    progress.on_event(Committed(0.0, (9,), 0.01, 0, 4, figures))
    assert told(progress) == [
        "checkpoint 9, of an earlier start: 40 rows committed, 3,242 rows in the target"
    ]


def test_a_followed_source_with_nothing_new_is_one_line_however_long_it_lasts() -> None:
    progress = Progress(is_followed=True)
    progress.on_event(completed(1, waiting=0, rows=30))
    progress.on_event(committed(1, 30))
    assert len(told(progress)) == 1
    for number in range(2, 50):
        progress.on_event(completed(number, waiting=0, rows=30))
        progress.on_event(committed(number, 30, committables=0))
    assert told(progress) == ["5 of 5 files, 30 rows committed; waiting for new files"]
    progress.on_event(completed(50, waiting=0, rows=40))
    progress.on_event(committed(50, 40))
    assert told(progress)[0].startswith("checkpoint 50: ")


def test_rejected_rows_are_told_with_the_commit() -> None:
    progress = Progress()
    progress.on_event(Committed(0.0, (1,), 0.01, 0, 1, {"rows_committed": 9, "rows_rejected": 2}))
    assert told(progress)[0].endswith(", 2 rows rejected")


def test_quiet_leaves_warnings_alone() -> None:
    progress = Progress(is_quiet=True)
    progress.on_event(SubtaskFailed(0.0, 3, 1, "killed", 0.2))
    progress.on_event(completed(1, waiting=2))
    progress.on_event(committed(1, 30))
    progress.on_event(Warned(0.0, "the disk is slow"))
    assert told(progress) == ["warning: the disk is slow"]


def test_what_epochgate_logs_while_a_command_runs_is_a_line_and_the_users_logging_stays() -> None:
    progress, logger = Progress(), logging.getLogger("epochgate")
    before = (logger.level, logger.propagate, list(logger.handlers))
    with logging_to(LogLines(progress), "error"):
        logging.getLogger("epochgate.spark.transport").warning("turned away the task at %s", "x")
        logging.getLogger("epochgate.job").warning("an event", extra={"event": Warned(0.0, "")})
        logging.getLogger("py4j.clientserver").error("Error while sending or receiving.")
    assert told(progress) == ["warning: turned away the task at x"]
    assert (logger.level, logger.propagate, list(logger.handlers)) == before


def test_rows_are_counted_over_the_attempts_of_a_subtask() -> None:
    progress = Progress()
    for rows in (30, 20):
        progress.count_rows({0: {"rows_read": rows}})
    assert progress.rows_read == 50


def test_a_long_reason_is_cut() -> None:
    assert len(one_line("word " * 100)) < 200
    assert one_line("") == ""
    assert one_line("KeyError: 'x'\n  File \"rules.py\", line 3, in clean\n    x['x']") == (
        "KeyError: 'x'"
    )
    trace = 'Traceback (most recent call last):\n  File "a.py", line 3, in b\n'
    assert one_line(f"{trace}OSError: full\n\nand then:\n\n{trace}Lost: it\n  was: x\nGo on") == (
        "Lost: it"
    )


def test_a_plan_of_kills_holds_workers_executors_and_stops() -> None:
    kinds = kill_plan(16, seed=3, has_executors=True, stops=True)
    assert (kinds.count("executor"), kinds.count("stop")) == (4, 2)
    assert set(kill_plan(9, seed=3, has_executors=False)) == {"worker"}


def test_a_plan_of_kills_holds_hangs_where_they_are_wanted() -> None:
    kinds = kill_plan(16, seed=3, has_executors=True, stops=True, hangs=True)
    assert {kind: kinds.count(kind) for kind in set(kinds)} == {
        "worker": 8,
        "executor": 4,
        "stop": 2,
        "hang": 2,
    }


def test_limits_of_saves_and_commits_reach_the_job_from_the_command_line() -> None:
    arguments = ["ingest", "in", "out", "--store-timeout", "1500ms", "--commit-timeout", "2m"]
    options = options_from(parser().parse_args(arguments))
    assert (options.store_timeout_s, options.commit_timeout_s) == (1.5, 120.0)
    unsaid = options_from(parser().parse_args(arguments[:3]))
    assert (unsaid.store_timeout_s, unsaid.commit_timeout_s) == (600.0, 3600.0)


def test_what_the_command_line_says_of_files_reaches_the_job() -> None:
    arguments = ["ingest", "in", "out", "--on-changed-file", "new", "--settle-s", "2.5"]
    options = options_from(parser().parse_args(arguments))
    assert (options.on_changed_file, options.settle_s) == ("new", 2.5)
    unsaid = options_from(parser().parse_args(arguments[:3]))
    assert (unsaid.on_changed_file, unsaid.settle_s) == (None, None)
