"""Text files are read in the encoding that is named, and what is not in it is refused by line."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from epochgate.spark.files import BadFile, Dialect, FileEnumeration, SplitReader
from epochgate.spark.files.text import EncodingUnusable, usable_encoding
from tests.spark.files.reading import rows

NAMES = ["Ada", "Müller", "Ünal, Öz", 'a "quoted" ä', "two\nlines é", "Zoë"]


def csv_text(names: list[str]) -> str:
    quoted = ['"' + name.replace('"', '""') + '"' for name in names]
    return "größe,name\n" + "".join(f"{row},{name}\n" for row, name in enumerate(quoted))


def read(source: Path, **options: Any) -> list[Any]:
    enumeration = FileEnumeration(source, split_bytes_target=16, **options)
    splits = enumeration.discover()
    assert enumeration.layout is not None
    reader = SplitReader(enumeration.layout, block_bytes=8, batch_rows=2, **options)
    return [
        tuple(row.values())
        for split in splits
        for one in reader.read(split)
        for row in one.batch.to_pylist()
    ]


@pytest.mark.parametrize("encoding", ["utf-8", "latin-1", "cp1252", "iso8859-15"])
@pytest.mark.parametrize("compressed", [False, True])
def test_files_are_read_in_the_encoding_that_is_named(
    tmp_path: Path, encoding: str, compressed: bool
) -> None:
    data = csv_text(NAMES).encode(encoding)
    if compressed:
        (tmp_path / "a.csv.gz").write_bytes(gzip.compress(data))
    else:
        (tmp_path / "a.csv").write_bytes(data)
    assert read(tmp_path, encoding=encoding) == list(enumerate(NAMES))


def test_json_lines_are_read_in_the_encoding_that_is_named(tmp_path: Path) -> None:
    lines = "".join(f'{{"name": "{name}"}}\n' for name in ("Ada", "Müller", "Zoë"))
    (tmp_path / "a.jsonl").write_bytes(lines.encode("latin-1"))
    assert read(tmp_path, encoding="latin-1") == [("Ada",), ("Müller",), ("Zoë",)]


@pytest.mark.parametrize("kind", ["csv", "jsonl", "csv.gz"])
@pytest.mark.parametrize("before", [0, 1, 500])
def test_what_is_not_utf_8_is_refused_with_its_line_and_what_to_say(
    tmp_path: Path, kind: str, before: int
) -> None:
    names = [*("fine" for _ in range(before)), "Müller", "after"]
    if kind == "jsonl":
        text, header = "".join(f'{{"name": "{name}"}}\n' for name in names), 0
    else:
        text, header = "name\n" + "".join(f"{name}\n" for name in names), 1
    data = text.encode("latin-1")
    path = tmp_path / f"a.{kind}"
    path.write_bytes(gzip.compress(data) if kind.endswith("gz") else data)
    with pytest.raises(BadFile) as caught:
        read(tmp_path)
    line = header + before + 1
    for part in (str(path), f"line {line} is not utf-8 (byte 0xFC)", "--encoding latin-1"):
        assert part in str(caught.value)


def test_the_rows_before_a_line_that_is_not_utf_8_are_taken_when_bad_files_are_skipped(
    tmp_path: Path,
) -> None:
    (tmp_path / "a.csv").write_bytes(csv_text(["Ada", "Bob"]).encode() + b"2,M\xfcller\n3,Zoe\n")
    enumeration = FileEnumeration(tmp_path, on_bad_file="skip")
    (split,) = enumeration.discover()
    assert enumeration.layout is not None
    reader = SplitReader(enumeration.layout, on_bad_file="skip")
    assert sum(one.batch.num_rows for one in reader.read(split)) == 2
    (skipped,) = reader.take_skipped()
    assert "line 4 is not utf-8" in skipped.reason


def test_a_header_that_is_not_utf_8_is_refused_with_its_line(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_bytes("größe\n1\n".encode("latin-1"))
    with pytest.raises(BadFile, match=r"a\.csv.*line 1 is not utf-8"):
        FileEnumeration(tmp_path).discover()


@pytest.mark.parametrize("name", ["utf-16", "shift_jis", "cp037", "rot13", "base64", "no such"])
def test_an_encoding_in_which_records_could_not_be_found_is_refused(name: str) -> None:
    with pytest.raises(EncodingUnusable, match=r"--encoding .* such as latin-1"):
        usable_encoding(name)


@pytest.mark.parametrize("name", ["a.csv", "a.jsonl", "a.csv.gz"])
@pytest.mark.parametrize("reading", ["utf-8", "latin-1"])
@pytest.mark.parametrize(
    ("encoding", "told"),
    [
        ("utf-16", r"byte order mark of UTF-16 \(FF FE\); convert it to UTF-8: iconv -f UTF-16"),
        ("utf-32", "byte order mark of UTF-32"),
        ("utf-16-le", "every other byte at its beginning is 0, as in UTF-16"),
        ("utf-16-be", "every other byte at its beginning is 0, as in UTF-16"),
        ("utf-32-be", "every other byte at its beginning is 0"),
    ],
)
def test_text_of_several_bytes_a_letter_is_named_as_such(
    tmp_path: Path, name: str, reading: str, encoding: str, told: str
) -> None:
    data = ("id,name\n1,x\n" if "csv" in name else '{"id": 1}\n').encode(encoding)
    (tmp_path / name).write_bytes(gzip.compress(data) if name.endswith("gz") else data)
    with pytest.raises(BadFile, match=told):
        read(tmp_path, encoding=reading)


@pytest.mark.parametrize(
    ("ending", "text", "options"),
    [
        ("csv", "1,x\n", {"dialect": Dialect(header=False)}),
        ("jsonl", '{"id": 1, "name": "x"}\n', {}),
    ],
)
def test_a_packed_file_without_a_byte_is_none_of_several_bytes_a_letter(
    tmp_path: Path, ending: str, text: str, options: dict[str, Any]
) -> None:
    (tmp_path / f"a.{ending}.gz").write_bytes(gzip.compress(b""))
    (tmp_path / f"b.{ending}").write_text(text)
    schema = pa.schema([("id", pa.int64()), ("name", pa.string())])
    assert rows(tmp_path, schema=schema, **options) == [{"id": 1, "name": "x"}]
