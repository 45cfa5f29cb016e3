"""`epochgate savepoint` says where the savepoint is, what it holds, and why there is none."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from epochgate import cli
from epochgate.runtime.savepoints import read_savepoint
from epochgate.runtime.store import DirectoryCheckpointStore
from tests.runtime.store.mediums import JOB, checkpoint_of


@pytest.fixture
def checkpoints(tmp_path: Path) -> Path:
    """Of a job that has ended."""
    with DirectoryCheckpointStore(tmp_path / "orders", job_id=JOB) as store:
        store.write_file("known-files/one.segment", b"known")
        store.save(checkpoint_of(7))
    return tmp_path / "orders"


def test_it_tells_the_place_what_is_there_and_how_to_start_from_it(
    checkpoints: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    place = tmp_path / "mine"
    assert cli.main(["savepoint", str(checkpoints), "--to", str(place)]) == 0
    shown = capsys.readouterr().out.splitlines()
    assert shown[0] == f"savepoint      {place}"
    assert shown[1].startswith("holds          checkpoint 7 of job orders, ")
    assert shown[1].endswith("; copied, since the job has ended")
    assert shown[2].startswith(f"start from it  from_savepoint='{place}', with a new directory")
    assert cli.main(["checkpoints", "show", str(place)]) == 0
    assert capsys.readouterr().out.startswith("checkpoint 7 of job orders\n")


def test_without_a_place_it_is_beside_the_checkpoints(
    checkpoints: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["savepoint", str(checkpoints), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["path"].startswith(f"{checkpoints}.savepoints/000000000007-")
    assert not told["is_of_running_job"]


def test_one_of_the_checkpoints_that_the_job_keeps_is_copied_while_it_runs(
    checkpoints: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with DirectoryCheckpointStore(checkpoints, job_id=JOB) as store:
        store.save(checkpoint_of(8))
        place = tmp_path / "mine"
        line = ["savepoint", str(checkpoints), "--checkpoint"]
        assert cli.main([*line, "7", "--to", str(place)]) == 0
        assert "holds          checkpoint 7 of job orders" in capsys.readouterr().out
        assert read_savepoint(str(place)).checkpoint.subtasks == checkpoint_of(7).subtasks
        assert cli.main([*line, "6"]) == 2
        assert "holds no checkpoint 6; its job keeps 7, 8" in capsys.readouterr().err


def test_a_place_that_is_taken_and_a_job_that_is_not_there_are_misuse(
    checkpoints: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["savepoint", str(checkpoints), "--to", str(tmp_path)]) == 2
    assert "is there already" in capsys.readouterr().err
    assert cli.main(["savepoint", str(tmp_path / "nothing")]) == 2
    assert "holds no checkpoints of a job" in capsys.readouterr().err
