"""The series of a job, sent to a collector of OpenTelemetry (OTLP over HTTP, as protobuf).

Decides when they are sent: each `INTERVAL_S` seconds and once at the end, on a thread of its own.
The job never waits for a collector: one that is down or hangs costs the figures of that moment,
since each sending has all counts so far, and the log tells once that it fails and once that it
works again. Names and labels are those of the page for Prometheus, from the same series. Headers
and a certificate come from the environment, as OpenTelemetry names them.
"""

from __future__ import annotations

import logging
import os
import ssl
import threading
import time
import urllib.request
from collections import defaultdict
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import unquote, urlsplit

from epochgate.runtime.api.reports import JobReport
from epochgate.runtime.observing.job_series import JobSeries, MetricsUnavailable

if TYPE_CHECKING:
    from prometheus_client.core import Metric
    from prometheus_client.samples import Sample

INTERVAL_S: Final = 10.0
ANSWER_S: Final = 10.0
"""A collector has so long for each step of an answer."""
ANSWER_BYTES_MAX: Final = 1 << 20
LAST_S: Final = 3.0
"""The end of the job waits so long for the last sending."""
PATH: Final = "/v1/metrics"
_CUMULATIVE: Final = 2
_log = logging.getLogger(__name__)


class OtlpSender(JobSeries):
    """Sends the series of a job to `endpoint`, an http or https URL, until `close`.

    Raises MetricsUnavailable for another URL, or where opentelemetry-proto is not installed.
    """

    def __init__(self, endpoint: str, *, interval_s: float = INTERVAL_S) -> None:
        self.url = url_of(endpoint)
        try:
            import opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 as service
        except ModuleNotFoundError:
            raise MetricsUnavailable(
                "sending metrics (--otlp) needs the package opentelemetry-proto, which is not "
                "installed: `pip install epochgate[otlp]`"
            ) from None
        super().__init__()
        self._service, self._interval_s = service, interval_s
        self._tls = _tls() if self.url.startswith("https:") else None
        self._is_closing = threading.Event()
        self._is_failing = False
        self._thread = threading.Thread(target=self._run, name="epochgate-otlp", daemon=True)

    def begin(self, report: JobReport) -> None:
        """Send the figures of this job from now on."""
        super().begin(report)
        self._thread.start()

    def close(self) -> None:
        """Send once more, and wait `LAST_S` seconds at most for that."""
        self._is_closing.set()
        if self._thread.is_alive():
            self._thread.join(LAST_S)

    def _run(self) -> None:
        is_last = False
        while not is_last:
            is_last = self._is_closing.wait(self._interval_s)
            if not self.job_id:
                continue  # nothing has begun that could be told of
            try:
                self._send()
            except Exception as error:  # noqa: BLE001  a thread that ends would send no more
                self._tell_failing(error)
            else:
                self._tell_working()

    def _send(self) -> None:
        request = urllib.request.Request(
            self.url,
            data=self._encoded(),
            headers={"Content-Type": "application/x-protobuf", **_headers()},
            method="POST",
        )
        with urllib.request.urlopen(request, timeout=ANSWER_S, context=self._tls) as answer:
            is_protobuf = "protobuf" in answer.headers.get("Content-Type", "")
            told = answer.read(ANSWER_BYTES_MAX) if is_protobuf else b""
        refused = self._service.ExportMetricsServiceResponse.FromString(told).partial_success
        if refused.rejected_data_points:
            raise ValueError(
                f"{refused.rejected_data_points} series were refused: {refused.error_message}"
            )

    def _tell_failing(self, error: Exception) -> None:
        if not self._is_failing:
            self._is_failing = True
            told = str(error) if isinstance(error, (OSError, ValueError)) else repr(error)
            reason = getattr(error, "reason", None) or told
            _log.warning(
                "metrics cannot be sent to %s: %s. The job goes on, and so do the tries, each with "
                "all counts so far",
                self.url,
                reason,
            )

    def _tell_working(self) -> None:
        if self._is_failing:
            self._is_failing = False
            _log.warning("metrics can be sent to %s again", self.url)

    def _encoded(self) -> bytes:
        request = self._service.ExportMetricsServiceRequest()
        resource = request.resource_metrics.add()
        for name, value in _resource().items():
            resource.resource.attributes.add(key=name).value.string_value = value
        scope = resource.scope_metrics.add()
        scope.scope.name = "epochgate"
        now_ns = time.time_ns()
        for metric in self.collect():
            _add(scope.metrics, metric, now_ns)
        encoded: bytes = request.SerializeToString()
        return encoded


