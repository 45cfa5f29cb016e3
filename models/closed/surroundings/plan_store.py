"""The store of the plans of batches as one process sees it, with its late requests, and the
enumerator of that process.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from epochgate.fsm import STAY, Bool, Int, Row, Trigger
from epochgate.models.closed.surroundings import entries
from epochgate.models.closed.surroundings.entries import (
    CHOOSE,
    CLIENT_ROWS,
    FETCH,
    FORGET,
    READ,
    RESTORE,
    WRITE,
)

if TYPE_CHECKING:
    from epochgate.models.closed.planning import PlannedQuery
    from epochgate.models.closed.surroundings.planning import Driver, Planner, Stream


class Client(entries.Client):
    """A driver's enumerator, and its connection to the store: port `store` of its machine.

    `version` is that of the filter in what it is asked for.
    """

    system: PlannedQuery
    served: Planner
    entries: Stream
    drives: Driver
    PEERS: ClassVar[dict[str, str]] = {
        "served": "batch_plan",
        "entries": "stream",
        "drives": "driver",
    }
    # fmt: off
    ROWS: ClassVar[tuple[Row, ...]] = (
        *CLIENT_ROWS,
        Row("erase", "up", STAY, "is_removing and has_plans",
            "erase_oldest", "the oldest of the plans that are to go is removed"),
        Row("erase", "up", STAY, "is_removing and not has_plans and has_more",
            "sweep",        "what processes before have left is removed, and no plan is left to go"),
    )
    # fmt: on

    given: int = Int("S")
    """How many splits the enumerator has given out."""
    first: int = Int("S")
    """How many it had given out before the plan that is being written."""
    has_read: bool = Bool()
    late_first: int = Int("S")
    late_last: int = Int("S")
    is_old: bool = Bool()
    """What its enumerator keeps beside the plans, and no plan names, was there when another process
    began.
    """
    is_swept: bool = Bool()
    """That process has removed it."""
    is_late_old: bool = Bool()
    is_late_swept: bool = Bool()
    has_swept: bool = Bool()
    """What was to be removed is removed, and the answer has not come."""

    erase: Trigger

    def is_removing(self) -> bool:
        return self.asked == FORGET

    def has_more(self) -> bool:
        return not self.has_swept

    def has_plans(self) -> bool:
        return any(self.entries.is_there[b] and b <= self.batch for b in range(self.system.slots))

    def tell_found(self) -> None:
        self.served.found(self.behind())

    def tell_newest(self) -> None:
        self.served.newest(self.entries.version)

    def answer_more(self) -> None:
        if self.asked == RESTORE:
            self.tell_restored()
        if self.asked == CHOOSE:
            self.tell_chosen()
        if self.asked == FETCH and self.entries.is_there[self.batch]:
            self.served.read(self.behind())
        if self.asked == FETCH and not self.entries.is_there[self.batch]:
            self.served.lost()

    def tell_restored(self) -> None:
        if self.batch == 0 or self.entries.is_there[self.batch]:
            self.given = self.entries.last[self.batch]
            self.is_old = False
            self.is_swept = False
            self.served.restored()
        else:
            self.served.broken()

    def tell_chosen(self) -> None:
        if self.given < self.entries.there:
            self.first = self.given
            self.given = self.entries.there
            if self.entries.is_matched(self.first, self.given, self.version):
                self.served.chosen()
            else:
                self.served.pruned()
        else:
            self.served.nothing()

    def create(self) -> bool:
        assert self.version >= self.drives.version, (
            "a batch is pruned by the newest filter of when it was asked for, or by a newer one"
        )
        is_new = self.entries.create(
            self.batch, self.first, self.given, self.version, self.is_swept
        )
        if is_new:
            self.is_old = False
        return is_new

    def write_late(self) -> None:
        if not self.entries.is_there[self.late]:
            self.entries.create(
                self.late, self.late_first, self.late_last, self.late_version, self.is_late_swept
            )
        self.late = 0
        self.late_first = 0
        self.late_last = 0
        self.late_version = 0
        self.is_late_old = False
        self.is_late_swept = False

    def send_late(self) -> None:
        self.late = self.batch
        self.late_first = self.first
        self.late_last = self.given
        self.late_version = self.version
        self.is_late_old = self.is_old
        self.is_late_swept = self.is_swept

    def spoil(self) -> None:
        if self.asked == CHOOSE:  # what it has given out until it failed is in no plan
            self.given = self.entries.there

    def end(self) -> None:
        self.has_swept = False
        self.asked = 0
        self.batch = 0
        self.version = 0

    def forget_all(self) -> None:
        self.given = 0
        self.first = 0
        self.is_old = False
        self.is_swept = False
        self.has_read = False

    def remove(self) -> None:
        """The plans up to this one, and what processes before this one have left."""
        self.entries.remove(self.batch)
        self.sweep()

    def erase_oldest(self) -> None:
        oldest = self.batch
        for b in range(self.system.slots):
            if self.entries.is_there[b] and b < oldest:
                oldest = b
        self.entries.remove(oldest)

    def sweep(self) -> None:
        self.has_swept = True
        for d in range(self.system.drivers):
            if d != self.driver:
                self.system.client[d].lose_old()
        self.is_late_swept = self.is_late_swept or self.is_late_old

    def note_old(self) -> None:
        """A process begins, and finds what is there."""
        self.is_old = self.asked == WRITE or self.served.has_maker
        self.is_late_old = self.late > 0

    def lose_old(self) -> None:
        self.is_swept = self.is_swept or self.is_old
        self.is_late_swept = self.is_late_swept or self.is_late_old

    # port `store` of the machine

    def restore(self, batch: int) -> None:
        assert batch == 0 or self.entries.is_there[batch], (
            "what the enumerator begins from is there"
        )
        self.ask_behind(RESTORE, batch)

    def consult(self, batch: int) -> None:
        self.ask(READ, batch)

    def choose(self, batch: int, version: int) -> None:
        assert version == self.served.version, "splits are pruned by the version that the plan has"
        self.ask(CHOOSE, batch)
        self.version = version

    def write(self, batch: int, version: int) -> None:
        self.ask(WRITE, batch)
        self.version = version

    def forget(self, batch: int) -> None:
        assert batch <= self.entries.committed, "what may be run again is not forgotten"
        assert not self.entries.is_stray[self.drives.batch + 1], (
            "what Spark is told of is not forgotten"
        )
        assert batch == self.forgotten(), "entries are forgotten by their number"
        self.ask_behind(FORGET, batch)

    def fetch(self, batch: int) -> None:
        self.ask(FETCH, batch)

    def give(self, batch: int) -> None:
        assert not self.entries.is_stray[batch], "what tasks read is not forgotten"
        assert batch == self.drives.wanted(), "tasks read the batch that is run"
        self.has_read = True
        self.entries.see(batch)

    def withhold(self, batch: int) -> None:
        assert batch == self.drives.wanted(), "splits are withheld of the batch that is run"
        self.drives.withhold()

    def tell(self, batch: int) -> None:
        # A batch that another driver has committed meanwhile may be forgotten, and is not logged.
        assert self.entries.committed >= batch or self.entries.is_there[batch], (
            "what Spark is told of can be read"
        )
        assert batch == self.drives.wanted(), "Spark is told of the batch that it asks for"
        self.drives.tell()

    def tell_none(self, batch: int) -> None:
        assert batch == self.drives.wanted(), "Spark is told of the batch that it asks for"
        self.drives.tell_none()
