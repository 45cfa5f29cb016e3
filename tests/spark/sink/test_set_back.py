"""A target that was set back behind what the job has committed is refused, and each named way on
works: putting it right, an older savepoint, or giving the rows up.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import get_args

import pytest

from epochgate import cli
from epochgate.runtime import BehindCheckpoint, SinkStart
from epochgate.runtime.savepoints.savepoint import write_savepoint
from epochgate.runtime.store.checkpoint import committed_of
from epochgate.spark.ingest.options import IngestOptions
from epochgate.spark.ingest.plan import plan_ingest
from epochgate.spark.parquet_sink.gathered import CommitIn
from epochgate.spark.parquet_sink.object_target import ObjectTarget
from tests.runtime.objects.stores import Memory
from tests.spark.ingest.simulated import SimulatedIngest, options_for, visible, write_source
from tests.spark.sink.test_object_ingest import TARGET, SimulatedObjectIngest, rows_in
from tests.spark.tables.ways_on import give_up_command_in


def ingested(options: IngestOptions, name: str) -> None:
    ingest = SimulatedIngest(options, name=name)
    ingest.run()
    assert ingest.leave().state == "finished"


def three_days(tmp_path: Path, options: IngestOptions, day_done: Callable[[int], None]) -> None:
    """Each day brings a file and a start; on the third none comes, so that no commit is open."""
    for day in (1, 2):
        write_source(tmp_path, 1, 4, 4 * day)
        ingested(options, f"day-{day}")
        day_done(day)
    ingested(options, "idle")
    write_source(tmp_path, 1, 4, 12)


def refused(options: IngestOptions) -> BehindCheckpoint:
    with pytest.raises(BehindCheckpoint) as caught:
        SimulatedIngest(options, name="refused")
    return caught.value


def given_up(error: BehindCheckpoint) -> None:
    """As the message says."""
    assert cli.main(give_up_command_in(str(error))) == 0


def directories(tmp_path: Path) -> list[Path]:
    return [tmp_path / "out", tmp_path / ".out.epochgate"]


def back_up(tmp_path: Path) -> None:
    for one in directories(tmp_path):
        shutil.copytree(one, tmp_path / "backup" / one.name, symlinks=True)


def from_backup_with_working_directory(tmp_path: Path) -> None:
    checkpoints = tmp_path / ".out.epochgate" / "checkpoints"
    shutil.move(checkpoints, tmp_path / "kept")
    for one in directories(tmp_path):
        shutil.rmtree(one)
        shutil.copytree(tmp_path / "backup" / one.name, one, symlinks=True)
    shutil.rmtree(checkpoints)
    shutil.move(tmp_path / "kept", checkpoints)


def from_backup(tmp_path: Path) -> None:
    shutil.rmtree(tmp_path / "out")
    shutil.copytree(tmp_path / "backup" / "out", tmp_path / "out")


def newest_removed(tmp_path: Path) -> None:
    shutil.rmtree(max((tmp_path / "out").glob("checkpoint=*")))


def first_removed(tmp_path: Path) -> None:
    shutil.rmtree(min((tmp_path / "out").glob("checkpoint=*")))


WHERE = pytest.mark.parametrize("commit_in", get_args(CommitIn))
SET_BACK = [from_backup_with_working_directory, from_backup, newest_removed, first_removed]


@WHERE
@pytest.mark.parametrize("set_back", SET_BACK)
def test_a_directory_that_was_set_back_is_refused_until_the_rows_are_given_up(
    tmp_path: Path, set_back: Callable[[Path], None], commit_in: CommitIn
) -> None:
    options = options_for(tmp_path, parallelism=1, commit_in=commit_in)
    three_days(tmp_path, options, lambda day: back_up(tmp_path) if day == 1 else None)
    assert visible(tmp_path / "out") == list(range(4, 12))
    set_back(tmp_path)
    left = visible(tmp_path / "out")
    error = refused(options)
    assert visible(tmp_path / "out") == left, "nothing is changed by a refusal"
    refused(options)
    given_up(error)
    ingested(options, "after")
    assert visible(tmp_path / "out") == [*left, *range(12, 16)]
    for idle in range(5 if commit_in == "tasks" else 1):
        # Tasks commit one checkpoint after the other: short starts learn of one each.
        ingested(options, f"idle-{idle}")
    newest_removed(tmp_path)
    assert refused(options).args[2] > error.args[2], "only those rows were given up"


def test_a_directory_that_was_set_back_goes_on_from_a_savepoint_of_that_time(
    tmp_path: Path,
) -> None:
    options = options_for(tmp_path, parallelism=1)

    def keep(day: int) -> None:
        if day == 1:
            back_up(tmp_path)
            plan = plan_ingest(options, run_id="looking", files=None)
            restored = plan.store.latest()
            assert restored is not None
            write_savepoint(str(tmp_path / "saved"), restored, plan.store.read_file)
            plan.job_committer.close()
            plan.store.close()

    three_days(tmp_path, options, keep)
    from_backup(tmp_path)
    refused(options)
    older = replace(
        options,
        checkpoint_directory=str(tmp_path / "new"),
        from_savepoint=str(tmp_path / "saved"),
    )
    ingested(older, "from-savepoint")
    assert visible(tmp_path / "out") == list(range(4, 16))


def test_a_whole_target_of_an_earlier_release_is_taken_whatever_it_has_left_beside(
    tmp_path: Path,
) -> None:
    """Its checkpoints do not say what is committed, and manifests of what it withdrew stay."""
    options = options_for(tmp_path, parallelism=1)
    three_days(tmp_path, options, lambda day: None)
    plan = plan_ingest(options, run_id="earlier", files=None)
    restored = plan.store.latest()
    assert restored is not None
    assert committed_of(restored)
    number = restored.checkpoint_id + 1
    plan.store.save(replace(restored, checkpoint_id=number, properties={}))
    plan.job_committer.close()
    plan.store.close()
    manifests = tmp_path / ".out.epochgate" / "manifests"
    newest = max(manifests.iterdir())
    left = newest.with_name(f"checkpoint-{number - 1:012d}.json")
    shutil.copy(newest, left)
    for name in ("first", "second"):
        ingested(options, name)
        assert not left.exists()
    assert visible(tmp_path / "out") == list(range(4, 16))


def test_a_start_knows_what_its_target_has_to_hold() -> None:
    start = SinkStart("job", "run", 9, committed={"": 7})
    start.require_held("t", 7)
    start.require_held("t", 9)
    for last in (None, 6):
        with pytest.raises(BehindCheckpoint, match="up to 7"):
            start.require_held("t", last)
    with pytest.raises(BehindCheckpoint, match="checkpoints after 2, up to 5"):
        start.require_held("t", 7, [3, 5])
    SinkStart("job", "run", 9).require_held("t", None)
    given = replace(start, given_up=((4, 7),))
    given.require_held("t", 4, [])
    given.require_held("t", 7, [5])
    with pytest.raises(BehindCheckpoint, match="after 3, up to 7"):
        given.require_held("t", 3)
    with pytest.raises(BehindCheckpoint, match="after 3, up to 4"):
        given.require_held("t", 7, [4])


def test_what_has_no_rows_or_is_written_again_is_not_missing() -> None:
    start = SinkStart("job", "run", 9, committed={"": 5})
    start.require_held("t", 5, [7, 8])
    start.require_held("t", 5, [10])
    with pytest.raises(BehindCheckpoint, match="after 6, up to 7"):
        replace(start, in_doubt=frozenset({7})).require_held("t", 5, [7, 8])


def test_a_savepoint_is_a_way_on_only_where_the_target_holds_nothing_later() -> None:
    start = SinkStart("job", "run", 9, committed={"": 7}, checkpoints="/the job/checkpoints")
    for last, missing, is_named in ((5, [], True), (7, [3], False)):
        with pytest.raises(BehindCheckpoint) as caught:
            start.require_held("t", last, missing)
        assert ("--from-savepoint SAVEPOINT" in str(caught.value)) is is_named
        command = give_up_command_in(str(caught.value))
        assert command == ["commits", "give-up", "/the job/checkpoints", "--after", command[4]]


def test_each_sink_of_a_job_has_to_hold_its_own_checkpoints() -> None:
    start = SinkStart("job", "run", 9, committed={"": 3, "good": 7, "bad": 5})
    assert start.newest_committed is None, "a start of several sinks says nothing of one"
    assert start.of_sink("good", is_first=True).newest_committed == 7
    assert start.of_sink("bad").newest_committed == 5
    assert start.of_sink("new").newest_committed is None
    assert replace(start, committed={"": 3}).of_sink("good", is_first=True).newest_committed == 3


@WHERE
def test_a_place_in_an_object_store_that_was_set_back_is_refused_until_the_rows_are_given_up(
    tmp_path: Path, commit_in: CommitIn
) -> None:
    memory, checkpoints = Memory(), tmp_path / "checkpoints"

    def run() -> None:
        ingest = SimulatedObjectIngest(
            tmp_path, memory, checkpoint_directory=str(checkpoints), commit_in=commit_in
        )
        ingest.run()
        assert ingest.leave().state == "finished"

    target = memory.open(TARGET)
    write_source(tmp_path, 1, 4, 4)
    run()
    kept = set(target.list(""))
    write_source(tmp_path, 1, 4, 8)
    run()
    run()
    for key in set(target.list("")) - kept:
        target.delete(key)
    write_source(tmp_path, 1, 4, 12)
    with pytest.raises(BehindCheckpoint) as caught:
        run()
    given_up(caught.value)
    run()
    assert rows_in(memory, tmp_path) == [*range(4, 8), *range(12, 16)]


def test_an_object_store_that_lacks_the_newest_entries_is_refused() -> None:
    memory = Memory()
    target = ObjectTarget(memory.open("s3://bucket/table"), "job", "r1")
    target.claim(None)
    with pytest.raises(BehindCheckpoint, match="after 0, up to 4"):
        ObjectTarget(memory.open("s3://bucket/table"), "job", "r2").claim(
            4, start=SinkStart("job", "r2", 4, committed={"": 4})
        )
    assert target.commit(5, []).rows == 0, "the refused start has not become the writer"
