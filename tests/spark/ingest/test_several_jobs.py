"""Several sources into several targets by one command: each exactly once, whatever others do."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import tomllib
import urllib.request
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from epochgate.cli import main
from epochgate.commands.progress import Progress
from epochgate.runtime.api.job_events import JobEnded
from tests.runtime.test_otlp import Collector, received
from tests.spark.ingest.simulated import visible, write_source
from tests.spark.running import wait_for

ROOT = Path(__file__).parents[3]


def configured(tmp_path: Path, *jobs: str, above: str = "") -> str:
    tables = "\n".join(f"[[ingest]]\n{one}" for one in jobs)
    (tmp_path / "jobs.toml").write_text(f"{above}\n{tables}\n")
    return str(tmp_path / "jobs.toml")


def pair(tmp_path: Path, name: str, *more: str) -> str:
    return "\n".join(
        [f"source = '{tmp_path}/{name}/in'", f"target = '{tmp_path}/{name}/out'", *more]
    )


def source(tmp_path: Path, name: str, **made: Any) -> list[int]:
    (tmp_path / name).mkdir(exist_ok=True)
    return write_source(tmp_path / name, **made)


def as_xml(path: Path) -> None:
    """Write the rows of a CSV file as XML instead."""
    _, *lines = path.read_text().splitlines()
    pairs = (line.split(",") for line in lines)
    items = "\n".join(f"<item><x>{x}</x><name>{name}</name></item>" for x, name in pairs)
    path.with_suffix(".xml").write_text(f"<all>\n{items}\n</all>\n")
    path.unlink()


def has_rows(target: Path) -> bool:
    return bool(visible(target))


@pytest.mark.parametrize(
    ("jobs", "above", "given", "told"),
    [
        (["a", "b"], "", ["in", "out"], "leave them out"),
        (["a", "a"], "", [], "two jobs read this source into this target"),
        (["a\nmaster = 'local[2]'", "b"], "", [], "[[ingest]] 1: master is of the whole command"),
        (["a", "b\nparalelism = 3"], "", [], "[[ingest]] 2: there is no option 'paralelism'; did"),
        (["a\nparallelism = 'x'", "b"], "", [], "[[ingest]] 1: parallelism: invalid int"),
        (["a", "b"], "target = 'x'", [], "target is to be in each [[ingest]]"),
        (["a\nui-port = 9", "b\nui-port = 9"], "", [], "ui-port 9 is that of"),
        (["a", "b\nwire = 'x'"], "", [], "wire"),
        (["a", "b"], "chaos = '1'", [], "--chaos is for one job"),
    ],
)
def test_what_cannot_be_meant_is_refused_before_anything_starts(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    jobs: list[str],
    above: str,
    given: list[str],
    told: str,
) -> None:
    tables = [pair(tmp_path, *one.split("\n")) for one in jobs]
    path = configured(tmp_path, *tables, above=above)
    assert main(["ingest", *given, "--config", path]) == 2
    assert told in capsys.readouterr().err


@pytest.mark.parametrize(
    ("target", "more", "told"),
    [
        ("out", "", "a directory of files belongs to one job"),
        ("delta:out", "", "give each job a checkpoint-dir of its own"),
        ("delta:out", "checkpoint-dir = 'points'", "give each job a checkpoint-dir of its own"),
    ],
)
def test_one_target_of_two_jobs_is_a_table_and_their_checkpoints_lie_apart(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], target: str, more: str, told: str
) -> None:
    jobs = [f"source = '{name}'\ntarget = '{target}'\n{more}" for name in ("a/*.csv", "a/*.json")]
    assert main(["ingest", "--config", configured(tmp_path, *jobs)]) == 2
    said = capsys.readouterr().err
    assert told in said
    assert f"a/*.json into {target}: " in said


def test_a_failure_is_told_at_once_where_others_go_on() -> None:
    ended = JobEnded(1.0, "failed", "it has changed\nGive another", 7, 2.0, 7, 0, 0, 0)
    alone, beside = Progress(), Progress(name="a into b")
    for progress in (alone, beside):
        progress.on_event(ended)
    assert alone.lines() == []
    (line,) = beside.lines()
    assert line.endswith("s  a into b: failed: it has changed\nGive another")


@pytest.mark.parametrize("deletes", [0, 1])
def test_a_job_does_not_remove_the_files_of_another(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], deletes: int
) -> None:
    tables = [pair(tmp_path, "a"), pair(tmp_path, "b").replace("b/in", "a/in/*.csv")]
    tables[deletes] += "\nafter-commit = 'delete'"
    assert main(["ingest", "--config", configured(tmp_path, *tables)]) == 2
    assert f"is read by the job of {tmp_path}/a/out, too" in capsys.readouterr().err


def test_the_file_is_printed_back(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    first = pair(tmp_path, "a", "parallelism = 1", "null = ['x']")
    path = configured(tmp_path, first, pair(tmp_path, "b"), above="parallelism = 3\nnull = ['y']")
    assert main(["ingest", "--config", path, "--print-config", "--on-bad-row", "reject"]) == 0
    text = capsys.readouterr().out
    (tmp_path / "again.toml").write_text(text)
    assert main(["ingest", "--config", str(tmp_path / "again.toml"), "--print-config"]) == 0
    assert capsys.readouterr().out == text
    found = tomllib.loads(text)
    assert (found["parallelism"], found["on-bad-row"], found["null"]) == (3, "reject", ["y"])
    one, other = found["ingest"]
    assert one.items() >= {"parallelism": 1, "null": ["x"], "target": f"{tmp_path}/a/out"}.items()
    assert other.keys() == {"source", "target"}


def command(tmp_path: Path, *given: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "epochgate", "ingest", "--config", "jobs.toml", *given],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT), "TMPDIR": str(tmp_path)},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


@pytest.mark.spark
@pytest.mark.extended
@pytest.mark.slow
@pytest.mark.timeout(300)
def test_each_row_once_although_the_driver_is_killed_and_another_job_fails(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = {name: source(tmp_path, name, files=4, rows=1500) for name in ("a", "b")}
    for one in (tmp_path / "b/in").iterdir():
        as_xml(one)
    collector = Collector()
    source(tmp_path, "bad", files=2, rows=50)
    (tmp_path / "bad/in/z.csv").write_text("other,columns\n1,2\n")
    above = "parallelism = 1\ncheckpoint-every = '300ms'\nmetrics-port = 0\nrestart = 'none'"
    above += f"\notlp = '{collector.url}'"
    slow = "rows-per-second = 1500"
    tables = [
        pair(tmp_path, "a", slow),
        pair(tmp_path, "b", slow, "row-tag = 'item'"),
        pair(tmp_path, "bad"),
    ]
    config = configured(tmp_path, *tables, above=above)

    process = command(tmp_path)
    try:
        for name in ("a", "b"):
            wait_for(partial(has_rows, tmp_path / name / "out"), f"rows of {name}", 120)
        assert process.stderr is not None
        said = ""
        while not (found := re.search(r"metrics: (http\S+)", said)):
            said += process.stderr.readline()
        with urllib.request.urlopen(found[1], timeout=60) as answer:
            shown = answer.read().decode()
        assert len(set(re.findall('job_id="([^"]*)"', shown))) == 2
        assert shown.count("# TYPE epochgate_checkpoints_total") == 1
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate(timeout=60)
    finally:
        process.kill()
        process.communicate()
    for name in ("a", "b"):
        taken = visible(tmp_path / name / "out")
        assert taken == sorted(set(taken))
        assert len(taken) < len(rows[name])

    process = command(tmp_path, "--json")
    printed, err = process.communicate(timeout=200)
    assert process.returncode == 2, err
    assert f"{tmp_path}/bad/out: refused: " in err
    told = json.loads(printed)["jobs"]
    assert [job["state"] for job in told] == ["finished", "finished", "refused"]
    assert all(job["resumed_from"] for job in told[:2])
    assert "the schema changes between files" in told[2]["reason"]
    for name in ("a", "b"):
        assert visible(tmp_path / name / "out") == rows[name]
    assert not (tmp_path / "bad/out").exists()
    collector.close()
    sent = set().union(*map(received, collector.taken))
    assert len({dict(labels)["job_id"] for _, labels in sent}) == 2

    assert main(["status", config]) == 0
    shown = capsys.readouterr().out
    assert shown.count("finished after") == 2
    assert "not begun" in shown
    assert main(["status", config, "--json"]) == 0
    states = [one["state"] for one in json.loads(capsys.readouterr().out)]
    assert states == ["finished", "finished", "not begun"]


@pytest.mark.spark
@pytest.mark.extended
@pytest.mark.timeout(200)
def test_files_of_two_formats_are_in_one_table_although_the_driver_is_killed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    deltalake = pytest.importorskip("deltalake", reason="the extra `delta` is not installed")
    expected = source(tmp_path, "a", files=4, rows=500)
    for file in sorted((tmp_path / "a/in").iterdir())[:2]:
        _, *lines = file.read_text().splitlines()
        pairs = (line.split(",") for line in lines)
        rows = [json.dumps({"x": int(x), "name": name}) for x, name in pairs]
        file.with_suffix(".json").write_text("\n".join([*rows, "no object", ""]))
        file.unlink()
    last = max((tmp_path / "a/in").glob("*.csv"))
    last.write_text(last.read_text() + "1,surplus,field\n")
    jobs = [
        f"source = 'a/in/*.{ending}'\ntarget = 'delta:table'\ncheckpoint-dir = '{ending}'"
        for ending in ("csv", "json")
    ]
    above = "parallelism = 1\ncheckpoint-every = '300ms'\non-bad-row = 'rescue'"
    config = configured(tmp_path, *jobs, above=f"{above}\nschema-hints = 'x BIGINT, name STRING'")

    def seen() -> list[int]:
        if not deltalake.DeltaTable.is_deltatable(str(tmp_path / "table")):
            return []
        return sorted(
            deltalake.DeltaTable(str(tmp_path / "table")).to_pyarrow_table()["x"].to_pylist()
        )

    process = command(tmp_path, "--rows-per-second", "500")
    try:
        wait_for(lambda: len(seen()) > 300, "rows of the first driver", 120)
        os.killpg(process.pid, signal.SIGKILL)
    finally:
        process.kill()
        process.communicate()
    taken = seen()
    assert len(taken) < len(expected)
    assert set(taken) < set(expected)
    process = command(tmp_path, "--json")
    printed, err = process.communicate(timeout=150)
    assert process.returncode == 3, err
    assert seen() == sorted(expected)
    told = json.loads(printed)["jobs"]
    assert [one["state"] for one in told] == ["finished", "finished"]
    assert len(visible(tmp_path / "csv.rejected", "line")) == 1
    assert len(visible(tmp_path / "json.rejected", "line")) == 2
    assert main(["status", config]) == 0
    shown = capsys.readouterr().out
    assert all(f"a/in/*.{ending} into delta:table:" in shown for ending in ("csv", "json"))
