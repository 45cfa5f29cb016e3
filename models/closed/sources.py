"""A closed job around the splits of one source: readers that fail, an enumerator that raises when it
is told of one, checkpoints that complete or do not, resets of one subtask and of everything.

An enumerator assigns S splits to readers that ask, and some unasked; a checkpoint holds what it has
not assigned, and what each reader has. The claim is I10: each split is read by exactly one
surviving history. A wire to a reader is in order, and a barrier stands behind what was sent before
the coordinator's snapshot: that gateways hold what comes after it is checked by the closed jobs.
"""

from __future__ import annotations

from typing import ClassVar

from epochgate.fsm import STAY, Array, Bool, Int, Row, Trigger, machines
from epochgate.fsm.closed import ClosedSystem, Environment, Step, always, eventually, sometimes
from epochgate.models.closed.surroundings.split_readers import DOWN, UP, Dealer, Reader
from epochgate.models.split_assignment import SplitAssignment

BY_READERS = "explored by the system `readers`"


class SourceJob(Environment):
    """The splits that the enumerator has not assigned, and the checkpoints of the job."""

    STATES = ("up",)
    INITIAL = "up"

    system: Sources

    failures: int = Int("F")
    resets: int = Int("G")
    pushes: int = Int("P")
    is_unassigned: list[bool] = Array(Bool(start=True), "S")
    snapshot_unassigned: list[bool] = Array(Bool(), "S")
    completed_unassigned: list[bool] = Array(Bool(start=True), "S")
    latest: int = Int("checkpoints")
    """The newest checkpoint that was taken."""
    pending: int = Int("checkpoints")
    """The one that is under way; 0: none."""
    acknowledged: int = Int("subtasks")
    completed: int = Int("checkpoints")
    to_list: int = Int("S")
    """Assigned splits that are to be listed in this step; none between two steps."""
    is_to_raise: bool = Bool()
    """The enumerator raises when it is told of the next reader."""
    has_raised: bool = Bool()
    """It has, so that everything is to go back."""

    take: Trigger
    store: Trigger
    store_unheard: Trigger
    abort: Trigger
    look: Trigger
    reset_all: Trigger
    spoil: Trigger
    recover: Trigger

    # fmt: off
    ROWS: ClassVar[tuple[Row, ...]] = (
        Row("take",          "up", STAY, "may_take",
            "begin_checkpoint, snapshot_enumerator, put_barriers", "all readers run, and no checkpoint is under way"),
        Row("store",         "up", STAY, "may_store",
            "complete_checkpoint, tell_completed, end_checkpoint", "the checkpoint is durable"),
        Row("store_unheard", "up", STAY, "may_store",
            "complete_checkpoint, end_checkpoint", "the checkpoint is durable, and the coordinator misses the notice"),
        Row("abort",         "up", STAY, "is_under_way",
            "abort_checkpoint",                    "it takes too long, or cannot be stored"),
        Row("look",          "up", STAY, "may_look",
            "list_assigned",                       "a snapshot without a checkpoint is asked for"),
        Row("reset_all",     "up", STAY, "may_reset_all",
            "count_reset, abort_if_under_way, restore_all", "everything goes back"),
        Row("spoil",         "up", STAY, "may_spoil",
            "count_reset, prepare_to_raise",       "the enumerator will raise when it is told of a reader"),
        Row("recover",       "up", STAY, "may_recover",
            "abort_if_under_way, restore_all",     "the enumerator has raised: everything goes back"),
    )
    # fmt: on

    def may_take(self) -> bool:
        return (
            self.pending == 0
            and self.latest < self.system.K
            and all(self.system.reader[i].state == UP for i in range(self.system.subtasks))
        )

    def is_under_way(self) -> bool:
        return self.pending > 0

    def is_storing(self) -> bool:
        return self.pending > 0 and self.acknowledged == self.system.subtasks

    def may_store(self) -> bool:
        return self.is_storing()

    def may_look(self) -> bool:
        return not any(self.system.assignment[i].has_forgotten for i in range(self.system.subtasks))

    def may_reset_all(self) -> bool:
        return self.resets < self.system.G and not self.is_storing()

    def may_spoil(self) -> bool:
        return self.resets < self.system.G and not self.is_to_raise

    def may_recover(self) -> bool:
        return self.has_raised and not self.is_storing()

    def has_unassigned(self) -> bool:
        return any(self.is_unassigned[s] for s in range(self.system.S))

    def is_to_assign(self, split: int) -> bool:
        return any(self.is_unassigned[s] and s == split - 1 for s in range(self.system.S))

    def take_next(self) -> int:
        taken = 0
        for s in range(self.system.S):
            if self.is_unassigned[s] and taken == 0:
                self.is_unassigned[s] = False
                taken = s + 1
        return taken

    def take_back(self, split: int) -> None:
        for s in range(self.system.S):
            if s == split - 1:
                assert not self.is_unassigned[s], "what comes back was assigned"
                self.is_unassigned[s] = True

    def count_failure(self) -> None:
        self.failures += 1

    def count_reset(self) -> None:
        self.resets += 1

    def prepare_to_raise(self) -> None:
        self.is_to_raise = True

    def tell_of_reader(self) -> None:
        self.has_raised = self.has_raised or self.is_to_raise
        self.is_to_raise = False

    def count_push(self) -> None:
        self.pushes += 1

    def subtask_failed(self) -> None:
        if self.is_under_way() and not self.is_storing():
            self.abort_checkpoint()

    def acknowledge(self, checkpoint: int) -> None:
        if checkpoint == self.pending:
            self.acknowledged += 1

    def begin_checkpoint(self) -> None:
        self.latest += 1
        self.pending = self.latest
        self.acknowledged = 0

    def snapshot_enumerator(self) -> None:
        for s in range(self.system.S):
            self.snapshot_unassigned[s] = self.is_unassigned[s]
        for i in range(self.system.subtasks):
            self.system.assignment[i].take(self.latest)

    def put_barriers(self) -> None:
        for i in range(self.system.subtasks):
            self.system.reader[i].put_barrier(self.latest)

    def abort_checkpoint(self) -> None:
        for i in range(self.system.subtasks):
            self.system.assignment[i].abort()
            self.system.reader[i].settle(False)
        self.end_checkpoint()

    def complete_checkpoint(self) -> None:
        self.completed = self.pending
        for s in range(self.system.S):
            self.completed_unassigned[s] = self.snapshot_unassigned[s]
        for i in range(self.system.subtasks):
            self.system.reader[i].settle(True)

    def tell_completed(self) -> None:
        for i in range(self.system.subtasks):
            self.system.assignment[i].complete(self.pending)

    def end_checkpoint(self) -> None:
        self.pending = 0
        self.acknowledged = 0
        for s in range(self.system.S):
            self.snapshot_unassigned[s] = False

    def list_assigned(self) -> None:
        for i in range(self.system.subtasks):
            self.to_list += self.system.assignment[i].checkpointed.size()
            self.to_list += self.system.assignment[i].uncheckpointed.size()
            self.system.assignment[i].list_all()

    def refuse_checkpoint(self) -> None:
        if self.is_under_way():
            for i in range(self.system.subtasks):
                self.system.reader[i].withhold_barrier(self.pending)
            self.abort_checkpoint()

    def abort_if_under_way(self) -> None:
        if self.is_under_way():
            self.abort_checkpoint()

    def restore_all(self) -> None:
        self.has_raised = False
        for s in range(self.system.S):
            self.is_unassigned[s] = self.completed_unassigned[s]
        for i in range(self.system.subtasks):
            self.system.dealer[i].forget()
            self.system.assignment[i].restore(self.completed > 0)
            self.system.reader[i].restart()


