"""The value that one batch of a streaming query runs with: decided once, and durable before it runs.

Decides that a batch runs with what was decided for it and with nothing else, that the first run of
a batch decides, that of two drivers which decide for one batch the first one counts, and that a
driver which comes too late runs nothing; and that nothing runs where the newest version is older than
one with which a batch has run: its file was lost. A decision is an object of its own, made by a conditional
creation. What is decided is a version, the number of the newest update of the control, and what a
coordinator makes of it, with the coordinator's state behind that choice.

    batch        40          41              42
    versions     3        4     5                 6
    decided      40: 3       41: 5           42: 5
    state        s40 ------> s41 ----------> s42

Decides too that a coordinator chooses once for each decision, from the state that the decision
before holds, that one whose choice is in no decision that counts chooses no more, and when it hears
that a batch has run. A control without a coordinator has one that leaves every version as it is.

Decisions that are `retained` batches behind the newest one, and more, are forgotten by their number, so
that one which a driver makes after it was suspended for a year counts for as little as one that was
removed. Leaves to the shell what a version holds, what a coordinator chooses, where decisions lie,
and what runs.
Runs where Spark calls the function of `foreachBatch`, one batch of a query at a time.
"""

from __future__ import annotations

from typing import ClassVar

from epochgate.fsm import Int, Machine, Port, Row, System, Trigger, machines, output

IDLE, LOOKING, RESTORING, READING = "idle", "looking", "restoring", "reading"
CHOOSING, WRITING, CONFIRMING = "choosing", "writing", "confirming"


class DecisionPort(Port):
    """Where decisions are kept, the coordinator, and what runs a batch.

    A question is answered by the trigger that it names, or by `broken`. `later`: by how many
    numbers the newest decision is behind that of the batch; 0 if none is.
    """

    def look(self, batch: int) -> None:
        """Look for the decision: `found`, or `missing`."""

    def restore(self, batch: int) -> None:
        """Make a coordinator of the state in the decision of this batch, 0 for none: `restored`."""

    def complete(self, batch: int) -> None:
        """Tell the coordinator that this batch has run: a later one begins."""

    def read(self, batch: int) -> None:
        """Ask for the newest version, and for version and first batch of the newest decision:
        `newest`.
        """

    def choose(self, batch: int) -> None:
        """Let the coordinator choose what the batch runs with, and give its state: `chosen`."""

    def write(self, batch: int, version: int, since: int) -> None:
        """Create the decision unless there is one: `written`, `taken`, or `unknown`. `since`: the
        first batch with this version.
        """

    def confirm(self, batch: int) -> None:
        """Look for decisions of later batches: `confirmed`."""

    def forget(self, batch: int) -> None:
        """Remove the decisions of this batch and of those before."""

    def run(self, batch: int, version: int) -> None:
        """Run the batch with this version."""

    def refuse(self, batch: int, later: int) -> None:
        """Run nothing: another driver has gone on."""

    def miss(self, batch: int, version: int, earlier: int) -> None:
        """Run nothing: the newest version is behind one with which a batch has run."""

    def fail(self, batch: int) -> None:
        """Run nothing: the store does not answer."""


