"""A closed system around the owners of a table: one driver at a time, and never one from before.

Drivers of one job start one after the other, each of which may be taken for dead while it lives.
They claim a table that is there or not, and commit to it, while another writer makes it or changes
it. A request may take effect late, and its answer be lost; a driver may die at any moment::

    driver 1   claim      last? | enter ...suspended............. | overtaken | late: refused
    another         makes the table
    driver 2                      claim | enter: number 1 | write

`TableOwner` is the machine that runs in production. What holds of the table and of the claims is
one step each here: an entry follows the one that its writer has read, or is not written.
"""

from __future__ import annotations

from typing import ClassVar

from epochgate.fsm import STAY, Array, Bool, Int, Row, Trigger, machines
from epochgate.fsm.closed import (
    ClosedSystem,
    Environment,
    Step,
    always,
    leads_to,
    sometimes,
    terminal,
)
from epochgate.models.table_owner import FENCED, OWNER, TableOwner

NOTHING, READ, CLAIM, LAST, MAKE, ENTER, NAME, WRITE = range(8)
ASKED = "NOTHING, READ, CLAIM, LAST, MAKE, ENTER, NAME, WRITE"
DOWN, UP, DEAD = "down", "up", "dead"


class Log(Environment):
    """The table with its log, and the claims to it."""

    STATES = ("up",)
    INITIAL = "up"

    system: OwnedTable

    is_there: bool = Bool()
    maker: int = Int("drivers")
    """The driver that has made it, counted from 1; 0 for another writer, or none."""
    owner: int = Int("drivers")
    """The driver that the newest number names, counted from 1; 0 for none."""
    number: int = Int("numbers")
    claims: int = Int("drivers")
    claimant: int = Int("drivers")
    """The last driver that has claimed it, counted from 1; 0 for none."""
    place: list[int] = Array(Int("drivers"), "drivers")
    """Driver -> the place of its claim, counted from 1."""
    named: list[int] = Array(Int("numbers"), "drivers")
    """Driver -> the newest number that names it."""
    changes: int = Int("E")
    commits: int = Int("K")
    failures: int = Int("F")

    change: Trigger

    # fmt: off
    ROWS: ClassVar[tuple[Row, ...]] = (
        Row("change", "up", STAY, "may_change",
            "write_to_it", "another writer makes the table, or changes its columns"),
    )
    # fmt: on

    def may_change(self) -> bool:
        return self.changes < self.system.E

    def write_to_it(self) -> None:
        self.changes += 1
        self.is_there = True
        self.note_entry()

    def note_entry(self) -> None:
        for d in range(self.system.drivers):
            self.system.client[d].is_fresh = False
            self.system.client[d].is_late_fresh = False

    def claim(self, driver: int) -> None:
        self.claims += 1
        self.place[driver] = self.claims
        self.claimant = driver + 1
        for d in range(self.system.drivers):
            self.system.client[d].is_behind = True

    def make(self, driver: int) -> None:
        assert not self.is_there, "a table is made once"
        self.is_there = True
        self.maker = driver + 1
        self.name(driver)

    def name(self, driver: int) -> None:
        assert self.owner == 0 or self.place[self.owner - 1] <= self.place[driver], (
            "a table never goes back to a driver from before"
        )
        self.owner = driver + 1
        self.number += 1
        self.named[driver] = self.number
        self.note_entry()


