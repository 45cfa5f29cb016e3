"""Files that are found, when, in which order, as which splits; and what is wrong with a source."""

from __future__ import annotations

import gzip
import os
from pathlib import Path

import msgpack
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from epochgate.errors import UsageError
from epochgate.spark.files import (
    BadFile,
    FileChanged,
    FileEnumeration,
    FileSplit,
    IncompatibleState,
    MixedFormats,
    SchemaChanged,
    SourceEmpty,
    SourceMissing,
    SourceUnreadable,
    UnknownFormat,
)
from epochgate.spark.files.partitions import PartitionsDiffer
from epochgate.spark.files.split import SplitPosition

TORN = [("a.csv", "a,b\n1,2\n3,4", "5\n"), ("a.jsonl", '{"a": 1}\n{"a": 2', "3}\n")]


def write(path: Path, text: str = "a\n1\n") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def found(enumeration: FileEnumeration, root: Path) -> list[str]:
    return [os.path.relpath(split.path, root) for split in enumeration.discover()]


def test_visible_finished_files_below_a_directory_are_found_in_order(tmp_path: Path) -> None:
    for name in (
        "b.csv",
        "a.csv",
        "deep/er/c.csv",
        ".hidden.csv",
        "_SUCCESS",
        "_dir/d.csv",
        ".dir/e.csv",
        "f.csv.tmp",
        "g.csv.part",
    ):
        write(tmp_path / name)
    (tmp_path / "empty.csv").write_text("")
    assert found(FileEnumeration(tmp_path), tmp_path) == ["a.csv", "b.csv", "deep/er/c.csv"]


def test_a_pattern_or_a_file_may_be_the_source(tmp_path: Path) -> None:
    for name in ("1.csv", "2.csv", "x/3.csv", "_x/4.csv", "x/y/5.txt"):
        write(tmp_path / name)
    assert found(FileEnumeration(tmp_path / "*.csv"), tmp_path) == ["1.csv", "2.csv"]
    everywhere = FileEnumeration(tmp_path / "**" / "*.csv")
    assert found(everywhere, tmp_path) == ["1.csv", "2.csv", "x/3.csv"]
    assert found(FileEnumeration(tmp_path / "2.csv"), tmp_path) == ["2.csv"]
    given = FileEnumeration(tmp_path / "x/y/5.txt", format="csv")
    assert found(given, tmp_path) == ["x/y/5.txt"]


