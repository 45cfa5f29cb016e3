"""`epochgate ui` reads what lies beside checkpoints, answers as Flink does, and writes nothing."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from epochgate.cli import main
from epochgate.jobs import seen
from epochgate.jobs.seen import Job
from epochgate.jobs.site import JobSite
from epochgate.pages.serving import Request, Server
from epochgate.runtime.observing.history import History
from epochgate.runtime.observing.status import RunStatus, status_of
from epochgate.runtime.store import ObjectCheckpointStore
from epochgate.spark.streaming import Control
from tests.browser.jobs import BEGIN, empty, events, job
from tests.browser.serving import asked, served
from tests.runtime.objects.stores import Memory

RUN = "a" * 32


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return job(tmp_path_factory.mktemp("job"))


@pytest.fixture(scope="module")
def url(place: Path) -> Iterator[str]:
    with served(JobSite(Job(str(place))).answer) as url:
        yield url


def answered(url: str, path: str) -> Any:
    status, text, headers = asked(url, path)
    assert (status, headers["Content-Type"]) == (200, "application/json")
    return json.loads(text)


def test_checkpoints_have_the_shape_of_flinks(url: str) -> None:
    found = answered(url, f"/jobs/{RUN}/checkpoints")
    assert found["counts"] == {
        "restored": 1,
        "total": 120,
        "in_progress": 0,
        "completed": 117,
        "failed": 3,
    }
    latest = found["latest"]["completed"]
    assert (latest["id"], latest["status"], latest["end_to_end_duration"]) == (
        119,
        "COMPLETED",
        200,
    )
    assert latest["trigger_timestamp"] == round((BEGIN + 4 * 119 - 0.2) * 1000)
    assert found["latest"]["failed"]["failure_message"] == "took <too> long"
    assert found["latest"]["failed"]["num_acknowledged_subtasks"] == 2
    assert [one["id"] for one in found["history"]] == list(range(120, 20, -1))
    assert found["summary"]["end_to_end_duration"]["max"] == 800
    assert found == answered(url, f"/v1/jobs/{RUN}/checkpoints")
    detail = answered(url, f"/jobs/{RUN}/checkpoints/details/3")
    assert (detail["id"], [*detail["tasks"]]) == (3, [RUN])


def test_jobs_have_the_shape_of_flinks(url: str) -> None:
    assert answered(url, "/jobs")["jobs"] == [
        {"id": RUN, "status": "FINISHED"},
        {"id": "b" * 32, "status": "FAILED"},
    ]
    assert answered(url, "/overview")["jobs-finished"] == 1
    one = answered(url, "/jobs/overview")["jobs"][0]
    assert (one["jid"], one["state"], one["tasks"]["finished"]) == (RUN, "FINISHED", 3)
    whole = answered(url, f"/jobs/{RUN}")
    assert whole["vertices"][0]["metrics"]["write-records"] == 900 * 119
    assert whole["timestamps"]["FINISHED"] == whole["end-time"]
    told = answered(url, f"/jobs/{RUN}/exceptions")["exceptionHistory"]["entries"]
    assert [one["taskName"] for one in told] == [None, "subtask 1"]
    assert answered(url, f"/jobs/{RUN}/checkpoints/config")["mode"] == "exactly_once"
    assert answered(url, "/config")["features"]["web-cancel"] is False


@pytest.mark.parametrize(
    "path",
    [
        "/jobs/none",
        f"/jobs/{RUN}/checkpoints/details/999",
        f"/jobs/{RUN}/vertices",
        "/jobs/../../etc/passwd",
        "/run/none",
        "/nothing",
    ],
)
def test_unknown_paths_are_not_found_and_the_next_is_answered(url: str, path: str) -> None:
    assert asked(url, path)[0] == 404
    assert asked(url, "/")[0] == 200


def test_the_page_escapes_what_a_job_tells_and_writes_nothing(url: str, place: Path) -> None:
    before = {path: path.stat().st_mtime_ns for path in place.rglob("*")}
    status, text, _ = asked(url, "/")
    assert status == 200
    assert "<script>alert" not in text
    assert "&lt;script&gt;alert(1)" in text
    for path in ("/", "/status.json", "/jobs", f"/run/{'b' * 32}"):
        asked(url, path)
    assert {path: path.stat().st_mtime_ns for path in place.rglob("*")} == before
    assert asked(url, "/", "PATCH")[0] == 501
    assert asked(url, "/?before=x")[0] == 400


def test_a_place_without_a_history_is_shown_as_such(tmp_path: Path) -> None:
    site = JobSite(Job(str(empty(tmp_path))))
    assert "no job has begun here" in site.answer(Request("/")).text
    assert json.loads(site.answer(Request("/jobs")).text) == {"jobs": []}


def test_a_job_in_an_object_store_is_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    memory, url = Memory(), "s3://jobs/orders"
    with ObjectCheckpointStore(memory.open(url), job_id="orders") as held:
        history = History(held.objects, epoch=held.epoch)
        for event in events():
            history.on_event(event)
    found = Job(url)
    found.read = lambda: status_of(url, now=BEGIN + 500, open_objects=memory.open)
    site = JobSite(found)
    assert json.loads(site.answer(Request("/jobs")).text)["jobs"][0]["status"] == "RUNNING"
    assert "rows committed a second" in site.answer(Request("/")).text
    monkeypatch.setattr(seen, "FRESH_S", -1.0)
    found.read = lambda: status_of("s3://jobs/none", now=BEGIN, open_objects=Memory().open)
    assert json.loads(site.answer(Request("/jobs")).text) == {"jobs": []}


def test_controls_are_shown_with_which_batch_ran_with_what(place: Path, tmp_path: Path) -> None:
    control = Control("pricing", {"limit": 900}, store=str(tmp_path))
    control.decide("query-1", 0)
    control.update(limit=700)
    control.decide("query-1", 1)
    text = JobSite(Job(str(place)), str(tmp_path)).answer(Request("/")).text
    shown = " ".join(re.sub("<[^>]*>", " ", text.partition("control pricing")[2]).split())
    assert "updates update at changes by 1 " in shown
    assert re.search(r"batch update since batch .* 1 1 1 \S+ \S+ \{&#34;limit&#34;: 700\}", shown)


def test_a_history_is_read_once_for_requests_at_the_same_time(place: Path) -> None:
    found, reads = Job(str(place)), list[RunStatus]()
    usual = found.read

    def read() -> RunStatus:
        reads.append(usual())
        return reads[-1]

    found.read = read
    site = JobSite(found)
    for path in ("/", "/jobs", "/status.json", f"/jobs/{RUN}/checkpoints"):
        site.answer(Request(path))
    assert len(reads) == 1


def test_misuse_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["ui", str(tmp_path)]) == 2
    assert "holds no checkpoints" in capsys.readouterr().err
    place = os.fspath(empty(tmp_path))
    assert main(["ui", place, "--port", "99999"]) == 2
    assert main(["ui", place, "--host", "192.0.2.1", "--port", "0"]) == 2
    assert "cannot listen on 192.0.2.1" in capsys.readouterr().err


def test_each_job_of_a_file_has_its_pages(
    place: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    jobs = [("a", place), ("b", place), ("c", tmp_path / "none")]
    lines = [f"[[ingest]]\ntarget = '{name}'\ncheckpoint-dir = '{at}'\n" for name, at in jobs]
    (tmp_path / "jobs.toml").write_text("\n".join(lines))
    answers: list[str] = []

    def until_interrupted(server: Server) -> None:
        shown = capsys.readouterr()
        urls = re.findall(r" at (http\S+) ", shown.out)
        assert urls[1] == server.url
        answers.append(asked(urls[0], "/jobs")[1])
        assert "none" in shown.err
        server._server.server_close()

    monkeypatch.setattr(Server, "run_until_interrupted", until_interrupted)
    assert main(["ui", str(tmp_path / "jobs.toml"), "--port", "0"]) == 0
    assert answers
