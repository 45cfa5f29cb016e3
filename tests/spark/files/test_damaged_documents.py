"""Workbooks and XML documents that are damaged, or made to cost much: bad files, or bad rows."""

from __future__ import annotations

import gzip
import tracemalloc
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from epochgate.spark.files import BadFile, FileEnumeration, SplitReader, workbooks, xml_documents
from epochgate.spark.files.dialect import Dialect
from tests.spark.files.reading import rejected, rows, write
from tests.spark.files.test_sheets import column, one_sheet
from tests.spark.files.workbook import MAIN, cell, sheet, write_workbook

NAME = cell("A1", "n", "str")


def changed(path: Path, part: str, change: Callable[[bytes], bytes | None]) -> None:
    """Write a workbook again with one part changed, or without it."""
    with zipfile.ZipFile(path) as before:
        parts = {name: before.read(name) for name in before.namelist()}
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as after:
        for name, data in parts.items():
            found = change(data) if name == part else data
            if found is not None:
                after.writestr(name, found)


def damaged(path: Path, part: str, offset: int, value: bytes) -> None:
    """Put bytes into the local header or the data of a part, as a bad disk would."""
    with zipfile.ZipFile(path) as book:
        at = book.getinfo(part).header_offset + offset
    data = bytearray(path.read_bytes())
    data[at : at + len(value)] = value
    path.write_bytes(data)


SHEET = "xl/worksheets/sheet1.xml"


@pytest.mark.parametrize("of", ["sheet", "book", "encrypted", "method", "missing", "no office"])
def test_a_damaged_workbook_is_a_bad_file(tmp_path: Path, of: str) -> None:
    below = [[cell(f"A{number}", f"{number}.{number}")] for number in range(2, 4000)]
    path = one_sheet(tmp_path / "a.xlsx", [NAME], *below)
    if of in ("sheet", "book"):
        part = SHEET if of == "sheet" else "xl/workbook.xml"
        damaged(path, part, 30 + len(part) + 60, b"\xff" * 40)
    elif of == "missing":
        changed(path, SHEET, lambda _: None)
    elif of == "no office":
        changed(path, "_rels/.rels", lambda data: data.replace(b"officeDocument", b"other"))
    else:
        data = bytearray(path.read_bytes())
        with zipfile.ZipFile(path) as book:
            names = book.namelist()
            at, entry = book.getinfo(SHEET).header_offset, data.index(b"PK\x01\x02")
        for _ in range(names.index(SHEET)):
            entry = data.index(b"PK\x01\x02", entry + 4)
        field, value = (6, 1) if of == "encrypted" else (8, 9)
        data[at + field] = data[entry + field + 2] = value
        path.write_bytes(data)
    with pytest.raises(BadFile, match="workbook"):
        rows(tmp_path)


@pytest.mark.parametrize(
    "text",
    [
        cell("A2", "x"),
        cell("A2", "1_0"),
        cell("A2", "", style=1).replace("<v>", "<f>a</f><v>"),
        cell("A2", "1e999", style=1),
        cell("A2", "nan", style=1),
        cell("A2", "9", "s"),
        cell("A2", "-1", "s"),
        cell("A2", "maybe", "b"),
    ],
)
def test_a_cell_that_cannot_be_is_a_bad_row(tmp_path: Path, text: str) -> None:
    one_sheet(tmp_path / "a.xlsx", [NAME], [text], [cell("A3", "7")])
    assert [one.line for one in rejected(tmp_path)] == [2]
    assert rows(tmp_path, on_bad_row="reject") == [{"n": 7}]


def test_truths_are_told_in_words_or_numbers(tmp_path: Path) -> None:
    words = [cell("A2", "true", "b"), cell("A3", "FALSE", "b")]
    assert column(tmp_path, *words) == [True, False]


def test_a_cell_with_an_empty_value_is_empty(tmp_path: Path) -> None:
    one_sheet(
        tmp_path / "a.xlsx", [NAME, cell("B1", "m", "str")], [cell("A2", ""), cell("B2", "1")]
    )
    assert rows(tmp_path) == [{"n": None, "m": 1}]


