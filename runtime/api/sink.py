"""The sink API: writes the records of a job to a target, exactly once.

A sink has two halves. In each task a `SinkWriter` stages records where readers do not see them. At
each barrier it hands over committables: plain values that make the records visible. On the driver
one `Committer` gets the committables when the checkpoint is complete, and makes all of them visible
at once. `SinkOperator` hands over the committables of an aborted checkpoint again. The job keeps
the ledger of commits that are not known to be done. A coordinator, if the sink has one, makes the
writers agree. Source: Apache Flink's Sink V2 (section 6 of docs/protocol.md).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from epochgate.errors import UsageError
from epochgate.runtime.api.commit_topology import CommittableOperator
from epochgate.runtime.api.committer import Committer
from epochgate.runtime.api.coordinator import CoordinatorProvider
from epochgate.runtime.api.operator import OperatorContext
from epochgate.runtime.api.state_versions import StateNotUpgraded
from epochgate.runtime.api.task_committer import TaskCommitter
from epochgate.runtime.api.way_on import give_up_command


@dataclass(frozen=True)
class SinkStart:
    """One start of a job, as `Sink.create_committer` gets it.

    job_id: the same at each start. run_id: the id of this start; letters, digits and '-'.
    restored_checkpoint: the id of the restored checkpoint; None if the job starts from the
    beginning. may_withdraw: newer checkpoints have been lost; the job writes their rows again, so
    the sink may withdraw them. epoch: the fencing epoch, higher than that of each earlier start of
    the job. committed: label of the sink, "" without one -> the newest checkpoint with committables
    of this sink that the restored one knows as committed. given_up: ranges (after, upto] of
    checkpoint ids that the target may lack, because a person gave them up. checkpoints: the
    directory or URL of the job's checkpoints, for messages; "" if commands cannot name it.
    in_doubt: checkpoints with committables of which it is not known that they are committed.
    """

    job_id: str
    run_id: str
    restored_checkpoint: int | None = None
    may_withdraw: bool = False
    epoch: int = 0
    committed: Mapping[str, int] = field(default_factory=dict)
    given_up: tuple[tuple[int, int], ...] = ()
    checkpoints: str = ""
    in_doubt: frozenset[int] = frozenset()

    @property
    def newest_committed(self) -> int | None:
        """The newest checkpoint that the sink's target has to hold; None: not known of any.

        A job with several sinks knows it of each label: `of_sink` makes the start of one.
        """
        return self.committed.get("") if set(self.committed) <= {""} else None

    def of_sink(self, label: str, *, is_first: bool = False) -> SinkStart:
        """Return the start of the sink with this label in a job with several sinks.

        is_first: committables without a label belong to it, as in `CommitterOfSinks`.
        """
        labels = (label, "") if is_first else (label,)
        known = [self.committed[one] for one in labels if one in self.committed]
        return replace(self, committed={"": max(known)} if known else {})

    def require_held(self, place: str, last: int | None, missing: Iterable[int] = ()) -> None:
        """Raise BehindCheckpoint if the target lacks checkpoints that the job knows as committed.

        The one rule for all sinks: call it in `Sink.create_committer`, with nothing changed.
        place: the target, for the message. last: the newest checkpoint that the target holds.
        missing: checkpoints up to `last` that the target held once and lacks.
        """
        held, newest = -1 if last is None else last, self.newest_committed
        lost = [number for number in sorted(missing) if self._has_to_hold(number)]
        if newest is not None and held < newest:
            first = max(held, 0)
            if not any(after <= first and newest <= upto for after, upto in self.given_up):
                lost += [first + 1, newest]
        if lost:
            after = min(lost) - 1
            raise BehindCheckpoint(
                place,
                after,
                max(lost),
                self.restored_checkpoint,
                self.checkpoints,
                held > after,
            )

    def _has_to_hold(self, number: int) -> bool:
        """Return whether rows would be lost without this checkpoint. Later ones than the restored
        are written again, and those behind the newest with committables have none, if none is in
        doubt.
        """
        newest = self.newest_committed
        is_empty = newest is not None and number > newest and number not in self.in_doubt
        return not (
            number > (self.restored_checkpoint or 0)
            or is_empty
            or any(after < number <= upto for after, upto in self.given_up)
        )


class AheadOfCheckpoint(UsageError):
    """The target holds newer checkpoints than the restored one: target, its last, the restored.

    Raise it in `Sink.create_committer`, with nothing changed, if the rows cannot be withdrawn.
    """

    def __str__(self) -> str:
        place, last, restored = self.args
        known = "no checkpoint" if restored is None else f"checkpoint {restored}"
        return (
            f"{place} already holds checkpoint {last} of this job, which starts from {known}: "
            "to continue would write the newer rows a second time. Start from the checkpoint "
            f"directory that holds checkpoint {last}, or write to a new target."
        )


class BehindCheckpoint(UsageError):
    """The target lacks committed checkpoints: target, the last before them, their last, the
    restored, where the job's checkpoints lie ("" if that is not known), whether it holds later ones
    than the first that it lacks.

    `SinkStart.require_held` raises it. The target was set back, by a restored backup for instance.
    """

    def __str__(self) -> str:
        place, after, upto, restored, checkpoints, holds_later = self.args
        savepoint = (
            f" Or, if you have a savepoint that is as old as the target (of checkpoint {after}, or "
            "taken before the next commit), start with --from-savepoint SAVEPOINT --checkpoint-dir "
            "NEW (from_savepoint and checkpoint_directory in Python), where NEW does not exist: "
            "the job reads these rows again."
        )
        return (
            f"{place} lacks rows of this job: checkpoints after {after}, up to {upto}, were "
            f"committed to it, and it does not hold them all. To continue from checkpoint "
            f"{restored} would lose these rows. Was the target restored from a backup, rolled "
            "back, or a part of it removed? Put back what is missing, and start again."
            f"{'' if holds_later else savepoint} Or give these rows up for good by "
            f"{give_up_command(checkpoints, f'--after {after}')}, and start again."
        )


class SinkWriter(ABC):
    """The half of a sink in a task: one for each attempt of a subtask, on the task's only thread.

    An exception of a method fails the attempt, and a FatalTaskError the job. The next attempt
    restores the last checkpoint with a new writer. Source: Flink's CommittingSinkWriter.
    """

    def may_write(self, batch: Any) -> bool:
        """Return whether `batch` can be written now; if not, it is called again after the next
        event.

        Send a request to the coordinator here, if the writer needs its answer first.
        """
        return True

    @abstractmethod
    def write(self, batch: Any) -> None:
        """Stage `batch`, usually a pyarrow.RecordBatch, where readers do not see it."""

    @abstractmethod
    def prepare_commit(self, checkpoint_id: int) -> list[Any]:
        """Make everything staged since the last call durable, and return its committables: plain
        values with which the committer makes it visible.

        Return each committable once; `SinkOperator` hands it over again if the checkpoint aborts.
        """

    def snapshot(self, checkpoint_id: int) -> bytes:
        """Return the state that the next attempt's writer restores; called after
        `prepare_commit`.
        """
        return b""

    def handle_event(self, event: Any) -> None:
        """Handle an event of the sink's coordinator. Raises TypeError unless it is overridden."""
        raise TypeError(
            f"{type(self).__name__} got an event from its coordinator but does not handle events; "
            f"override handle_event"
        )

    def close(self) -> None:
        """Release all resources, and remove staged data that `prepare_commit` has not returned.

        Called once, also when the attempt has failed or is canceled.
        """


