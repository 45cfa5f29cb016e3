"""The history of a job's runs tells, live and after the fact, what a person asks; it never holds a
job up, and it never grows without bound.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from epochgate.cli import main
from epochgate.runtime import (
    CheckpointEnded,
    Committed,
    JobEnded,
    JobEvent,
    JobRestarts,
    JobStarted,
    SubtaskFailed,
    SubtaskRestarted,
    SubtasksUp,
    Warned,
)
from epochgate.runtime.observing.history import (
    FORMAT,
    History,
    HistoryFormatUnknown,
    read_history,
    recorded_runs,
)
from epochgate.runtime.observing.history_files import file_name
from epochgate.runtime.observing.run_summary import KEPT_MAX, RunSummary
from epochgate.runtime.observing.status import (
    NothingToSee,
    checkpoint_directory_in,
    checkpoints_in,
    status_of,
)
from epochgate.runtime.store import CheckpointStoreInUse, DirectoryCheckpointStore
from epochgate.runtime.store.claim import holder_of

NOW = 1000.0


def started(run_id: str = "run-1", at: float = 10.0, checkpoint: int = 0) -> JobStarted:
    return JobStarted(at, "job", run_id, 2, checkpoint, 4711, "vm")


def completed(number: int, at: float = 0.0) -> CheckpointEnded:
    return CheckpointEnded(
        at or 10.0 + number,
        number,
        "completed",
        0.25,
        1500,
        subtasks_s={0: 0.1, 1: 0.2},
        figures={"rows_read": 100 * number, "files_open": 1},
        coordinators={"source": {"files_found": 9, "files_waiting": 3, "bytes_waiting": 5000}},
    )


def committed(number: int) -> Committed:
    figures = {"rows_committed": 90 * number, "rows_visible": 900, "rows_rejected": 7}
    return Committed(10.0 + number, (number,), 0.01, 0, 2, figures)


def ended(at: float = 40.0, state: str = "finished", reason: str | None = None) -> JobEnded:
    return JobEnded(at, state, reason, 2, at - 10.0, 2, 0, 0, 0)


WHOLE: tuple[JobEvent, ...] = (
    started(),
    SubtasksUp(11.0, 2, 0, 1.0),
    completed(1),
    committed(1),
    SubtaskFailed(12.0, 1, 0, "Traceback\nits process was killed", 0.2),
    SubtaskRestarted(12.5, 1, 1, 1, 0.5, "vm", 4712),
    Warned(12.6, "the disk is slow"),
    completed(2),
    committed(2),
)


def write(directory: Path, *events: JobEvent, **settings: Any) -> History:
    history = History(str(directory / "history"), **settings)
    for event in events:
        history.on_event(event)
    return history


def summed_up(*events: JobEvent) -> RunSummary:
    run = RunSummary()
    for event in events:
        run.apply(json.loads(json.dumps(event.to_json())))
    return run


def test_what_is_read_is_what_was_told(tmp_path: Path) -> None:
    write(tmp_path, *WHOLE).close()
    [run] = read_history(str(tmp_path / "history"))
    assert run == summed_up(*WHOLE)
    assert (run.job_id, run.state, run.parallelism, run.pid) == ("job", "running", 2, 4711)
    assert (run.checkpoints_completed, run.committed["rows_committed"]) == (2, 180)
    assert run.attempts == {"1": 1}
    assert run.failures[0]["reason"] == "its process was killed"
    assert (run.warnings, run.resumes_from) == (["the disk is slow"], 2)
    lines = (tmp_path / "history" / "history.jsonl").read_text().splitlines()
    assert json.loads(lines[0]) == {"event": "History", "format": FORMAT}
    assert len(lines) == 1 + len(WHOLE)


def test_each_start_is_a_run_of_its_own(tmp_path: Path) -> None:
    write(tmp_path, *WHOLE, ended(), epoch=1).close()
    write(tmp_path, started("run-2", 50.0, checkpoint=2), epoch=2).close()
    first, second = read_history(str(tmp_path / "history"))
    assert (first.state, first.ended_at, first.epoch) == ("finished", 40.0, 1)
    assert (second.state, second.resumed_from, second.epoch) == ("starting", 2, 2)
    assert second.checkpoints_completed == 0


def test_a_history_is_bounded_and_counts_what_it_has_dropped(tmp_path: Path) -> None:
    history = write(tmp_path, *WHOLE, file_bytes_max=4000, files_max=3)
    for number in range(3, 300):
        history.on_event(completed(number))
        history.on_event(Warned(400.0, f"warning {number}"))
    history.close()
    folder = tmp_path / "history"
    assert sorted(os.listdir(folder)) == sorted(map(file_name, range(3)))
    assert max(path.stat().st_size for path in folder.iterdir()) <= 6000
    [run] = read_history(str(folder))
    assert (run.checkpoints_completed, run.warnings_count) == (299, 298)
    assert (run.job_id, run.attempts) == ("job", {"1": 1})
    assert len(run.checkpoints) == KEPT_MAX


def test_the_newest_file_alone_tells_of_the_whole_run(tmp_path: Path) -> None:
    history = write(tmp_path, *WHOLE, file_bytes_max=4000)
    for number in range(3, 100):
        history.on_event(completed(number))
    history.close()
    shutil.copytree(tmp_path / "history", tmp_path / "left")
    for path in (tmp_path / "left").iterdir():
        if path.name != file_name(0):
            path.unlink()
    assert read_history(str(tmp_path / "left")) == read_history(str(tmp_path / "history"))


def test_a_line_that_was_cut_off_costs_that_line_alone(tmp_path: Path) -> None:
    write(tmp_path, *WHOLE).close()
    path = tmp_path / "history" / file_name(0)
    path.write_bytes(path.read_bytes()[:-20])
    write(tmp_path, started("run-2", 50.0), completed(7)).close()
    first, second = read_history(str(tmp_path / "history"))
    assert (first.checkpoints_completed, first.committed_upto) == (2, 1)
    assert (second.run_id, second.checkpoints_completed) == ("run-2", 1)


def test_a_disk_that_fails_is_said_once_and_made_good_when_it_works_again(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "history").write_text("in the way")
    history = write(tmp_path, *WHOLE)
    assert len(caplog.records) == 1
    assert "cannot be written" in caplog.messages[0]
    (tmp_path / "history").unlink()
    history.on_event(ended())
    history.close()
    assert read_history(str(tmp_path / "history")) == [summed_up(*WHOLE, ended())]
    assert len(caplog.records) == 1


def test_a_history_of_another_format_is_refused(tmp_path: Path) -> None:
    write(tmp_path, *WHOLE).close()
    path = tmp_path / "history" / file_name(0)
    path.write_text(path.read_text().replace(f'"format":{FORMAT}', '"format":99'))
    with pytest.raises(HistoryFormatUnknown, match="has format 99"):
        read_history(str(tmp_path / "history"))


def test_what_a_later_release_adds_is_passed_over() -> None:
    run = summed_up(*WHOLE)
    run.apply({"event": "Rescaled", "at": 50.0, "parallelism": 8})
    assert run.last_at == 50.0
    assert RunSummary.from_json({**run.to_json(), "mood": "good"}) == run


# how a job is


def store(directory: Path) -> DirectoryCheckpointStore:
    return DirectoryCheckpointStore(directory, job_id="job")


def test_a_run_without_an_end_runs_while_its_driver_lives_and_was_killed_otherwise(
    tmp_path: Path,
) -> None:
    with store(tmp_path) as held:
        write(tmp_path, *WHOLE, epoch=held.epoch).close()
        assert status_of(str(tmp_path), now=NOW).state == "running"
    status = status_of(str(tmp_path), now=NOW)
    assert (status.state, status.is_well()) == ("killed", False)


def test_a_driver_that_has_said_nothing_yet_is_starting(tmp_path: Path) -> None:
    with store(tmp_path) as held:
        write(tmp_path, *WHOLE, ended(), epoch=held.epoch).close()
        assert status_of(str(tmp_path), now=NOW).state == "finished"
    with store(tmp_path):
        status = status_of(str(tmp_path), now=NOW)
        assert (status.state, status.run) == ("starting", None)
        assert [one.state for one in status.earlier] == ["finished"]
    assert status_of(str(tmp_path), now=NOW).state == "finished"


def test_a_job_that_goes_back_as_a_whole_is_restarting_until_all_are_up(tmp_path: Path) -> None:
    with store(tmp_path) as held:
        history = write(tmp_path, *WHOLE, JobRestarts(14.0, "no", 1.0), epoch=held.epoch)
        assert status_of(str(tmp_path), now=NOW).state == "restarting"
        history.on_event(SubtasksUp(16.0, 2, 2, 2.0))
        assert status_of(str(tmp_path), now=NOW).state == "running"
        history.close()


def test_a_look_changes_nothing_and_refuses_no_driver(tmp_path: Path) -> None:
    assert not holder_of(str(tmp_path)).is_held
    assert os.listdir(tmp_path) == []
    with store(tmp_path):
        assert holder_of(str(tmp_path)).is_held
        with pytest.raises(CheckpointStoreInUse):
            store(tmp_path)
    found = holder_of(str(tmp_path))
    assert (found.is_held, found.claim and found.claim.pid) == (False, os.getpid())
    store(tmp_path).close()


HOLD = """
import sys, time
from epochgate.runtime.observing.history import History
from epochgate.runtime.store import DirectoryCheckpointStore
from tests.runtime.test_history import WHOLE
store = DirectoryCheckpointStore(sys.argv[1], job_id="job")
history = History(sys.argv[1] + "/history", epoch=store.epoch)
for event in WHOLE:
    history.on_event(event)
