"""Every row of a source is read exactly once, however it is cut and wherever a reader restarts."""

from __future__ import annotations

import csv
import gzip
import io
import json
import os
import tempfile
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import example, given, settings, strategies as st

from epochgate.spark.files import (
    BadFile,
    Dialect,
    FileChanged,
    FileEnumeration,
    FileSplit,
    SourceLayout,
    SplitPosition,
    SplitReader,
)

TEXT = st.text(
    st.characters(codec="utf-8", exclude_characters="\r\n\x00", exclude_categories=["Cs"]),
    max_size=6,
)
ROWS = st.lists(st.tuples(st.integers(-99, 99), TEXT), min_size=1, max_size=12)


def enumerate_all(source: Path, **options: Any) -> tuple[list[FileSplit], SourceLayout]:
    enumeration = FileEnumeration(source, **options)
    splits = enumeration.discover()
    assert enumeration.layout is not None
    return splits, enumeration.layout


def read_all(splits: list[FileSplit], layout: SourceLayout, **options: Any) -> list[Any]:
    reader = SplitReader(layout, **options)
    return [
        tuple(row.values())
        for split in splits
        for read in reader.read(split)
        for row in read.batch.to_pylist()
    ]


def require_resumable(
    splits: list[FileSplit], layout: SourceLayout, **options: Any
) -> list[tuple[Any, ...]]:
    """Read once, then again from every reported position with other batch sizes."""
    expected: list[tuple[Any, ...]] = []
    for split in splits:
        reads = list(SplitReader(layout, **options).read(split))
        rows = [tuple(row.values()) for read in reads for row in read.batch.to_pylist()]
        assert [row for read in reads for row in read.rows] == list(range(len(rows)))
        for read in reads:
            assert 0 < read.batch.num_rows <= options["batch_rows"]
            assert read.batch.schema == layout.output_schema
            position = SplitPosition.from_list(read.position.to_list())
            assert position.rows == read.rows.stop
            for batch_rows, block_bytes in ((1, 7), (3, 50), (1000, 1 << 20)):
                again = SplitReader(layout, batch_rows=batch_rows, block_bytes=block_bytes)
                rest = [
                    tuple(row.values())
                    for later in again.read(FileSplit.from_list(split.to_list()), position)
                    for row in later.batch.to_pylist()
                ]
                assert rest == rows[read.rows.stop :]
        expected += rows
    return expected


def csv_bytes(rows: list[tuple[int, str]], line_end: str, last_line_end: bool) -> bytes:
    text = io.StringIO(newline="")
    # An empty string is quoted, so that the last column never makes an empty line.
    writer = csv.writer(text, lineterminator=line_end, quoting=csv.QUOTE_NONNUMERIC)
    writer.writerow(["number", "text"])
    writer.writerows(rows)
    data = text.getvalue().encode()
    return data if last_line_end else data.removesuffix(line_end.encode())


SCHEMA = pa.schema([("number", pa.int64()), ("text", pa.string())])


@given(
    ROWS,
    st.integers(1, 60),
    st.integers(1, 40),
    st.sampled_from(["\n", "\r\n"]),
    st.booleans(),
    st.booleans(),
)
@example([(1, 'a "quoted" b'), (2, "")], 3, 1, "\n", False, True)
@settings(max_examples=60)
def test_every_csv_row_is_read_once_for_any_split_and_block_size(
    rows: list[tuple[int, str]],
    target: int,
    block: int,
    line_end: str,
    last_line_end: bool,
    marked: bool,
) -> None:
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory, "a.csv")
        mark = b"\xef\xbb\xbf" if marked else b""
        path.write_bytes(mark + csv_bytes(rows, line_end, last_line_end))
        splits, layout = enumerate_all(path, split_bytes_target=target, schema=SCHEMA)
        assert len(splits) == -(-path.stat().st_size // target)
        assert read_all(splits, layout, block_bytes=block) == rows


@given(ROWS, st.integers(1, 60), st.integers(1, 40), st.booleans())
@settings(max_examples=60)
def test_every_json_line_is_read_once_for_any_split_and_block_size(
    rows: list[tuple[int, str]], target: int, block: int, last_line_end: bool
) -> None:
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory, "a.jsonl")
        lines = [json.dumps({"number": number, "text": text}) for number, text in rows]
        path.write_text("\n".join(lines) + ("\n" if last_line_end else ""))
        splits, layout = enumerate_all(path, split_bytes_target=target)
        assert len(splits) == -(-path.stat().st_size // target)
        assert read_all(splits, layout, block_bytes=block) == rows


@given(
    st.lists(
        st.tuples(st.integers(-99, 99), st.text('ab,"\n', max_size=5)), min_size=1, max_size=10
    ),
    st.integers(1, 60),
    st.integers(1, 40),
    st.booleans(),
)
@settings(max_examples=60)
def test_quoted_line_ends_are_kept_for_any_split_and_block_size(
    rows: list[tuple[int, str]], target: int, block: int, last_line_end: bool
) -> None:
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory, "a.csv")
        path.write_bytes(csv_bytes(rows, "\n", last_line_end))
        splits, layout = enumerate_all(path, split_bytes_target=target, schema=SCHEMA)
        if any("\n" in text for _, text in rows):
            assert len(splits) == 1
        assert require_resumable(splits, layout, batch_rows=2, block_bytes=block) == rows


