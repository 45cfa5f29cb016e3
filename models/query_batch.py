"""One commit of one batch of a streaming query: what is looked up, noted, applied and recorded.

Decides what Spark's `commit` and `abort` of a batch come to. Spark calls them again after any
failure, from another process, and has no fence between two drivers of one query; the target knows
by the query's id how many of its batches have taken effect, and which checkpoint location and which
offsets were noted before. A batch takes effect if it is the next one of a history that the target
knows; it is skipped if it has taken effect with the same offsets; anything else is refused, since
rows would be there twice or would be missing. What is noted is durable before the batch is applied.

    commit(7)   look: 7 batches      note: 7, offsets, location      apply: 8 batches, with the rows
    commit(7)   look: 8 batches      nothing is left to do           again, after a crash
    abort(7)    nothing, ever        it may come after a commit that took effect

A batch whose effect does not carry the number by itself is recorded afterwards: an empty one, of
which the target keeps nothing, and a function of the user's that writes elsewhere, which then is
called at least once.

Leaves to the shell what the steps are in a table, a database or a directory, and to the target that
what carries the number takes effect as a whole, and only as the next batch.
"""

from __future__ import annotations

from typing import ClassVar

from epochgate.fsm import (
    STAY,
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

IDLE, LOOKING, NOTING, APPLYING = "idle", "looking", "noting", "applying"
RECORDING, SWEEPING = "recording", "sweeping"
DONE, REFUSED, FAILED, LEFT = "done", "refused", "failed", "left"

KNOWN, MOVED, EMPTIED = range(3)
"""Of the history of a batch: the target knows it or has none of it; it knows the query from another
checkpoint location; it knows the checkpoint location from another query.
"""
LATE = 3
"""What can be accepted beside MOVED and EMPTIED: the target lacks batches, as many are there as the
user says. The first ones went elsewhere, or what was lost is given up.
"""
BEHIND, AHEAD, CHANGED = 3, 4, 5
"""Why a batch is refused, beside MOVED and EMPTIED: batches before it are missing; later ones are
there; it took effect with other offsets.
"""


class BatchPort(Port):
    """The steps of a commit, and its end. `unsure`: the outcome of a step is not known; `expire`: it
    is not known, and the step is still under way.
    """

    @fallible("unsure, broken, expire", succeeds="looked", within="commit_timeout_s")
    def look(self, batch: int, tries: int) -> None:
        """Read what the target knows. `tries` failed before; pause the longer."""

    @fallible("unsure, broken, expire", succeeds="noted", within="commit_timeout_s")
    def note(self, batch: int) -> None:
        """Say durably which batch, offsets and checkpoint location come next."""

    @fallible("unsure, broken, expire", succeeds="applied", within="commit_timeout_s")
    def apply(self, batch: int) -> None:
        """Let the batch take effect; `unsure` also if it is not the next one by now."""

    @fallible("unsure, broken, expire", succeeds="recorded", within="commit_timeout_s")
    def record(self, batch: int) -> None:
        """Record that the batch has taken effect, once."""

    @fallible("unsure, broken, expire", succeeds="swept", within="commit_timeout_s")
    def sweep(self, batch: int) -> None:
        """Remove what is staged of this batch and of those before."""

    def done(self, batch: int) -> None:
        """The batch has taken effect, now or before."""

    def refused(self, batch: int, reason: int) -> None:
        """Nothing was changed, and Spark must not go on."""

    def failed(self, batch: int) -> None:
        """It may have taken effect or not; the next commit of this batch finds out."""


class QueryBatch(Machine):
    """One call of Spark's, from its look at the target to its end."""

    STATES = (
        IDLE,
        LOOKING,
        NOTING,
        APPLYING,
        RECORDING,
        SWEEPING,
        DONE,
        REFUSED,
        FAILED,
        LEFT,
    )
    INITIAL = IDLE
    TERMINAL = (DONE, REFUSED, FAILED, LEFT)

    system: QueryBatches
    target: BatchPort = output(BatchPort)

    batch: int = Int("batches")
    accepts: int = Int(3, names="MOVED, EMPTIED, LATE")
    """What the user says is meant: MOVED, EMPTIED or LATE; 0 for nothing."""
    held: int = Int("batches")
    """With LATE: how many batches there are."""
    tries: int = Int("batch_retries")

    commit: Trigger
    abort: Trigger
    looked: Trigger
    noted: Trigger
    applied: Trigger
    recorded: Trigger
    swept: Trigger
    unsure: Trigger
    broken: Trigger
    expire: Trigger

    # fmt: off
    ROWS: ClassVar[tuple[Row, ...]] = (
        Row("commit",   IDLE,      LOOKING,   None,
            "enter, ask_look",            "every task of the batch has staged what it has"),

        Row("abort",    IDLE,      LEFT,      None,
            None,                         "the batch may have taken effect; what it staged is swept later"),

        Row("looked",   LOOKING,   REFUSED,   "is_strange",
            "refuse_origin",              "a copied or emptied checkpoint location writes rows again, or loses some"),
        Row("looked",   LOOKING,   REFUSED,   "not is_strange and is_behind",
            "refuse_behind",              "rows of batches before it are missing"),
        Row("looked",   LOOKING,   REFUSED,   "not is_strange and not is_behind and is_ahead",
            "refuse_ahead",               "the checkpoint location is older than the target, or this driver was replaced"),
        Row("looked",   LOOKING,   REFUSED,
            "not is_strange and not is_behind and not is_ahead and is_there and is_other",
            "refuse_changed",             "the batch took effect with other rows"),
        Row("looked",   LOOKING,   SWEEPING,
            "not is_strange and not is_behind and not is_ahead and is_there and not is_other",
            "ask_sweep",                  "the batch took effect before: nothing is applied again"),
        Row("looked",   LOOKING,   NOTING,
            "not is_strange and not is_behind and not is_ahead and not is_there",
            "ask_note",                   "every batch before it has taken effect"),

        Row("noted",    NOTING,    APPLYING,  None,
            "ask_apply",                  "a replay will tell its offsets from others"),

        Row("applied",  APPLYING,  SWEEPING,  "is_recorded",
            "ask_sweep",                  "the effect carries the number"),
        Row("applied",  APPLYING,  RECORDING, "not is_recorded",
            "ask_record",                 "nothing but the record tells that it took effect"),

        Row("recorded", RECORDING, SWEEPING,  None,
            "ask_sweep",                  "a replay will skip it"),

        Row("swept",    SWEEPING,  DONE,      None,
            "report_done",                "nothing is left of attempts that failed"),

        Row("unsure",   (LOOKING, NOTING, APPLYING), LOOKING, "may_retry",
            "count_retry, ask_look",      "an answer was lost, or others came before: the target tells"),
        Row("unsure",   RECORDING, STAY,      "may_retry",
            "count_retry, ask_record",    "recording again changes nothing"),
        Row("unsure",   (LOOKING, NOTING, APPLYING, RECORDING), FAILED, "not may_retry",
            "report_failed",              "the next commit of this batch finds out"),

        Row("broken",   (LOOKING, NOTING, APPLYING, RECORDING), FAILED, None,
            "report_failed",              "trying again would not help"),
        Row("broken",   SWEEPING,  DONE,      None,
            "report_done",                "the batch has taken effect, and the next commit sweeps again"),
        Row("unsure",   SWEEPING,  DONE,      None,
            "report_done",                "the batch has taken effect, and is swept or will be"),

        Row("expire",   (LOOKING, NOTING, APPLYING, RECORDING), FAILED, None,
            "report_failed",              "nothing runs beside a step that is under way: the next commit finds out"),
        Row("expire",   SWEEPING,  DONE,      None,
            "report_done",                "the batch has taken effect, and what is swept late is needed by none"),
    )
    # fmt: on

    def is_strange(self, number: int, origin: int) -> bool:
        return origin != KNOWN and origin != self.accepts

    def is_behind(self, number: int) -> bool:
        return number < self.batch and not (number == self.held and self.accepts == LATE)

    def is_ahead(self, number: int) -> bool:
        return number > self.batch + 1

    def is_there(self, number: int) -> bool:
        return number == self.batch + 1

    def is_other(self, number: int, origin: int, others: int) -> bool:
        return others > 0

    def is_recorded(self, carries: int) -> bool:
        return carries > 0

    def may_retry(self) -> bool:
        return self.tries < self.system.batch_retries

    def enter(self, batch: int, accepts: int, held: int) -> None:
        self.batch = batch
        self.accepts = accepts
        self.held = held

    def ask_look(self) -> None:
        self.target.look(self.batch, self.tries)

    def ask_note(self) -> None:
        self.target.note(self.batch)

    def ask_apply(self) -> None:
        self.target.apply(self.batch)

    def ask_record(self) -> None:
        self.target.record(self.batch)

    def ask_sweep(self) -> None:
        self.target.sweep(self.batch)

    def count_retry(self) -> None:
        self.tries += 1

    def refuse_origin(self, number: int, origin: int) -> None:
        self.target.refused(self.batch, origin)

    def refuse_behind(self) -> None:
        self.target.refused(self.batch, BEHIND)

    def refuse_ahead(self) -> None:
        self.target.refused(self.batch, AHEAD)

    def refuse_changed(self) -> None:
        self.target.refused(self.batch, CHANGED)

    def report_done(self) -> None:
        self.target.done(self.batch)

    def report_failed(self) -> None:
        self.target.failed(self.batch)


class QueryBatches(System):
    """The one commit or abort that a process makes."""

    CONSTANTS: ClassVar[dict[str, int]] = {"batch_retries": 6}

    batch_retries: int

    query_batch: QueryBatch = machines(QueryBatch)
