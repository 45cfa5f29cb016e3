"""Commits of a streaming query's batches that lose or double rows, each by one deviation."""

from __future__ import annotations

from typing import ClassVar

from epochgate.fsm import Row, machines, output
from epochgate.models.closed.streaming import RecordedAfterwards, StreamingQuery
from epochgate.models.closed.surroundings.query_table import Table
from epochgate.models.closed.surroundings.streaming import (
    APPLY,
    LOOK,
    NOTE,
    NOTHING,
    RECORD,
    SWEEP,
    Commit,
    Driver,
)
from epochgate.models.query_batch import (
    APPLYING,
    IDLE,
    LEFT,
    NOTING,
    RECORDING,
    SWEEPING,
    BatchPort,
)


class AppendingTable(Table):
    """A table that appends whatever it is given, as the sink of Spark's tutorial does."""

    def knows(self, query: int, batch: int) -> bool:
        return False

    def count(self, query: int, batch: int) -> None:
        self.number[query] = batch + 1


class TrustingCommit(Commit):
    """A commit that does not look at the number."""

    def is_behind(self, number: int) -> bool:
        return False

    def is_ahead(self, number: int) -> bool:
        return False

    def is_there(self, number: int) -> bool:
        return False


class Appending(StreamingQuery):
    """A driver dies between the commit and Spark's log of it, and the next replays the batch."""

    query_batch: list[Commit] = machines(TrustingCommit)
    table: Table = machines(AppendingTable)


class SkippingCommit(Commit):
    """A commit that skips every batch up to the number that the table has, as the identifiers of
    Delta's transactions do.
    """

    def is_behind(self, number: int) -> bool:
        return False

    def is_ahead(self, number: int) -> bool:
        return False

    def is_there(self, number: int) -> bool:
        return number > self.batch

    def is_other(self, number: int, origin: int, others: int) -> bool:
        return False


class Skipping(StreamingQuery):
    """An older state of the checkpoint location is brought back, and its batches are skipped."""

    query_batch: list[Commit] = machines(SkippingCommit)


class UndoingPort(BatchPort):
    """The steps, and one that takes a batch back."""

    def undo(self, batch: int) -> None: ...


class UndoingCommit(Commit):
    """An abort that takes back what the batch has written."""

    target: UndoingPort = output(UndoingPort)

    # fmt: off
    ROWS: ClassVar[tuple[Row, ...]] = (
        *(row for row in Commit.ROWS if row.trigger != "abort"),
        Row("abort", IDLE, LEFT, None, "take_back", "Spark says that the batch has failed"),
    )
    # fmt: on

    def take_back(self, batch: int) -> None:
        self.target.undo(batch)


class UndoingDriver(Driver):
    """Passes on which batch has failed."""

    def call_abort(self) -> None:
        self.system.query_batch[self.driver].restart()
        self.system.query_batch[self.driver].abort(self.batch)

    def undo(self, batch: int) -> None:
        self.system.table.effects[batch] = 0


class Undoing(StreamingQuery):
    """The answer of a commit is lost, and Spark's abort undoes it."""

    query_batch: list[Commit] = machines(UndoingCommit)
    driver: list[Driver] = machines(UndoingDriver)


class ForgetfulTable(Table):
    """Notes that have the newest batch alone."""

    def differs(self, query: int, batch: int, offsets: int) -> int:
        is_other = (
            self.is_noted[query]
            and self.noted_batch[query] == batch
            and self.noted_offsets[query] != offsets
        )
        return 1 if is_other else 0


class OneNote(StreamingQuery):
    """The note of the next batch covers that of the last one that took effect."""

    table: Table = machines(ForgetfulTable)


class HastyDriver(Driver):
    """Notes that are written over whatever is there."""

    def may_note(self) -> bool:
        return True


class NotesOverwritten(StreamingQuery):
    """A query and its copy look at the table before either has noted anything."""

    driver: list[Driver] = machines(HastyDriver)


class ListingDriver(Driver):
    """A commit of all that is staged for the batch, in the place of what Spark's messages name."""

    def apply_batch(self) -> None:
        if self.system.table.is_staged[self.batch]:
            self.system.table.shows_staged = True
        self.system.table.take(self.batch, self.offsets)
        self.system.table.count(self.query, self.batch)


class ListedFiles(StreamingQuery):
    """A file that a failed attempt of a task has staged is committed beside the other's."""

    driver: list[Driver] = machines(ListingDriver)


class EarlyRecord(Commit):
    """A batch that is recorded before the function is called."""

    # fmt: off
    ROWS: ClassVar[tuple[Row, ...]] = (
        *(row for row in Commit.ROWS if row.trigger not in ("noted", "applied", "recorded")),
        Row("noted",    NOTING,    RECORDING, None, "ask_record", "it will be done"),
        Row("recorded", RECORDING, APPLYING,  None, "ask_apply",  "it is recorded"),
        Row("applied",  APPLYING,  SWEEPING,  None, "ask_sweep",  "it is done"),
    )
    # fmt: on


class EarlyDriver(Driver):
    """Calls the function although its batch is recorded."""

    def apply_batch(self) -> None:
        self.system.table.take(self.batch, self.offsets)

    def act(self) -> None:
        asked = self.asked
        self.asked = NOTHING
        if asked == LOOK:
            self.system.query_batch[self.driver].looked(
                self.system.table.number[self.query],
                self.system.table.origin(self.query, self.place),
                self.system.table.differs(self.query, self.batch, self.offsets),
            )
        if asked == NOTE:
            self.write_note()
            self.system.query_batch[self.driver].noted()
        if asked == APPLY:
            self.asked = APPLY
            self.apply_batch()
            self.has_applied = True
        if asked == RECORD:
            self.record_batch()
            self.system.query_batch[self.driver].recorded()
        if asked == SWEEP:
            self.system.query_batch[self.driver].swept()

    def tell_applied(self) -> None:
        self.asked = NOTHING
        self.has_applied = False
        self.system.query_batch[self.driver].applied()


class RecordedBefore(RecordedAfterwards):
    """The driver dies between the record and the call, and the next skips the batch."""

    UNTAKEN: ClassVar[dict[str, str]] = {}

    query_batch: list[Commit] = machines(EarlyRecord)
    driver: list[Driver] = machines(EarlyDriver)
