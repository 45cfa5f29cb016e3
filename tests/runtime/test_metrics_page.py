"""A job's figures are served for Prometheus, on the loopback address, in a bounded number."""

from __future__ import annotations

import re
import socket
import sys
import threading
import urllib.request
from collections.abc import Iterator
from typing import Any

import pytest
from prometheus_client import REGISTRY
from prometheus_client.parser import text_string_to_metric_families

from epochgate.runtime import CheckpointEnded, JobEnded, JobRestarts
from epochgate.runtime.api.operator import metrics_of
from epochgate.runtime.api.reports import JobReport
from epochgate.runtime.observing.job_series import NAMES_MAX, SUBTASKS_MAX, MetricsUnavailable
from epochgate.runtime.observing.listening import HostWithoutPort, Listening
from epochgate.runtime.observing.metrics_page import MetricsPage
from epochgate.runtime.store import CheckpointShelf, InMemoryCheckpointStore
from epochgate.runtime.testing.scripted import ScriptedOperator, ScriptedProgram
from tests.runtime.scripted import Script, simulated
from tests.runtime.test_history import WHOLE

Samples = dict[tuple[str, tuple[tuple[str, str], ...]], float]


@pytest.fixture
def page() -> Iterator[MetricsPage]:
    page = MetricsPage()
    yield page
    page.close()


def shown(page: MetricsPage) -> Samples:
    with urllib.request.urlopen(page.url, timeout=60) as answer:
        assert answer.headers["Content-Type"].startswith("text/plain; version=")
        text = answer.read().decode()
    samples = [one for family in text_string_to_metric_families(text) for one in family.samples]
    assert len({one.labels.pop("job_id") for one in samples}) == 1
    return {(one.name, tuple(sorted(one.labels.items()))): one.value for one in samples}


def value(samples: Samples, name: str, **labels: str) -> float:
    return samples[f"epochgate_{name}", tuple(sorted(labels.items()))]


def test_what_a_job_tells_is_counted(page: MetricsPage) -> None:
    for event in WHOLE:
        page.on_event(event)
    page.on_event(CheckpointEnded(13.0, 3, "aborted", 0.5, reason="too late"))
    samples = shown(page)
    assert value(samples, "checkpoints_total", outcome="completed") == 2
    assert value(samples, "checkpoints_total", outcome="aborted") == 1
    assert value(samples, "checkpoint_duration_seconds_count") == 2
    assert value(samples, "last_checkpoint_id") == 2
    assert value(samples, "last_checkpoint_bytes") == 1500
    assert value(samples, "failovers_total", scope="subtask") == 1
    assert value(samples, "failovers_total", scope="job") == 0
    assert value(samples, "commit_duration_seconds_count") == 2
    assert value(samples, "warnings_total") == 1
    assert value(samples, "job_info", run_id="run-1") == 1
    assert value(samples, "job_state", epochgate_job_state="running") == 1
    assert value(samples, "committer_rows_committed", operator="") == 180


def test_every_series_names_the_job(page: MetricsPage) -> None:
    page.on_event(WHOLE[0])
    for url in (page.url, f"{page.url}?name[]=epochgate_job_subtasks"):
        with urllib.request.urlopen(url, timeout=60) as answer:
            text = answer.read().decode()
        families = list(text_string_to_metric_families(text))
        assert {one.labels["job_id"] for each in families for one in each.samples} == {"job"}
    assert [each.name for each in families] == ["epochgate_job_subtasks"]


def test_the_state_follows_the_job(page: MetricsPage) -> None:
    def state() -> list[str]:
        samples = shown(page).items()
        return [
            labels[0][1]
            for (name, labels), of in samples
            if name == "epochgate_job_state" and of == 1
        ]

    seen = []
    for event in (
        *WHOLE[:2],
        JobRestarts(14.0, "no", 1.0),
        WHOLE[1],
        JobEnded(20.0, "failed", "no", 2, 1.0, 2, 0, 0, 1),
    ):
        page.on_event(event)
        seen += state()
    assert seen == ["starting", "running", "restarting", "running", "failed"]


def test_figures_of_tasks_and_coordinators_are_those_of_the_moment(page: MetricsPage) -> None:
    report = JobReport()
    page.begin(report)
    report.metrics[0] = {"rows_read": 30, "sink.rows": 20}
    report.metrics[1] = {"rows_read": 31, "sink.rows": 21}
    report.coordinator_metrics["source"] = {"files found": 9}
    samples = shown(page)
    assert value(samples, "task_rows_read", operator="", subtask="1") == 31
    assert value(samples, "task_rows", operator="sink", subtask="0") == 20
    assert value(samples, "coordinator_files_found", operator="source") == 9
    report.metrics[1] = {"rows_read": 40}
    assert value(shown(page), "task_rows_read", operator="", subtask="1") == 40


