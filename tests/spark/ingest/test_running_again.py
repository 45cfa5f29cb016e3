"""A second start goes on where the first ended: stopped, finished, damaged, or with new files."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from epochgate.runtime.store import DirectoryCheckpointStore
from epochgate.spark.files import FileChanged
from epochgate.spark.ingest.plan import checkpoint_directory_of, plan_ingest
from epochgate.spark.parquet_sink import TargetBehind, TargetLocked
from tests.spark.ingest.simulated import (
    SimulatedIngest,
    options_for,
    random_kills,
    visible,
    write_source,
)


def finished(simulated: SimulatedIngest) -> SimulatedIngest:
    simulated.run()
    assert simulated.leave().state == "finished", simulated.result.reason
    return simulated


def checkpoint_files(tmp_path: Path) -> list[Path]:
    directory = Path(checkpoint_directory_of(options_for(tmp_path)))
    return sorted(directory.glob("checkpoint-*.epochgate"))


def test_a_stopped_job_goes_on_where_it_stopped(tmp_path: Path) -> None:
    rows = write_source(tmp_path, files=4)
    first = SimulatedIngest(options_for(tmp_path))
    first.run(until=lambda: first.plan.committer.rows_committed > 0)
    first.master.stop()
    first.run()
    stopped = first.leave()
    assert stopped.state == "finished"
    taken = visible(tmp_path / "out")
    assert 0 < len(taken) < len(rows)

    second = SimulatedIngest(options_for(tmp_path))
    assert second.plan.resumes_from == stopped.last_checkpoint_id
    second.run()
    result = second.leave()
    assert (result.rows_committed, result.rows_visible) == (len(rows) - len(taken), len(rows))
    assert visible(tmp_path / "out") == rows


def test_a_finished_job_takes_only_what_is_new(tmp_path: Path) -> None:
    rows = write_source(tmp_path)
    finished(SimulatedIngest(options_for(tmp_path)))
    rows += write_source(tmp_path, files=2, first=100)
    second = SimulatedIngest(options_for(tmp_path))
    second.run()
    result = second.leave()
    assert (result.state, result.rows_committed, result.files_found) == ("finished", 20, 5)
    third = SimulatedIngest(options_for(tmp_path))
    third.run()
    assert third.leave().rows_committed == 0
    assert visible(tmp_path / "out") == rows


@pytest.mark.parametrize("seed", range(5))
def test_new_files_are_not_forgotten_when_everything_fails_before_a_checkpoint(
    tmp_path: Path, seed: int
) -> None:
    rows = write_source(tmp_path)
    finished(SimulatedIngest(options_for(tmp_path)))
    rows += write_source(tmp_path, files=2, first=100)
    second = SimulatedIngest(options_for(tmp_path))
    second.drain()
    second.master.queue.post(second.master.job.lifecycle.fail_globally, "wanted")
    second.run(random_kills(second, seed, share=0.02))
    assert second.leave().state == "finished"
    assert visible(tmp_path / "out") == rows


def test_a_followed_source_is_read_as_it_grows(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    simulated = SimulatedIngest(options_for(tmp_path, follow=True, checkpoint_every_s=0.1))
    rows: list[int] = []

    def is_read() -> bool:
        return simulated.plan.committer.rows_visible == len(rows)

    for first in (0, 100, 200):
        rows += write_source(tmp_path, files=2, rows=5, first=first)
        simulated.run(until=is_read, rounds_max=200_000)
    assert not simulated.is_over
    simulated.master.stop()
    simulated.run()
    assert simulated.leave().state == "finished"
    assert visible(tmp_path / "out") == rows


def test_a_damaged_checkpoint_falls_back_and_what_was_committed_after_it_is_written_again(
    tmp_path: Path,
) -> None:
    rows = write_source(tmp_path, files=4)
    finished(SimulatedIngest(options_for(tmp_path)))
    newest = checkpoint_files(tmp_path)[-1]
    newest.write_bytes(newest.read_bytes()[:-20])
    second = SimulatedIngest(options_for(tmp_path))
    assert any(newest.name in warning for warning in second.plan.warnings)
    second.run()
    assert second.leave().state == "finished"
    assert visible(tmp_path / "out") == rows


def test_a_second_driver_is_refused_while_the_first_one_runs(tmp_path: Path) -> None:
    write_source(tmp_path)
    plan = plan_ingest(options_for(tmp_path))
    with pytest.raises(TargetLocked):
        plan_ingest(options_for(tmp_path, checkpoint_directory=str(tmp_path / "other")))
    plan.release()
    plan_ingest(options_for(tmp_path, checkpoint_directory=str(tmp_path / "other"))).release()


@pytest.mark.parametrize("seed", range(3))
def test_a_start_with_another_parallelism_goes_on_where_the_last_one_was(
    tmp_path: Path, seed: int
) -> None:
    rows = write_source(tmp_path, files=6, rows=30)
    simulated = SimulatedIngest(options_for(tmp_path, batch_rows=4))
    for quarter, parallelism in enumerate((5, 1, 3), 1):
        wanted = len(rows) * quarter // 4
        simulated.run(
            random_kills(simulated, seed, share=0.02), until=partial(_is_read, simulated, wanted)
        )
        simulated.options = options_for(tmp_path, parallelism=parallelism, batch_rows=4)
        simulated.crash_driver()
    assert finished(simulated).result.state == "finished"
    assert visible(tmp_path / "out") == rows


def _is_read(simulated: SimulatedIngest, wanted: int) -> bool:
    return simulated.plan.committer.rows_visible >= wanted


def test_a_target_that_was_removed_is_not_filled_with_half_of_the_rows(tmp_path: Path) -> None:
    write_source(tmp_path)
    finished(SimulatedIngest(options_for(tmp_path)))
    (tmp_path / "out").rename(tmp_path / "elsewhere")
    with pytest.raises(TargetBehind):
        plan_ingest(options_for(tmp_path))


def test_checkpoints_may_be_kept_in_a_directory_of_ones_own(tmp_path: Path) -> None:
    rows = write_source(tmp_path)
    options = replace(options_for(tmp_path), checkpoint_directory=str(tmp_path / "kept"))
    simulated = finished(SimulatedIngest(options))
    with DirectoryCheckpointStore(tmp_path / "kept", job_id=options.job_id) as store:
        newest = store.latest()
    assert newest is not None
    assert newest.checkpoint_id == simulated.result.last_checkpoint_id
    assert visible(tmp_path / "out") == rows


def test_new_files_with_maps_and_lists_are_taken_by_a_later_start(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    pairs = pa.array([[("a", 1)], None], pa.map_(pa.string(), pa.int64()))
    for start in range(3):
        table = pa.table({"x": [2 * start, 2 * start + 1], "props": pairs, "tags": [["t"], []]})
        # As Spark writes it: without the Arrow schema, which pyarrow would keep in the file.
        pq.write_table(
            table,
            tmp_path / "in" / f"{start}.parquet",
            store_schema=False,
            use_compliant_nested_type=start < 2,
        )
        finished(SimulatedIngest(options_for(tmp_path)))
        assert visible(tmp_path / "out") == list(range(2 * start + 2))


def test_a_file_that_is_touched_or_delivered_again_does_not_end_the_job(tmp_path: Path) -> None:
    rows = write_source(tmp_path)
    finished(SimulatedIngest(options_for(tmp_path)))
    for path in (tmp_path / "in").iterdir():
        path.touch()
    again = finished(SimulatedIngest(options_for(tmp_path)))
    assert again.plan.committer.rows_committed == 0
    content = (tmp_path / "in" / "000010.csv").read_text()
    (tmp_path / "in" / "000010.csv").unlink()
    finished(SimulatedIngest(options_for(tmp_path)))
    (tmp_path / "in" / "000010.csv").write_text(content)
    finished(SimulatedIngest(options_for(tmp_path)))
    assert visible(tmp_path / "out") == rows


@pytest.mark.parametrize("policy", ["skip", "new"])
def test_a_file_that_changes_half_way_is_decided_by_the_next_start(
    tmp_path: Path, policy: str
) -> None:
    write_source(tmp_path, files=1, rows=60)
    first = SimulatedIngest(options_for(tmp_path, parallelism=1, split_bytes_target=1 << 20))
    first.run(until=lambda: first.plan.committer.rows_committed > 0)
    first.master.cancel()
    first.run()
    first.leave()
    taken = visible(tmp_path / "out")
    assert 0 < len(taken) < 60

    (tmp_path / "in" / "000000.csv").write_text("x,name\n1000,changed\n")
    options = options_for(tmp_path, parallelism=1, split_bytes_target=1 << 20)
    with pytest.raises(FileChanged, match=f"--on-changed-file {policy}"):
        plan_ingest(options)
    finished(SimulatedIngest(replace(options, on_changed_file=policy)))  # type: ignore[arg-type]
    assert visible(tmp_path / "out") == taken + ([1000] if policy == "new" else [])
    finished(SimulatedIngest(options))


def test_a_job_that_met_another_encoding_goes_on_once_it_is_named(tmp_path: Path) -> None:
    rows = write_source(tmp_path, files=2, rows=20)
    path = tmp_path / "in" / "000020.csv"
    path.write_bytes(path.read_bytes().replace(b"text 33", b"M\xfcller"))
    first = SimulatedIngest(options_for(tmp_path, split_bytes_target=1 << 20))
    first.run()
    failed = first.leave()
    assert failed.state == "failed"
    assert "line 15 is not utf-8" in str(failed.reason)
    assert "--encoding latin-1" in str(failed.reason)
    finished(SimulatedIngest(options_for(tmp_path, encoding="latin-1")))
    assert visible(tmp_path / "out") == rows
    names = duckdb.execute(f"select name from '{tmp_path}/out/**/*.parquet' where x = 33")
    assert names.fetchall() == [("Müller",)]
