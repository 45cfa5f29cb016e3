"""A pipeline: source, map and sink, with coordinators beside them, as one Spark job.

Decides what fits together before anything runs, and puts the parts into a job's configuration and
program. Leaves running to `run_job`, and everything about the parts to themselves. On the driver;
what the tasks need of the parts travels to them.

    limit = Setting("limit", 900)
    pipeline = Pipeline(source=orders, map=check, sink=write, coordinators=[limit])
    result = pipeline.run(spark, "checkpoints/orders", parallelism=4)
"""

from __future__ import annotations

import inspect
import os
import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from typing import Any

from epochgate.errors import EpochgateError, UsageError
from epochgate.runtime.api.committer import Committer
from epochgate.runtime.api.configuration import JobConfiguration
from epochgate.runtime.api.coordinator import CoordinatorProvider
from epochgate.runtime.api.reports import JobResult
from epochgate.runtime.api.sink import Sink, SinkStart
from epochgate.runtime.api.sink_operator import SinkOperator
from epochgate.runtime.objects.client import ObjectStore, is_url, open_url
from epochgate.runtime.pipeline import (
    IN_FLIGHT,
    MAP,
    SINK,
    SOURCE,
    CoordinatedOperator,
    FunctionCommitter,
    MapOperator,
    PipelineProgram,
    RateLimit,
    RecordSink,
    Setting,
    redistributed,
)
from epochgate.runtime.savepoints import begin_from, read_savepoint
from epochgate.runtime.shell.post_commits import AfterCommit
from epochgate.runtime.sink_start import sink_start
from epochgate.runtime.source import Source, SourceOperator, SourceProvider
from epochgate.runtime.store import (
    CheckpointStore,
    DirectoryCheckpointStore,
    ObjectCheckpointStore,
)
from epochgate.spark.job import JobHandle, run_job
from epochgate.spark.session import validate_session

OWN = (SOURCE, MAP, IN_FLIGHT, SINK)
RUN_OPTIONS = (
    "by_value",
    "has_history",
    "heartbeat_interval_s",
    "heartbeat_timeout_s",
    "detection",
    "in_front",
    "journal",
    "listeners",
    "message_bytes_max",
    "metrics_port",
    "port",
    "wire",
)


class PipelineMisconfigured(UsageError):
    """The parts of a pipeline do not fit together."""


class UrlNotSupported(UsageError):
    """Checkpoints cannot be kept at this URL."""


class PipelineFailed(EpochgateError):
    """The job has failed or was canceled; `result` is its JobResult."""

    def __init__(self, message: str, result: JobResult) -> None:
        super().__init__(message)
        self.result = result


@dataclass(frozen=True)
class PreparedJob:
    """One start of a pipeline: what a job is made of."""

    configuration: JobConfiguration
    program: Callable[[int], PipelineProgram]
    committer: Committer
    after_commit: AfterCommit | None = None


