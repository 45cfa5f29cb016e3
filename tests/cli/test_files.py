"""`epochgate files` lists the files that an ingestion has found."""

from __future__ import annotations

import json
from pathlib import Path

import duckdb
import pytest

from epochgate.cli import main
from epochgate.commands import files
from epochgate.spark.ingest.found_files import STATES
from tests.spark.ingest.simulated import SimulatedIngest, options_for, write_source


@pytest.fixture
def target(tmp_path: Path) -> str:
    write_source(tmp_path, files=2)
    (tmp_path / "in" / "bad.csv").write_text("x,name\none,a\n")
    simulated = SimulatedIngest(
        options_for(tmp_path, on_bad_file="skip", schema="x BIGINT, name STRING")
    )
    simulated.run()
    assert simulated.leave().state == "finished"
    return str(tmp_path / "out")


def listed(capsys: pytest.CaptureFixture[str], *arguments: str) -> list[str]:
    assert main(["files", *arguments, "--json"]) == 0
    return [Path(json.loads(line)["path"]).name for line in capsys.readouterr().out.splitlines()]


def test_each_file_has_a_line(target: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["files", target]) == 0
    head, *lines, _, last = capsys.readouterr().out.splitlines()
    assert head.split() == ["state", "rows", "rejected", "checkpoint", "when", "path"]
    assert [line.split()[0] for line in lines] == ["committed", "committed", "left-out"]
    assert "'one' is no" in lines[2]
    assert last == "3 files: 2 committed, 1 left-out; 20 rows"


def test_files_are_chosen_by_state_name_and_time(
    target: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert listed(capsys, target, "--state", "left-out") == ["bad.csv"]
    assert listed(capsys, target, "--name", "0000*.csv") == ["000000.csv", "000010.csv"]
    assert listed(capsys, target, "--name", "*/in/bad.csv") == ["bad.csv"]
    assert listed(capsys, target, "--since", "2999-01-01") == []
    assert len(listed(capsys, target, "--since", "1970-01-01")) == 3
    assert main(["files", target, "--since", "yesterday"]) == 2
    assert "2026-11-29T12:30:00+01:00" in capsys.readouterr().err


def test_another_engine_reads_the_table(
    target: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "files.parquet"
    assert main(["files", target, "--parquet", str(path)]) == 0
    query = f"select state, sum(rows)::bigint, max(checkpoint_id) > 0 from '{path}' group by state"
    found = sorted(duckdb.execute(query).fetchall())
    assert found == [("committed", 20, True), ("left-out", 0, True)]
    columns = duckdb.execute(f"select committed_at, modified from '{path}'").description or []
    assert {str(column[1]) for column in columns} == {"TIMESTAMP WITH TIME ZONE"}
    assert main(["files", target, "--parquet", str(tmp_path / "no" / "f.parquet")]) == 2
    assert "cannot write" in capsys.readouterr().err


def test_a_place_without_an_ingestion_is_misuse(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["files", str(tmp_path)]) == 2
    assert str(tmp_path) in capsys.readouterr().err


def test_the_help_names_all_states() -> None:
    assert files.STATES == STATES
