"""The callers of a batch's commit: Spark's drivers, one of which may have been taken for dead."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from epochgate.fsm import ANY, STAY, Bool, Int, Row, Trigger
from epochgate.fsm.closed import Environment
from epochgate.models.closed.surroundings.query_table import COPIED, MOVED_AWAY
from epochgate.models.query_batch import (
    AHEAD,
    BEHIND,
    CHANGED,
    DONE,
    FAILED,
    IDLE,
    MOVED,
    REFUSED,
    QueryBatch,
)

if TYPE_CHECKING:
    from epochgate.models.closed.streaming import StreamingQuery

DOWN, READY, PLANNED = "down", "ready", "planned"
CALLED, TOLD, RAISED = "called", "told", "raised"
NOTHING, LOOK, NOTE, APPLY, RECORD, SWEEP = range(6)
STEPS = "NOTHING, LOOK, NOTE, APPLY, RECORD, SWEEP"


class Commit(QueryBatch):
    """The machine that runs in production; the next call of Spark's has another."""

    INDEX = ("driver",)

    driver: int

    restart: Trigger

    # fmt: off
    ROWS: ClassVar[tuple[Row, ...]] = (
        *QueryBatch.ROWS,
        Row("restart", ANY, IDLE, None, "forget", "the next call knows nothing of this one"),
    )
    # fmt: on

    def forget(self) -> None:
        self.batch = 0
        self.accepts = 0
        self.tries = 0


