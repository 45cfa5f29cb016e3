"""Sources in object stores are found, known and read as those in directories are."""

from __future__ import annotations

import errno
import gzip
import io
import json
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from epochgate.runtime.objects.client import ObjectStore
from epochgate.runtime.objects.errors import ObjectMissing, ObjectStoreError, ObjectStoreRefused
from epochgate.spark.files import (
    BadFile,
    FileChanged,
    FileEnumeration,
    SourceEmpty,
    SourceMissing,
    SourceUnreadable,
    SplitReader,
)
from epochgate.spark.files.access import FileAccess
from epochgate.spark.files.content import OnChangedFile, Stamp, is_as_it_was
from epochgate.spark.files.object_file import FETCH_BYTES
from epochgate.spark.files.object_finding import SourceIsTarget
from epochgate.spark.files.reader import REPLACED_MAX, ReadBatch
from tests.runtime.objects.stores import Observed

SOURCE = "s3://bucket/in"


class Zone:
    """A bucket in memory, and a source in it."""

    def __init__(self) -> None:
        self.memory = Observed()
        self.access = FileAccess(self.memory.open)
        self.bucket: ObjectStore = self.memory.open("s3://bucket")

    def put(self, key: str, content: str | bytes = "x\n1\n") -> None:
        self.bucket.put(key, content.encode() if isinstance(content, str) else content)

    def enumeration(self, source: str = SOURCE, **options: Any) -> FileEnumeration:
        return FileEnumeration(source, access=self.access, **options)

    def found(self, source: str = SOURCE, **options: Any) -> list[str]:
        splits = self.enumeration(source, **options).discover()
        return [split.path.removeprefix("s3://bucket/") for split in splits]

    def reader(self, enumeration: FileEnumeration, **options: Any) -> SplitReader:
        assert enumeration.layout is not None
        return SplitReader(enumeration.layout, access=self.access, **options)

    def rows(self, enumeration: FileEnumeration, **options: Any) -> list[dict[str, Any]]:
        splits = enumeration.discover()
        reader = self.reader(enumeration, **options)
        return [
            row for split in splits for read in reader.read(split) for row in read.batch.to_pylist()
        ]

    def asked(self, kind: str) -> int:
        return Counter(kind for kind, _ in self.memory.requests)[kind]


@pytest.fixture
def zone() -> Zone:
    return Zone()


def parquet(table: pa.Table, **options: Any) -> bytes:
    sink = io.BytesIO()
    pq.write_table(table, sink, **options)
    return sink.getvalue()


def test_what_counts_is_what_counts_in_a_directory(zone: Zone) -> None:
    for name in ("b.csv", "a.csv", "deep/er/c.csv", "a b=ü%20#?.csv", "_x/d.csv", ".e.csv"):
        zone.put(f"in/{name}")
    zone.put("in/f.csv.tmp")
    zone.put("in/empty.csv", b"")
    zone.put("into/other.csv")
    files = ["in/a b=ü%20#?.csv", "in/a.csv", "in/b.csv", "in/deep/er/c.csv"]
    assert zone.found() == files
    assert zone.found("s3://bucket/in/") == files
    assert zone.found("s3://bucket") == [*files, "into/other.csv"]
    assert zone.found("s3://bucket/in/*.csv") == files[:3]
    assert zone.found("s3://bucket/in*/[ao]*.csv") == [*files[:2], "into/other.csv"]
    assert zone.found("s3://bucket/**/*.csv") == [*files, "into/other.csv"]
    assert zone.found("s3://bucket/in/b.csv") == ["in/b.csv"]
    assert zone.found("s3://bucket/in/a b=ü%20#?.csv") == ["in/a b=ü%20#?.csv"]


def test_a_source_that_is_not_there_is_missing_unless_it_is_followed(zone: Zone) -> None:
    for source in (SOURCE, "s3://bucket/in/*.csv"):
        with pytest.raises(SourceMissing, match="does not exist"):
            zone.enumeration(source).discover()
        assert zone.enumeration(source, follow=True).discover() == []
    zone.put("in/empty.csv", b"")
    with pytest.raises(SourceEmpty, match="holds no data file"):
        zone.enumeration().discover()


