"""What is around the plans of batches: the source and Spark's two logs, the drivers of one query, and
the store with its listing and its late requests.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from epochgate.fsm import ANY, STAY, Array, Bool, Int, Row, Trigger
from epochgate.fsm.closed import Environment
from epochgate.models.batch_plan import IDLE, BatchPlan

if TYPE_CHECKING:
    from epochgate.models.closed.planning import PlannedQuery

NOTHING, LOOK, RESTORE, CHOOSE, WRITE, CONFIRM = range(6)
GONE, UP, ASKING, TOLD, RUNNING = "gone", "up", "asking", "told", "running"


class Planner(BatchPlan):
    """The machine that runs in production; the next process has another."""

    restart: Trigger

    # fmt: off
    ROWS: ClassVar[tuple[Row, ...]] = (
        *BatchPlan.ROWS,
        Row("restart", ANY, IDLE, None, "forget_all", "the next process knows nothing of this one"),
    )
    # fmt: on

    def forget_all(self) -> None:
        self.batch = 0
        self.has_enumerator = False
        self.behind = 0
        self.tries = 0


class Stream(Environment):
    """The splits of the source, counted; the plans in the store; Spark's logs; and what was run.

    The splits of a plan are those behind `first` up to `last`, and the state that it holds is
    `last`: how many were given out.
    """

    STATES = ("up",)
    INITIAL = "up"

    system: PlannedQuery

    there: int = Int("S")
    """How many splits can be found."""
    is_planned: list[bool] = Array(Bool(), "slots")
    first: list[int] = Array(Int("S"), "slots")
    last: list[int] = Array(Int("S"), "slots")
    newest: int = Int("batches")
    """The newest batch with a plan: it is never removed."""
    is_stray: list[bool] = Array(Bool(), "slots")
    """The plan was made after the batch was forgotten."""
    logged: int = Int("batches")
    committed: int = Int("batches")
    is_seen: list[bool] = Array(Bool(), "slots")
    seen_first: list[int] = Array(Int("S"), "slots")
    seen_last: list[int] = Array(Int("S"), "slots")
    replays: int = Int(1)
    starts: int = Int("R")
    failures: int = Int("F")

    appear: Trigger
    note: Trigger

    # fmt: off
    ROWS: ClassVar[tuple[Row, ...]] = (
        Row("appear", "up", STAY, "has_more", "count_split", "the source has another split"),
        Row("note",   "up", STAY, None,       "note_logged", "the offset of a batch is durable"),
    )
    # fmt: on

    def has_more(self) -> bool:
        return self.there < self.system.S

    def count_split(self) -> None:
        self.there += 1

    def note_logged(self, batch: int) -> None:
        self.logged = batch

    def create(self, batch: int, first: int, last: int) -> bool:
        """Whether there was none: then there is this one."""
        if self.is_planned[batch]:
            return False
        self.is_planned[batch] = True
        self.first[batch] = first
        self.last[batch] = last
        self.is_stray[batch] = self.newest >= batch + self.system.retained
        if self.newest < batch:
            self.newest = batch
        return True

    def create_unheard(self, batch: int, first: int, last: int) -> None:
        if not self.is_planned[batch]:
            is_new = self.create(batch, first, last)
            assert is_new, "there was none"

    def remove(self, batch: int) -> None:
        for b in range(self.system.slots):
            if b <= batch:
                self.is_planned[b] = False
                self.first[b] = 0
                self.last[b] = 0
                self.is_stray[b] = False

    def see(self, batch: int) -> None:
        """The tasks of a batch read what its plan names."""
        if self.is_seen[batch]:
            assert self.seen_first[batch] == self.first[batch], (
                "two runs of one batch begin with the same split"
            )
            assert self.seen_last[batch] == self.last[batch], (
                "two runs of one batch end with the same split"
            )
            self.replays = 1
        self.is_seen[batch] = True
        self.seen_first[batch] = self.first[batch]
        self.seen_last[batch] = self.last[batch]


class Driver(Environment):
    """A process that drives the query; two at once where one was taken for dead."""

    INDEX = ("driver",)
    STATES = (GONE, UP, ASKING, TOLD, RUNNING)
    INITIAL = GONE

    system: PlannedQuery
    driver: int

    batch: int = Int("batches")
    """The batch that it runs, or that it has committed."""

    start: Trigger
    ask: Trigger
    tell: Trigger
    tell_none: Trigger
    refuse: Trigger
    fail: Trigger
    log: Trigger
    work: Trigger
    withhold: Trigger
    commit: Trigger
    die: Trigger

    # fmt: off
    ROWS: ClassVar[tuple[Row, ...]] = (
        Row("start",     GONE,    UP,      "may_start and not has_logged",
            "count_start, read_committed", "all that was logged is committed"),
        Row("start",     GONE,    TOLD,    "may_start and has_logged",
            "count_start, read_committed", "the batch that is not committed is run again"),

        Row("ask",       UP,      ASKING,  "has_more",
            "ask_plan",                    "the trigger fires"),
        Row("tell",      ASKING,  TOLD,    None,
            None,                          "there is a batch"),
        Row("tell_none", ASKING,  UP,      None,
            None,                          "there is none now"),
        Row("refuse",    ASKING,  GONE,    None,
            "restart",                     "the query fails"),
        Row("fail",      ASKING,  UP,      None,
            None,                          "nothing was planned: Spark asks again, or the query fails"),

        Row("log",       TOLD,    RUNNING, "is_next",
            "log_next",                    "its offset is made durable"),
        Row("log",       TOLD,    RUNNING, "not is_next and is_mine",
            "take_up",                     "its offset was logged before"),
        Row("log",       TOLD,    GONE,    "not is_next and not is_mine",
            "restart",                     "another driver has gone on"),

        Row("work",      RUNNING, STAY,    "not has_read",
            "ask_splits",                  "the tasks read the splits"),
        Row("withhold",  RUNNING, GONE,    None,
            "restart",                     "the plan is forgotten: the batch was committed by another"),
        Row("commit",    RUNNING, UP,      "has_read and is_first",
            "commit_batch",                "the batch is over"),
        Row("commit",    RUNNING, GONE,    "has_read and not is_first",
            "restart",                     "another driver has committed this batch"),

        Row("die",       (UP, ASKING, TOLD, RUNNING), GONE, "may_fail",
            "spend_failure, restart",      "the process is killed"),
    )
    # fmt: on

    def may_start(self) -> bool:
        return self.system.stream.starts < self.system.R

    def has_logged(self) -> bool:
        return self.system.stream.logged > self.system.stream.committed

    def has_more(self) -> bool:
        return self.batch < self.system.batches

    def is_next(self) -> bool:
        return self.system.stream.logged == self.batch

    def is_mine(self) -> bool:
        return (
            self.system.stream.logged == self.batch + 1
            and self.system.stream.committed == self.batch
            and not self.system.batch_plan[self.driver].has_enumerator
        )

    def has_read(self) -> bool:
        return self.system.client[self.driver].has_read

    def is_first(self) -> bool:
        return self.system.stream.committed < self.batch

    def may_fail(self) -> bool:
        return self.system.stream.failures < self.system.F

    def count_start(self) -> None:
        self.system.stream.starts += 1

    def read_committed(self) -> None:
        self.batch = self.system.stream.committed

    def ask_plan(self) -> None:
        self.system.batch_plan[self.driver].ask(self.batch + 1)

    def log_next(self) -> None:
        self.batch += 1
        self.system.stream.note(self.batch)

    def take_up(self) -> None:
        self.batch += 1

    def ask_splits(self) -> None:
        behind = self.system.client[self.driver].behind(self.batch)
        self.system.batch_plan[self.driver].read(behind, self.batch)

    def commit_batch(self) -> None:
        self.system.client[self.driver].has_read = False
        self.system.stream.committed = self.batch

    def restart(self) -> None:
        self.batch = 0
        self.system.client[self.driver].cut()
        self.system.batch_plan[self.driver].restart()

    def spend_failure(self) -> None:
        self.system.stream.failures += 1


class Client(Environment):
    """A driver's enumerator, and its connection to the store: port `store` of its machine."""

    INDEX = ("driver",)
    STATES = ("up",)
    INITIAL = "up"

    system: PlannedQuery
    driver: int

    asked: int = Int(CONFIRM)
    batch: int = Int("batches")
    given: int = Int("S")
    """How many splits the enumerator has given out."""
    first: int = Int("S")
    """How many it had given out before the plan that is being written."""
    has_read: bool = Bool()
    late: int = Int("batches")
    """A plan that was sent and not answered may be written yet; 0 for none."""
    late_first: int = Int("S")
    late_last: int = Int("S")

    answer: Trigger
    arrive: Trigger
    lose: Trigger
    deny: Trigger

    # fmt: off
    ROWS: ClassVar[tuple[Row, ...]] = (
        Row("answer", "up", STAY, "is_asked", "answer_it",  "it is done"),
        Row("arrive", "up", STAY, "has_late", "write_late", "a request without an answer takes effect"),
        Row("lose",   "up", STAY, "may_lose", "spend_failure, leave_it, answer_unknown",
                                                            "the answer does not come"),
        Row("deny",   "up", STAY, "may_fail", "spend_failure, answer_broken",
                                                            "the store or the enumerator fails"),
    )
    # fmt: on

    def is_asked(self) -> bool:
        return self.asked != NOTHING

    def has_late(self) -> bool:
        return self.late > 0

    def may_lose(self) -> bool:
        return self.asked == WRITE and self.late == 0 and self.may_fail()

    def may_fail(self) -> bool:
        return self.asked != NOTHING and self.system.stream.failures < self.system.F

    def answer_it(self) -> None:
        asked = self.asked
        batch = self.batch
        self.asked = NOTHING
        self.batch = 0
        if asked == LOOK:
            self.tell_found(batch)
        if asked == RESTORE:
            self.given = self.system.stream.last[batch]
            self.system.batch_plan[self.driver].restored()
        if asked == CHOOSE:
            self.tell_chosen()
        if asked == WRITE:
            self.tell_written(batch)
        if asked == CONFIRM:
            self.system.batch_plan[self.driver].confirmed(self.behind(batch))

    def tell_found(self, batch: int) -> None:
        if self.system.stream.is_planned[batch]:
            self.system.batch_plan[self.driver].found(self.behind(batch))
        else:
            self.system.batch_plan[self.driver].missing(self.behind(batch))

    def tell_chosen(self) -> None:
        if self.given < self.system.stream.there:
            self.first = self.given
            self.given = self.system.stream.there
            self.system.batch_plan[self.driver].chosen()
        else:
            self.system.batch_plan[self.driver].nothing()

    def tell_written(self, batch: int) -> None:
        if self.system.stream.create(batch, self.first, self.given):
            self.system.batch_plan[self.driver].written()
        else:
            self.system.batch_plan[self.driver].taken()

    def behind(self, batch: int) -> int:
        if self.system.stream.newest > batch:
            return self.system.stream.newest - batch
        return 0

    def write_late(self) -> None:
        batch = self.late
        first = self.late_first
        last = self.late_last
        self.late = 0
        self.late_first = 0
        self.late_last = 0
        self.system.stream.create_unheard(batch, first, last)

    def leave_it(self) -> None:
        self.late = self.batch
        self.late_first = self.first
        self.late_last = self.given
        self.asked = NOTHING
        self.batch = 0

    def answer_unknown(self) -> None:
        self.system.batch_plan[self.driver].unknown()

    def answer_broken(self) -> None:
        if self.asked == CHOOSE:  # what it has given out until it failed is in no plan
            self.given = self.system.stream.there
        self.asked = NOTHING
        self.batch = 0
        self.system.batch_plan[self.driver].broken()

    def spend_failure(self) -> None:
        self.system.stream.failures += 1

    def cut(self) -> None:
        """The process is gone; what it has sent to the store is under way."""
        if self.asked == WRITE and self.late == 0:
            self.late = self.batch
            self.late_first = self.first
            self.late_last = self.given
        self.asked = NOTHING
        self.batch = 0
        self.given = 0
        self.first = 0
        self.has_read = False

    # port `store` of the machine

    def look(self, batch: int) -> None:
        self.asked = LOOK
        self.batch = batch

    def restore(self, batch: int) -> None:
        assert batch == 0 or self.system.stream.is_planned[batch], (
            "what the enumerator begins from is there"
        )
        self.asked = RESTORE
        self.batch = batch

    def choose(self, batch: int) -> None:
        self.asked = CHOOSE
        self.batch = batch

    def write(self, batch: int) -> None:
        self.asked = WRITE
        self.batch = batch

    def confirm(self, batch: int) -> None:
        self.asked = CONFIRM
        self.batch = batch

    def forget(self, batch: int) -> None:
        assert batch <= self.system.stream.committed, "what may be run again is not forgotten"
        self.system.stream.remove(batch)

    def give(self, batch: int) -> None:
        if self.system.stream.is_planned[batch]:
            assert not self.system.stream.is_stray[batch], "what tasks read is not forgotten"
            self.has_read = True
            self.system.stream.see(batch)
        else:
            self.withhold(batch)

    def withhold(self, batch: int) -> None:
        self.system.driver[self.driver].withhold()

    def tell(self, batch: int) -> None:
        assert self.system.stream.is_planned[batch], "what Spark is told of can be read"
        assert not self.system.stream.is_stray[batch], "what Spark is told of is not forgotten"
        self.system.driver[self.driver].tell()

    def tell_none(self, batch: int) -> None:
        self.system.driver[self.driver].tell_none()

    def refuse(self, batch: int, later: int) -> None:
        assert later > 0, "a driver is refused where another has gone on"
        self.system.driver[self.driver].refuse()

    def fail(self, batch: int) -> None:
        self.system.driver[self.driver].fail()
