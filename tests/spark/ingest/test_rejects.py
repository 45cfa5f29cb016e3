"""Rows that do not fit are kept exactly once, whatever crashes, and files left out are listed."""

from __future__ import annotations

import json
import random
from functools import partial
from pathlib import Path
from typing import Any, get_args

import duckdb
import pytest

from epochgate.runtime.testing.faulty_filesystem import Fault
from epochgate.spark.files import SkippedFile
from epochgate.spark.ingest.bad_files import BadFilesList
from epochgate.spark.ingest.plan import TargetInSource, plan_ingest
from epochgate.spark.parquet_sink import TargetNotEmpty
from tests.spark.ingest.simulated import SimulatedIngest, options_for, random_kills, visible
from tests.spark.ingest.test_simulated import When

Rejected = list[tuple[str, int, str]]
SCHEMA = "x BIGINT NOT NULL, name STRING"


def write_spoiled(tmp_path: Path, files: int = 3, rows: int = 10) -> tuple[list[int], Rejected]:
    """Files of which each third row is bad: the good numbers, and the bad lines with their text."""
    folder = tmp_path / "in"
    folder.mkdir(exist_ok=True)
    good: list[int] = []
    bad: Rejected = []
    for file in range(files):
        lines = ["x,name"]
        for number in range(file * rows, (file + 1) * rows):
            if number % 3 == 1:
                bad.append((f"{file}.csv", len(lines) + 1, f"bad {number},text"))
                lines.append(f"bad {number},text")
            else:
                good.append(number)
                lines.append(f"{number},text {number}")
        (folder / f"{file}.csv").write_text("\n".join(lines))
    return good, bad


def rejected_in(tmp_path: Path) -> Rejected:
    """Return what DuckDB finds in the table of rejected rows."""
    found = duckdb.execute(
        "select file, line, raw, column_name, reason from read_parquet(?) order by file, line",
        [f"{tmp_path}/out.rejected/**/*.parquet"],
    ).fetchall()
    assert all(column == "x" and "is no BIGINT" in reason for *_, column, reason in found)
    return [(Path(file).name, line, raw) for file, line, raw, *_ in found]


def rejecting(tmp_path: Path, **changes: Any) -> Any:
    return options_for(tmp_path, on_bad_row="reject", schema=SCHEMA, **changes)


def test_bad_rows_are_kept_beside_the_target_and_counted(tmp_path: Path) -> None:
    good, bad = write_spoiled(tmp_path)
    simulated = SimulatedIngest(rejecting(tmp_path))
    simulated.run()
    result = simulated.leave()
    assert visible(tmp_path / "out") == good
    assert rejected_in(tmp_path) == bad
    assert (result.rows_committed, result.rows_rejected) == (len(good), len(bad))
    assert result.is_success()
    assert not result.is_complete()
    assert simulated.plan.job_committer.metrics() == {
        "rows_committed": len(good),
        "files_committed": result.files_committed,
        "rows_visible": len(good),
        "rows_rejected": len(bad),
    }
    assert result.to_json()["rows_rejected"] == len(bad)

    again = SimulatedIngest(rejecting(tmp_path))
    again.run()
    result = again.leave()
    assert (result.rows_rejected, result.is_complete()) == (0, True)
    assert rejected_in(tmp_path) == bad


@pytest.mark.parametrize("commit_in", ["driver", "tasks"])
@pytest.mark.parametrize("seed", range(5))
def test_bad_rows_are_kept_once_although_processes_die_and_drivers_crash(
    tmp_path: Path, seed: int, commit_in: str
) -> None:
    good, bad = write_spoiled(tmp_path, files=4)
    chance = random.Random(seed)
    whens: tuple[When, ...] = get_args(When)
    faults = [Fault(chance.randrange(90), when=chance.choice(whens)) for _ in range(6)]
    simulated = SimulatedIngest(rejecting(tmp_path, commit_in=commit_in), faults)
    simulated.run(random_kills(simulated, seed, share=0.03))
    result = simulated.leave()
    assert result.state == "finished", result.reason
    assert simulated.starts > 1
    assert visible(tmp_path / "out") == good
    assert rejected_in(tmp_path) == bad


@pytest.mark.kills
@pytest.mark.parametrize("when", get_args(When))
def test_bad_rows_are_kept_once_wherever_the_driver_crashes(tmp_path: Path, when: When) -> None:
    whole = tmp_path / "whole"
    whole.mkdir()
    write_spoiled(whole, files=2, rows=4)
    undisturbed = SimulatedIngest(rejecting(whole))
    undisturbed.run()
    undisturbed.leave()
    operations = undisturbed.files.operations
    for at in range(0, len(operations), 3):
        place = tmp_path / f"at-{at}"
        place.mkdir()
        good, bad = write_spoiled(place, files=2, rows=4)
        simulated = SimulatedIngest(rejecting(place), [Fault(at, when=when)])
        simulated.run()
        result = simulated.leave()
        assert result.state == "finished", (operations[at], result.reason)
        assert visible(place / "out") == good, operations[at]
        assert rejected_in(place) == bad, operations[at]


def test_a_job_that_failed_at_a_bad_row_goes_on_and_keeps_it(tmp_path: Path) -> None:
    good, bad = write_spoiled(tmp_path, files=2)
    strict = SimulatedIngest(options_for(tmp_path, schema=SCHEMA, parallelism=1))
    strict.run()
    result = strict.leave()
    assert result.state == "failed"
    assert "line 3, column 'x': 'bad 1' is no BIGINT" in str(result.reason)
    assert "--on-bad-row reject" in str(result.reason)
    later = SimulatedIngest(rejecting(tmp_path, parallelism=1))
    later.run()
    assert later.leave().state == "finished"
    assert visible(tmp_path / "out") == good
    assert rejected_in(tmp_path) == bad


