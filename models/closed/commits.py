"""A closed system around the global committer: each committable of a completed checkpoint takes
effect exactly once, and none of another does; and the work after each commit is done.

Subtasks produce committables and hand them over with a checkpoint; those of a checkpoint that was
aborted they hand over again. The store keeps a checkpoint together with the committables and the
ledger of the committer; the sink commits one checkpoint after the other, fails before, amid or
after that, or refuses; and an answer may come a second time, too late. The driver dies at any
moment, or is taken for dead amid a commit and goes on with it: what is in the store and in the sink
stays, and the next driver claims the target and begins from the newest stored checkpoint and its
ledger, or, if that one is lost, from the one before::

    subtask 0     a |1         c |2
    subtask 1     b |1           |2
    store               1: a, b        2: c, and the ledger: 1
    sink                     commit 1 .....................X   the driver dies
    next driver                                                adopt 1, due 2: commit 1 and 2

`GlobalCommitter` and `PostCommit` are the machines that run in production. The target keeps the
number of its last checkpoint, for all drivers. Ids that the store never held are given again by the
next driver.
"""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar

from epochgate.fsm.closed import (
    ClosedSystem,
    Step,
    always,
    leads_to,
    sometimes,
    terminal,
)
from epochgate.fsm.system import machines
from epochgate.models.closed.surroundings.commit_store import Store
from epochgate.models.closed.surroundings.commits import (
    DOWN,
    FINISHED,
    UNWRITTEN,
    Budget,
    Checkpoint,
    Committable,
    Committer,
    Driver,
    Lifecycle,
    PostCommitWork,
)
from epochgate.models.closed.surroundings.doubt import Doubt
from epochgate.models.closed.surroundings.target import Sink, Worker
from epochgate.models.closed.surroundings.zombie import Zombie
from epochgate.models.closed.untaken import left_to
from epochgate.models.committer import COMMITTING
from epochgate.models.post_commit import PUT_OFF


