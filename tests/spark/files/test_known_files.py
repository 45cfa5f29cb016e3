"""A file that comes again is known by its content; with other content the job's owner decides."""

from __future__ import annotations

import gzip
import os
from pathlib import Path

import msgpack
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from epochgate.spark.files import BadFile, FileChanged, FileEnumeration, SplitReader
from epochgate.spark.files.content import OnChangedFile


def deliver(path: Path, values: list[int]) -> None:
    """Write a file under a time stamp that no file of that name had."""
    if path.suffix == ".parquet":
        pq.write_table(pa.table({"a": values}), path)
    else:
        path.write_text("a\n" + "".join(f"{value}\n" for value in values))
    touch(path)


stamps = iter(range(1_000, 1_000_000))


def touch(path: Path) -> None:
    stamp = next(stamps)
    os.utime(path, (stamp, stamp))


def restarted(enumeration: FileEnumeration, source: Path, **options: object) -> FileEnumeration:
    again = FileEnumeration(source, **options)  # type: ignore[arg-type]  # of any option
    again.restore(enumeration.snapshot())
    return again


@pytest.mark.parametrize("name", ["a.csv", "a.csv.gz", "a.parquet"])
def test_the_same_content_is_known_however_it_came(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    deliver(path, [1, 2])
    if name.endswith(".gz"):
        path.write_bytes(gzip.compress(path.read_bytes(), mtime=0))
    content = path.read_bytes()
    enumeration = FileEnumeration(tmp_path)
    assert len(enumeration.discover()) == 1
    touch(path)
    enumeration = restarted(enumeration, tmp_path)
    assert enumeration.discover() == []
    path.unlink()
    assert enumeration.discover() == []
    path.write_bytes(content)
    touch(path)
    assert enumeration.discover() == []
    assert not enumeration.skipped


@pytest.mark.parametrize("name", ["a.csv", "a.parquet"])
@pytest.mark.parametrize("values", [[1, 3], [1, 2, 3]])
def test_other_content_is_refused_until_the_owner_decides(
    tmp_path: Path, name: str, values: list[int]
) -> None:
    path = tmp_path / name
    deliver(path, [1, 2])
    first = FileEnumeration(tmp_path)
    (old,) = first.discover()
    deliver(path, values)
    deliver(tmp_path / f"b{path.suffix}", [9])
    for policy in ("skip", "new"):
        with pytest.raises(FileChanged, match=f"--on-changed-file {policy}"):
            restarted(first, tmp_path).discover()

    skipping = restarted(first, tmp_path, on_changed_file="skip")
    assert [Path(split.path).stem for split in skipping.discover()] == ["b"]
    assert [Path(one.path).name for one in skipping.skipped] == [name]
    touch(path)
    assert restarted(skipping, tmp_path).discover() == [], "what was left out is known from then on"

    taking = restarted(first, tmp_path, on_changed_file="new")
    new, other = taking.discover()
    assert (new.path, new.delivery, other.delivery) == (old.path, 2, 1)
    assert new.split_id != old.split_id
    assert taking.layout is not None
    reads = SplitReader(taking.layout).read(new)
    assert [value for read in reads for value in read.batch["a"].to_pylist()] == values
    touch(path)
    assert restarted(taking, tmp_path).discover() == []


def test_a_corrected_parquet_file_is_another_though_its_footer_is_the_same(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    contents = []
    for amount in (2200, 2500):
        pq.write_table(pa.table({"amount": [1000, amount, 3300, 9000]}), path, use_dictionary=False)
        contents.append(path.read_bytes())
    footer_bytes = pq.read_metadata(path).serialized_size
    assert contents[0][-footer_bytes:] == contents[1][-footer_bytes:]
    path.write_bytes(contents[0])
    touch(path)
    enumeration = FileEnumeration(tmp_path)
    (split,) = enumeration.discover()
    path.write_bytes(contents[1])
    touch(path)
    with pytest.raises(FileChanged):
        restarted(enumeration, tmp_path).discover()
    assert enumeration.layout is not None
    with pytest.raises(FileChanged):
        list(SplitReader(enumeration.layout).read(split))


@pytest.mark.parametrize("policy", ["fail", "skip"])
def test_a_changed_file_is_treated_as_a_bad_one_unless_it_is_said(
    tmp_path: Path, policy: OnChangedFile
) -> None:
    deliver(tmp_path / "a.csv", [1])
    enumeration = FileEnumeration(tmp_path, on_bad_file="skip", on_changed_file=policy)
    enumeration.discover()
    deliver(tmp_path / "a.csv", [2])
    if policy == "skip":
        assert enumeration.discover() == []
    else:
        with pytest.raises(FileChanged):
            enumeration.discover()


def test_files_that_an_earlier_release_has_taken_are_known_by_their_stamps(tmp_path: Path) -> None:
    deliver(tmp_path / "a.csv", [1])
    enumeration = FileEnumeration(tmp_path)
    enumeration.discover()
    version, source, first, layouts, known, waiting, skipped, _ = msgpack.unpackb(
        enumeration.snapshot()
    )
    segments, recent = known
    (_, pending), *others = waiting[1]
    assert (version, segments, len(layouts), others) == (7, [], 2, [])
    layout = msgpack.packb([1, "csv", msgpack.unpackb(layouts[1])[2], True, ",", None])
    known = [values[:3] for values in recent]
    pending = [values[:7] for values in pending]
    earlier = msgpack.packb([1, source, first, layout, known, pending, skipped[1]])
    restored = FileEnumeration(tmp_path)
    restored.restore(earlier)
    assert len(restored.pending) == 1
    assert restored.discover() == []
    touch(tmp_path / "a.csv")
    with pytest.raises(FileChanged):
        restored.discover()


def test_a_file_of_a_target_stays_known_when_its_directory_is_renamed(tmp_path: Path) -> None:
    earlier = tmp_path / "checkpoint-000000000007"
    earlier.mkdir()
    deliver(earlier / "a.csv", [1])
    enumeration = FileEnumeration(tmp_path)
    assert len(enumeration.discover()) == 1
    earlier.rename(tmp_path / "checkpoint=000000000007")
    assert enumeration.discover() == []


# Copies that take their time


def followed(tmp_path: Path, now: list[float]) -> FileEnumeration:
    return FileEnumeration(tmp_path, follow=True, settle_s=5, now=lambda: now[0])


def test_a_parquet_file_whose_end_is_missing_may_be_a_copy_that_has_stalled(tmp_path: Path) -> None:
    deliver(tmp_path / "whole.parquet", [1, 2])
    content = (tmp_path / "whole.parquet").read_bytes()
    (tmp_path / "whole.parquet").unlink()
    path, now = tmp_path / "a.parquet", [1_000.0]
    path.write_bytes(content[:-20])
    os.utime(path, (1_000, 1_000))
    enumeration = followed(tmp_path, now)
    for now[0] in (1_000.0, 1_006.0, 1_049.0):
        assert enumeration.discover() == []
    path.write_bytes(content)
    os.utime(path, (1_049, 1_049))
    now[0] = 1_055.0
    assert len(enumeration.discover()) == 1


def test_a_parquet_file_whose_end_never_comes_is_bad(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    path.write_bytes(b"PAR1 and no more")
    os.utime(path, (1_000, 1_000))
    now = [1_049.0]
    enumeration = followed(tmp_path, now)
    assert enumeration.discover() == []
    now[0] = 1_050.0
    with pytest.raises(BadFile, match=r"a\.parquet"):
        enumeration.discover()


def test_a_file_that_grows_while_it_is_enumerated_is_not_taken(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    deliver(path, [1])

    def grow() -> float:
        with path.open("a") as file:
            file.write("text\n")
        return 1e12

    enumeration = FileEnumeration(tmp_path, follow=True, settle_s=5, now=grow)
    assert enumeration.discover() == []
    assert enumeration.layout is None
