"""The log of a Delta table holds together: one driver, each checkpoint once, no file too many."""

from __future__ import annotations

import contextlib
import itertools
import shutil
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgpack
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import epochgate
from epochgate.runtime import BehindCheckpoint, RetryLater, SinkStart
from epochgate.spark.delta_sink import (
    DeltaLog,
    DeltaSink,
    DeltaTarget,
    LogFailed,
    LogOvertaken,
    TableAhead,
    TableBehind,
    TableTakenOver,
    TableUnusable,
)
from epochgate.spark.extras import ExtraMissing
from epochgate.spark.parquet_sink import (
    Committable,
    CommittableDamaged,
    CommittableMissing,
    OutputSchemaChanged,
    StagingWriter,
    TargetLocked,
    TargetNotEmpty,
)
from epochgate.spark.parquet_sink.partitions import PartitioningChanged
from epochgate.spark.parquet_sink.reading import OfAnotherFormat
from tests.spark.tables.delta_replay import active_files, entries, numbers, rows

deltalake = pytest.importorskip("deltalake", reason="the extra `delta` is not installed")
ATTEMPTS = itertools.count(10)


@pytest.fixture
def table(tmp_path: Path) -> Path:
    return tmp_path / "table"


def stage(table: Path, run: str, values: list[Any], subtask: int = 0) -> list[Committable]:
    writer = StagingWriter(table / "_epochgate", run, subtask, attempt=next(ATTEMPTS))
    writer.write(pa.RecordBatch.from_pydict({"x": values}))
    plain = msgpack.unpackb(msgpack.packb([one.to_list() for one in writer.prepare_commit(1)]))
    return [Committable.from_list(value) for value in plain]


def claimed(table: Path, run: str, restored: int | None = None, **options: Any) -> DeltaTarget:
    target = DeltaTarget(str(table), "job", run, **options)
    target.claim(restored)
    return target


@pytest.fixture
def target(table: Path) -> Iterator[DeltaTarget]:
    target = claimed(table, "r1")
    yield target
    target.release()


def test_rows_are_seen_from_their_commit_on_and_committing_again_changes_nothing(
    target: DeltaTarget, table: Path
) -> None:
    files = stage(table, "r1", [1, 2]) + stage(table, "r1", [3], subtask=1)
    assert entries(table) == []
    assert target.commit(1, files)
    assert rows(table) == [1, 2, 3]
    before = entries(table)
    assert not target.commit(1, files)
    assert entries(table) == before
    assert sorted(deltalake.DeltaTable(table).to_pyarrow_table()["x"].to_pylist()) == [1, 2, 3]


def test_a_commit_without_rows_is_recorded_once_there_is_a_table(
    target: DeltaTarget, table: Path
) -> None:
    target.commit(1, [])
    assert not (table / "_delta_log").exists()
    target.commit(2, stage(table, "r1", [1]))
    assert target.commit(3, [])
    assert not target.commit(3, [])
    assert numbers(table, "job") == [2, 3]


def test_the_library_itself_repeats_a_transaction_that_it_has_seen(
    target: DeltaTarget, table: Path
) -> None:
    """The number is read first, since the log takes the same number again on a newer snapshot."""
    files = stage(table, "r1", [1])
    target.commit(1, files)
    log = DeltaLog(str(table))
    assert log.read()
    again = stage(table, "r2", [1])
    shutil.copy(table / "_epochgate" / again[0].path, table / again[0].file_name)
    log.append({again[0].file_name: again[0]}, {"job": 1}, {})
    assert rows(table) == [1, 1]


def test_of_two_commits_on_one_snapshot_the_log_refuses_the_second(
    target: DeltaTarget, table: Path
) -> None:
    target.commit(1, stage(table, "r1", [1]))
    first, second = DeltaLog(str(table)), DeltaLog(str(table))
    assert first.read()
    assert second.read()
    first.append({}, {"job": 2}, {})
    with pytest.raises(LogOvertaken, match="Concurrent transaction"):
        second.append({}, {"job": 2}, {})
    assert first.read()
    assert second.read()
    first.append({}, {"other": 2}, {})
    second.append({}, {"job": 3}, {})
    assert numbers(table, "job") == [1, 2, 3]


