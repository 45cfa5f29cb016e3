"""Types that are inferred: no value of a CSV file is another one than its text."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from epochgate.spark.files import BadRow, FileEnumeration, SourceLayout, SplitReader
from epochgate.spark.files.dialect import Dialect
from tests.spark.files.reading import FIRST_ALONE, rejected, rows, write


def types(source: Path, **options: Any) -> list[str]:
    enumeration = FileEnumeration(source, **options)
    enumeration.discover()
    assert enumeration.layout is not None
    return [str(field.type) for field in enumeration.layout.schema]


def test_a_column_that_a_type_would_change_is_text(tmp_path: Path) -> None:
    write(
        tmp_path / "a.csv",
        "id,zip,big,price,exact,when,hour,truth\n"
        "1,01234,18446744073709551615,1.50,0.5,2024-07-01T12:00:00+02:00,03:04:05,TRUE\n"
        '2,"000077",9223372036854775809,2.25,10,2024-07-01T12:00:00Z,12:00:00,0\n',
    )
    assert types(tmp_path) == [
        *("int64", "string", "decimal128(38, 0)", "string"),
        *("double", "string", "string", "string"),
    ]
    read = rows(tmp_path)
    assert [row["zip"] for row in read] == ["01234", "000077"]
    assert [int(row["big"]) for row in read] == [18446744073709551615, 9223372036854775809]
    assert [row["price"] for row in read] == ["1.50", "2.25"]
    assert read[0]["when"] == "2024-07-01T12:00:00+02:00"


@pytest.mark.parametrize("swapped", [False, True])
def test_times_have_microseconds_whether_they_have_fractions_or_not(
    tmp_path: Path, swapped: bool
) -> None:
    lines = [
        "2024-01-02 03:04:05,2024-01-02T03:04:05Z",
        "2024-01-02 03:04:05.25,2024-01-02T03:04:05.123456Z",
    ]
    names = ["b.csv", "a.csv"] if swapped else ["a.csv", "b.csv"]
    for name, line in zip(names, lines, strict=True):
        write(tmp_path / name, f"at,moment\n{line}\n")
    assert types(tmp_path) == ["timestamp[us]", "timestamp[us, tz=UTC]"]
    assert sorted(str(row["at"]) for row in rows(tmp_path)) == [
        "2024-01-02 03:04:05",
        "2024-01-02 03:04:05.250000",
    ]


@pytest.mark.parametrize(
    ("first", "later", "told"),
    [
        ("7", "0501", "'0501' is no BIGINT: as that it would be '501'"),
        ("7", "+7", "'+7' is no BIGINT"),
        ("7", "9223372036854775808", "'9223372036854775808' is no BIGINT"),
        ("7", "", None),
        ("7", "NA", None),
        ("7", "x", "'x' is no BIGINT"),
        ("0.5", "1.50", "'1.50' is no DOUBLE: as that it would be '1.5'"),
        ("0.5", "7", None),
        ("0.5", "NaN", None),
        ("0.5", "9007199254740993", "as that it would be '9007199254740992'"),
        ("true", "True", "'True' is no BOOLEAN: as that it would be 'true'"),
        ("2024-01-02 03:04:05", "2024-01-02 03:04", "as that it would be '2024-01-02 03:04:00'"),
        (
            "2024-01-02T03:04:05Z",
            "2024-01-02T03:04:05+02:00",
            "as that it would be '2024-01-02 01:04:05Z'",
        ),
        ("2024-01-02T03:04:05Z", "2024-01-02T03:04:05", "is no TIMESTAMP"),
        ("2024-01-02 03:04:05", "2024-01-02 03:04:05.123456789", "is no TIMESTAMP_NTZ"),
    ],
)
@pytest.mark.parametrize("block_bytes", [1, 9, 1 << 20])
def test_what_a_later_file_brings_is_the_same_text_or_a_bad_row(
    tmp_path: Path, first: str, later: str, told: str | None, block_bytes: int
) -> None:
    write(tmp_path / "a.csv", f"id,v\n1,{first}\n")
    write(tmp_path / "b.csv", f"v,id\n{first},2\n{later},3\n{first},4\n")
    options: dict[str, Any] = {"block_bytes": block_bytes, **FIRST_ALONE}
    read = rows(tmp_path, on_bad_row="reject", **options)
    assert [row["id"] for row in read] == ([1, 2, 3, 4] if told is None else [1, 2, 4])
    found = rejected(tmp_path, **options)
    assert [(one.line, one.column_name) for one in found] == ([] if told is None else [(3, "v")])
    if told is not None:
        assert told in found[0].reason
        with pytest.raises(BadRow, match=r"line 3, column 'v'.*--schema"):
            rows(tmp_path, **options)


@pytest.mark.parametrize("null", [None, ("",), ("-",)])
def test_what_means_no_value_has_no_part_in_a_type(
    tmp_path: Path, null: tuple[str, ...] | None
) -> None:
    nothing = "NA" if null is None else null[0]
    write(tmp_path / "a.csv", f"n,t\n{nothing},{nothing}\n5,x\n")
    read = rows(tmp_path, dialect=Dialect(null=null))
    assert [row["n"] for row in read] == [None, 5]
    assert [row["t"] for row in read] == ["NA" if null is None else None, "x"]


def test_files_without_a_header_are_inferred_alike(tmp_path: Path) -> None:
    (tmp_path / "a.csv.gz").write_bytes(gzip.compress(b"01,1\n02,2\n"))
    assert rows(tmp_path, dialect=Dialect(header=False)) == [
        {"f0": "01", "f1": 1},
        {"f0": "02", "f1": 2},
    ]


def test_a_declared_type_takes_what_has_a_value_of_it(tmp_path: Path) -> None:
    schema = pa.schema([("id", pa.int64()), ("price", pa.float64()), ("b", pa.bool_())])
    write(tmp_path / "a.csv", "id,price,b\n007,1.50,TRUE\n")
    assert rows(tmp_path, schema=schema) == [{"id": 7, "price": 1.5, "b": True}]


def test_a_job_of_an_earlier_release_goes_on_as_it_has_read(tmp_path: Path) -> None:
    write(tmp_path / "a.csv", "id\n7\n")
    first = FileEnumeration(tmp_path)
    first.discover()
    assert first.layout is not None
    assert first.layout.is_inferred
    earlier = SourceLayout("csv", first.layout.schema).to_bytes()
    assert not SourceLayout.from_bytes(earlier).is_inferred
    first._layouts._layouts[0] = SourceLayout.from_bytes(earlier)
    later = FileEnumeration(tmp_path)
    later.restore(first.snapshot())
    write(tmp_path / "b.csv", "id\n007\n")
    (split,) = [one for one in later.discover() if one.path.endswith("b.csv")]
    (read,) = SplitReader(later.layout_of(split)).read(split)
    assert read.batch.to_pylist() == [{"id": 7}]
