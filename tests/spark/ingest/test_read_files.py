"""Each file is recorded with the first complete checkpoint that holds all of it, whatever fails."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from epochgate.runtime.testing.faulty_filesystem import Fault
from epochgate.spark.files import SkippedFile
from epochgate.spark.files.split import FileSplit
from epochgate.spark.files.taken import EndedSplit
from epochgate.spark.ingest.file_source import FileReader
from epochgate.spark.ingest.found_files import files_at
from tests.spark.ingest.simulated import (
    SimulatedIngest,
    options_for,
    random_kills,
    visible,
    write_source,
)


def test_a_reader_tells_of_an_end_until_a_checkpoint_has_it() -> None:
    told: list[list[Any]] = []
    reader = FileReader(
        lambda _: pytest.fail("nothing is read"), lambda: 1, told.append, None, lambda: 4
    )
    ended = EndedSplit(FileSplit("/a", "csv", "none", 1, 1, 0, 1), 5, 0, False).to_list()
    bad = SkippedFile("/a", "/a#0", "row 1", "bad").to_list()
    reader.restore_state([bad, ended])
    assert told == [bad, [*ended, 0]], "the next checkpoint of the attempt is the first"
    assert reader.snapshot_state() == [bad, ended]
    reader.notify_checkpoint_complete(5)
    assert reader.snapshot_state() is None


@pytest.mark.parametrize("seed", range(6))
def test_every_file_is_recorded_once_whatever_dies(tmp_path: Path, seed: int) -> None:
    rows = write_source(tmp_path, files=4)
    (tmp_path / "in" / "none.csv").write_text("x,name\n")
    simulated = SimulatedIngest(options_for(tmp_path))
    kill = random_kills(simulated, seed, share=0.05)
    crashes = [40 * (seed + 1)]

    def disturb() -> None:
        kill()
        crashes[0] -= 1
        if crashes[0] == 0:
            simulated.crash_driver()

    simulated.run(disturb)
    assert simulated.leave().state == "finished"
    assert visible(tmp_path / "out") == rows
    found = files_at(str(tmp_path / "out"))
    assert [(Path(one.path).name, one.state, one.rows) for one in found] == [
        *((f"{first:06}.csv", "committed", 10) for first in range(0, 40, 10)),
        ("none.csv", "committed", 0),
    ]
    assert all(one.checkpoint_id for one in found[:4])


def test_what_the_states_of_readers_have_is_recorded_by_the_next_start(tmp_path: Path) -> None:
    write_source(tmp_path, files=2)
    first = SimulatedIngest(options_for(tmp_path))
    first.run()
    assert first.leave().state == "finished"
    before = files_at(str(tmp_path / "out"))
    assert {one.state for one in before} == {"committed"}
    write_source(tmp_path, files=1, first=100)
    second = SimulatedIngest(options_for(tmp_path), name="again")
    second.run()
    assert second.leave().state == "finished"
    after = files_at(str(tmp_path / "out"))
    told = [(one.path, one.state, one.rows, one.checkpoint_id) for one in after]
    assert told[:2] == [(one.path, one.state, one.rows, one.checkpoint_id) for one in before]
    assert [one.state for one in after] == ["committed"] * 3


def test_files_wait_and_are_read_while_the_job_runs(tmp_path: Path) -> None:
    write_source(tmp_path, files=6, rows=30)
    simulated = SimulatedIngest(options_for(tmp_path))
    seen: set[str] = set()

    def look() -> None:
        if simulated.plan.store.ids():
            seen.update(one.state for one in files_at(str(tmp_path / "out")))

    simulated.run(look)
    assert simulated.leave().state == "finished"
    assert seen == {"waiting", "reading", "committed"}


def test_what_is_left_out_has_its_reason(tmp_path: Path) -> None:
    write_source(tmp_path, files=1)
    (tmp_path / "in" / "bad.csv").write_text("x,name\n1,a\n2,b\nthree,c\n4,d\n")
    (tmp_path / "in" / "worse.csv").write_bytes(b"PK\x03\x04")
    options = options_for(tmp_path, on_bad_file="skip", schema="x BIGINT, name STRING")
    simulated = SimulatedIngest(options)
    simulated.run()
    assert simulated.leave().state == "finished"
    bad = {Path(one.path).name: one for one in files_at(str(tmp_path / "out"))}
    assert bad["000000.csv"].state == "committed"
    assert bad["bad.csv"].state == "left-out"
    assert bad["bad.csv"].rows is not None
    assert "three" in (bad["bad.csv"].reason or "")
    assert (bad["worse.csv"].state, bad["worse.csv"].rows) == ("left-out", None)


def test_rejected_rows_are_counted_for_each_file(tmp_path: Path) -> None:
    write_source(tmp_path, files=1)
    (tmp_path / "in" / "bad.csv").write_text("x,name\n1,a\ntwo,b\nthree,c\n4,d\n")
    options = options_for(tmp_path, on_bad_row="reject", schema="x BIGINT, name STRING")
    simulated = SimulatedIngest(options)
    simulated.run()
    assert simulated.leave().state == "finished"
    found = [(one.rows, one.rows_rejected) for one in files_at(str(tmp_path / "out"))]
    assert found == [(10, 0), (2, 2)]


def test_new_only_passes_over_and_a_second_content_has_a_line_of_its_own(tmp_path: Path) -> None:
    write_source(tmp_path, files=1)
    options = options_for(tmp_path, new_only=True, on_changed_file="new")
    simulated = SimulatedIngest(options)
    simulated.run()
    assert simulated.leave().state == "finished"
    assert [one.state for one in files_at(str(tmp_path / "out"))] == ["passed-over"]
    (tmp_path / "in" / "000000.csv").write_text("x,name\n7,seven\n")
    again = SimulatedIngest(options, name="again")
    again.run()
    assert again.leave().state == "finished"
    found = files_at(str(tmp_path / "out"))
    assert [(one.state, one.delivery, one.rows) for one in found] == [("committed", 2, 1)]


@pytest.mark.parametrize("at", range(0, 120, 7))
def test_every_file_is_recorded_wherever_the_driver_crashes(tmp_path: Path, at: int) -> None:
    rows = write_source(tmp_path, files=2, rows=4)
    simulated = SimulatedIngest(options_for(tmp_path), [Fault(at, when="after")])
    simulated.run()
    assert simulated.leave().state == "finished"
    assert visible(tmp_path / "out") == rows
    found = files_at(str(tmp_path / "out"))
    assert [(one.state, one.rows) for one in found] == [("committed", 4)] * 2