def test_a_target_of_epochgate_is_refused_as_a_source(zone: Zone) -> None:
    zone.put("in/_epochgate/log/000000000000001.json", "{}")
    zone.put("in/data/part.parquet")
    with pytest.raises(SourceIsTarget, match="not committed"):
        zone.enumeration().discover()


def test_each_format_is_read_in_shares(zone: Zone) -> None:
    numbers = list(range(100))
    lines = [json.dumps({"x": number, "y": [number]}) + "\n" for number in numbers]
    table = pa.table({"x": numbers, "y": [[number] for number in numbers]})
    texts = "".join(f'{number},"t{number}"\n' for number in numbers)
    cases: list[tuple[str, str | bytes, int]] = [
        ("csv/a.csv", f"x,y\n{texts}", 9),
        ("jsonl/a.jsonl", "".join(lines), 21),
        ("gz/a.jsonl.gz", gzip.compress("".join(lines).encode()), 1),
        ("parquet/a.parquet", parquet(table, row_group_size=10), 10),
    ]
    for name, content, shares in cases:
        zone.put(f"in/{name}", content)
        source = f"{SOURCE}/{name.partition('/')[0]}"
        enumeration = zone.enumeration(source, split_bytes_target=100)
        rows = zone.rows(enumeration, batch_rows=7)
        assert sorted(row["x"] for row in rows) == numbers, name
        assert len(zone.found(source, split_bytes_target=100)) == shares, name


def test_folders_named_by_values_are_columns(zone: Zone) -> None:
    zone.put("in/dt=2024-01-01/k=a%20b/x.csv", "x\n1\n")
    zone.put("in/dt=2024-01-02/k=__HIVE_DEFAULT_PARTITION__/x.csv", "x\n2\n")
    for source in (SOURCE, f"{SOURCE}/dt=*/*/*.csv"):
        enumeration = zone.enumeration(source)
        rows = zone.rows(enumeration)
        assert [(row["x"], str(row["dt"]), row["k"]) for row in rows] == [
            (1, "2024-01-01", "a b"),
            (2, "2024-01-02", None),
        ]


def test_a_look_at_what_is_known_takes_one_listing_and_no_other_request(zone: Zone) -> None:
    for number in range(2_500):
        zone.put(f"in/{number:05}.csv")
    enumeration = zone.enumeration(follow=True)
    assert len(enumeration.discover()) == 2_500
    zone.memory.requests.clear()
    assert enumeration.discover() == []
    assert zone.memory.requests == [("list", "in")]
    zone.put("in/new.csv")
    assert len(enumeration.discover()) == 1
    assert {key for kind, key in zone.memory.requests if kind == "get"} == {"in/new.csv"}


def test_a_small_parquet_file_is_read_with_one_request_and_a_large_one_by_what_is_read(
    zone: Zone,
) -> None:
    zone.put("in/small.parquet", parquet(pa.table({"x": [1, 2], "y": ["a", "b"]})))
    enumeration = zone.enumeration()
    (split,) = enumeration.discover()
    zone.memory.requests.clear()
    assert len(list(zone.reader(enumeration).read(split))) == 1
    assert (zone.asked("get"), zone.asked("head")) == (1, 2)

    wide = {f"c{column}": [f"{column} {row}" for row in range(40_000)] for column in range(30)}
    data = parquet(pa.table(wide), compression="none", use_dictionary=False)
    assert len(data) > 10 * FETCH_BYTES
    zone.put("wide/a.parquet", data)
    narrow = zone.enumeration("s3://bucket/wide", projection=["c3"])
    (split,) = narrow.discover()
    zone.memory.requests.clear()
    assert sum(read.batch.num_rows for read in zone.reader(narrow).read(split)) == 40_000
    assert zone.asked("get") <= 3


def in_parts(zone: Zone, key: str, content: bytes) -> None:
    """Put an object in parts, so that its ETag is no hash of it."""
    upload = zone.bucket.upload(key)
    upload.write(content)
    upload.close()


