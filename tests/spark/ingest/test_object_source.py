"""Rows of objects arrive exactly once, while processes and drivers die and objects change."""

from __future__ import annotations

import errno
import itertools
import random
from pathlib import Path
from typing import Any, get_args

import duckdb
import pytest

from epochgate.runtime.objects.client import ObjectStore
from epochgate.runtime.objects.errors import ObjectStoreError, ObjectStoreUnusable
from epochgate.runtime.testing.faulty_filesystem import Fault
from epochgate.spark.ingest.plan import TargetInSource, plan_ingest
from tests.runtime.objects.stores import Observed
from tests.spark.ingest.simulated import options_for, random_kills
from tests.spark.sink.test_object_ingest import (
    SimulatedObjectIngest,
    When,
    committed_files,
    rows_in,
)

SOURCE, TARGET = "s3://landing/in", "s3://bucket/out"


def put_numbers(memory: Observed, files: int = 3, rows: int = 10, first: int = 0) -> list[int]:
    """Put CSV objects with the numbers from `first` on into the source; returns the numbers."""
    bucket = memory.open("s3://landing")
    for file in range(files):
        begin = first + file * rows
        lines = [f"{number},text {number}\n" for number in range(begin, begin + rows)]
        bucket.put(f"in/{begin:06d}.csv", ("x,name\n" + "".join(lines)).encode())
    return list(range(first, first + files * rows))


def finished(simulated: SimulatedObjectIngest) -> Any:
    simulated.run()
    result = simulated.leave()
    assert result.state == "finished", result.reason
    return result


def test_all_rows_arrive_and_a_later_start_takes_what_is_new(tmp_path: Path) -> None:
    memory = Observed()
    rows = put_numbers(memory)
    for first in (0, 100):
        result = finished(SimulatedObjectIngest(tmp_path, memory, source=SOURCE))
        assert result.rows_committed == 30
        assert rows_in(memory, tmp_path) == rows
        rows += put_numbers(memory, first=100) if first == 0 else []
    again = finished(SimulatedObjectIngest(tmp_path, memory, source=f"{SOURCE}/"))
    assert again.rows_committed == 0, "the same source, however it is written"


@pytest.mark.parametrize("seed", range(4))
def test_rows_arrive_once_over_many_crashes_and_deaths_while_objects_come_again(
    tmp_path: Path, seed: int
) -> None:
    chance, memory = random.Random(seed), Observed()
    rows = put_numbers(memory, files=4, rows=8)
    bucket = memory.open("s3://landing")
    whens: tuple[When, ...] = get_args(When)
    faults = [Fault(chance.randrange(20), when=chance.choice(whens)) for _ in range(5)]
    simulated = SimulatedObjectIngest(tmp_path, memory, faults, source=SOURCE)
    kill = random_kills(simulated, seed, share=0.02)

    def disturb() -> None:
        kill()
        if chance.random() < 0.1:
            key = f"in/{chance.randrange(4) * 8:06d}.csv"
            bucket.put(key, bucket.get(key))

    simulated.run(disturb)
    result = simulated.leave()
    assert result.state == "finished", result.reason
    assert rows_in(memory, tmp_path) == rows
    assert simulated.starts > 1


def test_another_parallelism_goes_on_within_objects(tmp_path: Path) -> None:
    memory = Observed()
    rows = put_numbers(memory, files=2, rows=40)
    for parallelism in (3, 1, 2):
        simulated = SimulatedObjectIngest(
            tmp_path, memory, source=SOURCE, parallelism=parallelism, split_bytes_target=100_000
        )
        before = simulated.plan.committer.rows_visible
        if parallelism != 2:
            simulated.run(until=lambda: simulated.plan.committer.rows_visible > before)  # noqa: B023
            simulated.requests.crash()
    assert finished(simulated).rows_visible == 80
    assert rows_in(memory, tmp_path) == rows


def test_a_store_that_does_not_answer_for_a_while_costs_restarts_and_no_row(
    tmp_path: Path,
) -> None:
    memory = Observed()
    rows = put_numbers(memory)
    simulated = SimulatedObjectIngest(tmp_path, memory, source=SOURCE, on_bad_file="skip")
    requests = itertools.count()

    def before(kind: str, key: str) -> None:
        if next(requests) in range(5, 25):
            raise ObjectStoreError(errno.EIO, "the store is away", key)

    memory.before = before
    simulated.run()
    result = simulated.leave()
    assert result.state == "finished", result.reason
    assert rows_in(memory, tmp_path) == rows
    assert result.skipped == []
    assert result.report.failures


def test_a_look_for_new_objects_that_fails_is_tried_again(tmp_path: Path) -> None:
    memory = Observed()
    rows = put_numbers(memory)
    simulated = SimulatedObjectIngest(tmp_path, memory, source=SOURCE, follow=True)
    simulated.run(until=lambda: simulated.plan.committer.rows_visible == 30)
    rows += put_numbers(memory, first=100)
    looks = itertools.count()

    def before(kind: str, key: str) -> None:
        if kind == "list" and next(looks) < 3:
            raise ObjectStoreError(errno.EIO, "the store is away", key)

    memory.before = before
    simulated.run(until=lambda: simulated.plan.committer.rows_visible == 60)
    assert next(looks) > 3
    assert rows_in(memory, tmp_path) == rows
    simulated.master.stop()
    simulated.run()
    assert simulated.leave().state == "finished"


def test_bad_rows_of_objects_are_kept_with_the_url_and_the_line(tmp_path: Path) -> None:
    memory = Observed()
    bucket = memory.open("s3://landing")
    bucket.put("in/dt=2024-01-01/a.csv", b"x,name\n1,a\nno number,b\n3,c\n")
    simulated = SimulatedObjectIngest(
        tmp_path, memory, source=SOURCE, on_bad_row="reject", schema="x BIGINT, name STRING"
    )
    simulated.run()
    result = simulated.leave()
    assert (result.rows_visible, result.rows_rejected) == (2, 1)
    rejected: ObjectStore = memory.open(f"{TARGET}.rejected")
    (key,) = committed_files(rejected)
    copy = tmp_path / "rejected.parquet"
    copy.write_bytes(rejected.get(key))
    row = duckdb.execute(f"select file, line, raw from read_parquet('{copy}')").fetchall()
    assert row == [(f"{SOURCE}/dt=2024-01-01/a.csv", 3, "no number,b")]


def test_a_source_and_a_target_in_one_bucket_are_kept_apart(tmp_path: Path) -> None:
    memory = Observed()
    for source in ("s3://bucket", "s3://bucket/out", "s3://bucket/*/*/*.parquet"):
        with pytest.raises(TargetInSource):
            plan_ingest(
                options_for(tmp_path, source=source, target=TARGET), open_objects=memory.open
            )


def test_a_store_that_does_not_answer_at_the_start_is_told_with_what_to_check(
    tmp_path: Path,
) -> None:
    memory = Observed()
    put_numbers(memory)

    def before(kind: str, key: str) -> None:
        raise ObjectStoreError(errno.EIO, "error sending request", key)

    memory.before = before
    with pytest.raises(ObjectStoreUnusable, match="AWS_ENDPOINT_URL"):
        plan_ingest(options_for(tmp_path, source=SOURCE, target=TARGET), open_objects=memory.open)
