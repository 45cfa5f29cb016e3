"""The shell around commits in the tasks: keeps what the subtasks handed over on its way through the
tasks, asks them, and gathers what they pass on.

Handler of the ports of `SubtaskCommitter` and `CommittableCollector`. It decides nothing: the
machines say who is asked for what, what counts, and what travels with a checkpoint. Until a
checkpoint is whole its committables stay in `Commits` too. Runs on the queue's thread.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, cast

from epochgate.fsm import Handles
from epochgate.runtime.api.committing import Share, StepOutcome
from epochgate.runtime.api.task_committer import CommittableSummary
from epochgate.runtime.shell.blocking_work import Wait
from epochgate.runtime.store import CompletedCheckpoint
from epochgate.runtime.store.places import TASKS, Place, places_of

if TYPE_CHECKING:
    from epochgate.models.committing_job import CommittingJob
    from epochgate.runtime.shell.job_master import JobMaster

Shares = dict[int, Share]
"""By the subtask that handed them over."""


@dataclass
class InTasks:
    """One checkpoint in the tasks. durable: as the completed checkpoint has it, from which attempts
    are restored. current: as the attempts that run have it. storing: as the checkpoint under way
    will have it. passed: what has come out. left: how many subtasks may have to commit it again.
    """

    durable: Shares
    left: int
    current: Shares = field(default_factory=dict)
    storing: Shares = field(default_factory=dict)
    passed: Shares = field(default_factory=dict)


class TaskCommits:
    """The committables that the subtasks handed over, by checkpoint, on their way through the
    tasks.
    """

    def __init__(self, master: JobMaster, restored: CompletedCheckpoint | None) -> None:
        self._master = master
        self._machines = cast("Handles[CommittingJob]", master.job).subtask_committer
        self._parallelism = master.configuration.parallelism
        self._in_tasks: dict[int, InTasks] = {}
        self._summaries: dict[int, dict[int, CommittableSummary]] = {}
        self._waits: dict[int, Wait] = {}
        places = {} if restored is None else places_of(restored)
        for number, place in places.items():
            if place.at == TASKS and restored is not None:
                rests = dict(restored.uncommitted[number])
                self._in_tasks[number] = self._restored(place.shares, rests)
            self._summaries[number] = {
                one[0]: CommittableSummary(number, *one) for one in place.summaries
            }
        master.job.bind("subtask_committer", "task", self)
        master.job.bind("committable_collector", "parts", Collected(self, master))

    def _restored(self, shares: list[Share], rests: Mapping[int, list[Any]]) -> InTasks:
        found = InTasks({}, self._parallelism)
        for share in shares:
            if share.passed is None:
                found.durable[share.subtask] = replace(share, rest=rests.get(share.subtask, []))
            else:
                found.passed[share.subtask] = share
        found.current = dict(found.durable)
        return found

    def of(self, checkpoint: int) -> InTasks:
        """Return what is known of a checkpoint; at first what was handed over."""
        if checkpoint not in self._in_tasks:
            held = self._master.commits.committables_of(checkpoint)
            durable = {one: Share(one, list(values)) for one, values in held.items()}
            self._in_tasks[checkpoint] = InTasks(durable, self._parallelism, dict(durable))
        return self._in_tasks[checkpoint]

    def owned(self, subtask: int, shares: Shares) -> list[Share]:
        """The shares that this subtask commits; after a change of parallelism not its own alone."""
        return [shares[one] for one in sorted(shares) if one % self._parallelism == subtask]

    # port `task` of the subtasks' committers

    def renew(self, subtask: int) -> None:
        """The subtask goes on from what the completed checkpoint holds."""
        self._wait_over(subtask)
        for found in self._in_tasks.values():
            found.current.update((one.subtask, one) for one in self.owned(subtask, found.durable))

    def commit(self, subtask: int, identity: int, checkpoint: int, tries: int) -> None:
        shares = self.owned(subtask, self.of(checkpoint).current)
        part = [share.flat() for share in shares]
        self._master.places.send(subtask, identity, ["commit", checkpoint, tries, part])
        self._waits[subtask] = Wait(
            self._master,
            f"task-{subtask}",
            "the commit of checkpoint {1} in subtask {0}",
            "commit_timeout_s",
            self._expired,
            subtask,
            checkpoint,
            tries,
            identity,
        )

    def _expired(
        self, subtask: int, checkpoint: int, tries: int, identity: int, reason: str
    ) -> None:
        machine = self._machines[subtask]
        machine.expire(checkpoint, tries, identity, reason)

    def _wait_over(self, subtask: int) -> None:
        if (wait := self._waits.pop(subtask, None)) is not None:
            wait.end()

    def pause(self, subtask: int, checkpoint: int, tries: int) -> None:
        pause_s = self._master.configuration.commit_pause_s(max(tries, 1))
        over = self._machines[subtask].pause_over
        self._master.queue.post_later(pause_s, over, checkpoint, tries)

    def keep(self, subtask: int, checkpoint: int, earlier: int, tries: int) -> None:
        found = self.of(earlier)
        place = self._place(checkpoint, earlier)
        for share in self.owned(subtask, found.current):
            found.storing[share.subtask] = share
            place.shares.append(replace(share, rest=[], passed=None))
            if share.rest:
                self._uncommitted(checkpoint, earlier).append([share.subtask, share.rest])
        if tries:
            place.tries[subtask] = tries

    def note(self, subtask: int, checkpoint: int, outcome: StepOutcome) -> None:
        self._wait_over(subtask)
        self.of(checkpoint).current.update(self._asked(subtask, checkpoint, outcome))
        for text in outcome.warnings:
            self._master.warn(text)
        if outcome.reason:
            self._master.note_warning(
                f"the commit of checkpoint {checkpoint} will be tried again: {outcome.reason}"
            )

    def _asked(self, subtask: int, checkpoint: int, outcome: StepOutcome) -> Shares:
        """Of what a subtask says those shares that it was asked to commit."""
        asked = {share.subtask for share in self.owned(subtask, self.of(checkpoint).current)}
        return {share.subtask: share for share in outcome.shares if share.subtask in asked}

    def release(self, subtask: int, checkpoint: int) -> None:
        found = self._in_tasks[checkpoint]
        found.left -= 1
        if not found.left:
            del self._in_tasks[checkpoint]

    # how the checkpoint under way ends

    def completed(self) -> None:
        """It is durable: attempts are restored from it now."""
        for found in self._in_tasks.values():
            found.durable.update(found.storing)
            found.storing = {}

    def aborted(self) -> None:
        """It never will be durable."""
        for found in self._in_tasks.values():
            found.storing = {}

    # for the collector

    def collect(self, subtask: int, checkpoint: int, outcome: StepOutcome) -> None:
        """Keep what a subtask has passed on."""
        self.of(checkpoint).passed.update(self._asked(subtask, checkpoint, outcome))

    def keep_passed(self, checkpoint: int, earlier: int) -> None:
        """Store what has come of a checkpoint that is not whole."""
        found, place = self.of(earlier), self._place(checkpoint, earlier)
        place.shares += [one for name, one in found.passed.items() if name not in found.storing]

    def whole(self, checkpoint: int) -> None:
        """Put what has come in the place of what was handed over."""
        passed = sorted(self.of(checkpoint).passed.items())
        if self._master.configuration.topology.operators_behind:
            self._summaries[checkpoint] = {
                one: CommittableSummary(checkpoint, one, *share.summary) for one, share in passed
            }
        self._master.commits.hold(
            checkpoint, {one: share.passed for one, share in passed if share.passed}
        )

    def summaries(self, checkpoint: int) -> Mapping[int, CommittableSummary]:
        """The summaries of a whole checkpoint."""
        return self._summaries.get(checkpoint, {})

    def forget_summaries(self, checkpoint: int) -> None:
        """The operators behind have processed it, or there are none."""
        self._summaries.pop(checkpoint, None)

    def _place(self, checkpoint: int, earlier: int) -> Place:
        self._uncommitted(checkpoint, earlier)
        return self._master.checkpoints.place(checkpoint, earlier, TASKS)

    def _uncommitted(self, checkpoint: int, earlier: int) -> list[Any]:
        """Return what the checkpoint that is under way says is not committed of an earlier one."""
        return self._master.checkpoints.part(checkpoint).uncommitted.setdefault(earlier, [])


class Collected:
    """The handler of the collector's port; the ports of both have a message `keep`."""

    def __init__(self, commits: TaskCommits, master: JobMaster) -> None:
        self._master = master
        self.collect, self.whole = commits.collect, commits.whole
        self.keep = commits.keep_passed
