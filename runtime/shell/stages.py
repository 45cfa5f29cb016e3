"""The shell around the operators with parallelism 1 between the steps of a commit: runs them off
the queue, and keeps their state.

Handler of the ports of `StageBefore` and `StageBehind`. It decides nothing: the machines say which
checkpoint is processed, when again, and what travels with a checkpoint. The last operator behind
the tasks is the combining of the global committer, if that combines.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple, cast

from epochgate.fsm import Handles
from epochgate.runtime.api.commit_topology import CommittableBatch, CommittableOperator
from epochgate.runtime.api.committer import CombiningCommitter, Committables, RetryLater
from epochgate.runtime.api.committing import processed
from epochgate.runtime.api.raised import described, in_words, let_pass
from epochgate.runtime.api.reports import shortened
from epochgate.runtime.api.task_committer import CommittableSummary
from epochgate.runtime.closing import close_all
from epochgate.runtime.shell.blocking_work import in_lane
from epochgate.runtime.shell.commits import LANE
from epochgate.runtime.shell.task_commits import TaskCommits
from epochgate.runtime.store import CompletedCheckpoint
from epochgate.runtime.store.places import BEFORE, BEHIND, states_of

if TYPE_CHECKING:
    from epochgate.models.committing_job import CommittingJob
    from epochgate.runtime.shell.job_master import JobMaster

_log = logging.getLogger(__name__)


class Processed(NamedTuple):
    """The committables that came out, and the states of the operators behind them."""

    committables: Committables
    states: list[bytes]


class Stage:
    """The operators of one side of the tasks."""

    def __init__(
        self,
        master: JobMaster,
        tasks: TaskCommits,
        states: dict[str, list[bytes]],
        side: str,
        restored: CompletedCheckpoint | None,
    ) -> None:
        self._master, self._tasks, self._all_states, self._side = master, tasks, states, side
        job = cast("Handles[CommittingJob]", master.job)
        self._machine = job.stage_before if side == BEFORE else job.stage_behind
        self._make: Callable[[], list[CommittableOperator]] = lambda: (
            master.configuration.topology.on_driver(is_before=side == BEFORE)
        )
        self._operators: list[CommittableOperator] | None = None
        self._states = states_of(restored, side)
        self._keep_states(self._states or [])
        master.job.bind(f"stage_{side}", "operators", self)

    def _keep_states(self, states: list[bytes]) -> None:
        """Let each checkpoint from now on hold these."""
        if any(states):
            self._all_states[self._side] = states

    # port `operators`

    def process(self, checkpoint: int, tries: int) -> None:
        """Let the operators process it, after a pause if that has failed before."""
        if tries:
            pause_s = self._master.configuration.commit_pause_s(tries)
            self._master.queue.post_later(pause_s, self._submit, checkpoint, tries)
        else:
            self._submit(checkpoint, tries)

    def _submit(self, checkpoint: int, tries: int) -> None:
        committables = dict(self._master.commits.committables_of(checkpoint))
        known = self._tasks.summaries(checkpoint)
        summaries = {
            one: known.get(one) or CommittableSummary(checkpoint, one, len(held))
            for one, held in committables.items()
        }
        batch = CommittableBatch(checkpoint, committables, {**known, **summaries})
        in_lane(
            self._master,
            LANE,
            lambda: self._process(batch),
            self._done,
            checkpoint,
            tries,
            what=f"the work of the operators {self._side} the tasks' commits of checkpoint {{}}",
            option="commit_timeout_s",
            expired=self._machine.expire,
        )

    def _process(self, batch: CommittableBatch) -> Processed:
        """On the commit's thread; operators that have failed are made again from their states."""
        operators, self._operators = self._operators, None
        checkpoint, values, summaries = batch.checkpoint_id, batch.committables, batch.summaries
        made = self._make() if operators is None else []
        try:
            for number, operator in enumerate(made):
                operator.open(self._states[number] if self._states else None)
            operators = operators or made
            for operator in operators:
                values = processed(operator, CommittableBatch(checkpoint, values, summaries))
            committer = self._master.commits.committer
            if self._side == BEHIND and isinstance(committer, CombiningCommitter):
                values = {0: [committer.combine(checkpoint, values)]}
            states = [operator.snapshot() for operator in operators]
        except BaseException:
            self._close(operators or made)
            raise
        self._operators = operators
        return Processed(values, states)

    def _done(
        self, checkpoint: int, tries: int, done: Processed | None, error: BaseException | None
    ) -> None:
        if error is None:
            self._machine.processed(checkpoint, tries, done)
            return
        is_tried_again = isinstance(error, RetryLater)
        said = in_words(error) if is_tried_again else described(error)
        what = f"an operator {self._side} the tasks' commits of checkpoint {checkpoint} has failed"
        reason = f"{what}: {shortened(said)}"
        if is_tried_again:
            self._master.note_warning(reason)
            self._machine.retry_later(checkpoint, tries, reason)
        else:
            self._machine.refused(checkpoint, tries, reason)

    def take(self, checkpoint: int, outcome: Processed) -> None:
        self._states = outcome.states
        self._keep_states(outcome.states)
        self._master.commits.hold(checkpoint, outcome.committables)
        self._tasks.forget_summaries(checkpoint)

    def keep(self, checkpoint: int, earlier: int) -> None:
        held = self._master.commits.committables_of(earlier)
        self._master.checkpoints.keep_uncommitted(checkpoint, earlier, held)
        place = self._master.checkpoints.place(checkpoint, earlier, self._side)
        place.summaries = [
            [one.subtask, one.committables, one.failed]
            for one in self._tasks.summaries(earlier).values()
        ]

    def close(self) -> None:
        """Close the operators after what the commit's thread has under way."""
        limit_s = self._master.configuration.end_timeout_s
        try:
            self._master.blocking.run(LANE, lambda: close_all(self._operators or []), limit_s)
        except BaseException as error:  # noqa: BLE001  # user code may raise anything
            let_pass(error)
            self._note_unclosed(error)

    def _close(self, operators: list[CommittableOperator]) -> None:
        """Close operators that have failed, which is what is told as the cause."""
        try:
            close_all(operators)
        except BaseException as error:  # noqa: BLE001  # user code may raise anything
            let_pass(error)
            self._master.queue.post(self._note_unclosed, error)

    def _note_unclosed(self, error: BaseException) -> None:
        what = f"an operator {self._side} the tasks' commits could not be closed"
        _log.error(what, exc_info=error)
        self._master.warn(f"{what}: {in_words(error)}")
