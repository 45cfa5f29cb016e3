"""The surroundings of read splits: the readers of a file's splits with their words on the way, and
the job that takes checkpoints, commits them, fails and is started again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from epochgate.fsm import ANY, STAY, Array, Bool, Channel, Fifo, Int, Row, Trigger
from epochgate.fsm.closed import Environment
from epochgate.models.read_splits import HELD, KEPT, FileRemoval, ReadSplits

if TYPE_CHECKING:
    from epochgate.models.closed.filing import FiledSource

READING, ENDED, DOWN = "reading", "ended", "down"
SAID, ACKNOWLEDGED = 1, 2


class RenewedReading(ReadSplits):
    """The machine of each enumerator, renewed with it."""

    replaced: Trigger

    # fmt: off
    ROWS: ClassVar[tuple[Row, ...]] = (
        *ReadSplits.ROWS,
        Row("replaced", ANY, HELD, None,
            "forget",   "what the enumerator had in memory is gone with it"),
    )
    # fmt: on


class RenewedRemoval(FileRemoval):
    """The machine of each enumerator, renewed with it."""

    replaced: Trigger

    # fmt: off
    ROWS: ClassVar[tuple[Row, ...]] = (
        *FileRemoval.ROWS,
        Row("replaced", ANY, KEPT, None,
            "forget",   "what the enumerator had in memory is gone with it"),
    )
    # fmt: on

    def forget(self) -> None:
        self.held.clear()
        self.held_by.clear()
        self.newest_by = 0


class SplitReader(Environment):
    """The reader of one subtask, which has one split of the file; `up` is its wire to the driver."""

    INDEX = ("subtask",)
    STATES = (READING, ENDED, DOWN)
    INITIAL = READING

    system: FiledSource
    subtask: int

    up: Fifo[int] = Channel("word", "up_length", names="SAID, ACKNOWLEDGED")
    numbers: Fifo[int] = Channel("checkpoints", "up_length")
    """Of each word: the snapshot before the end, or the checkpoint that is acknowledged."""
    last_snapshot: int = Int("checkpoints")
    """Of this attempt; 0 before the first."""
    is_asked: bool = Bool()
    """A barrier waits for it."""
    tells: bool = Bool()
    """Its state has the end as one to be told."""
    saved_end: bool = Bool()
    saved_tells: bool = Bool()
    stored_end: bool = Bool()
    stored_tells: bool = Bool()

    read: Trigger
    barrier: Trigger
    hear: Trigger
    fail: Trigger
    reset: Trigger
    restart: Trigger

    # fmt: off
    ROWS: ClassVar[tuple[Row, ...]] = (
        Row("read",    READING,          ENDED,   None,
            "tell_end",                "the sink has all rows of the split"),
        Row("barrier", (READING, ENDED), STAY,    "has_barrier",
            "take_snapshot",           "the barrier arrives between two pieces of work"),
        Row("hear",    (READING, ENDED), STAY,    "has_said_something",
            "deliver",                 "its oldest word arrives at the driver"),
        Row("fail",    (READING, ENDED), DOWN,    "may_fail",
            "spend_failure, vanish",   "the process dies"),
        Row("reset",   DOWN,             READING, "is_settled and not is_ended_there",
            "go_back, rejoin",         "the subtask goes back to the last complete checkpoint"),
        Row("reset",   DOWN,             ENDED,   "is_settled and is_ended_there",
            "go_back, rejoin",         "the subtask goes back to the last complete checkpoint"),
        Row("restart", ANY,              READING, "not is_ended_there",
            "vanish, go_back",         "everything goes back"),
        Row("restart", ANY,              ENDED,   "is_ended_there",
            "vanish, go_back",         "everything goes back"),
    )
    # fmt: on

    def has_barrier(self) -> bool:
        return self.is_asked

    def has_said_something(self) -> bool:
        return not self.up.empty()

    def may_fail(self) -> bool:
        return self.system.job.failures < self.system.F

    def is_settled(self) -> bool:
        return not self.system.job.is_storing()

    def is_ended_there(self) -> bool:
        return self.stored_end

    def tell_end(self) -> None:
        self.tells = True
        self.up.push(SAID)
        self.numbers.push(self.last_snapshot)

    def take_snapshot(self) -> None:
        self.is_asked = False
        self.saved_end = self.state == ENDED
        self.saved_tells = self.tells
        self.last_snapshot = self.system.job.number
        self.up.push(ACKNOWLEDGED)
        self.numbers.push(self.last_snapshot)

    def deliver(self) -> None:
        word = self.up.pop()
        number = self.numbers.pop()
        if word == SAID:
            self.system.reading[self.subtask].end(self.subtask + 1, number)
        else:
            self.system.job.acknowledge(number)

    def spend_failure(self) -> None:
        self.system.job.count_failure()

    def vanish(self) -> None:
        self.up.clear()
        self.numbers.clear()
        self.is_asked = False
        if not self.system.job.is_storing():
            self.system.job.abort_checkpoint()

    def go_back(self) -> None:
        self.last_snapshot = 0
        self.tells = self.stored_tells
        if self.tells:
            self.up.push(SAID)
            self.numbers.push(0)

    def rejoin(self) -> None:
        self.system.reading[self.subtask].rejoin()

    def ask(self) -> None:
        self.is_asked = True

    def forget_barrier(self) -> None:
        self.is_asked = False

    def store(self) -> None:
        self.stored_end = self.saved_end
        self.stored_tells = self.saved_tells

    def notice(self) -> None:
        """The checkpoint is complete: the coordinator has heard of what its snapshot has."""
        if self.saved_tells:
            self.tells = False

    # port `records`

    def hold(self, split: int, checkpoint: int) -> None:
        assert split == self.subtask + 1, "it is the split of this reader"
        self.system.job.count(self.subtask, checkpoint)


class FilingJob(Environment):
    """The job with the records of its coordinator and the target: port `files` of the removal.

    One checkpoint at a time; a notice of one may be missed by the coordinator. Commits come in the
    order of checkpoints, some time later, and a start commits again what it restores.
    """

    STATES = ("up",)
    INITIAL = "up"

    system: FiledSource

    failures: int = Int("F")
    idle: int = Int("K")
    """The checkpoints that were taken while the file needed none."""
    number: int = Int("checkpoints")
    """The newest checkpoint."""
    is_under_way: bool = Bool()
    acknowledged: int = Int("subtasks")
    counts: list[bool] = Array(Bool(), "subtasks")
    """The splits that the coordinator knows to be held."""
    saved_counts: list[bool] = Array(Bool(), "subtasks")
    stored_counts: list[bool] = Array(Bool(), "subtasks")
    recorded: int = Int("checkpoints")
    """The checkpoint in the record of the file; 0 before there is one."""
    saved_recorded: int = Int("checkpoints")
    stored_recorded: int = Int("checkpoints")
    stored: int = Int("checkpoints")
    """The newest complete checkpoint."""
    committed: int = Int("checkpoints")
    """The newest checkpoint whose rows the target has."""
    in_target: list[bool] = Array(Bool(), "subtasks")
    """The splits all of whose rows the target has."""
    is_to_work: bool = Bool()
    """The work after the newest commit is not done."""
    is_removed: bool = Bool()

    take: Trigger
    store: Trigger
    store_unheard: Trigger
    abort: Trigger
    commit: Trigger
    work: Trigger
    go_back: Trigger
    crash: Trigger

    # fmt: off
    ROWS: ClassVar[tuple[Row, ...]] = (
        Row("take",          "up", STAY, "may_take",
            "begin_checkpoint",                  "all readers run, and no checkpoint is under way"),
        Row("store",         "up", STAY, "is_storing",
            "complete_checkpoint, tell",         "the checkpoint is durable"),
        Row("store_unheard", "up", STAY, "is_storing and may_fail",
            "count_failure, complete_checkpoint", "the checkpoint is durable, and the coordinator misses the notice"),
        Row("abort",         "up", STAY, "is_taking and may_fail",
            "count_failure, abort_checkpoint",   "it takes too long"),
        Row("commit",        "up", STAY, "has_uncommitted",
            "show_rows",                         "readers of the target see the rows"),
        Row("work",          "up", STAY, "has_work",
            "release_files",                     "the work after the commit"),
        Row("go_back",       "up", STAY, "may_fail",
            "count_failure, restart_all",        "the job goes back as a whole"),
        Row("crash",         "up", STAY, "may_fail",
            "count_failure, restart_all, count_told", "the driver dies, and another one starts"),
    )
    # fmt: on

    def may_take(self) -> bool:
        return (
            not self.is_under_way
            and (self.is_needed() or self.idle < self.system.K)
            and all(self.system.reader[s].state != DOWN for s in range(self.system.subtasks))
        )

    def is_needed(self) -> bool:
        return self.recorded == 0 and all(
            self.system.reader[s].state == ENDED and self.system.reader[s].up.empty()
            for s in range(self.system.subtasks)
        )

    def is_storing(self) -> bool:
        return self.is_under_way and self.acknowledged == self.system.subtasks

    def is_taking(self) -> bool:
        return self.is_under_way and not self.is_storing()

    def may_fail(self) -> bool:
        return self.failures < self.system.F

    def has_uncommitted(self) -> bool:
        return self.committed < self.stored

    def has_work(self) -> bool:
        return self.is_to_work

    def count_failure(self) -> None:
        self.failures += 1

    def begin_checkpoint(self) -> None:
        if not self.is_needed():
            self.idle += 1
        self.number += 1
        self.is_under_way = True
        self.acknowledged = 0
        self.saved_recorded = self.recorded
        for s in range(self.system.subtasks):
            self.saved_counts[s] = self.counts[s]
            self.system.reader[s].ask()

    def acknowledge(self, checkpoint: int) -> None:
        if self.is_under_way and checkpoint == self.number:
            self.acknowledged += 1

    def complete_checkpoint(self) -> None:
        self.is_under_way = False
        self.stored = self.number
        self.stored_recorded = self.saved_recorded
        for s in range(self.system.subtasks):
            self.stored_counts[s] = self.saved_counts[s]
            self.system.reader[s].store()

    def tell(self) -> None:
        for s in range(self.system.subtasks):
            self.system.reading[s].complete(self.number)
            self.system.reader[s].notice()

    def abort_checkpoint(self) -> None:
        self.is_under_way = False
        for s in range(self.system.subtasks):
            self.system.reader[s].forget_barrier()

    def show_rows(self) -> None:
        self.committed = self.stored
        self.is_to_work = True
        for s in range(self.system.subtasks):
            self.in_target[s] = self.system.reader[s].stored_end

    def release_files(self) -> None:
        self.is_to_work = False
        self.system.removal.commit(self.committed)

    def restart_all(self) -> None:
        self.is_under_way = False
        self.recorded = self.stored_recorded
        self.system.removal.replaced()
        for s in range(self.system.subtasks):
            self.counts[s] = self.stored_counts[s]
            self.system.reading[s].replaced()
            self.system.reader[s].restart()
        if self.stored > 0:
            self.committed = self.stored - 1
        if self.recorded > 0:
            self.system.removal.hold(1, self.recorded)

    def count_told(self) -> None:
        """A start counts what the states of readers tell in the checkpoint that it restores."""
        for s in range(self.system.subtasks):
            if self.system.reader[s].stored_tells:
                self.count(s, self.stored)

    def count(self, subtask: int, checkpoint: int) -> None:
        self.counts[subtask] = True
        if self.recorded == 0 and all(self.counts[s] for s in range(self.system.subtasks)):
            self.recorded = checkpoint
            self.system.removal.hold(1, checkpoint)

    # port `files`

    def release(self, file: int) -> None:
        assert file == 1, "it is the file that was held"
        self.is_removed = True