def numbered(count: int) -> list[tuple[int, str]]:
    return [(number, f"text {number}" * (number % 5)) for number in range(count)]


@pytest.mark.parametrize("target", [40, 1000, 1 << 20])
@pytest.mark.parametrize("kind", ["csv", "jsonl", "csv.gz", "jsonl.gz", "parquet"])
def test_a_reader_resumes_at_every_position_in_every_format(
    tmp_path: Path, kind: str, target: int
) -> None:
    rows = numbered(40)
    path = tmp_path / f"a.{kind}"
    if kind == "parquet":
        table = pa.Table.from_pylist([dict(zip(SCHEMA.names, row, strict=True)) for row in rows])
        pq.write_table(table, path, row_group_size=9)
    else:
        data = csv_bytes(rows, "\n", True)
        if kind.startswith("jsonl"):
            data = b"".join(
                json.dumps(dict(zip(SCHEMA.names, row, strict=True))).encode() + b"\n"
                for row in rows
            )
        path.write_bytes(gzip.compress(data) if kind.endswith("gz") else data)
    splits, layout = enumerate_all(path, split_bytes_target=target)
    if kind.endswith("gz") or target > 1000:
        assert len(splits) == 1
    elif target == 40:
        assert len(splits) >= 5
    assert require_resumable(splits, layout, batch_rows=4, block_bytes=100) == rows


def test_a_projection_reads_those_columns_in_that_order(tmp_path: Path) -> None:
    table = pa.table({"a": [1, 2], "b": ["x", "y"], "c": [0.5, 1.5]})
    pq.write_table(table, tmp_path / "a.parquet")
    (tmp_path / "a.csv").write_text("a,b,c\n1,x,0.5\n2,y,1.5\n")
    (tmp_path / "a.jsonl").write_text('{"a":1,"b":"x","c":0.5}\n{"a":2,"b":"y","c":1.5}\n')
    for kind in ("parquet", "csv", "jsonl"):
        splits, layout = enumerate_all(tmp_path / f"a.{kind}", projection=["c", "a"])
        assert read_all(splits, layout) == [(0.5, 1), (1.5, 2)]
        assert SourceLayout.from_bytes(layout.to_bytes()) == layout


def test_types_are_those_of_the_first_file_whatever_later_ones_look_like(tmp_path: Path) -> None:
    (tmp_path / "1.csv").write_text("a,b,empty\n1.5,x,\n")
    (tmp_path / "2.csv").write_text("a,b,empty\n2,3,now not\n")
    splits, layout = enumerate_all(tmp_path)
    assert layout.schema.types == [pa.float64(), pa.string(), pa.string()]
    assert read_all(splits, layout)[1] == (2.0, "3", "now not")


def test_parquet_columns_are_read_by_name(tmp_path: Path) -> None:
    pq.write_table(pa.table({"a": [1], "b": ["x"]}), tmp_path / "1.parquet")
    pq.write_table(pa.table({"b": ["y"], "a": [2]}), tmp_path / "2.parquet")
    splits, layout = enumerate_all(tmp_path)
    assert read_all(splits, layout) == [(1, "x"), (2, "y")]


