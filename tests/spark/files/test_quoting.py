"""Quotes, escapes and line ends of CSV files: a record is what its writer made, or is refused."""

from __future__ import annotations

import csv
import io
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, strategies as st

from epochgate.spark.files import BadFile, BadRow
from epochgate.spark.files.dialect import Dialect
from epochgate.spark.files.quoting import Quoting, RecordMalformed
from tests.spark.files.reading import rejected, rows, write

BACKSLASH = Dialect(escape="\\")
UNQUOTED = Dialect("\t", quote="", escape="\\", null=("\\N",))
AS_SPARK_WRITES = [
    (1, 'say "hi"', r'"say \"hi\""'),
    (2, r"a\b", r"a\b"),
    (3, r"a\b,c", r'"a\\b,c"'),
    (4, "x\\", "x\\"),
    (5, r"x\,y", r'"x\\,y"'),
    (6, r"q\"z", r'"q\\\"z"'),
    (7, "line\nbreak", '"line\nbreak"'),
    (8, r"a\\b,", r'"a\\\\b,"'),
    (9, '"', r'"\""'),
    (10, r"\n,", r'"\\n,"'),
]


@pytest.mark.parametrize("block_bytes", [1, 7, 50, 1 << 20])
@pytest.mark.parametrize("target", [9, 1 << 20])
def test_a_file_of_sparks_is_read_with_its_escape(
    tmp_path: Path, block_bytes: int, target: int
) -> None:
    lines = "".join(f"{number},{written}\n" for number, _, written in AS_SPARK_WRITES)
    write(tmp_path / "a.csv", "id,t\n" + lines)
    read = rows(tmp_path, dialect=BACKSLASH, block_bytes=block_bytes, split_bytes_target=target)
    assert read == [{"id": number, "t": text} for number, text, _ in AS_SPARK_WRITES]


@pytest.mark.parametrize("block_bytes", [1, 5, 1 << 20])
def test_a_file_of_mysqls_is_read_with_its_escape(tmp_path: Path, block_bytes: int) -> None:
    # SELECT ... INTO OUTFILE ... FIELDS TERMINATED BY ',' OPTIONALLY ENCLOSED BY '"'
    write(tmp_path / "a.csv", b'1,"a \\"b\\"",\\N\n2,"c\\\\d","e\\\nf"\n3,"\\0","\\t"\n')
    dialect = Dialect(header=False, escape="\\", null=("\\N",))
    read = rows(tmp_path, dialect=dialect, block_bytes=block_bytes)
    assert [list(row.values()) for row in read] == [
        [1, 'a "b"', None],
        [2, r"c\d", "e\nf"],
        [3, "\0", "\t"],
    ]


@pytest.mark.parametrize("block_bytes", [1, 5, 1 << 20])
@pytest.mark.parametrize("target", [9, 1 << 20])
def test_a_file_without_quotes_is_read_with_its_escape(
    tmp_path: Path, block_bytes: int, target: int
) -> None:
    text = b'id\tt\n1\ta\\\tb\n2\t\\N\n3\t\\\\N\n4\tx\\\ny\n5\t5" pipe\n6\t"q"\\n\n7\t\n'
    write(tmp_path / "a.csv", text)
    read = rows(tmp_path, dialect=UNQUOTED, block_bytes=block_bytes, split_bytes_target=target)
    expected = ["a\tb", None, r"\N", "x\ny", '5" pipe', '"q"\n', ""]
    assert [row["t"] for row in read] == expected


@pytest.mark.parametrize(
    ("record", "dialect", "reason"),
    [
        (r'2,"5\" pipe"', Dialect(), r"""follows a closing quote: ' pipe"'; if quotes are"""),
        (r'2,"say \"hi\""', Dialect(), "start with --escape"),
        ('2,"a"b', Dialect(), "text follows a closing quote: 'b'"),
        ('2,"a" ', Dialect(), "text follows a closing quote"),
        ('2,""b', Dialect(), "text follows a closing quote: 'b'"),
        ('2,""""b', Dialect(), "text follows a closing quote: 'b'"),
        ('2,"a,"b', Dialect(), "text follows a closing quote: 'b'"),
        ("2,a\rb", Dialect(), "a carriage return alone"),
        ("2\r,ab", Dialect(quote=""), "a carriage return alone"),
        (r'2,"a\q"', BACKSLASH, r"'\\q' stands for nothing"),
        ("2\t\\N", Dialect("\t", "", escape="\\"), r"'\\N' stands for nothing; if it is a field"),
        (r'2,"a" "b"', BACKSLASH, "text follows a closing quote"),
    ],
)
@pytest.mark.parametrize("block_bytes", [1, 20, 1 << 20])
def test_a_malformed_record_is_a_bad_row(
    tmp_path: Path, record: str, dialect: Dialect, reason: str, block_bytes: int
) -> None:
    one = dialect.delimiter.join(["1", "x"])
    write(tmp_path / "a.csv", f"{dialect.delimiter.join(['id', 't'])}\n{one}\n{record}\n{one}\n")
    options: dict[str, Any] = {"dialect": dialect, "block_bytes": block_bytes}
    (bad,) = rejected(tmp_path, **options)
    assert (bad.line, bad.column_name, bad.raw) == (3, None, record)
    assert reason in bad.reason
    assert len(rows(tmp_path, on_bad_row="reject", **options)) == 2
    with pytest.raises(BadRow, match="line 3: "):
        rows(tmp_path, **options)


