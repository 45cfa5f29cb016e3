"""Loads of `make bench-ingest-peers` are started, killed and counted, by a loader of the test's
own, and tables are made of figures that are known.
"""

from __future__ import annotations

import random
import sys
from pathlib import Path

import duckdb
import pytest

from epochgate.benchmarks import page
from epochgate.benchmarks.peers import measuring, tables
from epochgate.benchmarks.peers.__main__ import PAGE, main
from epochgate.benchmarks.peers.loaders import LOADERS, OURS, Loader, Start
from epochgate.benchmarks.peers.measuring import Effort, LoaderFailed, Samples, Taken
from epochgate.benchmarks.peers.places import Found, Place, Source

deltalake = pytest.importorskip("deltalake", reason="the extra `delta` is not installed")
ROOT = Path(__file__).parents[2]
PROGRAM = """
import sys, time
import pyarrow.parquet as pq
from deltalake import write_deltalake
folder, table, marks, pause_s = sys.argv[1:]
from pathlib import Path
for path in sorted(Path(folder).glob("*.parquet")):
    mark = Path(marks, path.name)
    if not mark.exists():
        write_deltalake(table, pq.read_table(path), mode="append")
        time.sleep(float(pause_s))
        mark.touch()
"""
"""A loader that appends to a table and then marks the file, so that a kill between doubles it."""


def loader(pause_s: float) -> Loader:
    def start(source: Source, place: Place) -> Start:
        words = [str(source.folder), str(place.delta), str(place.state), str(pause_s)]
        return Start([sys.executable, "-c", PROGRAM, *words])

    return Loader("a loader", "delta", "parquet", "", start)


@pytest.fixture
def source(tmp_path: Path) -> Source:
    return Source(tmp_path / "in", "parquet", 3, 5).write()


def test_a_load_is_counted_and_rows_that_a_kill_has_doubled_are_seen(
    tmp_path: Path, source: Source, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = Place(tmp_path / "place")
    assert place.found() == Found(0, 0)
    assert measuring.timed(loader(0), source, place).seconds > 0
    assert place.found() == Found(15, 15)
    monkeypatch.setattr(measuring, "KILLS_PER_LOAD", 1)
    slow = loader(60)
    monkeypatch.setattr(measuring, "load", lambda one, *given: once(loader(0), *given))
    child_waits(monkeypatch, place)
    outcome = measuring.killed(slow, source, place, (0.0, 0.0), random.Random(1))
    assert (outcome.loads, outcome.kills, outcome.lost, outcome.doubled) == (1, 1, 0, 5)


def child_waits(monkeypatch: pytest.MonkeyPatch, place: Place) -> None:
    """Let the moment of a kill be that in which the first file is in the table, and not marked."""
    wait = measuring.Child.wait

    def until_appended(self: measuring.Child, timeout_s: float = 60.0) -> int | None:
        if timeout_s == 0.0:
            while place.found().rows < 5:
                assert wait(self, 0.05) is None
            return None
        return wait(self, timeout_s)

    monkeypatch.setattr(measuring.Child, "wait", until_appended)


def once(one: Loader, source: Source, place: Place) -> Taken:
    child = measuring.Child(one.start(source, place))
    assert child.wait(60.0) == 0
    child.close()
    return Taken(1.0, 1.0)


def test_a_loader_that_loses_rows_or_ends_with_an_error_has_failed(
    tmp_path: Path, source: Source
) -> None:
    def fails(source: Source, place: Place) -> Start:
        return Start([sys.executable, "-c", "raise SystemExit('no good')"])

    one = Loader("broken", "delta", "parquet", "", fails)
    with pytest.raises(LoaderFailed, match="exit code 1\nno good"):
        measuring.timed(one, source, Place(tmp_path / "place"))
    one = Loader("idle", "delta", "parquet", "", lambda *_: Start([sys.executable, "-c", ""]))
    with pytest.raises(LoaderFailed, match="0 rows with 0 numbers of 15"):
        measuring.timed(one, source, Place(tmp_path / "place"))


def test_files_have_the_same_rows_whatever_their_kind(tmp_path: Path, source: Source) -> None:
    other = Source(tmp_path / "csv", "csv", 3, 5).write()
    of_csv = duckdb.execute(f"from read_csv('{other.folder}/*') order by id").fetchall()
    of_parquet = duckdb.execute(f"from read_parquet('{source.folder}/*') order by id").fetchall()
    assert of_csv == of_parquet
    assert len({path.stat().st_mtime for path in source.folder.iterdir()}) == 3


def results() -> tables.Results:
    """Ours takes 10 s of which 4 to start, the others 40 s of which 10; one has failed."""
    found: tables.Results = {}
    for one in LOADERS:
        seconds, idle_s = (10.0, 4.0) if one.name == OURS else (40.0, 10.0)
        found[one] = Samples([Taken(seconds, 2 * seconds)], [Taken(idle_s, idle_s)])
        found[one].killed.loads = 1
    failed = next(one for one in LOADERS if one.name == "open-auto-loader")
    found[failed] = Samples(failure="exit code 1\n...\nSomeError: no | good\n")
    return found


def test_ours_is_compared_with_each_of_the_same_kind() -> None:
    effort = Effort(files=2, rows_per_file=500)
    rows = {row[0]: row[1:] for row in tables.speed(results(), effort).rows}
    assert rows["epochgate, Parquet into Delta"][:2] == ("100 (100 to 100)", "4.00")
    assert rows["dlt (append), Parquet into Delta"][3:] == ("4.00", "5.00", "4.00")
    assert rows["open-auto-loader, Parquet into Delta"][-1] == "SomeError: no / good"
    torn = {row[0]: row[1:] for row in tables.kills(results(), effort).rows}
    assert torn["epochgate, CSV into PostgreSQL"] == ("1", "0", "0", "0", "0")
    assert torn["open-auto-loader, Parquet into Delta"][-1] == "SomeError: no / good"


def test_the_page_has_a_place_for_the_figures() -> None:
    text = (ROOT / PAGE).read_text(encoding="utf-8")
    sections = {name: f"<!-- bench:{name} -->\n{name} here" for name in tables.QUESTIONS}
    assert "kills here" in page.with_sections(text, sections, tables.QUESTIONS)


def test_a_missing_environment_is_told(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("epochgate.benchmarks.peers.installation.VENV", tmp_path)
    assert main([]) == 2
    assert "make bench-ingest-peers" in capsys.readouterr().err
