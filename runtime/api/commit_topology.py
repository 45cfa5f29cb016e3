"""The topology of a sink: the steps of its committables from the writers to the global committer.

Decides which orders of steps there are; any other is refused before a job begins::

    writers | pre-commit: on the driver, then in the tasks | committers in the tasks
            | post-commit: in the tasks, then on the driver | global committer

Source: SupportsPreCommitTopology, SupportsCommitter and SupportsPostCommitTopology of Apache
Flink's sinks (section 6 of docs/protocol.md).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from epochgate.errors import UsageError
from epochgate.runtime.api.committer import CombiningCommitter, Committables, Committer
from epochgate.runtime.api.reports import counted
from epochgate.runtime.api.task_committer import CommittableSummary

if TYPE_CHECKING:
    from epochgate.runtime.api.sink import Sink


class TopologyRefused(UsageError):
    """The steps of a sink cannot follow each other in this order."""


@dataclass(frozen=True)
class CommittableBatch:
    """The committables of one completed checkpoint, as an operator between gets them.

    committables: by the subtask that handed them over; in a task those of its own alone.
    summaries: one of each of these subtasks.
    """

    checkpoint_id: int
    committables: Committables
    summaries: Mapping[int, CommittableSummary]


class CommittableOperator(ABC):
    """Processes the committables of each completed checkpoint exactly once, on their way from the
    writers to the global committer.

    A failure restores the operator's state and repeats what that does not hold, so `process` must
    return the same for the same state and batch, and change nothing else that is not idempotent.
    """

    parallelism: int | None = None
    """1: one operator on the driver, which gets each checkpoint whole; None: one in each task."""

    def open(self, state: bytes | None) -> None:
        """Restore `state`, the result of an earlier `snapshot`; None means no state. Called first.

        An operator in a task of a job that was rescaled begins without a state.
        """

    @abstractmethod
    def process(self, batch: CommittableBatch) -> Committables:
        """Return the committables that go on, by subtask, in the place of those of `batch`.

        On the driver raise RetryLater to be called again, restored, with the delays of a commit;
        any other error fails the job. In a task an error fails the attempt.
        """

    def snapshot(self) -> bytes:
        """Return the state as bytes: the effect of exactly the batches processed so far."""
        return b""

    def close(self) -> None:
        """Release all resources."""


@dataclass(frozen=True)
class CommitTopology:
    """The steps of a sink's commits. `CommitTopology.of(sink)` makes it; without an argument it is
    that of a sink whose committables go from the writers to the committer on the driver.
    """

    sink: Sink | None = None
    in_tasks: bool = False
    """The tasks commit, or process committables."""
    operators_before: int = 0
    """How many operators there are on the driver in front of the tasks' step."""
    operators_behind: int = 0
    """How many in front of the global committer, its combining included."""

    @staticmethod
    def of(sink: Sink, committer: Committer | None = None) -> CommitTopology:
        """Return the topology of a sink. `committer`: what its `create_committer` has returned.

        Raises TopologyRefused.
        """
        pre: list[Any] = list(sink.pre_commit_topology())
        post: list[Any] = list(sink.post_commit_topology())
        for one in (*pre, *post):
            if not isinstance(one, CommittableOperator) or one.parallelism not in (None, 1):
                raise TopologyRefused(
                    f"{_named(sink)} has {one!r} between its commits, and parallelism "
                    f"{getattr(one, 'parallelism', None)!r}; give a CommittableOperator whose "
                    "parallelism is None, that of the tasks, or 1"
                )
        first, middle = _parted(pre), _parted(post)
        has_committer = sink.has_task_committer
        if first != sorted(first, reverse=True):
            raise TopologyRefused(
                f"pre_commit_topology of {_named(sink)} has an operator with parallelism 1 behind "
                "one in the tasks; put those with parallelism 1 first"
            )
        if middle != sorted(middle):
            raise TopologyRefused(
                f"post_commit_topology of {_named(sink)} has an operator in the tasks behind one "
                "with parallelism 1; put those in the tasks first"
            )
        in_tasks = has_committer or 0 in first or 0 in middle
        combines = int(isinstance(committer, CombiningCommitter))
        return CommitTopology(
            sink,
            in_tasks,
            sum(first),
            sum(middle) + combines,
        )

    @property
    def is_direct(self) -> bool:
        """True if committables go straight from the writers to the global committer."""
        return not (self.in_tasks or self.operators_before or self.operators_behind)

    def __str__(self) -> str:
        """The steps in words, in their order."""
        steps = []
        if self.operators_before:
            steps.append(f"{counted(self.operators_before, 'operator')} on the driver")
        if self.in_tasks and self.sink is not None:
            before, behind = (len(held) for held in operators_in_task(self.sink))
            within = [
                counted(before, "operator") if before else "",
                "a committer" if self.sink.has_task_committer else "",
                counted(behind, "operator") if behind else "",
            ]
            steps.append(f"{', '.join(one for one in within if one)} in each task")
        behind = len(self.on_driver(is_before=False))
        if behind:
            steps.append(f"{counted(behind, 'operator')} on the driver")
        combining = "the combining committer" if self.operators_behind > behind else "the committer"
        return " -> ".join([*steps, f"{combining} on the driver"])

    def on_driver(self, *, is_before: bool) -> list[CommittableOperator]:
        """Make the operators on the driver: in front of the tasks' step, or behind it."""
        if self.sink is None:
            return []
        made = self.sink.pre_commit_topology() if is_before else self.sink.post_commit_topology()
        return [one for one in made if one.parallelism == 1]


def operators_in_task(sink: Sink) -> tuple[list[CommittableOperator], list[CommittableOperator]]:
    """Make the operators of one task: those in front of its committer, and those behind it."""
    return (
        [one for one in sink.pre_commit_topology() if one.parallelism is None],
        [one for one in sink.post_commit_topology() if one.parallelism is None],
    )


def _parted(operators: Sequence[CommittableOperator]) -> list[int]:
    """1 for each one on the driver, 0 for each one in the tasks."""
    return [int(one.parallelism == 1) for one in operators]


def _named(sink: Sink) -> str:
    return f"{type(sink).__module__}.{type(sink).__qualname__}"