def test_a_driver_that_was_replaced_cannot_commit_any_more(
    target: DeltaTarget, table: Path
) -> None:
    target.commit(1, stage(table, "r1", [1]))
    late = stage(table, "r1", [2])
    target.release()  # as a file system does that forgets its locks
    successor = claimed(table, "r2", 1)
    with pytest.raises(TableTakenOver, match="run r1 may not commit"):
        target.commit(2, late)
    assert rows(table) == [1]
    successor.commit(2, stage(table, "r2", [2]))
    with pytest.raises(TableTakenOver):
        target.commit(3, [])
    assert rows(table) == [1, 2]
    successor.release()


class OvertakenLog(DeltaLog):
    """Lets something happen between the look and the write of the next append."""

    between: Any = None

    def append(self, *arguments: Any) -> None:
        between, OvertakenLog.between = OvertakenLog.between, None
        if between is not None:
            between()
        super().append(*arguments)


def test_the_log_refuses_a_driver_that_is_replaced_between_its_look_and_its_commit(
    table: Path,
) -> None:
    zombie = claimed(table, "r1", log=OvertakenLog)
    zombie.commit(1, stage(table, "r1", [1]))
    late, successors = stage(table, "r1", [2]), []
    zombie.release()
    OvertakenLog.between = lambda: successors.append(claimed(table, "r2", 1))
    with pytest.raises(RetryLater, match="has changed"):
        zombie.commit(2, late)
    with pytest.raises(TableTakenOver):
        zombie.commit(2, late)
    assert rows(table) == [1]
    assert numbers(table, "job/driver") == [1, 2]
    successors[0].release()


def test_of_two_drivers_that_make_the_table_the_second_is_refused(table: Path) -> None:
    zombie = claimed(table, "r1")
    zombie.release()
    successor = claimed(table, "r2")
    with pytest.raises(TableTakenOver):
        zombie.commit(1, stage(table, "r1", [1]))
    successor.commit(1, stage(table, "r2", [1]))
    with pytest.raises(TableTakenOver):
        zombie.commit(1, stage(table, "r1", [7]))
    assert rows(table) == [1]
    successor.release()


