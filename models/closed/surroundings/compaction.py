"""The surroundings of a compaction: the target and the job that writes it, the process and its
disk, and a reader that lists and opens what is there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from epochgate.fsm import ANY, STAY, Array, Bool, Int, Row, Trigger
from epochgate.fsm.closed import Environment
from epochgate.models.compaction import (
    IDLE,
    Compaction,
)

if TYPE_CHECKING:
    from epochgate.models.closed.compacting import CompactingJob

NOTHING, PLAN, STAGE, EXCHANGE, DISCARD, CLEAN = range(6)
STEPS = "NOTHING, PLAN, STAGE, EXCHANGE, DISCARD, CLEAN"
AS_DONE, AS_FAILED = 1, 2
UNREAD, LISTING, OPENING, READ, FAILED = "unread", "listing", "opening", "read", "failed"


class Compactor(Compaction):
    """The machine that runs in production; the next process has another."""

    restart: Trigger

    # fmt: off
    ROWS: ClassVar[tuple[Row, ...]] = (
        *Compaction.ROWS,
        Row("restart", ANY, IDLE, None, "forget", "the next process knows nothing of this one"),
    )
    # fmt: on

    def forget(self) -> None:
        self.tries = 0


class Target(Environment):
    """The target as readers see it, and the job that writes it."""

    STATES = ("up",)
    INITIAL = "up"

    system: CompactingJob

    committed: int = Int("K")
    """How many checkpoints are visible: the first ones."""
    version: list[int] = Array(Int("W"), "K")
    """How often the checkpoint was withdrawn: then it has other rows."""
    is_small: list[bool] = Array(Bool(), "K")
    """The checkpoint's row is in a file of its own directory."""
    is_merged: list[bool] = Array(Bool(), "K")
    """It is in the merged file, in the directory of the first."""
    tree: int = Int("trees")
    """How often the target was exchanged; merged files of each tree have names of their own."""
    withdrawals: int = Int("W")

    commit: Trigger
    withdraw: Trigger

    # fmt: off
    ROWS: ClassVar[tuple[Row, ...]] = (
        Row("commit",   "up", STAY, "has_more",    "show_next",   "a checkpoint is committed"),
        Row("withdraw", "up", STAY, "may_go_back", "hide_newest", "the job goes back behind it"),
    )
    # fmt: on

    def has_more(self) -> bool:
        return self.committed < self.system.K

    def may_go_back(self) -> bool:
        return (
            self.withdrawals < self.system.W
            and self.committed > 0
            and not self.is_merged[self.committed - 1]
        )

    def show_next(self) -> None:
        self.is_small[self.committed] = True
        self.committed += 1

    def hide_newest(self) -> None:
        self.withdrawals += 1
        self.committed -= 1
        self.is_small[self.committed] = False
        self.version[self.committed] += 1

    def merge(self, checkpoints: int) -> None:
        self.tree += 1
        for k in range(self.system.K):
            if k < checkpoints:
                self.is_small[k] = False
                self.is_merged[k] = True


