"""An ingestion into a Delta table on a real object store, and batches of queries: each row once."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, get_args

import pyarrow as pa
import pytest

from epochgate.environment import set_in_environment
from epochgate.runtime import RetryLater
from epochgate.runtime.objects.client import open_url
from epochgate.runtime.objects.files import ObjectFiles
from epochgate.runtime.testing.faulty_filesystem import Fault
from epochgate.spark.delta_sink import DeltaSink
from epochgate.spark.ingest.options import IngestOptions
from epochgate.spark.ingest.plan import IngestPlan, plan_ingest
from epochgate.spark.parquet_sink import StagingWriter
from epochgate.spark.parquet_sink.gathered import CommitIn
from epochgate.spark.streaming.identity import prefix_of
from epochgate.spark.streaming.targets.delta import DeltaBatches
from epochgate.spark.streaming.targets.target import Staged
from tests.runtime.objects.faulty_objects import FaultyObjects
from tests.runtime.objects.servers import seaweedfs
from tests.spark.ingest.simulated import SimulatedIngest, options_for, random_kills, write_source
from tests.spark.tables import delta_replay
from tests.spark.tables.counting_job import TableJob
from tests.spark.tables.delta_objects import Seen
from tests.spark.tables.merged import check_some, place_of, rows_of
from tests.spark.tables.test_delta_job import Fate

pytest.importorskip("deltalake", reason="the extra `delta` is not installed")
WHERE = pytest.mark.parametrize("commit_in", get_args(CommitIn))


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    folder = tmp_path_factory.mktemp("seaweedfs")
    with seaweedfs(folder) as variables, set_in_environment(variables):
        yield variables


@pytest.fixture
def table(server: dict[str, str], tmp_path: Path) -> Seen:
    return Seen(server, f"ingested/{tmp_path.name}", tmp_path)


def options(tmp_path: Path, table: Seen, **changes: Any) -> IngestOptions:
    return options_for(tmp_path, target=f"delta:{table.url}", **changes)


def finished(simulated: SimulatedIngest) -> int:
    result = simulated.leave()
    assert result.state == "finished", result.reason
    return result.rows_committed


@WHERE
def test_all_rows_arrive_and_a_second_run_adds_the_new_ones(
    tmp_path: Path, table: Seen, commit_in: CommitIn
) -> None:
    expected = write_source(tmp_path)
    first = SimulatedIngest(options(tmp_path, table, commit_in=commit_in))
    first.run()
    assert finished(first) == 30
    expected += write_source(tmp_path, files=1, first=100)
    second = SimulatedIngest(options(tmp_path, table, commit_in=commit_in), name="second")
    second.run(random_kills(second, 1, share=0.05))
    assert finished(second) == 10
    third = SimulatedIngest(options(tmp_path, table, commit_in=commit_in), name="third")
    third.run()
    assert finished(third) == 0, "nothing is taken twice"
    assert table.rows() == expected


class FaultyIngest(SimulatedIngest):
    """An ingestion whose driver crashes at requests that change an object, one for each start."""

    numbers = itertools.count(1)

    def __init__(self, options: IngestOptions, faults: list[Fault | None]) -> None:
        self.object_faults = faults
        super().__init__(options)

    def _planned(self) -> IngestPlan:
        number = self.starts - 1
        fault = self.object_faults[number] if number < len(self.object_faults) else None
        self.requests = FaultyObjects(open_url, fault)
        run = f"run-{next(self.numbers)}"
        return plan_ingest(self.options, run_id=run, open_objects=self.requests.open)

    def crash_driver(self) -> None:
        self.requests.crash()
        super().crash_driver()


def test_rows_arrive_once_wherever_the_driver_crashes(tmp_path: Path, table: Seen) -> None:
    """Checkpoints lie in the store, too; each third request of a run is one at which it crashes."""
    expected = write_source(tmp_path, files=2, rows=6)
    undisturbed = FaultyIngest(options(tmp_path, table), [])
    undisturbed.run()
    assert finished(undisturbed) == len(expected)
    count = len(undisturbed.requests.operations)
    assert count > 20
    for at in range(0, count, 6):
        seen = table.beside(f"-{at}")
        again = replace(options(tmp_path, table), target=f"delta:{seen.url}")
        simulated = FaultyIngest(again, [Fault(at, when="after"), Fault(at + 3, when="before")])
        simulated.run()
        assert simulated.starts > 1, at
        finished(simulated)
        assert seen.rows() == expected, at


@pytest.mark.parametrize("when", ["before", "after"])
def test_every_row_arrives_once_though_the_driver_dies_at_the_log(table: Seen, when: str) -> None:
    for at in range(4):
        fate, seen = Fate(at, when), table.beside(f"-{when}-{at}")
        run = TableJob(DeltaSink(seen.url, log=fate.of))
        run.run()
        assert run.job.result.state == "finished", (at, run.job.result.reason)
        assert run.job.starts == 2
        assert seen.rows() == list(range(20))


def test_batches_of_a_query_are_in_the_table_once(table: Seen) -> None:
    target = DeltaBatches(table.url)

    def staged(batch: int, values: list[int]) -> Staged:
        run = f"{prefix_of('query')}{batch}-1"
        writer = StagingWriter("", run, 0, 1, files=ObjectFiles(open_url(table.url)), in_place=True)
        writer.write(pa.RecordBatch.from_pydict({"x": values}))
        return Staged("query", batch, run, {0: [one.to_list() for one in writer.prepare_commit(1)]})

    assert target.number("query") == 0
    assert target.apply(staged(0, [1]), 0)
    assert target.number("query") == 1
    again = staged(0, [1])
    with pytest.raises(RetryLater):
        target.apply(again, 0)
    assert target.apply(again, 1)
    staged(1, [7])
    assert target.apply(staged(2, [2]), 1)
    assert table.rows() == [1, 2]
    notes = target.notes()
    notes.exchange(notes.read(), {})
    assert notes.read().version == 1
    target.sweep("query", 32)
    assert len(table.files("data")) == 2
    assert table.rows() == [1, 2]


@pytest.mark.parametrize("partition_by", [(), ("at",)])
def test_rows_replace_others_and_what_was_staged_goes(
    tmp_path: Path, table: Seen, partition_by: tuple[str, ...]
) -> None:
    place = place_of(
        tmp_path,
        lambda: rows_of(delta_replay.active_files(table.copied())),
        target=f"delta:{table.url}",
        merge_order=("at",),
        partition_by=partition_by,
    )
    check_some(place)
    assert table.files("data") == []