class Client(Environment):
    """A driver, and its requests: port `table` of its machine."""

    INDEX = ("driver",)
    STATES = (DOWN, UP, DEAD)
    INITIAL = DOWN

    system: OwnedTable
    driver: int
    served: TableOwner
    log: Log
    PEERS: ClassVar[dict[str, str]] = {"served": "table_owner", "log": "log"}

    asked: int = Int(WRITE, names=ASKED)
    late: int = Int(WRITE, names=ASKED)
    """A request that was sent and not answered may take effect yet."""
    saw_table: bool = Bool()
    is_fresh: bool = Bool()
    """Nothing was written to the table since this driver has read it."""
    is_late_fresh: bool = Bool()
    """The same of the late request."""
    is_behind: bool = Bool()
    """Another has claimed the table since this driver has read the claims."""
    was_last: bool = Bool()
    """Its claim was the last when it began what it does."""
    has_rows: bool = Bool()
    will_write: bool = Bool()
    """What the machine allows next is the entry of a checkpoint."""
    is_waiting: bool = Bool()
    """It was not told yet how its start or its commit has ended."""
    has_begun: bool = Bool()
    """Its start has come to its end; one that fails is over."""
    will_look: bool = Bool()
    """A commit to a table that is there is not over: it looks again once the table is entered."""
    has_lost: bool = Bool()
    """The answer to its making of the table was lost."""

    boot: Trigger
    answer: Trigger
    lose: Trigger
    arrive: Trigger
    commit: Trigger
    commit_nothing: Trigger
    die: Trigger

    # fmt: off
    ROWS: ClassVar[tuple[Row, ...]] = (
        Row("boot",           DOWN,       UP,   "may_boot",
            "read_table",                 "the job starts, here or again"),
        Row("answer",         UP,         STAY, "is_asked",
            "answer_it",                  "it is done, and its answer comes"),
        Row("lose",           UP,         STAY, "may_lose",
            "spend_failure, leave_it",    "the answer does not come"),
        Row("arrive",         (UP, DEAD), STAY, "has_late",
            "do_late",                    "a request without an answer takes effect"),
        Row("commit",         UP,         STAY, "may_commit",
            "begin_commit, look_again",   "a checkpoint with rows is completed, or tried again"),
        Row("commit_nothing", UP,         STAY, "may_commit",
            "begin_without, look_again",  "a checkpoint without rows is completed"),
        Row("die",            UP,         DEAD, "may_die",
            "spend_failure, leave_all",   "the process is killed"),
    )
    # fmt: on

    def may_boot(self) -> bool:
        return self.driver == 0 or self.system.client[self.driver - 1].state != DOWN

    def is_asked(self) -> bool:
        return self.asked != NOTHING

    def may_lose(self) -> bool:
        return self.asked > READ and self.late == NOTHING and self.may_die()

    def has_late(self) -> bool:
        return self.late != NOTHING

    def may_commit(self) -> bool:
        return self.asked == NOTHING and self.has_begun and self.log.commits < self.system.K

    def may_die(self) -> bool:
        return self.log.failures < self.system.F

    def spend_failure(self) -> None:
        self.log.failures += 1

    def read_table(self) -> None:
        self.read()
        self.saw_table = self.log.is_there
        self.asked = READ
        self.is_waiting = True

    def read(self) -> None:
        self.is_fresh = True

    def begin_commit(self) -> None:
        self.has_rows = True

    def begin_without(self) -> None:
        self.has_rows = False

    def look_again(self) -> None:
        self.log.commits += 1
        self.is_waiting = True
        self.was_last = self.log.claimant == self.driver + 1
        self.will_write = self.log.is_there
        self.will_look = self.log.is_there
        self.look()

    def look(self) -> None:
        self.read()
        if self.log.is_there:
            self.served.present(self.log.number, self.log.maker == self.driver + 1)
        else:
            self.served.absent(self.has_rows)

    def answer_it(self) -> None:
        if self.asked == READ:
            self.is_behind = False
            self.served.start(self.saw_table)
        if self.asked == CLAIM:
            self.answer_claim()
        if self.asked == LAST:
            self.answer_last()
        if self.asked == MAKE:
            self.answer_make()
        if self.asked == ENTER:
            self.answer_enter()
        if self.asked == NAME:
            self.answer_name()
        if self.asked == WRITE and self.is_fresh:
            self.write_entry()
        self.asked = NOTHING

    def answer_claim(self) -> None:
        if self.is_behind:
            self.served.late()
        else:
            self.log.claim(self.driver)
            self.was_last = True
            self.served.claimed()

    def answer_last(self) -> None:
        if self.log.claimant == self.driver + 1:
            self.served.last()
        else:
            self.served.late()

    def answer_make(self) -> None:
        if self.log.is_there:
            self.served.overtaken()
        else:
            self.log.make(self.driver)
            self.served.made()

    def answer_enter(self) -> None:
        if self.is_fresh:
            self.log.name(self.driver)
            self.served.entered(self.log.number)
        else:
            self.read()
            self.served.overtaken()

    def answer_name(self) -> None:
        if self.log.claimant == self.driver + 1:
            self.served.named()
        else:
            self.served.late()

    def write_entry(self) -> None:
        assert self.log.owner == self.driver + 1, "an entry is of the driver that the table names"
        self.log.note_entry()

    def leave_it(self) -> None:
        """The request is under way, and its driver hears no answer."""
        self.has_lost = self.has_lost or self.asked == MAKE
        self.send_late()
        if self.asked != WRITE:
            self.served.broken()
        self.asked = NOTHING

    def leave_all(self) -> None:
        self.is_waiting = False
        if self.late == NOTHING:
            self.send_late()
        self.asked = NOTHING

    def send_late(self) -> None:
        if self.asked == CLAIM or self.asked == MAKE or self.asked == ENTER or self.asked == WRITE:
            self.late = self.asked
            self.is_late_fresh = self.is_fresh

    def do_late(self) -> None:
        if self.late == CLAIM and not self.is_behind:
            self.log.claim(self.driver)
        if self.late == MAKE and not self.log.is_there:
            self.log.make(self.driver)
        if self.late == ENTER and self.is_late_fresh:
            self.log.name(self.driver)
        if self.late == WRITE and self.is_late_fresh:
            self.write_entry()
        self.late = NOTHING
        self.is_late_fresh = False

    # port `table` of the machine

    def claim(self) -> None:
        self.asked = CLAIM

    def ask(self) -> None:
        self.will_write = False
        self.asked = LAST

    def make(self) -> None:
        assert self.has_rows, "a table is made of rows"
        assert self.was_last, "a driver that another has replaced makes no table"
        self.asked = MAKE

    def enter(self) -> None:
        assert self.was_last, "a driver that another has replaced enters no table"
        self.asked = ENTER

    def name(self) -> None:
        assert self.log.is_there, "a table that is named is there"
        self.will_write = False
        self.asked = NAME

    def ready(self, number: int) -> None:
        assert number == 0 or number == self.log.named[self.driver], "a driver is told its number"
        self.has_begun = True
        if self.will_write and number > 0:
            self.asked = WRITE
            self.will_look = False
        if self.will_look and number > 0:
            self.will_look = False
            self.will_write = True
            self.look()
        else:
            self.will_write = False
            self.is_waiting = False

    def refuse(self) -> None:
        assert self.log.claimant != self.driver + 1, "a driver is refused for a later one"
        self.will_write = False
        self.will_look = False
        self.is_waiting = False

    def fail(self) -> None:
        self.will_write = False
        self.will_look = False
        self.is_waiting = False


