"""The start of a job on the user's own Spark session.

Puts together the job master, its thread and the Spark transport; decides only what must hold before
a job may start. A job ends as failed, and never hangs, when Spark itself fails. Runs on the driver.

    with run_job(spark, configuration, program_factory, store=store) as job:
        result = job.wait()
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from types import ModuleType
from typing import Any, Final

from epochgate.runtime.api.committer import Committer
from epochgate.runtime.api.configuration import JobConfiguration
from epochgate.runtime.api.job_events import JobListener
from epochgate.runtime.api.operator import Program
from epochgate.runtime.api.raised import quoted
from epochgate.runtime.api.transport import Transport
from epochgate.runtime.objects.errors import ObjectStoreUnusable
from epochgate.runtime.observing.listening import Listening
from epochgate.runtime.pipeline import setting_requests
from epochgate.runtime.requests.listening import JobRequests
from epochgate.runtime.requests.place import RequestPlace
from epochgate.runtime.savepoints import asking, begin_from
from epochgate.runtime.shell.blocking_work import ThreadedWork
from epochgate.runtime.shell.clock import MonotonicClock
from epochgate.runtime.shell.job_master import JobMaster
from epochgate.runtime.shell.post_commits import AfterCommit
from epochgate.runtime.shell.queue_thread import JobLoop
from epochgate.runtime.store import CheckpointStore
from epochgate.runtime.tracing.file_journal import Tracing, tracing_of
from epochgate.spark.errors import TooFewSlots
from epochgate.spark.exposure import Wire, is_private
from epochgate.spark.handle import LEAVE_PATIENCE_S, JobHandle
from epochgate.spark.program_pickling import pickled
from epochgate.spark.session import validate_session
from epochgate.spark.slots import task_slots, too_few_slots
from epochgate.spark.transport import SparkTransport
from epochgate.spark.wire import DETECTION, MESSAGE_BYTES_MAX, Detection

SLOTS_PATIENCE_S: Final = 30.0


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
    otlp: str | None = None,
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
    hosts.md (detection), savepoints.md (message_bytes_max), traces.md, observing.md (the others).

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
        heard_by = Listening(listeners, store, has_history, *pages, otlp)
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
            return _begun(master, transport, heard_by, warned, refused)


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


def _requests_to(master: JobMaster) -> JobRequests | None:
    """Look for requests of other processes until the job is over, where its checkpoints have a
    place for them.
    """
    if not master.store.path:
        return None
    try:
        place = RequestPlace(master.store.path)
    except ObjectStoreUnusable as error:
        master.queue.post(
            master.warn, f"`epochgate savepoint` and `epochgate set` cannot ask this job: {error}"
        )
        return None
    handlers = {
        asking.KIND: asking.requested(master.request_savepoint),
        setting_requests.KIND: setting_requests.requested(master.configuration.providers, master),
    }
    requests = JobRequests(place, handlers)
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
    require_slots(context, configuration.parallelism)
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
    master: JobMaster,
    transport: SparkTransport,
    heard_by: Listening,
    warnings: Sequence[str],
    refused: ExitStack,
) -> JobHandle:
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
    try:
        return JobHandle(master, loop, transport, heard_by, _requests_to(master))
    except BaseException as error:  # an interrupt, after which there is no handle to end it by
        master.cancel(f"its start raised {quoted(error)}")
        loop.join(LEAVE_PATIENCE_S)
        raise


def _addresses(context: Any) -> tuple[str, str]:
    """Return the address on which the driver listens, and the one under which tasks find it."""
    if context.master.startswith("local"):
        return "127.0.0.1", "127.0.0.1"
    settings = context.getConf()
    host = settings.get("spark.driver.host").strip("[]")
    return settings.get("spark.driver.bindAddress", host).strip("[]"), host


def require_slots(context: Any, parallelism: int) -> None:
    """Wait a little for executors that are still to register, then insist on enough slots for so
    many subtasks. Raises TooFewSlots.
    """
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
