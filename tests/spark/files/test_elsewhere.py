"""Files behind the URLs of fsspec are found, known and read as objects are."""

from __future__ import annotations

import errno
import gzip
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from fsspec.implementations.memory import MemoryFileSystem

from epochgate.runtime.objects.elsewhere import FsspecFiles
from epochgate.runtime.objects.errors import ObjectStoreError, ObjectStoreUnusable
from epochgate.spark.files import (
    FileChanged,
    FileEnumeration,
    SourceMissing,
    SourceUnreadable,
    SplitReader,
)
from epochgate.spark.files.object_file import FETCH_BYTES
from epochgate.spark.files.reader import ReadBatch
from tests.runtime.objects.stores import Memory
from tests.spark.sink.test_object_ingest import SimulatedObjectIngest, rows_in

SOURCE = "memory://landing/in"


@pytest.fixture
def files() -> Iterator[MemoryFileSystem]:
    found = MemoryFileSystem()
    found.store.clear()
    yield found
    found.store.clear()


def put(files: MemoryFileSystem, name: str, content: bytes = b"x\n1\n") -> None:
    files.pipe_file(f"/landing/{name}", content)


def paths(source: str = SOURCE, **options: Any) -> list[str]:
    splits = FileEnumeration(source, **options).discover()
    return [split.path.removeprefix("memory://landing/") for split in splits]


def values(reads: list[ReadBatch]) -> list[int]:
    return [value for read in reads for value in read.batch["x"].to_pylist()]


def test_what_counts_is_what_counts_in_a_directory(files: MemoryFileSystem) -> None:
    for name in ("in/b.csv", "in/deep/a.csv", "in/.c.csv", "in/_d/e.csv", "inbox/f.csv"):
        put(files, name)
    put(files, "in/empty.csv", b"")
    assert paths() == ["in/b.csv", "in/deep/a.csv"]
    assert paths("memory://landing/in/*.csv") == ["in/b.csv"]
    assert paths("memory://landing/**/*.csv") == ["in/b.csv", "in/deep/a.csv", "inbox/f.csv"]
    assert paths("memory://landing/in/b.csv") == ["in/b.csv"]
    with pytest.raises(SourceMissing):
        paths("memory://landing/nothing")
    assert paths("memory://landing/nothing", follow=True) == []


def test_a_followed_file_is_waited_for_since_it_may_be_growing(files: MemoryFileSystem) -> None:
    put(files, "in/a.csv")
    enumeration = FileEnumeration(SOURCE, follow=True)
    assert enumeration.discover() == []
    assert list(enumeration.settling) == [f"{SOURCE}/a.csv"]


def test_a_file_is_read_in_shares_and_known_when_it_comes_again(
    files: MemoryFileSystem, tmp_path: Path
) -> None:
    numbers = list(range(1000))
    text = b"x\n" + b"".join(b"%d\n" % number for number in numbers)
    pq.write_table(pa.table({"x": numbers}), tmp_path / "a", row_group_size=100)
    for name, content in [
        ("a.csv", text),
        ("a.csv.gz", gzip.compress(text)),
        ("a.parquet", (tmp_path / "a").read_bytes()),
    ]:
        files.store.clear()
        put(files, f"in/dt=2024-01-01/{name}", content)
        enumeration = FileEnumeration(SOURCE, follow=True, settle_s=0, split_bytes_target=1000)
        splits = enumeration.discover()
        assert len(splits) > 1 or name.endswith("gz")
        assert enumeration.layout is not None
        assert enumeration.layout.partitions.names == ["dt"]
        reader = SplitReader(enumeration.layout)
        assert values([read for split in splits for read in reader.read(split)]) == numbers
        put(files, f"in/dt=2024-01-01/{name}", content)
        assert enumeration.discover() == []
        put(files, f"in/dt=2024-01-01/{name}", content[:-2] + b"7\n")
        with pytest.raises(FileChanged):
            enumeration.discover()


def test_a_file_that_is_rewritten_while_it_is_read_does_not_mix(files: MemoryFileSystem) -> None:
    contents = [b"x\n" + b"%d\n" % number * 400_000 for number in (1_000_001, 1_000_002)]
    assert len(contents[0]) > 2 * FETCH_BYTES
    put(files, "in/a.csv", contents[0])
    enumeration = FileEnumeration(SOURCE)
    (split,) = enumeration.discover()
    assert enumeration.layout is not None
    reads = SplitReader(enumeration.layout, block_bytes=1 << 16).read(split)
    taken = [next(reads)]
    put(files, "in/a.csv", contents[1])
    with pytest.raises(FileChanged):
        taken.extend(reads)
    assert set(values(taken)) == {1_000_001}


@pytest.mark.parametrize(
    ("raised", "told"),
    [
        (PermissionError(errno.EACCES, "not yours"), SourceUnreadable),
        (ConnectionError("the line is dead"), ObjectStoreError),
        (RuntimeError("what a library raises"), ObjectStoreError),
    ],
)
def test_what_a_file_system_raises_makes_no_file_bad(
    files: MemoryFileSystem,
    monkeypatch: pytest.MonkeyPatch,
    raised: Exception,
    told: type[Exception],
) -> None:
    put(files, "in/a.csv")
    enumeration = FileEnumeration(SOURCE, on_bad_file="skip")
    (split,) = enumeration.discover()
    assert enumeration.layout is not None
    reader = SplitReader(enumeration.layout, on_bad_file="skip")

    def fail(*arguments: Any, **options: Any) -> None:
        raise raised

    for name in ("cat_file", "info"):
        with monkeypatch.context() as patched:
            patched.setattr(MemoryFileSystem, name, fail)
            with pytest.raises(told):
                list(reader.read(split))
            with pytest.raises(told):
                FileEnumeration(SOURCE, on_bad_file="skip", settle_s=1e-6).discover()
    assert reader.take_skipped() == []


def test_a_scheme_that_nothing_reads_is_refused_with_the_reason() -> None:
    with pytest.raises(ObjectStoreUnusable, match="Protocol not known: nosuch"):
        paths("nosuch://host/in")


def test_times_are_told_in_many_ways() -> None:
    class Told:
        info: dict[str, Any]

        def invalidate_cache(self) -> None:
            """Nothing is cached."""

    def modified_ns(**info: Any) -> int:
        found = {"size": 3, "type": "file", **info}
        told: Any = Told()
        told.info = lambda path: found
        return FsspecFiles("told://host", told, "/").status("a").modified_ns

    second = 1_700_000_000
    assert modified_ns(mtime=second + 0.5) == second * 10**9 + 5 * 10**8
    assert modified_ns(LastModified="2023-11-14T22:13:20+00:00") == second * 10**9
    assert modified_ns(last_modified="2023-11-14T22:13:20Z") == second * 10**9
    assert modified_ns() == 0


def test_rows_arrive_once_from_such_a_source(files: MemoryFileSystem, tmp_path: Path) -> None:
    memory = Memory()
    for number in range(3):
        rows = "".join(f"{x},text {x}\n" for x in range(number * 10, number * 10 + 10))
        put(files, f"in/{number}.csv", f"x,name\n{rows}".encode())
    simulated = SimulatedObjectIngest(tmp_path, memory, source=SOURCE)
    simulated.run(until=lambda: simulated.plan.committer.rows_visible > 0)
    simulated.crash_driver()
    simulated.run()
    result = simulated.leave()
    assert result.state == "finished", result.reason
    assert rows_in(memory, tmp_path) == list(range(30))
