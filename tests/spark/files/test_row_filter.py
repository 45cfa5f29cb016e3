"""Rows that fulfil a condition, and files of which it is known that they have none."""

from __future__ import annotations

import datetime
import math
import tempfile
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, strategies as st

from epochgate.spark.files import FileEnumeration
from epochgate.spark.files.access import FileAccess
from epochgate.spark.files.condition import ConditionWrong, parse_condition
from epochgate.spark.files.reader import SplitReader
from epochgate.spark.files.row_filter import RowFilter
from tests.spark.corpus.answers import CORPUS

ROW_GROUP = 3


def the_filter(text: str, **values: Any) -> RowFilter:
    return RowFilter(text, parse_condition(text).bound(values))


def judged(folder: Path, by: RowFilter) -> list[tuple[bool, list[Any]]]:
    """Of each split below the folder: whether it may match, and the rows that do."""
    enumeration = FileEnumeration(str(folder))
    found = []
    for split in enumeration.discover():
        layout = enumeration.layout_of(split)
        rows = [
            row
            for read in SplitReader(layout).read(split)
            for row in by.matching(read.batch).to_pylist()
        ]
        found.append((by.may_match(split, layout, FileAccess()), rows))
    return found


def write(path: Path, **columns: Any) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table(columns), path, row_group_size=ROW_GROUP)


def test_a_file_whose_smallest_and_largest_values_exclude_the_condition_is_pruned(
    tmp_path: Path,
) -> None:
    for number in range(3):
        write(tmp_path / f"{number}.parquet", id=[10 * number, 10 * number + 5])
    [first, second, third] = judged(tmp_path, the_filter("id > :least AND id <= 20", least=11))
    assert (first, second, third) == ((False, []), (True, [{"id": 15}]), (True, [{"id": 20}]))


def test_a_directory_that_names_a_column_prunes_files_of_every_format(tmp_path: Path) -> None:
    for region, day in (("north", "2026-11-01"), ("south", "2026-11-02")):
        write(tmp_path / "p" / f"region={region}" / f"day={day}" / "a.parquet", id=[1, 2])
        text = tmp_path / "c" / f"region={region}" / f"day={day}" / "a.csv"
        text.parent.mkdir(parents=True)
        text.write_text("id\n1\n2\n")
    by = the_filter("region IN :regions AND day > '2026-10-31' AND id = 2", regions=["south"])
    south = {"id": 2, "region": "south", "day": datetime.date(2026, 11, 2)}
    for folder in ("p", "c"):
        assert judged(tmp_path / folder, by) == [(False, []), (True, [south])]


def test_a_file_that_was_written_again_since_it_was_found_is_not_pruned(tmp_path: Path) -> None:
    write(tmp_path / "a.parquet", id=[1, 2])
    enumeration = FileEnumeration(str(tmp_path))
    [split] = enumeration.discover()
    by, layout = the_filter("id > 100"), enumeration.layout_of(split)
    assert not by.may_match(split, layout, FileAccess())
    write(tmp_path / "a.parquet", id=[3, 4, 5])
    assert by.may_match(split, layout, FileAccess())
    (tmp_path / "a.parquet").write_bytes(b"no Parquet")
    assert by.may_match(split, layout, FileAccess())


def test_a_file_with_an_encrypted_column_is_left_to_the_task_that_reads_it() -> None:
    name = "public/parquet-testing/encrypt_columns_plaintext_footer.parquet"
    enumeration = FileEnumeration(CORPUS / name)
    (split,) = enumeration.discover()
    layout = enumeration.layout_of(split)
    assert the_filter("double_field > 1e300").may_match(split, layout, FileAccess())
    assert the_filter("boolean_field = TRUE").may_match(split, layout, FileAccess())


def test_a_column_that_a_file_has_in_another_type_or_not_at_all_prunes_nothing(
    tmp_path: Path,
) -> None:
    write(tmp_path / "a.parquet", id=pa.array([1, 2], pa.int64()), name=["x", "y"])
    enumeration = FileEnumeration(str(tmp_path))
    [wide] = enumeration.discover()
    layout, by = enumeration.layout_of(wide), the_filter("id > 100 AND name = 'z'")
    assert not by.may_match(wide, layout, FileAccess())
    write(tmp_path / "narrow" / "b.parquet", id=pa.array([1, 2], pa.int32()))
    [narrow] = FileEnumeration(str(tmp_path / "narrow")).discover()
    assert by.may_match(narrow, layout, FileAccess())


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("amount = 1", "there is no column 'amount' among id, name"),
        ("id = 'one'", "column 'id' is BIGINT, and cannot be compared with 'one'"),
        ("name > 1", "column 'name' is STRING, and cannot be compared with 1"),
        ("id = TRUE", "column 'id' is BIGINT, and cannot be compared with True"),
        ("name IN ('x', 2)", "column 'name' is STRING, and cannot be compared with 2"),
        ("day > 'soon'", "there is no column 'day' among id, name"),
    ],
)
def test_a_comparison_that_the_columns_do_not_allow_is_refused(
    tmp_path: Path, text: str, told: str
) -> None:
    write(tmp_path / "a.parquet", id=[1], name=["x"])
    with pytest.raises(ConditionWrong, match=told):
        judged(tmp_path, the_filter(text))


NUMBERS = st.one_of(
    st.none(), st.integers(-3, 3), st.floats(-3, 3, width=32), st.just(math.nan), st.just(-0.0)
)
TEXTS = st.one_of(st.none(), st.text("ab\xe9\U0001f600", max_size=3))
ROWS = st.lists(st.tuples(NUMBERS, st.none() | st.integers(-3, 3), TEXTS), min_size=1, max_size=9)
OPERATORS = st.sampled_from(["=", "<", "<=", ">", ">="])


@given(ROWS, OPERATORS, NUMBERS, OPERATORS, st.none() | st.integers(-4, 4), TEXTS)
def test_no_row_that_matches_is_in_a_file_that_is_pruned(
    rows: list[tuple[Any, Any, Any]], one: str, real: Any, other: str, whole: Any, text: Any
) -> None:
    columns = list(zip(*rows, strict=True))
    types = (pa.float64(), pa.int64(), pa.string())
    with tempfile.TemporaryDirectory() as folder:
        made = {
            name: pa.array([None if v is None else v for v in values], kind)
            for name, values, kind in zip("rwt", columns, types, strict=True)
        }
        write(Path(folder) / "a.parquet", **made)
        condition = f"r {one} :real AND w {other} :whole AND t IN :texts"
        texts = None if text is None else [text, "a"]
        by = the_filter(condition, real=real, whole=whole, texts=texts)
        [(may_match, matching)] = judged(Path(folder), by)
    assert may_match or not matching
