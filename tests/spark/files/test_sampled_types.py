"""Types are those of a sample of several files, but where a hint declares another one."""

from __future__ import annotations

import gzip
import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from epochgate.spark.files import BadRow, FileEnumeration, SchemaChanged
from epochgate.spark.files.asked import ReadingChanged
from epochgate.spark.files.ddl import SchemaUnreadable, parse_schema
from epochgate.spark.files.errors import HintUnused, TypeUnreadable
from tests.spark.files.reading import FIRST_ALONE, rows, write


def types(source: Path, **options: Any) -> dict[str, str]:
    enumeration = FileEnumeration(source, **options)
    enumeration.discover()
    assert enumeration.layout is not None
    return {field.name: str(field.type) for field in enumeration.layout.schema}


def write_values(folder: Path, kind: str, *values: Any) -> None:
    """One value of `v` to a file."""
    for number, value in enumerate(values):
        text = f"v\n{value}\n" if kind == "csv" else json.dumps({"v": value}) + "\n"
        write(folder / f"{number:03}.{kind}", text)


@pytest.mark.parametrize("kind", ["csv", "jsonl"])
@pytest.mark.parametrize(
    ("values", "found"),
    [
        ((1, 2.5), "double"),
        ((1, 2**63), "decimal128(38, 0)"),
        ((1, "seven"), "string"),
        (("NA", 2), {"csv": "int64", "jsonl": "string"}),
    ],
)
def test_a_later_file_has_a_say_in_the_types(
    tmp_path: Path, kind: str, values: tuple[Any, ...], found: Any
) -> None:
    write_values(tmp_path, kind, *values)
    assert types(tmp_path) == {"v": found if isinstance(found, str) else found[kind]}
    assert len(rows(tmp_path)) == 2


@pytest.mark.parametrize("odd", [0, 100, 199])
def test_some_of_many_files_are_looked_at(tmp_path: Path, odd: int) -> None:
    write_values(tmp_path, "csv", *(0.5 if n == odd else n for n in range(200)))
    assert types(tmp_path) == {"v": "int64" if odd == 100 else "double"}


def test_only_whole_lines_of_a_file_that_may_grow_count(tmp_path: Path) -> None:
    write(tmp_path / "a.csv", "v\n1\n")
    write(tmp_path / "b.csv", "v\n2\n2024-")
    assert types(tmp_path, follow=True, settle_s=1e-9) == {"v": "int64"}
    assert types(tmp_path) == {"v": "string"}


def test_a_file_of_one_line_without_an_end_has_a_say(tmp_path: Path) -> None:
    write(tmp_path / "a.jsonl", '{"v": 1}')
    write(tmp_path / "b.jsonl", '{"v": 2.5}')
    assert types(tmp_path) == {"v": "double"}


def test_a_hint_of_another_case_is_refused(tmp_path: Path) -> None:
    write(tmp_path / "a.jsonl", '{"Amount": 1}\n')
    with pytest.raises(HintUnused, match=r"'amount'.*has Amount"):
        rows(tmp_path, hints=parse_schema("amount INT"))


def test_hints_of_lines_of_text_are_heard(tmp_path: Path) -> None:
    write(tmp_path / "a.txt", "5\n")
    with pytest.raises(SchemaChanged, match="--schema-hints"):
        rows(tmp_path, format="text", hints=parse_schema("value INT"))
    with pytest.raises(HintUnused, match="'more'"):
        rows(tmp_path, format="text", hints=parse_schema("more STRING"))
    given: Any = {"format": "text", "hints": parse_schema("value STRING")}
    first, other = FileEnumeration(tmp_path, **given), FileEnumeration(tmp_path, **given)
    first.discover()
    other.restore(first.snapshot())
    assert rows(tmp_path, **given) == [{"value": "5"}]


def test_a_file_that_cannot_be_read_tells_nothing(tmp_path: Path) -> None:
    write_values(tmp_path, "csv", 1, 2.5)
    (tmp_path / "001.csv").write_bytes(gzip.compress(b"v\n2.5\n"))
    (tmp_path / "002.csv.gz").write_bytes(gzip.compress(b"v\n" + b"2.5\n" * 9)[:12])
    (tmp_path / "003.csv.gz").write_bytes(gzip.compress(b"v\n3.5\n"))
    found = types(tmp_path, on_bad_file="skip")
    assert found == {"v": "double"}


def test_fields_of_other_json_lines_are_columns(tmp_path: Path) -> None:
    write(tmp_path / "a.jsonl", '{"x": 1}\n')
    write(tmp_path / "b.jsonl", '{"y": true}\n')
    assert rows(tmp_path) == [{"x": 1, "y": None}, {"x": None, "y": True}]


def test_columns_are_those_of_the_first_csv_file(tmp_path: Path) -> None:
    write(tmp_path / "a.csv", "x\n1\n")
    write(tmp_path / "b.csv", "x,y\n2.5,3\n")
    with pytest.raises(SchemaChanged, match="y is new"):
        rows(tmp_path)
    read = rows(tmp_path, evolution="add")
    assert read == [{"x": 1.0}, {"x": 2.5, "y": 3}]


def test_a_file_that_is_not_settled_has_no_say(tmp_path: Path) -> None:
    write_values(tmp_path, "csv", 1, 2.5)
    now = (tmp_path / "000.csv").stat().st_mtime
    options: dict[str, Any] = {"follow": True, "settle_s": 5.0, "now": lambda: now + 9}
    assert types(tmp_path, **options) == {"v": "double"}
    enumeration = FileEnumeration(tmp_path, **{**options, "now": lambda: now + 1})
    enumeration.discover()
    assert enumeration.layout is None


