"""Tasks look at the objects of their checkpoint before the driver names them in its log."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from epochgate.runtime import SinkStart
from epochgate.runtime.objects.files import ObjectFiles
from epochgate.spark.parquet_sink import (
    CommittableDamaged,
    CommittableMissing,
    ParquetCommitter,
    ParquetSink,
    StagingWriter,
    TargetTakenOver,
)
from tests.runtime.objects.stores import Memory, Observed
from tests.spark.sink.in_tasks import committed

TARGET = "s3://bucket/table"
FILES = 30


def sink(memory: Memory) -> ParquetSink:
    return ParquetSink(TARGET, open_objects=memory.open, commit_in="tasks")


def driver(memory: Memory, run: str, restored: int | None = None) -> ParquetCommitter:
    return sink(memory).create_committer(SinkStart("job", run, restored))


def staged(memory: Memory, run: str = "r1", subtask: int = 0) -> list[Any]:
    """Some files of one subtask."""
    found = []
    files = ObjectFiles(memory.open(TARGET))
    writer = StagingWriter("", run, subtask, 10, files=files, in_place=True, roll_bytes=1)
    for number in range(FILES):
        writer.write(pa.RecordBatch.from_pydict({"x": [number]}))
        found += writer.prepare_commit(1)
    return [one.to_list() for one in found]


def test_the_driver_asks_for_no_object_and_a_task_for_a_list_of_its_own() -> None:
    memory = Observed()
    committer = driver(memory, "r1")
    parts = {subtask: staged(memory, subtask=subtask) for subtask in range(3)}
    memory.requests.clear()
    passed = committed(sink(memory), "r1", 1, {1: parts[1]})
    assert memory.requests == [("list", "data/r1")]
    passed |= committed(sink(memory), "r1", 1, {0: parts[0], 2: parts[2]})
    assert committer.commit(1, passed) is True
    assert committer.commit(1, passed) is False
    assert committer.commit(1, parts) is False, "as a driver that commits by itself would ask"
    assert (committer.rows_committed, committer.files_committed) == (3 * FILES, 3 * FILES)
    assert driver(memory, "r2", 1).rows_visible == 3 * FILES


@pytest.mark.parametrize("which", [0, 17, FILES - 1])
def test_an_object_that_is_gone_or_another_is_named_by_its_task(which: int) -> None:
    memory = Memory()
    driver(memory, "r1")
    part = staged(memory)
    path = part[which][3]
    memory.open(TARGET).put(path, b"short")
    with pytest.raises(CommittableDamaged, match=f"{path}.*5 bytes"):
        committed(sink(memory), "r1", 1, {0: part})
    memory.open(TARGET).delete(path)
    with pytest.raises(CommittableMissing, match=path):
        committed(sink(memory), "r1", 1, {0: part})


def test_objects_that_were_merged_after_their_commit_are_not_missed() -> None:
    memory = Memory()
    committer = driver(memory, "r1")
    part = staged(memory)
    passed = committed(sink(memory), "r1", 1, {0: part})
    committer.commit(1, passed)
    memory.open(TARGET).delete(part[3][3])
    again = driver(memory, "r2", 1)
    assert again.commit(1, committed(sink(memory), "r2", 1, {0: part})) is False


def test_what_tasks_of_a_replaced_driver_have_looked_at_is_not_committed() -> None:
    memory = Memory()
    before = driver(memory, "r1")
    passed = committed(sink(memory), "r1", 1, {0: staged(memory)})
    after = driver(memory, "r2")
    with pytest.raises(TargetTakenOver):
        before.commit(1, passed)
    assert after.rows_visible == 0
    assert driver(memory, "r3").rows_visible == 0


def test_a_store_that_does_not_answer_is_asked_again() -> None:
    memory = Memory()
    driver(memory, "r1")
    part = staged(memory)
    down = Observed()
    down.stores = memory.stores

    def no_answer(kind: str, key: str) -> None:
        raise OSError("no answer")

    down.before = no_answer
    with pytest.raises(AssertionError, match="no answer"):
        committed(sink(down), "r1", 1, {0: part})
