"""`epochgate backlog` shows what an ingestion has found and not committed."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from epochgate.cli import main
from epochgate.commands.backlog import told
from epochgate.spark.ingest.backlog import Backlog, backlog_at
from epochgate.spark.ingest.found_files import files_at
from tests.spark.ingest.simulated import SimulatedIngest, options_for, write_source

FILES = 6
ROWS = 10


def test_a_job_that_is_cut_short_has_what_it_has_not_committed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_source(tmp_path, files=FILES, rows=ROWS)
    last = tmp_path / "in" / f"{(FILES - 1) * ROWS:06}.csv"
    os.utime(last, (1_000, 1_000))
    simulated = SimulatedIngest(options_for(tmp_path))
    simulated.run(until=lambda: simulated.plan.committer.rows_committed >= 2 * ROWS)
    target = str(tmp_path / "out")
    now = simulated.clock.now_s()
    backlog = backlog_at(target, now=now)
    states = [one.state for one in files_at(target)]
    assert backlog.files_waiting == states.count("waiting") > 0
    assert backlog.files_reading == states.count("reading")
    assert (backlog.oldest_path, backlog.oldest_s) == (str(last), max(0.0, now - 1_000))
    sizes = sum(path.stat().st_size for path in (tmp_path / "in").iterdir())
    assert 0 < backlog.bytes_left < sizes
    assert backlog.rows is not None
    left = FILES * ROWS - simulated.plan.committer.rows_committed
    assert left - 2 * ROWS <= backlog.rows <= left + 2 * ROWS
    assert backlog.bytes_per_s is not None
    assert backlog.seconds_left == pytest.approx(backlog.bytes_left / backlog.bytes_per_s)

    simulated.run()
    assert simulated.leave().state == "finished"
    capsys.readouterr()
    assert main(["backlog", target, "--json"]) == 0
    done = json.loads(capsys.readouterr().out)
    assert [done[name] for name in ("files_waiting", "files_reading", "bytes_left", "rows")] == [
        0
    ] * 4
    assert (done["oldest_path"], done["oldest_s"], done["seconds_left"]) == (None, None, 0.0)


def test_the_text_says_what_is_not_known() -> None:
    known = Backlog(
        "orders", "running", 7, 2.0, 3, 1, 5_000_000, 12_345, "/in/a.csv", 3600.0, 1e6, 5.0
    )
    assert list(told(known)) == [
        "orders: running; as of checkpoint 7, 2.0 s ago",
        "files      3 waiting, 1 being read",
        "bytes      5.0 MB",
        "rows       some 12,345",
        "oldest     modified 1 h 0 min ago: /in/a.csv",
        "rate       1.0 MB a second",
        "time left  5.0 s",
    ]
    unknown = Backlog("orders", "finished", 7, 2.0, 1, 0, 10, None, "/in/a.csv", 1.0, None, None)
    assert [line.split("  ")[-1].strip() for line in told(unknown)][3::2] == [
        "not known",
        "not known",
    ]


def test_a_place_without_an_ingestion_is_misuse(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["backlog", str(tmp_path)]) == 2
    assert str(tmp_path) in capsys.readouterr().err
