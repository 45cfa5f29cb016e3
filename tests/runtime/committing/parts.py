"""A sink of all steps, each of which comes to the doors of a test."""

from __future__ import annotations

from collections.abc import Sequence

from epochgate.runtime import (
    CommittableOperator,
    Committer,
    OperatorContext,
    Sink,
    SinkStart,
    SinkWriter,
    TaskCommitter,
)
from tests.runtime.at_door import Door
from tests.runtime.committing.sinks import (
    Counting,
    Manifest,
    Target,
    TargetTaskCommitter,
    TargetWriter,
)


class StepsAtDoors(Sink):
    """Operators on either side of the committers in the tasks, and a manifest."""

    def __init__(self, door: Door, target: Target) -> None:
        self._door, self._target = door, target

    def create_writer(self, context: OperatorContext, state: bytes | None) -> SinkWriter:
        return TargetWriter()

    def create_task_committer(self, context: OperatorContext) -> TaskCommitter:
        kind = self._door.of(TargetTaskCommitter, "task_committer")
        return kind(self._target, context.subtask)

    def create_committer(self, start: SinkStart) -> Committer:
        return self._door.of(Manifest, "combining")(self._target)

    def _between(self, stands_for: str, parallelism: int | None) -> CommittableOperator:
        return self._door.of(Counting, stands_for)(stands_for, parallelism)

    def pre_commit_topology(self) -> Sequence[CommittableOperator]:
        return [self._between("first_on_driver", 1), self._between("first_in_task", None)]

    def post_commit_topology(self) -> Sequence[CommittableOperator]:
        return [self._between("then_in_task", None), self._between("then_on_driver", 1)]
