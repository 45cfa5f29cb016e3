"""Sheets of workbooks: cells by their types, and none that is left out or comes out as another."""

from __future__ import annotations

import datetime
import json
import random
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape

import pytest
import python_calamine

from epochgate.spark.files import BadFile, BadRow, FileEnumeration, SplitReader
from epochgate.spark.files.ddl import parse_schema
from epochgate.spark.files.dialect import Dialect
from epochgate.spark.files.errors import SchemaChanged
from tests.spark.files.reading import batches, rejected, rows, write
from tests.spark.files.workbook import cell, sheet, write_workbook

TEXTS = [
    "<t>name</t>",
    "<t>n</t>",
    "<t>day</t>",
    "<r><t>Al</t></r><r><t>ice</t></r><rPh><t>x</t></rPh>",
]
HEADER = [cell("A1", "0", "s"), cell("B1", "1", "s"), cell("C1", "2", "s")]
ROW = [cell("A3", "3", "s"), cell("B3", "7.0"), cell("C3", "45293", style=1)]


def one_sheet(path: Path, *rows: list[str], **options: Any) -> Path:
    numbered = dict(enumerate(rows, 1))
    return write_workbook(path, {"Sheet1": sheet(numbered)}, TEXTS, **options)


def column(path: Path, *cells: str, **options: Any) -> list[Any]:
    """The values of a column `n` with these cells below its name."""
    below = [[one] for one in cells]
    one_sheet(path / "a.xlsx", [cell("A1", "1", "s")], *below)
    return [row["n"] for row in rows(path, **options)]


def test_cells_are_values_by_their_types(tmp_path: Path) -> None:
    one_sheet(tmp_path / "a.xlsx", HEADER, [], ROW)
    assert rows(tmp_path) == [{"name": "Alice", "n": 7, "day": datetime.date(2024, 1, 2)}]
    kinds = batches(tmp_path)[0].batch.schema.types
    assert [str(kind) for kind in kinds] == ["string", "int64", "date32[day]"]


@pytest.mark.parametrize(
    ("cells", "expected"),
    [
        ([cell("A2", "1E3"), cell("A3", "2")], [1000, 2]),
        ([cell("A2", "0.1"), cell("A3", "2")], [0.1, 2.0]),
        ([cell("A2", "1E+300"), cell("A3", "0.5")], [1e300, 0.5]),
        ([cell("A2", "1", "b"), cell("A3", "0", "b")], [True, False]),
        ([cell("A2", "1", "b"), cell("A3", "0")], ["true", "0"]),
        ([cell("A2", "007", "str"), cell("A3", "7", "str")], ["007", "7"]),
        ([cell("A2", "7", "str"), cell("A3", "7")], ["7", "7"]),
        ([cell("A2", "a_x000D_b", "str")], ["a\rb"]),
        (
            [
                '<c r="A2" t="inlineStr"><is><t> x</t>'
                '<r><t xml:space="preserve"> y </t></r></is></c>',
            ],
            ["x y "],
        ),
        ([cell("A2", "1", style=5)], [1]),
        ([cell("A2", "0.5", style=3), cell("A3", "0.25", style=3)], ["12:00:00", "06:00:00"]),
        ([cell("A2", "1.5", style=4)], ["36:00:00"]),
        ([cell("A2", "2024-01-02T03:04:05", "d")], [datetime.datetime(2024, 1, 2, 3, 4, 5)]),
        (
            [cell("A2", "45293", style=2), cell("A3", "45293.25", style=2)],
            [datetime.datetime(2024, 1, 2), datetime.datetime(2024, 1, 2, 6)],
        ),
        (
            [cell("A2", "1", style=1), cell("A3", "59", style=1), cell("A4", "61", style=1)],
            [datetime.date(1900, 1, 1), datetime.date(1900, 2, 28), datetime.date(1900, 3, 1)],
        ),
    ],
)
def test_values(tmp_path: Path, cells: list[str], expected: list[Any]) -> None:
    assert column(tmp_path, *cells) == expected