class CommitJob(ClosedSystem):
    """The global committer: a completed checkpoint takes effect exactly once.

    The job ends once `wanted` checkpoint ids are used and the last one is completed.
    """

    INDEX_SETS: ClassVar[dict[str, str]] = {
        "subtask": "subtasks",
        "item": "items",
        "doubt": "checkpoints",
    }
    CONSTANTS: ClassVar[dict[str, int]] = {
        "subtasks": 2,
        "items": 1,
        "wanted": 3,
        "F": 2,
        "commit_retries": 1,
        "after_commit": 1,
        "given_up": 0,
        "hangs": 0,
    }
    DERIVED: ClassVar[dict[str, str]] = {"checkpoints": "wanted + F + given_up"}
    STEPS: ClassVar[tuple[Step, ...]] = (
        Step("committable", "write", is_fair=False),
        Step("checkpoint", "begin"),
        Step("checkpoint", "persist"),
        Step("checkpoint", "hear"),
        Step("sink", "apply"),
        Step("sink", "answer"),
        Step("sink", "answer_again", is_fair=False, is_stuttering=True),
        Step("driver", "end"),
        Step("driver", "start"),
        Step("driver", "finish"),
        Step("worker", "act"),
        Step("worker", "answer"),
        Step("checkpoint", "fail", is_fair=False),
        Step("sink", "leave_out"),
        Step("sink", "put_off", is_fair=False),
        Step("sink", "refuse", is_fair=False),
        Step("sink", "rule_out", is_fair=False),
        Step("sink", "hang", is_fair=False),
        Step("worker", "fail", is_fair=False),
        Step("worker", "hang", is_fair=False),
        Step("worker", "answer_late", is_fair=False),
        Step("worker", "answer_again", is_fair=False, is_stuttering=True),
        Step("driver", "die", is_fair=False),
        Step("driver", "go_back", is_fair=False),
        Step("zombie", "apply", is_fair=False),
        Step("doubt", "forgo", is_fair=False),
        Step("doubt", "store"),
        Step("doubt", "leave", is_fair=False),
    )
    UNTAKEN: ClassVar[dict[str, str]] = {
        "post_commit.owe: the job has nothing to do after a commit": "explored with after_commit=0",
        **left_to("in_doubt", "committer.forgo", "doubt.forgo", "doubt.store", "doubt.leave"),
    }
    WIRING: ClassVar[dict[str, str]] = {"committer.sink": "sink", "post_commit.worker": "worker"}

    subtasks: int
    items: int
    wanted: int
    checkpoints: int
    F: int
    commit_retries: int
    after_commit: int
    given_up: int
    hangs: int

    committer: Committer = machines(Committer)
    post_commit: PostCommitWork = machines(PostCommitWork)
    sink: Sink = machines(Sink)
    zombie: Zombie = machines(Zombie)
    worker: Worker = machines(Worker)
    committable: dict[tuple[int, int], Committable] = machines(Committable)
    checkpoint: Checkpoint = machines(Checkpoint)
    store: Store = machines(Store)
    doubt: list[Doubt] = machines(Doubt)
    lifecycle: Lifecycle = machines(Lifecycle)
    driver: Driver = machines(Driver)
    budget: Budget = machines(Budget)

    @always("I9: no committable of a checkpoint that is not completed has taken effect")
    def shows_completed_only(self) -> bool:
        return all(
            self.committable[s, i].effects == 0 or self.committable[s, i].is_completed()
            for s in range(self.subtasks)
            for i in range(self.items)
        )

    @always("C2: the driver holds what is in the ledger, and what work is owed for", when="runs")
    def keeps_the_ledger(self) -> bool:
        held = 0
        for k in range(self.checkpoints):
            if self.sink.is_held[k]:
                held += 1
        ledger = self.committer.covered.size() + self.committer.waiting.size()
        return held == ledger + self.post_commit.owed.size()

    def runs(self) -> bool:
        return self.driver.is_working()

    @always("the ledger of a job that has finished is empty", when="has_finished")
    def leaves_no_ledger(self) -> bool:
        return self.committer.covered.empty() and self.committer.waiting.empty()

    def has_finished(self) -> bool:
        return self.driver.state == FINISHED

    @always(
        "C5: the target of a job that has finished knows each of its checkpoints",
        when="has_finished",
    )
    def knows_all(self) -> bool:
        return all(
            self.sink.is_visible[k] or not self.store.is_stored[k] or self.is_without(k)
            for k in range(self.checkpoints)
        )

    def is_without(self, k: int) -> bool:
        """Return whether a person has given the commit up, or the target has left it out."""
        return self.store.is_forgone[k] or self.sink.is_left_out[k]

    @always("what the target has left out does not take effect")
    def leaves_out_for_good(self) -> bool:
        return not any(
            self.sink.is_left_out[k] and self.sink.is_visible[k] for k in range(self.checkpoints)
        )

    @always("what was produced before the end of the input takes effect", when="has_finished")
    def shows_the_last(self) -> bool:
        return all(
            self.committable[s, i].effects > 0
            or self.committable[s, i].state == UNWRITTEN
            or self.committable[s, i].is_forgone()
            for s in range(self.subtasks)
            for i in range(self.items)
        )

    @always("a driver that was replaced changes nothing in the target")
    def fences(self) -> bool:
        return not self.zombie.has_changed

    @always("the target is never ahead of a driver that works", when="runs")
    def goes_back_with_the_job(self) -> bool:
        return self.sink.last <= self.store.completed

    @always("C8: the next driver finds what work is owed")
    def finds_debts(self) -> bool:
        return self.after_commit == 0 or all(
            self.worker.is_done[k]
            or not self.sink.is_visible[k]
            or self.store.is_forgone[k]
            or self.store.ledger[k]
            or self.store.debts[k]
            or self.store.completed == k + 1
            for k in range(self.checkpoints)
        )

    @leads_to("C8: once failures stop, the work of each commit is done", then="is_worked_off")
    def has_debts(self) -> bool:
        return not self.is_worked_off()

    def is_worked_off(self) -> bool:
        has_given_way = self.has_finished() and self.post_commit.state == PUT_OFF
        return (
            self.after_commit == 0
            or has_given_way
            or all(
                self.worker.is_done[k] or not self.sink.is_visible[k] or self.store.is_forgone[k]
                for k in range(self.checkpoints)
            )
        )

    @leads_to("C9: checkpoints complete", then="has_completed_all")
    def has_to_complete(self) -> bool:
        return not self.has_completed_all()

    def has_completed_all(self) -> bool:
        return self.store.completed >= self.wanted

    @leads_to("I9: once failures stop, everything completed takes effect", then="shows_all")
    def has_hidden(self) -> bool:
        return not self.shows_all()

    def shows_all(self) -> bool:
        return all(
            self.committable[s, i].effects > 0
            or not self.committable[s, i].is_completed()
            or self.committable[s, i].is_forgone()
            for s in range(self.subtasks)
            for i in range(self.items)
        )

    @sometimes("a driver dies while a stored ledger is all that knows of a committable")
    def needs_the_ledger(self) -> bool:
        return self.driver.state == DOWN and any(
            self.store.ledger[k] and not self.sink.is_visible[k] for k in range(self.checkpoints)
        )

    @sometimes("a driver commits again what took effect before the last one died")
    def commits_again(self) -> bool:
        return not self.sink.batch.empty() and self.sink.is_known(self.sink.batch.head())

    @sometimes("committables of a checkpoint that was aborted take effect with a later one")
    def hands_over_again(self) -> bool:
        return any(
            self.committable[s, i].effects > 0 and self.committable[s, i].is_in(2)
            for s in range(self.subtasks)
            for i in range(self.items)
        ) and self.checkpoint.is_empty(1)

    @sometimes("the sink is at one checkpoint while a later one is completed")
    def falls_behind(self) -> bool:
        return not self.committer.covered.empty() and not self.committer.waiting.empty()

    @sometimes("a driver dies while a stored debt is all that knows of work that is not done")
    def needs_the_debts(self) -> bool:
        return self.driver.state == DOWN and any(
            self.store.debts[k] and not self.worker.is_done[k] for k in range(self.checkpoints)
        )

    @sometimes("the work of a commit is done again")
    def works_again(self) -> bool:
        return self.worker.number > 0 and (
            self.worker.is_done[self.worker.number - 1] and not self.worker.has_acted
        )

    @sometimes("a later checkpoint is committed while the work of an earlier one is under way")
    def commits_meanwhile(self) -> bool:
        return self.worker.number > 0 and self.committer.state == COMMITTING

    @sometimes("a job finishes with work that has failed in every try")
    def finishes_in_debt(self) -> bool:
        return self.has_finished() and self.post_commit.state == PUT_OFF

    @sometimes("a start goes back behind what was visible, and withdraws it")
    def has_withdrawn(self) -> bool:
        return self.store.newest > self.store.completed and self.sink.last == self.store.completed

    @sometimes("a driver goes on with the tries of the one before")
    def counts_on(self) -> bool:
        return self.committer.tries > 0 and self.sink.answered == 0

    @sometimes("a job finishes without what the target has left out")
    def finishes_without(self) -> bool:
        return self.has_finished() and any(
            self.sink.is_left_out[k] for k in range(self.checkpoints)
        )

    @terminal("the job has finished, and what is completed has taken effect")
    def is_over(self) -> bool:
        return self.has_finished() and self.shows_all()