@pytest.mark.parametrize("extension", ["csv", "parquet"])
def test_an_object_that_is_delivered_again_is_known_whatever_its_etag(
    zone: Zone, extension: str
) -> None:
    content = b"x\n1\n2\n" if extension == "csv" else parquet(pa.table({"x": [1, 2]}))
    zone.put(f"in/a.{extension}", content)
    enumeration = zone.enumeration(follow=True)
    assert len(enumeration.discover()) == 1
    before = zone.bucket.status(f"in/a.{extension}")
    for is_in_parts in (True, False):
        if is_in_parts:
            in_parts(zone, f"in/a.{extension}", content)
        else:
            zone.put(f"in/a.{extension}", content)
        assert zone.bucket.status(f"in/a.{extension}").etag != before.etag
        restored = zone.enumeration(follow=True)
        restored.restore(enumeration.snapshot())
        for one in (enumeration, restored):
            assert one.discover() == []
            zone.memory.requests.clear()
            assert one.discover() == []
            assert zone.asked("get") == 0, "it is known as it is now"


def test_another_etag_of_a_large_parquet_object_is_another_content(zone: Zone) -> None:
    content = parquet(pa.table({"x": range(FETCH_BYTES // 4)}), compression="none")
    zone.put("in/a.parquet", content)
    enumeration = zone.enumeration(follow=True)
    zone.memory.requests.clear()
    assert len(enumeration.discover()) == 1
    assert zone.asked("get") <= 3, "its pages are for the readers"
    in_parts(zone, "in/a.parquet", content)
    with pytest.raises(FileChanged, match="each other ETag counts as a change"):
        enumeration.discover()


@pytest.mark.parametrize(("policy", "rows"), [("fail", None), ("skip", []), ("new", [8, 9])])
def test_an_object_with_other_content_of_the_same_size_is_the_named_case(
    zone: Zone, policy: OnChangedFile, rows: list[int] | None
) -> None:
    zone.put("in/a.csv", "x\n1\n2\n")
    enumeration = zone.enumeration(follow=True, on_changed_file=policy)
    enumeration.discover()
    zone.put("in/a.csv", "x\n8\n9\n")
    if rows is None:
        with pytest.raises(FileChanged, match="ETag"):
            enumeration.discover()
        return
    assert [row["x"] for row in zone.rows(enumeration)] == rows
    assert len(enumeration.skipped) == (policy == "skip")


def reading(zone: Zone, name: str, content: bytes) -> Iterator[ReadBatch]:
    """The batches of an object, far smaller than what a request asks for."""
    zone.put(f"in/{name}", content)
    enumeration = zone.enumeration()
    (split,) = enumeration.discover()
    return zone.reader(enumeration, batch_rows=100, block_bytes=1000).read(split)


def contents(name: str, first: int) -> bytes:
    numbers = range(first, first + 400_000)
    if name.endswith("csv"):
        return b"x\n" + b"".join(b"%08d\n" % number for number in numbers)
    table = pa.table({"x": list(numbers)})
    return parquet(table, row_group_size=100_000, compression="none", use_dictionary=False)


def values(reads: list[ReadBatch]) -> list[int]:
    return [value for read in reads for value in read.batch["x"].to_pylist()]


def test_an_object_that_is_delivered_again_while_it_is_read_is_read_on(zone: Zone) -> None:
    content = contents("a.csv", 1)
    assert len(content) > 2 * FETCH_BYTES
    reads = reading(zone, "a.csv", content)
    first = [next(reads) for _ in range(3)]
    in_parts(zone, "in/a.csv", content)
    assert values([*first, *reads]) == list(range(1, 400_001))


def test_a_large_parquet_object_that_is_delivered_again_while_it_is_read_is_another(
    zone: Zone,
) -> None:
    content = contents("a.parquet", 1)
    reads = reading(zone, "a.parquet", content)
    next(reads)
    in_parts(zone, "in/a.parquet", content)
    with pytest.raises(FileChanged, match="each other ETag counts as a change"):
        list(reads)


@pytest.mark.parametrize("name", ["a.csv", "a.parquet"])
def test_an_object_that_is_rewritten_while_it_is_read_never_mixes_with_what_was_read(
    zone: Zone, name: str
) -> None:
    content = contents(name, 1)
    reads = reading(zone, name, content)
    taken = [next(reads)]
    zone.put(f"in/{name}", contents(name, 10_000_001))
    with pytest.raises(FileChanged, match="has changed since it was enumerated"):
        taken.extend(reads)
    assert values(taken) == list(range(1, len(values(taken)) + 1))
    assert len(values(taken)) < 400_000


def test_an_object_that_is_taken_away_while_it_is_read_is_bad(zone: Zone) -> None:
    reads = reading(zone, "a.csv", contents("a.csv", 1))
    next(reads)
    zone.bucket.delete("in/a.csv")
    with pytest.raises(BadFile, match="no such object"):
        list(reads)


def failing(kind: str, error: type[OSError]) -> Callable[[str, str], None]:
    def before(asked: str, key: str) -> None:
        if asked == kind:
            raise error(errno.EIO, "by order of the test", key)

    return before


@pytest.mark.parametrize("name", ["a.csv", "a.csv.gz", "a.parquet"])
@pytest.mark.parametrize("kind", ["get", "head"])
def test_a_store_that_does_not_answer_makes_no_file_bad(zone: Zone, name: str, kind: str) -> None:
    content = contents(name.removesuffix(".gz"), 1)
    zone.put(f"in/{name}", gzip.compress(content) if name.endswith("gz") else content)
    enumeration = zone.enumeration(on_bad_file="skip")
    (split,) = enumeration.discover()
    reader = zone.reader(enumeration, on_bad_file="skip")
    other = zone.enumeration(on_bad_file="skip", settle_s=1e-6)
    for error in (ObjectStoreError, ObjectStoreRefused):
        raised = SourceUnreadable if error is ObjectStoreRefused else ObjectStoreError
        zone.memory.before = failing(kind, error)
        with pytest.raises(raised, match="by order of the test"):
            list(reader.read(split))
        with pytest.raises(raised, match="by order of the test"):
            other.discover()
    assert reader.take_skipped() == []
    assert list(other.skipped) == []
    zone.memory.before = lambda kind, key: None
    assert sum(read.batch.num_rows for read in reader.read(split)) == 400_000
    assert len(other.discover()) == 1


def test_a_listing_that_fails_is_told_with_what_to_check(zone: Zone) -> None:
    zone.put("in/a.csv")
    zone.memory.before = failing("list", ObjectStoreRefused)
    with pytest.raises(SourceUnreadable) as told:
        zone.enumeration().discover()
    assert "AWS_ACCESS_KEY_ID" in str(told.value)
    zone.memory.before = failing("list", ObjectStoreError)
    with pytest.raises(ObjectStoreError):
        zone.enumeration().discover()


@pytest.mark.parametrize("name", ["a.csv", "a.parquet"])
def test_an_object_that_is_there_and_cannot_be_read_is_not_asked_for_ever(
    zone: Zone, name: str
) -> None:
    zone.put(f"in/{name}", contents(name, 1))
    enumeration = zone.enumeration(on_bad_file="skip")
    (split,) = enumeration.discover()
    zone.memory.requests.clear()
    zone.memory.before = failing("get", ObjectMissing)
    reader = zone.reader(enumeration, on_bad_file="skip")
    with pytest.raises(ObjectStoreError, match="it is there, and cannot be read"):
        list(reader.read(split))
    assert zone.asked("get") == REPLACED_MAX
    assert reader.take_skipped() == []


def test_the_same_etag_is_the_same_object_at_whatever_time_it_is_told() -> None:
    before = Stamp(3, 1_000_000_000, '"tag"')
    assert is_as_it_was(before, Stamp(3, 1_234_000_000, '"tag"'))
    assert not is_as_it_was(before, Stamp(3, 1_000_000_000, '"other"'))
    assert not is_as_it_was(Stamp(3, 1, 'W/"tag"'), Stamp(3, 2, 'W/"tag"'))
    assert not is_as_it_was(Stamp(3, 1), Stamp(3, 2)), "a file on a disk has no ETag"


def test_an_object_that_is_replaced_while_it_is_found_is_taken_as_it_is_then(zone: Zone) -> None:
    zone.put("in/a.csv", "x\n1\n2\n")
    left = [3]

    def replace(kind: str, key: str) -> None:
        if kind == "get" and left[0]:
            left[0] -= 1
            zone.put("in/a.csv", f"x\n{left[0]}\n5\n")

    zone.memory.before = replace
    enumeration = zone.enumeration()
    splits = enumeration.discover()
    assert left == [0]
    assert values(list(zone.reader(enumeration).read(splits[0]))) == [0, 5]
    left[0] = 1_000
    with pytest.raises(SourceUnreadable, match="replaced again and again"):
        zone.enumeration().discover()