class OwnedTable(ClosedSystem):
    """Two drivers and another writer: a table is made once, and is the last driver's."""

    INDEX_SETS: ClassVar[dict[str, str]] = {"driver": "drivers"}
    CONSTANTS: ClassVar[dict[str, int]] = {
        "drivers": 2,
        "entry_retries": 1,
        "E": 1,
        "K": 3,
        "F": 1,
    }
    DERIVED: ClassVar[dict[str, str]] = {"numbers": "drivers + K + F"}
    STEPS: ClassVar[tuple[Step, ...]] = (
        Step("client", "boot"),
        Step("client", "answer"),
        Step("client", "lose", is_fair=False),
        Step("client", "arrive", is_fair=False),
        Step("client", "commit", is_fair=False),
        Step("client", "commit_nothing", is_fair=False),
        Step("client", "die", is_fair=False),
        Step("log", "change", is_fair=False),
    )
    WIRING: ClassVar[dict[str, str]] = {"table_owner.table": "client"}

    drivers: int
    entry_retries: int
    E: int
    K: int
    F: int

    table_owner: list[TableOwner] = machines(TableOwner)
    log: Log = machines(Log)
    client: list[Client] = machines(Client)

    @always("two drivers that have the table do not have one number")
    def is_of_one(self) -> bool:
        return all(
            self.table_owner[d].state != OWNER
            or all(
                e == d
                or self.table_owner[e].state != OWNER
                or self.table_owner[e].number != self.table_owner[d].number
                for e in range(self.drivers)
            )
            for d in range(self.drivers)
        )

    @always("a driver that has the table was named by it")
    def is_named(self) -> bool:
        return all(
            self.table_owner[d].state != OWNER
            or (self.log.named[d] == self.table_owner[d].number and self.log.named[d] > 0)
            for d in range(self.drivers)
        )

    @always("a driver that asks for nothing was told how its start or commit has ended")
    def is_told(self) -> bool:
        return all(
            not self.client[d].is_waiting or self.client[d].asked != NOTHING
            for d in range(self.drivers)
        )

    @sometimes("a table of a driver from before is entered by the next")
    def is_inherited(self) -> bool:
        return self.log.maker > 0 and self.log.owner > self.log.maker

    @sometimes("a driver finds that it has made the table, although it heard no answer")
    def is_found_out(self) -> bool:
        return any(
            self.client[d].has_lost
            and self.table_owner[d].state == OWNER
            and self.table_owner[d].number == 1
            and self.log.maker == d + 1
            for d in range(self.drivers)
        )

    @sometimes("a driver that was overtaken in entering learns that it was replaced")
    def is_replaced(self) -> bool:
        return any(
            self.table_owner[d].state == FENCED and self.table_owner[d].tries > 0
            for d in range(self.drivers)
        )

    @leads_to("what a driver asks for is answered", then="rests")
    def is_busy(self) -> bool:
        return not self.rests()

    def rests(self) -> bool:
        return all(self.client[d].asked == NOTHING for d in range(self.drivers))

    @terminal("no driver waits for an answer")
    def is_at_rest(self) -> bool:
        return self.rests() and all(self.client[d].state != DOWN for d in range(self.drivers))