@pytest.mark.parametrize(
    "of",
    [
        f'<row r="{10**13}">{cell("A1", "1")}</row>',
        f'<row r="2">{cell("ZZZZZZ2", "1")}</row>',
        f'<row r="2">{cell("2", "1")}</row>',
        f'<row r="2">{cell("A2", "1")}{cell("A2", "2")}</row>',
    ],
)
def test_a_place_that_no_sheet_has_is_a_fault_of_the_file(tmp_path: Path, of: str) -> None:
    text = (
        f'<worksheet xmlns="{MAIN}"><sheetData><row r="1">{NAME}</row>{of}</sheetData></worksheet>'
    )
    write_workbook(tmp_path / "a.xlsx", {"Sheet1": text})
    with pytest.raises(BadFile, match="workbook is damaged"):
        rows(tmp_path)


@pytest.mark.parametrize("of", ["cell", "row", "tag", "texts", "letters", "styles"])
def test_a_workbook_that_unpacks_to_much_is_refused_early(
    tmp_path: Path, of: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for limit in ("RECORD_BYTES_MAX", "_PART_BYTES_MAX", "_TEXTS_MAX"):
        monkeypatch.setattr(workbooks, limit, 1 << 20)
    monkeypatch.setattr(xml_documents, "_TAG_BYTES_MAX", 1 << 20)
    much = 16 << 20
    shared: list[str] = []
    text = sheet({1: [NAME], 2: [cell("A2", "1")]})
    if of == "cell":
        text = sheet({1: [NAME], 2: [cell("A2", "x" * much, "str")]})
    elif of == "row":
        text = sheet({1: [NAME], 2: ['<c t="str"><v>' + "x" * 16000 + "</v></c>"] * 1000})
    elif of == "tag":
        text = text.replace("<sheetData", f'<sheetData a="{"x" * much}"')
    elif of == "texts":
        shared = ["", "</si><si>" * (much // 9)]
    elif of == "letters":
        shared = [f"<t>{'x' * much}</t>"]
    path = write_workbook(tmp_path / "a.xlsx", {"Sheet1": text}, shared)
    if of == "styles":
        styles = b'<xf numFmtId="170"/>' * (much // 20)
        changed(
            path, "xl/styles.xml", lambda data: data.replace(b"<cellXfs>", b"<cellXfs>" + styles)
        )
    tracemalloc.start()
    try:
        with pytest.raises(BadFile, match="more than 1048576"):
            rows(tmp_path)
        assert tracemalloc.get_traced_memory()[1] < much
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(
    "document",
    [
        b'<?xml version="1.0" encoding="no-such"?><r><book><a>1</a></book></r>',
        b'<?xml version="1.0" encoding="shift_jis"?><r><book><a>\x83\x41</a></book></r>',
        b"\x1f\x8b\x08\x00",
    ],
)
def test_a_document_in_an_unknown_encoding_is_a_bad_file(tmp_path: Path, document: bytes) -> None:
    write(tmp_path / "a.xml", document)
    with pytest.raises(BadFile):
        rows(tmp_path, dialect=Dialect(row_tag="book"))


def test_names_that_meet_in_a_record_of_xml_are_not_lost(tmp_path: Path) -> None:
    write(tmp_path / "a.xml", b'<r><book x="1"><_x>2</_x></book><book><a>1</a></book></r>')
    with pytest.raises(BadFile, match="_x"):
        rows(tmp_path, dialect=Dialect(row_tag="book"))


def test_a_fault_between_the_header_and_the_first_row_is_no_end(tmp_path: Path) -> None:
    """Of more than a block: the header is out by then."""
    text = sheet({1: [NAME], 2: [cell("A2", "7" + " " * 200_000)]})
    text = text.replace("</c></row></sheetData>", "</oops></c></row></sheetData>")
    write_workbook(tmp_path / "a.xlsx", {"Sheet1": text})
    with pytest.raises(BadFile, match="mismatched tag"):
        rows(tmp_path)


def test_rows_before_a_damaged_block_are_kept(tmp_path: Path) -> None:
    body = "".join(f"<book><a>{n}</a></book>" for n in range(200_000))
    data = gzip.compress(f"<r>{body}</r>".encode())
    (tmp_path / "a.xml.gz").write_bytes(data[: len(data) // 2])
    enumeration = FileEnumeration(tmp_path, on_bad_file="skip", dialect=Dialect(row_tag="book"))
    found = []
    for split in enumeration.discover():
        reader = SplitReader(enumeration.layout_of(split), on_bad_file="skip")
        found += [row["a"] for one in reader.read(split) for row in one.batch.to_pylist()]
        assert len(reader.take_skipped()) == 1
    assert found == list(range(len(found)))
    assert len(found) > 50_000
