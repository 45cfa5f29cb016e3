"""A job's figures arrive at a collector of OpenTelemetry, and a job never waits for one."""

from __future__ import annotations

import logging
import socket
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import (
    ExportMetricsServiceRequest,
    ExportMetricsServiceResponse,
)

from epochgate.runtime.api.reports import JobReport
from epochgate.runtime.observing import otlp
from epochgate.runtime.observing.job_series import JobSeries, MetricsUnavailable
from epochgate.runtime.observing.listening import Listening
from epochgate.runtime.observing.otlp import OtlpSender
from epochgate.runtime.store import CheckpointShelf, InMemoryCheckpointStore
from tests.runtime.test_history import WHOLE

Point = tuple[str, tuple[tuple[str, str], ...]]


class Collector:
    """Takes OTLP over HTTP on the loopback address; `answer` is what it says."""

    def __init__(self) -> None:
        self.taken: list[ExportMetricsServiceRequest] = []
        self.paths: list[tuple[str, str | None]] = []
        self.status, self.answer = 200, ExportMetricsServiceResponse()
        self.has_taken = threading.Event()
        collector = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                data = self.rfile.read(int(self.headers["Content-Length"]))
                assert self.headers["Content-Type"] == "application/x-protobuf"
                collector.paths.append((self.path, self.headers.get("Authorization")))
                collector.taken.append(ExportMetricsServiceRequest.FromString(data))
                told = collector.answer.SerializeToString()
                self.send_response(collector.status)
                self.send_header("Content-Type", "application/x-protobuf")
                self.send_header("Content-Length", str(len(told)))
                self.end_headers()
                self.wfile.write(told)
                collector.has_taken.set()

            def log_message(self, format: str, *args: Any) -> None: ...

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        self.thread = threading.Thread(target=self.server.serve_forever, daemon=True)
        self.thread.start()

    def close(self) -> None:
        self.server.shutdown()
        self.server.server_close()
        self.thread.join()


@pytest.fixture
def collector() -> Iterator[Collector]:
    made = Collector()
    yield made
    made.close()


def labels(point: Any) -> tuple[tuple[str, str], ...]:
    return tuple(sorted((one.key, one.value.string_value) for one in point.attributes))


def received(request: ExportMetricsServiceRequest) -> dict[Point, float]:
    """The figures under the names that Prometheus would see."""
    found: dict[Point, float] = {}
    (resource,) = request.resource_metrics
    (scope,) = resource.scope_metrics
    for metric in scope.metrics:
        for point in [*metric.gauge.data_points, *metric.sum.data_points]:
            found[metric.name, labels(point)] = point.as_double
        for point in metric.histogram.data_points:
            found[f"{metric.name}_count", labels(point)] = point.count
            found[f"{metric.name}_sum", labels(point)] = point.sum
            total = 0
            bounds = [*(str(one) for one in point.explicit_bounds), "+Inf"]
            for bound, count in zip(bounds, point.bucket_counts, strict=True):
                total += count
                place = tuple(sorted([*labels(point), ("le", bound)]))
                found[f"{metric.name}_bucket", place] = total
    return found


def of_prometheus(series: JobSeries) -> dict[Point, float]:
    return {
        (one.name, tuple(sorted(one.labels.items()))): one.value
        for metric in series.collect()
        for one in metric.samples
        if not one.name.endswith("_created")
    }


def told(sender: OtlpSender) -> JobReport:
    report = JobReport()
    sender.begin(report)
    for event in WHOLE:
        sender.on_event(event)
    report.metrics[0] = {"rows_read": 30, "sink.rows": 20}
    report.coordinator_metrics["source"] = {"files_waiting": 9}
    return report


