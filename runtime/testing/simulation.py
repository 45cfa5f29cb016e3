"""A whole job in one thread: job master, processes, store and clock, moved one elementary step at a
time by the test.

Meant for fuzzing coordinators, operators and committers of one's own: everything that can happen to
a job in production is a method here, and nothing happens unless it is called. What outlives the
driver is the shelf with its checkpoints, and whatever the user's committer writes to.

    simulated = SimulatedJob(lambda start: JobConfiguration("job", 2, (MyProvider(),)), MyProgram)
    simulated.settle()            # everything is up
    simulated.transport.kill(1)   # a process dies
    simulated.settle()            # and all is well again, or `Stuck` says what is not
    simulated.faults.doom("acknowledge", "lost")   # a single message is lost
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any, Protocol

from epochgate.errors import EpochgateError
from epochgate.fsm import VirtualClock
from epochgate.fsm.inside import machines_behind
from epochgate.models.job import Job
from epochgate.runtime.api.committer import Committer
from epochgate.runtime.api.configuration import JobConfiguration
from epochgate.runtime.api.job_events import JobListener
from epochgate.runtime.api.operator import Program
from epochgate.runtime.api.reports import JobResult
from epochgate.runtime.api.sink import SinkStart
from epochgate.runtime.shell.blocking_work import Wait
from epochgate.runtime.shell.job_master import JobMaster
from epochgate.runtime.shell.post_commits import AfterCommit
from epochgate.runtime.store import CheckpointShelf, InMemoryCheckpointStore
from epochgate.runtime.testing.faulty_transport import Fault, FaultyTransport
from epochgate.runtime.testing.in_process import InProcessTransport, Step
from epochgate.runtime.testing.simulated_work import SimulatedWork
from epochgate.runtime.tracing.file_journal import Tracing

ROUNDS_MAX = 2000
ROUNDS_PER_INSTANT = 50
"""How many rounds may pass before time moves on although work is left, as a source without end."""


class JobHasFailed(EpochgateError):
    """A simulated job has failed, or was canceled, and should have come to rest or finished."""


class Stuck(EpochgateError):
    """A simulated job that should have come to rest did not; the message says what is not at rest.

    `timers` tells whether time would still move it: a job that goes round in circles has timers.
    """


class Prepared(Protocol):
    """One start of a job: what it is made of."""

    @property
    def configuration(self) -> JobConfiguration:
        """The job's configuration."""
        ...

    @property
    def program(self) -> Callable[[int], Program]:
        """The maker of the programs of the subtasks."""
        ...

    @property
    def committer(self) -> Committer | None:
        """The committer, if there is one."""
        ...

    @property
    def after_commit(self) -> AfterCommit | None:
        """The function that is called with each checkpoint that is visible."""
        ...


class Preparing(Protocol):
    """A `Pipeline`."""

    def prepared(self, start: SinkStart, parallelism: int = ..., **settings: Any) -> Prepared:
        """The job of one start."""
        ...


