"""The value that one batch of a streaming query runs with: decided once, and durable before it runs.

Decides that a batch runs with what was decided for it and with nothing else, that the first run of
a batch decides, and that nothing runs where the newest version is older than one with which a batch
has run: its file was lost. How a decision comes to be the only one is `created_once`. What is decided
is a version, the number of the newest update of the control, and what a coordinator makes of it, with
the coordinator's state behind that choice.

    batch        40          41              42
    versions     3        4     5                 6
    decided      40: 3       41: 5           42: 5
    state        s40 ------> s41 ----------> s42

Decides too when a coordinator hears that a batch has run. A control without a coordinator has one
that leaves every version as it is. Leaves to the shell what a version holds, what a coordinator
chooses, where decisions lie, and what runs.
Runs where Spark calls the function of `foreachBatch`, one batch of a query at a time.
"""

from __future__ import annotations

from typing import ClassVar

from epochgate.fsm import Int, Row, fallible, machines, output
from epochgate.models.created_once import (
    CHOOSING,
    IDLE,
    READING,
    ROWS,
    CreatedOnce,
    EntryPort,
    OneDriver,
)


class DecisionPort(EntryPort):
    """The store of decisions, the coordinator, and what runs a batch."""

    def complete(self, batch: int) -> None:
        """Tell the coordinator that this batch has run: a later one begins."""

    @fallible("broken", succeeds="newest", within="store_timeout_s")
    def read(self, batch: int) -> None:
        """Ask for the newest version, and for version and first batch of the newest decision."""

    @fallible("broken", succeeds="chosen", within="coordinator_call_timeout_s")
    def choose(self, batch: int) -> None:
        """Let the coordinator choose what the batch runs with, and give its state."""

    @fallible("broken, unknown", succeeds="written, taken", within="store_timeout_s")
    def write(self, batch: int, version: int, since: int) -> None:
        """Create the decision; `taken` if there is one. `unknown`: it may have been created.
        `since`: the first batch with this version.
        """

    def run(self, batch: int, version: int) -> None:
        """Run the batch with this version."""

    def miss(self, batch: int, version: int, earlier: int) -> None:
        """Run nothing: the newest version is behind one with which a batch has run."""


class BatchDecision(CreatedOnce):
    """The decision of a query's driver for the batch that Spark runs now."""

    system: BatchDecisions
    store: DecisionPort = output(DecisionPort)

    since: int = Int("batches")
    """The first batch with the version of the decision that is being written."""

    # fmt: off
    ROWS: ClassVar[tuple[Row, ...]] = (
        *ROWS,
        Row("newest", READING, CHOOSING, "is_in_force",
            "note_version, ask_choice", "nothing was changed since the batch before"),
        Row("newest", READING, CHOOSING, "not is_in_force and not is_set_back",
            "note_change, ask_choice",  "the batch is the first to run with what is newest now"),
        Row("newest", READING, IDLE,     "not is_in_force and is_set_back",
            "report_missing",           "a lost file takes no update back"),
    )
    # fmt: on

    def is_in_force(self, version: int, earlier: int, since: int) -> bool:
        return version == earlier and since > 0

    def is_set_back(self, version: int, earlier: int, since: int) -> bool:
        return version < earlier

    def use_found(self, later: int, version: int) -> None:
        self.store.run(self.batch, version)

    def go_on(self) -> None:
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

    def ask_write(self) -> None:
        self.store.write(self.batch, self.version, self.since)

    def use_made(self) -> None:
        self.store.run(self.batch, self.version)

    def report_missing(self, version: int, earlier: int, since: int) -> None:
        self.store.miss(self.batch, version, earlier)


class BatchDecisions(OneDriver):
    """One driver of one query."""

    batch_decision: list[BatchDecision] = machines(BatchDecision)
