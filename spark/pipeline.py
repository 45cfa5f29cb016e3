"""A pipeline as one Spark job.

Starts what its parts make in a session. Leaves what fits together to `PipelineParts`, and running
to `run_job`. On the driver.

    limit = Setting("limit", 900)
    pipeline = Pipeline(source=orders, map=check, sink=write, coordinators=[limit])
    result = pipeline.run(spark, "checkpoints/orders", parallelism=4)
"""

from __future__ import annotations

import os
import uuid
from dataclasses import dataclass, fields
from typing import Any

from epochgate.errors import EpochgateError, instead_of
from epochgate.runtime.api.configuration import JobConfiguration
from epochgate.runtime.api.notebooks import is_notebook
from epochgate.runtime.api.reports import JobResult
from epochgate.runtime.pipeline.parts import PipelineParts
from epochgate.runtime.savepoints import begin_from, read_savepoint
from epochgate.runtime.sink_start import sink_start
from epochgate.runtime.store.opening import open_checkpoints
from epochgate.spark.handle import JobHandle
from epochgate.spark.job import run_job
from epochgate.spark.session import validate_session

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
    "metrics_host",
    "metrics_port",
    "otlp",
    "port",
    "ui_host",
    "ui_port",
    "wire",
)


class PipelineFailed(EpochgateError):
    """The job has failed or was canceled; `result` is its JobResult."""

    def __init__(self, message: str, result: JobResult) -> None:
        super().__init__(message)
        self.result = result


@dataclass(frozen=True, kw_only=True)
class Pipeline(PipelineParts):
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
        `run_job` (`by_value`, `listeners`, `port`, `wire`, `metrics_port`, `ui_port`,
        `has_history`, `journal`, `detection`, heartbeats).

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
            named = {"parallelism", "job_id", "from_savepoint", "retained"}
            meant = instead_of(unknown[0], sorted({*named, *known, *RUN_OPTIONS}))
            raise TypeError(f"a pipeline has no option {unknown[0]!r}; {meant}")
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
        """Start the job and wait for its end, in a notebook with a table of how it goes; arguments
        as for `start`.

        Ctrl-C, or a notebook's interrupt, takes a last checkpoint and stops; the next start
        restores it. Raises KeyboardInterrupt then, which names that checkpoint, PipelineFailed
        unless the job finishes, and the errors of `start`.
        """
        with self.start(spark, checkpoints, **options) as job:
            if is_notebook():
                job.show()
            result = job.wait()
        if result.state != "finished":
            raise PipelineFailed(f"the pipeline has {result.state}: {result.reason}", result)
        return result