def url_of(endpoint: str) -> str:
    """The URL to send to: a collector's address alone is followed by the usual path.

    >>> url_of("http://collector:4318"), url_of("https://c/otlp/v1/metrics")
    ('http://collector:4318/v1/metrics', 'https://c/otlp/v1/metrics')
    """
    parts = urlsplit(endpoint)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise MetricsUnavailable(
            f"--otlp (otlp in Python) is {endpoint!r}; give the URL of a collector that takes OTLP "
            "over HTTP, such as http://localhost:4318"
        )
    return endpoint if parts.path.strip("/") else endpoint.rstrip("/") + PATH


def _headers() -> dict[str, str]:
    """Those of the environment, such as a token."""
    name = "OTEL_EXPORTER_OTLP_METRICS_HEADERS"
    text = os.environ.get(name) or os.environ.get("OTEL_EXPORTER_OTLP_HEADERS", "")
    return _pairs(text)


def _resource() -> dict[str, str]:
    given = _pairs(os.environ.get("OTEL_RESOURCE_ATTRIBUTES", ""))
    name = os.environ.get("OTEL_SERVICE_NAME") or given.get("service.name", "epochgate")
    return {**given, "service.name": name}


def _pairs(text: str) -> dict[str, str]:
    pairs = (one.partition("=") for one in text.split(",") if "=" in one)
    return {name.strip(): unquote(value.strip()) for name, _, value in pairs}


def _tls() -> ssl.SSLContext:
    name = "OTEL_EXPORTER_OTLP_CERTIFICATE"
    path = os.environ.get(name)
    try:
        return ssl.create_default_context(cafile=path)
    except OSError as error:
        raise MetricsUnavailable(
            f"{name} in the environment is {path!r}, and no certificates can be read from it: "
            f"{error}. Name a file of them in PEM, or unset it to take those of the system"
        ) from error


def _add(metrics: Any, metric: Metric, now_ns: int) -> None:
    """Add what Prometheus would be told of one family, under the same names."""
    begun = _begun(metric)
    if metric.type == "histogram":
        _add_histogram(metrics, metric, begun, now_ns)
        return
    by_name: dict[str, list[Sample]] = defaultdict(list)
    for sample in metric.samples:
        if not sample.name.endswith("_created"):
            by_name[sample.name].append(sample)
    for name, samples in by_name.items():
        added = metrics.add(name=name, description=metric.documentation)
        is_sum = metric.type == "counter"
        if is_sum:
            added.sum.is_monotonic, added.sum.aggregation_temporality = True, _CUMULATIVE
        points = added.sum.data_points if is_sum else added.gauge.data_points
        for sample in samples:
            point = points.add(time_unix_nano=now_ns, as_double=sample.value)
            if is_sum:
                point.start_time_unix_nano = begun.get(_key(sample.labels), 0)
            _label(point, sample.labels)


def _add_histogram(metrics: Any, metric: Metric, begun: Mapping[Any, int], now_ns: int) -> None:
    added = metrics.add(name=metric.name, description=metric.documentation)
    added.histogram.aggregation_temporality = _CUMULATIVE
    for labels, samples in _by_labels(metric).items():
        point = added.histogram.data_points.add(
            time_unix_nano=now_ns, start_time_unix_nano=begun.get(labels, 0)
        )
        before = 0
        for sample in samples:
            if sample.name.endswith("_bucket"):
                point.bucket_counts.append(int(sample.value) - before)
                before = int(sample.value)
                if sample.labels["le"] != "+Inf":
                    point.explicit_bounds.append(float(sample.labels["le"]))
            elif sample.name.endswith("_count"):
                point.count = int(sample.value)
            elif sample.name.endswith("_sum"):
                point.sum = sample.value
        _label(point, dict(labels))


def _by_labels(metric: Metric) -> dict[Any, list[Sample]]:
    found: dict[Any, list[Sample]] = defaultdict(list)
    for sample in metric.samples:
        found[_key(sample.labels)].append(sample)
    return found


def _begun(metric: Metric) -> dict[Any, int]:
    """The moment at which each series began, in nanoseconds, by its labels."""
    return {
        _key(one.labels): int(one.value * 1e9)
        for one in metric.samples
        if one.name.endswith("_created")
    }


def _key(labels: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    return tuple(pair for pair in sorted(labels.items()) if pair[0] != "le")


def _label(point: Any, labels: Mapping[str, str]) -> None:
    for name, value in labels.items():
        point.attributes.add(key=name).value.string_value = value