def test_rejected_rows_are_committed_by_a_start_that_rejects_none(tmp_path: Path) -> None:
    good, bad = write_spoiled(tmp_path)
    first = SimulatedIngest(rejecting(tmp_path))
    table = first.plan.rejects
    assert table is not None
    first.run(until=lambda: table.rows_committed > 0)
    first.files.crash()
    for path in (tmp_path / "in").iterdir():
        path.rename(tmp_path / "in" / f".{path.name}")
    committed = len(rejected_in(tmp_path))
    (tmp_path / "in" / "9.csv").write_text("x,name\n99,fine\n")
    strict = SimulatedIngest(options_for(tmp_path, schema=SCHEMA, on_bad_file="skip"))
    strict.run()
    assert strict.leave().state == "finished"
    found = rejected_in(tmp_path)
    assert len(found) >= committed
    assert len(set(found)) == len(found) <= len(bad)
    assert set(found) <= set(bad)
    assert set(visible(tmp_path / "out")) <= {*good, 99}


def test_a_table_that_was_removed_is_begun_again(tmp_path: Path) -> None:
    write_spoiled(tmp_path, files=1)
    first = SimulatedIngest(rejecting(tmp_path))
    first.run()
    first.leave()
    (tmp_path / "out.rejected").rename(tmp_path / "done")
    (tmp_path / "in" / "new.csv").write_text("x,name\nbad 100,text\n")
    again = SimulatedIngest(rejecting(tmp_path))
    again.run()
    assert again.leave().rows_rejected == 1
    assert rejected_in(tmp_path) == [("new.csv", 2, "bad 100,text")]


def test_without_rejecting_there_is_no_table_and_none_is_claimed(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.csv").write_text("x\n1\n")
    (tmp_path / "out.rejected").mkdir()
    (tmp_path / "out.rejected" / "mine.txt").write_text("not yours")
    simulated = SimulatedIngest(options_for(tmp_path))
    simulated.run()
    assert simulated.leave().is_complete()
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        ".out.epochgate",
        "in",
        "out",
        "out.rejected",
    ]
    with pytest.raises(TargetNotEmpty, match=r"out\.rejected"):
        plan_ingest(options_for(tmp_path, on_bad_row="reject"))
    plan = plan_ingest(options_for(tmp_path))
    plan.release()


def test_a_table_in_the_source_is_refused(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.csv").write_text("x\n1\n")
    pattern = str(tmp_path / "*.rejected" / "**")
    with pytest.raises(TargetInSource, match=r"out\.rejected"):
        plan_ingest(options_for(tmp_path, source=pattern, on_bad_row="reject"))


def is_listed(tmp_path: Path, name: str) -> bool:
    path = tmp_path / "out.bad-files.jsonl"
    return path.exists() and any(one["path"].endswith(name) for one in listed(tmp_path))


def listed(tmp_path: Path) -> list[dict[str, str]]:
    text = (tmp_path / "out.bad-files.jsonl").read_text()
    return [json.loads(line) for line in text.splitlines()]


def test_files_that_are_left_out_are_listed_for_a_script(tmp_path: Path) -> None:
    write_spoiled(tmp_path, files=1)
    (tmp_path / "in" / "broken.csv").write_text("x,x\n1,2\n")
    options = options_for(tmp_path, schema=SCHEMA, on_bad_file="skip")
    simulated = SimulatedIngest(options)
    simulated.run()
    result = simulated.leave()
    assert [one["path"] for one in listed(tmp_path)] == [one.path for one in result.skipped]
    assert len(result.newly_skipped) == len(result.skipped) >= 2
    broken = next(one for one in listed(tmp_path) if one["path"].endswith("broken.csv"))
    assert "distinct column names" in broken["reason"]
    assert not result.is_complete()

    again = SimulatedIngest(options)
    again.run()
    second = again.leave()
    assert second.skipped == result.skipped
    assert second.newly_skipped == []
    assert second.is_complete()


def test_the_list_grows_while_a_job_follows_its_source(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    options = options_for(tmp_path, follow=True, on_bad_file="skip", settle_s=0, schema=SCHEMA)
    simulated = SimulatedIngest(options)
    for name in ("a", "b"):
        (tmp_path / "in" / f"{name}.csv").write_text("x,x\n1,2\n")
        simulated.run(until=partial(is_listed, tmp_path, f"{name}.csv"))
    assert [Path(one["path"]).name for one in listed(tmp_path)] == ["a.csv", "b.csv"]
    simulated.master.stop()
    simulated.run()
    assert len(simulated.leave().newly_skipped) == 2


def test_a_list_is_replaced_as_a_whole_and_not_made_without_a_file(tmp_path: Path) -> None:
    path = tmp_path / "list.jsonl"
    one = BadFilesList(str(path))
    one.write([])
    assert not path.exists()
    one.write([SkippedFile("/in/ä.csv", "/in/ä.csv#bytes=0-9", "line 3", "why")])
    assert json.loads(path.read_text()) == {
        "path": "/in/ä.csv",
        "split": "/in/ä.csv#bytes=0-9",
        "position": "line 3",
        "reason": "why",
    }
    one.write([])
    assert path.read_text() == ""