@pytest.mark.parametrize(
    ("bad", "reason"),
    [
        (cell("A3", "#N/A", "e"), "the cell is the error #N/A"),
        ('<c r="A3"><f>1+1</f></c>', "the formula of the cell was never calculated"),
        (cell("A3", "60", style=1), "the number 60.0 is no day or time that there is"),
        (cell("A3", "-1", style=2), "the number -1.0 is no day or time that there is"),
        (cell("A3", "1e10", style=1), "the number 10000000000.0 is no day or time that there is"),
    ],
)
def test_a_cell_without_a_value_makes_a_bad_row(tmp_path: Path, bad: str, reason: str) -> None:
    with pytest.raises(BadRow, match=f"line 3, column 'n': {reason}"):
        column(tmp_path, cell("A2", "1"), bad, cell("A4", "2"))
    (found,) = rejected(tmp_path)
    assert (found.line, found.column_name, found.reason) == (3, "n", reason)
    assert [row["n"] for row in rows(tmp_path, on_bad_row="reject")] == [1, 2]


def test_an_error_is_rescued_beside_the_values_that_fit(tmp_path: Path) -> None:
    bad = [cell("A3", "3", "s"), cell("B3", "#DIV/0!", "e"), cell("C3", "45293", style=1)]
    one_sheet(tmp_path / "a.xlsx", HEADER, [cell("B2", "7")], bad)
    kept = rows(tmp_path, on_bad_row="rescue")[1]
    assert (kept["name"], kept["n"], kept["day"]) == ("Alice", None, datetime.date(2024, 1, 2))
    assert json.loads(kept["_rescued"])["n"] == "#DIV/0!"


def test_days_count_from_1904_where_the_workbook_says_so(tmp_path: Path) -> None:
    first, second = [cell("A1", "2", "s")], [cell("A2", "0", style=1)]
    one_sheet(tmp_path / "a.xlsx", first, second, is_1904=True)
    assert rows(tmp_path) == [{"day": datetime.date(1904, 1, 1)}]


@pytest.mark.parametrize("wanted", ["", "2", "Data & more", "3"])
def test_a_sheet_is_named_or_counted(tmp_path: Path, wanted: str) -> None:
    sheets = {
        name: sheet({1: [cell("A1", "1", "s")], 2: [cell("A2", str(number))]})
        for number, name in enumerate(["One", "Data & more"], 1)
    }
    write_workbook(tmp_path / "a.xlsx", sheets, TEXTS)
    dialect = Dialect(sheet=wanted)
    if wanted == "3":
        with pytest.raises(BadFile, match="it has no sheet '3'; it has 'One', 'Data & more'"):
            rows(tmp_path, dialect=dialect)
    else:
        assert rows(tmp_path, dialect=dialect) == [{"n": 2 if wanted else 1}]


def test_headers(tmp_path: Path) -> None:
    one_sheet(tmp_path / "a.xlsx", [], [], HEADER, [cell("B4", "1")], [cell("D5", "2")])
    (bad,) = rejected(tmp_path)
    assert (bad.line, bad.reason) == (
        5,
        "it has a value in column 4, behind the 3 of the header (name, n, day)",
    )
    assert rows(tmp_path, on_bad_row="reject") == [{"name": None, "n": 1, "day": None}]
    one_sheet(tmp_path / "a.xlsx", [cell("A1", "5"), cell("B1", "6")], [cell("B2", "7")])
    assert rows(tmp_path) == [{"5": None, "6": 7}]
    found = rows(tmp_path, dialect=Dialect(header=False))
    assert found == [{"f0": 5, "f1": 6}, {"f0": None, "f1": 7}]
    one_sheet(tmp_path / "a.xlsx", [cell("A1", "x", "str"), cell("C1", "x", "str")])
    with pytest.raises(BadFile, match="the header in row 1 needs distinct column names"):
        rows(tmp_path)


