"""Compressed files have the rows of what they hold, up to where they are damaged."""

from __future__ import annotations

import bz2
import gzip
import io
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
import zstandard

from epochgate.spark.files import BadFile, FileEnumeration, SplitReader, UnknownFormat
from tests.spark.files.reading import batches, rows, write

TEXT = "x,name\n" + "".join(f"{n},{'n' * (n % 50)}\n" for n in range(3000))
EXPECTED = list(range(3000))


def zipped(data: bytes, *names: str) -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as file:
        for name in names or ("a.csv",):
            file.writestr(name, data)
    return packed.getvalue()


def lz4(data: bytes) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.CompressedOutputStream(sink, "lz4") as file:
        file.write(data)
    return bytes(sink.getvalue())


WRITERS: dict[str, Callable[[bytes], bytes]] = {
    "gz": gzip.compress,
    "bz2": bz2.compress,
    "zst": lambda data: zstandard.ZstdCompressor(write_checksum=True).compress(data),
    "lz4": lz4,
    "zip": zipped,
}


@pytest.mark.parametrize("ending", WRITERS)
def test_rows_are_those_of_what_is_compressed(tmp_path: Path, ending: str) -> None:
    write(tmp_path / f"a.csv.{ending}", WRITERS[ending](TEXT.encode()))
    assert [row["x"] for row in rows(tmp_path, split_bytes_target=50)] == EXPECTED


@pytest.mark.parametrize("ending", ["gz", "bz2", "zst", "lz4"])
def test_a_file_of_several_parts_is_read_to_its_end(tmp_path: Path, ending: str) -> None:
    parts = [TEXT[:5000], TEXT[5000:]]
    packed = b"".join(WRITERS[ending](part.encode()) for part in parts)
    write(tmp_path / f"a.csv.{ending}", packed)
    assert [row["x"] for row in rows(tmp_path)] == EXPECTED


@pytest.mark.parametrize("ending", WRITERS)
def test_reading_goes_on_where_it_was(tmp_path: Path, ending: str) -> None:
    write(tmp_path / f"a.csv.{ending}", WRITERS[ending](TEXT.encode()))
    enumeration = FileEnumeration(tmp_path)
    (split,) = enumeration.discover()
    reader = SplitReader(enumeration.layout_of(split), batch_rows=700, block_bytes=5000)
    for read in list(reader.read(split))[::3]:
        rest = [
            row["x"] for one in reader.read(split, read.position) for row in one.batch.to_pylist()
        ]
        assert rest == EXPECTED[read.position.rows :]


@pytest.mark.parametrize("ending", ["gz", "bz2", "zst", "lz4"])
@pytest.mark.parametrize("damage", [lambda data: data[:-9], lambda data: data + b"more"])
def test_a_damaged_file_is_bad_behind_its_whole_rows(
    tmp_path: Path, ending: str, damage: Callable[[bytes], bytes]
) -> None:
    parts = b"".join(WRITERS[ending](part.encode()) for part in (TEXT[:20000], TEXT[20000:]))
    write(tmp_path / f"a.csv.{ending}", damage(parts))
    enumeration = FileEnumeration(tmp_path)
    (split,) = enumeration.discover()
    found: list[int] = []
    reads = SplitReader(enumeration.layout_of(split), block_bytes=100).read(split)
    with pytest.raises(BadFile):
        found.extend(x for read in reads for x in read.batch.column("x").to_pylist())
    assert found == EXPECTED[: len(found)]
    assert len(found) > 100


@pytest.mark.parametrize(
    ("data", "told"),
    [
        (zipped(b"x\n1\n", "a.csv", "b.csv"), "a zip archive of one file is read, .* a.csv, b.csv"),
        (zipped(b"", "folder/"), "has none"),
        (b"x\n1\n", "the zip archive cannot be read"),
    ],
)
def test_an_archive_of_other_than_one_file_is_bad(tmp_path: Path, data: bytes, told: str) -> None:
    write(tmp_path / "a.csv.zip", data)
    with pytest.raises(BadFile, match=told):
        rows(tmp_path)


def test_a_changed_byte_of_an_archive_is_noticed(tmp_path: Path) -> None:
    data = zipped(TEXT.encode())
    write(tmp_path / "a.csv.zip", data[:900] + bytes([data[900] ^ 1]) + data[901:])
    with pytest.raises(BadFile):
        rows(tmp_path)


@pytest.mark.parametrize("name", ["a.csv.snappy", "a.csv.xz", "a.csv.br", "a.tar", "a.csv.Z"])
def test_what_is_compressed_in_another_way_is_refused_by_name(tmp_path: Path, name: str) -> None:
    write(tmp_path / name, TEXT)
    for options in ({}, {"format": "csv"}):
        found: dict[str, Any] = dict(options)
        with pytest.raises(UnknownFormat, match="compressed in a way that is not read"):
            batches(tmp_path, **found)
