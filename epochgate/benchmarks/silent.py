"""A running job without tasks: the real job master on a virtual clock, and a transport that carries
nothing.

What its subtasks would answer is posted by the benchmark, and blocking work runs when it asks for
it, so that all of the driver's work is done on the one thread whose processor time is measured.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

from epochgate.fsm import VirtualClock
from epochgate.fsm.inside import machine_behind
from epochgate.runtime import (
    Committer,
    CommitTopology,
    CoordinatorProvider,
    JobConfiguration,
    JobMaster,
    TaskInbox,
    Transport,
)
from epochgate.runtime.api.restart_strategies import FixedDelay
from epochgate.runtime.api.transport import Message
from epochgate.runtime.store import CheckpointShelf, CheckpointStore, InMemoryCheckpointStore
from epochgate.runtime.testing.simulated_work import SimulatedWork

JOB_ID = "bench"
RESTART_DELAY_S = 1.0
Part = tuple[dict[str, bytes], list[Any]]
"""What a subtask acknowledges a checkpoint with: states by operator, and committables."""


class SilentTransport(Transport):
    """Keeps which processes were ended, and nothing else."""

    def __init__(self) -> None:
        self.inbox: TaskInbox | None = None
        self.ended: list[tuple[int, int]] = []

    def open(self, inbox: TaskInbox) -> None:
        """Remember where to report."""
        self.inbox = inbox

    def deploy(self, subtask: int, attempt: int) -> None:
        """The benchmark connects by itself."""

    def send(self, subtask: int, identity: int, message: Message) -> None:
        """Drop the message: no task is connected."""

    def flush(self) -> None:
        """Nothing waits."""

    def end(self, subtask: int, identity: int, reason: str) -> None:
        """Remember it; the benchmark reports the loss."""
        self.ended.append((subtask, identity))

    def close(self) -> None:
        """Nothing is held."""


class SilentJob:
    """A job that runs from the first moment on. `store`: in memory unless another is given;
    `committer`: none, unless one is, which knows the job's `run_id`. `topology`: of commits;
    `transport`: one that carries what has to come somewhere.
    """

    def __init__(
        self,
        subtasks: int,
        providers: Sequence[CoordinatorProvider],
        *,
        store: CheckpointStore | None = None,
        committer: Committer | None = None,
        run_id: str = "run",
        topology: CommitTopology | None = None,
        transport: SilentTransport | None = None,
    ) -> None:
        self.subtasks = subtasks
        configuration = JobConfiguration(
            JOB_ID,
            subtasks,
            tuple(providers),
            run_id,
            checkpoint_interval_s=None,
            restart_strategy=FixedDelay(attempts_max=10**9, delay_s=RESTART_DELAY_S),
            topology=topology or CommitTopology(),
        )
        self.transport, self.clock = transport or SilentTransport(), VirtualClock()
        self.master = JobMaster(
            configuration,
            transport=self.transport,
            store=store or InMemoryCheckpointStore(CheckpointShelf(), job_id=JOB_ID),
            clock=self.clock,
            blocking=SimulatedWork,
            committer=committer,
        )
        assert isinstance(self.master.blocking, SimulatedWork)
        self._blocking = self.master.blocking
        self.identities = [0] * subtasks
        self._identity = 0
        self.master.start()
        self.drain()
        for subtask in range(subtasks):
            self.connect(subtask)
        self.drain()

    @property
    def inbox(self) -> TaskInbox:
        """The inbox to which the subtasks' messages are posted."""
        if self.transport.inbox is None:
            raise RuntimeError("the job was not started")
        return self.transport.inbox

    def drain(self) -> None:
        """Handle what waits in the queue."""
        self.master.queue.drain()

    def run_work(self) -> bool:
        """Do the next piece of blocking work, whose end then waits in the queue; False if there is
        none.
        """
        return self._blocking.run_next()

    def work(self) -> None:
        """Do all blocking work that waits, and what follows from it."""
        self.drain()
        while self.run_work():
            self.drain()

    def connect(self, subtask: int) -> None:
        """Let a process of the subtask come up."""
        self._identity += 1
        self.identities[subtask] = self._identity
        self.inbox.connected(subtask, self._identity)
        self.say(subtask, ["initialize"], ["run"])

    def say(self, subtask: int, *messages: list[Any]) -> None:
        """Let a subtask send messages."""
        self.inbox.received(subtask, self.identities[subtask], list(messages))

    def advance(self, seconds: float) -> None:
        """Let time pass, with what was to happen then."""
        self.clock.advance(seconds)
        self.master.queue.post_due()
        self.drain()

    def checkpoint(self, parts: Sequence[Part] = ()) -> None:
        """Take one checkpoint, from its request to its completion and commit; `parts`: states and
        committables of each subtask, nothing unless they are given.
        """
        wanted = self.master.request_checkpoint()
        self.drain()
        checkpoint = machine_behind(self.master.job.checkpoint).number
        for subtask in range(self.subtasks):
            states, committables = parts[subtask] if parts else ({}, [])
            self.say(subtask, ["acknowledge", checkpoint, False, states, committables])
        self.work()
        wanted.result(0)


def timed_us(times: int, call: Callable[[int], None]) -> float:
    """Return the processor time of one call out of `times`, in microseconds of this thread."""
    started_s = time.thread_time()
    for turn in range(times):
        call(turn)
    return (time.thread_time() - started_s) / times * 1e6
