"""XML documents: what Spark's source makes of elements, and no text that comes out as another."""

from __future__ import annotations

import datetime
import random
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape

import pytest

from epochgate.spark.files import BadFile, BadRow, FileEnumeration, SplitReader
from epochgate.spark.files.ddl import parse_schema
from epochgate.spark.files.dialect import Dialect, DialectUnusable
from tests.spark.files.reading import batches, rejected, rows, write

BOOK: dict[str, Any] = {"dialect": Dialect(row_tag="book")}


def of(tmp_path: Path, text: str, **options: Any) -> list[dict[str, Any]]:
    write(tmp_path / "a.xml", text)
    return rows(tmp_path, **{**BOOK, **options})


def test_attributes_children_and_texts_have_their_names(tmp_path: Path) -> None:
    found = of(
        tmp_path,
        """<?xml version="1.0"?><!-- a --><catalog xmlns:x="urn:x">
        <book id="1" x:kind="a"><title lang="en">One &amp; <![CDATA[<two>]]></title>
          <price>9.90</price><tag>a</tag><tag>b</tag><in stock="2"/></book>
        <book id="2"><title>Two</title><price>7.00</price><tag>c</tag><at>2024-01-02</at></book>
        <other><book id="3"><title/><price/></book></other></catalog>""",
    )
    assert found == [
        {
            "_id": 1,
            "_x:kind": "a",
            "title": {"_lang": "en", "_VALUE": "One & <two>"},
            "price": "9.90",
            "tag": ["a", "b"],
            "in": {"_stock": 2},
            "at": None,
        },
        {
            "_id": 2,
            "_x:kind": None,
            "title": {"_lang": None, "_VALUE": "Two"},
            "price": "7.00",
            "tag": ["c"],
            "in": None,
            "at": datetime.date(2024, 1, 2),
        },
        {
            "_id": 3,
            "_x:kind": None,
            "title": None,
            "price": "",
            "tag": None,
            "in": None,
            "at": None,
        },
    ]


@pytest.mark.parametrize(
    ("texts", "kind"),
    [
        (["7", "-20", ""], "int64"),
        (["007", "7"], "string"),
        (["1.5", "7", "0.25"], "double"),
        (["1.50"], "string"),
        (["true", "false"], "bool"),
        (["true", "TRUE"], "string"),
        (["2024-01-02", "2024-02-03"], "date32[day]"),
        (["2024-01-02T03:04:05", "2024-01-02 03:04:05.5"], "timestamp[us]"),
        (["2024-01-02T03:04:05Z"], "timestamp[us, tz=UTC]"),
        (["2024-01-02", "7"], "string"),
        (["12345678901234567890"], "decimal128(38, 0)"),
        ([" 7"], "string"),
    ],
)
def test_types_are_inferred_where_texts_print_again(
    tmp_path: Path, texts: list[str], kind: str
) -> None:
    body = "".join(f"<book><a>{text}</a></book>" for text in texts)
    write(tmp_path / "a.xml", f"<r>{body}</r>")
    read = batches(tmp_path, **BOOK)
    assert str(read[0].batch.schema.field("a").type) == kind
    if kind == "string":
        assert [row["a"] for row in rows(tmp_path, **BOOK)] == texts


def test_a_later_text_that_does_not_print_again_is_a_bad_row(tmp_path: Path) -> None:
    values = ["7"] * 30 + ["007", "8", "2024-1-2"]
    body = "\n".join(f"<book><a>{one}</a><d>2024-01-02</d></book>" for one in values[:-1])
    write(tmp_path / "a.xml", f"<r>{body}<book><a>9</a><d>2024-1-2</d></book></r>")
    options = {**BOOK, "sample_bytes_max": 100}
    found = rejected(tmp_path, **options)
    assert [(one.line, one.column_name, one.reason) for one in found] == [
        (31, "a", '"007" is no BIGINT'),
        (33, "d", '"2024-1-2" is no DATE'),
    ]
    with pytest.raises(BadRow, match="no BIGINT"):
        rows(tmp_path, **options)
    rescued = [row for row in rows(tmp_path, **options, on_bad_row="rescue") if row["_rescued"]]
    assert [row["a"] for row in rescued] == [None, 9]
    assert '"a": "007"' in rescued[0]["_rescued"]


def test_declared_types_take_each_text_that_has_a_value(tmp_path: Path) -> None:
    schema = parse_schema(
        "a BIGINT, b DOUBLE, c DECIMAL(10,2), d DATE, e BOOLEAN, f STRING, g TIMESTAMP, h STRING"
    )
    text = (
        "<r><book><a> 007\n</a><b>1.50</b><c>1.50</c><d>2024-01-02</d><e>1</e><f>1.50</f>"
        "<g>2024-01-02T03:04:05+02:00</g><h>true</h></book></r>"
    )
    (row,) = of(tmp_path, text, schema=schema)
    assert row["a"], row["b"] == (7, 1.5)
    assert (str(row["c"]), row["d"], row["e"]) == ("1.50", datetime.date(2024, 1, 2), True)
    assert (row["f"], row["h"]) == ("1.50", "true")
    assert row["g"] == datetime.datetime(2024, 1, 2, 1, 4, 5, tzinfo=datetime.UTC)


