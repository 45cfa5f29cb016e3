"""The handle to a job that was started, and its state.

Decides nothing: requests go to the job's queue. A handle may be used from any thread.
"""

from __future__ import annotations

import logging
import os
from concurrent.futures import Future
from contextlib import ExitStack
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Final, Self

from epochgate.fsm.inside import shown
from epochgate.runtime.api.notebooks import fragment, show_while
from epochgate.runtime.api.raised import quoted
from epochgate.runtime.api.reports import JobReport, JobResult, one_line
from epochgate.runtime.collect import CollectedRows, collect
from epochgate.runtime.observing.listening import Listening
from epochgate.runtime.requests.listening import JobRequests
from epochgate.runtime.savepoints import Savepoint
from epochgate.runtime.shell.futures import for_client
from epochgate.runtime.shell.job_master import JobMaster
from epochgate.runtime.shell.queue_thread import JobLoop
from epochgate.spark.interrupts import interruptible
from epochgate.spark.transport import SparkTransport

LEAVE_PATIENCE_S: Final = 60.0
TASK_HEAD: Final = ("subtask", "attempt", "state", "host", "process")
_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class TaskStatus:
    """One subtask: the number of its attempt (from 0) and the state of that, as the machine
    `Attempt` names it; host and process id of its process if it has one.
    """

    subtask: int
    attempt: int
    state: str
    host: str | None
    pid: int | None


@dataclass(frozen=True)
class JobStatus:
    """The current state of a job, named as in the machine `JobLifecycle`, and of its subtasks in
    order. `last_checkpoint_id` is 0 before the first checkpoint. `commit_on_input`: the committer
    on the driver waits for no notice, as `JobConfiguration.commits_on_input` says.
    """

    state: str
    last_checkpoint_id: int
    tasks: list[TaskStatus]
    commit_on_input: bool = False

    def _repr_html_(self) -> str:
        return fragment("JobStatus", self.state, [self.last], head=TASK_HEAD, rows=self.rows())

    @property
    def last(self) -> tuple[str, object]:
        """The last checkpoint, for a reader."""
        return "last checkpoint", self.last_checkpoint_id or "none"

    def rows(self) -> list[tuple[object, ...]]:
        """The subtasks for a reader, below `TASK_HEAD`."""
        return [
            (one.subtask, one.attempt, one.state, one.host or "", one.pid or "")
            for one in self.tasks
        ]


