"""A job on the user's own Spark session: what starts it, and the handle to it.

Puts together the job master, its thread and the Spark transport; decides only what must hold before
a job may start. A job ends as failed, and never hangs, when Spark itself fails. Runs on the driver;
the handle may be used from any thread.

    with run_job(spark, configuration, program_factory, store=store) as job:
        result = job.wait()
"""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from types import ModuleType, TracebackType
from typing import Any, Final, Self

from epochgate.fsm.inside import shown
from epochgate.runtime.api.committer import Committer
from epochgate.runtime.api.configuration import JobConfiguration
from epochgate.runtime.api.job_events import JobListener
from epochgate.runtime.api.notebooks import fragment
from epochgate.runtime.api.operator import Program
from epochgate.runtime.api.raised import quoted
from epochgate.runtime.api.reports import JobReport, JobResult
from epochgate.runtime.api.transport import Transport
from epochgate.runtime.collect import CollectedRows, collect
from epochgate.runtime.objects.errors import ObjectStoreUnusable
from epochgate.runtime.observing.listening import Listening
from epochgate.runtime.savepoints import Savepoint, begin_from
from epochgate.runtime.savepoints.requests import RequestPlace, SavepointRequests
from epochgate.runtime.shell.blocking_work import ThreadedWork
from epochgate.runtime.shell.clock import MonotonicClock
from epochgate.runtime.shell.futures import for_client
from epochgate.runtime.shell.job_master import JobMaster
from epochgate.runtime.shell.post_commits import AfterCommit
from epochgate.runtime.shell.queue_thread import JobLoop
from epochgate.runtime.store import CheckpointStore
from epochgate.runtime.tracing.file_journal import Tracing, tracing_of
from epochgate.spark.errors import TooFewSlots
from epochgate.spark.exposure import Wire, is_private
from epochgate.spark.program_pickling import pickled
from epochgate.spark.session import validate_session
from epochgate.spark.slots import task_slots, too_few_slots
from epochgate.spark.transport import SparkTransport
from epochgate.spark.wire import DETECTION, MESSAGE_BYTES_MAX, Detection

LEAVE_PATIENCE_S: Final = 60.0
SLOTS_PATIENCE_S: Final = 30.0
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
        head = ("subtask", "attempt", "state", "host", "process")
        rows = [
            (one.subtask, one.attempt, one.state, one.host or "", one.pid or "")
            for one in self.tasks
        ]
        last = ("last checkpoint", self.last_checkpoint_id or "none")
        return fragment("JobStatus", self.state, [last], head=head, rows=rows)


class JobHandle:
    """A running job. As a context manager it cancels a job that runs at the end of the block.

    Each callback of a future that it returns runs on a daemon thread of its own.
    """

    def __init__(
        self,
        master: JobMaster,
        loop: JobLoop,
        transport: SparkTransport,
        heard_by: Listening | None = None,
        requests: SavepointRequests | None = None,
    ) -> None:
        self._master, self._loop, self._transport = master, loop, transport
        self._requests = requests
        self.metrics_url = None if heard_by is None else heard_by.metrics_url
        """The URL of the metrics for Prometheus; None without `metrics_port`."""
        self.ui_url = None if heard_by is None else heard_by.ui_url
        """The URL of the job's pages while it runs; None without `ui_port`."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if not self._master.is_over:
            self.cancel(
                "its block was left" if error is None else f"its block raised {quoted(error)}"
            )
        try:
            self.wait(LEAVE_PATIENCE_S)
        except TimeoutError:
            _log.error("the job has not ended %s s after it was canceled", LEAVE_PATIENCE_S)

    def _repr_html_(self) -> str:
        """Show the job as of now."""
        return f"{self.status()._repr_html_()}{self.report._repr_html_()}"

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
        """
        result = self._loop.join(timeout_s)
        if self._requests is not None:
            self._requests.join()
        return result


def run_job(
    spark: Any,
    configuration: JobConfiguration,
    program_factory: Callable[[int], Program],
    *,
    store: CheckpointStore,
    committer: Committer | None = None,
    after_commit: AfterCommit | None = None,
    batch_states: Mapping[str, bytes] | None = None,
    from_savepoint: str | os.PathLike[str] | None = None,
    by_value: Sequence[ModuleType] = (),
    port: int = 0,
    wire: Wire = "auto",
    heartbeat_interval_s: float = 0.5,
    heartbeat_timeout_s: float = 10.0,
    detection: Detection = DETECTION,
    process_timeout_s: float = 60.0,
    message_bytes_max: int = MESSAGE_BYTES_MAX,
    listeners: Sequence[JobListener] = (),
    has_history: bool = True,
    metrics_port: int | None = None,
    metrics_host: str | None = None,
    ui_port: int | None = None,
    ui_host: str | None = None,
    journal: str | os.PathLike[str] | Tracing | None = None,
    in_front: Callable[[Transport], Transport] | None = None,
) -> JobHandle:
    """Start a job in `spark`, a session whose driver is this process; return when it is submitted.

    program_factory: makes the program of a subtask; sent by cloudpickle with the user's own
    modules. Packages must be installed on the executors, or be in `by_value`. store, committer:
    closed with the job, or if it is refused. after_commit: called for visible checkpoints.
    batch_states: operator id -> what `JobHandle.request_batch_snapshot` gave, if no checkpoint is
    restored. from_savepoint: for an empty `store` or one begun with it. port: of the driver, 0 for
    any. process_timeout_s: without a worker a subtask fails after it. See security.md (wire),
    hosts.md (detection), savepoints.md (message_bytes_max), traces.md, observing.md (metrics, ui).

    Raises the errors of `validate_session`, `begin_from`, Listening and `committer.open`,
    ProgramNotPicklable, TooFewSlots, JobMisconfigured, CannotBind, WireSettingInvalid.
    """
    with _closed_unless_begun(store, committer) as refused:
        warned = _warned(spark, configuration, wire)
        tracing = tracing_of(journal, configuration)
        transport = _transport(
            spark.sparkContext,
            configuration,
            pickled(program_factory, by_value),
            (port, wire),
            (heartbeat_interval_s, heartbeat_timeout_s, detection, process_timeout_s),
            message_bytes_max=message_bytes_max,
            tracing=tracing,
        )
        _begin(store, from_savepoint)
        pages = (metrics_port, metrics_host), (ui_port, ui_host)
        heard_by = Listening(listeners, store, has_history, *pages)
        with heard_by.closed_on_error():
            master = JobMaster(
                configuration,
                transport=transport if in_front is None else in_front(transport),
                store=store,
                clock=MonotonicClock(),
                blocking=ThreadedWork,
                committer=committer,
                after_commit=after_commit,
                batch_states=batch_states,
                listeners=heard_by.listeners,
                journal=None if tracing is None else tracing.driver,
            )
            loop = _begun(master, transport, warned, refused)
    return JobHandle(master, loop, transport, heard_by, _requests_to(master))