class Process(Environment):
    """The process of the compactor, behind the port `target` of the machine, and its disk."""

    STATES = ("up",)
    INITIAL = "up"

    system: CompactingJob

    planned: int = Int("K")
    """How many checkpoints are to be merged: the first ones."""
    planned_version: list[int] = Array(Int("W"), "K")
    planned_tree: int = Int("trees")
    asked: int = Int(CLEAN, names=STEPS)
    """Which step the machine has asked for."""
    failing: int = Int(CLEAN, names=STEPS)
    """In which step the run has met an error."""
    ended: int = Int(2, names="AS_DONE, AS_FAILED")
    """The machine has said that it is over: AS_DONE or AS_FAILED; 0 if it has not."""
    has_exchanged: bool = Bool()
    """The exchange has taken effect, and the machine does not know."""
    is_staged: bool = Bool()
    """A merged file that no reader sees is there."""
    is_whole: bool = Bool()
    """The merged file of the target is there."""
    is_late: bool = Bool()
    """An exchange that was left behind may be done, until another compaction begins: its process
    keeps the lock of a directory, and in an object store the next one stops it.
    """
    runs: int = Int("R")
    failures: int = Int("F")

    begin: Trigger
    look: Trigger
    write: Trigger
    swap: Trigger
    answer: Trigger
    drop: Trigger
    tidy: Trigger
    fail: Trigger
    hang: Trigger
    arrive: Trigger
    die: Trigger

    # fmt: off
    ROWS: ClassVar[tuple[Row, ...]] = (
        Row("begin",  "up", STAY, "may_begin",         "count_run, start",   "the command is run"),
        Row("look",   "up", STAY, "is_planning",       "note_plan, answer_planned",
                                                                             "the target is looked at"),
        Row("write",  "up", STAY, "is_staging and is_as_planned",     "stage_file, answer_staged",
                                                                             "the merged file is written"),
        Row("write",  "up", STAY, "is_staging and not is_as_planned", "stage_file, answer_overtaken",
                                                                             "files that were to be merged are gone"),
        Row("swap",   "up", STAY, "may_swap and is_as_planned",     "take_effect",
                                                                             "the exchange takes effect"),
        Row("swap",   "up", STAY, "may_swap and not is_as_planned", "answer_overtaken",
                                                                             "the target has changed"),
        Row("answer", "up", STAY, "has_swapped",       "forget_exchange, answer_exchanged",
                                                                             "the exchange is durable"),
        Row("drop",   "up", STAY, "is_discarding",     "drop_staged, answer_discarded",
                                                                             "what was staged is removed"),
        Row("tidy",   "up", STAY, "is_cleaning",       "drop_staged, answer_cleaned",
                                                                             "what is needless is removed"),
        Row("fail",   "up", STAY, "may_break",         "spend_failure, forget_exchange, answer_broken",
                                                                             "the step ends in an error"),
        Row("hang",   "up", STAY, "may_hang",          "spend_failure, keep_late, answer_expire",
                                                                             "the step does not end within its limit"),
        Row("arrive", "up", STAY, "has_late",          "take_effect_late",  "an exchange that was left behind is done"),
        Row("die",    "up", STAY, "may_fail",          "spend_failure, forget_exchange, restart",
                                                                             "the process is killed"),
    )
    # fmt: on

    def may_begin(self) -> bool:
        return self.runs < self.system.R and (
            self.system.compaction.state == IDLE or self.ended > 0
        )

    def is_planning(self) -> bool:
        return self.asked == PLAN

    def is_staging(self) -> bool:
        return self.asked == STAGE

    def may_swap(self) -> bool:
        return self.asked == EXCHANGE and not self.has_exchanged

    def has_swapped(self) -> bool:
        return self.has_exchanged

    def is_discarding(self) -> bool:
        return self.asked == DISCARD

    def is_cleaning(self) -> bool:
        return self.asked == CLEAN

    def may_fail(self) -> bool:
        return self.failures < self.system.F and self.asked != NOTHING

    def may_break(self) -> bool:
        # An error of a merge whose files have changed is answered as these are: see `write`.
        return self.may_fail() and (self.asked != STAGE or self.is_as_planned())

    def may_hang(self) -> bool:
        return self.may_fail() and self.asked != STAGE

    def has_late(self) -> bool:
        return self.is_late and self.is_as_planned()

    def is_as_planned(self) -> bool:
        return (
            self.planned_tree == self.system.target.tree
            and self.planned <= self.system.target.committed
            and all(
                k >= self.planned or self.planned_version[k] == self.system.target.version[k]
                for k in range(self.system.K)
            )
        )

    def count_run(self) -> None:
        self.runs += 1

    def start(self) -> None:
        self.is_late = False
        self.ended = 0
        self.failing = NOTHING
        self.system.compaction.restart()
        self.system.compaction.start()

    def note_plan(self) -> None:
        self.planned_tree = self.system.target.tree
        self.planned = 0
        if self.system.target.committed > self.system.kept:
            self.planned = self.system.target.committed - self.system.kept
        for k in range(self.system.K):
            self.planned_version[k] = self.system.target.version[k]

    def answer_planned(self) -> None:
        smalls = 0
        for k in range(self.system.K):
            if k < self.planned and self.system.target.is_small[k]:
                smalls += 1
        # What is merged already is a small file itself.
        if self.system.target.is_merged[0] and smalls > 0:
            smalls += 1
        self.asked = NOTHING
        if smalls > 1:
            self.system.compaction.planned(1)
        else:
            self.system.compaction.planned(0)

    def stage_file(self) -> None:
        self.is_staged = True

    def answer_staged(self) -> None:
        self.asked = NOTHING
        self.system.compaction.staged()

    def take_effect(self) -> None:
        self.is_whole = self.is_staged
        self.is_staged = False
        self.has_exchanged = True
        self.system.target.merge(self.planned)

    def answer_overtaken(self) -> None:
        self.asked = NOTHING
        self.system.compaction.overtaken()

    def forget_exchange(self) -> None:
        self.has_exchanged = False

    def answer_exchanged(self) -> None:
        self.asked = NOTHING
        self.system.compaction.exchanged()

    def drop_staged(self) -> None:
        self.is_staged = False

    def answer_discarded(self) -> None:
        self.asked = NOTHING
        self.system.compaction.discarded()

    def answer_cleaned(self) -> None:
        self.asked = NOTHING
        self.system.compaction.cleaned()

    def spend_failure(self) -> None:
        self.failures += 1

    def answer_broken(self) -> None:
        self.failing = self.asked
        if self.asked == STAGE:
            self.is_staged = True  # a part of it
        self.asked = NOTHING
        self.system.compaction.broken()

    def keep_late(self) -> None:
        self.is_late = self.asked == EXCHANGE and not self.has_exchanged
        self.has_exchanged = False

    def answer_expire(self) -> None:
        self.failing = self.asked
        self.asked = NOTHING
        self.system.compaction.expire()

    def take_effect_late(self) -> None:
        self.is_late = False
        self.is_whole = self.is_staged
        self.is_staged = False
        self.system.target.merge(self.planned)

    def restart(self) -> None:
        self.asked = NOTHING
        self.system.compaction.restart()

    # port `target` of the machine

    def plan(self) -> None:
        assert not self.has_exchanged, "nothing is planned while an exchange is not known"
        self.asked = PLAN

    def stage(self) -> None:
        assert self.planned > 0, "what is staged was planned"
        self.asked = STAGE

    def exchange(self) -> None:
        assert self.is_staged, "what is exchanged was staged"
        self.asked = EXCHANGE

    def discard(self) -> None:
        assert not self.has_exchanged, "what may be the target is not thrown away"
        self.asked = DISCARD

    def clean(self) -> None:
        assert not self.has_exchanged, "an exchange is known before anything is cleaned"
        self.asked = CLEAN

    def done(self) -> None:
        assert not self.is_staged, "nothing is left over"
        assert self.ended == 0, "a compaction ends once"
        self.ended = AS_DONE

    def failed(self) -> None:
        assert not self.is_staged or (self.failing != STAGE and self.failing != NOTHING), (
            "what no reader can have seen is not left over"
        )
        assert self.ended == 0, "a compaction ends once"
        self.ended = AS_FAILED


