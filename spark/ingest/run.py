"""Ingestion on a Spark session: starts it, and says how it goes and what it came to.

Decides which figures of a job are shown. Leaves the checks to `plan`, the job to
`epochgate.spark.job`. Runs on the driver; a handle may be used from any thread.

    from epochgate.spark.ingest import ingest
    result = ingest(spark, "incoming/", "table/", transform=clean, parallelism=4)
    print(result.rows_committed)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any

from epochgate.errors import EpochgateError, instead_of
from epochgate.runtime import JobListener, JobResult
from epochgate.runtime.api.notebooks import fragment, is_notebook, show_while
from epochgate.runtime.api.reports import JobReport
from epochgate.spark.files import SkippedFile
from epochgate.spark.handle import JobHandle, JobStatus
from epochgate.spark.ingest.after_commit import IngestCommit, telling, work_after_commits
from epochgate.spark.ingest.options import IngestMisconfigured, IngestOptions
from epochgate.spark.ingest.plan import IngestPlan, plan_ingest, require_stores
from epochgate.spark.interrupts import interruptible
from epochgate.spark.job import run_job
from epochgate.spark.session import validate_session


class IngestFailed(EpochgateError):
    """The job has ended without success; `result` holds what it came to."""

    def __init__(self, message: str, result: IngestResult) -> None:
        super().__init__(message)
        self.result = result


@dataclass(frozen=True)
class IngestResult:
    """The result of one run of an ingestion.

    state: "finished" (also when it was stopped), "failed" or "canceled"; reason: why, unless
    finished. rows_committed and files_committed: made visible by this run; rows_visible: by all
    runs. files_found: files of the source known so far; unread: how many paths below it are not
    read, by reason (`FileAccess.unread` has the paths). rows_rejected: bad rows that this run has
    added to the table at rejected_path. skipped: files that were left out, by all runs, as in the
    list at bad_files_path; newly_skipped: those that were not in it when this run began.
    last_checkpoint_id: from which a next run goes on; 0 if there is none.
    """

    state: str
    reason: str | None
    rows_committed: int
    files_committed: int
    rows_visible: int
    files_found: int
    unread: dict[str, int]
    rows_rejected: int
    rejected_path: str
    skipped: list[SkippedFile]
    newly_skipped: list[SkippedFile]
    bad_files_path: str
    resumed_from: int | None
    last_checkpoint_id: int
    report: JobReport

    def is_success(self) -> bool:
        """Return whether it finished, or was stopped with a last checkpoint."""
        return self.state == "finished"

    def is_complete(self) -> bool:
        """Return whether it finished, and has left out no row and no file."""
        return self.is_success() and not self.rows_rejected and not self.newly_skipped

    def _repr_html_(self) -> str:
        own: list[tuple[str, object]] = [
            ("rows committed", self.rows_committed),
            ("rows in the target", self.rows_visible),
            ("files committed", self.files_committed),
            ("files found", self.files_found),
            ("files not read", sum(self.unread.values())),
            ("rows rejected", self.rows_rejected),
            ("files left out", len(self.skipped)),
            ("last checkpoint", self.last_checkpoint_id or "none"),
        ]
        figures = [*own, *self.report.figures()]
        rows = [(one.path, one.reason) for one in self.skipped]
        return fragment("IngestResult", self.state, figures, self.reason, ("left out", "why"), rows)

    def to_json(self) -> dict[str, Any]:
        """Everything as plain values."""
        own = {one.name: getattr(self, one.name) for one in fields(self) if one.name != "report"}
        skipped = {
            "skipped": [asdict(one) for one in self.skipped],
            "newly_skipped": [asdict(one) for one in self.newly_skipped],
        }
        return {**own, **skipped, "report": self.report.to_json()}


class IngestHandle:
    """A running ingestion. As a context manager it cancels what still runs at the block's end."""

    def __init__(self, plan: IngestPlan, job: JobHandle, application: Any) -> None:
        self.plan, self.job = plan, job
        self.spark_context = application

    def __enter__(self) -> IngestHandle:
        self.job.__enter__()
        return self

    def __exit__(self, *error: Any) -> None:
        self.job.__exit__(*error)

    def __repr__(self) -> str:
        return f"<IngestHandle: {self.rows_committed:,} rows committed; {self.job!r}>"

    def _repr_html_(self) -> str:
        """Show the job as of now."""
        return self.job._repr_html_()

    @property
    def report(self) -> JobReport:
        """The job's figures so far."""
        return self.job.report

    @property
    def rows_committed(self) -> int:
        """Rows that this run has made visible so far."""
        return self.plan.committer.rows_committed

    @property
    def is_over(self) -> bool:
        """True if the job has ended."""
        return self.job.is_over

    def status(self) -> JobStatus:
        """The job and its subtasks as of now."""
        return self.job.status()

    def stop(self) -> None:
        """Take a last checkpoint, then end; a later start goes on from it."""
        self.job.stop()

    def cancel(self, reason: str = "it was canceled") -> None:
        """End now; a later start goes on from the last checkpoint."""
        self.job.cancel(reason)

    def wait(self, timeout_s: float | None = None) -> IngestResult:
        """Wait for the end and until everything is released; TimeoutError after `timeout_s`. An
        interrupt as for `JobHandle.wait`.
        """
        return result_of(self.plan, self.job.wait(timeout_s))

    def show(self, timeout_s: float | None = None) -> None:
        """Show the ingestion, as `JobHandle.show` does."""
        show_while(self, self.job.joined, interruptible(self.job), timeout_s)


