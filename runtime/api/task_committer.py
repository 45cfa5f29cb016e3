"""The committer in a task: commits the committables of its subtask once their checkpoint is
completed, in parallel with those of the other subtasks.

Decides which signals a commit may give of each committable. When it is called, how often it is
tried again and what a failure means is decided by the machine `SubtaskCommitter`. Source: Apache
Flink's Committer and its CommitRequest (section 6 of docs/protocol.md). Runs on the task's only
thread.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

BEFORE: Final = "before"
LATER: Final = "later"
FAILED: Final = "failed"
"""The signals of a commit request."""


class CommittableSummary(NamedTuple):
    """One subtask's part of a checkpoint: how many committables it handed over, and how many of
    them failed for a known reason.
    """

    checkpoint_id: int
    subtask: int
    committables: int
    failed: int = 0


@dataclass
class CommitRequest:
    """One committable that a `TaskCommitter` is to commit. Without a signal it is committed.

    committable: the plain value. checkpoint_id, subtask: its lineage, where and by whom it was
    handed over; a job that was rescaled may commit it in another subtask. tries: how often its
    commit has failed. At most one signal is given of each; the last one counts.
    """

    committable: Any
    checkpoint_id: int
    subtask: int
    tries: int = 0
    signal: str = ""
    """The signal that was given: "", "before", "later" or "failed"."""
    reason: str = ""

    def already_committed(self) -> None:
        """Signal that an earlier commit had taken effect."""
        self._give(BEFORE, "")

    def retry_later(self, reason: str = "it could not be committed now") -> None:
        """Signal that the commit is to be tried again, after the job's delay and as often as its
        `commit_retries_max` allows.
        """
        self._give(LATER, reason)

    def update_and_retry_later(
        self, committable: Any, reason: str = "a part of it could not be committed"
    ) -> None:
        """Signal that the rest, `committable`, is to be tried again in its place."""
        self._give(LATER, reason)
        self.committable = committable

    def failed(self, reason: str) -> None:
        """Signal that the committable fails for a known reason: the job goes on without it, and
        warns of that. Its rows are lost for good.
        """
        self._give(FAILED, reason)

    def _give(self, signal: str, reason: str) -> None:
        self.signal, self.reason = signal, reason


class TaskCommitter(ABC):
    """Commits the committables of one subtask, one checkpoint at a time, in the order of their ids.

    Made for each attempt by `Sink.create_task_committer`. A commit may be repeated, also by another
    attempt in another process while this one still commits: what was committed must not change.
    """

    @abstractmethod
    def commit(self, requests: Sequence[CommitRequest]) -> None:
        """Make the committables of one checkpoint and subtask take effect.

        Give a signal of each one that is not committed by this call. Raise RetryLater or
        FailedForKnownReason to give that signal of all without one, or CommitImpossible to fail the
        job. Any other error fails the attempt; its successor commits again.
        """

    def close(self) -> None:
        """Release all resources; also called if the attempt has failed or is canceled."""
