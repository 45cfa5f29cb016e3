"""Each program that the README and the pages for its readers show is run as it stands."""

from __future__ import annotations

import json
import os
import re
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from epochgate import cli
from epochgate.spark.java import ensure_java
from tests.shown import PAGES, ROOT


def run(block: str, folder: Path, *, timeout_s: float) -> str:
    """Run one block in `folder`, as where the environment is activated and Java installed."""
    program = folder / "shown.py"
    program.write_text(block, encoding="utf-8")
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    quick = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"  # a short job is over before a JIT pays
    java = {"JAVA_HOME": str(ensure_java()), "JAVA_TOOL_OPTIONS": quick}
    environment = {**os.environ, "PATH": path, **java}
    done = subprocess.run(
        [sys.executable, str(program)],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=timeout_s,
        env=environment,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def block_with(text: str, page: str = "README.md") -> str:
    shown = (ROOT / page).read_text(encoding="utf-8")
    blocks: list[str] = re.findall(r"```python\n(.*?)```", shown, re.DOTALL)
    [block] = [block for block in blocks if text in block]
    return block


def limits_by_checkpoint(folder: Path) -> list[set[int]]:
    found = [json.loads(file.read_text()) for file in sorted(folder.glob("kept-*.json"))]
    numbers = [number for rows in found for number, limit in rows]
    assert len(numbers) == len(set(numbers))
    assert all(number % 1000 < limit for rows in found for number, limit in rows)
    return [{limit for _, limit in rows} for rows in found]


@pytest.mark.programs
@pytest.mark.spark
@pytest.mark.versions
def test_the_job_changes_its_limit_at_one_checkpoint(tmp_path: Path) -> None:
    run(block_with("pipeline.start(spark"), tmp_path, timeout_s=100)
    limits = limits_by_checkpoint(tmp_path)
    assert set().union(*limits) == {500, 900}
    both = [number for number, found in enumerate(limits) if len(found) == 2]
    assert len(both) <= 1
    assert limits == sorted(limits, key=min, reverse=True)


@pytest.mark.programs
@pytest.mark.spark
def test_the_pipeline_bills_each_order_once(tmp_path: Path) -> None:
    run(block_with("import sqlite3", "docs/jobs.md"), tmp_path, timeout_s=100)
    with sqlite3.connect(tmp_path / "billing.db") as billing:
        billed = billing.execute("SELECT id, amount FROM billed ORDER BY id").fetchall()
    assert billed == [(n, n / 4) for n in range(1, 1001)]


@pytest.mark.programs
@pytest.mark.spark
def test_the_whole_job_changes_its_rate_once_and_goes_on_with_it(tmp_path: Path) -> None:
    block = block_with("class Pages(Committer)", "docs/whole-job.md")
    first = run(block, tmp_path, timeout_s=100)
    assert "begins\nthe rate was 1.0\n<JobResult: finished; " in first
    pages = len(list(tmp_path.glob("converted/*.json")))
    again = run(block, tmp_path, timeout_s=100)
    assert f"goes on from checkpoint {pages}\n<JobResult: finished; " in again
    converted = [json.loads(page.read_text()) for page in sorted(tmp_path.glob("converted/*.json"))]
    for subtask in ("0", "1"):
        rows = [row for page in converted for row in page.get(subtask, [])]
        assert [price for price, *_ in rows] == list(range(1, 301))
        rates = [rate for _, rate, _ in rows]
        assert rates == sorted(rates)
        assert set(rates) == {1.0, 1.5}
    changed = [{rate for rows in page.values() for _, rate, _ in rows} for page in converted]
    assert all(1.0 not in rates for rates in changed[pages:])
    assert sum(len(rates) == 2 for rates in changed) <= 1


@pytest.mark.parametrize(
    ("text", "page"),
    [
        ("def test_each_number_is_written_once", "docs/jobs.md"),
        ("def test_what_is_sent_after_a_checkpoint", "docs/testing.md"),
    ],
)
def test_a_test_that_a_page_shows_passes(tmp_path: Path, text: str, page: str) -> None:
    block = block_with(text, page)
    [name] = re.findall(r"^def (test_\w+)", block, re.MULTILINE)
    run(f"{block}\n{name}()\n", tmp_path, timeout_s=60)


@pytest.mark.programs
@pytest.mark.spark
def test_the_ingestion_runs_and_a_second_start_resumes(tmp_path: Path) -> None:
    block = block_with("ingest(spark")
    run(block, tmp_path, timeout_s=100)
    again = run(block, tmp_path, timeout_s=100)
    assert re.search(r"^2 rows, resumed from checkpoint \d+$", again, re.MULTILINE), again


def test_the_coordinator_can_be_declared(tmp_path: Path) -> None:
    run(block_with("class RulesProvider", "docs/jobs.md"), tmp_path, timeout_s=60)


@pytest.mark.versions
def test_the_machine_is_checked_as_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    block = block_with("class Airlock", "docs/checking.md")
    assert len(block.splitlines()) <= 26  # the name of the file, and 25 lines
    (tmp_path / "airlock.py").write_text(block, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    assert cli.main(["check", "airlock:Airlock"]) == 1
    page = (ROOT / "docs/checking.md").read_text("utf-8")
    [shown] = re.findall(r"```text\n(not always.*?)```", page, re.DOTALL)
    printed = [line for line in capsys.readouterr().out.splitlines() if "  at " not in line]
    assert "\n".join(shown.splitlines()) in "\n".join(printed)


@pytest.mark.parametrize("page", PAGES)
def test_every_link_of_a_page_leads_to_a_file(page: str) -> None:
    text = (ROOT / page).read_text(encoding="utf-8")
    links = [link for link in re.findall(r"\]\(([^)#]+)", text) if "://" not in link]
    missing = [link for link in links if not ((ROOT / page).parent / link).exists()]
    assert not missing


def test_the_readme_leads_to_every_page() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert not [p.name for p in ROOT.glob("docs/*.md") if f"(docs/{p.name})" not in text]


def test_the_program_that_waits_for_time_looks_once_a_minute(tmp_path: Path) -> None:
    block = block_with("class EveryMinute", "docs/jobs.md")
    shown = run(
        f"{block}\n"
        "from epochgate.runtime import JobConfiguration\n"
        "from epochgate.testing import SimulatedJob\n"
        "configuration = JobConfiguration('looking', 1, checkpoint_interval_s=None)\n"
        "job = SimulatedJob(lambda start: configuration, lambda subtask: EveryMinute())\n"
        "job.settle()\n"
        "job.wait(300)\n"
        "print(job.transport.processes[1].worker.program.looked)\n",
        tmp_path,
        timeout_s=60,
    )
    assert shown == "6\n"


@pytest.fixture
def sales(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    block = block_with("class LossySales", "docs/checking.md")
    (tmp_path / "sales.py").write_text(block, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    return block


def test_the_sales_are_checked_as_shown(sales: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["check", "sales:LossySales"]) == 0
    printed = capsys.readouterr().out.splitlines()
    page = (ROOT / "docs/checking.md").read_text("utf-8")
    [shown] = re.findall(r"```text\n(sales:LossySales.*?)```", page, re.DOTALL)
    assert set(shown.splitlines()) <= set(printed)


def test_a_shop_that_forgets_what_it_has_charged_charges_twice_in_four_steps(
    sales: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    forgetful = sales.replace('"not is_new", "answer",  ', '"not is_new", "take, answer",')
    assert forgetful != sales
    (tmp_path / "forgetful.py").write_text(forgetful, encoding="utf-8")
    assert cli.main(["check", "forgetful:LossySales"]) == 1
    printed = capsys.readouterr().out
    assert "not always: an order is charged once" in printed
    assert "4 steps from the initial state" in printed


def test_the_checked_machines_run_as_shown(sales: str, tmp_path: Path) -> None:
    block = block_with("class Sales(System)", "docs/checking.md")
    assert run(block, tmp_path, timeout_s=60) == "idle 1\n"
