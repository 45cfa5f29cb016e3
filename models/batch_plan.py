"""The splits of each batch of a streaming query: planned once, and durable before Spark hears of
the batch.

Decides that a batch consists of the splits that its plan names and of no others, and that a plan is
made of what the plan before it has left. How a plan comes to be the only one is `created_once`. It
holds the batch's splits and the enumerator's state behind them, and Spark's offset is its number::

    enumerator   a b c found | plan 1: a b   rest: c | d found | plan 2: c d   rest: nothing
    Spark        offset 1, run, commit                          | offset 2, run, replay: c d again

Decides too that the splits of a plan are pruned by one version of the filter, the newest one when
the plan is begun; that the plan holds this version and the splits that were pruned by it, for good;
and that there is a plan also where all splits were pruned. A source without a filter has one that
prunes none. Leaves to the user's enumerator which splits there are, to the source which of them may
have rows that match, to the shell how many are taken, and to Spark when a batch is run.
Runs in the process in which Spark asks for offsets, one batch of a query at a time.
"""

from __future__ import annotations

from typing import ClassVar

from epochgate.fsm import Row, Trigger, fallible, machines, output
from epochgate.models.created_once import (
    CHOOSING,
    IDLE,
    READING,
    ROWS,
    WRITING,
    CreatedOnce,
    EntryPort,
    OneDriver,
)

FETCHING = "fetching"


class PlanPort(EntryPort):
    """The store of plans, the enumerator, and who asks for a batch."""

    @fallible("broken", succeeds="newest", within="store_timeout_s")
    def consult(self, batch: int) -> None:
        """Ask for the newest version of the filter, 0 for none."""

    @fallible("broken", succeeds="chosen, pruned, nothing", within="coordinator_call_timeout_s")
    def choose(self, batch: int, version: int) -> None:
        """Take splits from the enumerator, without those that this version prunes; `pruned` if it
        prunes all that were taken, `nothing` if none waits.
        """

    @fallible("broken, unknown", succeeds="written, taken", within="store_timeout_s")
    def write(self, batch: int, version: int) -> None:
        """Create the plan, with the version; `taken` if there is one. `unknown`: it may have been
        created.
        """

    @fallible("kept, expire", succeeds="forgotten", within="store_timeout_s")
    def forget(self, batch: int) -> None:
        """Remove the plans of this batch and of those before, 0 for none, and what earlier processes
        have left behind and no plan refers to: what one of them plans from now on begins from the
        newest plan, or from a later one. `kept`: something is left; `expire`: it may be removed yet.
        """

    @fallible("broken, lost", succeeds="read", within="store_timeout_s")
    def fetch(self, batch: int) -> None:
        """Read the plan, and then look how far it is behind the newest; `lost` if it is not there."""

    def give(self, batch: int) -> None:
        """Read the splits of this batch by the filter in its plan."""

    def withhold(self, batch: int) -> None:
        """Read none: the plan is forgotten, or removed."""

    def tell(self, batch: int) -> None:
        """There is a batch."""

    def tell_none(self, batch: int) -> None:
        """There is none: nothing has come since the batch before."""


class BatchPlan(CreatedOnce):
    """The plan of a driver when Spark asks whether there is another batch."""

    system: BatchPlans
    store: PlanPort = output(PlanPort)

    STATES: ClassVar[tuple[str, ...]] = (*CreatedOnce.STATES, FETCHING)

    run: Trigger
    read: Trigger
    lost: Trigger
    pruned: Trigger
    nothing: Trigger

    # fmt: off
    ROWS: ClassVar[tuple[Row, ...]] = (
        *ROWS,
        Row("run",     IDLE,     FETCHING, None,
            "note_batch, ask_fetch",    "Spark runs the batch, for the first time or again"),
        Row("read",    FETCHING, IDLE,     "not is_forgotten",
            "give",                     "the tasks read what the plan names"),
        Row("read",    FETCHING, IDLE,     "is_forgotten",
            "withhold",                 "it may be one that came after the batch was forgotten"),
        Row("lost",    FETCHING, IDLE,     None,
            "withhold",                 "another driver has removed the plan: the batch is over"),
        Row("broken",  FETCHING, IDLE,     None,
            "report_failure",           "nothing is read, and Spark runs the batch again"),

        Row("newest",  READING,  CHOOSING, None,
            "note_version, ask_choice", "all splits of a plan are pruned by one filter"),

        Row("pruned",  CHOOSING, WRITING,  None,
            "give_up_maker, ask_write", "until the plan counts, its splits may yet be read"),
        Row("nothing", CHOOSING, IDLE,     None,
            "tell_none",                "no split waits"),
    )
    # fmt: on

    def ask_fetch(self) -> None:
        self.store.fetch(self.batch)

    def give(self) -> None:
        self.store.give(self.batch)

    def withhold(self) -> None:
        self.store.withhold(self.batch)

    def use_found(self) -> None:
        self.store.tell(self.batch)

    def tell_none(self) -> None:
        self.store.tell_none(self.batch)

    def go_on(self) -> None:
        """The enumerator is told nothing."""

    def ask_newest(self) -> None:
        self.store.consult(self.batch)

    def note_version(self, version: int) -> None:
        self.version = version

    def ask_choice(self) -> None:
        self.store.choose(self.batch, self.version)

    def ask_write(self) -> None:
        self.store.write(self.batch, self.version)

    def use_made(self) -> None:
        self.store.tell(self.batch)


class BatchPlans(OneDriver):
    """One driver of one query, for one of its sources."""

    batch_plan: list[BatchPlan] = machines(BatchPlan)
