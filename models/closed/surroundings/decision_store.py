"""The store of decisions for batches as one process sees it: its listing, and its late requests."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from epochgate.fsm import STAY, Int, Row, Trigger
from epochgate.fsm.closed import Environment

if TYPE_CHECKING:
    from epochgate.models.closed.steering import SteeredQuery

NOTHING, LOOK, READ, WRITE, CONFIRM, FORGET = range(6)


class Client(Environment):
    """A driver's connection to the store: port `store` of its machine."""

    INDEX = ("driver",)
    STATES = ("up",)
    INITIAL = "up"

    system: SteeredQuery
    driver: int

    asked: int = Int(FORGET)
    batch: int = Int("batches")
    version: int = Int("versions")
    since: int = Int("batches")
    late: int = Int("batches")
    """A decision that was sent and not answered may be written yet; 0 for none."""
    late_version: int = Int("versions")
    late_since: int = Int("batches")

    answer: Trigger
    arrive: Trigger
    lose: Trigger
    deny: Trigger
    hang: Trigger

    # fmt: off
    ROWS: ClassVar[tuple[Row, ...]] = (
        Row("answer", "up", STAY, "is_asked",  "answer_it",   "the store has done it, and says so"),
        Row("arrive", "up", STAY, "has_late",  "write_late",  "a request without an answer takes effect"),
        Row("lose",   "up", STAY, "may_lose",  "spend_failure, leave_it, answer_unknown",
                                                              "the answer does not come"),
        Row("deny",   "up", STAY, "may_fail",  "spend_failure, answer_broken",
                                                              "the store refuses, and does nothing"),
        Row("hang",   "up", STAY, "may_hang",  "spend_failure, answer_expire",
                                                              "a removal does not end"),
    )
    # fmt: on

    def is_asked(self) -> bool:
        return self.asked != NOTHING

    def has_late(self) -> bool:
        return self.late > 0

    def may_lose(self) -> bool:
        return self.asked == WRITE and self.late == 0 and self.system.user.failures < self.system.F

    def may_fail(self) -> bool:
        return self.is_asked() and self.system.user.failures < self.system.F

    def may_hang(self) -> bool:
        return self.asked == FORGET and self.may_fail()

    def answer_it(self) -> None:
        asked = self.asked
        batch = self.batch
        version = self.version
        since = self.since
        self.end()
        self.answer_more(asked, batch)
        if asked == LOOK:
            self.tell_found(batch)
        if asked == READ:
            self.tell_newest()
        if asked == WRITE:
            self.tell_written(batch, version, since)
        if asked == CONFIRM:
            self.system.batch_decision[self.driver].confirmed(self.behind(batch))
        if asked == FORGET:
            self.system.query.remove(batch)
            self.system.batch_decision[self.driver].forgotten()

    def answer_more(self, asked: int, batch: int) -> None:
        """What a client with a coordinator answers besides."""

    def tell_found(self, batch: int) -> None:
        if self.system.query.is_decided[batch]:
            self.system.query.has_kept = True
            self.system.batch_decision[self.driver].found(
                self.behind(batch), self.system.query.decided[batch]
            )
        else:
            self.system.batch_decision[self.driver].missing(self.behind(batch))

    def tell_newest(self) -> None:
        newest = self.system.query.newest
        self.system.batch_decision[self.driver].newest(
            self.system.user.version,
            self.system.query.decided[newest],
            self.system.query.since[newest],
        )

    def tell_written(self, batch: int, version: int, since: int) -> None:
        if self.system.query.create(batch, version, since):
            self.system.batch_decision[self.driver].written()
        else:
            self.system.batch_decision[self.driver].taken()

    def behind(self, batch: int) -> int:
        if self.system.query.newest > batch:
            return self.system.query.newest - batch
        return 0

    def end(self) -> None:
        self.asked = NOTHING
        self.batch = 0
        self.version = 0
        self.since = 0

    def write_late(self) -> None:
        batch = self.late
        version = self.late_version
        since = self.late_since
        self.late = 0
        self.late_version = 0
        self.late_since = 0
        self.system.query.create_unheard(batch, version, since)

    def leave_it(self) -> None:
        self.send_late()
        self.end()

    def send_late(self) -> None:
        """The decision is under way, and the client hears no answer."""
        self.late = self.batch
        self.late_version = self.version
        self.late_since = self.since

    def answer_unknown(self) -> None:
        self.system.batch_decision[self.driver].unknown()

    def answer_broken(self) -> None:
        asked = self.asked
        self.end()
        if asked == FORGET:
            self.system.query.has_kept = True
            self.system.batch_decision[self.driver].kept()
        else:
            self.system.batch_decision[self.driver].broken()

    def answer_expire(self) -> None:
        self.end()
        self.system.query.has_kept = True
        self.system.batch_decision[self.driver].expire()

    def spend_failure(self) -> None:
        self.system.user.failures += 1

    def cut(self) -> None:
        """The process is gone; what it has sent to the store is under way."""
        if self.asked == WRITE and self.late == 0:
            self.send_late()
        self.forget_all()
        self.end()

    def forget_all(self) -> None:
        """What the memory of a coordinator's process held is gone."""

    # port `store` of the machine

    def look(self, batch: int) -> None:
        self.asked = LOOK
        self.batch = batch

    def restore(self, batch: int) -> None:
        """There is nothing to restore, at once."""
        self.system.batch_decision[self.driver].restored()

    def complete(self, batch: int) -> None:
        assert batch <= self.system.query.committed, "a batch that is told to have run is over"

    def choose(self, batch: int) -> None:
        """What was updated holds, at once."""
        self.system.batch_decision[self.driver].chosen()

    def read(self, batch: int) -> None:
        self.asked = READ
        self.batch = batch

    def write(self, batch: int, version: int, since: int) -> None:
        self.asked = WRITE
        self.batch = batch
        self.version = version
        self.since = since

    def confirm(self, batch: int) -> None:
        self.asked = CONFIRM
        self.batch = batch

    def forget(self, batch: int) -> None:
        assert batch <= self.system.query.committed, "what may be run again is not forgotten"
        self.asked = FORGET
        self.batch = batch

    def run(self, batch: int, version: int) -> None:
        self.system.driver[self.driver].run(version)

    def refuse(self, batch: int, later: int) -> None:
        assert later > 0, "a driver is refused where another has gone on"
        self.system.driver[self.driver].refuse()

    def miss(self, batch: int, version: int, earlier: int) -> None:
        assert version < earlier, "a version is missed where a newer one was decided"
        self.system.driver[self.driver].fail()

    def fail(self, batch: int) -> None:
        self.system.driver[self.driver].fail()
