"""Which splits belong to which batch of a streaming query: planned once, and durable before Spark
hears of the batch.

Decides that a batch consists of the splits that its plan names and of no others, that a plan is made
of what the plan before it has left, and that of two drivers which plan one batch the first one
counts. A plan is an object of its own, made by a conditional creation; it holds the batch's splits
and the enumerator's state behind them, and Spark's offset is its number::

    enumerator   a b c found | plan 1: a b   rest: c | d found | plan 2: c d   rest: nothing
    Spark        offset 1, run, commit                          | offset 2, run, replay: c d again

Decides too that the splits of a plan are pruned by one version of the filter, the newest one when
the plan is begun; that the plan holds this version and the splits that were pruned by it, for good;
and that there is a plan also where all splits were pruned. A source without a filter has one that
prunes none.

Plans that are `retained` numbers behind the newest one, and more, are forgotten by their number, as
decisions are (`batch_decision`). Leaves to the user's enumerator which splits there are, to the
source which of them may have rows that match, to the shell how many are taken, and to Spark when a
batch is run. Runs in the process in which Spark asks for offsets, one batch of a query at a time.
"""

from __future__ import annotations

from typing import ClassVar

from epochgate.fsm import STAY, Bool, Int, Machine, Port, Row, System, Trigger, machines, output

IDLE, LOOKING, RESTORING, CONSULTING = "idle", "looking", "restoring", "consulting"
CHOOSING, WRITING, CONFIRMING = "choosing", "writing", "confirming"


class PlanPort(Port):
    """Where plans are kept, the enumerator, and who asks for a batch.

    A question is answered by the trigger that it names, or by `broken`. `later`: by how many
    numbers the newest plan is behind that of the batch; 0 if none is.
    """

    def look(self, batch: int) -> None:
        """Look for the plan: `found`, or `missing`."""

    def restore(self, batch: int) -> None:
        """Make an enumerator of the state behind this batch, 0 for none: `restored`."""

    def consult(self, batch: int) -> None:
        """Ask for the newest version of the filter, 0 for none: `newest`."""

    def choose(self, batch: int, version: int) -> None:
        """Take splits from the enumerator, without those that this version prunes: `chosen`,
        `pruned` if it prunes all that were taken, or `nothing` if none waits.
        """

    def write(self, batch: int, version: int) -> None:
        """Create the plan, with the version, unless there is one: `written`, `taken`, or
        `unknown`.
        """

    def confirm(self, batch: int) -> None:
        """Look for plans of later batches: `confirmed`."""

    def forget(self, batch: int) -> None:
        """Remove the plans of this batch and of those before."""

    def sweep(self, batch: int) -> None:
        """Remove what earlier processes have left behind and no plan refers to: what one of them
        plans from now on begins from this plan, or from a later one.
        """

    def give(self, batch: int) -> None:
        """Read the splits of this batch by the filter in its plan, if that is there."""

    def withhold(self, batch: int) -> None:
        """Read none: the plan is forgotten."""

    def tell(self, batch: int) -> None:
        """There is a batch."""

    def tell_none(self, batch: int) -> None:
        """There is none: nothing has come since the batch before."""

    def refuse(self, batch: int, later: int) -> None:
        """Another driver has gone on."""

    def fail(self, batch: int) -> None:
        """The store, or the enumerator, has failed."""