class Reader(Environment):
    """A reader: lists the directories of the root that it has seen, then opens what it found."""

    STATES = (UNREAD, LISTING, OPENING, READ, FAILED)
    INITIAL = UNREAD
    TERMINAL = (READ, FAILED)

    system: CompactingJob

    rooted: int = Int("K")
    """Of how many checkpoints the root had a directory, or had one before it was merged."""
    at: int = Int("K")
    """The next directory to be listed, or whose files are opened."""
    found: list[bool] = Array(Bool(), "K")
    """A checkpoint's own file, and of which version it was."""
    version: list[int] = Array(Int("W"), "K")
    merged: int = Int("trees")
    """Of which tree a merged file was found; 0 for none."""
    rows: list[int] = Array(Int(2), "K")
    """How often each checkpoint's row was read."""
    withdrawals: int = Int("W")
    """Of the job, when the reader began."""

    list_root: Trigger
    list_next: Trigger
    open_next: Trigger

    # fmt: off
    ROWS: ClassVar[tuple[Row, ...]] = (
        Row("list_root", UNREAD,  LISTING, "has_rows",                  "note_root",
            "the directory of the target is listed"),
        Row("list_next", LISTING, STAY,    "has_more",                  "note_files, step",
            "a checkpoint's directory is listed, or it is gone"),
        Row("list_next", LISTING, OPENING, "not has_more",              "begin_again",
            "all of them were"),
        Row("open_next", OPENING, STAY,    "has_more and is_there",     "read_files, step",
            "its files are opened"),
        Row("open_next", OPENING, FAILED,  "has_more and not is_there", None,
            "a file that was listed is gone"),
        Row("open_next", OPENING, READ,    "not has_more",              "judge",
            "the reader has all rows"),
    )
    # fmt: on

    def has_rows(self) -> bool:
        return self.system.target.committed > 0

    def has_more(self) -> bool:
        return self.at < self.rooted

    def is_there(self) -> bool:
        is_own_there = not self.found[self.at] or (
            self.system.target.is_small[self.at]
            and self.version[self.at] == self.system.target.version[self.at]
        )
        is_merged_there = self.at > 0 or self.merged == 0 or self.merged == self.system.target.tree
        return is_own_there and is_merged_there

    def note_root(self) -> None:
        self.rooted = self.system.target.committed
        self.withdrawals = self.system.target.withdrawals

    def note_files(self) -> None:
        self.found[self.at] = self.system.target.is_small[self.at]
        self.version[self.at] = self.system.target.version[self.at]
        if self.at == 0 and self.system.target.is_merged[0]:
            self.merged = self.system.target.tree

    def step(self) -> None:
        self.at += 1

    def begin_again(self) -> None:
        self.at = 0

    def read_files(self) -> None:
        if self.found[self.at]:
            self.rows[self.at] += 1
        if self.at == 0 and self.merged > 0:
            for k in range(self.system.K):
                if self.system.target.is_merged[k]:
                    self.rows[k] += 1

    def judge(self) -> None:
        # What a reader finds while the job goes back is not the compaction's.
        is_judged = self.withdrawals == self.system.target.withdrawals
        for k in range(self.system.K):
            assert not is_judged or self.rows[k] <= 1, "no reader finds a row twice"
            assert not is_judged or k >= self.rooted or self.rows[k] == 1, (
                "a reader finds the rows of every checkpoint that it has listed"
            )
            assert not is_judged or k == 0 or self.rows[k - 1] >= self.rows[k], (
                "a reader that finds a checkpoint finds those before it"
            )
