"""Rows arrive in an object store exactly once, wherever its requests or the driver fail."""

from __future__ import annotations

import itertools
import json
import random
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Literal, get_args

import duckdb
import pytest

from epochgate.errors import EpochgateError
from epochgate.runtime.objects.client import ObjectStore
from epochgate.runtime.testing.faulty_filesystem import Fault
from epochgate.spark.ingest.plan import IngestPlan, plan_ingest
from epochgate.spark.parquet_sink import TargetTakenOver
from tests.runtime.objects.faulty_objects import FaultyObjects
from tests.runtime.objects.stores import Memory
from tests.spark.ingest.simulated import (
    SimulatedIngest,
    options_for,
    random_kills,
    write_source,
)

TARGET = "s3://bucket/out"
When = Literal["before", "after"]
WHERE = pytest.mark.parametrize("commit_in", ["driver", "tasks"])


class SimulatedObjectIngest(SimulatedIngest):
    """An ingestion into `memory`; `faults` gives the fault of each start."""

    numbers = itertools.count(1)

    def __init__(
        self, place: Path, memory: Memory, faults: Iterable[Fault | None] = (), **changes: Any
    ) -> None:
        self.memory, self.object_faults = memory, list(faults)
        super().__init__(options_for(place, target=TARGET, **changes))

    def _planned(self) -> IngestPlan:
        number = self.starts - 1
        fault = self.object_faults[number] if number < len(self.object_faults) else None
        self.requests = FaultyObjects(self.memory.open, fault)
        return plan_ingest(
            self.options, run_id=f"run-{next(self.numbers)}", open_objects=self.requests.open
        )

    def crash_driver(self) -> None:
        self.requests.crash()
        super().crash_driver()


def committed_files(objects: ObjectStore) -> list[str]:
    """Return what the log shows, by twenty lines that know nothing of the code under test."""
    files: dict[str, int] = {}
    for key in objects.list("_epochgate/log"):
        entry = json.loads(objects.get(key))
        if entry["kind"] == "commit":
            files.update(dict.fromkeys(entry["files"], entry["checkpoint"]))
        elif entry["kind"] == "withdraw":
            files = {path: at for path, at in files.items() if at <= entry["after"]}
    return sorted(files)


def rows_in(memory: Memory, place: Path) -> list[int]:
    """All values that DuckDB finds in the files that are committed."""
    objects, rows = memory.open(TARGET), []
    for number, key in enumerate(committed_files(objects)):
        copy = place / f"copy-{number}.parquet"
        copy.write_bytes(objects.get(key))
        rows += duckdb.execute(f"select x from read_parquet('{copy}')").fetchall()
    return sorted(row[0] for row in rows)


def test_all_rows_arrive_and_a_later_start_takes_what_is_new(tmp_path: Path) -> None:
    memory, rows = Memory(), write_source(tmp_path)
    for first in (0, 100):
        simulated = SimulatedObjectIngest(tmp_path, memory)
        simulated.run()
        result = simulated.leave()
        assert (result.state, result.rows_committed) == ("finished", 30)
        assert rows_in(memory, tmp_path) == rows
        assert result.rows_visible == len(rows)
        if first == 0:
            rows += write_source(tmp_path, first=100)
    keys = memory.open(TARGET).list("data")
    assert keys == committed_files(memory.open(TARGET)), "nothing is left over"