# Hints.


def hints(text: str) -> pa.Schema:
    return parse_schema(text, "--schema-hints")


def test_a_hint_declares_the_type_of_one_column(tmp_path: Path) -> None:
    write(tmp_path / "a.csv", "id,zip,amount,at\n1,01234,1.5,2024-01-02\n")
    wanted = hints("amount DECIMAL(10,2), at TIMESTAMP, id STRING")
    assert types(tmp_path, hints=wanted) == {
        "id": "string",
        "zip": "string",
        "amount": "decimal128(10, 2)",
        "at": "timestamp[us, tz=UTC]",
    }
    (row,) = rows(tmp_path, hints=wanted)
    assert (row["id"], row["zip"], row["amount"]) == ("1", "01234", Decimal("1.50"))


@pytest.mark.parametrize("kind", ["csv", "jsonl"])
def test_a_declared_column_takes_texts_that_an_inferred_one_refuses(
    tmp_path: Path, kind: str
) -> None:
    text = "v,w\n0.5,7\n" if kind == "csv" else '{"v": 0.5, "w": 7}\n'
    write(tmp_path / f"a.{kind}", text)
    later = "1.50,8" if kind == "csv" else '{"v": 9007199254740993, "w": 8}'
    write(tmp_path / f"b.{kind}", f"v,w\n{later}\n" if kind == "csv" else f"{later}\n")
    read = rows(tmp_path, hints=hints("v DOUBLE"), **FIRST_ALONE)
    assert read[1]["v"] == (1.5 if kind == "csv" else 2.0**53)
    with pytest.raises(BadRow, match="column 'v'"):
        rows(tmp_path, hints=hints("w BIGINT"), **FIRST_ALONE)


def test_a_field_that_only_a_hint_names_is_a_column(tmp_path: Path) -> None:
    write(tmp_path / "a.jsonl", '{"x": 1}\n')
    assert rows(tmp_path, hints=hints("y STRING")) == [{"x": 1, "y": None}]


def test_a_hint_that_names_no_column_of_csv_is_refused(tmp_path: Path) -> None:
    write(tmp_path / "a.csv", "amount\n1\n")
    with pytest.raises(HintUnused, match=r"(?s)'Amount'.*capitals too"):
        rows(tmp_path, hints=hints("Amount DOUBLE"))
    with pytest.raises(TypeUnreadable):
        rows(tmp_path, hints=hints("amount ARRAY<INT>"))


def test_a_hint_may_name_a_type_that_only_files_with_types_have(tmp_path: Path) -> None:
    kind = pa.map_(pa.string(), pa.int32())
    pq.write_table(pa.table({"m": pa.array([[("a", 1)]], kind)}), tmp_path / "a.parquet")
    found = rows(tmp_path, hints=parse_schema("m MAP<STRING, INT>"))
    assert found == [{"m": [("a", 1)]}]


def test_a_hint_widens_a_column_of_parquet_and_does_no_more(tmp_path: Path) -> None:
    pq.write_table(pa.table({"x": pa.array([1], pa.int32()), "y": ["a"]}), tmp_path / "a.parquet")
    assert types(tmp_path, hints=hints("x BIGINT")) == {"x": "int64", "y": "string"}
    with pytest.raises(SchemaChanged, match="y: expected BIGINT, found STRING"):
        rows(tmp_path, hints=hints("y BIGINT"))


def test_a_hint_may_name_the_column_of_a_directory_and_ask_for_values(tmp_path: Path) -> None:
    write(tmp_path / "dt=2024" / "a.csv", "x\n1\n")
    (row,) = rows(tmp_path, hints=hints("dt STRING, x INT NOT NULL"))
    assert row == {"x": 1, "dt": "2024"}
    write(tmp_path / "dt=2024" / "b.csv", "x,\n,\n".replace(",", ""))
    write(tmp_path / "dt=2024" / "b.csv", "x\n\n")
    with pytest.raises(BadRow, match="NOT NULL"):
        rows(tmp_path, hints=hints("dt STRING, x INT NOT NULL"))


def test_a_later_start_asks_for_values_as_the_first_did(tmp_path: Path) -> None:
    write(tmp_path / "a.csv", "x,y\n1,2\n")
    first = FileEnumeration(tmp_path, hints=hints("x INT"))
    first.discover()
    other = FileEnumeration(tmp_path, hints=hints("x INT NOT NULL"))
    with pytest.raises(ReadingChanged, match=r"now: +x: INT NOT NULL"):
        other.restore(first.snapshot())


def test_a_later_start_has_the_same_hints(tmp_path: Path) -> None:
    write(tmp_path / "a.csv", "x,y\n1,2\n")
    first = FileEnumeration(tmp_path, hints=hints("x DOUBLE"))
    first.discover()
    again = FileEnumeration(tmp_path, hints=hints("x DOUBLE"))
    again.restore(first.snapshot())
    for other in ("x STRING", "y DOUBLE"):
        with pytest.raises(ReadingChanged, match="--schema-hints"):
            FileEnumeration(tmp_path, hints=hints(other)).restore(first.snapshot())


def test_a_hint_that_is_no_ddl_is_told_by_its_own_name() -> None:
    with pytest.raises(SchemaUnreadable, match=r"^--schema-hints cannot be read"):
        hints("x NOTHING")