def test_a_collector_is_told_what_the_page_shows(
    collector: Collector, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_HEADERS", "Authorization=Bearer%20secret")
    monkeypatch.setenv("OTEL_RESOURCE_ATTRIBUTES", "deployment.environment=test")
    sender = OtlpSender(collector.url, interval_s=60)
    told(sender)
    sender.close()
    (request,) = collector.taken
    assert received(request) == of_prometheus(sender)
    assert ("epochgate_checkpoints_total", (("job_id", "job"), ("outcome", "completed"))) in (
        received(request)
    )
    assert collector.paths == [("/v1/metrics", "Bearer secret")]
    attributes = labels(request.resource_metrics[0].resource)
    assert attributes == (("deployment.environment", "test"), ("service.name", "epochgate"))
    counters = [one for one in request.resource_metrics[0].scope_metrics[0].metrics if one.sum]
    assert all(point.start_time_unix_nano for one in counters for point in one.sum.data_points)


def test_a_job_has_a_sender_where_one_is_asked_for(collector: Collector) -> None:
    store = InMemoryCheckpointStore(CheckpointShelf(), job_id="job")
    listening = Listening([], store, False, otlp=collector.url)
    for one in listening.listeners:
        one.begin(JobReport())
        one.on_event(WHOLE[0])
        one.close()
    (request,) = collector.taken
    assert ("epochgate_job_subtasks", (("job_id", "job"),)) in received(request)


def test_it_is_told_again_and_again(collector: Collector) -> None:
    sender = OtlpSender(f"{collector.url}/v1/metrics", interval_s=0.05)
    told(sender)
    for _ in range(3):
        collector.has_taken.clear()
        assert collector.has_taken.wait(30)
    sender.close()
    assert {path for path, _ in collector.paths} == {"/v1/metrics"}


@pytest.mark.parametrize("how", ["down", "refuses", "rejects"])
def test_a_collector_that_fails_is_told_once_and_once_when_it_works(
    collector: Collector, caplog: pytest.LogCaptureFixture, how: str
) -> None:
    caplog.set_level(logging.WARNING, "epochgate")
    url = collector.url
    if how == "down":
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            url = f"http://127.0.0.1:{free.getsockname()[1]}"
    elif how == "refuses":
        collector.status = 503
    else:
        collector.answer.partial_success.rejected_data_points = 7
        collector.answer.partial_success.error_message = "too many"
    sender = OtlpSender(url, interval_s=0.02)
    told(sender)
    expected = {"down": "Connection refused", "refuses": "Service Unavailable"}
    for _ in range(3000):
        if caplog.messages:
            break
        time.sleep(0.01)
    assert expected.get(how, "7 series were refused: too many") in caplog.messages[0]
    if how != "down":
        collector.status, collector.answer = 200, ExportMetricsServiceResponse()
        for _ in range(3000):
            if len(caplog.messages) == 2:
                break
            time.sleep(0.01)
        assert caplog.messages[1:] == [f"metrics can be sent to {url}/v1/metrics again"]
    sender.close()
    assert len(caplog.messages) == (1 if how == "down" else 2)


def test_a_collector_that_hangs_holds_up_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(otlp, "LAST_S", 0.2)
    with socket.create_server(("127.0.0.1", 0)) as hanging:
        sender = OtlpSender(f"http://127.0.0.1:{hanging.getsockname()[1]}", interval_s=0.01)
        told(sender)
        connection, _ = hanging.accept()
        for event in WHOLE:
            sender.on_event(event)
        before = time.monotonic()
        sender.close()
        assert time.monotonic() - before < 5
        connection.close()


@pytest.mark.parametrize("url", ["collector:4318", "grpc://collector:4317", "http://"])
def test_what_is_no_url_of_a_collector_is_refused(url: str) -> None:
    with pytest.raises(MetricsUnavailable, match="give the URL of a collector"):
        OtlpSender(url)


def test_what_is_not_installed_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    name = "opentelemetry.proto.collector.metrics.v1.metrics_service_pb2"
    monkeypatch.setitem(__import__("sys").modules, name, None)
    with pytest.raises(MetricsUnavailable, match=r"pip install epochgate\[otlp\]"):
        OtlpSender("http://localhost:4318")


def test_certificates_that_cannot_be_read_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_CERTIFICATE", "/no/such.pem")
    with pytest.raises(MetricsUnavailable, match=r"OTEL_EXPORTER_OTLP_CERTIFICATE.*no/such.pem"):
        OtlpSender("https://localhost:4318")


def test_figures_that_cannot_be_told_once_do_not_end_the_sending(
    collector: Collector, caplog: pytest.LogCaptureFixture
) -> None:
    sender = OtlpSender(collector.url, interval_s=0.05)
    report = told(sender)
    report.coordinator_metrics["sink"] = None  # type: ignore[assignment]
    for _ in range(3000):
        if caplog.messages:
            break
        time.sleep(0.01)
    assert "cannot be sent" in caplog.messages[0]
    del report.coordinator_metrics["sink"]
    collector.has_taken.clear()
    assert collector.has_taken.wait(30)
    sender.close()
