"""The owner of a table: which driver of a job may make it, and which one writes to it.

Decides that a driver claims the table before it does anything else, that it makes a table, or
enters one that others have made meanwhile, only if no later driver has claimed it by then, and that
it writes as long as the table's own log names it as the last driver. Each request may take effect
without an answer; the next look at the table tells. Until there is a table, nothing but the claims
keeps two drivers apart; from then on its log does, in which each entry follows the one that its
writer has read::

    driver 1   claim          last?  make ................... (late: refused, there is one)
    driver 2          claim   last?  make: number 1   write   write

Leaves to the shell what a claim is (a file and a lock in a directory, an entry of a log in an
object store), what the log of a table is, and which tables it refuses to enter. Runs on the driver.
Source: none; Delta Lake has transaction ids, by which a log refuses a second entry of one writer.
"""

from __future__ import annotations

from typing import ClassVar

from epochgate.fsm import (
    STAY,
    Bool,
    Int,
    Machine,
    Port,
    Row,
    System,
    Trigger,
    fallible,
    machines,
    output,
)

NEW, CLAIMING, CLAIMED, ASKING = "new", "claiming", "claimed", "asking"
MAKING, ENTERING, NAMING = "making", "entering", "naming"
OWNER, FENCED = "owner", "fenced"


class TablePort(Port):
    """The claims to a table, and its log. `late`: another has claimed it after this driver has read
    the claims, or after its own claim.
    """

    @fallible("broken", succeeds="claimed, late")
    def claim(self) -> None:
        """Put down that this driver has claimed the table, behind the claims that it has read."""

    @fallible("broken", succeeds="last, late")
    def ask(self) -> None:
        """Look whether this driver's claim is the last."""

    @fallible("broken", succeeds="made, overtaken")
    def make(self) -> None:
        """Make the table of the rows of a checkpoint, with 1 as the number of its driver;
        `overtaken` if there is one.
        """

    @fallible("broken", succeeds="entered, overtaken")
    def enter(self) -> None:
        """Put the next number of a driver into the table's log, as the entry after the newest one
        that this driver has read; `overtaken` if others have written to it since, and read them.
        """

    @fallible("broken", succeeds="named, late")
    def name(self) -> None:
        """Put down with the claims which table it is."""

    def ready(self, number: int) -> None:
        """Go on as the driver of this number; 0: there is no table yet."""

    def refuse(self) -> None:
        """Write nothing: the table is another driver's."""

    def fail(self) -> None:
        """Write nothing for now: a request has failed, or its outcome is not known."""