class CommitsInDoubt(CommitJob):
    """The global committer beside a person who gives up a commit while no driver runs."""

    CONSTANTS: ClassVar[dict[str, int]] = {
        **CommitJob.CONSTANTS,
        "subtasks": 1,
        "commit_retries": 0,
        "given_up": 1,
    }
    UNTAKEN: ClassVar[dict[str, str]] = {
        **left_to(
            "commit",
            "post_commit.owe: the job has nothing to do after a commit",
            "post_commit.failed: it may succeed later",
            "committer.retry_later: the sink could not commit now",
        ),
    }

    counts_on = None  # type: ignore[assignment]  # nothing is tried again

    @sometimes("what was given up never takes effect, and the job finishes")
    def loses_what_was_given_up(self) -> bool:
        return self.has_finished() and any(
            self.store.is_forgone[k] and not self.sink.is_visible[k]
            for k in range(self.checkpoints)
        )

    @sometimes("what was given up had taken effect before")
    def gives_up_too_late(self) -> bool:
        return any(
            self.store.is_forgone[k] and self.sink.is_visible[k] for k in range(self.checkpoints)
        )

    @sometimes("the checkpoint that leaves a commit out is lost, and the commit is made after all")
    def commits_after_all(self) -> bool:
        return (
            self.budget.given_up > 0
            and self.has_finished()
            and not any(self.store.is_forgone[k] for k in range(self.checkpoints))
        )


class HangingWork(CommitJob):
    """The global committer beside work that never ends: checkpoints and commits go on.

    Nothing has to happen of the work after commits, so that whatever has to happen does not wait
    for it.
    """

    CONSTANTS: ClassVar[dict[str, int]] = {**CommitJob.CONSTANTS, "hangs": 1}
    STEPS = tuple(
        replace(step, is_fair=step.trigger == "hang") if step.machine == "worker" else step
        for step in CommitJob.STEPS
    )

    has_debts = None  # type: ignore[assignment]  # the work of no commit has to be done
