"""XML documents and workbooks are ingested like other files: each row once, whatever crashes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import duckdb
import pytest

from epochgate.cli import main
from epochgate.spark.ingest import plan
from epochgate.spark.ingest.options import IngestOptions
from epochgate.spark.ingest.plan import TargetInSource, require_stores
from tests.spark.files.workbook import cell, sheet, write_workbook
from tests.spark.ingest.simulated import SimulatedIngest, options_for, random_kills

FILES, ROWS = 3, 12
Row = tuple[Any, ...]


def write_xml(path: Path, numbers: range) -> None:
    body = "\n".join(
        f'<item id="{n}"><name>{"é" * (n % 3)}</name><n>{"x" if n % 5 == 2 else n * 2}</n></item>'
        for n in numbers
    )
    path.with_suffix(".xml").write_text(f"<all>{body}</all>")


def write_sheet(path: Path, numbers: range) -> None:
    rows = {1: [cell("A1", "_id", "str"), cell("B1", "name", "str"), cell("C1", "n", "str")]}
    for place, n in enumerate(numbers, 2):
        bad = cell(f"C{place}", "#N/A", "e")
        rows[place] = [
            cell(f"A{place}", f"{n}.0"),
            cell(f"B{place}", "é" * (n % 3), "str"),
            bad if n % 5 == 2 else cell(f"C{place}", str(n * 2)),
        ]
    write_workbook(path.with_suffix(".xlsx"), {"Sheet1": sheet(rows)})


def taken(target: Path) -> list[Row]:
    """Return the rows of the target, by DuckDB."""
    named = "_id, name, n, split_part(file_name, '.', 1)::bigint, file_row"
    asked = f"select {named} from read_parquet(?) order by 1"
    return duckdb.execute(asked, [f"{target}/**/*.parquet"]).fetchall()


@pytest.mark.parametrize("write", [write_xml, write_sheet])
@pytest.mark.parametrize("seed", range(3))
def test_each_row_once_with_its_place(tmp_path: Path, write: Any, seed: int) -> None:
    (tmp_path / "in").mkdir()
    expected, bad = [], []
    for file in range(FILES):
        numbers = range(file * ROWS, (file + 1) * ROWS)
        write(tmp_path / "in" / str(file), numbers)
        for place, n in enumerate(numbers, 1):
            if n % 5 == 2:
                bad.append((file, place))
            else:
                expected.append((n, "é" * (n % 3), n * 2, file, place))
    options = options_for(
        tmp_path,
        on_bad_row="reject",
        row_tag="item",
        schema_hints="n BIGINT",
        add_columns=("file.name", "file.row"),
    )
    simulated = SimulatedIngest(options)
    simulated.run(random_kills(simulated, seed, share=0.03))
    result = simulated.leave()
    assert taken(tmp_path / "out") == expected
    assert result.rows_rejected == len(bad)
    reasons = duckdb.execute(
        "select distinct reason from read_parquet(?)", [f"{tmp_path}/out.rejected/**/*.parquet"]
    ).fetchall()
    told = "the cell is the error #N/A" if write is write_sheet else '"x" is no BIGINT'
    assert reasons == [(told,)]


def test_what_cannot_be_meant_is_refused_before_a_store_is_asked(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(plan, "require_reachable", lambda url: pytest.fail(f"{url} was asked"))
    with pytest.raises(TargetInSource):
        require_stores(IngestOptions("s3://bucket/in", "s3://bucket/in/out"))


def test_a_refusal_is_told_to_programs_as_well(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["ingest", str(tmp_path / "in"), str(tmp_path / "out"), "--json"]) == 2
    shown = capsys.readouterr()
    assert '"state": "refused", "reason": "' in shown.out
    assert f"{tmp_path}/in" in shown.err