@pytest.mark.parametrize(
    "text",
    [
        '<!DOCTYPE r [<!ENTITY x SYSTEM "file:///etc/passwd">]><r><book><a>&x;</a></book></r>',
        '<!DOCTYPE r [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;&a;">]><r><book a="&b;"/></r>',
        '<!DOCTYPE r SYSTEM "http://127.0.0.1:9/r.dtd"><r><book/></r>',
    ],
)
def test_a_document_type_is_refused_and_with_it_its_entities(tmp_path: Path, text: str) -> None:
    with pytest.raises(BadFile, match="it has a document type"):
        of(tmp_path, text)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("<r><book><a>1</a></book><book><a>2</b></book></r>", "it is no XML: mismatched tag"),
        ("<r><book><a>1</a></book><book><a>&foo;</a></book></r>", "undefined entity"),
        ("<r><book><a>1</a></book><book><a>", "no element found"),
        ("<r><item/></r>", "it has no element <book>; it begins with <r>, <item>"),
    ],
)
def test_what_is_no_xml_is_bad_behind_the_rows_before_it(
    tmp_path: Path, text: str, told: str
) -> None:
    write(tmp_path / "a.xml", "<r><book><a>0</a></book></r>")
    write(tmp_path / "b.xml", text)
    with pytest.raises(BadFile, match=told):
        rows(tmp_path, **BOOK)
    enumeration = FileEnumeration(tmp_path, on_bad_file="skip", **BOOK)
    found = []
    for split in enumeration.discover():
        reader = SplitReader(enumeration.layout_of(split), on_bad_file="skip")
        found += [row["a"] for one in reader.read(split) for row in one.batch.to_pylist()]
    assert found == ([0, 1] if "<item/>" not in text else [0])


def test_the_name_of_a_row_is_asked_for(tmp_path: Path) -> None:
    write(tmp_path / "a.xml", "<r><book/></r>")
    with pytest.raises(DialectUnusable, match="--row-tag"):
        rows(tmp_path)


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16", "iso-8859-1", "windows-1252"])
def test_an_encoding_is_that_of_the_document(tmp_path: Path, encoding: str) -> None:
    text = f'<?xml version="1.0" encoding="{encoding}"?><r><book><a>é&#8364;</a></book></r>'
    write(tmp_path / "a.xml", text.encode(encoding))
    assert rows(tmp_path, **BOOK) == [{"a": "é€"}]


def test_text_between_children_is_kept_piece_by_piece(tmp_path: Path) -> None:
    (row,) = of(tmp_path, "<r><book>one <b>two</b> three <b>four</b></book></r>")
    assert row == {"b": ["two", "four"], "_VALUE": ["one ", " three "]}


def test_nil_is_null_and_deep_documents_are_refused(tmp_path: Path) -> None:
    nil = '<r xmlns:xsi="x"><book><a xsi:nil="true"/><b>1</b></book></r>'
    assert of(tmp_path, nil)[0]["b"] == 1
    deep = f"<r><book>{'<a>' * 600}{'</a>' * 600}</book></r>"
    with pytest.raises(BadFile, match="nested more than"):
        of(tmp_path, deep)


@pytest.mark.parametrize("seed", range(5))
def test_texts_come_back_wherever_reading_goes_on(tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    pieces = [
        "7",
        "007",
        "1.0",
        "true",
        "é",
        "<",
        "&",
        '"',
        "\n",
        " ",
        "]]>",
        "1e5",
        "-0",
        "x" * 90,
    ]
    texts = ["".join(chance.choices(pieces, k=chance.randrange(4))) for _ in range(60)]
    body = "".join(f"<book><n>{n}</n><a>{escape(one)}</a></book>" for n, one in enumerate(texts))
    write(tmp_path / "a.xml", f"<r>{body}</r>")
    enumeration = FileEnumeration(tmp_path, schema=parse_schema("n INT, a STRING"), **BOOK)
    (split,) = enumeration.discover()
    reader = SplitReader(enumeration.layout_of(split), batch_rows=7, block_bytes=60)
    expected = list(enumerate(texts))
    for read in list(reader.read(split)):
        rest = [
            (row["n"], row["a"])
            for one in reader.read(split, read.position)
            for row in one.batch.to_pylist()
        ]
        assert rest == expected[read.position.rows :]
