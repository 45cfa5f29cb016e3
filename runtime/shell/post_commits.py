"""The shell around the work after commits: calls the user's function for each checkpoint that is
visible, off the queue and beside the commits, as the machine says.

Handler of the port `worker` of the machine `PostCommit`. It decides nothing: the machine says whose
work is due, whether a failure is tried again, and which debts travel with a checkpoint. The
committables of a debt stay with those of the ledger, in `Commits`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from epochgate.runtime.api.committer import Committables
from epochgate.runtime.api.raised import described
from epochgate.runtime.api.reports import shortened
from epochgate.runtime.shell.blocking_work import in_lane

if TYPE_CHECKING:
    from epochgate.runtime.shell.job_master import JobMaster

AfterCommit = Callable[[int, Committables], None]
"""Called with a checkpoint that is visible and its committables, by subtask."""

LANE: Final = "after-commit"
"""A thread of its own, so that neither checkpoints nor commits wait for it."""


class PostCommits:
    """Calls `after_commit`, if there is one."""

    def __init__(self, master: JobMaster, after_commit: AfterCommit | None) -> None:
        self._master, self._after_commit = master, after_commit
        self.release = master.commits.release
        master.job.bind("post_commit", "worker", self)

    # port `worker`

    def work(self, checkpoint: int, tries: int) -> None:
        """Do the work, after a pause when it has failed before."""
        if tries:
            pause_s = self._master.configuration.commit_pause_s(tries)
            self._master.queue.post_later(pause_s, self._submit, checkpoint, tries)
        else:
            self._submit(checkpoint, tries)

    def record(self, checkpoint: int, earlier: int) -> None:
        self._master.checkpoints.keep_debt(
            checkpoint, earlier, self._master.commits.committables_of(earlier)
        )

    def stalled(self, checkpoint: int, reason: str) -> None:
        self._master.warn(
            f"the work after the commit of checkpoint {checkpoint} is tried no more, and left to "
            f"the next commit or the next start: {shortened(reason)}"
        )

    def _submit(self, checkpoint: int, tries: int) -> None:
        after_commit = self._after_commit
        assert after_commit is not None, "a job without work after its commits has no debts"
        committables = self._master.commits.committables_of(checkpoint)
        in_lane(
            self._master,
            LANE,
            lambda: after_commit(checkpoint, committables),
            self._done,
            checkpoint,
            tries,
            what="the work after the commit of checkpoint {}",
            option="commit_timeout_s",
            expired=self._master.job.post_commit.expire,
        )

    def _done(self, checkpoint: int, tries: int, _: Any, error: BaseException | None) -> None:
        machine = self._master.job.post_commit
        if error is None:
            machine.done(checkpoint, tries)
            return
        reason = described(error)
        self._master.warn(
            f"the work after the commit of checkpoint {checkpoint} has failed in try {tries + 1}: "
            f"{shortened(reason)}"
        )
        machine.failed(checkpoint, tries, reason)
