"""A job's figures as series with names and labels, of which Prometheus and OpenTelemetry are told.

Decides names and labels, and how many series there may be: each subtask has its own up to
`SUBTASKS_MAX`, more are summed up; and of figures that users name, `NAMES_MAX` are shown of tasks,
coordinators and committer each. The library prometheus-client keeps them, in a registry of this job
alone. What the job counts comes with its events, what its tasks count is read from its report when
the series are asked for.

Every series has the job's id as a label, since a collector may look at many jobs. An operator's
figures are shown with its id; `Program.metrics` have none. A figure called `sink.rows` is the
`rows` of operator `sink`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

from epochgate.errors import UsageError
from epochgate.runtime.api.job_events import (
    CheckpointEnded,
    CommitFailed,
    Committed,
    JobEnded,
    JobEvent,
    JobListener,
    JobRestarts,
    JobStarted,
    SubtaskFailed,
    SubtasksUp,
    Warned,
)
from epochgate.runtime.api.reports import JobReport, summed

if TYPE_CHECKING:
    from prometheus_client import CollectorRegistry
    from prometheus_client.core import Metric

SUBTASKS_MAX: Final = 100
NAMES_MAX: Final = 100
STATES: Final = ("starting", "running", "restarting", "finished", "failed", "canceled")
SECONDS: Final = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0, 300.0)
"""The limits of the histograms of durations."""
Figures = Mapping[str, int | float]


class MetricsUnavailable(UsageError):
    """Metrics cannot be served or sent."""


class JobSeries(JobListener):
    """The series of one job. Raises MetricsUnavailable where prometheus-client is not installed."""

    def __init__(self) -> None:
        try:
            from prometheus_client import CollectorRegistry
        except ModuleNotFoundError:
            raise MetricsUnavailable(
                "metrics (--metrics-port, --otlp) need the package prometheus-client, which is not "
                "installed: `pip install epochgate[metrics]`"
            ) from None
        registry = CollectorRegistry()
        self._counts = _Counts(registry)
        self._now = _FiguresNow()
        registry.register(self._now)
        self._named = _OfJob(registry)

    def begin(self, report: JobReport) -> None:
        """Show the figures of this job."""
        self._now.report = report

    def on_event(self, event: JobEvent) -> None:
        """Count it."""
        if isinstance(event, JobStarted):
            self._named.job_id = event.job_id
        self._counts.on_event(event)
        if isinstance(event, Committed):
            self._now.committed = event.figures

    @property
    def job_id(self) -> str:
        """The job's id, empty until it has started."""
        return self._named.job_id

    def collect(self) -> Iterator[Metric]:
        """The series of now."""
        return self._named.collect()

    def restricted_registry(self, names: Iterable[str]) -> _OfJob:
        """Return the series of these names, as a collector may ask for."""
        return self._named.restricted_registry(names)


