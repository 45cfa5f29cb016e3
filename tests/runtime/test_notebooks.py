"""A notebook shows jobs, states and results as tables, with whatever users wrote escaped."""

from __future__ import annotations

import linecache
import subprocess
import sys
from contextlib import nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any, cast
from xml.etree import ElementTree as Tree

import pytest

from epochgate.runtime.api import notebooks
from epochgate.runtime.api.cells import sources
from epochgate.runtime.api.notebooks import ROWS_MAX, fragment, show_while
from epochgate.runtime.api.reports import CheckpointReport, JobReport, JobResult
from epochgate.runtime.observing.status import status_of
from epochgate.spark.files.split import SkippedFile
from epochgate.spark.handle import JobHandle, JobStatus, TaskStatus
from epochgate.spark.ingest.run import IngestHandle, IngestResult
from epochgate.spark.program_pickling import pickled
from tests.browser.jobs import BEGIN, empty, job

CELL = "/kernel/8.py"
SOURCE = "def divide(n):\n    return 1 / n\n"
EVIL = "<script>alert(1)</script> & more"
REPORT = JobReport(
    checkpoints=[CheckpointReport(7, True, 0.25, 1500)],
    metrics={0: {"rows_read": 1200}, 1: {"rows_read": 300}},
    checkpoints_completed=7,
    regional_restarts=1,
)
STATUS = JobStatus("running", 7, [TaskStatus(0, 2, "running", "vm", 4711)])


def texts(html: str) -> list[str]:
    """The texts of a fragment, which has to be well formed."""
    found = Tree.fromstring(f"<all>{html}</all>").itertext()
    return [text.strip() for text in found if text.strip()]


def test_a_report_and_a_result_show_their_figures() -> None:
    shown = texts(REPORT._repr_html_())
    assert shown[shown.index("rows read") + 1] == "1,500"
    assert "0.25 s, 1.5 kB" in shown
    shown = texts(JobResult("failed", EVIL, REPORT, 7)._repr_html_())
    assert shown[:3] == ["JobResult", ": failed", EVIL]
    assert shown[shown.index("last checkpoint") + 1] == "7"
    assert "checkpoints aborted" not in shown


def test_a_status_has_a_row_for_each_subtask_and_a_bound() -> None:
    assert texts(STATUS._repr_html_())[-5:] == ["0", "2", "running", "vm", "4711"]
    many = JobStatus("running", 0, [TaskStatus(n, 0, "running", None, None) for n in range(500)])
    shown = many._repr_html_()
    assert shown.count("<tr>") == ROWS_MAX + 2
    assert texts(shown)[-1] == f"and {500 - ROWS_MAX} more"


def test_an_ingestion_shows_what_it_left_out() -> None:
    result = IngestResult(
        *("finished", None, 900, 3, 900, 4, {"hidden": 2}, 0, ""),
        *([SkippedFile(EVIL, "0", "", "torn")], [], "", None, 7, REPORT),
    )
    shown = texts(result._repr_html_())
    assert shown[-4:] == ["left out", "why", EVIL, "torn"]
    assert shown[shown.index("files not read") + 1] == "2"


@dataclass
class Running(JobHandle):
    """A job that runs, without a driver behind it."""

    kept: JobReport = field(default_factory=lambda: REPORT)

    @property
    def job_id(self) -> str:
        return "orders"

    @property
    def report(self) -> JobReport:
        return self.kept

    def status(self) -> JobStatus:
        return STATUS


def test_a_running_job_shows_its_state_and_its_figures() -> None:
    shown = texts(Running()._repr_html_())
    assert (shown[:2], shown[-5:]) == (["orders", ": running"], ["0", "2", "running", "vm", "4711"])
    assert shown[shown.index("rows read") + 1] == "1,500"
    told = JobHandle.__repr__(Running())
    assert told.startswith("<JobHandle orders: running; last checkpoint 7; checkpoints: ")
    handle = IngestHandle.__new__(IngestHandle)
    handle.job = Running()
    assert texts(handle._repr_html_()) == shown


