"""Lines of CSV files: each record is a row, whatever its line end, and however blocks are cut."""

from __future__ import annotations

from pathlib import Path

import pytest

from epochgate.spark.files import BadFile
from epochgate.spark.files.dialect import Dialect
from tests.spark.files.reading import rows, write


@pytest.mark.parametrize("text", ['id,name\r1,"ada"\r2,"grace"\r', "id,name\r1,ada\r"])
def test_lines_that_end_with_cr_alone_are_refused(tmp_path: Path, text: str) -> None:
    write(tmp_path / "a.csv", text)
    with pytest.raises(BadFile, match="lines end with CR alone; convert them"):
        rows(tmp_path)


def test_a_cr_within_quotes_belongs_to_a_name(tmp_path: Path) -> None:
    write(tmp_path / "a.csv", 'id,"na\rme"\n1,ada\n')
    assert rows(tmp_path) == [{"id": 1, "na\rme": "ada"}]


@pytest.mark.parametrize("block_bytes", range(1, 20))
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_an_empty_line_of_a_single_column_is_a_row(
    tmp_path: Path, block_bytes: int, end: str
) -> None:
    write(tmp_path / "a.csv", end.join(["name", "ada", "", "grace", "", ""]))
    read = [row["name"] for row in rows(tmp_path, block_bytes=block_bytes)]
    assert read == ["ada", "", "grace", ""]
    null = Dialect(null=("",))
    read = [row["name"] for row in rows(tmp_path, block_bytes=block_bytes, dialect=null)]
    assert read == ["ada", None, "grace", None]


@pytest.mark.parametrize("block_bytes", range(1, 12))
def test_an_empty_line_of_several_columns_is_none(tmp_path: Path, block_bytes: int) -> None:
    write(tmp_path / "a.csv", "a,b\n\n1,2\n\n\n3,4\n\n")
    assert rows(tmp_path, block_bytes=block_bytes) == [{"a": 1, "b": 2}, {"a": 3, "b": 4}]