class JobHandle:
    """A running job. As a context manager it cancels a job that runs at the end of the block; one
    that an interrupt has left is stopped with a last checkpoint.

    Each callback of a future that it returns runs on a daemon thread of its own.
    """

    ui_url: str | None = None
    """The URL of the job's pages while it runs; None without `ui_port`."""

    def __init__(
        self,
        master: JobMaster,
        loop: JobLoop,
        transport: SparkTransport,
        heard_by: Listening | None = None,
        requests: JobRequests | None = None,
    ) -> None:
        self._master, self._loop, self._transport = master, loop, transport
        self._requests = requests
        self.metrics_url = None if heard_by is None else heard_by.metrics_url
        """The URL of the metrics for Prometheus; None without `metrics_port`."""
        self.ui_url = None if heard_by is None else heard_by.ui_url
        self._scope = ExitStack()

    def __enter__(self) -> Self:
        self._scope.enter_context(interruptible(self))
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        with self._scope:
            if not self._master.is_over:
                if isinstance(error, KeyboardInterrupt):
                    raise error
                self.cancel(
                    "its block was left" if error is None else f"its block raised {quoted(error)}"
                )
            try:
                self.joined(LEAVE_PATIENCE_S)
            except TimeoutError:
                _log.error("the job has not ended %s s after it was canceled", LEAVE_PATIENCE_S)

    def __repr__(self) -> str:
        status = self.status()
        last = status.last_checkpoint_id or "none"
        return (
            f"<JobHandle {self.job_id}: {status.state}; last checkpoint {last}; "
            f"{self.report.summary()}>"
        )

    def _repr_html_(self) -> str:
        """Show the job as of now."""
        status, report = self.status(), self.report
        figures = [status.last, *report.figures()]
        why = None if report.failure_reason is None else one_line(report.failure_reason)
        return fragment(
            self.job_id, status.state, figures, why, TASK_HEAD, status.rows(), link=self.ui_url
        )

    @property
    def job_id(self) -> str:
        """The id of the job, as its checkpoints have it."""
        return self._master.configuration.job_id

    @property
    def report(self) -> JobReport:
        """The figures of the job so far, updated while it runs."""
        return self._master.report

    @property
    def is_over(self) -> bool:
        """True if the job has ended."""
        return self._master.is_over

    def status(self) -> JobStatus:
        """Return the current state of the job and of its subtasks."""
        job = self._master.job
        processes = {process.identity: process for process in self._transport.processes()}
        tasks = []
        for place in self._master.tasks.places():
            attempt = shown(job.attempt[place])
            process = processes.get(attempt["identity"])
            tasks.append(
                TaskStatus(
                    self._master.subtask_of[place],
                    attempt["number"],
                    attempt["state"],
                    None if process is None else process.host,
                    None if process is None else process.pid,
                )
            )
        state, completed = shown(job.lifecycle)["state"], shown(job.checkpoint)["completed"]
        on_input = self._master.configuration.commits_on_input
        return JobStatus(state, completed, tasks, on_input)

    def request_checkpoint(self) -> Future[int]:
        """Request a checkpoint that begins after this call; the future gives its id when it is
        completed.

        The future fails with CheckpointAborted, NoCheckpointAmongAttempts or JobOver.
        """
        return for_client(self._master.request_checkpoint())

    def savepoint(self, to: str | os.PathLike[str] | None = None) -> Future[Savepoint]:
        """Request a savepoint: a checkpoint that begins after this call and is also written to
        `to`, a directory or URL that does not exist yet; by default one beside the checkpoints.

        The future fails with the errors of `request_checkpoint`, SavepointPlaceTaken,
        SavepointPlaceMissing, SavepointIncomplete or SavepointFailed; the job continues.
        """
        place = None if to is None else os.fspath(to)
        return for_client(self._master.request_savepoint(place))

    def request_batch_snapshot(self, operator_id: str) -> Future[bytes]:
        """Request the snapshot of an operator's coordinator, in a job without checkpoints.

        The future gives its bytes after every event sent before it was handled. `run_job` starts
        another job from them (`batch_states`).

        The future fails with UnknownOperator, CoordinatorUnavailable, BatchSnapshotRefused,
        BatchSnapshotFailed or JobOver. Source: the batch snapshots of Apache Flink's
        OperatorCoordinatorHolder.
        """
        return for_client(self._master.request_batch_snapshot(operator_id))

    def request(self, operator_id: str, request: Any) -> Future[Any]:
        """Send a request to the coordinator of an operator; request and answer are plain values.

        The future fails with UnknownOperator, CoordinatorUnavailable, RequestNotHandled,
        ValueNotPlain, JobOver, or what the coordinator raises.
        """
        return for_client(self._master.request(operator_id, request))

    def collect(self, operator_id: str = "results") -> CollectedRows:
        """Iterate over the rows of the job's collect sink while it runs; see
        `epochgate.runtime.collect`.

        Raises NothingToCollect, AlreadyCollected; the iteration raises RowsIncomplete if the job
        fails.
        """
        return collect(self._master, operator_id)

    def stop(self) -> None:
        """Take a last checkpoint and end the job; a later start restores it.

        Raises NoCheckpointAmongAttempts in a job with concurrent attempts.
        """
        self._master.stop()

    def cancel(self, reason: str = "it was canceled") -> None:
        """End the job at once, without another checkpoint."""
        self._master.cancel(reason)

    def wait(self, timeout_s: float | None = None) -> JobResult:
        """Wait until the job has ended and released all resources. Raise TimeoutError after
        `timeout_s` seconds.

        Ctrl-C, or a notebook's interrupt, stops the job with a last checkpoint, from which a later
        start continues; a second one cancels it. The KeyboardInterrupt says which checkpoint.
        """
        with interruptible(self):
            return self.joined(timeout_s)

    def show(self, timeout_s: float | None = None) -> None:
        """Show the job, and wait until it has ended, or for `timeout_s` seconds: in a notebook as a
        table that is kept up to date, elsewhere as a line on stderr. An interrupt as for `wait`.
        """
        show_while(self, self.joined, interruptible(self), timeout_s)

    def joined(self, timeout_s: float | None = None) -> JobResult:
        """Wait as `wait` does; an interrupt leaves the job as it is."""
        result = self._loop.join(timeout_s)
        if self._requests is not None:
            self._requests.join()
        return result