def test_the_number_of_series_is_bounded(page: MetricsPage) -> None:
    report = JobReport()
    page.begin(report)
    for subtask in range(SUBTASKS_MAX + 1):
        report.metrics[subtask] = {f"figure_{n}": 2 for n in range(2 * NAMES_MAX)}
    report.coordinator_metrics["op"] = {"a b": 1, "a-b": 2}
    samples = shown(page)
    tasks = [(name, labels) for name, labels in samples if name.startswith("epochgate_task_")]
    assert len(tasks) == NAMES_MAX
    assert value(samples, "task_figure_0", operator="", subtask="all") == 2 * (SUBTASKS_MAX + 1)
    assert value(samples, "coordinator_a_b", operator="op") == 1


def test_the_process_own_registry_is_left_alone_and_two_jobs_do_not_meet(page: MetricsPage) -> None:
    before = {family.name for family in REGISTRY.collect()}
    other = MetricsPage()
    page.on_event(WHOLE[0])
    assert ("epochgate_job_info", (("run_id", "run-1"),)) in shown(page)
    assert ("epochgate_job_info", (("run_id", "run-1"),)) not in shown(other)
    other.close()
    assert {family.name for family in REGISTRY.collect()} == before


def test_a_port_that_is_taken_or_none_is_refused_by_the_flags_name() -> None:
    with (
        socket.create_server(("127.0.0.1", 0)) as taken,
        pytest.raises(MetricsUnavailable, match="--metrics-port"),
    ):
        MetricsPage(taken.getsockname()[1])
    with pytest.raises(MetricsUnavailable, match="--metrics-port"):
        MetricsPage(70_000)


def test_without_the_library_the_message_says_how_to_get_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "prometheus_client", None)
    with pytest.raises(MetricsUnavailable, match=r"pip install epochgate\[metrics\]"):
        MetricsPage()


def test_the_page_is_gone_with_its_job() -> None:
    before = set(threading.enumerate())
    store = InMemoryCheckpointStore(CheckpointShelf(), job_id="job")
    heard_by = Listening([], store, metrics=(0, None))
    assert heard_by.metrics_url is not None
    job = simulated(Script(), listeners=heard_by.listeners)
    job.settle()
    with urllib.request.urlopen(heard_by.metrics_url, timeout=60) as answer:
        assert b"epochgate_job_subtasks" in answer.read()
    job.master.cancel("enough")
    job.flow()
    job.master.close()
    with pytest.raises(OSError, match="refused"):
        urllib.request.urlopen(heard_by.metrics_url, timeout=60)
    assert set(threading.enumerate()) <= before


def test_a_job_that_could_not_be_started_leaves_no_page() -> None:
    store = InMemoryCheckpointStore(CheckpointShelf(), job_id="job")
    heard_by = Listening([], store, metrics=(0, None))
    assert heard_by.metrics_url is not None
    with pytest.raises(LookupError), heard_by.closed_on_error():
        raise LookupError("no slots")
    with pytest.raises(OSError, match="refused"):
        urllib.request.urlopen(heard_by.metrics_url, timeout=60)


class Counting(ScriptedOperator):
    def metrics(self) -> dict[str, Any]:
        return {"rows": 3}


def test_an_operators_figures_carry_its_id() -> None:
    script = Script()
    program = ScriptedProgram({"op": Counting(script)}, script)
    assert metrics_of(program) == {**program.metrics(), "op.rows": 3}


def test_another_address_than_loopback_serves_the_page_to_other_machines() -> None:
    page = MetricsPage(0, "0.0.0.0")
    assert re.fullmatch(r"http://0\.0\.0\.0:\d+/metrics", page.url)
    own = socket.gethostbyname(socket.gethostname())
    with urllib.request.urlopen(page.url.replace("0.0.0.0", own), timeout=60) as answer:
        assert b"epochgate_job_subtasks" in answer.read()
    page.close()


def test_an_address_that_is_no_address_of_this_machine_is_refused() -> None:
    with pytest.raises(MetricsUnavailable, match="--metrics-host"):
        MetricsPage(0, "192.0.2.1")  # of a network that is for documentation alone


def test_an_address_without_a_port_is_refused_since_nothing_would_be_served() -> None:
    store = InMemoryCheckpointStore(CheckpointShelf(), job_id="job")
    with pytest.raises(HostWithoutPort, match="no metrics_port"):
        Listening([], store, metrics=(None, "0.0.0.0"))