def test_a_csv_file_without_header_has_numbered_columns(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("1;x\n2;y\n")
    splits, layout = enumerate_all(
        tmp_path, dialect=Dialect(";", header=False), split_bytes_target=3
    )
    assert layout.schema.names == ["f0", "f1"]
    assert read_all(splits, layout) == [(1, "x"), (2, "y")]


def read_until_bad(
    reader: SplitReader, split: FileSplit, position: SplitPosition | None = None
) -> tuple[list[Any], BadFile]:
    rows: list[Any] = []
    try:
        for read in reader.read(split, position):
            rows += read.batch.column(0).to_pylist()
    except BadFile as bad_file:
        return rows, bad_file
    raise AssertionError("the file is not bad")


@pytest.mark.parametrize("block_bytes", [20, 64, 1 << 20])
@pytest.mark.parametrize("kind", ["csv", "jsonl"])
def test_a_bad_record_is_named_by_its_line_and_all_rows_before_it_are_read(
    tmp_path: Path, kind: str, block_bytes: int
) -> None:
    good = [f"{number},x" if kind == "csv" else f'{{"a": {number}}}' for number in range(30)]
    bad = "1,2,3" if kind == "csv" else '{"a": "not a number"}'
    lines = ([] if kind == "jsonl" else ["a,b"]) + good[:20]
    place = "line 22" if kind == "csv" else "line 21, column 'a'"
    path = tmp_path / f"a.{kind}"
    path.write_text("\n".join([*lines, bad, *good[20:]]))
    # The sample ends before the bad record, as it would in a large file.
    splits, layout = enumerate_all(path, sample_bytes_max=100)

    rows, bad_file = read_until_bad(SplitReader(layout, block_bytes=block_bytes), splits[0])
    assert rows == list(range(20))
    assert bad_file.position == place
    assert f"'{path}', at {place}: " in str(bad_file)
    assert bad_file.split_id == splits[0].split_id

    reader = SplitReader(layout, block_bytes=block_bytes, on_bad_file="skip")
    assert sum(read.batch.num_rows for read in reader.read(splits[0])) == 20
    (skipped,) = reader.take_skipped()
    assert skipped.path == str(path)
    assert skipped.position == place
    assert reader.take_skipped() == []


def test_a_damaged_parquet_page_is_named_by_row_group(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    table = pa.table({"a": list(range(30_000))})
    pq.write_table(
        table, path, row_group_size=10_000, write_page_checksum=True, use_dictionary=False
    )
    splits, layout = enumerate_all(path)
    place = pq.read_metadata(path).row_group(1).column(0).data_page_offset + 5_000
    data = bytearray(path.read_bytes())
    data[place] ^= 0xFF
    before = path.stat()
    path.write_bytes(data)
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    rows, bad_file = read_until_bad(SplitReader(layout), splits[0])
    assert rows == list(range(10_000))
    assert bad_file.position == "row group 1, row 0"


def test_a_truncated_gzip_file_is_bad_after_the_rows_it_still_holds(tmp_path: Path) -> None:
    path = tmp_path / "a.csv.gz"
    whole = gzip.compress(csv_bytes(numbered(5000), "\n", True))
    path.write_bytes(whole[: len(whole) // 2])
    splits, layout = enumerate_all(path, sample_bytes_max=200)
    rows, bad_file = read_until_bad(SplitReader(layout, block_bytes=1000), splits[0])
    assert len(rows) > 1000
    assert rows == list(range(len(rows)))
    assert "EOFError" in bad_file.cause
    position = SplitPosition(*next(iter(SplitReader(layout).read(splits[0]))).position.to_list())
    assert read_until_bad(SplitReader(layout), splits[0], position)[0] == rows[position.rows :]


def test_a_quote_that_is_never_closed_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text('a,b\n1,x\n2,"never closed\n3,y\n')
    splits, layout = enumerate_all(path, sample_bytes_max=9)
    with pytest.raises(BadFile, match=r"byte 8.*not closed"):
        read_all(splits, layout)


def test_quotes_inside_unquoted_fields_are_characters(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text('a,b\n1,5" pipe\n2,"two\nlines"\n3,z\n')
    splits, layout = enumerate_all(path, split_bytes_target=8)
    assert read_all(splits, layout, block_bytes=4) == [(1, '5" pipe'), (2, "two\nlines"), (3, "z")]


@pytest.mark.parametrize("policy", ["fail", "skip"])
def test_a_file_that_changed_after_enumeration_is_never_read(tmp_path: Path, policy: Any) -> None:
    path = tmp_path / "a.csv"
    path.write_text("a\n1\n")
    splits, layout = enumerate_all(path)
    path.write_text("a\n1\n2\n")
    with pytest.raises(FileChanged, match=r"a\.csv"):
        list(SplitReader(layout, on_bad_file=policy).read(splits[0]))


def test_a_file_that_changes_while_it_is_read_is_noticed_at_its_end(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("a\n" + "1\n" * 10)
    splits, layout = enumerate_all(path)
    reads = SplitReader(layout, batch_rows=2).read(splits[0])
    next(reads)
    with open(path, "a") as file:
        file.write("2\n")
    with pytest.raises(FileChanged):
        list(reads)


@pytest.mark.parametrize("policy", ["skip", "new"])
def test_the_rest_of_a_file_that_changes_may_be_left_out(tmp_path: Path, policy: Any) -> None:
    path = tmp_path / "a.csv"
    path.write_text("a\n" + "1\n" * 10)
    splits, layout = enumerate_all(path)
    reader = SplitReader(layout, batch_rows=2, on_changed_file=policy)
    reads = reader.read(splits[0])
    position = next(reads).position
    path.write_text("a\n" + "2\n" * 10)
    assert list(SplitReader(layout, on_changed_file=policy).read(splits[0], position)) == []
    assert sum(read.batch.num_rows for read in reads) == 8, "it is noticed at the end at the latest"
    (skipped,) = reader.take_skipped()
    assert (skipped.position, skipped.split_id) == ("row 10", splits[0].split_id)


def test_a_file_that_is_touched_is_read_to_its_end(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("a\n1\n2\n")
    splits, layout = enumerate_all(path)
    os.utime(path, (1, 1))
    reads = SplitReader(layout, batch_rows=1).read(splits[0])
    next(reads)
    os.utime(path, (2, 2))
    assert len(list(reads)) == 1


def test_a_file_that_is_gone_is_a_bad_file(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("a\n1\n")
    splits, layout = enumerate_all(path)
    path.unlink()
    with pytest.raises(BadFile, match="No such file"):
        list(SplitReader(layout).read(splits[0]))