class SimulatedJob:
    """One job, its driver's deaths and restarts included.

    `configure` makes the configuration of each start (0, 1, ...) with fresh providers and a fresh
    restart strategy; `program` makes what each process of a subtask runs; `committer` opens the
    committer of each start, `after_commit` gives its work after commits. `job` may be a variant of
    the machines; `prepare` sees each job master before it starts; `retained` is how many
    checkpoints are kept. `transport` moves the messages of the present start, and `faults` strikes
    some of them: those that the argument `faults` counts in each start, and those that it is told
    of meanwhile. `shelf` may have checkpoints already. `listeners` hear at once what happens, in
    all starts. `journal`: a directory for the traces of driver and processes, in all starts.
    """

    def __init__(
        self,
        configure: Callable[[int], JobConfiguration],
        program: Callable[[int], Program],
        *,
        committer: Callable[[], Committer | None] | None = None,
        after_commit: Callable[[], AfterCommit | None] | None = None,
        job: Callable[..., Job] = Job,
        prepare: Callable[[JobMaster], None] | None = None,
        retained: int = 3,
        faults: Iterable[Fault] = (),
        listeners: Sequence[JobListener] = (),
        shelf: CheckpointShelf | None = None,
        journal: str | os.PathLike[str] | Tracing | None = None,
    ) -> None:
        self._configure, self._program, self._job = configure, program, job
        self._committer, self._prepare, self._retained = committer, prepare, retained
        self._after_commit = after_commit
        self._message_faults, self._listeners = tuple(faults), tuple(listeners)
        self._journal = journal
        self.shelf = CheckpointShelf() if shelf is None else shelf
        self.clock = VirtualClock()
        self.starts = 0
        self._open()

    @classmethod
    def of(
        cls,
        pipeline: Preparing,
        *,
        parallelism: int | Callable[[int], int] = 1,
        shelf: CheckpointShelf | None = None,
        listeners: Sequence[JobListener] = (),
        **settings: Any,
    ) -> SimulatedJob:
        """Simulate a `Pipeline`; `parallelism` may be a function of the start, `shelf` may have
        checkpoints of job "simulated" already, `settings` are further fields of `JobConfiguration`.
        Raises what the pipeline's `prepared` raises.
        """
        shelf = CheckpointShelf() if shelf is None else shelf
        starts: list[Prepared] = []

        def configure(start: int) -> JobConfiguration:
            subtasks = parallelism if isinstance(parallelism, int) else parallelism(start)
            restored = max(shelf.checkpoints, default=None)
            this = SinkStart("simulated", f"run-{start}", restored, epoch=start + 1)
            starts.append(pipeline.prepared(this, subtasks, **settings))
            return starts[-1].configuration

        return cls(
            configure,
            lambda subtask: starts[-1].program(subtask),
            committer=lambda: starts[-1].committer,
            after_commit=lambda: starts[-1].after_commit,
            listeners=listeners,
            shelf=shelf,
        )

    def _open(self) -> None:
        configuration = replace(self._configure(self.starts), run_id=f"run-{self.starts}")
        self.starts += 1
        tracing = self._tracing(configuration)
        self.transport = InProcessTransport(
            self._program,
            parallelism=configuration.parallelism,
            coordinators=configuration.operator_ids,
            run_id=configuration.run_id,
            clock=self.clock,
            tracing=tracing,
            commits_in_tasks=configuration.topology.in_tasks,
        )
        self.faults = FaultyTransport(self.transport, self._message_faults)
        self.store = InMemoryCheckpointStore(
            self.shelf, job_id=configuration.job_id, retained=self._retained
        )
        self.master = JobMaster(
            configuration,
            transport=self.faults,
            store=self.store,
            clock=self.clock,
            blocking=SimulatedWork,
            committer=None if self._committer is None else self._committer(),
            after_commit=None if self._after_commit is None else self._after_commit(),
            job=self._job,
            wall_clock=self.clock.now_s,
            listeners=self._listeners,
            journal=None if tracing is None else tracing.driver,
        )
        self.transport.on_broken = self.master.fail
        if self._prepare is not None:
            self._prepare(self.master)
        self.master.start()

    def _tracing(self, configuration: JobConfiguration) -> Tracing | None:
        if self._journal is None:
            return None
        if isinstance(self._journal, Tracing):
            return replace(self._journal, run_id=configuration.run_id)
        run = configuration.job_id, configuration.run_id
        # The faults of a simulation may strike any message.
        return Tracing(os.fspath(self._journal), *run, is_ordered=False)

    @property
    def machines(self) -> Job:
        """The machines of the present start, which a test may read."""
        return machines_behind(self.master.job)

    # what can happen

    @property
    def is_over(self) -> bool:
        """True if the job has ended."""
        return self.master.is_over

    @property
    def result(self) -> JobResult:
        """The end of the job; only once it is over."""
        return self.master.result.result(timeout=0)

    @property
    def blocking(self) -> SimulatedWork:
        """Return the blocking work that waits to be run."""
        assert isinstance(self.master.blocking, SimulatedWork)
        return self.master.blocking

    def drain(self, events_max: int | None = None) -> int:
        """Let the job master process what is in its queue, or at most `events_max` events."""
        return self.master.queue.drain(events_max)

    def steps(self) -> list[Step]:
        """Return what messages and processes can do next; (`late`, position) is a message of
        `faults.late`.
        """
        late = [("late", position) for position in range(len(self.faults.late))]
        return [*late, *self.transport.steps()]

    def can(self, step: Step) -> bool:
        """Return whether this is one of `steps`."""
        kind, identity = step
        if kind == "late":
            return identity < len(self.faults.late)
        return self.transport.can(kind, identity)

    def step(self, step: Step) -> bool:
        """Move one message, or let one process work; False when nothing happened."""
        kind, identity = step
        if kind == "late":
            self.faults.let_arrive(identity)
            return True
        return self.transport.step(kind, identity)

    def run_blocking(self, lane: str | None = None) -> bool:
        """Let the oldest piece of blocking work run, or the oldest of a lane: a save (`store`) or a
        commit (`commit`); False if none waits.

        What is in one of `blocking.hanging` runs only when its lane is named.
        """
        return self.blocking.run_next(lane)

    def exceed_limit(self, lane: str) -> Callable[[], None]:
        """Let the oldest piece of blocking work of a lane hang until its limit has passed; call
        what is returned to let it end after all. Raises ValueError if none waits.
        """
        work = self.blocking.take(lane)
        for timer in self.master.queue.timers():
            if isinstance(timer, Wait) and timer.lane == lane:
                self.master.queue.post(timer.expire)
        return work

    def advance(self) -> float | None:
        """Move the clock to the next timer of the driver or wake-up of a task, and let it happen;
        the seconds passed, None without timers.
        """
        due_s = self.next_due_s()
        if due_s is None:
            return None
        delay_s = max(0.0, due_s - self.clock.now_s())
        self.clock.advance(delay_s)
        self.master.queue.post_due()
        self.transport.wake()
        return delay_s

    def next_due_s(self) -> float | None:
        """Return when the driver's next timer or a task's wake-up is due; None without any."""
        due_s = (self.master.queue.next_due_s(), self.transport.next_due_s())
        return min((at_s for at_s in due_s if at_s is not None), default=None)

    def wait(self, seconds: float) -> None:
        """Let time pass, post the timers in it one instant after the other, and let the tasks work
        whose wake-up is due. What they say stays on its way.
        """
        end_s = self.clock.now_s() + seconds
        while (due_s := self.next_due_s()) is not None and due_s <= end_s:
            self.clock.advance(max(0.0, due_s - self.clock.now_s()))
            self.master.queue.post_due()
            self.drain()
            self.transport.wake()
        self.clock.advance(max(0.0, end_s - self.clock.now_s()))

    def flow(self, held: tuple[str, ...] = (), only: int | None = None) -> None:
        """Drain, move messages and run blocking work until nothing moves; time stands still.

        `held` names kinds of steps that do not happen (`connect`, `hear`, `tell`, `lose`, `late`,
        `work`, `blocking`); `only` is the subtask whose processes move.
        """
        for _ in range(ROUNDS_PER_INSTANT):
            if not self._round(held, only):
                return

    def _round(self, held: tuple[str, ...] = (), only: int | None = None) -> bool:
        has_moved = self.drain() > 0
        for kind, identity in self.steps():
            if kind in held or not self.can((kind, identity)):
                continue
            if only is None or self._is_of(only, kind, identity):
                has_moved = self.step((kind, identity)) or has_moved
                self.drain()
        if "blocking" not in held and only is None and self.run_blocking():
            has_moved = True
            self.drain()
        return has_moved

    def _is_of(self, subtask: int, kind: str, identity: int) -> bool:
        if kind == "late":
            return self.faults.late[identity].subtask == subtask
        process = self.transport.processes.get(identity)
        return process is not None and process.subtask == subtask

    def crash_driver(self) -> None:
        """Kill the driver with all its processes, and start another on the same checkpoints.

        What it had not stored or committed is gone; a job that is over is started again.
        """
        self.faults.close()
        self.blocking.close()
        self.shelf.end_driver()
        self._open()

    # until it comes to rest

    def is_steady(self) -> bool:
        """Return whether the job is over, or every subtask runs and nothing is under way."""
        job, subtask_of = self.machines, self.master.subtask_of
        if self.is_over:
            return True
        running = {subtask_of[p] for p, attempt in enumerate(job.attempt) if attempt.is_running()}
        return (
            job.lifecycle.state == "running"
            and len(running) == self.master.configuration.parallelism
            and job.checkpoint.is_over()
            and job.request.state == "idle"
            and job.committer.is_settled()
            and job.post_commit.is_settled()
            and self.master.queue.is_empty
        )

    def settle(self, until: Callable[[], bool] | None = None, rounds_max: int = ROUNDS_MAX) -> None:
        """Let everything happen that can, without faults, until `until` holds.

        By default until the job is steady and nothing moves. Raises `Stuck`; and by default
        JobHasFailed, if the job fails.
        """
        self.rest(until, rounds_max)
        if until is None and self.is_over and self.result.state == "failed":
            raise JobHasFailed(
                f"the job is failed: {self.result.reason}. If that is meant, write rest() in the "
                "place of settle()"
            )

    def rest(self, until: Callable[[], bool] | None = None, rounds_max: int = ROUNDS_MAX) -> None:
        """Do as `settle` does; a job that has failed is at rest too. Raises `Stuck`."""
        self.faults.calm()
        self.blocking.hanging.clear()
        since_tick = 0
        for _ in range(rounds_max):
            has_moved = self._round()
            if until is not None and until():
                return
            if not has_moved and until is None and self.is_steady():
                return
            since_tick += 1
            if not has_moved or since_tick > ROUNDS_PER_INSTANT:
                since_tick = 0
                if self.advance() is None and not has_moved:
                    break
        raise Stuck(self.account())

    def finish(self) -> None:
        """Let everything happen that can, without faults, until the job has finished.

        Raises JobHasFailed if it fails or is canceled, and `Stuck`.
        """
        self.rest(until=lambda: self.is_over)
        if self.result.state != "finished":
            raise JobHasFailed(f"the job is {self.result.state}: {self.result.reason}")

    def account(self) -> str:
        """Tell what is not at rest, for a person to read."""
        job, lines = self.machines, ["the job has not come to rest:"]
        for name, values in job.values().items():
            if values["state"] not in AT_REST.get(name.split("[")[0], ()):
                told = {k: v for k, v in values.items() if v and k != "state"}
                lines.append(f"  {name} is {values['state']}: {told}")
        lines += [f"  {self._told(process)}" for process in self.transport.processes]
        lines += [f"  blocking work waits: {lane}" for lane, *_ in self.blocking.waiting]
        due_s = self.next_due_s()
        now_s = self.clock.now_s()
        lines.append(
            f"  at {now_s:g} s; the next timer is "
            + ("none" if due_s is None else f"at {due_s:g} s")
        )
        report = self.master.report
        lines += [
            f"  {f.at_s:g} s: subtask {f.subtask} failed: {f.reason}" for f in report.failures[-3:]
        ]
        lines += [f"  checkpoint {c.checkpoint_id}: {c.reason}" for c in report.checkpoints[-3:]]
        return "\n".join(lines)

    def _told(self, identity: int) -> str:
        process = self.transport.processes[identity]
        marks = {
            "connected": process.is_connected,
            "alive": process.is_alive,
            "cut": process.is_cut,
        }
        words = [word for word, holds in marks.items() if holds]
        queues: dict[str, Any] = {"to it": process.to_task, "from it": process.to_driver}
        waiting = {name: [m[0] for m in queue] for name, queue in queues.items() if queue}
        return (
            f"process {identity} of subtask {process.subtask}: {', '.join(words)} {waiting or ''}"
        )


AT_REST = {
    "lifecycle": ("running", "finished", "failed", "canceled"),
    "attempt": ("running", "finished"),
    "vertex": ("attempted", "ended"),
    "holder": ("started", "closed"),
    "gateway": ("open",),
    "snapshot": ("idle",),
    "request": ("idle",),
    "checkpoint": ("none", "completed", "aborted", "unknown"),
    "committer": ("idle",),
    "post_commit": ("idle", "put_off"),
}
"""The states in which a machine waits for nothing."""
