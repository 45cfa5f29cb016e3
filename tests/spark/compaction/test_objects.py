"""A target in an object store is compacted by one entry of its log."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Literal

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from epochgate.errors import UsageError
from epochgate.runtime.objects.client import ObjectStore
from epochgate.runtime.objects.errors import ConditionsIgnored, ObjectStoreUnusable
from epochgate.runtime.objects.files import ObjectFiles
from epochgate.runtime.objects.log import LogOutcomeUnknown, ObjectLog
from epochgate.runtime.testing.faulty_filesystem import Fault, SimulatedCrash
from epochgate.spark.compaction import CompactionResult, compact
from epochgate.spark.compaction.errors import CompactionFailed, CompactionReplaced, NothingThere
from epochgate.spark.compaction.objects import ObjectCompaction
from epochgate.spark.compaction.plan import Wanted
from epochgate.spark.parquet_sink import ObjectTarget, StagingWriter, TargetCompacted
from epochgate.spark.parquet_sink.object_target import INITIAL, fold
from tests.runtime.objects.faulty_objects import FaultyObjects
from tests.runtime.objects.stores import Lying, Memory
from tests.spark.ingest.simulated import write_source
from tests.spark.sink.test_object_ingest import TARGET, SimulatedObjectIngest

DAY_S = 24 * 3600.0
runs = itertools.count()


def small_objects(memory: Memory, checkpoints: int = 6, **options: Any) -> list[int]:
    """A target of `checkpoints`, each of two objects and two rows; returns the rows."""
    objects = memory.open(TARGET)
    target = ObjectTarget(objects, "job", f"r{next(runs)}")
    target.claim(None)
    rows = []
    for number in range(1, checkpoints + 1):
        committables = []
        for subtask in range(2):
            row = 10 * number + subtask
            writer = StagingWriter(
                "", "r1", subtask, number, files=ObjectFiles(objects), in_place=True, **options
            )
            writer.write(pa.RecordBatch.from_pydict({"x": [row], "c": [f"c{subtask}"]}))
            committables += writer.prepare_commit(number)
            rows.append(row)
        target.commit(number, committables)
    return rows


def visible_files(objects: ObjectStore) -> dict[str, int]:
    """The files that the log shows now, each with its checkpoint."""
    log = ObjectLog(objects, fold, INITIAL)
    log.refresh()
    return {path: one[0] for path, one in log.state["files"].items()}


def rows_in(objects: ObjectStore, files: Iterable[str] | None = None) -> list[int]:
    """Return what a reader finds that began when these files were visible, or begins now."""
    listed = visible_files(objects) if files is None else files
    tables = [pq.read_table(pa.BufferReader(objects.get(path))) for path in listed]
    return sorted(x for table in tables for x in table["x"].to_pylist())


def compacted(memory: Memory, now: float = 0.0, **options: Any) -> CompactionResult:
    options.setdefault("open_objects", memory.open)
    return compact(TARGET, now=lambda: now, **options)


def test_small_objects_become_one_and_a_reader_from_before_goes_on(tmp_path: Path) -> None:
    memory = Memory()
    rows = small_objects(memory)
    objects = memory.open(TARGET)
    before = visible_files(objects)
    result = compacted(memory)
    assert (result.files_before, result.files_after, result.retired) == (12, 7, 6)
    assert sorted(visible_files(objects).values()) == [1, 4, 4, 5, 5, 6, 6]
    assert rows_in(objects) == rows
    assert rows_in(objects, before) == rows, "what was replaced is still there"
    assert compacted(memory).partitions == ()


def test_a_job_that_goes_back_behind_everything_that_was_planned_overtakes_the_compaction() -> None:
    memory = Memory()
    small_objects(memory)
    objects = memory.open(TARGET)
    compaction = ObjectCompaction(objects, Wanted(1 << 20, 2, 0), 0.0, lambda: 0.0)
    compaction.open()
    assert compaction.plan().merges
    ObjectTarget(objects, "job", "back").claim(None, withdraw_newer=True)
    assert not compaction.stage()


def test_replaced_objects_go_after_their_time_and_never_sooner() -> None:
    memory = Memory()
    rows = small_objects(memory)
    objects = memory.open(TARGET)
    before = set(visible_files(objects))
    compacted(memory, now=1000.0)
    # A start of the job sweeps what no checkpoint needs.
    target = ObjectTarget(objects, "job", "r2")
    target.claim(6)
    assert target.remove_orphans([]) == []
    assert compacted(memory, now=1000.0 + DAY_S - 1).retired == 6
    assert before <= set(objects.list("data"))
    assert compacted(memory, now=1000.0 + DAY_S).retired == 0
    assert set(objects.list("data")) == set(visible_files(objects)) & before
    assert rows_in(objects) == rows
    assert compacted(memory, keep_for_s=0.0, keep_checkpoints=0).retired == 0
    assert objects.list("data") == []
    assert rows_in(objects) == rows


def test_each_partition_is_merged_by_itself() -> None:
    memory = Memory()
    rows = small_objects(memory, partition_by=("c",))
    result = compacted(memory, keep_checkpoints=0)
    assert [one.partition for one in result.partitions] == ["c=c0", "c=c1"]
    assert rows_in(memory.open(TARGET)) == rows
    assert len(visible_files(memory.open(TARGET))) == 2


def test_the_job_goes_on_and_may_not_go_back_behind_what_was_merged() -> None:
    memory = Memory()
    rows = small_objects(memory)
    compacted(memory)
    objects = memory.open(TARGET)
    with pytest.raises(TargetCompacted, match="compacted up to checkpoint 3"):
        ObjectTarget(objects, "job", "r2").claim(2, withdraw_newer=True)
    assert rows_in(objects) == rows
    target = ObjectTarget(objects, "job", "r3")
    target.claim(3, withdraw_newer=True)
    assert target.last_committed == 3
    assert [(one.checkpoint, one.rows) for one in target.committed()] == [(1, 6)]
    assert rows_in(objects) == rows[:6]


class Between(Memory):
    """Lets something happen once, before the entry of this kind is written."""

    def __init__(self, memory: Memory, kind: str, happen: Any) -> None:
        self.stores, self._kind, self._happen = memory.stores, kind, happen

    def open(self, url: str) -> ObjectStore:
        objects = super().open(url)
        create = objects.create

        def created(key: str, data: bytes) -> None:
            if f'"kind": "{self._kind}"'.encode() in data and self._happen is not None:
                happen, self._happen = self._happen, None
                happen()
            create(key, data)

        objects.create = created  # type: ignore[method-assign]  # of this one store
        return objects


def test_a_commit_that_comes_first_is_kept() -> None:
    memory = Memory()
    rows = small_objects(memory)

    def commit() -> None:
        target = ObjectTarget(memory.open(TARGET), "job", "r2")
        target.claim(6)
        files = ObjectFiles(memory.open(TARGET))
        writer = StagingWriter("", "r2", 0, 0, files=files, in_place=True)
        writer.write(pa.RecordBatch.from_pydict({"x": [70], "c": ["c0"]}))
        target.commit(7, writer.prepare_commit(7))

    compacted(memory, open_objects=Between(memory, "compact", commit).open)
    assert rows_in(memory.open(TARGET)) == [*rows, 70]
    assert len(visible_files(memory.open(TARGET))) == 8


def test_a_withdrawal_that_comes_first_makes_the_compaction_plan_again() -> None:
    memory = Memory()
    rows = small_objects(memory)

    def go_back() -> None:
        ObjectTarget(memory.open(TARGET), "job", "r2").claim(4, withdraw_newer=True)

    between = Between(memory, "compact", go_back)
    result = compacted(memory, keep_checkpoints=0, open_objects=between.open)
    assert result.files_after == 1
    assert rows_in(memory.open(TARGET)) == rows[:8]
    assert len(memory.open(TARGET).list("compacted")) == 1


def test_objects_that_are_gone_before_they_are_merged_make_the_compaction_plan_again() -> None:
    memory = Memory()
    rows = small_objects(memory)

    def go_back() -> None:
        objects = memory.open(TARGET)
        target = ObjectTarget(objects, "job", "r2")
        target.claim(4, withdraw_newer=True)
        for key in set(objects.list("data")) - set(visible_files(objects)):
            objects.delete(key)

    between = Between(memory, "compacting", go_back)
    result = compacted(memory, keep_checkpoints=0, open_objects=between.open)
    assert result.files_after == 1
    assert rows_in(memory.open(TARGET)) == rows[:8]


def test_a_withdrawal_that_comes_second_is_refused() -> None:
    memory = Memory()
    rows = small_objects(memory)
    between = Between(memory, "withdraw", lambda: compacted(memory, keep_checkpoints=0))
    with pytest.raises(TargetCompacted):
        ObjectTarget(between.open(TARGET), "job", "r2").claim(4, withdraw_newer=True)
    assert rows_in(memory.open(TARGET)) == rows


def test_of_two_compactions_the_later_one_goes_on() -> None:
    memory = Memory()
    rows = small_objects(memory)
    between = Between(memory, "compact", lambda: compacted(memory, keep_checkpoints=2))
    with pytest.raises(CompactionReplaced):
        compacted(memory, open_objects=between.open)
    objects = memory.open(TARGET)
    assert rows_in(objects) == rows
    assert len(visible_files(objects)) == 5
    # What the earlier one has left is removed by the next that has something to do.
    compacted(memory, keep_checkpoints=0, keep_for_s=0.0)
    assert objects.list("compacted") == sorted(visible_files(objects))


def test_a_compaction_that_was_replaced_while_it_writes_says_so() -> None:
    memory = Memory()
    rows = small_objects(memory)

    class Late(Memory):
        """Another compaction runs before this one looks at what it has written."""

        def __init__(self) -> None:
            self.stores, self.is_late = memory.stores, True

        def open(self, url: str) -> ObjectStore:
            objects = super().open(url)
            get_range = objects.get_range

            def got(key: str, offset: int, length: int) -> bytes:
                if key.startswith("compacted/") and self.is_late:
                    self.is_late = False
                    compacted(memory, keep_checkpoints=0, keep_for_s=0.0)
                return get_range(key, offset, length)

            objects.get_range = got  # type: ignore[method-assign, assignment]  # of this one store
            return objects

    with pytest.raises(CompactionReplaced):
        compacted(memory, keep_checkpoints=0, open_objects=Late().open)
    assert rows_in(memory.open(TARGET)) == rows


def test_a_compaction_without_work_leaves_alone_what_another_is_writing() -> None:
    memory = Memory()
    rows = small_objects(memory)
    wanted = Wanted(128_000_000, 2, 3)
    other = ObjectCompaction(memory.open(TARGET), wanted, DAY_S, lambda: 0.0)
    idle = ObjectCompaction(memory.open(TARGET), Wanted(1, 2, 3), DAY_S, lambda: 0.0)
    for one in (other, idle):
        one.open()
        one.plan()
    other.stage()
    assert idle.planned.merges == ()
    idle.clean()
    assert other.exchange()
    assert rows_in(memory.open(TARGET)) == rows


@pytest.mark.parametrize("kind", ["crash", "error"])
@pytest.mark.parametrize("when", ["before", "after"])
def test_rows_are_there_once_at_whichever_request_a_fault_strikes(
    when: Literal["before", "after"], kind: Literal["crash", "error"]
) -> None:
    struck = 0
    for at in itertools.count():
        memory = Memory()
        rows = small_objects(memory, 4)
        requests = FaultyObjects(memory.open, Fault(at, kind, when))
        try:
            compacted(memory, keep_checkpoints=1, keep_for_s=0.0, open_objects=requests.open)
        except (SimulatedCrash, CompactionFailed, LogOutcomeUnknown, ObjectStoreUnusable):
            struck += 1
        if len(requests.operations) <= at:
            break
        objects = memory.open(TARGET)
        assert rows_in(objects) == rows, requests.operations[-1]
        compacted(memory, now=1.0, keep_checkpoints=0, keep_for_s=0.0)
        assert rows_in(objects) == rows
        assert objects.list("data") == [], "nothing is left over"
        assert objects.list("compacted") == sorted(visible_files(objects))
    assert struck > 3


@pytest.mark.parametrize("seed", range(4))
def test_each_row_once_beside_a_job_whose_drivers_and_compactions_die(
    tmp_path: Path, seed: int
) -> None:
    chance, memory = random.Random(seed), Memory()
    rows = write_source(tmp_path, files=8)
    faults = [Fault(chance.randrange(5, 40)) for _ in range(3)]
    simulated = SimulatedObjectIngest(tmp_path, memory, faults)
    merged = 0

    def disturb() -> None:
        nonlocal merged
        if chance.random() < 0.2:
            fault = Fault(chance.randrange(12)) if chance.random() < 0.5 else None
            requests = FaultyObjects(memory.open, fault)
            try:
                result = compacted(memory, keep_for_s=0.0, open_objects=requests.open)
                merged += result.merged
            except (SimulatedCrash, NothingThere):
                return

    simulated.run(disturb)
    assert simulated.leave().state == "finished"
    assert merged > 0
    assert rows_in(memory.open(TARGET)) == rows


def test_the_log_holds_its_state_also_where_a_compaction_writes_the_entry() -> None:
    memory = Memory()
    rows = small_objects(memory, 62)  # a claim and 62 commits; the next entry holds the state
    compacted(memory)
    assert rows_in(memory.open(TARGET)) == rows
    objects = memory.open(TARGET)
    for key in objects.list("_epochgate/log")[:63]:
        objects.delete(key)
    assert rows_in(objects) == rows, "the state alone is enough"


def test_a_store_that_ignores_conditions_is_refused_before_anything_is_merged() -> None:
    memory = Memory()
    small_objects(memory)
    keys = memory.open(TARGET).list("")
    with pytest.raises(ConditionsIgnored):
        compacted(memory, open_objects=lambda url: Lying(url, memory.stores[url]))
    assert memory.open(TARGET).list("") == keys


def test_what_is_no_target_and_what_is_for_others_is_refused(tmp_path: Path) -> None:
    with pytest.raises(NothingThere):
        compacted(Memory())
    with pytest.raises(UsageError, match="--keep-for"):
        compact(str(tmp_path), keep_for_s=1.0)


def test_a_writer_that_has_claimed_the_log_still_finds_its_own_entries() -> None:
    objects = Memory().open("s3://bucket/log")
    log = ObjectLog(objects, lambda state, entry: {**state, entry["kind"]: True}, {})
    log.claim("w", {"run": "r"})
    beside = ObjectLog(objects, lambda state, entry: {**state, entry["kind"]: True}, {})
    beside.refresh()
    assert beside.append_beside("other", {"kind": "a"}, lambda _: True)
    assert log.append({"kind": "b"})
    assert not beside.append_beside("other", {"kind": "c"}, lambda state: "b" not in state)
    assert log.append({"kind": "d"}, lambda state: "a" in state)
    assert not log.append({"kind": "e"}, lambda state: "c" in state)
    assert log.number == 4
