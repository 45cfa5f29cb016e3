"""The shell around commits: keeps the committables of the checkpoints in the ledger, and hands them
to the user's committer, off the queue, as the machine says.

Handler of the global committer's port `sink`. It decides nothing: the machine says what a commit
covers, what is known to be committed, and what travels with a checkpoint that is stored.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from epochgate.runtime.api.committer import (
    CommitImpossible,
    Committables,
    Committer,
    FailedForKnownReason,
    RetryLater,
    UpdateAndRetryLater,
)
from epochgate.runtime.api.committing import by_subtask
from epochgate.runtime.api.job_events import CommitFailed, Committed, JobEvent
from epochgate.runtime.api.raised import in_words, let_pass
from epochgate.runtime.api.reports import shortened
from epochgate.runtime.api.sinks_of_one_job import newest_by_label
from epochgate.runtime.api.way_on import give_up_command
from epochgate.runtime.shell.blocking_work import in_lane
from epochgate.runtime.store import CompletedCheckpoint
from epochgate.runtime.store.checkpoint import committed_of, debts_of
from epochgate.runtime.store.places import GLOBAL, places_of

if TYPE_CHECKING:
    from epochgate.runtime.shell.job_master import JobMaster


LANE: Final = "commit"
"""The lane in which a committer is opened, commits and is closed: one thread for its whole life."""
_log = logging.getLogger(__name__)


class Failure(NamedTuple):
    """The meaning of an exception of a committer: the trigger that it fires, and what a person
    reads of it, as a warning and as the cause of the job's end.
    """

    trigger: str
    warning: str
    cause: str


FAILURES: dict[type[BaseException], Failure] = {
    RetryLater: Failure("retry_later", "will be tried again", "failed too often"),
    CommitImpossible: Failure("impossible", "", "is impossible"),
    BaseException: Failure("refused", "", "failed"),
}
"""The first class that fits counts; no exception means `committed`."""


WAY_ON: Final = (
    ". Put right what is missing, and start again. Or give its rows up for good by {}, and start "
    "again"
)
"""What may be done about a checkpoint that can never be committed."""
SUCCESSES: dict[bool, str] = {False: "committed", True: "already_committed"}
"""Whether an earlier commit had done all of it -> the trigger that says so."""


Batch = list[tuple[int, Committables]]
"""What one commit consists of: checkpoints with their committables, oldest first."""


class Done(NamedTuple):
    """The result of a commit: the committer's figures, and the checkpoints that an earlier commit
    had made visible; newest: by label of the sink.
    """

    figures: dict[str, int | float]
    before: list[int]
    newest: dict[str, int]


@dataclass
class CommitAttempt:
    """One try of a commit; tried: the checkpoints of which the committer was asked to commit them,
    the last one last; left_out: those that failed for a known reason; began_s: the time of the
    event with which it began.
    """

    checkpoint: int
    tries: int
    batch: Batch
    tried: list[int] = field(default_factory=list)
    left_out: list[int] = field(default_factory=list)
    began_s: float = 0.0

    @property
    def numbers(self) -> list[int]:
        """The checkpoints that it covers and has not left out."""
        return [number for number, _ in self.batch if number not in self.left_out]

    @property
    def committables(self) -> int:
        """The number of values to commit."""
        return sum(
            len(values)
            for number, held in self.batch
            if number not in self.left_out
            for values in held.values()
        )


class Commits:
    """The committables in the ledger, and those of debts, by checkpoint."""

    def __init__(
        self, master: JobMaster, committer: Committer | None, restored: CompletedCheckpoint | None
    ) -> None:
        self._master = master
        self.committer = committer
        self._held: dict[int, Committables] = {}
        self._covered: Batch = []
        self.committed: dict[str, int] = {} if restored is None else committed_of(restored)
        """The newest checkpoint of each sink that is known as committed, by label."""
        if restored is not None:
            for checkpoint, flat in sorted(restored.uncommitted.items()):
                self._held[checkpoint] = dict(flat)
            self.hold(restored.checkpoint_id, restored.committables)
        if committer is not None:
            self._open(committer, restored)
        if restored is not None:
            self._held |= {earlier: dict(flat) for earlier, flat in debts_of(restored).items()}
        master.job.bind("committer", "sink", self)

    def _open(self, committer: Committer, restored: CompletedCheckpoint | None) -> None:
        run_id = self._master.configuration.run_id
        held = {number: dict(part) for number, part in self._held.items()}
        for number, place in ({} if restored is None else places_of(restored)).items():
            for share in place.shares:
                # What the tasks have committed, and has not come out of their step.
                known = held[number].get(share.subtask, [])
                held[number][share.subtask] = [*known, *share.done, *(share.passed or [])]
        try:
            limit_s = self._master.configuration.commit_timeout_s
            self._master.blocking.run(LANE, lambda: committer.open(run_id, held), limit_s)
        except BaseException:
            # There will be no job whose end would end the thread.
            self._master.blocking.close()
            raise

    def hold(self, checkpoint: int, committables: Committables) -> None:
        """Keep a completed checkpoint's committables until they are released."""
        self._held[checkpoint] = committables

    def committables_of(self, checkpoint: int) -> Committables:
        """Return what is kept of this checkpoint."""
        return self._held[checkpoint]

    def release(self, checkpoint: int) -> None:
        """Keep them no longer."""
        del self._held[checkpoint]

    # port of the committer

    def carry(self, checkpoint: int, earlier: int, tries: int) -> None:
        self._master.checkpoints.keep_uncommitted(checkpoint, earlier, self._held[earlier])
        if tries or not self._master.configuration.topology.is_direct:
            place = self._master.checkpoints.place(checkpoint, earlier, GLOBAL)
            place.tries = {-1: tries} if tries else {}

    def cover(self, checkpoint: int) -> None:
        self._covered.append((checkpoint, self._held[checkpoint]))

    def commit(self, checkpoint: int, tries: int) -> None:
        """Commit what is covered, after a pause when that has failed before."""
        batch, self._covered = self._covered, []
        if tries:
            delay_s = self._master.configuration.commit_pause_s(tries)
            self._master.queue.post_later(delay_s, self._submit, checkpoint, tries, batch)
        else:
            self._submit(checkpoint, tries, batch)

    forgone = release

    def settled(self, checkpoint: int) -> None:
        self._master.report.committed_upto = checkpoint

    def _submit(self, checkpoint: int, tries: int, batch: Batch) -> None:
        attempt = CommitAttempt(checkpoint, tries, batch)
        attempt.began_s = in_lane(
            self._master,
            LANE,
            lambda: self._commit_all(attempt),
            self._done,
            attempt,
            what="the commit of checkpoints {0.numbers}",
            option="commit_timeout_s",
            expired=self._expired,
        )

    def _expired(self, attempt: CommitAttempt, reason: str) -> None:
        self._master.job.committer.expire(attempt.checkpoint, attempt.tries, reason)

    def _commit_all(self, attempt: CommitAttempt) -> Done:
        if self.committer is None:
            return Done({}, [], {})
        batch, before = attempt.batch, []
        for checkpoint, committables in batch:
            attempt.tried.append(checkpoint)
            try:
                done = self.committer.commit(checkpoint, committables)
            except UpdateAndRetryLater as error:
                what = f"the rest of checkpoint {checkpoint} in UpdateAndRetryLater"
                error.rest = by_subtask(what, error.rest)
                raise
            except FailedForKnownReason as error:
                attempt.left_out.append(checkpoint)
                said = in_words(error)
                self._master.queue.post(self._left_out, attempt, checkpoint, said)
                continue
            if done is False:
                before.append(checkpoint)
        newest = newest_by_label(one for one in batch if one[0] not in attempt.left_out)
        try:
            return Done(dict(self.committer.metrics()), before, newest)
        except BaseException as error:  # noqa: BLE001  # user code may raise anything; it is committed
            let_pass(error)
            _log.exception("the committer's metrics could not be read")
            return Done({}, before, newest)

    def _done(self, attempt: CommitAttempt, done: Done | None, error: BaseException | None) -> None:
        machine, numbers = self._master.job.committer, attempt.numbers
        if error is None:
            figures, before, newest = done or Done({}, [], {})
            self.committed |= newest
            if self._master.observers.are_there and numbers:
                self._tell(
                    attempt,
                    Committed,
                    committables=attempt.committables,
                    figures=figures,
                    committed_before=tuple(before),
                )
            if attempt.checkpoint not in attempt.left_out:
                getattr(machine, SUCCESSES[before == numbers])(attempt.checkpoint, attempt.tries)
            return
        self._failed(attempt, error)

    def _left_out(self, attempt: CommitAttempt, checkpoint: int, said: str) -> None:
        self._tell(
            attempt,
            CommitFailed,
            checkpoint_ids=(checkpoint,),
            is_tried_again=False,
            reason=shortened(said),
            is_left_out=True,
        )
        self._master.warn(
            f"commit of checkpoint {checkpoint} is left out, and its rows are lost: {said}"
        )
        self._master.job.committer.left_out(attempt.checkpoint, attempt.tries, checkpoint)

    def _failed(self, attempt: CommitAttempt, error: BaseException) -> None:
        machine, numbers, said = self._master.job.committer, attempt.numbers, in_words(error)
        failure = next(f for kind, f in FAILURES.items() if isinstance(error, kind))
        is_tried_again = bool(failure.warning)
        self._tell(attempt, CommitFailed, is_tried_again=is_tried_again, reason=shortened(said))
        if is_tried_again:
            self._master.note_warning(f"commit of checkpoints {numbers} {failure.warning}: {said}")
        if isinstance(error, UpdateAndRetryLater):
            self._held[attempt.tried[-1]] = error.rest
        reason = f"commit of checkpoints {numbers} {failure.cause}: {said}"
        if isinstance(error, CommitImpossible):
            reason = reason.removesuffix(".") + WAY_ON.format(self._give_up(attempt))
        getattr(machine, failure.trigger)(attempt.checkpoint, attempt.tries, reason)

    def _give_up(self, attempt: CommitAttempt) -> str:
        return give_up_command(self._master.store.path, str(attempt.tried[-1]))

    def _tell(self, attempt: CommitAttempt, kind: type[JobEvent], **values: Any) -> None:
        told = {
            "checkpoint_ids": tuple(attempt.numbers),
            "duration_s": self._master.queue.now_s - attempt.began_s,
            "tries": attempt.tries,
        }
        self._master.observers.tell(kind, **(told | values))

    def close(self) -> None:
        """Close the committer after what it has under way; what it raises ends nothing else."""
        if self.committer is None:
            return
        try:
            limit_s = self._master.configuration.end_timeout_s
            self._master.blocking.run(LANE, self.committer.close, limit_s)
        except BaseException as error:  # noqa: BLE001  # user code may raise anything
            let_pass(error)
            _log.exception("the committer could not be closed")
            self._master.warn(f"the committer could not be closed: {in_words(error)}")
