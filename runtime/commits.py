"""The shell around commits: hands completed checkpoints to the user's committer, off the queue, as
the machine says.

Handler of the global committer's port `sink`. Committables that are not known to be committed
travel in every checkpoint that is stored, so a driver that dies at any moment finds them again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from epochgate.runtime.committer import Committables, Committer, RetryLater
from epochgate.runtime.store import CompletedCheckpoint

if TYPE_CHECKING:
    from epochgate.runtime.job_master import JobMaster


class Commits:
    """What waits to be committed, by checkpoint."""

    def __init__(
        self, master: JobMaster, committer: Committer | None, restored: CompletedCheckpoint | None
    ) -> None:
        self._master = master
        self._committer = committer
        self._waiting: dict[int, Committables] = {}
        if restored is not None:
            for checkpoint, flat in restored.uncommitted.items():
                self._waiting[checkpoint] = dict(flat)
            self._waiting[restored.checkpoint_id] = restored.committables
        if committer is not None:
            committer.open(master.configuration.run_id, dict(self._waiting))
        master.job.bind("committer", "sink", self)

    def expect(self, checkpoint: int, committables: Committables) -> None:
        """The checkpoint is completed: its committables are to be committed."""
        self._waiting[checkpoint] = committables

    def uncommitted(self) -> dict[int, list[Any]]:
        """What is not known to be committed, as plain values: checkpoint -> [[subtask,
        committables], ...].
        """
        return {
            checkpoint: [[subtask, items] for subtask, items in committables.items()]
            for checkpoint, committables in self._waiting.items()
            if committables
        }

    def check(self, committables: Committables) -> None:
        """Let the committer refuse what it could never commit; on the store's thread."""
        if self._committer is not None:
            self._committer.check(committables)

    def commit(self, checkpoint: int, tries: int) -> None:
        """Commit everything up to `checkpoint`, after a pause when that has failed before."""
        if tries:
            delay_s = self._master.configuration.commit_retry_delay_s
            self._master.queue.post_later(delay_s, self._submit, checkpoint)
        else:
            self._submit(checkpoint)

    def _submit(self, checkpoint: int) -> None:
        due = sorted(c for c in self._waiting if c <= checkpoint)
        batch = [(c, self._waiting[c]) for c in due]
        self._master.blocking.submit(
            "commit", lambda: self._commit_all(batch), lambda _, error: self._done(due, error)
        )

    def _commit_all(self, batch: list[tuple[int, Committables]]) -> None:
        if self._committer is not None:
            for checkpoint, committables in batch:
                self._committer.commit(checkpoint, committables)

    def _done(self, due: list[int], error: BaseException | None) -> None:
        machine = self._master.job.committer
        if error is None:
            for checkpoint in due:
                del self._waiting[checkpoint]
            self._master.report.committed_upto = due[-1] if due else 0
            machine.committed()
        elif isinstance(error, RetryLater):
            self._master.warn(f"commit of checkpoints {due} will be tried again: {error}")
            self._master.note_cause(f"commit of checkpoints {due} failed too often: {error}")
            machine.retry_later()
        else:
            self._master.note_cause(f"commit of checkpoints {due} failed: {error}")
            machine.refused()

    def close(self) -> None:
        if self._committer is not None:
            self._committer.close()