@dataclass(frozen=True, kw_only=True)
class Pipeline:
    """A job made of ready parts; docs/jobs.md shows one.

    source: yields batches. map: a function from a batch to a batch, to an iterator of batches, or
    to None; it gets each `Setting` as the argument with its name. Or a class derived from
    `MapOperator`, which each attempt instantiates. sink: a `Sink`; or a function
    `write(checkpoint_id, records)` or a `Committer`, which get the records on the driver as plain
    values. coordinators: settings, rate limits, other `CoordinatedOperator`s, and the provider of
    the map operator's own coordinator (operator id `map`). after_commit: called with each visible
    checkpoint and its committables, as in `run_job`.

    Raises PipelineMisconfigured.
    """

    source: Source
    map: Callable[..., Any] | type[MapOperator] | None = None
    sink: Sink | Committer | Callable[[int, list[Any]], None]
    coordinators: Sequence[CoordinatorProvider] = ()
    after_commit: AfterCommit | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.source, Source):
            raise PipelineMisconfigured(
                f"source is {self.source!r}; give a Source, or make one of two functions with "
                "FunctionSource(look, read)"
            )
        if self.map is not None and not callable(self.map):
            raise PipelineMisconfigured(
                f"map is {self.map!r}; give a function of a batch, or a class derived from "
                "MapOperator"
            )
        if not (isinstance(self.sink, Sink | Committer) or callable(self.sink)):
            raise PipelineMisconfigured(
                f"sink is {self.sink!r}; give a Sink, a Committer, or a function of a checkpoint "
                "id and the records"
            )
        for provider in self.coordinators:
            self._check_coordinator(provider)
        self._check_map()

    def _check_coordinator(self, provider: CoordinatorProvider) -> None:
        if not isinstance(provider, CoordinatorProvider):
            raise PipelineMisconfigured(
                f"coordinators holds {provider!r}; give a Setting, a RateLimit, or another "
                "CoordinatorProvider"
            )
        operator_id = provider.operator_id
        if isinstance(provider, CoordinatedOperator):
            if operator_id in OWN:
                raise PipelineMisconfigured(
                    f"the operator id {operator_id!r} is the pipeline's own; name it otherwise"
                )
        elif operator_id != MAP or not self._has_map_operator:
            raise PipelineMisconfigured(
                f"the coordinator {operator_id!r} has no operator in the tasks: derive its "
                "provider from CoordinatedOperator, which makes both; or give it the operator id "
                "'map' and a map that is derived from MapOperator"
            )

    def _check_map(self) -> None:
        names = [setting.name for setting in self._settings]
        if not names or self.map is None:
            if names:
                raise PipelineMisconfigured(
                    f"the settings {names} need a map that takes them; give a map with arguments "
                    "of these names"
                )
            return
        function = self.map.map if self._has_map_operator else self.map  # type: ignore[union-attr]
        given = (None, None) if self._has_map_operator else (None,)
        try:
            inspect.signature(function).bind(*given, **dict.fromkeys(names))
        except TypeError as error:
            raise PipelineMisconfigured(
                f"the map {getattr(function, '__qualname__', function)}"
                f"{inspect.signature(function)} is called with a batch and the settings {names} "
                f"by name: {error}"
            ) from None

    @property
    def _has_map_operator(self) -> bool:
        return isinstance(self.map, type) and issubclass(self.map, MapOperator)

    @property
    def _settings(self) -> list[Setting]:
        found = [one for one in self.coordinators if isinstance(one, Setting)]
        return [one for one in found if not isinstance(one, RateLimit)]

    def prepared(self, start: SinkStart, parallelism: int = 4, **settings: Any) -> PreparedJob:
        """Return the parts of one start; `settings` are further fields of `JobConfiguration`.

        The committer holds the sink's target: close it if the job is not started. Raises
        JobMisconfigured, and the errors of the sink's `create_committer`.
        """
        sink = self._as_sink()
        beside = tuple(one for one in self.coordinators if isinstance(one, CoordinatedOperator))
        own = (SOURCE, SINK, *([MAP, IN_FLIGHT] if self._has_map_operator else []))
        ways = {IN_FLIGHT: redistributed, **settings.pop("redistribute", {})}
        committer = sink.create_committer(start)
        try:
            writers = sink.create_coordinator(SINK, committer)
            providers = [SourceProvider(SOURCE, self.source), *self.coordinators]
            configuration = JobConfiguration(
                start.job_id,
                parallelism,
                (*providers, *([] if writers is None else [writers])),
                start.run_id,
                task_operators=(*own, *(one.operator_id for one in beside)),
                redistribute=ways,
                **settings,
            )
        except BaseException:
            committer.close()
            raise
        program = _ProgramFactory(self.source, self.map, sink, beside)
        return PreparedJob(configuration, program, committer, self.after_commit)

    def _as_sink(self) -> Sink:
        if isinstance(self.sink, Sink):
            return self.sink
        if isinstance(self.sink, Committer):
            return RecordSink(self.sink)
        return RecordSink(FunctionCommitter(self.sink))

    def start(
        self,
        spark: Any,
        checkpoints: str | os.PathLike[str],
        *,
        parallelism: int = 4,
        job_id: str | None = None,
        from_savepoint: str | os.PathLike[str] | None = None,
        retained: int = 3,
        **options: Any,
    ) -> JobHandle:
        """Start the job in the session `spark`; return when it is submitted.

        checkpoints: the directory of this job's checkpoints, or a URL in an object store. A later
        start restores the newest of them. job_id: by default the last part of that path.
        from_savepoint: the place of a savepoint of this job, from which new checkpoints begin; the
        job id is then that of the savepoint. retained: the number of checkpoints that are kept.
        options: further fields of `JobConfiguration`, such as `checkpoint_interval_s`, and of
        `run_job` (`by_value`, `listeners`, `port`, `wire`, `metrics_port`, `has_history`,
        `journal`, `detection`, heartbeats).

        Raises JobMisconfigured, UrlNotSupported, TypeError for an unknown option, ValueError for
        `retained` below 1, and the errors of `run_job`, `begin_from`, the sink's `create_committer`
        and the checkpoint store.
        """
        run = {name: options.pop(name) for name in RUN_OPTIONS if name in options}
        known = {field.name for field in fields(JobConfiguration)} - {
            "job_id",
            "parallelism",
            "providers",
            "task_operators",
        }
        if unknown := sorted(set(options) - known):
            raise TypeError(
                f"a pipeline has no option {', '.join(unknown)}; its options are "
                f"{', '.join(sorted({*known, *RUN_OPTIONS}))}"
            )
        validate_session(spark, wire=run.get("wire", "auto"))
        savepoint = None if from_savepoint is None else os.fspath(from_savepoint)
        if savepoint is not None and job_id is None:
            job_id = read_savepoint(savepoint).checkpoint.job_id
        store = open_checkpoints(os.fspath(checkpoints), job_id, retained=retained)
        try:
            if savepoint is not None:
                begin_from(store, savepoint)
            prepared = self.prepared(
                sink_start(store, store.latest(), options.pop("run_id", uuid.uuid4().hex)),
                parallelism,
                **options,
            )
        except BaseException:
            store.close()
            raise
        return run_job(
            spark,
            prepared.configuration,
            prepared.program,
            store=store,
            committer=prepared.committer,
            after_commit=prepared.after_commit,
            **run,
        )

    def run(self, spark: Any, checkpoints: str | os.PathLike[str], **options: Any) -> JobResult:
        """Start the job and wait for its end; arguments as for `start`.

        Ctrl-C takes a last checkpoint and stops; the next start restores it. Raises PipelineFailed
        unless the job finishes, and the errors of `start`.
        """
        with self.start(spark, checkpoints, **options) as job:
            try:
                result = job.wait()
            except KeyboardInterrupt:
                job.stop()
                job.wait()
                raise
        if result.state != "finished":
            raise PipelineFailed(f"the pipeline has {result.state}: {result.reason}", result)
        return result


