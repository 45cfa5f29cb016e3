"""Names of columns: an ambiguous one is refused, which "missing" never is, and a blank one too."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from epochgate.errors import UsageError
from epochgate.spark.files.column_names import NamesUnusable
from epochgate.spark.files.dialect import Dialect
from epochgate.spark.files.errors import BadFile
from tests.spark.files.reading import rows, write


def twice(tmp_path: Path) -> Path:
    table = pa.Table.from_arrays(
        [pa.array([1, 2]), pa.array([10, 20]), pa.array([100, 200])], names=["id", "v", "v"]
    )
    (tmp_path / "in").mkdir()
    pq.write_table(table, tmp_path / "in" / "a.parquet")
    return tmp_path / "in"


def test_two_parquet_columns_of_one_name_are_refused(tmp_path: Path) -> None:
    with pytest.raises(NamesUnusable, match=r"a\.parquet'.*columns 2 and 3.*'v'.*--columns"):
        rows(twice(tmp_path))


def test_the_other_columns_of_such_a_file_can_be_read(tmp_path: Path) -> None:
    assert rows(twice(tmp_path), projection=["id"]) == [{"id": 1}, {"id": 2}]


def test_two_fields_of_one_name_are_refused(tmp_path: Path) -> None:
    both = pa.StructArray.from_arrays([pa.array([1]), pa.array([2])], names=["a", "a"])
    (tmp_path / "in").mkdir()
    pq.write_table(pa.table({"s": both}), tmp_path / "in" / "a.parquet")
    with pytest.raises(NamesUnusable, match="'s' has two fields of the name 'a'"):
        rows(tmp_path / "in")


@pytest.mark.parametrize(
    ("name", "text"),
    [("a.csv", ",id,name\n0,1,ada\n"), ("a.jsonl", '{"": 0, "id": 1, "name": "ada"}\n')],
)
def test_a_column_without_a_name_is_refused_unless_it_is_left_out(
    tmp_path: Path, name: str, text: str
) -> None:
    write(tmp_path / "in" / name, text)
    with pytest.raises(NamesUnusable, match=rf"{name}.*column 1 has no name.*--columns"):
        rows(tmp_path / "in")
    assert rows(tmp_path / "in", projection=["id"]) == [{"id": 1}]


@pytest.mark.parametrize("delimiter", [",", ";"])
def test_the_line_by_which_spreadsheets_tell_the_delimiter_is_no_header(
    tmp_path: Path, delimiter: str
) -> None:
    write(tmp_path / "in" / "a.csv", "sep=;\r\nid;name\r\n1;ada\r\n")
    with pytest.raises((BadFile, UsageError), match=r"first line, 'sep=;'.*Remove it"):
        rows(tmp_path / "in", dialect=Dialect(delimiter))
