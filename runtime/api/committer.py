"""The committer API: makes the committables of a completed checkpoint visible.

Source: Apache Flink's Committer and GlobalCommitter (section 6 of docs/protocol.md). After a
failure `commit` may be called again for a committed checkpoint, and must then change nothing.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any

from epochgate.errors import EpochgateError

Committables = dict[int, list[Any]]
"""Subtask -> committables of its operators, plain values."""


class RetryLater(EpochgateError):
    """The committer could not commit now, or does not know whether its commit took effect.

    Raise it in `Committer.commit`; the job retries the commit.
    """


class CommitImpossible(EpochgateError):
    """The checkpoint can never be committed: the reason.

    Raise it in `Committer.commit`; the job fails with it. The committables stay in the ledger, in
    doubt, until the target accepts them or `epochgate commits give-up` drops them.
    """


class UpdateAndRetryLater(RetryLater):
    """A part of the checkpoint is committed, or changed: the job commits `rest`, the committables
    that are left, later.

    Raise it in `Committer.commit`. `rest` has the form of the committables that `commit` got; it is
    stored with later checkpoints in their place.
    """

    def __init__(
        self, rest: Committables, reason: str = "a part of it could not be committed"
    ) -> None:
        super().__init__(reason)
        self.rest = rest


class FailedForKnownReason(EpochgateError):
    """The committables fail for a reason that the committer knows: the job goes on without them,
    and warns of that.

    Raise it in `Committer.commit`. Their rows are lost for good; raise CommitImpossible if the job
    must not go on.
    """


class Committer(ABC):
    """Commits the checkpoints of one job, in order of their ids.

    `open`, `commit`, `metrics` and `close` are called one at a time on a single thread. Make
    connections in `open`, since many libraries tie a connection to the thread that made it.
    """

    def open(self, run_id: str, restored: dict[int, Committables]) -> None:
        """Open; called once, before any other method. An exception fails the start of the job.

        `restored`: checkpoint id -> the committables in the restored checkpoint that are not known
        to be committed. `commit` is called again for each of these checkpoints.
        """

    def check(self, committables: Committables) -> None:
        """Raise an error if these committables could never be committed.

        Called on the store's thread, before the checkpoint is stored. An error aborts the
        checkpoint and fails the job. Without this check, a completed checkpoint that cannot be
        committed would block every later start.
        """

    @abstractmethod
    def commit(self, checkpoint_id: int, committables: Committables) -> bool | None:
        """Make all committables of the checkpoint visible at once.

        Return False if an earlier call has already done so; change nothing then. Raise RetryLater
        to be called again later, UpdateAndRetryLater to be called again with what is left,
        FailedForKnownReason to leave the checkpoint out, or CommitImpossible if no retry can
        succeed. Any other error fails the job, and the next start commits again.
        """

    def metrics(self) -> Mapping[str, int | float]:
        """Return metrics since `open` by name, such as the number of committed rows.

        Called after each commit. An exception is logged and otherwise ignored.
        """
        return {}

    def close(self) -> None:
        """Release all resources; called at the end of the job, also if the job or `open` failed.

        If `open` failed, the caller that made the committer closes it, such as a pipeline. An
        exception is logged as a warning.
        """


class CombiningCommitter(Committer):
    """A committer of one global committable: a manifest of all subtasks' committables, for
    instance.

    Source: the GlobalCommT of Apache Flink's GlobalCommitterOperator.
    """

    @abstractmethod
    def combine(self, checkpoint_id: int, committables: Committables) -> Any:
        """Return one plain value in the place of all committables of the checkpoint.

        Called once they are complete, on the thread of `commit`. The value is what is stored with
        later checkpoints, committed and retried. Raise RetryLater to be called again; any other
        error fails the job.
        """

    @abstractmethod
    def commit_combined(self, checkpoint_id: int, combined: Any) -> bool | None:
        """Make the checkpoint visible at once; as `Committer.commit` otherwise."""

    def commit(self, checkpoint_id: int, committables: Committables) -> bool | None:
        """Commit the global committable of the checkpoint."""
        ((combined,),) = committables.values()
        return self.commit_combined(checkpoint_id, combined)