def test_files_agree_on_their_columns(tmp_path: Path) -> None:
    one_sheet(tmp_path / "a.xlsx", HEADER, ROW)
    one_sheet(tmp_path / "b.xlsx", HEADER[:2], ROW[:2])
    with pytest.raises(SchemaChanged, match="day: DATE is missing"):
        rows(tmp_path)
    assert rows(tmp_path, evolution="add")[1] == {"name": "Alice", "n": 7}


def test_hints_and_schemas(tmp_path: Path) -> None:
    one_sheet(tmp_path / "a.xlsx", HEADER, [cell("A2", " 7 ", "str"), cell("B2", "0.5")])
    assert rows(tmp_path, hints=parse_schema("name BIGINT, day TIMESTAMP"))[0]["name"] == 7
    schema = parse_schema("name STRING, n DECIMAL(5,2), day DATE")
    assert str(rows(tmp_path, schema=schema)[0]["n"]) == "0.50"


def test_reading_goes_on_where_it_was(tmp_path: Path) -> None:
    below = [[cell(f"A{number}", str(number))] for number in range(2, 40)]
    one_sheet(tmp_path / "a.xlsx", [cell("A1", "1", "s")], *below)
    enumeration = FileEnumeration(tmp_path)
    (split,) = enumeration.discover()
    reader = SplitReader(enumeration.layout_of(split), batch_rows=3, block_bytes=40)
    for read in list(reader.read(split)):
        rest = [
            row["n"] for one in reader.read(split, read.position) for row in one.batch.to_pylist()
        ]
        assert rest == list(range(2 + read.position.rows, 40))


@pytest.mark.parametrize("seed", range(4))
def test_another_reader_finds_the_same(tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    texts = ["x", "", "é & <b>", "007", "a\nb", " c "]
    kinds: list[Callable[[str], str]] = [
        lambda at: cell(at, repr(chance.choice([1.0, -2.5, 1e-7, 123456789.0, 0.1 + 0.2, 1e15]))),
        lambda at: cell(at, str(chance.randrange(len(texts))), "s"),
        lambda at: cell(at, str(chance.randrange(2)), "b"),
        lambda at: cell(at, str(chance.randrange(61, 60000)), style=1),
        lambda at: cell(at, f"{chance.randrange(61, 60000)}.{chance.randrange(1, 9)}25", style=2),
    ]
    columns = [chance.choice(kinds) for _ in range(5)]
    header = [cell(f"{letter}1", f"c{letter}", "str") for letter in "ABCDE"]
    below = [
        [make(f"{letter}{row}") for letter, make in zip("ABCDE", columns, strict=True)]
        for row in range(2, 30)
    ]
    numbered = dict(enumerate([header, *below], 1))
    shared = [f'<t xml:space="preserve">{escape(text)}</t>' for text in texts]
    path = write_workbook(tmp_path / "a.xlsx", {"Sheet1": sheet(numbered)}, shared)
    book = python_calamine.CalamineWorkbook.from_path(path)
    names, *expected = book.get_sheet_by_index(0).to_python()
    found = rows(tmp_path)
    assert list(found[0]) == names
    for row, cells in zip(found, expected, strict=True):
        assert list(row.values()) == cells


def test_what_is_no_workbook_is_a_bad_file(tmp_path: Path) -> None:
    write(tmp_path / "a.xlsx", b"\xd0\xcf\x11\xe0 an encrypted one")
    with pytest.raises(BadFile, match="no workbook of Office Open XML"):
        rows(tmp_path)
    bomb = '<!DOCTYPE x [<!ENTITY a "b">]><worksheet/>'
    write_workbook(tmp_path / "a.xlsx", {"Sheet1": bomb}, TEXTS)
    with pytest.raises(BadFile, match="document type"):
        rows(tmp_path)
    with zipfile.ZipFile(tmp_path / "a.xlsx", "w") as archive:
        archive.writestr("a", "b")
    with pytest.raises(BadFile, match="no workbook"):
        rows(tmp_path)
