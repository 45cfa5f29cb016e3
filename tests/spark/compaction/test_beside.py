"""A target is compacted while its job writes, dies and goes on, and while others read."""

from __future__ import annotations

import random
import re
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import pandas as pd
import polars as pl
import pyarrow.parquet as pq
import pytest

from epochgate.runtime.filesystem import LocalFileSystem
from epochgate.runtime.testing.faulty_filesystem import Fault, FaultyFileSystem, SimulatedCrash
from epochgate.spark.compaction import compact
from epochgate.spark.compaction.errors import NothingThere
from epochgate.spark.ingest import IngestOptions, start_ingest
from tests.spark.compaction.targets import files_in
from tests.spark.ingest.simulated import (
    SimulatedIngest,
    make_older,
    options_for,
    random_kills,
    visible,
    write_source,
)
from tests.spark.running import wait_for
from tests.spark.shared import session_of


def write_with_ten_names(tmp_path: Path, files: int, first: int = 0) -> list[int]:
    """Files whose column `name` has one of ten values; returns the numbers in them."""
    rows = write_source(tmp_path, files, first=first)
    for path in (tmp_path / "in").iterdir():
        written = path.read_text()
        if "text" in written:
            path.write_text(re.sub("text [0-9]*([0-9])", r"\1", written))
            make_older(path)
    return rows


@pytest.mark.parametrize("partition_by", [(), ("name",)])
@pytest.mark.parametrize("seed", range(3))
def test_each_row_once_although_job_and_compactions_die_beside_each_other(
    tmp_path: Path, seed: int, partition_by: tuple[str, ...]
) -> None:
    rows = write_with_ten_names(tmp_path, files=20)
    chance = random.Random(seed)
    faults = [Fault(chance.randrange(50, 400)) for _ in range(3)]
    simulated = SimulatedIngest(options_for(tmp_path, partition_by=partition_by), faults)
    kill = random_kills(simulated, seed, share=0.03)
    compactions = [0, 0]

    def disturb() -> None:
        kill()
        if chance.random() > 0.2:
            return
        fault = Fault(chance.randrange(80)) if chance.random() < 0.5 else None
        files = FaultyFileSystem(LocalFileSystem(), fault)
        try:
            result = compact(str(tmp_path / "out"), keep_checkpoints=3, files=files)
            compactions[0] += len(result.partitions) > 0
        except SimulatedCrash:
            compactions[1] += 1
        except NothingThere:
            assert not (tmp_path / "out").exists()

    simulated.run(disturb)
    assert simulated.leave().state == "finished"
    assert visible(tmp_path / "out") == rows
    assert min(compactions) > 0, "some have merged files, and some have died"
    compact(str(tmp_path / "out"), keep_checkpoints=0)
    assert visible(tmp_path / "out") == rows
    more = write_with_ten_names(tmp_path, files=1, first=1000)
    again = SimulatedIngest(options_for(tmp_path, partition_by=partition_by), name="again")
    again.run()
    assert again.leave().state == "finished"
    assert visible(tmp_path / "out") == rows + more


def of_duckdb(path: Path) -> list[int]:
    found = duckdb.connect().execute(f"select x from read_parquet('{path}/**')")
    return [x for (x,) in found.fetchall()]


READERS: dict[str, Callable[[Path], list[int]]] = {
    "duckdb": of_duckdb,
    "polars": lambda path: pl.scan_parquet(path).select("x").collect()["x"].to_list(),
    "pandas": lambda path: list(pd.read_parquet(path)["x"]),
    "pyarrow": lambda path: pq.read_table(path)["x"].to_pylist(),
}


class Poll(threading.Thread):
    """Reads again and again; what it finds has no row twice, and all that it found before."""

    def __init__(self, read: Callable[[Path], list[int]], path: Path) -> None:
        super().__init__()
        self._read, self._path = read, path
        self.has_ended = threading.Event()
        self.reads = 0
        self.wrong = ""

    def run(self) -> None:
        before: set[int] = set()
        # The job's driver is in this process, and needs some of its time.
        while not self.has_ended.wait(0.05) and not self.wrong:
            try:
                found = self._read(self._path)
            except Exception:  # noqa: BLE001  each reader has an error of its own
                continue
            self.reads += 1
            if len(found) != len(set(found)) or not before <= set(found):
                self.wrong = f"{sorted(before)} before, {sorted(found)} now"
            before = set(found)


@pytest.mark.deep
@pytest.mark.spark
@pytest.mark.timeout(300)
def test_readers_find_each_row_once_while_a_job_follows_and_compactions_run(
    request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    spark: Any = session_of(request.node.nodeid.partition("::")[0])
    target = tmp_path / "out"
    rows = write_source(tmp_path, files=1, rows=20)
    options = IngestOptions(
        str(tmp_path / "in"),
        str(target),
        parallelism=1,  # the other slot is for the reader
        checkpoint_every_s=0.2,
        follow=True,
    )
    with start_ingest(spark, options) as handle:
        wait_for(lambda: handle.rows_committed == len(rows), "the first rows")
        polls = {name: Poll(read, target) for name, read in READERS.items()}
        for poll in polls.values():
            poll.start()
        merged = 0
        for first in range(100, 700, 100):
            rows += write_source(tmp_path, files=1, rows=20, first=first)
            while handle.rows_committed < len(rows) and not handle.is_over:
                merged += compact(str(target), keep_checkpoints=1).merged
        found = [row.x for row in spark.read.parquet(str(target)).select("x").collect()]
        assert sorted(found) == rows
        for poll in polls.values():
            poll.has_ended.set()
        handle.stop()
        assert handle.wait(60).state == "finished"
    for name, poll in polls.items():
        poll.join()
        assert poll.wrong == "", name
        assert poll.reads > 3, name
    assert merged > 3
    compact(str(target), keep_checkpoints=0)
    assert len(files_in(target)) == 1
    assert visible(target) == rows