class Kernel:
    """IPython as far as a kernel of a notebook shows it to code of a cell."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.kernel = self.compile = self
        self.shown: list[Any] = []
        for name in ("IPython", "IPython.display"):
            monkeypatch.setitem(sys.modules, name, cast("ModuleType", self))

    def get_ipython(self) -> Kernel:
        return self

    def format_code_name(self, name: str) -> tuple[str, str] | None:
        return ("Cell", "In[8]") if name == CELL else None

    def display(self, thing: Any, *, display_id: bool) -> Kernel:
        assert display_id
        self.update(thing)
        return self

    def update(self, thing: Any) -> None:
        self.shown.append(thing)


def test_a_cell_shows_a_job_while_it_runs_and_how_it_ended(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(notebooks, "PERIOD_S", 0.01)
    kernel, waited = Kernel(monkeypatch), iter([TimeoutError, TimeoutError, None])

    def wait(timeout_s: float | None) -> None:
        assert timeout_s is not None
        if (error := next(waited)) is not None:
            raise error

    show_while("job", wait, nullcontext())
    assert kernel.shown == ["job"] * 4
    assert next(waited, "all") == "all"


def test_a_display_ends_with_its_time_and_with_an_interrupt(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    kernel = Kernel(monkeypatch)

    def wait(timeout_s: float | None) -> None:
        raise TimeoutError if kernel.shown == ["job"] else KeyboardInterrupt

    show_while("job", wait, nullcontext(), 0.0)
    assert kernel.shown == ["job"] * 2
    with pytest.raises(KeyboardInterrupt):
        show_while("job", wait, nullcontext())
    assert kernel.shown == ["job"] * 4


def test_on_a_terminal_a_line_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    assert not notebooks.is_notebook()
    show_while("the job", lambda timeout_s: None, nullcontext())
    assert "the job" in capsys.readouterr().err


def test_the_source_of_a_cell_travels_with_a_program(monkeypatch: pytest.MonkeyPatch) -> None:
    Kernel(monkeypatch)
    space: dict[str, Any] = {"__name__": "__main__"}
    exec(compile(SOURCE, CELL, "exec"), space)  # noqa: S102  # as a kernel runs a cell
    for name in (CELL, "/kernel/9.py"):
        cached = (len(SOURCE), None, SOURCE.splitlines(keepends=True), name)
        monkeypatch.setitem(linecache.cache, name, cached)
    data = pickled(space["divide"], [])
    assert b"kernel/9.py" not in data
    script = (
        "import pickle, sys; from epochgate.runtime.api.raised import described\n"
        "try: pickle.load(sys.stdin.buffer)(0)\n"
        "except ZeroDivisionError as error: print(described(error))"
    )
    command = [sys.executable, "-c", script]
    told = subprocess.run(command, input=data, capture_output=True, timeout=60, check=True)
    lines = told.stdout.decode().splitlines()
    assert lines[0] == "ZeroDivisionError: division by zero"
    place = lines.index('  File "Cell In[8]", line 2, in divide')
    assert lines[place + 1] == "    return 1 / n"


def test_a_program_without_cells_travels_as_it_is() -> None:
    assert sources(b"nothing of ours", [sys.modules[__name__]]) == []


def test_a_status_from_a_history_shows_the_newest_run(tmp_path: Path) -> None:
    place = str(job(tmp_path / "job"))
    shown = texts(status_of(place, now=BEGIN + 900)._repr_html_())
    assert shown[:4] == ["RunStatus", ": finished", "job", "orders"]
    assert shown[shown.index("checkpoints completed") + 1] == "117"
    none = status_of(str(empty(tmp_path / "none")), now=BEGIN)
    assert texts(none._repr_html_())[:2] == ["RunStatus", ": not begun"]


def test_what_is_nothing_is_left_out() -> None:
    assert texts(fragment("Job", "running", [("a", 0), ("b", None), ("c", "")])) == [
        "Job",
        ": running",
    ]