class Sink(ABC):
    """A sink, as a user implements it. It is pickled and sent to the tasks, so it must not hold
    resources. One sink serves one job at a time. Source: Flink's Sink and SupportsCommitter.
    """

    @abstractmethod
    def create_writer(self, context: OperatorContext, state: bytes | None) -> SinkWriter:
        """Create the writer of one attempt, in its task. `state` is the `snapshot` of an earlier
        attempt, or None.

        Name all staged data by `context.run_id`, `subtask` and `attempt`: a replaced attempt may
        continue to write for a while.
        """

    writer_state_version: int = 1
    """The version of the form of the writers' state, from 1."""

    def upgrade_writer_state(self, version: int, state: bytes) -> bytes:
        """Return a writer's state, which has an older version, in the form of
        `writer_state_version`. Called in a task. Raises StateNotUpgraded unless it is overridden.
        """
        raise StateNotUpgraded(
            f"the writers of {type(self).__name__}", version, self.writer_state_version
        )

    @abstractmethod
    def create_committer(self, start: SinkStart) -> Committer:
        """Claim the target and create its committer; called on the driver, before the job starts.

        Raise an error if the target cannot be claimed. Raise AheadOfCheckpoint if the target holds
        newer checkpoints, unless it may and can withdraw them; `start.require_held` raises
        BehindCheckpoint if the target lacks committed ones. The committer holds the target until
        it is closed. It is also closed if the job does not start; closing it twice must be safe.
        """

    def create_task_committer(self, context: OperatorContext) -> TaskCommitter | None:
        """Create the committer of one attempt, in its task; called after `create_writer`.

        Override it to commit in the tasks, in parallel: what they have committed goes on to the
        committer of `create_committer`. None: the task commits nothing, and passes it on.
        """
        return None

    @property
    def has_task_committer(self) -> bool:
        """True if the sink commits in the tasks: whether `create_task_committer` is overridden."""
        return type(self).create_task_committer is not Sink.create_task_committer

    def pre_commit_topology(self) -> Sequence[CommittableOperator]:
        """Make the operators between the writers and the committers, in their order: those with
        parallelism 1 first. Called on the driver and in each task.
        """
        return ()

    def post_commit_topology(self) -> Sequence[CommittableOperator]:
        """Make the operators between the committers in the tasks and the global committer, in their
        order: those in the tasks first. Called on the driver and in each task.
        """
        return ()

    def create_coordinator(
        self, operator_id: str, committer: Committer
    ) -> CoordinatorProvider | None:
        """Create the provider of the writers' coordinator with this operator id, on the driver.

        None: the sink has no coordinator. `committer` was created for the same start.
        """
        return None