class BatchDecision(Machine):
    """What a driver of a query does for the batch that Spark runs now."""

    INDEX = ("driver",)
    STATES = (IDLE, LOOKING, RESTORING, READING, CHOOSING, WRITING, CONFIRMING)
    INITIAL = IDLE

    system: BatchDecisions
    store: DecisionPort = output(DecisionPort)

    batch: int = Int("batches")
    """Counted from 1."""
    version: int = Int("versions")
    since: int = Int("batches")
    """Of the decision that is being written."""
    tries: int = Int("decision_retries")
    """How many answers to writing it were lost."""
    last: int = Int("batches")
    """The batch for which the coordinator of this process has chosen last, and the decision is that
    choice; 0 for none.
    """

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
    broken: Trigger

    # fmt: off
    ROWS: ClassVar[tuple[Row, ...]] = (
        Row("begin",     IDLE,       LOOKING,    None,
            "note_batch, ask_look",  "Spark runs a batch, for the first time or again"),

        Row("found",     LOOKING,    IDLE,       "not is_forgotten",
            "forget_old, run_found", "an earlier run of the batch may have seen it"),
        Row("found",     LOOKING,    IDLE,       "is_forgotten",
            "refuse",                "it may be one that came after the batch was forgotten"),

        Row("missing",   LOOKING,    READING,    "not is_overtaken and is_current",
            "tell_complete, ask_newest", "the coordinator has what the batch before has left"),
        Row("missing",   LOOKING,    RESTORING,  "not is_overtaken and not is_current",
            "ask_restore",           "what the batch before has left is in its decision"),
        Row("missing",   LOOKING,    IDLE,       "is_overtaken",
            "refuse",                "another driver has gone on, or the decision is forgotten"),

        Row("restored",  RESTORING,  READING,    None,
            "ask_newest",            "no run of the batch has begun"),

        Row("newest",    READING,    CHOOSING,   "is_in_force",
            "note_version, ask_choice", "nothing was changed since the batch before"),
        Row("newest",    READING,    CHOOSING,   "not is_in_force and not is_set_back",
            "note_change, ask_choice", "the batch is the first to run with what is newest now"),
        Row("newest",    READING,    IDLE,       "not is_in_force and is_set_back",
            "report_missing",        "a lost file takes no update back"),

        Row("chosen",    CHOOSING,   WRITING,    None,
            "give_up_coordinator, ask_write", "until the decision counts, the choice is none"),

        Row("written",   WRITING,    CONFIRMING, None,
            "ask_confirm",           "the decision is durable"),
        Row("taken",     WRITING,    LOOKING,    None,
            "ask_look",              "the one that was there first counts"),
        Row("unknown",   WRITING,    LOOKING,    "may_retry",
            "count_try, ask_look",   "it may be there, and may come yet"),
        Row("unknown",   WRITING,    IDLE,       "not may_retry",
            "report_failure",        "the store did not answer in any allowed try"),

        Row("confirmed", CONFIRMING, IDLE,       "not is_overtaken",
            "keep_coordinator, forget_old, run_decided", "every other run of the batch finds it"),
        Row("confirmed", CONFIRMING, IDLE,       "is_overtaken",
            "refuse",                "the batch was run and forgotten by another driver"),

        Row("broken",    (LOOKING, RESTORING, READING, CHOOSING, WRITING, CONFIRMING), IDLE, None,
            "give_up_coordinator, report_failure", "nothing has run, and the batch is run again"),
    )
    # fmt: on

    def is_forgotten(self, later: int) -> bool:
        return later >= self.system.retained

    def is_overtaken(self, later: int) -> bool:
        return later > 0

    def is_current(self) -> bool:
        return self.last > 0 and self.last + 1 == self.batch

    def is_in_force(self, version: int, earlier: int, since: int) -> bool:
        return version == earlier and since > 0

    def is_set_back(self, version: int, earlier: int, since: int) -> bool:
        return version < earlier

    def may_retry(self) -> bool:
        return self.tries < self.system.decision_retries

    def note_batch(self, batch: int) -> None:
        self.batch = batch
        self.tries = 0

    def ask_look(self) -> None:
        self.store.look(self.batch)

    def run_found(self, later: int, version: int) -> None:
        self.store.run(self.batch, version)

    def refuse(self, later: int) -> None:
        self.store.refuse(self.batch, later)

    def ask_restore(self) -> None:
        self.store.restore(self.batch - 1)

    def tell_complete(self) -> None:
        self.store.complete(self.batch - 1)

    def ask_newest(self) -> None:
        self.store.read(self.batch)

    def note_version(self, version: int, earlier: int, since: int) -> None:
        self.version = version
        self.since = since

    def note_change(self, version: int) -> None:
        self.version = version
        self.since = self.batch

    def ask_choice(self) -> None:
        self.store.choose(self.batch)

    def give_up_coordinator(self) -> None:
        self.last = 0

    def keep_coordinator(self) -> None:
        self.last = self.batch

    def ask_write(self) -> None:
        self.store.write(self.batch, self.version, self.since)

    def ask_confirm(self) -> None:
        self.store.confirm(self.batch)

    def count_try(self) -> None:
        self.tries += 1

    def forget_old(self) -> None:
        if self.batch > self.system.retained:
            self.store.forget(self.batch - self.system.retained)

    def run_decided(self) -> None:
        self.store.run(self.batch, self.version)

    def report_missing(self, version: int, earlier: int, since: int) -> None:
        self.store.miss(self.batch, version, earlier)

    def report_failure(self) -> None:
        self.store.fail(self.batch)


class BatchDecisions(System):
    """One driver of one query."""

    INDEX_SETS: ClassVar[dict[str, str]] = {"driver": "drivers"}
    CONSTANTS: ClassVar[dict[str, int]] = {"drivers": 1, "retained": 100, "decision_retries": 3}

    drivers: int
    retained: int
    decision_retries: int

    batch_decision: list[BatchDecision] = machines(BatchDecision)
