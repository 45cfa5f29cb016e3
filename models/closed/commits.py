"""A closed system around the global committer: each committable of a completed checkpoint takes
effect exactly once, and none of another does.

Subtasks produce committables and hand them over with a checkpoint; those of a checkpoint that was
aborted they hand over again. The store keeps a checkpoint together with the committables and the
ledger of the committer; the sink commits one checkpoint after the other, fails before, amid or
after that, or refuses; and an answer may come a second time, too late. The driver dies at any
moment: what is in the store and in the sink stays, and the next driver begins from the newest
stored checkpoint and its ledger::

    subtask 0     a |1         c |2
    subtask 1     b |1           |2
    store               1: a, b        2: c, and the ledger: 1
    sink                     commit 1 .....................X   the driver dies
    next driver                                                adopt 1, due 2: commit 1 and 2

`GlobalCommitter` is the machine that runs in production. The sink is idempotent by the key of a
checkpoint. Ids that no stored checkpoint has are given again by the next driver.
"""

from __future__ import annotations

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
from epochgate.models.closed.surroundings.commits import (
    DOWN,
    FINISHED,
    Budget,
    Checkpoint,
    Committable,
    Committer,
    Driver,
    Lifecycle,
    Store,
)
from epochgate.models.closed.surroundings.target import Sink


class CommitJob(ClosedSystem):
    """The global committer: a completed checkpoint takes effect exactly once.

    The job ends once `wanted` checkpoint ids are used and the last one is completed.
    """

    INDEX_SETS: ClassVar[dict[str, str]] = {"subtask": "subtasks", "item": "items"}
    CONSTANTS: ClassVar[dict[str, int]] = {
        "subtasks": 2,
        "items": 1,
        "wanted": 3,
        "F": 2,
        "commit_retries": 1,
    }
    DERIVED: ClassVar[dict[str, str]] = {"checkpoints": "wanted + F"}
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
        Step("checkpoint", "fail", is_fair=False),
        Step("sink", "put_off", is_fair=False),
        Step("sink", "refuse", is_fair=False),
        Step("sink", "rule_out", is_fair=False),
        Step("driver", "die", is_fair=False),
    )
    WIRING: ClassVar[dict[str, str]] = {"committer.sink": "sink"}

    subtasks: int
    items: int
    wanted: int
    checkpoints: int
    F: int

    committer: Committer = machines(Committer)
    sink: Sink = machines(Sink)
    committable: dict[tuple[int, int], Committable] = machines(Committable)
    checkpoint: Checkpoint = machines(Checkpoint)
    store: Store = machines(Store)
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

    @always(
        "C2: the ledger is what the driver holds and does not know to be committed", when="runs"
    )
    def keeps_the_ledger(self) -> bool:
        held = 0
        for k in range(self.checkpoints):
            if self.sink.is_held[k]:
                held += 1
        return held == self.committer.covered.size() + self.committer.waiting.size()

    def runs(self) -> bool:
        return self.driver.is_working()

    @always("the ledger of a job that has finished is empty", when="has_finished")
    def leaves_no_ledger(self) -> bool:
        return self.committer.covered.empty() and self.committer.waiting.empty()

    def has_finished(self) -> bool:
        return self.driver.state == FINISHED

    @leads_to("I9: once failures stop, everything completed takes effect", then="shows_all")
    def has_hidden(self) -> bool:
        return not self.shows_all()

    def shows_all(self) -> bool:
        return all(
            self.committable[s, i].effects > 0 or not self.committable[s, i].is_completed()
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

    @terminal("the job has finished, and what is completed has taken effect")
    def is_over(self) -> bool:
        return self.has_finished() and self.shows_all()