@contextmanager
def _closed_unless_begun(
    store: CheckpointStore, committer: Committer | None
) -> Iterator[ExitStack]:
    """Close both if the block raises before it has taken them (`pop_all`)."""
    with ExitStack() as refused:
        refused.callback(store.close)
        if committer is not None:
            refused.callback(committer.close)
        yield refused


def _warned(spark: Any, configuration: JobConfiguration, wire: Wire) -> list[str]:
    side_by_side = configuration.concurrent_attempts_max
    return validate_session(spark, concurrent_attempts_max=side_by_side, wire=wire)


def _begin(store: CheckpointStore, savepoint: str | os.PathLike[str] | None) -> None:
    if savepoint is not None:
        begin_from(store, os.fspath(savepoint))


def _requests_to(master: JobMaster) -> SavepointRequests | None:
    """Look for requests of other processes until the job is over, where its checkpoints have a
    place for them.
    """
    if not master.store.path:
        return None
    try:
        place = RequestPlace(master.store.path)
    except ObjectStoreUnusable as error:
        master.queue.post(master.warn, f"`epochgate savepoint` cannot ask this job: {error}")
        return None
    requests = SavepointRequests(place, master.request_savepoint)
    requests.start()
    master.result.add_done_callback(lambda _: requests.close())
    return requests


def _transport(
    context: Any,
    configuration: JobConfiguration,
    program: bytes,
    listening: tuple[int, Wire],
    patience: tuple[float, float, Detection, float],
    **settings: Any,
) -> SparkTransport:
    _check_slots(context, configuration.parallelism)
    bind_host, advertised_host = _addresses(context)
    port, wire = listening
    return SparkTransport(
        context,
        is_private=is_private(wire, (bind_host, advertised_host)),
        port=port,
        heartbeat_interval_s=patience[0],
        heartbeat_timeout_s=patience[1],
        detection=patience[2],
        process_timeout_s=patience[3],
        program=program,
        parallelism=configuration.parallelism,
        coordinators=configuration.operator_ids,
        commits_in_tasks=configuration.topology.in_tasks,
        run_id=configuration.run_id,
        job_id=configuration.job_id,
        bind_host=bind_host,
        advertised_host=advertised_host,
        **settings,
    )


def _begun(
    master: JobMaster, transport: SparkTransport, warnings: Sequence[str], refused: ExitStack
) -> JobLoop:
    refused.pop_all()  # the job closes them from here on
    transport.on_broken = master.fail
    transport.on_warning = partial(master.queue.post, master.warn)
    transport.on_overdue = partial(master.queue.post, master.restarts.go_on_without)
    for warning in warnings:
        master.queue.post(master.warn, warning)
    loop = JobLoop(master)
    try:
        loop.start()
    except BaseException:
        master.close()
        raise
    return loop


def _addresses(context: Any) -> tuple[str, str]:
    """Return the address on which the driver listens, and the one under which tasks find it."""
    if context.master.startswith("local"):
        return "127.0.0.1", "127.0.0.1"
    settings = context.getConf()
    host = settings.get("spark.driver.host").strip("[]")
    return settings.get("spark.driver.bindAddress", host).strip("[]"), host


def _check_slots(context: Any, parallelism: int) -> None:
    """Wait a little for executors that are still to register, then insist on enough slots."""
    settings = context.getConf()
    if settings.get("spark.dynamicAllocation.enabled", "false").lower() == "true":
        return
    patience_s = 0.0 if context.master.startswith("local[") else SLOTS_PATIENCE_S
    deadline_s = time.monotonic() + patience_s
    while True:
        slots = task_slots(context)
        if slots is None or slots >= parallelism:
            return
        if time.monotonic() >= deadline_s:
            break
        time.sleep(0.05)  # Spark has no notice of an executor's registration to wait for
    driver = f"{settings.get('spark.driver.host')}:{settings.get('spark.driver.port')}"
    raise TooFewSlots(
        too_few_slots(slots, parallelism, master=context.master, driver=driver, waited_s=patience_s)
    )
