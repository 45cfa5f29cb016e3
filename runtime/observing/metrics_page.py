"""The series of jobs in Prometheus' text format, on a port of this machine.

Decides where they are served: unless another address is named, on the loopback address, for a
collector that runs beside the driver. The page has no password. Leaves names and labels to
`job_series`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any, Final

from epochgate.runtime.observing.job_series import JobSeries, MetricsUnavailable

if TYPE_CHECKING:
    from prometheus_client.core import Metric

LOOPBACK: Final = "127.0.0.1"


class _Served:
    """A page at http://HOST:PORT/metrics."""

    def __init__(self, port: int, host: str, registry: Any) -> None:
        from prometheus_client import start_http_server

        try:
            self._server, self._thread = start_http_server(port, host, registry)
        except (OSError, OverflowError) as error:
            raise MetricsUnavailable(
                f"the page of metrics cannot be served on {host}:{port}: {error}. Choose "
                "another --metrics-port (metrics_port in Python), or 0 for a free one, and for "
                "--metrics-host (metrics_host) an address of this machine, or 0.0.0.0 for all"
            ) from error
        shown = f"[{host}]" if ":" in host else host
        self.url = f"http://{shown}:{self._server.server_port}/metrics"
        self._is_closed = False

    def close(self) -> None:
        if not self._is_closed:
            self._is_closed = True
            self._server.shutdown()
            self._server.server_close()
            self._thread.join()


class MetricsPage(JobSeries):
    """Serves the series of a job until `close`. port: 0 takes a free one. host: an address of this
    machine, such as 0.0.0.0 for all of IPv4 and :: for all.

    Raises MetricsUnavailable where prometheus-client is not installed, or the port is taken.
    """

    def __init__(self, port: int = 0, host: str = LOOPBACK) -> None:
        super().__init__()
        self._page = _Served(port, host, self)

    @property
    def url(self) -> str:
        """The address of the page."""
        return self._page.url

    def close(self) -> None:
        """Serve no more."""
        self._page.close()


class JobsPage:
    """Serves the series of several jobs, `port` and `host` as for `MetricsPage`, which it raises
    as.
    """

    def __init__(self, port: int = 0, host: str = LOOPBACK) -> None:
        JobSeries()  # says what is not installed
        self._jobs: list[JobSeries] = []
        self._page = _Served(port, host, self)

    @property
    def url(self) -> str:
        """The address of the page."""
        return self._page.url

    def add(self) -> JobSeries:
        """Make the listener of one more job."""
        self._jobs.append(JobSeries())
        return self._jobs[-1]

    def collect(self) -> Iterator[Metric]:
        """The series of now, those of one name together."""
        return _merged(one.collect for one in self._jobs)

    def restricted_registry(self, names: Iterable[str]) -> JobsPage:
        """Return the series of these names, as a collector may ask for."""
        wanted = list(names)
        some = object.__new__(JobsPage)
        some._jobs = [one.restricted_registry(wanted) for one in self._jobs]  # type: ignore[misc]
        return some

    def close(self) -> None:
        """Serve no more."""
        self._page.close()


def _merged(jobs: Iterable[Callable[[], Iterator[Metric]]]) -> Iterator[Metric]:
    found: dict[str, Metric] = {}
    for collect in jobs:
        for metric in collect():
            if metric.name in found:
                found[metric.name].samples.extend(metric.samples)
            else:
                found[metric.name] = metric
    yield from found.values()
