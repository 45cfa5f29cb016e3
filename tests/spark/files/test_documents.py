"""JSON documents and lines of text: the same records however they are written and cut."""

from __future__ import annotations

import gzip
import json
import random
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from epochgate.spark.files import BadFile, FileEnumeration, SplitReader, json_documents
from epochgate.spark.files.ddl import parse_schema
from epochgate.spark.files.errors import SchemaChanged
from tests.spark.files.reading import batches, rejected, rows, write

TEXTS = ["", "a", 'say "x"', "back\\slash", "{[", "]}", "é", "two\nlines", ",", "\u2028", "\\"]


def records(seed: int, count: int) -> list[dict[str, Any]]:
    chance = random.Random(seed)
    return [
        {
            "id": number,
            "text": chance.choice(TEXTS),
            "deep": {"a": [{"b": chance.choice(TEXTS)} for _ in range(chance.randrange(3))]},
        }
        for number in range(count)
    ]


def written(found: list[dict[str, Any]], way: str, chance: random.Random) -> str:
    indent = chance.choice([None, 1, 4])
    texts = [json.dumps(one, indent=indent, ensure_ascii=chance.random() < 0.5) for one in found]
    if way == "array":
        return json.dumps(found, indent=indent)
    if way == "arrays":
        return "\n".join(f"[{text} ]" for text in texts)
    if way == "array with blanks":
        return "\r\n[ " + " ,\n".join(texts) + "\r\n]\n"
    return chance.choice(["", "\n", " "]).join(texts)


@pytest.mark.parametrize("way", ["array", "arrays", "array with blanks", "objects"])
@pytest.mark.parametrize("block", [1, 7, 1 << 20])
@pytest.mark.parametrize("seed", range(3))
def test_records_are_those_that_python_reads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, way: str, block: int, seed: int
) -> None:
    monkeypatch.setattr(json_documents, "_BLOCK_BYTES", block)
    expected = records(seed, 8)
    text = written(expected, way, random.Random(seed))
    write(tmp_path / "a.json.gz", gzip.compress(text.encode()))
    found = rows(tmp_path, format="json", block_bytes=100)
    assert found == expected


def test_the_text_of_a_value_stands_as_in_the_file(tmp_path: Path) -> None:
    write(tmp_path / "a.json", '[{"a": {"n": 1.50,\n "t": "x\\ny"}}]')
    (row,) = rows(tmp_path, format="json", schema=pa.schema([("a", pa.string())]))
    assert row["a"] == '{"n": 1.50,  "t": "x\\ny"}'


def test_reading_goes_on_where_it_was(tmp_path: Path) -> None:
    write(tmp_path / "a.json", json.dumps([{"id": number} for number in range(50)], indent=1))
    enumeration = FileEnumeration(tmp_path, format="json", split_bytes_target=9)
    (split,) = enumeration.discover()
    reader = SplitReader(enumeration.layout_of(split), batch_rows=3, block_bytes=40)
    for read in list(reader.read(split)):
        rest = [
            row["id"] for one in reader.read(split, read.position) for row in one.batch.to_pylist()
        ]
        assert rest == list(range(read.position.rows, 50))


def test_items_that_are_no_records_are_bad_rows(tmp_path: Path) -> None:
    write(tmp_path / "a.json", '[{"id": 1},\n7, "x", [1],\n null, {"id": 2, "id": 3}, {"id": 4}]')
    found = rejected(tmp_path, format="json")
    assert [(one.line, one.raw) for one in found] == [
        (2, "7"),
        (3, '"x"'),
        (4, "[1]"),
        (5, "null"),
        (6, '{"id": 2, "id": 3}'),
    ]
    assert [row["id"] for row in rows(tmp_path, format="json", on_bad_row="reject")] == [1, 4]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ('[{"id": 1} {"id": 2}]', "a ',' or ']' is expected"),
        ('[{"id": 1},]', "an item of the array is expected"),
        ('[{"id": 1}, {"id": 2', "a value begins that does not end"),
        ('[{"id": 1}', "a ',' or ']' is expected"),
        ('[{"id": 1}]]', "an object or an array of objects is expected"),
        ('{"id": 1} x', "an object or an array of objects is expected"),
        ('[{"id": 1}, {"t": "a\nb"}]', "a line ends within a string"),
    ],
)
def test_what_stands_between_records_makes_the_file_bad_there(
    tmp_path: Path, text: str, told: str
) -> None:
    write(tmp_path / "a.json", '{"id": 0, "t": ""}\n')
    write(tmp_path / "b.json", text)
    with pytest.raises(BadFile, match=told):
        rows(tmp_path, format="json")
    options: dict[str, Any] = {"format": "json", "on_bad_file": "skip"}
    enumeration = FileEnumeration(tmp_path, **options)
    found = []
    for split in enumeration.discover():
        reader = SplitReader(enumeration.layout_of(split), on_bad_file="skip")
        found += [row["id"] for one in reader.read(split) for row in one.batch.to_pylist()]
        assert len(reader.take_skipped()) == split.path.endswith("b.json")
    assert found == [0, 1]


def test_a_document_is_named_with_its_format(tmp_path: Path) -> None:
    write(tmp_path / "a.json", '[\n{"id": 1}]')
    with pytest.raises(BadFile, match="--format json"):
        rows(tmp_path)


# Lines of text.


@pytest.mark.parametrize("block_bytes", [1, 5, 1 << 20])
def test_each_line_is_a_row(tmp_path: Path, block_bytes: int) -> None:
    lines = ["a", "", '"b', " c,d ", "\ré", "", "e"]
    write(tmp_path / "a.log", "\n".join(lines[:4]) + "\r\n" + "\n".join(lines[4:]) + "\n")
    for target in (3, 1 << 20):
        options: dict[str, Any] = {"split_bytes_target": target, "block_bytes": block_bytes}
        found = rows(tmp_path, format="text", **options)
        assert [row["value"] for row in found] == lines


def test_a_schema_names_the_column_of_lines(tmp_path: Path) -> None:
    write(tmp_path / "day=1" / "a.log", "a")
    schema = parse_schema("line STRING, day STRING")
    assert rows(tmp_path, format="text", schema=schema) == [{"line": "a", "day": "1"}]
    with pytest.raises(SchemaChanged, match="one column of STRING"):
        rows(tmp_path, format="text", schema=parse_schema("n BIGINT"))


def test_a_line_that_is_no_text_is_a_bad_row(tmp_path: Path) -> None:
    write(tmp_path / "a.log", b"a\n\xff\nb\n")
    (bad,) = rejected(tmp_path, format="text")
    assert (bad.line, bad.raw) == (2, "\\xff")
    found = batches(tmp_path, format="text", encoding="latin-1")
    assert [row["value"] for one in found for row in one.batch.to_pylist()] == ["a", "ÿ", "b"]
