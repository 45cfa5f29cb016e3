"""A notebook shows jobs, states and results as tables, with whatever users wrote escaped."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from xml.etree import ElementTree as Tree

from epochgate.runtime.api.notebooks import ROWS_MAX, fragment
from epochgate.runtime.api.reports import CheckpointReport, JobReport, JobResult
from epochgate.runtime.observing.status import status_of
from epochgate.spark.files.split import SkippedFile
from epochgate.spark.ingest.run import IngestHandle, IngestResult
from epochgate.spark.job import JobHandle, JobStatus, TaskStatus
from tests.browser.jobs import BEGIN, empty, job

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
    def report(self) -> JobReport:
        return self.kept

    def status(self) -> JobStatus:
        return STATUS


def test_a_running_job_shows_its_state_and_its_figures() -> None:
    shown = texts(Running()._repr_html_())
    assert (shown[0], "JobReport" in shown) == ("JobStatus", True)
    handle = IngestHandle.__new__(IngestHandle)
    handle.job = Running()
    assert texts(handle._repr_html_()) == shown


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
