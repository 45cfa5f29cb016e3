"""A string of JSON lines of which no type was declared is text, wherever it stands."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from epochgate.spark.files import BadFile
from tests.spark.files.reading import FIRST_ALONE, rows, write

LOOKS_LIKE_A_TIME = [
    "2024-01-02",
    "2000-01-01",
    "2024-01-02 03",
    "2024-01-02 03:04",
    "2024-01-02 03:04:05",
    "2024-01-02T03:04:05Z",
    "2024-01-02T03:04:05.250Z",
    "2024-07-01T12:00:00+02:00",
    "2024-07-01T12:00:00-05:00",
    "1970-01-01T00:00:00",
]
PLACES: list[Any] = [
    lambda text: text,
    lambda text: {"at": text},
    lambda text: [text],
    lambda text: [{"at": text, "n": 1}],
    lambda text: {"deep": {"all": [[text]]}},
]


def lines(*values: Any) -> str:
    return "".join(json.dumps(value) + "\n" for value in values)


@pytest.mark.parametrize("text", LOOKS_LIKE_A_TIME)
def test_a_string_is_text_whatever_it_looks_like(tmp_path: Path, text: str) -> None:
    write(tmp_path / "a.jsonl", lines({"id": 1, "v": text}))
    write(tmp_path / "b.jsonl", lines({"id": 2, "v": "unknown"}))
    assert rows(tmp_path) == [{"id": 1, "v": text}, {"id": 2, "v": "unknown"}]


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("text", ["2024-01-02", "2024-07-01T12:00:00+02:00"])
def test_so_is_one_within_structs_and_lists(tmp_path: Path, place: Any, text: str) -> None:
    written = [{"id": 1, "v": place(text)}, {"id": 2, "v": place("2000-01-01")}]
    write(tmp_path / "a.jsonl", lines(*written))
    assert rows(tmp_path) == written


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("block_bytes", [1, 1 << 20])
def test_so_is_one_of_a_field_that_comes_later(
    tmp_path: Path, place: Any, block_bytes: int
) -> None:
    first, later = {"id": 1}, {"id": 2, "v": place("2000-01-01")}
    write(tmp_path / "a.jsonl", lines(first, later))
    found = rows(tmp_path, evolution="add", sample_bytes_max=4, block_bytes=block_bytes)
    assert found[-1] == later


def test_a_field_that_comes_later_within_a_known_struct_is_text(tmp_path: Path) -> None:
    later = {"s": {"x": 2, "at": "2000-01-01"}}
    write(tmp_path / "a.jsonl", lines({"s": {"x": 1}}, later))
    assert rows(tmp_path, evolution="add", sample_bytes_max=4)[-1] == later


def test_a_declared_time_is_read_as_one(tmp_path: Path) -> None:
    write(tmp_path / "a.jsonl", lines({"at": "2024-07-01T12:00:00+02:00"}))
    (row,) = rows(tmp_path, schema=pa.schema([("at", pa.timestamp("us", tz="UTC"))]))
    assert row["at"].isoformat() == "2024-07-01T10:00:00+00:00"


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("string", ['"0"', '"-1.0"', r'"\u0030"'])
def test_a_string_is_no_number_of_a_column_of_large_integers(
    tmp_path: Path, place: Any, string: str
) -> None:
    write(tmp_path / "a.jsonl", lines({"v": place(2**63)}))
    line = json.dumps({"v": place("...")}).replace('"..."', string)
    write(tmp_path / "b.jsonl", f"{lines({'v': place(7)})}{line}\n")
    with pytest.raises(BadFile, match="line 2, column 'v'"):
        rows(tmp_path, **FIRST_ALONE)
