"""The store of the plans of batches as one process sees it, with its late requests, and the
enumerator of that process.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from epochgate.fsm import STAY, Bool, Int, Row, Trigger
from epochgate.fsm.closed import Environment

if TYPE_CHECKING:
    from epochgate.models.closed.planning import PlannedQuery

NOTHING, LOOK, RESTORE, CONSULT, CHOOSE, WRITE, CONFIRM, FORGET, FETCH = range(9)


class Client(Environment):
    """A driver's enumerator, and its connection to the store: port `store` of its machine."""

    INDEX = ("driver",)
    STATES = ("up",)
    INITIAL = "up"

    system: PlannedQuery
    driver: int

    asked: int = Int(FETCH)
    batch: int = Int("batches")
    given: int = Int("S")
    """How many splits the enumerator has given out."""
    first: int = Int("S")
    """How many it had given out before the plan that is being written."""
    version: int = Int("versions")
    """Of the filter in what it is asked for."""
    has_read: bool = Bool()
    late: int = Int("batches")
    """A plan that was sent and not answered may be written yet; 0 for none."""
    late_first: int = Int("S")
    late_last: int = Int("S")
    late_version: int = Int("versions")
    is_old: bool = Bool()
    """What its enumerator keeps beside the plans, and no plan names, was there when another process
    began.
    """
    is_swept: bool = Bool()
    """That process has removed it."""
    is_late_old: bool = Bool()
    is_late_swept: bool = Bool()

    answer: Trigger
    arrive: Trigger
    lose: Trigger
    deny: Trigger
    hang: Trigger

    # fmt: off
    ROWS: ClassVar[tuple[Row, ...]] = (
        Row("answer", "up", STAY, "is_asked", "answer_it",  "it is done"),
        Row("arrive", "up", STAY, "has_late", "write_late", "a request without an answer takes effect"),
        Row("lose",   "up", STAY, "may_lose", "spend_failure, leave_it, answer_unknown",
                                                            "the answer does not come"),
        Row("deny",   "up", STAY, "may_fail", "spend_failure, answer_broken",
                                                            "the store or the enumerator fails"),
        Row("hang",   "up", STAY, "may_hang", "spend_failure, answer_expire",
                                                            "a removal does not end"),
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

    def may_hang(self) -> bool:
        return self.asked == FORGET and self.may_fail()

    def answer_it(self) -> None:
        asked = self.asked
        batch = self.batch
        version = self.version
        self.asked = NOTHING
        self.batch = 0
        self.version = 0
        if asked == LOOK:
            self.tell_found(batch)
        if asked == RESTORE:
            self.given = self.system.stream.last[batch]
            self.is_old = False
            self.is_swept = False
            self.system.batch_plan[self.driver].restored()
        if asked == CONSULT:
            self.system.batch_plan[self.driver].newest(self.system.stream.version)
        if asked == CHOOSE:
            self.tell_chosen(version)
        if asked == WRITE:
            self.tell_written(batch, version)
        if asked == CONFIRM:
            self.system.batch_plan[self.driver].confirmed(self.behind(batch))
        if asked == FORGET:
            self.remove(batch)
            self.system.batch_plan[self.driver].forgotten()
        if asked == FETCH:
            self.tell_read(batch)

    def tell_found(self, batch: int) -> None:
        if self.system.stream.is_planned[batch]:
            self.system.batch_plan[self.driver].found(self.behind(batch))
        else:
            self.system.batch_plan[self.driver].missing(self.behind(batch))

    def tell_chosen(self, version: int) -> None:
        if self.given < self.system.stream.there:
            self.first = self.given
            self.given = self.system.stream.there
            if self.system.stream.is_matched(self.first, self.given, version):
                self.system.batch_plan[self.driver].chosen()
            else:
                self.system.batch_plan[self.driver].pruned()
        else:
            self.system.batch_plan[self.driver].nothing()

    def tell_written(self, batch: int, version: int) -> None:
        assert version >= self.system.driver[self.driver].version, (
            "a batch is pruned by the newest filter of when it was asked for, or by a newer one"
        )
        if self.system.stream.create(batch, self.first, self.given, version, self.is_swept):
            self.is_old = False
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
        version = self.late_version
        is_swept = self.is_late_swept
        self.late = 0
        self.late_first = 0
        self.late_last = 0
        self.late_version = 0
        self.is_late_old = False
        self.is_late_swept = False
        self.system.stream.create_unheard(batch, first, last, version, is_swept)

    def leave_it(self) -> None:
        self.late = self.batch
        self.late_first = self.first
        self.late_last = self.given
        self.late_version = self.version
        self.is_late_old = self.is_old
        self.is_late_swept = self.is_swept
        self.asked = NOTHING
        self.batch = 0
        self.version = 0

    def answer_unknown(self) -> None:
        self.system.batch_plan[self.driver].unknown()

    def answer_broken(self) -> None:
        if self.asked == CHOOSE:  # what it has given out until it failed is in no plan
            self.given = self.system.stream.there
        asked = self.asked
        self.asked = NOTHING
        self.batch = 0
        self.version = 0
        if asked == FORGET:
            self.system.batch_plan[self.driver].kept()
        else:
            self.system.batch_plan[self.driver].broken()

    def answer_expire(self) -> None:
        self.asked = NOTHING
        self.batch = 0
        self.system.batch_plan[self.driver].expire()

    def spend_failure(self) -> None:
        self.system.stream.failures += 1

    def cut(self) -> None:
        """The process is gone; what it has sent to the store is under way."""
        if self.asked == WRITE and self.late == 0:
            self.late = self.batch
            self.late_first = self.first
            self.late_last = self.given
            self.late_version = self.version
            self.is_late_old = self.is_old
            self.is_late_swept = self.is_swept
        self.asked = NOTHING
        self.batch = 0
        self.given = 0
        self.first = 0
        self.version = 0
        self.is_old = False
        self.is_swept = False
        self.has_read = False

    def remove(self, batch: int) -> None:
        """The plans up to this one, and what processes before this one have left."""
        self.system.stream.remove(batch)
        for d in range(self.system.drivers):
            if d != self.driver:
                self.system.client[d].lose_old()
        self.is_late_swept = self.is_late_swept or self.is_late_old

    def tell_read(self, batch: int) -> None:
        if self.system.stream.is_planned[batch]:
            self.system.batch_plan[self.driver].read(self.behind(batch))
        else:
            self.system.batch_plan[self.driver].lost()

    def note_old(self) -> None:
        """A process begins, and finds what is there."""
        self.is_old = self.asked == WRITE or self.system.batch_plan[self.driver].has_maker
        self.is_late_old = self.late > 0

    def lose_old(self) -> None:
        self.is_swept = self.is_swept or self.is_old
        self.is_late_swept = self.is_late_swept or self.is_late_old

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

    def consult(self, batch: int) -> None:
        self.asked = CONSULT
        self.batch = batch

    def choose(self, batch: int, version: int) -> None:
        self.asked = CHOOSE
        self.batch = batch
        self.version = version

    def write(self, batch: int, version: int) -> None:
        self.asked = WRITE
        self.batch = batch
        self.version = version

    def confirm(self, batch: int) -> None:
        self.asked = CONFIRM
        self.batch = batch

    def forget(self, batch: int) -> None:
        assert batch <= self.system.stream.committed, "what may be run again is not forgotten"
        made = self.system.driver[self.driver].batch + 1
        assert not self.system.stream.is_stray[made], "what Spark is told of is not forgotten"
        self.asked = FORGET
        self.batch = batch

    def fetch(self, batch: int) -> None:
        self.asked = FETCH
        self.batch = batch

    def give(self, batch: int) -> None:
        assert not self.system.stream.is_stray[batch], "what tasks read is not forgotten"
        self.has_read = True
        self.system.stream.see(batch)

    def withhold(self, batch: int) -> None:
        self.system.driver[self.driver].withhold()

    def tell(self, batch: int) -> None:
        # A batch that another driver has committed meanwhile may be forgotten, and is not logged.
        assert self.system.stream.committed >= batch or self.system.stream.is_planned[batch], (
            "what Spark is told of can be read"
        )
        self.system.driver[self.driver].tell()

    def tell_none(self, batch: int) -> None:
        self.system.driver[self.driver].tell_none()

    def refuse(self, batch: int, later: int) -> None:
        assert later > 0, "a driver is refused where another has gone on"
        self.system.driver[self.driver].refuse()

    def fail(self, batch: int) -> None:
        self.system.driver[self.driver].fail()