@WHERE
@pytest.mark.parametrize("kind", ["crash", "error"])
@pytest.mark.parametrize("when", ["before", "after"])
def test_rows_arrive_once_at_whichever_request_a_fault_strikes(
    tmp_path: Path, when: When, kind: Literal["crash", "error"], commit_in: str
) -> None:
    whole = tmp_path / "whole"
    whole.mkdir()
    write_source(whole, files=2, rows=4)
    undisturbed = SimulatedObjectIngest(whole, Memory(), commit_in=commit_in)
    undisturbed.run()
    # While the tasks commit what the last checkpoint holds, none is taken.
    assert len(undisturbed.leave().report.completed()) > (2 if commit_in == "tasks" else 3)
    operations = undisturbed.requests.operations
    assert len(operations) > 15
    for at in range(len(operations)):
        place, memory = tmp_path / f"at-{at}", Memory()
        place.mkdir()
        rows = write_source(place, files=2, rows=4)
        result = ended(place, memory, Fault(at, kind, when), commit_in)
        assert result.state == "finished", (operations[at], result.reason)
        assert rows_in(memory, place) == rows, operations[at]
        assert result.rows_visible == len(rows), operations[at]


def ended(place: Path, memory: Memory, fault: Fault, commit_in: str) -> Any:
    """The result of the start that finishes; an error may end the one that it strikes."""
    try:
        simulated = SimulatedObjectIngest(place, memory, [fault], commit_in=commit_in)
        simulated.run()
        result = simulated.leave()
        if result.state == "finished":
            return result
        reason = str(result.reason)
    except EpochgateError as refused:
        reason = str(refused)
    assert fault.kind == "error"
    assert "by order of the test" in reason
    simulated = SimulatedObjectIngest(place, memory, commit_in=commit_in)
    simulated.run()
    return simulated.leave()


@WHERE
@pytest.mark.parametrize("seed", range(6))
def test_rows_arrive_once_over_many_crashes_and_deaths(
    tmp_path: Path, seed: int, commit_in: str
) -> None:
    chance, memory = random.Random(seed), Memory()
    rows = write_source(tmp_path, files=4, rows=8)
    whens: tuple[When, ...] = get_args(When)
    faults = [Fault(chance.randrange(20), when=chance.choice(whens)) for _ in range(5)]
    simulated = SimulatedObjectIngest(tmp_path, memory, faults, commit_in=commit_in)
    simulated.run(random_kills(simulated, seed, share=0.02))
    result = simulated.leave()
    assert result.state == "finished", result.reason
    assert rows_in(memory, tmp_path) == rows
    assert simulated.starts > 1


@WHERE
def test_a_driver_that_was_replaced_commits_nothing_any_more(
    tmp_path: Path, commit_in: str
) -> None:
    memory, rows = Memory(), write_source(tmp_path)
    first = SimulatedObjectIngest(tmp_path, memory, commit_in=commit_in)
    first.run(until=lambda: first.plan.committer.rows_visible > 0)
    second = SimulatedObjectIngest(tmp_path, memory, commit_in=commit_in)
    first.run()
    assert first.leave().state == "failed"
    second.run()
    assert second.leave().state == "finished"
    assert rows_in(memory, tmp_path) == rows


def test_of_two_starts_the_later_takes_both_the_checkpoints_and_the_target(tmp_path: Path) -> None:
    """The earlier one claims the checkpoints first, and comes to the target too late."""
    memory, rows = Memory(), write_source(tmp_path)
    started: list[SimulatedObjectIngest] = []

    class Overtaken(Memory):
        def open(self, url: str) -> ObjectStore:
            if url == TARGET and not started:
                started.append(SimulatedObjectIngest(tmp_path, memory))
            return memory.open(url)

    with pytest.raises(TargetTakenOver):
        SimulatedObjectIngest(tmp_path, Overtaken())
    started[0].run()
    assert started[0].leave().state == "finished"
    assert rows_in(memory, tmp_path) == rows


def test_a_file_ends_at_the_size_that_is_asked_for(tmp_path: Path) -> None:
    memory, rows = Memory(), write_source(tmp_path, files=1, rows=40)
    simulated = SimulatedObjectIngest(
        tmp_path, memory, file_bytes=1, checkpoint_every_s=60.0, split_bytes_target=10_000
    )
    simulated.run()
    result = simulated.leave()
    assert (result.state, len(result.report.completed())) == ("finished", 1)
    assert result.files_committed == 14, "one for each batch of three rows"
    assert rows_in(memory, tmp_path) == rows
