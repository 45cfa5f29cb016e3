"""The doors of the runtime to user code, and what may come through them: one table for simulated
jobs and for jobs on real Spark.

A door is what stands for a class in `CLASSES`, and a method of it; or the name of a function. Each
tuple of doors is gone through by the tests that name it, and `test_door_table.py` finds a method or
a function of the public interface that is in none of them.
"""

from __future__ import annotations

import asyncio
import threading
from typing import Final

from epochgate.pipeline import CoordinatedOperator, MapOperator
from epochgate.runtime import (
    CombiningCommitter,
    CommittableOperator,
    Committer,
    CoordinatorProvider,
    JobListener,
    Operator,
    OperatorCoordinator,
    Program,
    Sink,
    SinkWriter,
    TaskCommitter,
)
from epochgate.runtime.api.restart_strategies import RestartStrategy
from epochgate.runtime.source import Source, SourceReader, SplitEnumerator
from epochgate.runtime.steering import BatchCoordinator
from epochgate.runtime.store import CheckpointStore


class OwnBase(BaseException):
    """As a library may derive one for its own control flow."""


class Unprintable(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no text")

    __repr__ = __str__


class Unpicklable(Exception):
    """As one that holds a connection."""

    def __init__(self, *arguments: object) -> None:
        super().__init__(*arguments)
        self.held = threading.Lock()


RAISED: Final[tuple[type[BaseException], ...]] = (
    ValueError,
    StopIteration,
    SystemExit,
    KeyboardInterrupt,
    asyncio.CancelledError,
    GeneratorExit,
    OwnBase,
    Unprintable,
    Unpicklable,
)

COORDINATOR: Final = (
    "op.start",
    "op.checkpoint",
    "op.execution_attempt_ready",
    "op.handle_event_from_operator",
    "op.notify_checkpoint_complete",
    "op.reset_to_checkpoint",
    "op.execution_attempt_failed",
    "op.subtask_reset",
)
"""Doors in the driver, which a job goes through that speaks, stores and restarts."""
OPERATOR: Final = (
    "operator.open",
    "operator.handle_event",
    "operator.snapshot",
    "operator.prepare_commit",
    "operator.notify_checkpoint_complete",
)
"""Doors in a task."""
COMMITTER: Final = ("committer.check", "committer.commit")
RESTARTING: Final = ("op.reset_to_checkpoint", "op.execution_attempt_failed", "op.subtask_reset")
"""Those that a job comes to when something else fails first."""
STRATEGY: Final = ("strategy.next_delay_s", "strategy.notify_healthy")
ON_SPARK: Final = ("program.factory", "program.operators", "program.work", "program.metrics")
"""Doors around the operator that processes of Spark have; simulated ones make no figures."""
CALLBACKS: Final = ("sent", "posted", "timer", "async", "coroutine", "requested", "gauge")
"""What a coordinator hands to its context, gateways and futures."""
CLOSING: Final = ("op.close", "operator.close", "committer.close", "store.close")
"""Doors of a job that is over already, or of an attempt: an error is told, and ends nothing."""

PIPELINE: Final = (
    *("source.create_enumerator", "source.create_reader"),
    *("enumerator.start", "enumerator.add_reader", "enumerator.handle_split_request"),
    *("enumerator.handle_source_event", "enumerator.add_splits_back", "enumerator.snapshot_state"),
    *("enumerator.notify_checkpoint_complete", "enumerator.add_found", "look"),
    *("reader.open_split", "reader.handle_source_event", "reader.snapshot_state"),
    *("reader.restore_state", "reader.notify_checkpoint_complete"),
    *("map.map", "map.open", "map.snapshot"),
    *("sink.create_writer", "writer.may_write", "writer.write", "writer.prepare_commit"),
    *("writer.snapshot", "after_commit"),
)
"""Doors of the parts of a pipeline."""
PIPELINE_CLOSING: Final = ("enumerator.close", "reader.close", "map.close", "writer.close")
"""Of an attempt or of an enumerator that is over; another takes its place."""

COMMITTING: Final = (
    *("sink.create_task_committer", "sink.has_task_committer"),
    *("sink.pre_commit_topology", "sink.post_commit_topology"),
    *("first_on_driver.open", "first_on_driver.process", "first_on_driver.snapshot"),
    *("first_in_task.open", "first_in_task.process", "first_in_task.snapshot"),
    "task_committer.commit",
    *("then_in_task.open", "then_in_task.process", "then_in_task.snapshot"),
    *("then_on_driver.open", "then_on_driver.process", "then_on_driver.snapshot"),
    *("combining.combine", "combining.commit", "combining.commit_combined"),
)
"""Doors of the steps of a commit, from the writers to the committer on the driver."""
COMMITTING_CLOSING: Final = (
    *("first_on_driver.close", "first_in_task.close", "task_committer.close"),
    *("then_in_task.close", "then_on_driver.close"),
)

FUNCTION: Final = ("functions.look", "functions.read", "functions.map", "functions.write")
"""Doors of a pipeline that is made of functions."""
STEERING: Final = (
    *("provider.create", "chooser.start", "chooser.choose", "chooser.checkpoint"),
    *("chooser.notify_checkpoint_complete", "chooser.reset_to_checkpoint", "chooser.close"),
    "check",
)
"""Doors of a control, whose coordinator chooses the values of each batch."""
PLANNING: Final = (
    *("source.create_enumerator", "look", "planner.start", "planner.add_reader"),
    *("planner.handle_split_request", "planner.snapshot_state", "source.may_match"),
)
"""Doors of a streaming source, on the driver."""
LISTENER: Final = ("listener.begin", "listener.on_event", "listener.close")
"""Doors of those who watch: what comes through them changes nothing."""
BEFORE: Final = (
    *("provider.create", "provider.operator_id", "provider.state_version"),
    *("provider.redistribute", "committer.open"),
    *("sink.create_committer", "sink.create_coordinator"),
)
"""Doors that a job comes to before it begins."""
EDGES: Final = (
    *("provider.create", "provider.files_of"),
    *("op.notify_checkpoint_aborted", "operator.notify_checkpoint_aborted"),
    *("operator.state_version", "committer.metrics"),
)
STORE: Final = ("store.latest", "store.save", "store.close")
"""Doors of a store of the user's."""

ROWS: Final = frozenset(
    (*COORDINATOR, *OPERATOR, *COMMITTER, *STRATEGY, *ON_SPARK, *CALLBACKS, *CLOSING, *PIPELINE)
) | frozenset(
    (
        *COMMITTING,
        *COMMITTING_CLOSING,
        *PIPELINE_CLOSING,
        *FUNCTION,
        *STEERING,
        *PLANNING,
        *LISTENER,
        *BEFORE,
        *EDGES,
        *STORE,
    )
)
"""All doors that a test goes through with each kind of what can be raised."""

ON_CALLER: Final = "called on its caller's thread, to whom it is raised"
PURE: Final = "a value that is there from the start, read before a job begins"
OF_OURS: Final = "a function of the runtime's own, or one that stands in for it in tests"
ASKED_FOR_SNAPSHOTS: Final = (
    "tests/runtime/test_doors.py::test_a_question_that_raises_refuses_the_client_and_nothing_else"
)
REASONS: Final = (ON_CALLER, PURE, OF_OURS)

ELSEWHERE: Final = {
    "CheckpointStore.adopt": ON_CALLER,
    "CheckpointStore.epoch": PURE,
    "CheckpointStore.ids": ON_CALLER,
    "CheckpointStore.job_id": PURE,
    "CheckpointStore.last_id": PURE,
    "CheckpointStore.load": ON_CALLER,
    "CheckpointStore.path": PURE,
    "CheckpointStore.read_file": "requested",
    "CheckpointStore.warnings": PURE,
    "CheckpointStore.write_file": "async",
    "CoordinatedOperator.create_operator": "program.factory",
    "CoordinatorProvider.upgrade_state": "tests/runtime/savepoints/test_state_versions.py"
    "::test_an_upgrade_of_a_coordinator_that_raises_fails_the_job",
    "Operator.metrics": "program.metrics",
    "Operator.upgrade_state": "operator.open",
    "OperatorCoordinator.handle_client_request": "tests/runtime/test_client_requests.py"
    "::test_what_the_coordinator_raises_is_the_clients_and_not_the_jobs",
    "OperatorCoordinator.supports_batch_snapshot": ASKED_FOR_SNAPSHOTS,
    "Sink.upgrade_writer_state": "operator.open",
    "Sink.writer_state_version": "operator.state_version",
    "SinkWriter.handle_event": "operator.handle_event",
    "Source.files_of": "provider.files_of",
    "Source.redistribute_reader_states": "provider.redistribute",
    "Source.state_version": "op.checkpoint",
    "Source.upgrade_state": "op.reset_to_checkpoint",
    "SplitEnumerator.handle_attempt_source_event": "op.handle_event_from_operator",
    "SplitEnumerator.handle_coordinator_event": "posted",
    "SplitEnumerator.notify_checkpoint_aborted": "op.notify_checkpoint_aborted",
    "SplitEnumerator.supports_batch_snapshot": ASKED_FOR_SNAPSHOTS,
}
"""Methods of the public classes that have no row of their own -> the row within which they are
called, the test that looks at them, or why none does.
"""

FUNCTIONS: Final = {
    "Control(check)": "check",
    "Control(now)": OF_OURS,
    "Control(open_objects)": OF_OURS,
    "Control.apply(function)": "tests/runtime/steering/test_control.py"
    "::test_what_a_steered_function_raises_says_who_has_set_the_values",
    "Coordinated(check)": "check",
    "Coordinated(now)": OF_OURS,
    "CoordinatorContext.post(call)": "posted",
    "CoordinatorContext.post_later(call)": "timer",
    "CoordinatorContext.run_async(then)": "async",
    "CoordinatorContext.run_async(work)": "async",
    "CoordinatorContext.run_coroutine(then)": "coroutine",
    "CoordinatorMetrics.fenced(is_open)": OF_OURS,
    "CoordinatorMetrics.gauge(read)": "gauge",
    "CoordinatorStore.compute(change)": ON_CALLER,
    "CoordinatorStore.compute_if_absent(make)": ON_CALLER,
    "CoordinatorStore.compute_if_present(change)": ON_CALLER,
    "CoordinatorStore.fenced(is_open)": OF_OURS,
    "Deciding(now)": OF_OURS,
    "DeltaSink(log)": OF_OURS,
    "DirectoryCheckpointStore(clock)": OF_OURS,
    "FilteredQueueEnumerator(look)": "look",
    "FilteredQueueEnumerator(may_match)": "enumerator.add_found",
    "FunctionSource(look)": "functions.look",
    "FunctionSource(read)": "functions.read",
    "IcebergSink(open_objects)": OF_OURS,
    "IcebergSink(open_table)": OF_OURS,
    "IngestOptions(transform)": "tests/spark/ingest/test_bad_input.py"
    "::test_a_transform_that_raises_ends_the_job_with_file_and_rows",
    "JobConfiguration(redistribute)": "provider.redistribute",
    "JobMaster(after_commit)": "after_commit",
    "JobMaster(blocking)": OF_OURS,
    "JobMaster(job)": OF_OURS,
    "JobMaster(journal)": OF_OURS,
    "JobMaster(wall_clock)": OF_OURS,
    "ObjectCheckpointStore(clock)": OF_OURS,
    "ObjectLedger(open_objects)": OF_OURS,
    "OperatorContext(now_s)": OF_OURS,
    "OperatorContext(send_to_coordinator)": OF_OURS,
    "OperatorContext(send_with_receipt)": OF_OURS,
    "OperatorContext(wake_after)": OF_OURS,
    "ParquetSink(open_objects)": OF_OURS,
    "Pipeline(after_commit)": "after_commit",
    "Pipeline(map)": "functions.map",
    "Pipeline(sink)": "functions.write",
    "ReaderContext(last_snapshot)": OF_OURS,
    "ReaderContext(now_s)": OF_OURS,
    "ReaderContext(send_source_event)": OF_OURS,
    "ReaderContext(wake_after)": OF_OURS,
    "SendFuture.add_done_callback(callback)": "sent",
    "SourceOperator.step(emit)": OF_OURS,
    "SplitEnumeratorContext.call_async(on_error)": "tests/runtime/source/test_work_elsewhere.py"
    "::test_work_that_raises_fails_the_job_unless_the_enumerator_wants_to_hear_of_it",
    "SplitEnumeratorContext.call_async(then)": "enumerator.add_found",
    "SplitEnumeratorContext.call_async(work)": "look",
    "SplitEnumeratorContext.post(call)": "posted",
    "SplitQueueEnumerator(look)": "look",
    "TaskInbox.when_handled(call)": OF_OURS,
    "Updating(now)": OF_OURS,
    "ingest(after_commit)": "after_commit",
    "once(function)": "tests/spark/streaming/test_once.py"
    "::test_what_the_function_raises_is_raised_and_its_batch_is_done_again",
    "run_job(after_commit)": "after_commit",
    "run_job(in_front)": OF_OURS,
    "run_job(program_factory)": "program.factory",
    "start_ingest(after_commit)": "after_commit",
    "DeltaSink(open_objects)": OF_OURS,
}
"""Parameters that take a function -> its row, the row within which it is called, the test that
looks at it, or why none does.
"""

OF_A_LIBRARY: Final = "what a library or the JVM raises, whose errors have no root"
OF_THE_WIRE: Final = "the wire's callers are the runtime's own"
PASSES: Final = "it cleans up or keeps for later; what it does not catch reaches the caller at once"
NARROW: Final = {
    "runtime/api/packing.py": OF_A_LIBRARY,
    "runtime/in_doubt.py": "the store is opened by the command, and none of a user's",
    "runtime/objects/client.py": OF_A_LIBRARY,
    "runtime/objects/elsewhere.py": OF_A_LIBRARY,
    "runtime/observing/otlp.py": OF_A_LIBRARY,
    "spark/checking/keeper.py": "the task raises it; methods of the system that is checked run "
    "on the driver alone",
    "spark/checking/search.py": OF_A_LIBRARY,
    "spark/delta_sink/log.py": OF_A_LIBRARY,
    "spark/delta_sink/owner.py": OF_A_LIBRARY,
    "spark/failing_jobs.py": OF_A_LIBRARY,
    "spark/iceberg_sink/table.py": OF_A_LIBRARY,
    "spark/files/record_lines.py": OF_A_LIBRARY,
    "spark/files/xml_documents.py": OF_A_LIBRARY,
    "spark/ingest/discovering.py": OF_A_LIBRARY,
    "spark/parquet_sink/staging.py": PASSES,
    "spark/program_pickling.py": PASSES,
    "spark/resident_job.py": OF_A_LIBRARY,
    "spark/session.py": OF_A_LIBRARY,
    "spark/slots.py": OF_A_LIBRARY,
    "spark/streaming/batch_commit.py": PASSES,
    "spark/wire/client.py": OF_THE_WIRE,
    "spark/wire/reception.py": OF_THE_WIRE,
    "spark/wire/server.py": OF_THE_WIRE,
    "runtime/pipeline/setting_requests.py": "a check of a setting of ours, and requests to the job",
}
"""Files that catch Exception, where a door catches BaseException -> why that is no door."""

CLASSES: Final = {
    OperatorCoordinator: ("op",),
    CoordinatorProvider: ("provider",),
    Operator: ("operator",),
    Program: ("program",),
    Committer: ("committer",),
    RestartStrategy: ("strategy",),
    JobListener: ("listener",),
    CheckpointStore: ("store",),
    Sink: ("sink",),
    SinkWriter: ("writer",),
    TaskCommitter: ("task_committer",),
    CommittableOperator: ("first_on_driver", "first_in_task", "then_in_task", "then_on_driver"),
    CombiningCommitter: ("combining",),
    Source: ("source",),
    SourceReader: ("reader",),
    SplitEnumerator: ("enumerator", "planner"),
    CoordinatedOperator: ("coordinated",),
    MapOperator: ("map",),
    BatchCoordinator: ("chooser",),
}
"""Public class -> what stands for it in a door."""
OURS: Final = (
    *("CheckpointAccess", "CoordinatorContext", "RunningCoroutine", "SubtaskGateway"),
    *("SplitEnumeratorContext", "TaskInbox", "Transport", "Ledger"),
)
"""Abstract classes and protocols that the runtime implements."""
INNER_MODULES: Final = (
    "epochgate.models",
    "epochgate.testing",
    "epochgate.runtime.testing.certification",
)
"""Public packages whose functions run in tests alone."""
