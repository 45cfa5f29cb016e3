"""An ingestion's savepoint has its known files with it, and skips no commit where it goes on."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from epochgate.fsm.inside import machines_behind
from epochgate.runtime.savepoints import CheckpointsNotFresh, Savepoint, SavepointOfAnotherJob
from epochgate.runtime.savepoints.asking import copy_newest
from epochgate.spark.ingest.plan import checkpoint_directory_of, plan_ingest
from epochgate.spark.parquet_sink import TargetAhead
from tests.spark.ingest.simulated import SimulatedIngest, options_for, visible, write_source


def stopped_with_savepoint(tmp_path: Path, place: Path) -> Savepoint:
    """Read some of the source, and stop with a last checkpoint, of which a savepoint is made."""
    first = SimulatedIngest(options_for(tmp_path))
    job = machines_behind(first.master.job)
    first.run(until=lambda: first.plan.committer.rows_committed > 0 and job.request.state == "idle")
    asked = first.master.request_savepoint(str(place))
    first.master.stop()
    first.run()
    assert first.leave().state == "finished"
    return asked.result(0)


@pytest.mark.parametrize("parallelism", [1, 2, 3])
def test_it_goes_on_in_another_directory_when_the_first_is_gone(
    tmp_path: Path, parallelism: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("epochgate.spark.files.known.RECENT_MAX", 2)
    rows = write_source(tmp_path, files=6)
    made = stopped_with_savepoint(tmp_path, tmp_path / "savepoint")
    taken = visible(tmp_path / "out")
    assert 0 < len(taken) < len(rows)
    assert list((tmp_path / "savepoint" / "known-files").iterdir())
    shutil.rmtree(checkpoint_directory_of(options_for(tmp_path)))
    rows += write_source(tmp_path, files=2, first=1000)
    options = replace(
        options_for(tmp_path),
        parallelism=parallelism,
        checkpoint_directory=str(tmp_path / "fresh"),
        from_savepoint=str(tmp_path / "savepoint"),
    )
    second = SimulatedIngest(options, name="second")
    assert second.plan.resumes_from == made.checkpoint_id
    second.run()
    assert second.leave().state == "finished"
    assert visible(tmp_path / "out") == rows
    third = SimulatedIngest(options, name="third")
    assert (third.plan.resumes_from or 0) > made.checkpoint_id, "the same start goes on"
    third.run()
    assert third.leave().rows_committed == 0
    assert visible(tmp_path / "out") == rows


def test_a_copy_of_the_newest_checkpoint_does_as_well(tmp_path: Path) -> None:
    rows = write_source(tmp_path, files=4)
    first = SimulatedIngest(options_for(tmp_path))
    first.run()
    assert first.leave().state == "finished"
    made = copy_newest(checkpoint_directory_of(options_for(tmp_path)))
    rows += write_source(tmp_path, files=1, first=1000)
    fresh = str(tmp_path / "fresh")
    second = SimulatedIngest(
        replace(options_for(tmp_path), checkpoint_directory=fresh, from_savepoint=made.path),
        name="second",
    )
    second.run()
    assert second.leave().state == "finished"
    assert visible(tmp_path / "out") == rows


def test_going_back_behind_what_the_target_shows_is_refused(tmp_path: Path) -> None:
    rows = write_source(tmp_path, files=4)
    stopped_with_savepoint(tmp_path, tmp_path / "savepoint")
    rows += write_source(tmp_path, files=1, first=1000)
    later = SimulatedIngest(options_for(tmp_path), name="later")
    later.run()
    assert later.leave().state == "finished"
    fresh = replace(
        options_for(tmp_path),
        checkpoint_directory=str(tmp_path / "fresh"),
        from_savepoint=str(tmp_path / "savepoint"),
    )
    with pytest.raises(TargetAhead):
        plan_ingest(fresh)
    assert visible(tmp_path / "out") == rows
    used = replace(options_for(tmp_path), from_savepoint=str(tmp_path / "savepoint"))
    with pytest.raises(CheckpointsNotFresh, match="checkpoint directory that is not there"):
        plan_ingest(used)


def test_another_target_is_another_job(tmp_path: Path) -> None:
    write_source(tmp_path, files=4)
    stopped_with_savepoint(tmp_path, tmp_path / "savepoint")
    other = replace(
        options_for(tmp_path),
        target=str(tmp_path / "other"),
        from_savepoint=str(tmp_path / "savepoint"),
    )
    with pytest.raises(SavepointOfAnotherJob, match="of its source and target"):
        plan_ingest(other)
