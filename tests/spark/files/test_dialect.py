"""CSV files as they come: delimiters, quotes, headers, encodings, and texts that mean no value."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from epochgate.spark.files import BadRow, DelimiterDoubtful, Dialect, FileEnumeration
from epochgate.spark.files.asked import ReadingChanged
from epochgate.spark.files.dialect import DialectUnusable, delimiter_named
from tests.spark.files.reading import batches, rows, write

ADA, BOB = {"id": 1, "name": "Ada"}, {"id": 2, "name": "Bob"}


@pytest.mark.parametrize("delimiter", [";", "\t", "|", ":"])
@pytest.mark.parametrize("target", [4, 1 << 20])
def test_fields_are_separated_by_the_delimiter_that_is_named(
    tmp_path: Path, delimiter: str, target: int
) -> None:
    write(tmp_path / "a.csv", f"id{delimiter}name\n1{delimiter}Ada\n2{delimiter}Bob\n")
    read = rows(tmp_path, dialect=Dialect(delimiter), split_bytes_target=target)
    assert read == [ADA, BOB]


def test_quotes_are_those_that_are_named_or_none(tmp_path: Path) -> None:
    text = "id,name\n1,'A, \"d\"\na'\n2,Bob\n"
    write(tmp_path / "a.csv", text)
    read = rows(tmp_path, dialect=Dialect(quote="'"), split_bytes_target=6, block_bytes=3)
    assert read == [{"id": 1, "name": 'A, "d"\na'}, BOB]
    write(tmp_path / "a.csv", 'id,name\n1,5" pipe\n2,"x\n')
    read = rows(tmp_path, dialect=Dialect(quote=""), split_bytes_target=6, block_bytes=3)
    assert read == [{"id": 1, "name": '5" pipe'}, {"id": 2, "name": '"x'}]


def test_columns_are_read_by_name_in_whatever_order_a_file_has_them(tmp_path: Path) -> None:
    write(tmp_path / "a.csv", "id,name\n1,Ada\n")
    write(tmp_path / "b.csv", "name,id\nBob,2\nCyd,3\n")
    (tmp_path / "c.csv.gz").write_bytes(gzip.compress(b"name,id\nDee,4\n"))
    read = rows(tmp_path, split_bytes_target=8)
    assert read == [ADA, BOB, {"id": 3, "name": "Cyd"}, {"id": 4, "name": "Dee"}]
    assert [list(row) for row in read] == [["id", "name"]] * 4
    assert rows(tmp_path, projection=["name"], split_bytes_target=8)[2] == {"name": "Cyd"}


def test_files_without_a_header_take_the_names_of_the_schema(tmp_path: Path) -> None:
    write(tmp_path / "a.csv", "1,Ada\n2,Bob\n")
    assert rows(tmp_path, dialect=Dialect(header=False))[0] == {"f0": 1, "f1": "Ada"}
    schema = pa.schema([("id", pa.int64()), ("name", pa.string())])
    read = rows(tmp_path, dialect=Dialect(header=False), schema=schema, split_bytes_target=6)
    assert read == [ADA, BOB]


def test_texts_that_mean_no_value_are_those_that_are_named(tmp_path: Path) -> None:
    write(tmp_path / "a.csv", 'id,name\n1,NA\n-,-\n3,"-"\n')
    read = rows(tmp_path, dialect=Dialect(null=("-",)))
    assert read == [
        {"id": 1, "name": "NA"},
        {"id": None, "name": None},
        {"id": 3, "name": "-"},
    ]


def test_an_empty_field_that_is_no_value_any_more_is_named_with_what_to_say(
    tmp_path: Path,
) -> None:
    write(tmp_path / "a.csv", "id,name\n1,x\n,y\n")
    schema = pa.schema([("id", pa.int64()), ("name", pa.string())])
    with pytest.raises(BadRow, match=r"line 3, column 'id': '' is no BIGINT; give --null ''"):
        rows(tmp_path, dialect=Dialect(null=("-",)), schema=schema)
    read = rows(tmp_path, dialect=Dialect(null=("-", "")), schema=schema)
    assert read[1] == {"id": None, "name": "y"}


@pytest.mark.parametrize(
    ("text", "advice"),
    [
        ("id;name\n1;Ada\n", "--delimiter ';'"),
        ("id\tname\n1\tAda\n", "--delimiter tab"),
        ("id|name\n1|Ada, Bob\n", "--delimiter '|'"),
        ("only;one\n", "--delimiter ';'"),
    ],
)
def test_a_file_of_another_delimiter_is_refused_with_the_delimiter_to_name(
    tmp_path: Path, text: str, advice: str
) -> None:
    path = write(tmp_path / "a.csv", text)
    for dialect in (Dialect(), Dialect(header=False)):
        with pytest.raises(DelimiterDoubtful) as caught:
            rows(tmp_path, dialect=dialect)
        for part in (str(path), advice, "delimiter is ','"):
            assert part in str(caught.value)


def test_a_later_file_of_another_delimiter_is_refused_alike(tmp_path: Path) -> None:
    write(tmp_path / "a.csv", "id,name\n1,Ada\n")
    write(tmp_path / "b.csv", "id;name\n2;Bob\n")
    with pytest.raises(DelimiterDoubtful, match=r"b\.csv.*--delimiter ';'"):
        rows(tmp_path)


def test_a_row_of_another_delimiter_is_named_with_the_delimiter_it_may_have(
    tmp_path: Path,
) -> None:
    write(tmp_path / "a.csv", "id,name\n1,Ada\n2;Bob\n")
    schema = pa.schema([("id", pa.int64()), ("name", pa.string())])
    with pytest.raises(BadRow) as caught:
        rows(tmp_path, schema=schema)
    for part in ("line 3:", "1 field, expected 2 (id, name)", "--delimiter ';'"):
        assert part in str(caught.value)


def test_one_column_is_taken_for_one_where_its_name_is_quoted_or_given(tmp_path: Path) -> None:
    write(tmp_path / "a.csv", '"a;b"\nx;y\n')
    assert rows(tmp_path) == [{"a;b": "x;y"}]
    write(tmp_path / "a.csv", "a;b\nx;y\n")
    assert rows(tmp_path, schema=pa.schema([("a;b", pa.string())])) == [{"a;b": "x;y"}]


def test_a_table_of_one_column_is_no_reason_for_doubt(tmp_path: Path) -> None:
    write(tmp_path / "a.csv", "id\n1\n")
    assert rows(tmp_path) == [{"id": 1}]


def test_a_job_that_goes_on_reads_in_the_same_way(tmp_path: Path) -> None:
    write(tmp_path / "a.csv", "id,name\n1,Ada\n")
    ddl = {"id": pa.int64(), "name": pa.string()}
    first = FileEnumeration(tmp_path)
    first.discover()
    data = first.snapshot()
    FileEnumeration(tmp_path, schema=pa.schema(list(ddl.items()))).restore(data)
    with pytest.raises(ReadingChanged, match=r"--delimiter.*\n  before: .*','.*\n  now: .*';'"):
        FileEnumeration(tmp_path, dialect=Dialect(";")).restore(data)
    wider = pa.schema([*ddl.items(), ("more", pa.string())])
    with pytest.raises(
        ReadingChanged,
        match=r"--schema: .*\n  before: .*\n  now:    id: BIGINT, name: STRING, more",
    ):
        FileEnumeration(tmp_path, schema=wider).restore(data)
    FileEnumeration(tmp_path, schema=wider, evolution="add").restore(data)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"delimiter": ""}, "--delimiter ''"),
        ({"delimiter": "::"}, "--delimiter '::' (delimiter in Python) must be one ASCII"),
        ({"delimiter": "é"}, "must be one ASCII character"),
        ({"quote": "\n"}, "--quote"),
        ({"delimiter": '"'}, "is the delimiter as well"),
    ],
)
def test_a_dialect_that_cannot_be_read_is_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(DialectUnusable) as caught:
        Dialect(**options)
    assert message in str(caught.value)


def test_delimiters_that_are_hard_to_type_have_names() -> None:
    assert [delimiter_named(text) for text in ("tab", "\\t", "pipe", ";")] == ["\t", "\t", "|", ";"]
    assert Dialect.from_list(Dialect("\t", "", False, ("",)).to_list()) == Dialect(
        "\t", "", False, ("",)
    )


def test_a_clean_file_is_parsed_block_by_block_and_no_line_is_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path / "a.csv", "id,name\n" + "1,Ada\n" * 1000)
    counted: list[int] = []
    monkeypatch.setattr(
        "epochgate.spark.files.lines.LineCounter.line_at", lambda self, at: counted.append(at)
    )
    read = batches(tmp_path, block_bytes=3000, on_bad_row="reject")
    assert (len(read), counted) == (2, [])
