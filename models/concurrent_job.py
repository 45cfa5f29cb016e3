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

from epochgate.fsm import machines
from epochgate.models.attempt import Attempt
from epochgate.models.checkpoint import Checkpoint
from epochgate.models.execution_vertex import ExecutionVertex
from epochgate.models.job import Job
from epochgate.models.lifecycle import JobLifecycle


class ConcurrentAttempt(Attempt):
    """An attempt that may have others of its subtask beside it."""

    system: ConcurrentJob

    def vertex(self) -> int:
        return self.subtask // self.system.concurrent

    def note_end(self) -> None:
        self.has_ended = True
        self.system.lifecycle.ended += 1
        self.system.vertex[self.vertex()].end(self.subtask)
        if self.system.lifecycle.ended == self.system.vertices:
            self.system.request.submit()

    def go_down(self) -> None:
        self.system.checkpoint.abort()
        self.drop_in_flight()
        self.announce_failed()
        self.system.vertex[self.vertex()].attempt_failed(self.subtask)
        self.report_down()

    def renew(self) -> None:
        self.has_restart_due = False
        self.number = self.system.vertex[self.vertex()].next_number()
        for c in range(self.system.coordinators):
            self.system.gateway[c, self.subtask].renew(self.number)

    def reset_coordinators(self) -> None:
        for c in range(self.system.coordinators):
            self.system.holder[c].subtask_reset(self.subtask, self.system.checkpoint.completed)
        self.system.vertex[self.vertex()].restart()


class ConcurrentLifecycle(JobLifecycle):
    """The lifecycle of a job that counts its subtasks, not their attempts."""

    system: ConcurrentJob

    def may_checkpoint(self) -> bool:
        return self.may_restart_one() and self.ended == self.system.vertices

    def needs_checkpoint(self) -> bool:
        return self.may_checkpoint()

    def start_all(self) -> None:
        for c in range(self.system.coordinators):
            if self.system.checkpoint.completed > 0:
                self.system.holder[c].reset(self.system.checkpoint.completed)
            self.system.holder[c].start()
        if self.system.checkpoint.completed > 0:
            self.system.committer.due(self.system.checkpoint.completed)
        for v in range(self.system.vertices):
            self.system.vertex[v].begin()

    def cancel_all(self) -> None:
        self.system.checkpoint.abort()
        for v in range(self.system.vertices):
            self.system.vertex[v].abandon()
        for s in range(self.system.subtasks):
            self.system.attempt[s].cancel()

    def restore_all(self) -> None:
        for c in range(self.system.coordinators):
            self.system.holder[c].reset(self.system.checkpoint.completed)
        for v in range(self.system.vertices):
            self.system.vertex[v].begin()


class ConcurrentCheckpoint(Checkpoint):
    """The checkpoint of the attempts that have reached the end; the other places have no part."""

    system: ConcurrentJob

    def begin(self) -> None:
        self.number += 1
        self.coordinators_due = self.system.coordinators
        self.subtasks_due = self.system.vertices
        self.ends_due = self.system.vertices
        self.driver.started(self.number)

    def inject_barriers(self) -> None:
        for s in range(self.system.subtasks):
            if self.system.attempt[s].is_running():
                self.system.attempt[s].task.barrier(self.number)
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
