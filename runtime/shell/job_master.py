"""The job master: one job's machines, their queue, and the shells that listen to them.

Flink's JobMaster for a Spark job. Everything of the protocol happens on the queue's thread; the
public methods may be called from any. It runs over any transport, clock, store and place for
blocking work, real or simulated.
"""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from contextlib import ExitStack
from functools import partial
from typing import Any

from epochgate.fsm import Clock, Handles, Journal, System, drive
from epochgate.models.job import Job
from epochgate.runtime.api.committer import Committer
from epochgate.runtime.api.configuration import JobConfiguration, JobMisconfigured
from epochgate.runtime.api.job_events import JobEnded, JobListener, JobStarted, Warned
from epochgate.runtime.api.reports import (
    FailureReport,
    JobReport,
    JobResult,
    keep_recent,
    shortened,
    summed,
)
from epochgate.runtime.api.send_future import EventLost, SendFuture
from epochgate.runtime.api.transport import Transport
from epochgate.runtime.savepoints import Savepoint
from epochgate.runtime.shell.batch_snapshots import BatchSnapshots
from epochgate.runtime.shell.blocking_work import BlockingWork, Post, WorkHangs
from epochgate.runtime.shell.checkpoints import STORE_LANE, Checkpoints
from epochgate.runtime.shell.client_requests import LATE, JobOver
from epochgate.runtime.shell.commits import Commits
from epochgate.runtime.shell.committing import DirectCommits, SteppedCommits
from epochgate.runtime.shell.concurrent_attempts import (
    ByPlace,
    ConcurrentTasks,
    NoCheckpointAmongAttempts,
)
from epochgate.runtime.shell.coordinators import Coordinators
from epochgate.runtime.shell.failover import Failover, Verdict
from epochgate.runtime.shell.fitting import fitted
from epochgate.runtime.shell.futures import reject
from epochgate.runtime.shell.observers import Observers
from epochgate.runtime.shell.post_commits import AfterCommit, PostCommits
from epochgate.runtime.shell.savepoints import Savepoints
from epochgate.runtime.shell.tasks import Places, Tasks
from epochgate.runtime.store import CheckpointStore
from epochgate.runtime.store.checkpoint import debts_of