class TableOwner(Machine):
    """One driver, from its claim on."""

    INDEX = ("driver",)
    STATES = (NEW, CLAIMING, CLAIMED, ASKING, MAKING, ENTERING, NAMING, OWNER, FENCED)
    INITIAL = NEW

    system: TableOwners
    table: TablePort = output(TablePort)

    has_table: bool = Bool()
    has_rows: bool = Bool()
    """There is something to make a table of."""
    number: int = Int("numbers")
    """By which the table's log knows this driver; 0 for none."""
    tries: int = Int("entry_retries")
    """How often others have written to the table while this driver was entering it."""

    start: Trigger
    claimed: Trigger
    absent: Trigger
    present: Trigger
    last: Trigger
    late: Trigger
    made: Trigger
    entered: Trigger
    overtaken: Trigger
    named: Trigger
    broken: Trigger

    # fmt: off
    ROWS: ClassVar[tuple[Row, ...]] = (
        Row("start",     NEW,      CLAIMING, None,
            "note_table, ask_claim",        "whatever it has read may be another driver's work"),

        Row("claimed",   CLAIMING, CLAIMED,  "not has_one",
            "report_ready",                 "the first commit of rows makes the table"),
        Row("claimed",   CLAIMING, ENTERING, "has_one",
            "ask_enter",                    "no driver from before may commit any more"),

        Row("absent",    CLAIMED,  ASKING,   None,
            "note_rows, ask_last",          "nothing but the claims keeps two makers apart"),
        Row("present",   CLAIMED,  NAMING,   "is_of_own_making",
            "note_made, ask_name",          "the answer to the making was lost"),
        Row("present",   CLAIMED,  ASKING,   "not is_of_own_making",
            "note_present, ask_last",       "others have made it since the claim"),
        Row("present",   OWNER,    STAY,     "is_mine",
            "report_ready",                 "no other driver has entered it"),
        Row("present",   OWNER,    FENCED,   "not is_mine",
            "report_refusal",               "a later driver has entered it"),
        Row("absent",    FENCED,   STAY,     None,
            "report_refusal",               "a later driver is to make it"),
        Row("present",   FENCED,   STAY,     None,
            "report_refusal",               "it is a later driver's"),

        Row("last",      ASKING,   ENTERING, "has_one",
            "ask_enter",                    "no driver from before may commit any more"),
        Row("last",      ASKING,   MAKING,   "not has_one and may_make",
            "ask_make",                     "who makes it first, and claims it last, has it"),
        Row("last",      ASKING,   CLAIMED,  "not has_one and not may_make",
            "report_ready",                 "there is nothing to make it of"),

        Row("made",      MAKING,   NAMING,   None,
            "note_made, ask_name",          "its first entry names this driver"),
        Row("overtaken", MAKING,   CLAIMED,  None,
            "report_failure",               "the next look tells who has made it"),

        Row("entered",   ENTERING, NAMING,   None,
            "note_entered, ask_name",       "its newest entry names this driver"),
        Row("overtaken", ENTERING, ASKING,   "may_retry",
            "count_try, ask_last",          "it may be a later driver that has written"),
        Row("overtaken", ENTERING, CLAIMED,  "not may_retry",
            "report_failure",               "others write to it all the time"),

        Row("named",     NAMING,   OWNER,    None,
            "report_ready",                 "another table in its place will be told"),

        Row("late",      (CLAIMING, ASKING, NAMING), FENCED, None,
            "report_refusal",               "a later driver has claimed it"),

        Row("broken",    CLAIMING, NEW,      None,
            "report_failure",               "the start fails"),
        Row("broken",    (ASKING, MAKING, ENTERING, NAMING), CLAIMED, None,
            "report_failure",               "the next look at the table tells what was done"),
    )
    # fmt: on

    def has_one(self) -> bool:
        return self.has_table

    def may_make(self) -> bool:
        return self.has_rows

    def is_of_own_making(self, number: int, is_maker: bool) -> bool:
        return number == 1 and is_maker

    def is_mine(self, number: int) -> bool:
        return number == self.number

    def may_retry(self) -> bool:
        return self.tries < self.system.entry_retries

    def note_table(self, is_there: bool) -> None:
        self.has_table = is_there

    def note_rows(self, has_rows: bool) -> None:
        self.has_rows = has_rows

    def note_present(self) -> None:
        self.has_table = True
        self.tries = 0

    def note_made(self) -> None:
        self.number = 1

    def note_entered(self, number: int) -> None:
        self.number = number

    def count_try(self) -> None:
        self.tries += 1

    def ask_claim(self) -> None:
        self.table.claim()

    def ask_last(self) -> None:
        self.table.ask()

    def ask_make(self) -> None:
        self.table.make()

    def ask_enter(self) -> None:
        self.table.enter()

    def ask_name(self) -> None:
        self.table.name()

    def report_ready(self) -> None:
        self.table.ready(self.number)

    def report_refusal(self) -> None:
        self.table.refuse()

    def report_failure(self) -> None:
        self.table.fail()


class TableOwners(System):
    """One driver of one table."""

    INDEX_SETS: ClassVar[dict[str, str]] = {"driver": "drivers"}
    CONSTANTS: ClassVar[dict[str, int]] = {"drivers": 1, "entry_retries": 4}

    drivers: int
    entry_retries: int

    table_owner: list[TableOwner] = machines(TableOwner)
