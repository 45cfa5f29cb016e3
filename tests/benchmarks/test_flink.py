"""That both systems of `make bench-flink` do the whole job, and what is made of their figures."""

from __future__ import annotations

from pathlib import Path

import pytest

from epochgate.benchmarks import page
from epochgate.benchmarks.flink import cluster, tables
from epochgate.benchmarks.flink.__main__ import PAGE, main
from epochgate.benchmarks.flink.contender import HOSTS, CheckpointTime
from epochgate.benchmarks.flink.measuring import (
    EPOCHGATE,
    FLINK,
    NAMES,
    Effort,
    Found,
    Samples,
    measure,
)

ROOT = Path(__file__).parents[2]
TINY = Effort(
    events=400,
    warming_events=400,
    trips=5,
    checkpoints=3,
    checkpoints_of_many=3,
    loaded_checkpoints=2,
    loaded_checkpoints_of_many=2,
    failures=1,
    warming_failures=1,
)


def samples(factor: float) -> Samples:
    """Of a system that takes `factor` ms for everything, and does as many events a second."""
    lists = {name: [factor] for name in vars(Samples())}
    checkpoints = [CheckpointTime(factor, factor / 2)]
    return Samples(**{**lists, "idle": checkpoints, "loaded": checkpoints})  # type: ignore[arg-type]  # by name


def found() -> Found:
    speeds = dict(zip(NAMES, (2.0, 8.0, 16.0), strict=True))
    return {(name, size): samples(speeds[name]) for name in NAMES for size in (4, 100)}


def test_more_events_and_less_time_are_both_better() -> None:
    rows = {row[0]: row for row in tables.events_and_failures(found(), 1, TINY).rows}
    assert rows["events/s, sent in the coordinator's calls"][1:4] == (
        "2.00 (2.00 to 2.00)",
        "8.00 (8.00 to 8.00)",
        "0.250",
    )
    failing = rows["from failing the job to the first events of all 4, ms"]
    assert failing[3:] == ("4.00", "16.0 (16.0 to 16.0)")


def test_what_took_no_measurable_time_has_no_ratio() -> None:
    assert tables.times_better([0.0], [5.0], is_rate=False) == "–"


def test_checkpoints_are_shown_for_every_parallelism_by_the_clock_and_as_reported() -> None:
    table = tables.checkpoints(found(), TINY)
    assert [row[0] for row in table.rows] == [
        "4 subtasks, idle",
        "4 subtasks, under load",
        "100 subtasks, idle (epochgate without Spark)",
        "100 subtasks, under load (epochgate without Spark)",
    ]
    assert "1.00 and 4.00 with 4 subtasks, 1.00 and 4.00 with 100 subtasks" in table.notes


def test_the_page_has_a_place_for_every_table() -> None:
    text = (ROOT / PAGE).read_text(encoding="utf-8")
    sections = {
        table.question: page.section(table, "a machine")
        for table in tables.tables(found(), 1, TINY)
    }
    written = page.with_sections(text, sections, tables.QUESTIONS)
    assert [question for question in tables.QUESTIONS if f"bench:{question} " in written] == list(
        tables.QUESTIONS
    )
    assert written.count("Measured on a machine.") == len(tables.QUESTIONS)


def test_a_cluster_has_processes_of_its_own_and_the_one_process_has_all(tmp_path: Path) -> None:
    job = ["folder", "1", "4", "8"]
    of_cluster = cluster.programs(tmp_path, job, in_one_process=False)
    assert [name for name, _ in of_cluster] == [
        "job-manager",
        *[f"task-manager-{number}" for number in range(HOSTS)],
    ]
    assert cluster.programs(tmp_path, job, in_one_process=True) == [
        ("whole-flink", [cluster.JOB, *job])
    ]


def test_a_flink_that_ended_is_shown_with_its_last_words(tmp_path: Path) -> None:
    (tmp_path / "job-manager.log").write_text("no more memory\n")
    (tmp_path / "task-manager-0.log").write_text("")
    logs = [tmp_path / "job-manager.log", tmp_path / "task-manager-0.log"]
    assert cluster.last_words(logs) == "job-manager.log:\nno more memory\n"


def test_no_rounds_are_misuse(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["--rounds", "0"])
    assert "'0' is no whole number of 1 or more" in capsys.readouterr().err


@pytest.mark.conformance
@pytest.mark.spark
@pytest.mark.timeout(900)
def test_both_systems_do_the_whole_job() -> None:
    done = measure(sizes=(2, 3), rounds=1, effort=TINY)
    assert set(done) == {(name, size) for name in NAMES for size in (2, 3)}
    for (name, size), one in done.items():
        assert len(one.idle) == TINY.checkpoints, (name, size)
        assert len(one.loaded) == TINY.loaded_checkpoints, (name, size)
        assert all(taken.clock_ms > 0 for taken in (*one.idle, *one.loaded)), (name, size)
    for name in (EPOCHGATE, FLINK):
        assert len(done[name, 2].raised_ms) == len(done[name, 2].failed_ms) == TINY.failures
        assert min(done[name, 2].in_calls_per_s + done[name, 2].by_thread_per_s) > 0
    assert len(tables.tables(done, 1, TINY)) == len(tables.QUESTIONS)