class JobMaster:
    """Runs one job. `blocking` is given the queue's post and makes the place where blocking work
    runs. `after_commit` is called for each checkpoint that is visible. `batch_states`: operator id
    -> a snapshot taken without a checkpoint, from which that operator's coordinator begins when
    there is no checkpoint to go back to. `wall_clock`: seconds since the epoch, for what is stored
    or told to be read by people. `journal` makes what the events of the machines are recorded in,
    and is closed with the job. `listeners` hear on the queue's thread what happens, and are closed
    with the job.

    Raises JobMisconfigured when a batch snapshot is of an operator that the job does not have,
    StateWithoutOperator when the store's latest checkpoint holds state of one, NotRescalable when
    it was taken with another parallelism and holds state that is not redistributed, and what the
    store's `latest`, the providers' `create` and the committer's `open` raise. Source: Apache
    Flink's JobMaster, with its SchedulerBase and CheckpointCoordinator.
    """

    def __init__(
        self,
        configuration: JobConfiguration,
        *,
        transport: Transport,
        store: CheckpointStore,
        clock: Clock,
        blocking: Callable[[Post], BlockingWork],
        committer: Committer | None = None,
        after_commit: AfterCommit | None = None,
        batch_states: Mapping[str, bytes] | None = None,
        journal: Callable[[System], Journal] | None = None,
        job: Callable[..., Job] = Job,
        wall_clock: Callable[[], float] = time.time,
        listeners: Sequence[JobListener] = (),
    ) -> None:
        self.configuration = configuration
        self.transport, self.store, self.wall_clock = transport, store, wall_clock
        attempts_max = configuration.concurrent_attempts_max
        self.places: Places = transport if attempts_max == 1 else ByPlace(transport, attempts_max)
        self.batch_states = _known(batch_states or {}, configuration.operator_ids)
        self.observers = Observers(listeners, wall_clock)
        self.report = JobReport()
        self.result: Future[JobResult] = Future()
        self.cause: str | None = None
        """Why the job goes down."""
        self.verdict: Verdict | None = None
        """How the job ends; its coordinators are closed, and nothing else is left to do."""
        self._is_closed = False
        self.is_end_wanted = False
        """The job was canceled, and may not have heard of it."""
        restored = store.latest()
        if restored is not None:
            restored = fitted(restored, configuration)
        self.job = _made(job, configuration, has_work=after_commit is not None)
        self.subtask_of = [place // attempts_max for place in range(len(self.job.attempt))]
        """Place, by which the machines know an attempt -> the subtask that it belongs to."""
        self.queue = drive(self.job, clock, journal)
        self.journal = self.queue.journal
        self._began_s = clock.now_s()
        self.blocking = blocking(self.queue.post)
        self.coordinators = Coordinators(self)
        self.batch_snapshots = BatchSnapshots(self)
        self.checkpoints = Checkpoints(self, restored)
        self.savepoints = Savepoints(self)
        self.commits = Commits(self, committer, restored)
        self.committing = (
            DirectCommits(self)
            if configuration.topology.is_direct
            else SteppedCommits(self, restored)
        )
        self.post_commits = PostCommits(self, after_commit)
        self.restarts = Failover(self)
        self.tasks = Tasks(self) if attempts_max == 1 else ConcurrentTasks(self)

    def start(self) -> None:
        """Open the transport and begin, from the store's latest checkpoint if it has one."""
        self.observers.begin(self.report)
        self.transport.open(self.tasks)
        latest = self.checkpoints.latest
        self.observers.tell(
            JobStarted,
            job_id=self.configuration.job_id,
            run_id=self.configuration.run_id,
            parallelism=self.configuration.parallelism,
            checkpoint_id=0 if latest is None else latest.checkpoint_id,
            pid=os.getpid(),
            host=socket.gethostname(),
            topology="" if self.commits.committer is None else str(self.configuration.topology),
            commit_on_input=self.configuration.commits_on_input,
        )
        self.restarts.await_all()
        if latest is not None:
            newest = max(latest.checkpoint_id, self.store.last_id or 0)
            self.queue.post(self.job.checkpoint.restore, latest.checkpoint_id, newest)
            for earlier in sorted(debts_of(latest)):
                self.queue.post(self.job.post_commit.owe, earlier)
            self.committing.adopt(latest)
        for number, operator_id in enumerate(self.configuration.operator_ids):
            if operator_id in self.batch_states:
                self.queue.post(self.job.holder[number].adopt_batch_snapshot)
        self.queue.post(self.job.lifecycle.start)
        if self.configuration.checkpoint_interval_s is not None:
            self.queue.post(self._next_period, self.configuration.checkpoint_interval_s)

    def _next_period(self, interval_s: float) -> None:
        self.queue.post_later(interval_s, self._period, interval_s)

    def _period(self, interval_s: float) -> None:
        self.job.request.submit_periodic()
        if not self.is_over:
            self._next_period(interval_s)

    def request_checkpoint(self) -> Future[int]:
        """Ask for a checkpoint that begins from now on; the id once it is completed, or
        CheckpointAborted, CheckpointOutcomeUnknown, NoCheckpointAmongAttempts or JobOver.
        """
        wanted: Future[int] = Future()
        if self.configuration.concurrent_attempts_max > 1:
            reject(wanted, NoCheckpointAmongAttempts("a checkpoint"))
            return wanted
        self.queue.post(self.checkpoints.request, wanted)
        return wanted

    def request_savepoint(self, place: str | None = None) -> Future[Savepoint]:
        """Ask for a checkpoint that begins from now on, written to a place of its own as well; by
        default to one beside the store.

        Fails as `request_checkpoint` does, and with what `write_savepoint` raises.
        """
        wanted: Future[Savepoint] = Future()
        if self.configuration.concurrent_attempts_max > 1:
            reject(wanted, NoCheckpointAmongAttempts("a savepoint"))
            return wanted
        self.queue.post(self.savepoints.request, wanted, place)
        return wanted

    def request_batch_snapshot(self, operator_id: str) -> Future[bytes]:
        """Ask for a coordinator's snapshot in a job that takes no checkpoints: its bytes once every
        event sent before it was handled.

        Fails with UnknownOperator, CoordinatorUnavailable, BatchSnapshotRefused,
        BatchSnapshotFailed or JobOver.
        """
        return self.batch_snapshots.request(operator_id)

    def request(self, operator_id: str, request: Any) -> Future[Any]:
        """Ask the coordinator of an operator; the answer, a plain value as the request is.

        Fails with UnknownOperator, CoordinatorUnavailable, RequestNotHandled, ValueNotPlain,
        JobOver, or what the coordinator raises.
        """
        return self.coordinators.requests.ask(operator_id, request)

    def stop(self) -> None:
        """Take a last checkpoint, then end; a later start resumes from it.

        Raises NoCheckpointAmongAttempts in a job with concurrent attempts.
        """
        if self.configuration.concurrent_attempts_max > 1:
            raise NoCheckpointAmongAttempts("a last checkpoint to leave with")
        self.queue.post(self.job.lifecycle.stop)

    def cancel(self, reason: str = "it was canceled") -> None:
        """End now, without another checkpoint; what waits in the queue waits for this."""
        self.is_end_wanted = True
        self.queue.post_first(self.job.lifecycle.cancel, reason)

    def fail(self, reason: str) -> None:
        """End as failed: trying again would not help, or is not allowed."""
        self.queue.post(self.job.lifecycle.give_up, reason)

    @property
    def is_over(self) -> bool:
        """True if the job has ended; its result is there."""
        return self.result.done()

    # for the shells, on the queue's thread

    @property
    def is_ending(self) -> bool:
        """True if the job was canceled, goes down, or has nothing to do but to close."""
        return self.is_end_wanted or self.cause is not None or self.verdict is not None

    def note_cause(self, reason: str) -> None:
        """Note why the job goes down."""
        self.cause = shortened(reason, 8000)

    def note_failure(self, subtask: int | None, attempt: int | None, reason: str) -> None:
        """Report a failure of a subtask, or with None of the whole job."""
        keep_recent(
            self.report.failures,
            FailureReport(self.elapsed_s(), subtask, attempt, shortened(reason)),
        )

    def elapsed_s(self) -> float:
        """Seconds since the start."""
        return self.queue.now_s - self._began_s

    def last_failure(self) -> str:
        """The most recent reason why something failed."""
        reasons = [c.reason for c in self.report.checkpoints[-1:] if not c.is_completed]
        reasons = [f.reason for f in self.report.failures[-1:] if f.subtask is None] or reasons
        return reasons[0] if reasons else "no reason was given"

    def warn(self, text: str) -> None:
        """Note what a person should know."""
        self.note_warning(text)
        self.observers.tell(Warned, text=shortened(text))

    def note_warning(self, text: str) -> None:
        """Keep a warning of which those who watch hear otherwise."""
        keep_recent(self.report.warnings, text)

    def end(self) -> None:
        """The lifecycle has reached its end: release everything and report."""
        assert self.verdict is not None, "the lifecycle has decided how the job ends"
        state, checkpoint = self.verdict
        reason = None if state == "finished" else self.cause
        self.forget_requests(f"the job is {state}: {reason or 'its input has ended'}")
        self.settle(state, reason, checkpoint)

    def settle(self, state: str, reason: str | None, checkpoint: int) -> None:
        """Say how the job ended, to those who watch and to those who wait."""
        report, figures = self.report, self.checkpoints.figures()
        report.failure_reason = reason
        if state == "finished":
            figures = summed(report.metrics), self.coordinator_figures()
        self.observers.tell(
            JobEnded,
            state=state,
            reason=reason,
            checkpoint_id=checkpoint,
            duration_s=self.elapsed_s(),
            checkpoints_completed=report.checkpoints_completed,
            checkpoints_aborted=report.checkpoints_aborted,
            regional_restarts=report.regional_restarts,
            global_restarts=report.global_restarts,
            figures=figures[0],
            coordinators=figures[1],
        )
        self.result.set_result(JobResult(state, reason, report, checkpoint))

    def coordinator_figures(self) -> dict[str, dict[str, int | float]]:
        """Ask each coordinator for its figures, by operator id, in the sight of the watchdog."""
        counted = {}
        for number, name in enumerate(self.configuration.operator_ids):
            held = self.report.coordinator_metrics[name]
            if figures := self.coordinators.watched(number, partial(dict[str, Any], held)):
                counted[name] = figures
        return counted

    def forget_requests(self, reason: str) -> None:
        """The job is over: no request is answered any more, and no figure changes."""
        self.checkpoints.forget_requests(reason)
        self.coordinators.requests.close(reason)
        for number in range(len(self.configuration.providers)):
            self.batch_snapshots.cancel(number, reason)
        self.coordinators.freeze_metrics()

    def close(self) -> None:
        """Release transport, committer, store and threads; after the end, or to abandon the job."""
        if self._is_closed:
            return
        self._is_closed = True
        self.queue.wake = self._refuse_late
        self.blocking.close_by(self.configuration.end_timeout_s)
        with ExitStack() as closing:  # the last first, and each whatever another raises
            if self.journal is not None:
                closing.callback(self.journal.close)
            closing.callback(self.observers.close)
            closing.callback(self.savepoints.close)
            closing.callback(self._close_store)
            closing.callback(self.savepoints.finish)
            closing.callback(self.commits.close)
            closing.callback(self.committing.close)
            closing.callback(self.transport.close)
            closing.callback(self._end_futures)

    def _end_futures(self) -> None:
        """End those that no one will: away from this thread, since their callbacks may hang."""
        limit_s = self.configuration.end_timeout_s
        self.blocking.run("futures", self._refuse_late, limit_s)
        self.blocking.run(
            "futures", partial(self.coordinators.lose_all, "the job is over"), limit_s
        )

    def _close_store(self) -> None:
        """Close it behind what its lane has; what hangs there is left behind with its thread."""
        try:
            self.blocking.run(STORE_LANE, self.store.close, self.configuration.end_timeout_s)
        except WorkHangs as error:
            self.note_warning(
                f"{self.store.path or 'the store'} could not be closed, and stays locked until "
                f"this process ends; the next start reads what is stored there: {error}"
            )
        finally:
            self.blocking.close()

    def _refuse_late(self) -> None:
        """No events are processed any more: callers that wait for one of them must be told."""
        for _, arguments in self.queue.abandon():
            for argument in arguments:
                if isinstance(argument, SendFuture):
                    argument.free()
                    argument.complete(EventLost(f"{argument.event!r} came after the job's end"))
                elif isinstance(argument, Future):
                    reject(argument, JobOver(LATE))


def _known(states: Mapping[str, bytes], operators: list[str]) -> dict[str, bytes]:
    """The batch snapshots, all of operators of the job."""
    for operator in states:
        if operator not in operators:
            raise JobMisconfigured(
                f"there is a batch snapshot, but no operator {operator!r}; its operators are "
                f"{', '.join(map(repr, operators))}: give the snapshot the id of one of these"
            )
    return dict(states)


def _made(
    job: Callable[..., Job], configuration: JobConfiguration, *, has_work: bool
) -> Handles[Job]:
    """The machines of one job; with concurrent attempts there is one more for each subtask.

    Each variant of the job is imported by the jobs that are of it: what a declaration keeps in
    memory is walked by every full collection of garbage in the driver.
    """
    constants = {
        "subtasks": configuration.parallelism,
        "coordinators": len(configuration.providers),
        "tolerable_failures": configuration.tolerable_checkpoint_failures,
        "commit_retries": configuration.commit_retries_max,
        "periodic": int(configuration.checkpoint_interval_s is not None),
        "after_commit": int(has_work),
    }
    topology, concurrent = configuration.topology, configuration.concurrent_attempts_max
    if not topology.is_direct:
        from epochgate.models.committing_job import CommittingJob

        constants.update(
            task_committers=int(topology.in_tasks),
            operators_before=int(topology.operators_before > 0),
            operators_behind=int(topology.operators_behind > 0),
        )
        return Handles(CommittingJob if job is Job else job, **constants)
    if concurrent == 1:
        return Handles(job, **constants)
    from epochgate.models.concurrent_job import ConcurrentJob

    constants["subtasks"] *= concurrent
    concurrent_job = ConcurrentJob if job is Job else job
    constants.update(vertices=configuration.parallelism, concurrent=concurrent)
    return Handles(concurrent_job, **constants)
