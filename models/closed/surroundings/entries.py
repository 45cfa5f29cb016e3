"""Entries that are created once, and what is around each machine that has them created: the store
with its faults, the connection to it, and the process that asks.

A request to write takes effect at once, late, or never, and a conditional creation has one winner:
both are one step each here, properties of the store. Leaves to `decisions`, `plans` and `updating`
what an entry holds, and who asks for it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from epochgate.fsm import ANY, STAY, Array, Bool, Int, Row, Trigger
from epochgate.fsm.closed import Environment
from epochgate.models.created_once import IDLE

NOTHING, LOOK, RESTORE, READ, CHOOSE, WRITE, CONFIRM, FORGET, FETCH = range(9)
ASKED = "NOTHING, LOOK, RESTORE, READ, CHOOSE, WRITE, CONFIRM, FORGET, FETCH"

# fmt: off
CONNECTION_ROWS: tuple[Row, ...] = (
    Row("answer", "up", STAY, "is_asked", "answer_it",  "it is done, and its answer comes"),
    Row("arrive", "up", STAY, "has_late", "write_late", "a request without an answer takes effect"),
    Row("lose",   "up", STAY, "may_lose", "spend_failure, leave_it",
                                                        "the answer does not come"),
    Row("deny",   "up", STAY, "may_fail", "spend_failure, answer_broken",
                                                        "what is asked fails, and is not done"),
)
CLIENT_ROWS: tuple[Row, ...] = (
    *CONNECTION_ROWS,
    Row("hang",   "up", STAY, "may_hang", "spend_failure, answer_expire", "a removal does not end"),
)
RESTART = Row("restart", ANY, IDLE, None, "forget_all", "the next process knows nothing of this one")
# fmt: on


class Entries(Environment):
    """The entries of batches in their store, Spark's log of what is committed, and what may fail."""

    STATES = ("up",)
    INITIAL = "up"

    system: Any

    is_there: list[bool] = Array(Bool(), "slots")
    """An entry for the batch lies in the store."""
    is_stray: list[bool] = Array(Bool(), "slots")
    """It was made after the batch was forgotten."""
    newest: int = Int("batches")
    """The newest batch with an entry: it is never removed."""
    committed: int = Int("batches")
    is_seen: list[bool] = Array(Bool(), "slots")
    """A task has run the batch."""
    starts: int = Int("R")
    failures: int = Int("F")

    empty: Callable[[int], None]
    """What the entry of a batch holds is gone."""

    def add(self, batch: int) -> bool:
        """Return whether there was none: then there is one."""
        if self.is_there[batch]:
            return False
        self.is_there[batch] = True
        self.is_stray[batch] = self.newest >= batch + self.system.retained
        if self.newest < batch:
            self.newest = batch
        return True

    def remove(self, batch: int) -> None:
        for b in range(self.system.slots):
            if b <= batch:
                self.is_there[b] = False
                self.is_stray[b] = False
                self.empty(b)


class Failing(Protocol):
    """The count of failures."""

    failures: int


class Connection(Environment):
    """A process's connection to a store of entries, by which it asks for one thing at a time."""

    STATES = ("up",)
    INITIAL = "up"

    system: Any
    served: Any
    entries: Failing

    asked: int = Int(FETCH, names=ASKED)
    version: int = Int("versions")
    late: int = Int("versions")
    """An entry that was sent and not answered may be written yet; 0 for none."""

    answer: Trigger
    arrive: Trigger
    lose: Trigger
    deny: Trigger

    create: Callable[[], bool]
    """Whether the store has made the entry."""
    send_late: Callable[[], None]
    write_late: Callable[[], None]
    end: Callable[[], None]

    def is_asked(self) -> bool:
        return self.asked != NOTHING

    def has_late(self) -> bool:
        return self.late > 0

    def may_lose(self) -> bool:
        return self.asked == WRITE and self.late == 0 and self.may_fail()

    def may_fail(self) -> bool:
        return self.asked != NOTHING and self.entries.failures < self.system.F

    def spend_failure(self) -> None:
        self.entries.failures += 1

    def tell_written(self) -> None:
        if self.create():
            self.served.written()
        else:
            self.served.taken()

    def leave_it(self) -> None:
        """The entry is under way, and its writer hears no answer."""
        self.send_late()
        self.served.unknown()
        self.end()

    def answer_broken(self) -> None:
        if self.asked == FORGET:
            self.note_kept()
            self.served.kept()
        else:
            self.spoil()
            self.served.broken()
        self.end()

    def note_kept(self) -> None:
        """Note that what was to be removed is left."""

    def spoil(self) -> None:
        """Let what is asked fail midway."""

    def send_if_writing(self) -> None:
        """The process is gone; what it has sent to the store is under way."""
        if self.asked == WRITE and self.late == 0:
            self.send_late()


