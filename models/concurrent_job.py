"""The job whose subtasks have concurrent attempts: the machines of `Job`, and one for each subtask.

What the machines of `Job` call a subtask is here a place for an attempt: `subtasks` is `vertices`
times `concurrent`, and place p belongs to subtask p // concurrent. The variants below differ in
what concerns all attempts of a subtask at once; the rows are the same.

A job like this takes one checkpoint, the one that ends it, when each subtask has the one attempt
that has reached the end of its input. Source: Apache Flink excludes concurrent attempts and
checkpointing (rule A10 in docs/protocol.md).
"""

from __future__ import annotations

from typing import ClassVar

from epochgate.fsm import ANY, STAY, Opaque, Row, Trigger, machines
from epochgate.models.attempt import Attempt
from epochgate.models.checkpoint import Checkpoint
from epochgate.models.execution_vertex import ExecutionVertex
from epochgate.models.job import Job
from epochgate.models.lifecycle import JobLifecycle


class ConcurrentAttempt(Attempt):
    """An attempt that may have others of its subtask beside it."""

    system: ConcurrentJob

    take_over: Trigger
    hand_over: Trigger

    # fmt: off
    ROWS: ClassVar[tuple[Row, ...]] = (
        *Attempt.ROWS,

        Row("take_over", ANY, STAY, None,
            "adopt_from_other", "the process waits beside another attempt of its subtask"),
        Row("hand_over", ANY, STAY, None,
            "forget_waiting",   "the process waits for another attempt of its subtask now"),
    )
    # fmt: on

    def adopt_from_other(self, identity: int) -> None:
        self.waiting = identity

    def vertex(self) -> int:
        return self.subtask // self.system.concurrent

    def release_process(self) -> None:
        """Spark decides how many tasks of a subtask there are: none begins a second attempt."""
        self.end_process()

    def end_others(self) -> None:
        self.system.vertex[self.vertex()].end(self.subtask)

    def report_failed(self, reason: Opaque) -> None:
        self.system.vertex[self.vertex()].attempt_failed(self.subtask, reason)

    def next_number(self) -> int:
        return self.system.vertex[self.vertex()].attempts

    def count_attempt(self) -> None:
        self.system.vertex[self.vertex()].count()

    def admit_others(self) -> None:
        self.system.vertex[self.vertex()].restart()


class ConcurrentLifecycle(JobLifecycle):
    """The lifecycle of a job that counts its subtasks, not their attempts."""

    system: ConcurrentJob

    def sources(self) -> int:
        return self.system.vertices

    def may_checkpoint(self) -> bool:
        return self.may_restart_one() and self.is_at_end()

    def needs_checkpoint(self) -> bool:
        return self.may_checkpoint()

    def schedule_all(self) -> None:
        for v in range(self.system.vertices):
            self.system.vertex[v].begin()

    def cancel_attempts(self) -> None:
        for v in range(self.system.vertices):
            self.system.vertex[v].abandon()
        for s in range(self.system.subtasks):
            self.system.attempt[s].cancel()

    def recreate_all(self) -> None:
        self.schedule_all()


class ConcurrentCheckpoint(Checkpoint):
    """The checkpoint of the attempts that have reached the end; the other places have no part."""

    system: ConcurrentJob

    def parts(self) -> int:
        return self.system.vertices

    def inject_barriers(self) -> None:
        for s in range(self.system.subtasks):
            if self.system.attempt[s].is_running():
                self.tasks.barrier(s, self.system.attempt[s].identity, self.number)
            else:
                for c in range(self.system.coordinators):
                    self.system.gateway[c, s].reopen(self.number)


class ConcurrentJob(Job):
    """Everything that the driver decides about a job with concurrent attempts.

    Constants besides those of `Job`: `vertices`, how many subtasks there are; `concurrent`, how
    many attempts of each may run at once, at least 2; `subtasks` is their product.
    """

    INDEX_SETS: ClassVar[dict[str, str]] = {**Job.INDEX_SETS, "vertex": "vertices"}
    CONSTANTS: ClassVar[dict[str, int]] = {
        **Job.CONSTANTS,
        "subtasks": 2,
        "vertices": 1,
        "concurrent": 2,
    }

    vertices: int
    concurrent: int

    lifecycle: JobLifecycle = machines(ConcurrentLifecycle)
    attempt: list[Attempt] = machines(ConcurrentAttempt)
    checkpoint: Checkpoint = machines(ConcurrentCheckpoint)
    vertex: list[ExecutionVertex] = machines(ExecutionVertex)
