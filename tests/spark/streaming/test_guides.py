"""The programs of the guides to streaming run as they stand, and print what the pages show."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from epochgate.spark.java import ensure_java
from tests.shown import ROOT
from tests.spark.tables import delta_replay
from tests.test_readme import block_with

PLACE = re.compile(r'"((?:landing|checkpoints?|lake|out|controls|orders\.state)(?:/[^"]*)?)"')


def run(text: str, page: str, folder: Path) -> dict[str, Any]:
    """Run the program of a page with its files in `folder`, in the session that is there."""
    block = block_with(text, page).replace('.master("local[2]")', "")
    names: dict[str, Any] = {}
    # A program that a person copies, and no other.
    exec(compile(placed(block, folder), page, "exec", dont_inherit=True), names)  # noqa: S102 -- the page is ours
    return names


def placed(block: str, folder: Path) -> str:
    """The program with its places in `folder`."""
    return PLACE.sub(lambda found: repr(str(folder / found[1])), block)


def shown_after(text: str, page: str) -> str:
    """The output that the page shows behind the program."""
    page_text = (ROOT / page).read_text("utf-8")
    _, _, after = page_text.partition(block_with(text, page))
    [shown] = re.findall(r"\A```\n+```text\n(.*?)```", after, re.DOTALL)
    return str(shown)


@pytest.mark.programs
@pytest.mark.spark
@pytest.mark.versions
def test_the_sink_of_the_guide_writes_what_it_shows_and_a_batch_that_runs_again_once(
    spark: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("pyspark.sql.datasource", reason="Spark 3.5 has no data sources in Python")
    page, program = "docs/streaming.md", "register(spark)   "
    query = run(program, page, tmp_path)["query"]
    shown = shown_after(program, page)
    assert capsys.readouterr().out == shown
    assert query.lastProgress["batchId"] == 0

    [command] = re.findall(
        r"```(?:sh|console)\n(?:\$ )?rm (.*?)\n", (ROOT / page).read_text("utf-8")
    )
    for file in shlex.split(command):
        (tmp_path / file).unlink()
    query = run(program, page, tmp_path)["query"]
    assert [progress["batchId"] for progress in query.recentProgress] == [0]
    assert capsys.readouterr().out == shown


@pytest.mark.programs
@pytest.mark.spark
@pytest.mark.parametrize("program", ["first.csv", "control.source_options"])
def test_the_programs_of_the_guide_to_sources_print_what_it_shows(
    spark: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str], program: str
) -> None:
    page = "docs/reading.md"
    run(program, page, tmp_path)
    assert capsys.readouterr().out == shown_after(program, page)


@pytest.mark.programs
@pytest.mark.spark
@pytest.mark.versions
def test_the_coordinator_of_the_guide_chooses(
    spark: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    names = run("class Budget(BatchCoordinator)", "docs/steering.md", tmp_path)
    told = re.findall(r"batch (\d+) ran with (\d+)", capsys.readouterr().out)
    limits = [int(limit) for _, limit in told]
    assert [int(batch) for batch, _ in told] == list(range(len(told)))
    assert limits[0] == 1000
    assert limits[-1] <= 600
    assert [one.version for one in names["control"].history()] == [0] * (len(told) - 1) + [1]


@pytest.mark.programs
@pytest.mark.spark
def test_once_of_the_guide_writes_a_batch_that_runs_again_once(
    spark: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("deltalake", reason="the extra `delta` is not installed")
    for _ in range(2):
        query = run("    totals = df.groupBy", "docs/streaming.md", tmp_path)["query"]
        assert [progress["batchId"] for progress in query.recentProgress] == [0]
        assert capsys.readouterr().out == "3 rows\n"
        for end in (tmp_path / "checkpoints" / "totals" / "commits").glob("*0*"):
            end.unlink()


@pytest.mark.programs
@pytest.mark.spark
@pytest.mark.parametrize(
    ("kind", "extra", "tables"),
    [("parquet", "pyarrow", ("old", "new")), ("delta", "deltalake", ("totals",))],
)
def test_a_converted_query_goes_on_at_its_checkpoint_and_misses_no_rows(
    spark: Any, tmp_path: Path, kind: str, extra: str, tables: tuple[str, ...]
) -> None:
    pytest.importorskip("pyspark.sql.datasource", reason="Spark 3.5 has no data sources in Python")
    pytest.importorskip(extra, reason="the extra is not installed")
    page = (ROOT / "docs" / "streaming.md").read_text("utf-8")
    [diff] = [one for one in re.findall(r"```diff\n(.*?)```", page, re.DOTALL) if tables[0] in one]
    landing = tmp_path / "landing"
    landing.mkdir()
    for number, other in enumerate("+-"):
        (landing / f"{number}.json").write_text(json.dumps({"id": number}))
        side = "\n".join(line[1:] for line in diff.splitlines() if not line.startswith(other))
        names: dict[str, Any] = {"spark": spark}
        exec(BEFORE_DIFFS[kind], names)  # noqa: S102 -- what the diff leaves out
        names["orders"] = spark.readStream.schema("id long").json(str(landing))
        exec(compile(placed(side, tmp_path), "diff", "exec"), names)  # noqa: S102 -- the page is ours
        names["query"].processAllAvailable()
        names["query"].stop()
    places = [tmp_path / "lake" / name for name in tables]
    assert sorted(n for place in places for n in rows(place, kind)) == [0, 1]


BEFORE_DIFFS = {
    "parquet": "",
    "delta": "import deltalake",
}


def rows(place: Path, kind: str) -> list[int]:
    if kind == "delta":
        return delta_replay.rows(place, "id")
    files = [file for file in place.rglob("*.parquet") if not file.name.startswith("_")]
    return [n for file in files for n in pq.ParquetFile(file).read()["id"].to_pylist()]


@pytest.mark.programs
@pytest.mark.spark
@pytest.mark.versions
def test_the_control_of_the_guide_says_what_is_in_force_at_every_start(
    spark: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page, program = "docs/steering.md", "control.update(limit=700)"
    told = re.compile(r"(\{'limit': \d+\}) since batch (\d+)")
    run(program, page, tmp_path)
    first, then = told.findall(capsys.readouterr().out)
    assert [first[0], then[0]] == [value for value, _ in told.findall(shown_after(program, page))]
    assert int(first[1]) < int(then[1])
    run(program, page, tmp_path)
    assert told.findall(capsys.readouterr().out)[0] == then


@pytest.mark.programs
@pytest.mark.spark
@pytest.mark.versions
@pytest.mark.parametrize(
    ("mode", "told"),
    [("update", "does not support Update mode"), ("complete", "Use append .* watermark")],
)
def test_the_output_modes_that_the_guide_says_are_refused_are_refused(
    spark: Any, tmp_path: Path, mode: str, told: str
) -> None:
    pytest.importorskip("pyspark.sql.datasource", reason="Spark 3.5 has no data sources in Python")
    from epochgate.spark.streaming import register

    register(spark)
    (tmp_path / "landing").mkdir()
    (tmp_path / "landing" / "0.json").write_text('{"id": 1}')
    orders = spark.readStream.schema("id long").json(str(tmp_path / "landing"))
    writer = orders.groupBy("id").count().writeStream.outputMode(mode).format("epochgate")
    writer = writer.options(sink="parquet", checkpointLocation=str(tmp_path / "checkpoint"))
    with pytest.raises(Exception, match=told):
        writer.start(str(tmp_path / "out")).awaitTermination()


def test_the_readme_names_a_java_for_sessions_of_one_s_own(tmp_path: Path) -> None:
    text = (ROOT / "README.md").read_text("utf-8")
    [command] = re.findall(r"^export JAVA_HOME=\$\(python -c '(.*?)'\)$", text, re.MULTILINE)
    done = subprocess.run(
        [sys.executable, "-c", command], capture_output=True, text=True, timeout=60, check=True
    )
    assert done.stdout == f"{ensure_java()}\n"
    assert (Path(done.stdout.strip()) / "bin" / "java").exists()


def test_the_page_says_what_to_do_after_every_refusal() -> None:
    from epochgate.spark import streaming
    from epochgate.spark.values import errors

    text = (ROOT / "docs" / "streaming.md").read_text("utf-8")
    _, _, recovery = text.partition("\n## Recovery\n")
    rows = re.findall(r"^\| [^|]+ \| ([^|]+) \| [^|]+ \|$", recovery, re.MULTILINE)
    told = {name for row in rows for name in re.findall(r"`(\w+)`", row)}
    assert [one for one in told if not (hasattr(streaming, one) or hasattr(errors, one))] == []
    refusals = {one.__name__ for one in streaming.BatchRefused.__subclasses__()}
    assert len(refusals) > 4
    assert refusals <= told