class Client(Connection):
    """The connection of a driver, and its maker of entries: port `store` of its machine."""

    INDEX = ("driver",)

    driver: int
    entries: Entries
    drives: Driver

    batch: int = Int("batches")
    late: int = Int("batches")
    late_version: int = Int("versions")

    hang: Trigger

    tell_found: Callable[[], None]
    tell_newest: Callable[[], None]
    answer_more: Callable[[], None]
    forget_all: Callable[[], None]

    def may_hang(self) -> bool:
        return self.asked == FORGET and self.may_fail()

    def answer_it(self) -> None:
        if self.asked == LOOK and self.entries.is_there[self.batch]:
            self.tell_found()
        if self.asked == LOOK and not self.entries.is_there[self.batch]:
            self.served.missing(self.behind())
        if self.asked == READ:
            self.tell_newest()
        if self.asked == WRITE:
            self.tell_written()
        if self.asked == CONFIRM:
            self.served.confirmed(self.behind())
        if self.asked == FORGET:
            self.remove()
            self.served.forgotten()
        self.answer_more()
        self.end()

    def answer_expire(self) -> None:
        self.note_kept()
        self.served.expire()
        self.end()

    def behind(self) -> int:
        """By how many numbers the newest entry is behind that of the batch."""
        return self.entries.newest - self.batch if self.entries.newest > self.batch else 0

    def ask(self, what: int, batch: int) -> None:
        """Ask for something of the batch that the driver wants."""
        assert batch == self.drives.wanted(), "what is asked for is of the batch that is wanted"
        self.asked = what
        self.batch = batch

    def ask_behind(self, what: int, batch: int) -> None:
        assert batch < self.drives.wanted(), "what is asked for is of a batch before"
        self.asked = what
        self.batch = batch

    def remove(self) -> None:
        self.entries.remove(self.batch)

    def cut(self) -> None:
        self.send_if_writing()
        self.forget_all()
        self.end()

    # port `store` of the machine

    def look(self, batch: int) -> None:
        self.ask(LOOK, batch)

    def confirm(self, batch: int) -> None:
        self.ask(CONFIRM, batch)

    def forget(self, batch: int) -> None:
        assert batch <= self.entries.committed, "what may be run again is not forgotten"
        assert batch == self.forgotten(), "entries are forgotten by their number"
        self.ask_behind(FORGET, batch)

    def forgotten(self) -> int:
        """The newest batch whose entry is to go; 0 for none."""
        wanted = self.drives.wanted()
        return wanted - self.system.retained if wanted > self.system.retained else 0

    def refuse(self, batch: int, later: int) -> None:
        assert self.served.state == IDLE, "a machine that has told the end is idle"
        assert later > 0, "a driver is refused where another has gone on"
        assert batch == self.drives.wanted(), "a driver is refused the batch that it asks for"
        assert batch + later == self.entries.newest, "a driver is told how far another has gone"
        self.drives.refuse()

    def fail(self, batch: int) -> None:
        assert self.served.state == IDLE, "a machine that has told the end is idle"
        assert batch == self.drives.wanted(), "a driver has no entry of the batch that it asks for"
        self.drives.fail()


class Bounds(Protocol):
    """The bounds on what may happen."""

    batches: int
    R: int
    F: int


class Driver(Environment):
    """A process that drives the query; two at once where one was taken for dead. It is told of its
    machine that there is no entry by `refuse`, for another has gone on, or `fail`.
    """

    INDEX = ("driver",)

    system: Bounds
    driver: int
    served: Any
    client: Client
    entries: Entries

    batch: int = Int("batches")
    """The batch that it runs, or that it has committed."""
    version: int = Int("versions")

    refuse: Trigger
    fail: Trigger

    wanted: Callable[[], int]
    """The batch of which the machine is asked."""

    def may_start(self) -> bool:
        return self.entries.starts < self.system.R

    def has_more(self) -> bool:
        return self.batch < self.system.batches

    def is_first(self) -> bool:
        return self.entries.committed < self.batch

    def may_fail(self) -> bool:
        return self.entries.failures < self.system.F

    def count_start(self) -> None:
        self.entries.starts += 1

    def spend_failure(self) -> None:
        self.entries.failures += 1

    def read_committed(self) -> None:
        self.batch = self.entries.committed

    def stop(self) -> None:
        """The process ends; the next one has another machine."""
        self.batch = 0
        self.version = 0
        self.client.cut()
        self.served.restart()
