"""An entry that is created once: the decision for a batch, or its plan.

Decides that the entry of a batch is the one that is there, that the first one counts of two drivers
which make it, that it is made by a maker (a coordinator, an enumerator) with what the entry of the
batch before has left, of the newest version of what a user updates, and that a driver which comes too
late goes on with none. An entry is an object of its own, made by a conditional creation: one whose
answer is lost is looked for again. A maker whose work is in no entry that counts makes no more.

Entries that are `retained` numbers behind the newest one, and more, are forgotten by their number, so
that one which a driver makes after it was suspended for a year counts for as little as one that was
removed. Leaves to `batch_decision` and `batch_plan` what is made, and what is done with an entry.
Runs in the process that drives the query, one batch at a time.
"""

from __future__ import annotations

from typing import Any, ClassVar

from epochgate.fsm import Bool, Int, Machine, Port, Row, System, Trigger, fallible, output

IDLE, LOOKING, RESTORING, READING = "idle", "looking", "restoring", "reading"
CHOOSING, WRITING, CONFIRMING = "choosing", "writing", "confirming"
FORGETTING = "forgetting"


class EntryPort(Port):
    """The store of entries, and their maker.

    `later`: by how many numbers the newest entry is behind that of the batch; 0 if none is.
    """

    @fallible("broken", succeeds="found, missing", within="store_timeout_s")
    def look(self, batch: int) -> None:
        """Look for the entry."""

    @fallible("broken", succeeds="restored", within="coordinator_call_timeout_s")
    def restore(self, batch: int) -> None:
        """Make a maker of the state in the entry of this batch, 0 for none."""

    @fallible("broken", succeeds="confirmed", within="store_timeout_s")
    def confirm(self, batch: int) -> None:
        """Look for entries of later batches."""

    @fallible("kept, expire", succeeds="forgotten", within="store_timeout_s")
    def forget(self, batch: int) -> None:
        """Remove the entries of this batch and of those before, 0 for none, and what no entry
        refers to. `kept`: something is left; `expire`: it may be removed yet.
        """

    def refuse(self, batch: int, later: int) -> None:
        """Go on with none: another driver has gone on."""

    def fail(self, batch: int) -> None:
        """Go on with none: the store, or the maker, has failed."""


# fmt: off
ROWS: tuple[Row, ...] = (
    Row("begin",     IDLE,       LOOKING,    None,
        "note_batch, ask_look",     "Spark asks for a batch, or runs it, for the first time or again"),

    Row("found",     LOOKING,    IDLE,       "not is_forgotten",
        "use_found",                "an earlier run of the batch may have seen it"),
    Row("found",     LOOKING,    IDLE,       "is_forgotten",
        "refuse",                   "it may be one that came after the batch was forgotten"),

    Row("missing",   LOOKING,    READING,    "not is_overtaken and is_current",
        "go_on, ask_newest",        "the maker has what the batch before has left"),
    Row("missing",   LOOKING,    RESTORING,  "not is_overtaken and not is_current",
        "ask_restore",              "what the batch before has left is in its entry"),
    Row("missing",   LOOKING,    IDLE,       "is_overtaken",
        "refuse",                   "another driver has gone on, or the entry is forgotten"),

    Row("restored",  RESTORING,  READING,    None,
        "note_restored, ask_newest", "no run of the batch has begun"),

    Row("chosen",    CHOOSING,   WRITING,    None,
        "give_up_maker, ask_write", "until the entry counts, what was chosen is in no batch"),

    Row("written",   WRITING,    CONFIRMING, None,
        "ask_confirm",              "the entry is durable"),
    Row("taken",     WRITING,    LOOKING,    None,
        "ask_look",                 "the one that was there first counts"),
    Row("unknown",   WRITING,    LOOKING,    "may_retry",
        "count_try, ask_look",      "it may be there, and may come yet"),
    Row("unknown",   WRITING,    IDLE,       "not may_retry",
        "report_failure",           "the store did not answer in any allowed try"),

    Row("confirmed", CONFIRMING, FORGETTING, "not is_overtaken",
        "keep_maker, ask_forget",   "every other driver finds it"),
    Row("confirmed", CONFIRMING, IDLE,       "is_overtaken",
        "refuse",                   "the batch was run and forgotten by another driver"),

    Row("forgotten", FORGETTING, IDLE,       None,
        "use_made",                 "nothing is kept for ever"),
    Row("kept",      FORGETTING, IDLE,       None,
        "use_made",                 "a later batch removes what is left"),
    Row("expire",    FORGETTING, IDLE,       None,
        "give_up_maker, use_made",  "the maker may be in the call that hangs: the next batch has another"),

    Row("broken",    (LOOKING, RESTORING, READING, CHOOSING, WRITING, CONFIRMING), IDLE, None,
        "give_up_maker, report_failure", "nothing has run, and Spark asks again"),
)
# fmt: on


class CreatedOnce(Machine):
    """The entry of a driver for the batch that Spark asks for, or runs."""

    INDEX = ("driver",)
    STATES: ClassVar[tuple[str, ...]] = (
        *(IDLE, LOOKING, RESTORING, READING),
        *(CHOOSING, WRITING, CONFIRMING, FORGETTING),
    )
    INITIAL = IDLE

    system: OneDriver
    store: Any = output(EntryPort)

    batch: int = Int("batches")
    """Counted from 1."""
    has_maker: bool = Bool()
    behind: int = Int("batches")
    """The maker has what the entry of this batch has left."""
    version: int = Int("versions")
    """Of which the entry is made."""
    tries: int = Int("entry_retries")
    """How many answers to writing the entry were lost."""

    begin: Trigger
    found: Trigger
    missing: Trigger
    restored: Trigger
    newest: Trigger
    chosen: Trigger
    written: Trigger
    taken: Trigger
    unknown: Trigger
    confirmed: Trigger
    forgotten: Trigger
    kept: Trigger
    expire: Trigger
    broken: Trigger

    def is_forgotten(self, later: int) -> bool:
        return later >= self.system.retained

    def is_overtaken(self, later: int) -> bool:
        return later > 0

    def is_current(self) -> bool:
        return self.has_maker and self.behind + 1 == self.batch

    def may_retry(self) -> bool:
        return self.tries < self.system.entry_retries

    def note_batch(self, batch: int) -> None:
        self.batch = batch
        self.tries = 0

    def ask_look(self) -> None:
        self.store.look(self.batch)

    def refuse(self, later: int) -> None:
        self.store.refuse(self.batch, later)

    def ask_restore(self) -> None:
        self.store.restore(self.batch - 1)

    def note_restored(self) -> None:
        self.has_maker = True
        self.behind = self.batch - 1

    def give_up_maker(self) -> None:
        self.has_maker = False
        self.behind = 0

    def keep_maker(self) -> None:
        self.has_maker = True
        self.behind = self.batch

    def ask_confirm(self) -> None:
        self.store.confirm(self.batch)

    def count_try(self) -> None:
        self.tries += 1

    def ask_forget(self) -> None:
        if self.batch > self.system.retained:
            self.store.forget(self.batch - self.system.retained)
        else:
            self.store.forget(0)

    def report_failure(self) -> None:
        self.store.fail(self.batch)


class OneDriver(System):
    """One driver of one query."""

    INDEX_SETS: ClassVar[dict[str, str]] = {"driver": "drivers"}
    CONSTANTS: ClassVar[dict[str, int]] = {"drivers": 1, "retained": 100, "entry_retries": 3}

    drivers: int
    retained: int
    entry_retries: int