def test_of_many_that_make_one_table_at_once_one_does(tmp_path: Path) -> None:
    """The library alone repeats the making as the next version, with the same application."""
    for number in range(10):
        place = tmp_path / str(number)
        made: list[int] = []
        barrier = threading.Barrier(4)

        def make(at: int, place: Path, made: list[int], barrier: threading.Barrier) -> None:
            log = DeltaLog(str(place))
            barrier.wait()
            with contextlib.suppress(LogOvertaken, LogFailed):
                log.create(pa.schema([("x", pa.int64())]), {}, {"job": 1, f"m{at}": 1}, {})
                made.append(at)

        threads = [
            threading.Thread(target=make, args=(at, place, made, barrier)) for at in range(4)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(made) == len(entries(place)) == 1


def test_a_job_whose_table_another_job_makes_first_goes_on_in_it(table: Path) -> None:
    first = DeltaTarget(str(table), "one", "r1")
    second, third = (DeltaTarget(str(table), name, f"r{name}") for name in ("2", "3"))
    for target in (first, second, third):
        target.claim(None)
    assert second.commit(1, stage(table, "r2", [2]))
    files = stage(table, "r1", [1])
    assert first.commit(1, files)
    assert not first.commit(1, files)
    with pytest.raises(OutputSchemaChanged):
        third.commit(1, stage(table, "r3", ["text"]))
    assert rows(table) == [1, 2]
    for target in (first, second, third):
        target.release()


@pytest.mark.parametrize("change", [{"partition_by": ["y"]}, {}])
def test_a_table_that_another_overwrites_takes_no_file_that_does_not_fit(
    table: Path, change: dict[str, Any]
) -> None:
    target = claimed(table, "r1")
    assert target.commit(1, stage(table, "r1", [1]))
    made = pa.table({"x": [7] if change else ["seven"], "y": ["a"]})
    deltalake.write_deltalake(str(table), made, mode="overwrite", schema_mode="overwrite", **change)
    with pytest.raises(PartitioningChanged if change else OutputSchemaChanged):
        target.commit(2, stage(table, "r1", [2]))
    assert rows(table) == made["x"].to_pylist()
    target.release()


def test_another_writer_of_the_table_is_no_conflict(table: Path) -> None:
    deltalake.write_deltalake(str(table), pa.table({"x": [7]}))
    target = claimed(table, "r1", log=OvertakenLog)
    files = stage(table, "r1", [1])
    OvertakenLog.between = lambda: deltalake.write_deltalake(
        str(table), pa.table({"x": [8]}), mode="append"
    )
    assert target.commit(1, files)
    assert rows(table) == [1, 7, 8]
    assert target.rows() == 3
    target.release()


def test_the_job_goes_on_while_the_table_is_compacted_by_its_own_tools(table: Path) -> None:
    target = claimed(table, "r1")
    each = {number: stage(table, "r1", [number, 10 + number]) for number in range(1, 5)}
    for number in range(1, 4):
        target.commit(number, each[number])
    metrics = deltalake.DeltaTable(table).optimize.compact()
    assert (metrics["numFilesRemoved"], metrics["numFilesAdded"]) == (3, 1)
    target.commit(4, each[4])
    assert not target.commit(3, each[3])
    assert len(active_files(table)) == 2
    target.release()
    deltalake.DeltaTable(table).optimize.compact()
    deltalake.DeltaTable(table).vacuum(0, dry_run=False, enforce_retention_duration=False)
    again = claimed(table, "r2", 4)
    again.remove_orphans([])
    for number, committables in each.items():
        assert not again.commit(number, committables)
    again.commit(5, stage(table, "r2", [5]))
    again.release()
    assert rows(table) == [1, 2, 3, 4, 5, 11, 12, 13, 14]


def test_the_rows_of_a_compacted_table_are_not_read_twice(target: DeltaTarget, table: Path) -> None:
    for checkpoint in (1, 2):
        target.commit(checkpoint, stage(table, "r1", [checkpoint]))
    deltalake.DeltaTable(table).optimize.compact()
    assert pq.read_table(table).num_rows == 4  # with the files that the log has removed
    for named in (str(table), f"delta:{table}"):
        with pytest.raises(OfAnotherFormat, match="is a Delta table"):
            epochgate.read(named)


def test_a_table_that_is_set_back_while_the_job_runs_takes_no_further_commit(
    target: DeltaTarget, table: Path
) -> None:
    for number in (1, 2):
        target.commit(number, stage(table, "r1", [number]))
    deltalake.DeltaTable(table).restore(0)
    with pytest.raises(BehindCheckpoint, match="after 1, up to 2"):
        target.commit(3, stage(table, "r1", [3]))
    assert rows(table) == [1]
    deltalake.DeltaTable(table).restore(1)
    assert target.commit(3, stage(table, "r1", [3]))
    assert rows(table) == [1, 2, 3]


def test_a_second_process_is_refused_while_the_first_lives(
    target: DeltaTarget, table: Path
) -> None:
    with pytest.raises(TargetLocked, match=r"_epochgate/job-.*\.lock"):
        claimed(table, "r2")


def test_a_state_older_or_newer_than_the_table_is_refused(target: DeltaTarget, table: Path) -> None:
    target.commit(1, stage(table, "r1", [1]))
    target.commit(4, stage(table, "r1", [2]))
    target.release()
    with pytest.raises(TableAhead, match=r"checkpoint 4 .* from checkpoint 3"):
        claimed(table, "r2", 3)
    with pytest.raises(TableAhead, match="from no checkpoint"):
        claimed(table, "r2")
    shutil.rmtree(table / "_delta_log")
    with pytest.raises(TableBehind, match="restores checkpoint 4"):
        claimed(table, "r3", 4)
    shutil.rmtree(table)
    with pytest.raises(TableBehind):
        claimed(table, "r3", 4)


def test_a_job_that_had_no_rows_yet_goes_on_without_a_table(
    target: DeltaTarget, table: Path
) -> None:
    target.commit(1, [])
    target.release()
    successor = claimed(table, "r2", 1)
    successor.commit(2, stage(table, "r2", [5]))
    assert rows(table) == [5]
    successor.release()


def test_what_a_dead_run_has_staged_is_removed_and_what_a_checkpoint_holds_is_not(
    target: DeltaTarget, table: Path
) -> None:
    target.commit(1, stage(table, "r1", [1]))
    held, orphan = stage(table, "r1", [2], subtask=1), stage(table, "r1", [3], subtask=2)
    target.release()
    successor = claimed(table, "r2", 2)
    removed = successor.remove_orphans(held)
    assert [Path(path).name for path in removed] == [Path(orphan[0].path).name]
    successor.commit(2, held)
    assert rows(table) == [1, 2]
    assert sorted(table.glob("*.parquet")) == sorted(active_files(table))
    successor.release()


def test_what_a_task_of_a_run_before_stages_late_is_removed_by_a_later_start(
    target: DeltaTarget, table: Path
) -> None:
    target.release()
    claimed(table, "r2").release()
    late = stage(table, "r1", [1])
    last = claimed(table, "r3")
    assert [Path(path).name for path in last.remove_orphans([])] == [Path(late[0].path).name]
    last.release()


def test_files_of_another_schema_are_refused_before_their_checkpoint_is_stored(
    target: DeltaTarget, table: Path
) -> None:
    first = stage(table, "r1", [1])
    target.require_one_schema(first)
    with pytest.raises(OutputSchemaChanged, match="subtask 1, attempt"):
        target.require_one_schema(stage(table, "r1", ["one"], subtask=1))


def test_a_file_that_is_gone_or_damaged_is_named_and_nothing_is_seen(
    target: DeltaTarget, table: Path
) -> None:
    files = stage(table, "r1", [1]) + stage(table, "r1", [2], subtask=1)
    staged = table / "_epochgate" / files[1].path
    content = staged.read_bytes()
    staged.write_bytes(content[:-1])
    with pytest.raises(CommittableDamaged):
        target.commit(1, files)
    staged.unlink()
    with pytest.raises(CommittableMissing):
        target.commit(1, files)
    staged.write_bytes(content)
    target.commit(1, files)
    assert rows(table) == [1, 2]


def test_a_directory_of_other_files_is_refused(table: Path) -> None:
    table.mkdir()
    (table / "notes.txt").write_text("mine")
    with pytest.raises(TargetNotEmpty, match=r"notes\.txt"):
        claimed(table, "r1")
    assert [file.name for file in table.iterdir()] == ["notes.txt"]


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        (
            {"configuration": {"delta.setTransactionRetentionDuration": "interval 1 days"}},
            "forgets its applications",
        ),
    ],
)
def test_a_table_with_a_property_that_cannot_be_honoured_is_refused(
    table: Path, options: dict[str, Any], reason: str
) -> None:
    deltalake.write_deltalake(str(table), pa.table({"x": [7], "y": [1]}), **options)
    with pytest.raises(TableUnusable, match=reason):
        claimed(table, "r1")
    assert not (table / "_epochgate").exists()


def test_without_the_library_the_error_names_the_extra(
    table: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "deltalake", None)
    with pytest.raises(ExtraMissing, match=r"pip install epochgate\[delta\]"):
        DeltaSink(str(table)).create_committer(SinkStart("job", "r1"))
    assert not table.exists()
