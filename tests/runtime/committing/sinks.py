"""Sinks that commit in the tasks, over targets in memory that outlive drivers and processes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from epochgate.runtime import (
    CombiningCommitter,
    CommitRequest,
    CommittableBatch,
    CommittableOperator,
    Committables,
    Committer,
    OperatorContext,
    Sink,
    SinkStart,
    SinkWriter,
    TaskCommitter,
)


@dataclass
class Target:
    """The commits of the tasks, the global ones, and what is to go wrong."""

    in_tasks: dict[str, int] = field(default_factory=dict)
    """Committable -> the checkpoint with which it took effect."""
    globally: dict[int, Committables] = field(default_factory=dict)
    calls: list[tuple[int, int, list[str]]] = field(default_factory=list)
    """Checkpoint, subtask and committables of each call in a task."""
    tries: list[int] = field(default_factory=list)
    """How often the commit of each call had failed before."""
    signals: dict[str, list[Any]] = field(default_factory=dict)
    """Committable -> what is said of it, one after the other, before it is committed."""


class TargetWriter(SinkWriter):
    """Each row is a committable."""

    def __init__(self) -> None:
        self._rows: list[str] = []

    def write(self, batch: Any) -> None:
        self._rows += batch

    def prepare_commit(self, checkpoint_id: int) -> list[Any]:
        rows, self._rows = self._rows, []
        return rows


class TargetTaskCommitter(TaskCommitter):
    """Commits each row once, and says so when it is asked again."""

    def __init__(self, target: Target, subtask: int) -> None:
        self._target, self._subtask = target, subtask

    def commit(self, requests: Sequence[CommitRequest]) -> None:
        target = self._target
        rows = [request.committable for request in requests]
        target.calls.append((requests[0].checkpoint_id, self._subtask, rows))
        target.tries.append(requests[0].tries)
        for request in requests:
            row = request.committable
            said = target.signals.get(row)
            if said:
                signal = said.pop(0)
                if isinstance(signal, BaseException):
                    raise signal
                getattr(request, signal[0])(*signal[1:])
            elif row in target.in_tasks:
                request.already_committed()
            else:
                target.in_tasks[row] = request.checkpoint_id


class TargetCommitter(Committer):
    """Keeps what is committed globally, and whether it was in the tasks before."""

    def __init__(self, target: Target) -> None:
        self._target = target

    def commit(self, checkpoint_id: int, committables: Committables) -> bool | None:
        if checkpoint_id in self._target.globally:
            assert sorted_rows(self._target.globally[checkpoint_id]) == sorted_rows(committables)
            return False
        self._target.globally[checkpoint_id] = committables
        return None


class Manifest(CombiningCommitter):
    """One manifest of all subtasks."""

    def __init__(self, target: Target) -> None:
        self._target = target

    def combine(self, checkpoint_id: int, committables: Committables) -> Any:
        return {"rows": sorted(row for rows in committables.values() for row in rows)}

    def commit_combined(self, checkpoint_id: int, combined: Any) -> bool | None:
        if checkpoint_id in self._target.globally:
            return False
        self._target.globally[checkpoint_id] = {0: [combined]}
        return None


class Counting(CommittableOperator):
    """Counts the committables that have passed, and appends the count to each of them."""

    def __init__(self, name: str, parallelism: int | None) -> None:
        self.name, self.parallelism = name, parallelism
        self.seen: Counter[str] = Counter()

    def open(self, state: bytes | None) -> None:
        self.seen = Counter(state.decode().split(",") if state else ())

    def process(self, batch: CommittableBatch) -> Committables:
        for rows in batch.committables.values():
            self.seen.update(rows)
        assert max(self.seen.values(), default=0) <= 1, f"{self.name} has seen one twice"
        assert all(
            batch.summaries[subtask].committables - batch.summaries[subtask].failed == len(rows)
            for subtask, rows in batch.committables.items()
        )
        return batch.committables

    def snapshot(self) -> bytes:
        return ",".join(sorted(self.seen.elements())).encode()


@dataclass(frozen=True)
class TargetSink(Sink):
    """`combines`: the global committer commits a manifest. `operators`: with one of each kind."""

    target: Target
    combines: bool = False
    operators: bool = False

    def create_writer(self, context: OperatorContext, state: bytes | None) -> SinkWriter:
        return TargetWriter()

    def create_task_committer(self, context: OperatorContext) -> TaskCommitter | None:
        return TargetTaskCommitter(self.target, context.subtask)

    def create_committer(self, start: SinkStart) -> Committer:
        return (Manifest if self.combines else TargetCommitter)(self.target)

    def pre_commit_topology(self) -> Sequence[CommittableOperator]:
        both = [Counting("before, on the driver", 1), Counting("before, in the task", None)]
        return both if self.operators else ()

    def post_commit_topology(self) -> Sequence[CommittableOperator]:
        both = [Counting("behind, in the task", None), Counting("behind, on the driver", 1)]
        return both if self.operators else ()


class DirectSink(TargetSink):
    """The same without a committer in the tasks."""

    create_task_committer = Sink.create_task_committer


def sorted_rows(committables: Committables) -> dict[int, list[Any]]:
    """A second commit may get the same committables in another order."""
    return {subtask: sorted(rows) for subtask, rows in committables.items()}