def result_of(plan: IngestPlan, job: JobResult) -> IngestResult:
    """Return the result of the job of `plan`."""
    committer, enumerator = plan.committer, plan.source.enumerator
    skipped = [] if enumerator is None else enumerator.skipped
    newly_skipped = plan.bad_files.new_of(skipped)
    if job.state == "finished":
        plan.bad_files.write(skipped)
    return IngestResult(
        state=job.state,
        reason=job.reason,
        rows_committed=committer.rows_committed,
        files_committed=committer.files_committed,
        rows_visible=committer.rows_visible,
        files_found=plan.files_found if enumerator is None else enumerator.files_found,
        unread=plan.unread if enumerator is None else enumerator.unread,
        rows_rejected=0 if plan.rejects is None else plan.rejects.rows_committed,
        rejected_path=plan.options.rejected_path,
        skipped=skipped,
        newly_skipped=newly_skipped,
        bad_files_path=plan.options.bad_files_path,
        resumed_from=plan.resumes_from,
        last_checkpoint_id=job.last_checkpoint_id,
        report=job.report,
    )


def start_plan(
    spark: Any,
    plan: IngestPlan,
    *,
    after_commit: Callable[[IngestCommit], None] | None = None,
    listeners: Sequence[JobListener] = (),
) -> IngestHandle:
    """Start what was planned; it is released when that fails. `listeners` hear what happens to the
    job. Raises what `run_job` raises.
    """
    parsed = plan.options.parsed_target
    target = plan.options.target_path if parsed.is_directory else parsed.database
    job = run_job(
        spark,
        plan.configuration,
        plan.program_factory,
        store=plan.store,
        committer=plan.job_committer,
        after_commit=work_after_commits(
            None if after_commit is None else telling(after_commit, target), plan.remove
        ),
        port=plan.options.port,
        wire=plan.options.wire,
        heartbeat_timeout_s=plan.options.heartbeat_timeout_s,
        heartbeat_interval_s=min(0.5, plan.options.heartbeat_timeout_s / 4),
        listeners=listeners,
        metrics_port=plan.options.metrics_port,
        metrics_host=plan.options.metrics_host,
        ui_port=plan.options.ui_port,
        ui_host=plan.options.ui_host,
        otlp=plan.options.otlp,
        journal=plan.options.journal,
    )
    return IngestHandle(plan, job, spark.sparkContext)


def start_ingest(
    spark: Any,
    options: IngestOptions,
    *,
    after_commit: Callable[[IngestCommit], None] | None = None,
) -> IngestHandle:
    """Start an ingestion on the user's own session; returns once its Spark job is submitted.

    `after_commit` is called with each checkpoint that readers can see, in order and at least once,
    on a thread of its own, for which neither checkpoints nor commits wait. Raises what
    `validate_session`, `require_stores`, `plan_ingest` and `run_job` raise.
    """
    validate_session(spark, wire=options.wire)
    require_stores(options)
    return start_plan(spark, plan_ingest(options), after_commit=after_commit)


def ingest(
    spark: Any,
    source: str,
    target: str,
    *,
    after_commit: Callable[[IngestCommit], None] | None = None,
    **options: Any,
) -> IngestResult:
    """Ingest `source` into `target` and wait for the end; `options` are those of `IngestOptions`,
    `after_commit` as for `start_ingest`.

    Ctrl-C, or a notebook's interrupt, stops it with a last checkpoint; calling it again goes on
    from there. Raises KeyboardInterrupt then, IngestFailed unless it finishes, IngestMisconfigured
    for an option that there is not, and what `start_ingest` raises.
    """
    known = [one.name for one in fields(IngestOptions)]
    for name in options.keys() - set(known):
        meant = instead_of(name, known[2:])
        raise IngestMisconfigured(f"an ingestion has no option {name!r}; {meant}")
    made = IngestOptions(source, target, **options)
    with start_ingest(spark, made, after_commit=after_commit) as handle:
        if is_notebook():
            handle.show()
        result = handle.wait()
    if not result.is_success():
        raise IngestFailed(f"the ingestion has {result.state}: {result.reason}", result)
    return result
