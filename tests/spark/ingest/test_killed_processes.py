"""Workers and executors of a real cluster are killed and stopped: every row exactly once."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from epochgate.jobs.totals import FilesDone
from epochgate.runtime import CheckpointEnded, JobEnded, JobEvent, JobListener
from epochgate.spark.files.checkpoint_directory import checkpoint_of
from epochgate.spark.ingest import IngestFailed, IngestOptions, ingest
from epochgate.spark.ingest.chaos import Chaos, Kind
from epochgate.spark.ingest.flights import write_months
from epochgate.spark.ingest.plan import plan_ingest
from epochgate.spark.ingest.run import start_plan
from epochgate.spark.ingest.verification import verify_csv
from tests.spark.ingest.simulated import explode, visible, write_source

pytestmark = [pytest.mark.spark, pytest.mark.extended, pytest.mark.slow, pytest.mark.timeout(300)]


class FilesSeen(JobListener):
    """The number of files that were done, event by event."""

    def __init__(self) -> None:
        self.seen: list[FilesDone] = []

    def on_event(self, event: JobEvent) -> None:
        if isinstance(event, CheckpointEnded | JobEnded) and event.coordinators:
            self.seen.append(FilesDone.of(event.figures, event.coordinators["source"]))


@pytest.fixture(scope="module")
def flights(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("flights")
    write_months(folder)
    return folder


@pytest.mark.kills
@pytest.mark.parametrize(
    ("seed", "kinds"),
    [
        (1, ("worker", "executor", "worker")),
        pytest.param(2, ("stop", "worker", "executor"), marks=pytest.mark.deep),
    ],
)
def test_every_row_once_although_processes_die_or_turn_into_zombies(
    spark: Any, flights: Path, tmp_path: Path, seed: int, kinds: tuple[Kind, ...]
) -> None:
    options = IngestOptions(
        str(flights / "flights-2013-0[1-4].csv"),
        str(tmp_path / "out"),
        checkpoint_every_s=0.3,
        rows_per_second=9_000,
        heartbeat_timeout_s=2.0,
    )
    files = FilesSeen()
    with start_plan(spark, plan_ingest(options), listeners=[files]) as handle:
        with Chaos(handle, kinds, seed=seed) as chaos:
            result = handle.wait(150)
        assert chaos.error is None
        assert [strike.kind for strike in chaos.strikes] == list(kinds)
    assert result.state == "finished", result.reason
    assert result.report.regional_restarts >= len(kinds)
    verdict = verify_csv(flights / "flights-2013-0[1-4].csv", tmp_path / "out")
    assert verdict.is_exact(), verdict
    assert verdict.expected == result.rows_visible == result.rows_committed
    assert files.seen == sorted(files.seen, key=lambda one: (one.done, -one.bytes_left))
    assert len({one.bytes_left for one in files.seen}) > 3, "also while files are read"
    assert (files.seen[-1].done, files.seen[-1].bytes_left) == (4, 0)


def doubled(batch: pa.RecordBatch) -> pa.RecordBatch:
    """A user's function, in a module that executors do not have."""
    import pyarrow.compute as pc

    return batch.append_column("twice", pc.multiply(batch["x"], 2))


@pytest.mark.versions
def test_ingest_is_one_call_on_ones_own_session(spark: Any, tmp_path: Path) -> None:
    rows = write_source(tmp_path, files=3, rows=50)
    source, target = str(tmp_path / "in"), str(tmp_path / "out")
    result = ingest(spark, source, target, transform=doubled, checkpoint_every_s=0.3)
    assert (result.rows_committed, result.files_found, result.resumed_from) == (150, 3, None)
    read = [metrics["rows_read"] for metrics in result.report.metrics.values()]
    written = [metrics["rows_written"] for metrics in result.report.metrics.values()]
    assert (sum(read), sum(written)) == (150, 150)
    assert visible(target) == rows
    assert visible(target, "twice") == [2 * row for row in rows]
    # Spark reads it as well, without an option, and a second call finds nothing new.
    table = spark.read.parquet(target)
    assert (table.count(), table.columns) == (150, ["x", "name", "twice", "checkpoint"])
    checkpoints = {row[0] for row in table.select("checkpoint").distinct().collect()}
    assert checkpoints == {checkpoint_of(path.name) for path in Path(target).glob("checkpoint=*")}
    assert ingest(spark, source, target, transform=doubled).rows_committed == 0


def test_a_failure_in_a_worker_is_told_with_file_and_rows(spark: Any, tmp_path: Path) -> None:
    write_source(tmp_path, files=2, rows=50)
    with pytest.raises(IngestFailed, match=r"rows 0 to 49.*ArithmeticError: no good") as failed:
        ingest(spark, str(tmp_path / "in"), str(tmp_path / "out"), transform=explode)
    assert failed.value.result.state == "failed"
    assert failed.value.result.rows_committed == 0
