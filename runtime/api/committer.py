"""The committer API: what makes a completed checkpoint's committables visible.

Source: Apache Flink's Committer and GlobalCommitter (section 6 of docs/protocol.md). A commit may
be called again for a checkpoint that was committed before, after any failure; it must then change
nothing.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any

from epochgate.errors import EpochgateError

Committables = dict[int, list[Any]]
"""Subtask -> the plain values that its operators handed over."""


class RetryLater(EpochgateError):
    """Raised by a committer that could not commit now, but may be able to later; also where it does
    not know whether its commit took effect, which the next try finds out.
    """


class CommitImpossible(EpochgateError):
    """Raised by a committer that knows that this checkpoint can never be committed: the reason.

    The job fails with it. What the checkpoint holds stays in the ledger, in doubt, until the target
    takes it or it is given up.
    """


class Committer(ABC):
    """Commits the checkpoints of one job, in order of their ids.

    `open`, `commit`, `metrics` and `close` run on one thread, the committer's own for its whole
    life, one call at a time; make connections in `open`, which many drivers tie to the thread that
    makes them.
    """

    def open(self, run_id: str, restored: dict[int, Committables]) -> None:
        """Called once before anything else; the start of the job raises what it raises.

        `restored`: checkpoint id -> what the restored checkpoint holds of it and is not known to be
        committed; each is committed again.
        """

    def check(self, committables: Committables) -> None:
        """Raise if these could never be committed; called before their checkpoint is stored.

        A checkpoint that is completed but cannot be committed would leave the job stuck; refused
        here, it is aborted, and the job fails with this error. On the store's thread.
        """

    @abstractmethod
    def commit(self, checkpoint_id: int, committables: Committables) -> bool | None:
        """Make everything of this checkpoint visible at once; return False where an earlier commit
        has done that, and nothing was changed.

        Raises RetryLater to be called again after a while, CommitImpossible where that would never
        help, or another error, which ends the job and leaves it to the next start.
        """

    def metrics(self) -> Mapping[str, int | float]:
        """Figures since `open` by name, such as rows that were committed; shown after each commit.

        What it raises is logged, and changes nothing.
        """
        return {}

    def close(self) -> None:
        """Release everything; called at the end of the job, also when it has failed. Where `open`
        has failed, what made the committer calls it, such as a pipeline.

        What it raises is a warning of the job, which has ended already.
        """