class Driver(Environment):
    """A driver of the query, behind the port `target` of the machine: it plans a batch, lets tasks
    stage it, and calls `commit`, and `abort` if that raises. It may have been taken for dead.
    """

    INDEX = ("driver",)
    STATES = (DOWN, READY, PLANNED, CALLED, TOLD, RAISED)
    INITIAL = DOWN

    system: StreamingQuery
    driver: int

    place: int = Int(1)
    query: int = Int(1)
    batch: int = Int("K")
    offsets: int = Int(3)
    asked: int = Int(SWEEP, names=STEPS)
    """Which step the machine has asked for."""
    looks: int = Int("looks")
    """How often the commit has looked, while it may look again."""
    has_applied: bool = Bool()
    """The batch has taken effect, and the machine does not know."""
    is_stale: bool = Bool()
    """The notes are not as this driver has read them, and it is writing them."""
    late: int = Int(SWEEP, names=STEPS)
    """A step that hangs may yet be done, and no machine waits for it: which step, and of what."""
    late_place: int = Int(1)
    late_query: int = Int(1)
    late_batch: int = Int("K")
    late_offsets: int = Int(3)
    is_late_stale: bool = Bool()

    start: Trigger
    start_copy: Trigger
    plan: Trigger
    spill: Trigger
    run: Trigger
    step: Trigger
    answer: Trigger
    lose: Trigger
    unheard: Trigger
    fail: Trigger
    hang: Trigger
    arrive: Trigger
    log: Trigger
    abort: Trigger
    end: Trigger
    give_up: Trigger
    die: Trigger

    # fmt: off
    ROWS: ClassVar[tuple[Row, ...]] = (
        Row("start",      DOWN,    PLANNED, "may_start and has_open",
            "enter, replay",                "a driver goes on with the batch that has offsets and no end"),
        Row("start",      DOWN,    READY,   "may_start and not has_open",
            "enter",                        "a driver goes on with the next batch"),
        Row("start_copy", DOWN,    PLANNED, "has_copy and copy_has_open",
            "enter_copy, replay",           "a driver goes on with a batch of the copy"),
        Row("start_copy", DOWN,    READY,   "has_copy and not copy_has_open",
            "enter_copy",                   "a driver goes on with the next batch of the copy"),

        Row("plan",       READY,   PLANNED, "has_more and is_alone",
            "write_plan",                   "the offsets of the next batch are durable"),
        Row("plan",       READY,   DOWN,    "has_more and not is_alone",
            "leave",                        "another driver has written them: this one ends"),
        Row("spill",      PLANNED, STAY,    "may_fail",
            "spend, leave_file",            "an attempt of a task fails, and leaves what it has staged"),
        Row("run",        PLANNED, CALLED,  None,
            "call_commit",                  "every task has staged its part: Spark calls commit"),

        Row("step",       CALLED,  STAY,    "asks",
            "act",                          "the step is done"),
        Row("answer",     CALLED,  STAY,    "is_applied",
            "tell_applied",                 "the answer arrives"),
        Row("lose",       CALLED,  STAY,    "may_be_unsure",
            "spend, forget_answer, tell_unsure", "the answer is lost, or another writer comes before"),
        Row("unheard",    CALLED,  STAY,    "may_be_unheard",
            "spend, act_unheard, tell_unsure", "the step is done, and its answer is lost"),
        Row("fail",       CALLED,  STAY,    "may_break",
            "spend, forget_answer, tell_broken", "the step ends in an error"),
        Row("hang",       CALLED,  STAY,    "may_hang",
            "spend, keep_late, forget_answer, tell_late", "the step does not end within its limit"),
        Row("arrive",     ANY,     STAY,    "has_late",
            "act_late",                     "a step that was left behind is done after all"),
        Row("end",        CALLED,  TOLD,    None,
            None,                           "commit returns"),
        Row("give_up",    CALLED,  RAISED,  None,
            None,                           "commit raises"),

        Row("log",        TOLD,    READY,   "is_first_to_log",
            "write_end",                    "Spark's log of commits has the batch"),
        Row("log",        TOLD,    DOWN,    "not is_first_to_log",
            "leave",                        "another driver has written it: this one ends"),
        Row("abort",      RAISED,  DOWN,    None,
            "call_abort, leave",            "Spark calls abort, and the query fails"),
        Row("die",        (READY, PLANNED, CALLED, TOLD, RAISED), DOWN, "may_fail",
            "spend, leave",                 "the driver is killed"),
    )
    # fmt: on

    def may_start(self) -> bool:
        home = self.system.user.home()
        return self.system.location[home].committed < self.system.K and (
            not self.system.has_driver_at(home) or self.system.user.failures < self.system.F
        )

    def has_open(self) -> bool:
        home = self.system.user.home()
        return self.system.location[home].planned > self.system.location[home].committed

    def has_copy(self) -> bool:
        return (
            self.system.user.act == COPIED
            and self.system.location[1].committed < self.system.K
            and not self.system.location[1].is_given_up
            and not self.system.has_driver_at(1)
        )

    def copy_has_open(self) -> bool:
        return self.system.location[1].planned > self.system.location[1].committed

    def has_more(self) -> bool:
        return self.batch < self.system.K

    def is_alone(self) -> bool:
        return self.system.location[self.place].planned == self.batch

    def may_fail(self) -> bool:
        return self.system.user.failures < self.system.F

    def asks(self) -> bool:
        return self.asked != NOTHING and not self.has_applied

    def is_applied(self) -> bool:
        return self.has_applied

    def may_be_unsure(self) -> bool:
        return self.may_break()

    def may_be_unheard(self) -> bool:
        """Of a batch that takes effect `step` and `lose` tell."""
        return self.may_break() and self.asked != LOOK and self.asked != APPLY

    def may_break(self) -> bool:
        return self.may_fail() and self.asked != NOTHING

    def may_hang(self) -> bool:
        """A function of the user's, which writes elsewhere, is waited for as long as it takes."""
        return (
            self.may_break()
            and not self.has_applied
            and self.late == NOTHING
            and (self.asked != APPLY or self.system.carried > 0)
        )

    def has_late(self) -> bool:
        return self.late != NOTHING

    def is_first_to_log(self) -> bool:
        return self.system.location[self.place].committed == self.batch

    def enter(self) -> None:
        self.go_to(self.system.user.home())

    def enter_copy(self) -> None:
        self.go_to(1)

    def go_to(self, place: int) -> None:
        if any(
            d != self.driver
            and self.system.driver[d].state != DOWN
            and self.system.driver[d].place == place
            for d in range(self.system.drivers)
        ):
            self.system.user.failures += 1
        self.place = place
        self.query = self.system.location[place].query
        self.batch = self.system.location[place].committed

    def replay(self) -> None:
        self.offsets = self.system.location[self.place].offsets[self.batch]

    def write_plan(self) -> None:
        self.system.location[self.place].plan()
        self.offsets = self.system.location[self.place].offsets[self.batch]

    def leave_file(self) -> None:
        self.system.table.is_staged[self.batch] = True

    def call_commit(self) -> None:
        accepts = self.system.accepts
        if self.system.user.act == MOVED_AWAY and self.place == 1:
            accepts = MOVED
        self.system.query_batch[self.driver].restart()
        self.system.query_batch[self.driver].commit(self.batch, accepts, 0)

    def act(self) -> None:
        asked = self.asked
        may_note = self.may_note()
        self.is_stale = False
        if asked == APPLY and self.may_apply(self.query, self.batch):
            self.apply_batch()
            self.has_applied = True
        else:
            self.asked = NOTHING
            if asked == LOOK:
                self.system.query_batch[self.driver].looked(
                    self.system.table.number[self.query],
                    self.system.table.origin(self.query, self.place),
                    self.system.table.differs(self.query, self.batch, self.offsets),
                )
            if asked == NOTE and may_note:
                self.write_note()
                self.system.query_batch[self.driver].noted()
            elif asked == NOTE:
                self.system.query_batch[self.driver].unsure()
            if asked == APPLY:
                self.system.query_batch[self.driver].unsure()
            if asked == RECORD:
                self.record_batch()
                self.system.query_batch[self.driver].recorded()
            if asked == SWEEP:
                self.system.table.sweep(self.batch)
                self.system.query_batch[self.driver].swept()

    def act_unheard(self) -> None:
        asked = self.asked
        may_note = self.may_note()
        self.forget_answer()
        if asked == NOTE and may_note:
            self.write_note()
        if asked == RECORD:
            self.record_batch()
        if asked == SWEEP:
            self.system.table.sweep(self.batch)

    def may_note(self) -> bool:
        """True if the note is as this driver has read it: notes are compared and exchanged."""
        return not self.is_stale

    def may_apply(self, query: int, batch: int) -> bool:
        """A function is called also where another driver came before."""
        return self.system.carried == 0 or not self.system.table.knows(query, batch)

    def apply_batch(self) -> None:
        self.system.table.apply(self.query, self.batch, self.offsets)

    def write_note(self) -> None:
        self.system.table.write_note(self.query, self.place, self.batch, self.offsets)

    def record_batch(self) -> None:
        self.system.table.record(self.query, self.place, self.batch)

    def spoil(self) -> None:
        """The notes have changed since they were read."""
        self.is_stale = self.asked == NOTE
        self.is_late_stale = self.late == NOTE

    def tell_applied(self) -> None:
        self.asked = NOTHING
        self.has_applied = False
        self.system.query_batch[self.driver].applied(self.system.carried)

    def forget_answer(self) -> None:
        self.asked = NOTHING
        self.has_applied = False
        self.is_stale = False

    def tell_unsure(self) -> None:
        self.system.query_batch[self.driver].unsure()

    def tell_broken(self) -> None:
        self.system.query_batch[self.driver].broken()

    def keep_late(self) -> None:
        if self.asked != LOOK:  # which changes nothing
            self.late = self.asked
            self.late_place = self.place
            self.late_query = self.query
            self.late_batch = self.batch
            self.late_offsets = self.offsets
            self.is_late_stale = self.is_stale

    def tell_late(self) -> None:
        self.system.query_batch[self.driver].expire()

    def act_late(self) -> None:
        """As `act`, and no one hears of it."""
        late = self.late
        batch = self.late_batch
        query = self.late_query
        offsets = self.late_offsets
        if late == NOTE and not self.is_late_stale:
            self.system.table.write_note(query, self.late_place, batch, offsets)
        if late == APPLY and self.may_apply(query, batch):
            self.system.table.apply(query, batch, offsets)
        if late == RECORD:
            self.system.table.record(query, self.late_place, batch)
        if late == SWEEP:
            self.system.table.sweep(batch)
        self.forget_late()

    def forget_late(self) -> None:
        self.late = NOTHING
        self.late_place = 0
        self.late_query = 0
        self.late_batch = 0
        self.late_offsets = 0
        self.is_late_stale = False

    def write_end(self) -> None:
        self.system.location[self.place].close()
        self.batch += 1
        self.offsets = 0

    def call_abort(self) -> None:
        self.system.query_batch[self.driver].restart()
        self.system.query_batch[self.driver].abort()

    def spend(self) -> None:
        self.system.user.failures += 1

    def leave(self) -> None:
        self.place = 0
        self.query = 0
        self.batch = 0
        self.offsets = 0
        self.forget_answer()
        self.looks = 0
        self.system.query_batch[self.driver].restart()

    # port `target` of the machine

    def look(self, batch: int, tries: int) -> None:
        self.ask(LOOK, batch)
        assert tries == self.looks, "a look is told how many tries went before"
        self.looks += 1

    def note(self, batch: int) -> None:
        self.ask(NOTE, batch)

    def apply(self, batch: int) -> None:
        self.ask(APPLY, batch)

    def record(self, batch: int) -> None:
        self.ask(RECORD, batch)
        self.looks = 0

    def sweep(self, batch: int) -> None:
        self.ask(SWEEP, batch)
        self.looks = 0

    def ask(self, step: int, batch: int) -> None:
        self.check_batch(batch)
        self.asked = step

    def hear_end(self, batch: int) -> None:
        self.check_batch(batch)
        self.looks = 0

    def check_batch(self, batch: int) -> None:
        assert batch == self.batch, "a step of a commit, and its end, is of the batch it began with"

    def done(self, batch: int) -> None:
        assert self.system.query_batch[self.driver].state == DONE, "a batch ends as it is told"
        self.hear_end(batch)
        self.end()

    def refused(self, batch: int, reason: int) -> None:
        assert self.system.query_batch[self.driver].state == REFUSED, "a batch ends as it is told"
        self.hear_end(batch)
        self.check_reason(reason)
        if self.place == 1:
            self.system.location[1].is_given_up = True
        self.give_up()

    def check_reason(self, reason: int) -> None:
        number = self.system.table.number[self.query]
        assert (
            (reason == BEHIND and number < self.batch)
            or (reason == AHEAD and number > self.batch + 1)
            or (
                reason == CHANGED
                and self.system.table.differs(self.query, self.batch, self.offsets) > 0
            )
            or reason == self.system.table.origin(self.query, self.place)
        ), "a batch is refused for what the target shows"

    def failed(self, batch: int) -> None:
        assert self.system.query_batch[self.driver].state == FAILED, "a batch ends as it is told"
        assert self.looks > 0 or self.system.carried == 0, "a batch that took effect has not failed"
        self.hear_end(batch)
        self.give_up()