class BatchPlan(Machine):
    """What a driver does when Spark asks whether there is another batch."""

    INDEX = ("driver",)
    STATES = (IDLE, LOOKING, RESTORING, CONSULTING, CHOOSING, WRITING, CONFIRMING)
    INITIAL = IDLE

    system: BatchPlans
    store: PlanPort = output(PlanPort)

    batch: int = Int("batches")
    """Counted from 1."""
    has_enumerator: bool = Bool()
    behind: int = Int("batches")
    """The enumerator has what the plan of this batch has left."""
    version: int = Int("versions")
    """Of the filter by which the plan that is being made is pruned."""
    tries: int = Int("plan_retries")
    """How many answers to writing the plan were lost."""

    ask: Trigger
    read: Trigger
    found: Trigger
    missing: Trigger
    restored: Trigger
    newest: Trigger
    chosen: Trigger
    pruned: Trigger
    nothing: Trigger
    written: Trigger
    taken: Trigger
    unknown: Trigger
    confirmed: Trigger
    broken: Trigger

    # fmt: off
    ROWS: ClassVar[tuple[Row, ...]] = (
        Row("ask",       IDLE,       LOOKING,    None,
            "note_batch, ask_look",          "Spark asks whether there is more"),

        Row("read",      IDLE,       STAY,       "not is_forgotten",
            "give",                          "Spark runs the batch, for the first time or again"),
        Row("read",      IDLE,       STAY,       "is_forgotten",
            "withhold",                      "it may be one that came after the batch was forgotten"),

        Row("found",     LOOKING,    IDLE,       "not is_forgotten",
            "tell",                          "it was planned before, and Spark may know of it"),
        Row("found",     LOOKING,    IDLE,       "is_forgotten",
            "refuse",                        "it may be one that came after the batch was forgotten"),

        Row("missing",   LOOKING,    CONSULTING, "not is_overtaken and is_current",
            "ask_filter",                    "the enumerator has what the batch before has left"),
        Row("missing",   LOOKING,    RESTORING,  "not is_overtaken and not is_current",
            "ask_restore",                   "what the batch before has left is in its plan"),
        Row("missing",   LOOKING,    IDLE,       "is_overtaken",
            "refuse",                        "another driver has gone on, or the plan is forgotten"),

        Row("restored",  RESTORING,  CONSULTING, None,
            "note_restored, ask_filter",     "splits that were planned are not given out again"),

        Row("newest",    CONSULTING, CHOOSING,   None,
            "note_version, ask_choice",      "all splits of a plan are pruned by one filter"),

        Row("chosen",    CHOOSING,   WRITING,    None,
            "give_up_enumerator, ask_write", "until the plan counts, its splits are in no batch"),
        Row("pruned",    CHOOSING,   WRITING,    None,
            "give_up_enumerator, ask_write", "until the plan counts, its splits may yet be read"),
        Row("nothing",   CHOOSING,   IDLE,       None,
            "tell_none",                     "no split waits"),

        Row("written",   WRITING,    CONFIRMING, None,
            "ask_confirm",                   "the plan is durable"),
        Row("taken",     WRITING,    LOOKING,    None,
            "ask_look",                      "the one that was there first counts"),
        Row("unknown",   WRITING,    LOOKING,    "may_retry",
            "count_try, ask_look",           "it may be there, and may come yet"),
        Row("unknown",   WRITING,    IDLE,       "not may_retry",
            "report_failure",                "the store did not answer in any allowed try"),

        Row("confirmed", CONFIRMING, IDLE,       "not is_overtaken",
            "keep_enumerator, forget_old, sweep, tell", "every other driver finds it"),
        Row("confirmed", CONFIRMING, IDLE,       "is_overtaken",
            "refuse",                        "the batch was run and forgotten by another driver"),

        Row("broken",    (LOOKING, RESTORING, CONSULTING, CHOOSING, WRITING, CONFIRMING), IDLE, None,
            "give_up_enumerator, report_failure", "Spark is told of no batch, and asks again"),
    )
    # fmt: on

    def is_forgotten(self, later: int) -> bool:
        return later >= self.system.retained

    def is_overtaken(self, later: int) -> bool:
        return later > 0

    def is_current(self) -> bool:
        return self.has_enumerator and self.behind + 1 == self.batch

    def may_retry(self) -> bool:
        return self.tries < self.system.plan_retries

    def note_batch(self, batch: int) -> None:
        self.batch = batch
        self.tries = 0

    def ask_look(self) -> None:
        self.store.look(self.batch)

    def give(self, later: int, batch: int) -> None:
        self.store.give(batch)

    def withhold(self, later: int, batch: int) -> None:
        self.store.withhold(batch)

    def tell(self) -> None:
        self.store.tell(self.batch)

    def tell_none(self) -> None:
        self.store.tell_none(self.batch)

    def refuse(self, later: int) -> None:
        self.store.refuse(self.batch, later)

    def ask_restore(self) -> None:
        self.store.restore(self.batch - 1)

    def note_restored(self) -> None:
        self.has_enumerator = True
        self.behind = self.batch - 1

    def ask_filter(self) -> None:
        self.store.consult(self.batch)

    def note_version(self, version: int) -> None:
        self.version = version

    def ask_choice(self) -> None:
        self.store.choose(self.batch, self.version)

    def give_up_enumerator(self) -> None:
        self.has_enumerator = False
        self.behind = 0

    def keep_enumerator(self) -> None:
        self.has_enumerator = True
        self.behind = self.batch

    def ask_write(self) -> None:
        self.store.write(self.batch, self.version)

    def ask_confirm(self) -> None:
        self.store.confirm(self.batch)

    def count_try(self) -> None:
        self.tries += 1

    def forget_old(self) -> None:
        if self.batch > self.system.retained:
            self.store.forget(self.batch - self.system.retained)

    def sweep(self) -> None:
        self.store.sweep(self.batch)

    def report_failure(self) -> None:
        self.store.fail(self.batch)


class BatchPlans(System):
    """One driver of one query, for one of its sources."""

    INDEX_SETS: ClassVar[dict[str, str]] = {"driver": "drivers"}
    CONSTANTS: ClassVar[dict[str, int]] = {"drivers": 1, "retained": 100, "plan_retries": 3}

    drivers: int
    retained: int
    plan_retries: int

    batch_plan: list[BatchPlan] = machines(BatchPlan)