def test_row_groups_are_gathered_up_to_the_target(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"a": list(range(10_000))}), path, row_group_size=1_000)
    size = pq.read_metadata(path).row_group(0).column(0).total_compressed_size
    for target, expected in ((1, 10), (3 * size + size // 2, 4), (1 << 30, 1)):
        splits = FileEnumeration(path, split_bytes_target=target).discover()
        assert len(splits) == expected
        assert [split.start for split in splits[1:]] == [split.end for split in splits[:-1]]
        assert (splits[0].start, splits[-1].end) == (0, 10)


def test_split_ids_are_distinct_stable_and_independent_of_the_process(tmp_path: Path) -> None:
    path = write(tmp_path / "a.csv", "a\n" + "1\n" * 100)
    once = FileEnumeration(tmp_path, split_bytes_target=50).discover()
    again = FileEnumeration(tmp_path, split_bytes_target=50).discover()
    ids = [split.split_id for split in once]
    assert ids == [split.split_id for split in again]
    assert len(set(ids)) == len(ids) == 5
    assert ids[0] == f"{path}#bytes=0-40"
    plain = msgpack.unpackb(msgpack.packb([split.to_list() for split in once]))
    assert [FileSplit.from_list(values) for values in plain] == once


def test_given_out_splits_come_back_to_the_front(tmp_path: Path) -> None:
    write(tmp_path / "a.csv", "a\n" + "1\n" * 10)
    enumeration = FileEnumeration(tmp_path, split_bytes_target=8)
    splits = enumeration.discover()
    taken = [enumeration.next_split(), enumeration.next_split()]
    assert taken == splits[:2]
    enumeration.add_back(splits[:2])
    assert list(enumeration.pending) == splits
    assert [enumeration.next_split() for _ in range(4)] == [*splits, None]


def test_the_shares_of_a_file_are_one_file_together_and_shrink_while_they_are_read(
    tmp_path: Path,
) -> None:
    pq.write_table(
        pa.table({"a": list(range(10_000))}), tmp_path / "a.parquet", row_group_size=1_000
    )
    write(tmp_path / "csv" / "b.csv", "a\n" + "1\n" * 100)
    for path, target, shares in ((tmp_path / "a.parquet", 1, 10), (tmp_path / "csv", 50, 5)):
        splits = FileEnumeration(path, split_bytes_target=target).discover()
        assert len(splits) == shares
        assert sum(split.share for split in splits) == 1
        size, one = splits[0].size_bytes, splits[-1]
        assert size - shares <= sum(split.bytes_left(None) for split in splits) <= size
        left = [one.bytes_left(SplitPosition(at)) for at in range(one.start, one.end + 1)]
        assert (left[0], left[-1]) == (one.bytes_left(None), 0)
        assert left == sorted(set(left), reverse=True)
        plain = msgpack.unpackb(msgpack.packb([split.to_list() for split in splits]))
        assert [FileSplit.from_list(values) for values in plain] == splits
    [whole] = FileEnumeration(tmp_path / "a.parquet").discover()
    assert (whole.share, whole.groups, whole.bytes_left(None)) == (1, 0, whole.size_bytes)


def test_how_much_of_a_compressed_file_is_left_is_not_told_before_its_end(tmp_path: Path) -> None:
    (tmp_path / "a.csv.gz").write_bytes(gzip.compress(b"a\n" + b"1\n" * 10_000))
    [split] = FileEnumeration(tmp_path).discover()
    assert split.bytes_left(SplitPosition(15_000)) == split.size_bytes


# Following a directory


def test_only_new_files_are_found_by_the_next_look(tmp_path: Path) -> None:
    enumeration = FileEnumeration(tmp_path, follow=True, settle_s=0)
    assert enumeration.discover() == []
    assert enumeration.layout is None
    write(tmp_path / "b.csv")
    assert found(enumeration, tmp_path) == ["b.csv"]
    write(tmp_path / "a.csv")
    assert found(enumeration, tmp_path) == ["a.csv"]
    assert enumeration.discover() == []


def test_a_file_that_is_still_growing_waits_until_it_has_settled(tmp_path: Path) -> None:
    now = 1_000.0
    path = tmp_path / "a.csv"

    def grow(text: str) -> None:
        write(path, text)
        os.utime(path, (now, now))

    enumeration = FileEnumeration(tmp_path, follow=True, settle_s=5, now=lambda: now)
    grow("a\n1")
    assert enumeration.discover() == []
    assert list(enumeration.settling) == [str(path)]
    now += 4
    grow("a\n12\n")
    assert enumeration.discover() == []
    now += 4
    assert enumeration.discover() == []
    now += 1
    assert len(enumeration.discover()) == 1
    assert list(enumeration.settling) == []


def test_two_looks_settle_a_file_whose_time_stamp_is_ahead_of_our_clock(tmp_path: Path) -> None:
    now = 1_000.0
    os.utime(write(tmp_path / "a.csv"), (5_000, 5_000))
    enumeration = FileEnumeration(tmp_path, follow=True, settle_s=5, now=lambda: now)
    assert enumeration.discover() == []
    now += 5
    assert len(enumeration.discover()) == 1


@pytest.mark.parametrize(("name", "torn", "rest"), TORN)
def test_a_line_without_its_end_is_waited_for_ten_times_as_long(
    tmp_path: Path, name: str, torn: str, rest: str
) -> None:
    now = 1_000.0
    path = tmp_path / name

    def grow(text: str) -> None:
        write(path, text)
        os.utime(path, (now, now))

    def look(after_s: float) -> int:
        nonlocal now
        now += after_s
        return len(enumeration.discover())

    enumeration = FileEnumeration(tmp_path, follow=True, settle_s=5, now=lambda: now)
    grow(torn)
    assert [look(0), look(20), look(29)] == [0, 0, 0], "its writer is silent within a line"
    grow(torn + rest)
    assert [look(4), look(1)] == [0, 1], "the line has its end"
    grow_other = write(tmp_path / f"other-{name}", torn)
    os.utime(grow_other, (now, now))
    assert [look(49), look(1)] == [0, 1], "the file has no other end"


def test_a_torn_file_that_is_not_followed_or_old_or_compressed_is_taken_at_once(
    tmp_path: Path,
) -> None:
    path = write(tmp_path / "a.csv", "a\n1")
    assert len(FileEnumeration(tmp_path).discover()) == 1
    os.utime(path, (940, 940))
    (tmp_path / "b.csv.gz").write_bytes(gzip.compress(b"a\n1"))
    os.utime(tmp_path / "b.csv.gz", (990, 990))
    followed = FileEnumeration(tmp_path, follow=True, settle_s=5, now=lambda: 1_000.0)
    assert found(followed, tmp_path) == ["a.csv", "b.csv.gz"]


def test_an_old_file_is_taken_at_the_first_look(tmp_path: Path) -> None:
    os.utime(write(tmp_path / "a.csv"), (10, 10))
    assert len(FileEnumeration(tmp_path, follow=True).discover()) == 1


def test_a_file_that_changes_after_it_was_enumerated_is_an_error_or_recorded_once(
    tmp_path: Path,
) -> None:
    write(tmp_path / "a.csv")
    strict = FileEnumeration(tmp_path)
    lenient = FileEnumeration(tmp_path, on_bad_file="skip")
    strict.discover()
    lenient.discover()
    write(tmp_path / "a.csv", "a\n1\n2\n")
    with pytest.raises(FileChanged, match=r"a\.csv.*expected 4 bytes.*found 6 bytes"):
        strict.discover()
    assert lenient.discover() == lenient.discover() == []
    assert [skipped.position for skipped in lenient.skipped] == ["byte 4"]


# State


def test_a_restored_enumeration_continues_where_the_snapshot_was_taken(tmp_path: Path) -> None:
    for name in "abc":
        write(tmp_path / f"{name}.csv")
    (tmp_path / "bad.csv").write_bytes(b'a,a\n"')
    enumeration = FileEnumeration(tmp_path, on_bad_file="skip")
    enumeration.discover()
    enumeration.next_split()
    data = enumeration.snapshot()
    write(tmp_path / "later.csv")

    restored = FileEnumeration(tmp_path, on_bad_file="skip")
    restored.restore(data)
    assert restored.snapshot() == data
    assert restored.layout == enumeration.layout
    assert restored.pending == enumeration.pending
    assert list(restored.skipped) == list(enumeration.skipped)
    assert len(restored.skipped) == 1
    assert found(restored, tmp_path) == ["later.csv"]
    assert [os.path.basename(split.path) for split in restored.pending] == [
        "b.csv",
        "c.csv",
        "later.csv",
    ]


@pytest.mark.parametrize("restarts", [False, True])
def test_files_with_nested_columns_agree_whatever_their_writers_call_the_inner_fields(
    tmp_path: Path, restarts: bool
) -> None:
    pairs = pa.array([[("a", 1)], None], pa.map_(pa.string(), pa.int64()))
    nested = pa.table({"id": [1, 2], "props": pairs, "tags": [["x"], []]})
    pq.write_table(nested, tmp_path / "1.parquet", store_schema=False)
    enumeration = FileEnumeration(tmp_path)
    assert len(enumeration.discover()) == 1
    if restarts:
        data = enumeration.snapshot()
        enumeration = FileEnumeration(tmp_path)
        enumeration.restore(data)
    pq.write_table(nested, tmp_path / "2.parquet", store_schema=False)
    item = pa.list_(pa.field("item", pa.string()))
    renamed = nested.select(["id", "props"]).append_column("tags", nested["tags"].cast(item))
    pq.write_table(renamed, tmp_path / "3.parquet", use_compliant_nested_type=False)
    assert found(enumeration, tmp_path) == ["2.parquet", "3.parquet"]
    other = pa.array([[("a", "b")], None], pa.map_(pa.string(), pa.string()))
    pq.write_table(nested.set_column(1, "props", other), tmp_path / "4.parquet")
    with pytest.raises(SchemaChanged, match=r"4\.parquet"):
        enumeration.discover()


def test_state_of_another_version_source_or_projection_is_refused(tmp_path: Path) -> None:
    write(tmp_path / "x" / "a.csv")
    enumeration = FileEnumeration(tmp_path / "x")
    enumeration.discover()
    data = enumeration.snapshot()
    newer = msgpack.packb([99, *msgpack.unpackb(data)[1:]])
    with pytest.raises(IncompatibleState, match="version 99, this release reads version 7"):
        FileEnumeration(tmp_path / "x").restore(newer)
    with pytest.raises(UsageError, match="the checkpoint is of source"):
        FileEnumeration(tmp_path).restore(data)
    with pytest.raises(UsageError, match=r"columns \(all\)"):
        FileEnumeration(tmp_path / "x", projection=["a"]).restore(data)


# What can be wrong


def test_a_missing_source_is_named(tmp_path: Path) -> None:
    for source in ("nowhere", "nowhere/*.csv", "*.csv"):
        with pytest.raises(SourceMissing, match=r"does not exist, or no file matches"):
            FileEnumeration(tmp_path / source).discover()


def test_a_source_without_data_files_is_empty(tmp_path: Path) -> None:
    (tmp_path / "_SUCCESS").touch()
    (tmp_path / "a.csv").touch()
    with pytest.raises(SourceEmpty, match="no data file"):
        FileEnumeration(tmp_path).discover()


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_an_unreadable_file_is_named(tmp_path: Path) -> None:
    path = write(tmp_path / "a.csv")
    path.chmod(0)
    with pytest.raises(SourceUnreadable, match=r"a\.csv.*permissions"):
        FileEnumeration(tmp_path).discover()


def test_a_file_that_the_system_refuses_to_look_at_is_named(tmp_path: Path) -> None:
    (tmp_path / "a.csv").symlink_to(tmp_path / "a.csv")
    with pytest.raises(SourceUnreadable, match=r"a\.csv.*levels of symbolic links"):
        FileEnumeration(tmp_path).discover()


def test_mixed_and_unknown_formats_are_refused(tmp_path: Path) -> None:
    write(tmp_path / "a.csv")
    write(tmp_path / "b.jsonl", '{"a": 1}\n')
    with pytest.raises(MixedFormats, match=r"a\.csv' is csv.*b\.jsonl' is jsonl"):
        FileEnumeration(tmp_path).discover()
    write(tmp_path / "a.txt")
    with pytest.raises(UnknownFormat, match=r"a\.txt"):
        FileEnumeration(tmp_path / "*.txt").discover()


def test_a_target_may_be_the_source_of_another_job(tmp_path: Path) -> None:
    write(tmp_path / "checkpoint=000000000012" / "a.csv")
    assert len(FileEnumeration(tmp_path).discover()) == 1
    write(tmp_path / "checkpoint=12" / "a.csv")
    with pytest.raises(PartitionsDiffer, match=r"checkpoint=12.*: checkpoint"):
        FileEnumeration(tmp_path).discover()


@pytest.mark.parametrize("kind", ["parquet", "csv"])
def test_a_schema_that_changes_between_files_is_named_with_both(tmp_path: Path, kind: str) -> None:
    if kind == "csv":
        write(tmp_path / "1.csv", "a,b\n1,2\n")
        write(tmp_path / "2.csv", "a,c\n1,2\n")
    else:
        pq.write_table(pa.table({"a": [1], "b": [2]}), tmp_path / "1.parquet")
        pq.write_table(pa.table({"a": [1], "b": ["c"]}), tmp_path / "2.parquet")
    enumeration = FileEnumeration(tmp_path)
    with pytest.raises(SchemaChanged) as caught:
        enumeration.discover()
    message = str(caught.value)
    for part in (f"1.{kind}: a: BIGINT, b: BIGINT", f"2.{kind}:\n", "rewrite the file"):
        assert part in message
    assert [os.path.basename(path) for path in enumeration.seen] == [f"1.{kind}"]

    lenient = FileEnumeration(tmp_path, on_bad_file="skip")
    assert len(lenient.discover()) == 1
    assert "schema changes" in next(iter(lenient.skipped)).reason


def test_a_file_that_is_not_what_its_name_says_is_bad(tmp_path: Path) -> None:
    write(tmp_path / "a.parquet", "not parquet")
    with pytest.raises(BadFile, match=r"a\.parquet.*magic"):
        FileEnumeration(tmp_path).discover()


def test_lines_that_end_with_cr_alone_are_refused_instead_of_read_as_a_header(
    tmp_path: Path,
) -> None:
    write(tmp_path / "a.csv", "a,b\r1,2\r3,4\r")
    with pytest.raises(BadFile, match="CR alone"):
        FileEnumeration(tmp_path).discover()


def test_a_url_is_not_taken_for_a_path() -> None:
    with pytest.raises(UsageError, match="cannot use 'nosuch://host'"):
        FileEnumeration("nosuch://host/data").discover()


def test_a_column_that_is_not_there_cannot_be_read(tmp_path: Path) -> None:
    write(tmp_path / "a.csv")
    with pytest.raises(UsageError, match=r"\['z'\] are not in"):
        FileEnumeration(tmp_path, projection=["z"]).discover()


def test_a_header_without_rows_does_not_decide_the_types(tmp_path: Path) -> None:
    write(tmp_path / "1.csv", "a\n")
    write(tmp_path / "2.csv", "a\n1\n")
    enumeration = FileEnumeration(tmp_path)
    assert found(enumeration, tmp_path) == ["2.csv"]
    assert enumeration.layout is not None
    assert enumeration.layout.schema.types == [pa.int64()]