class _OfJob:
    """A registry's series, each with the id of the job, once that is known."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._registry, self.job_id = registry, ""

    def collect(self) -> Iterator[Metric]:
        """The series of now."""
        from prometheus_client.core import Metric

        for one in self._registry.collect():
            named = Metric(one.name, one.documentation, one.type, one.unit)
            named.samples = [
                sample._replace(labels={"job_id": self.job_id, **sample.labels})
                for sample in one.samples
            ]
            yield named

    def restricted_registry(self, names: Iterable[str]) -> _OfJob:
        """Return the series of these names, as a collector may ask for."""
        some = _OfJob(self._registry.restricted_registry(names))  # type: ignore[arg-type]
        some.job_id = self.job_id
        return some


class _Counts:
    """The figures that come with events."""

    def __init__(self, registry: CollectorRegistry) -> None:
        from prometheus_client import Counter, Enum, Gauge, Histogram, Info

        def make(kind: Any, name: str, text: str, **more: Any) -> Any:
            return kind(f"epochgate_{name}", text, registry=registry, **more)

        self._info = make(Info, "job", "The job and this start of it.")
        self._state = make(Enum, "job_state", "How the job is.", states=list(STATES))
        self._started = make(Gauge, "job_start_timestamp_seconds", "When it was started.")
        self._subtasks = make(Gauge, "job_subtasks", "How many subtasks it has.")
        self._checkpoints = make(
            Counter, "checkpoints", "Checkpoints that have ended.", labelnames=["outcome"]
        )
        for outcome in ("completed", "aborted", "unknown"):
            self._checkpoints.labels(outcome)
        self._duration = make(
            Histogram,
            "checkpoint_duration_seconds",
            "Of completed checkpoints, from trigger to end.",
            buckets=SECONDS,
        )
        self._last_id = make(Gauge, "last_checkpoint_id", "Of the last completed one.")
        self._last_at = make(
            Gauge, "last_checkpoint_timestamp_seconds", "When the last one was completed."
        )
        self._last_bytes = make(Gauge, "last_checkpoint_bytes", "Bytes of the last completed one.")
        self._commit_duration = make(
            Histogram, "commit_duration_seconds", "Of commits that succeeded.", buckets=SECONDS
        )
        self._commit_failures = make(Counter, "commit_failures", "Commits that failed.")
        self._failovers = make(
            Counter, "failovers", "Failures that led to a restart.", labelnames=["scope"]
        )
        for scope in ("subtask", "job"):
            self._failovers.labels(scope)
        self._warnings = make(Counter, "warnings", "Warnings of the job.")

    def on_event(self, event: JobEvent) -> None:
        match event:
            case JobStarted():
                self._info.info({"job_id": event.job_id, "run_id": event.run_id})
                self._state.state("starting")
                self._started.set(event.at)
                self._subtasks.set(event.parallelism)
                self._last_id.set(event.checkpoint_id)
            case SubtasksUp():
                self._state.state("running")
            case CheckpointEnded():
                self._count_checkpoint(event)
            case Committed():
                self._commit_duration.observe(event.duration_s)
            case CommitFailed():
                self._commit_failures.inc()
            case SubtaskFailed(delay_s=float() | int()):
                self._failovers.labels("subtask").inc()
            case JobRestarts(delay_s=float() | int()):
                self._failovers.labels("job").inc()
                self._state.state("restarting")
            case Warned():
                self._warnings.inc()
            case JobEnded(state=state) if state in STATES:
                self._state.state(state)
            case _:
                pass  # the others count nothing

    def _count_checkpoint(self, event: CheckpointEnded) -> None:
        self._checkpoints.labels(event.outcome).inc()
        if event.outcome == "completed":
            self._duration.observe(event.duration_s)
            self._last_id.set(event.checkpoint_id)
            self._last_at.set(event.at)
            self._last_bytes.set(event.stored_bytes)


class _FiguresNow:
    """The figures that tasks, coordinators and committer count, as a collector of
    prometheus-client.
    """

    def __init__(self) -> None:
        self.report = JobReport()
        self.committed: Figures = {}

    def describe(self) -> list[Metric]:
        """No names are known beforehand."""
        return []

    def collect(self) -> Iterator[Metric]:
        """The figures of now."""
        tasks = dict(self.report.metrics)
        if len(tasks) > SUBTASKS_MAX:
            by_subtask: dict[str, Figures] = {"all": summed(tasks)}
        else:
            by_subtask = {str(subtask): tasks[subtask] for subtask in sorted(tasks)}
        yield from _families("task", by_subtask, has_subtasks=True)
        coordinators = {
            f"{operator_id}.{name}": value
            for operator_id, held in dict(self.report.coordinator_metrics).items()
            for name, value in held.items()
        }
        yield from _families("coordinator", {"": coordinators})
        yield from _families("committer", {"": self.committed})


def _families(
    whose: str, by_subtask: Mapping[str, Figures], *, has_subtasks: bool = False
) -> Iterator[Metric]:
    """One family for each name, labelled with operator, and subtask where there are some."""
    from prometheus_client.core import GaugeMetricFamily

    families: dict[str, GaugeMetricFamily] = {}
    taken: set[tuple[str, str, str]] = set()
    for subtask, held in by_subtask.items():
        for full_name, value in held.items():
            operator, _, name = full_name.rpartition(".")
            plain = f"epochgate_{whose}_" + re.sub(r"[^a-zA-Z0-9_]", "_", name)
            # Of two names that differ in other characters alone, the first is shown.
            if (plain, operator, subtask) in taken or (
                plain not in families and len(families) >= NAMES_MAX
            ):
                continue
            taken.add((plain, operator, subtask))
            if plain not in families:
                labels = ["operator", "subtask"] if has_subtasks else ["operator"]
                families[plain] = GaugeMetricFamily(plain, f"Counted by a {whose}.", labels=labels)
            families[plain].add_metric([operator, subtask][: 1 + has_subtasks], value)
    yield from families.values()
