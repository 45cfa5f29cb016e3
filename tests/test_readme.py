"""What the README and the pages for its readers show is run as it stands."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from epochgate import cli
from epochgate.spark.ingest.flights import write_months
from epochgate.spark.java import ensure_java

ROOT = Path(__file__).parents[1]


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


@pytest.mark.spark
def test_the_ingestion_runs_and_a_second_start_resumes(tmp_path: Path) -> None:
    _, _, *more = write_months(tmp_path / "landing")
    for file in more:
        file.unlink()
    block = block_with("ingest(spark")
    first = run(block, tmp_path, timeout_s=100)
    assert re.search(r"^\d+ rows, resumed from checkpoint None$", first, re.MULTILINE), first
    again = run(block, tmp_path, timeout_s=100)
    assert first.split()[0] == again.split()[0]
    assert "resumed from checkpoint None" not in again


def test_the_coordinator_can_be_declared(tmp_path: Path) -> None:
    run(block_with("class RulesProvider", "docs/jobs.md"), tmp_path, timeout_s=60)


def test_the_machine_is_checked_as_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    block = block_with("class Airlock", "docs/checking.md")
    assert len(block.splitlines()) <= 25
    (tmp_path / "airlock.py").write_text(block, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    assert cli.main(["check", "airlock:Airlock"]) == 1
    page = (ROOT / "docs/checking.md").read_text("utf-8")
    [shown] = re.findall(r"```text\n(not always.*?)```", page, re.DOTALL)
    printed = [line for line in capsys.readouterr().out.splitlines() if "  at " not in line]
    assert "\n".join(shown.splitlines()) in "\n".join(printed)


@pytest.mark.parametrize("page", ["README.md", *(f"docs/{p.name}" for p in ROOT.glob("docs/*.md"))])
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