def test_a_quote_within_a_field_that_does_not_begin_with_one_is_a_letter(tmp_path: Path) -> None:
    write(tmp_path / "a.csv", 'id,t\n1,5" pipe\n2,a""b\n3,x"\n4,"y"\n')
    for block_bytes in range(1, 40):
        read = rows(tmp_path, block_bytes=block_bytes, split_bytes_target=8)
        assert [row["t"] for row in read] == ['5" pipe', 'a""b', 'x"', "y"]


def test_a_line_end_after_a_quote_that_is_a_letter_ends_no_record(tmp_path: Path) -> None:
    write(tmp_path / "a.csv", 'id,t,u\n1,5" pipe,"a\nb"\n2,x,y\n')
    for block_bytes in range(1, 40):
        read = rows(tmp_path, block_bytes=block_bytes, split_bytes_target=4)
        assert [list(row.values()) for row in read] == [[1, '5" pipe', "a\nb"], [2, "x", "y"]]


def test_a_header_has_the_quotes_and_escapes_of_the_rows(tmp_path: Path) -> None:
    write(tmp_path / "a.csv", r'"a \"b\"",c' + "\n1,2\n")
    assert rows(tmp_path, dialect=BACKSLASH) == [{'a "b"': 1, "c": 2}]
    with pytest.raises(BadFile, match="in the header, text follows a closing quote"):
        rows(tmp_path)
    no_header = Dialect(header=False)
    write(tmp_path / "a.csv", '1,"a"b\n2,c\n')
    assert [one.line for one in rejected(tmp_path, dialect=no_header)] == [1]


def test_an_escape_that_is_the_quote_is_a_doubled_quote() -> None:
    assert Dialect(escape='"') == Dialect()
    dialect = Dialect(escape="\\")
    assert Dialect.from_list(dialect.to_list()) == dialect
    assert len(Dialect().to_list()) == 4


CELLS = st.text('a",\n\r', max_size=5)


@given(table=st.lists(st.lists(CELLS, min_size=2, max_size=2), min_size=1, max_size=4))
def test_what_pythons_writer_quotes_is_well_formed(table: list[list[str]]) -> None:
    file = io.StringIO()
    csv.writer(file, lineterminator="\n", quoting=csv.QUOTE_ALL).writerows(table)
    data = file.getvalue().encode()
    assert Quoting(Dialect()).as_rfc(data) == (data, '"')


def strictly(data: str) -> bool:
    """Return whether each record of the text is well formed, letter by letter."""
    state = "begin"
    for at, letter in enumerate(data):
        after = data[at + 1 : at + 2]
        if state == "quoted":
            if letter == '"':
                state = "closed" if after != '"' else "doubled"
        elif state == "doubled":
            state = "quoted"
        elif letter == "\r" and after not in ("\n", ""):
            return False
        elif letter in ",\n" or letter == "\r":
            state = "begin"
        elif state == "closed":
            return False
        elif state == "begin":
            state = "quoted" if letter == '"' else "plain"
    return state != "quoted"


@given(st.text('a",\n\r', max_size=14))
def test_each_malformed_record_is_found(data: str) -> None:
    quoting = Quoting(Dialect())
    try:
        quoting.as_rfc(data.encode())
        is_strict = True
    except RecordMalformed:
        is_strict = False
    assert is_strict == strictly(data)


@given(st.text('a",\n', max_size=14).filter(strictly), st.integers(0, 14))
def test_records_end_at_line_ends_outside_of_quotes(data: str, at: int) -> None:
    whole = data + "\n" if not data.endswith("\n") else data
    quoting, text = Quoting(Dialect()), whole.encode()
    ends = [0]
    state = "begin"
    for position, letter in enumerate(whole):
        if state == "quoted":
            state = "maybe" if letter == '"' else "quoted"
            continue
        if state == "maybe" and letter == '"':
            state = "quoted"
            continue
        if letter == '"' and state == "begin":
            state = "quoted"
            continue
        state = "begin" if letter in ",\n" else "plain"
        if letter == "\n":
            ends.append(position + 1)
    assert quoting.last(text) == ends[-1]
    assert quoting.first(text, at) == next((end for end in ends if end > at), 0)