def open_checkpoints(
    place: str,
    job_id: str | None = None,
    *,
    retained: int = 3,
    open_objects: Callable[[str], ObjectStore] = open_url,
) -> CheckpointStore:
    """Open the checkpoints of a job in a directory, or at a URL in an object store, which
    `open_objects` opens.

    Raises UrlNotSupported for any other URL, and the errors of the stores.
    """
    if is_url(place):
        named = job_id or place.rstrip("/").rpartition("/")[2]
        return ObjectCheckpointStore(open_objects(place), job_id=named, retained=retained)
    if "://" in place:
        raise UrlNotSupported(
            f"the checkpoints {place!r} are at a URL of no object store that epochgate knows; give "
            "a directory, or s3://, gs:// or abfss://"
        )
    folder = os.path.abspath(place)
    named = job_id or os.path.basename(folder) or "pipeline"
    return DirectoryCheckpointStore(folder, job_id=named, retained=retained)


@dataclass(frozen=True)
class _ProgramFactory:
    source: Source
    map: Callable[..., Any] | type[MapOperator] | None
    sink: Sink
    beside: tuple[CoordinatedOperator, ...]

    def __call__(self, subtask: int) -> PipelineProgram:
        has_operator = isinstance(self.map, type) and issubclass(self.map, MapOperator)
        settings = [one for one in self.beside if isinstance(one, Setting)]
        return PipelineProgram(
            SourceOperator(self.source),
            self.map() if has_operator and self.map is not None else self.map,
            SinkOperator(self.sink),
            beside={one.operator_id: one.create_operator() for one in self.beside},
            settings={
                one.name: one.operator_id for one in settings if not isinstance(one, RateLimit)
            },
            rate_limits=[one.operator_id for one in settings if isinstance(one, RateLimit)],
        )
