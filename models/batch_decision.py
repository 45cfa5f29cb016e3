"""The value that one batch of a streaming query runs with: decided once, and durable before it runs.

Decides that a batch runs with what was decided for it and with nothing else, that the first run of
a batch decides, that of two drivers which decide for one batch the first one counts, and that a
driver which comes too late runs nothing. A decision is an object of its own, made by a conditional
creation. What is decided is a version: the number of the newest update of the control.

    batch        40          41              42
    versions     3        4     5                 6
    decided      40: 3       41: 5           42: 5

Decisions that are `retained` batches behind the newest one, and more, are forgotten by their number, so
that one which a driver makes after it was suspended for a year counts for as little as one that was
removed. Leaves to the shell what a version holds, where decisions lie, and what runs.
Runs where Spark calls the function of `foreachBatch`, one batch of a query at a time.
"""

from __future__ import annotations

from typing import ClassVar

from epochgate.fsm import Int, Machine, Port, Row, System, Trigger, machines, output

IDLE, LOOKING, READING, WRITING = "idle", "looking", "reading", "writing"
CONFIRMING = "confirming"


class DecisionPort(Port):
    """Where decisions are kept, and what runs a batch.

    A question is answered by the trigger that it names, or by `broken`. `later`: by how many
    numbers the newest decision is behind that of the batch; 0 if none is.
    """

    def look(self, batch: int) -> None:
        """Look for the decision: `found`, or `missing`."""

    def read(self, batch: int) -> None:
        """Ask for the newest version, and for version and first batch of the newest decision:
        `newest`.
        """

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

    def fail(self, batch: int) -> None:
        """Run nothing: the store does not answer."""


class BatchDecision(Machine):
    """What a driver of a query does for the batch that Spark runs now."""

    INDEX = ("driver",)
    STATES = (IDLE, LOOKING, READING, WRITING, CONFIRMING)
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

    begin: Trigger
    found: Trigger
    missing: Trigger
    newest: Trigger
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

        Row("missing",   LOOKING,    READING,    "not is_overtaken",
            "ask_newest",            "no run of the batch has begun"),
        Row("missing",   LOOKING,    IDLE,       "is_overtaken",
            "refuse",                "another driver has gone on, or the decision is forgotten"),

        Row("newest",    READING,    WRITING,    "is_in_force",
            "note_version, ask_write", "nothing was changed since the batch before"),
        Row("newest",    READING,    WRITING,    "not is_in_force",
            "note_change, ask_write", "the batch is the first to run with what is newest now"),

        Row("written",   WRITING,    CONFIRMING, None,
            "ask_confirm",           "the decision is durable"),
        Row("taken",     WRITING,    LOOKING,    None,
            "ask_look",              "the one that was there first counts"),
        Row("unknown",   WRITING,    LOOKING,    "may_retry",
            "count_try, ask_look",   "it may be there, and may come yet"),
        Row("unknown",   WRITING,    IDLE,       "not may_retry",
            "report_failure",        "the store did not answer in any allowed try"),

        Row("confirmed", CONFIRMING, IDLE,       "not is_overtaken",
            "forget_old, run_decided", "every other run of the batch finds it"),
        Row("confirmed", CONFIRMING, IDLE,       "is_overtaken",
            "refuse",                "the batch was run and forgotten by another driver"),

        Row("broken",    (LOOKING, READING, WRITING, CONFIRMING), IDLE, None,
            "report_failure",        "nothing has run, and the batch is run again"),
    )
    # fmt: on

    def is_forgotten(self, later: int) -> bool:
        return later >= self.system.retained

    def is_overtaken(self, later: int) -> bool:
        return later > 0

    def is_in_force(self, version: int, earlier: int, since: int) -> bool:
        return version == earlier and since > 0

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

    def ask_newest(self) -> None:
        self.store.read(self.batch)

    def note_version(self, version: int, earlier: int, since: int) -> None:
        self.version = version
        self.since = since

    def note_change(self, version: int) -> None:
        self.version = version
        self.since = self.batch

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