class Sources(ClosedSystem):
    """The splits of a source: each split is read by exactly one surviving history."""

    INDEX_SETS: ClassVar[dict[str, str]] = {"subtask": "subtasks"}
    CONSTANTS: ClassVar[dict[str, int]] = {
        "subtasks": 2,
        "S": 1,
        "K": 1,
        "F": 1,
        "G": 1,
        "P": 2,
        "places": 1,
        "up_length": 1,
    }
    DERIVED: ClassVar[dict[str, str]] = {
        "attempts": "F + G + 1",
        "checkpoints": "K + 0",
        "split": "S + 0",
        "splits": "S + 0",
        "down": "S + 1 + K",
        "down_length": "S + 1 + K",
        "up": "1",
    }
    STEPS: ClassVar[tuple[Step, ...]] = (
        Step("reader", "begin"),
        Step("reader", "hear"),
        Step("reader", "hear_again", is_fair=False, is_stuttering=True),
        Step("reader", "hear_late", is_fair=False, is_stuttering=True),
        Step("reader", "ask"),
        Step("reader", "tell"),
        Step("reader", "fail", is_fair=False),
        Step("reader", "reset"),
        Step("dealer", "deal"),
        Step("dealer", "end"),
        Step("dealer", "push", is_fair=False),
        Step("dealer", "plan", is_fair=False),
        Step("job", "take", is_fair=False),
        Step("job", "store"),
        Step("job", "store_unheard", is_fair=False),
        Step("job", "abort", is_fair=False),
        Step("job", "look", is_fair=False, is_stuttering=True),
        Step("job", "reset_all", is_fair=False),
        Step("job", "spoil", is_fair=False),
        Step("job", "recover"),
    )
    WIRING: ClassVar[dict[str, str]] = {
        "assignment.readers": "reader",
        "assignment.enumerator": "dealer",
    }

    UNTAKEN: ClassVar[dict[str, str]] = {
        "assignment.register: another attempt reads the same splits from the beginning": BY_READERS,
        "assignment.lost: another reader of the subtask is there": BY_READERS,
    }

    subtasks: int
    places: int
    attempts: int
    up_length: int
    S: int
    K: int
    F: int
    G: int
    P: int

    assignment: list[SplitAssignment] = machines(SplitAssignment)
    reader: list[Reader] = machines(Reader)
    dealer: list[Dealer] = machines(Dealer)
    job: SourceJob = machines(SourceJob)

    def histories_with(self, split: int) -> int:
        """Counts who reads the split or will: the enumerator, and readers that go on."""
        count = 1 if self.job.is_unassigned[split] else 0
        for i in range(self.subtasks):
            if self.reader[i].state != DOWN and self.reader[i].holds[split]:
                count += 1
        return count

    def copies_completed(self, split: int) -> int:
        count = 1 if self.job.completed_unassigned[split] else 0
        for i in range(self.subtasks):
            if self.reader[i].completed_holds[split]:
                count += 1
        return count

    @always("I10: each split is read by at most one surviving history")
    def is_read_at_most_once(self) -> bool:
        return all(self.histories_with(s) <= 1 for s in range(self.S))

    @always("I10: a completed checkpoint holds each split once")
    def is_completed_once(self) -> bool:
        return all(self.copies_completed(s) == 1 for s in range(self.S))

    @always("the enumerator hears what a reader says, and of each split that is assigned")
    def hears_everything(self) -> bool:
        return self.job.to_list == 0 and all(
            not self.dealer[i].is_spoken_to for i in range(self.subtasks)
        )

    @sometimes("a split comes back from a reader and is read by another")
    def is_read_elsewhere(self) -> bool:
        return (
            self.job.failures > 0
            and self.job.resets == 0
            and all(self.reader[i].has_ended() for i in range(self.subtasks))
        )

    @sometimes("a checkpoint completes while a reader that is part of it is down")
    def is_completed_without(self) -> bool:
        return self.job.is_storing() and any(
            self.reader[i].state == DOWN for i in range(self.subtasks)
        )

    @always("I10: once all readers have ended, each split was read by one of them", "has_ended")
    def is_read_once(self) -> bool:
        return all(
            not self.job.is_unassigned[s] and self.histories_with(s) == 1 for s in range(self.S)
        )

    def has_ended(self) -> bool:
        return all(self.reader[i].has_ended() for i in range(self.subtasks))

    @eventually("each split is read, and each reader has ended")
    def is_all_read(self) -> bool:
        return self.has_ended() and self.is_read_once()
