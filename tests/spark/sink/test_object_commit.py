"""A commit into an object store looks at each file before anything is visible."""

from __future__ import annotations

import pyarrow as pa
import pytest

from epochgate.runtime.objects.files import ObjectFiles
from epochgate.spark.parquet_sink import ObjectTarget, StagingWriter
from epochgate.spark.parquet_sink.committable import Committable
from epochgate.spark.parquet_sink.errors import CommittableDamaged, CommittableMissing
from tests.runtime.objects.stores import Memory

TARGET = "memory://table"
FILES = 40
"""More than there are requests at a time."""


@pytest.fixture
def memory() -> Memory:
    return Memory()


@pytest.fixture
def target(memory: Memory) -> ObjectTarget:
    claimed = ObjectTarget(memory.open(TARGET), "job", "r1")
    claimed.claim(None)
    return claimed


def staged(memory: Memory) -> list[Committable]:
    """One file of each subtask."""
    files = ObjectFiles(memory.open(TARGET))
    found: list[Committable] = []
    for subtask in range(FILES):
        writer = StagingWriter("", "r1", subtask, 10, files=files, in_place=True)
        writer.write(pa.RecordBatch.from_pydict({"x": [subtask]}))
        found += writer.prepare_commit(1)
    return found


def test_every_file_is_committed_at_once(memory: Memory, target: ObjectTarget) -> None:
    assert target.commit(1, staged(memory)).rows == FILES


@pytest.mark.parametrize("which", [0, 17, FILES - 1])
def test_a_file_that_is_gone_is_named_and_nothing_is_visible(
    memory: Memory, target: ObjectTarget, which: int
) -> None:
    files = staged(memory)
    memory.open(TARGET).delete(files[which].path)
    with pytest.raises(CommittableMissing, match=files[which].path):
        target.commit(1, files)
    assert target.committed() == []


@pytest.mark.parametrize("which", [0, 17, FILES - 1])
def test_a_file_of_another_size_is_named_and_nothing_is_visible(
    memory: Memory, target: ObjectTarget, which: int
) -> None:
    files = staged(memory)
    memory.open(TARGET).put(files[which].path, b"short")
    with pytest.raises(CommittableDamaged, match=f"{files[which].path}.*5 bytes"):
        target.commit(1, files)
    assert target.committed() == []