print("there", flush=True)
sys.stdin.read()
"""


def test_a_driver_that_was_killed_is_shown_as_that_and_its_start_again_as_new(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    root = Path(__file__).parents[2]
    driver = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(tmp_path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        cwd=root,
        env={**os.environ, "PYTHONPATH": str(root)},
    )
    try:
        assert driver.stdout is not None
        assert driver.stdout.readline() == b"there\n"
        assert main(["status", str(tmp_path)]) == 0
        assert capsys.readouterr().out.startswith("job: running after ")
    finally:
        driver.kill()
        driver.communicate()
    assert main(["status", str(tmp_path)]) == 1
    shown = capsys.readouterr().out
    assert shown.startswith("job: killed after ")
    assert "the next start of the job begins from checkpoint 2" in shown


@pytest.mark.parametrize(
    ("is_on_input", "mode"), [(True, "on input"), (False, "when a checkpoint is completed")]
)
def test_the_steps_of_commits_are_shown_with_their_mode(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], is_on_input: bool, mode: str
) -> None:
    begun = replace(started(), topology="a step -> another", commit_on_input=is_on_input)
    write(tmp_path, begun, ended()).close()
    store(tmp_path).close()
    assert main(["status", str(tmp_path)]) == 0
    assert f"\ncommit       {mode}: a step -> another\n" in capsys.readouterr().out
    [run] = read_history(str(tmp_path / "history"))
    assert (run.topology, run.commit_on_input) == ("a step -> another", is_on_input)


@pytest.mark.parametrize("named", ["target", ".target.epochgate", ".target.epochgate/checkpoints"])
def test_a_job_is_found_by_target_working_directory_or_checkpoints(
    tmp_path: Path, named: str
) -> None:
    checkpoints = tmp_path / ".target.epochgate" / "checkpoints"
    (tmp_path / "target").mkdir()
    store(checkpoints).close()
    assert checkpoint_directory_in(str(tmp_path / named)) == str(checkpoints)
    assert checkpoints_in(f"delta:{tmp_path / named}") == str(checkpoints)


def test_a_url_of_another_kind_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["status", "hdfs://host/table"]) == 2
    assert "is a URL of no object store that epochgate knows" in capsys.readouterr().err


def test_a_place_without_a_job_is_misuse_with_a_hint(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(NothingToSee):
        checkpoint_directory_in(str(tmp_path))
    assert main(["status", str(tmp_path)]) == 2
    assert "--checkpoint-dir" in capsys.readouterr().err


def test_the_text_answers_what_a_person_asks(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(tmp_path, *WHOLE, ended()).close()
    write(
        tmp_path,
        *WHOLE,
        CheckpointEnded(13.0, 3, "aborted", 0.5, reason="too late"),
        ended(50.0, "failed", "no space left"),
    ).close()
    assert main(["status", str(tmp_path)]) == 1
    shown = capsys.readouterr().out
    for part in (
        "job: failed after 40.0 s: no space left",
        "files          5 of 9, 5.0 kB to go",
        "rows           180 committed, 900 in the target",
        "rows rejected  7",
        "checkpoints    2 completed, 1 aborted; the last ",
        "failovers      1 of one subtask, 0 of all",
        "warnings       1\n               the disk is slow",
        "aborted: too late",
        "subtask  its part of checkpoint 2  attempt",
        "1        0.200 s                   1",
        "subtask 1 in attempt 0: its process was killed",
        "finished  after 30.0 s, 2 checkpoints, 180 rows committed",
    ):
        assert part in shown, shown


def test_the_json_is_one_object(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(tmp_path, *WHOLE, ended()).close()
    assert main(["status", str(tmp_path), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["state"], found["is_held"]) == ("finished", False)
    assert found["run"]["checkpoints_completed"] == 2
    assert found["run"]["last_checkpoint"]["subtasks_s"] == {"0": 0.1, "1": 0.2}


def test_an_idle_job_writes_little_and_its_figures_stay(tmp_path: Path) -> None:
    history = write(tmp_path, *WHOLE)
    before = (tmp_path / "history" / file_name(0)).stat().st_size
    for number in range(3, 103):
        history.on_event(replace(completed(2), checkpoint_id=number))
        history.on_event(replace(committed(2), checkpoint_ids=(number,), committables=0))
    history.close()
    grown = (tmp_path / "history" / file_name(0)).stat().st_size - before
    assert grown < 100 * 250
    [run] = read_history(str(tmp_path / "history"))
    assert (run.checkpoints_completed, run.figures["rows_read"]) == (102, 200)


def test_a_job_that_counts_nothing_is_shown_too(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    bare = replace(completed(1), figures={}, coordinators={})
    write(tmp_path, started(), bare, replace(committed(1), figures={})).close()
    [run] = read_history(str(tmp_path / "history"))
    assert (run.committed_upto, run.committed, run.figures) == (1, {}, {})
    assert main(["status", str(tmp_path)]) == 1
    assert "killed" in capsys.readouterr().out


def test_a_commit_whose_figures_are_those_of_the_checkpoint_has_them(tmp_path: Path) -> None:
    figures = {"rows": 5}
    events = [replace(completed(1), figures=figures), replace(committed(1), figures=figures)]
    write(tmp_path, started(), *events).close()
    [run] = read_history(str(tmp_path / "history"))
    assert run.committed == run.figures == figures


def test_a_checkpoint_keeps_the_figures_of_its_end(tmp_path: Path) -> None:
    same = replace(completed(2), figures=completed(1).figures)
    write(tmp_path, started(), completed(1), same, completed(3)).close()
    [run] = recorded_runs(str(tmp_path / "history"))
    assert [one["figures"]["rows_read"] for one in run.checkpoints] == [100, 100, 300]
