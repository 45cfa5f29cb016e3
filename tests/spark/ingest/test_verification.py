"""The verifier finds what is lost, doubled or foreign, and reads both sides alike."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

from epochgate.chaos.flights import ROWS, read_flights, write_months
from epochgate.chaos.verification import Verdict, verify_csv

TEXT = """\
x,name,when,share
1,NA,2013-01-01T10:00:00Z,NA
2,,2013-01-01T11:00:00Z,0.5
2,,2013-01-01T11:00:00Z,0.5
"""


@pytest.fixture
def source(tmp_path: Path) -> Path:
    (tmp_path / "in.csv").write_text(TEXT)
    return tmp_path / "in.csv"


def write(tmp_path: Path, table: pa.Table) -> Path:
    (tmp_path / "out").mkdir()
    pq.write_table(table, tmp_path / "out" / "part.parquet")
    return tmp_path / "out"


def test_equal_rows_are_equal_whatever_stands_for_a_missing_value(
    tmp_path: Path, source: Path
) -> None:
    target = write(tmp_path, pyarrow.csv.read_csv(source))
    verdict = verify_csv(source, target)
    assert verdict == Verdict(expected=3, found=3, lost=0, duplicated=0, foreign=0)
    assert str(verdict) == "exactly once: 3 of 3 rows, 0 lost, 0 duplicated"


def test_rows_that_are_lost_doubled_or_foreign_are_counted(tmp_path: Path, source: Path) -> None:
    table = pyarrow.csv.read_csv(source)
    other = table.slice(0, 1).set_column(0, "x", pa.array([7]))
    target = write(tmp_path, pa.concat_tables([table.slice(1), table.slice(1, 1), other]))
    verdict = verify_csv(source, target)
    assert verdict == Verdict(expected=3, found=4, lost=1, duplicated=1, foreign=1)
    assert not verdict.is_exact()
    assert str(verdict) == "not exactly once: 2 of 3 rows, 1 lost, 1 duplicated, 1 foreign"


def test_a_target_without_files_has_lost_everything(tmp_path: Path, source: Path) -> None:
    verdict = verify_csv(source, tmp_path / "nothing")
    assert verdict == Verdict(expected=3, found=0, lost=3, duplicated=0, foreign=0)


def test_the_data_set_is_laid_out_by_month_and_complete(tmp_path: Path) -> None:
    files = write_months(tmp_path)
    assert [file.name for file in files] == [f"flights-2013-{m:02}.csv" for m in range(1, 13)]
    texts = [file.read_text().splitlines() for file in files]
    assert sum(len(lines) - 1 for lines in texts) == ROWS
    header, *rows = read_flights().splitlines()
    assert all(lines[0] == header for lines in texts)
    assert sorted(row for lines in texts for row in lines[1:]) == sorted(rows)
