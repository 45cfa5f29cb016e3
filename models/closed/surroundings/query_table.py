"""The table of a streaming query, its checkpoint locations with Spark's two logs, and what people do
to them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from epochgate.fsm import STAY, Array, Bool, Int, Row, Trigger
from epochgate.fsm.closed import Environment
from epochgate.models.query_batch import EMPTIED, KNOWN, MOVED

if TYPE_CHECKING:
    from epochgate.models.closed.streaming import StreamingQuery

COPIED, MOVED_AWAY, WIPED, SET_BACK, DROPPED = 1, 2, 3, 4, 5
"""What people do: copy or move a checkpoint location, empty it, bring an older state of it back, or
drop the table.
"""


class Location(Environment):
    """A checkpoint location: Spark's log of offsets and its log of commits."""

    INDEX = ("place",)
    STATES = ("there",)
    INITIAL = "there"

    system: StreamingQuery
    place: int

    query: int = Int(1)
    """The id in its metadata."""
    planned: int = Int("K")
    """How many batches have offsets."""
    committed: int = Int("K")
    history: int = Int(3)
    """Which offsets the batches get that are planned from now on."""
    offsets: list[int] = Array(Int(3), "K")
    is_given_up: bool = Bool()
    """A driver was refused here, and its user does not start it again; of a copy."""

    plan: Trigger
    close: Trigger

    # fmt: off
    ROWS: ClassVar[tuple[Row, ...]] = (
        Row("plan",  "there", STAY, None, "write_offsets", "offsets of a batch are durable, written once"),
        Row("close", "there", STAY, None, "write_commit",  "a batch is over, written once"),
    )
    # fmt: on

    def write_offsets(self) -> None:
        self.offsets[self.planned] = self.history
        self.planned += 1

    def write_commit(self) -> None:
        self.committed += 1


class Table(Environment):
    """The table, with the number that it keeps of each query, and what was noted beside it."""

    STATES = ("there",)
    INITIAL = "there"

    system: StreamingQuery

    number: list[int] = Array(Int("K"), "queries")
    """How many batches of a query have taken effect."""
    is_noted: list[bool] = Array(Bool(), "queries")
    noted_place: list[int] = Array(Int(1), "queries")
    noted_batch: list[int] = Array(Int("K"), "queries")
    noted_offsets: list[int] = Array(Int(3), "queries")
    earlier_offsets: list[int] = Array(Int(3), "queries")
    """Of the batch before, which may be the last that took effect."""
    effects: list[int] = Array(Int(2), "K")
    """How often the rows that stand at this place of the input are in the table; 2: or more."""
    shown: list[int] = Array(Int(3), "K")
    """With which offsets they came."""
    is_staged: list[bool] = Array(Bool(), "K")
    """An attempt of a task of this batch that failed has left a file."""
    shows_staged: bool = Bool()
    """Such a file can be read."""

    take: Trigger

    # fmt: off
    ROWS: ClassVar[tuple[Row, ...]] = (
        Row("take", "there", STAY, None, "show", "a batch takes effect as a whole"),
    )
    # fmt: on

    def show(self, batch: int, offsets: int) -> None:
        if self.effects[batch] < 2:
            self.effects[batch] += 1
        self.shown[batch] = offsets

    def apply(self, query: int, batch: int, offsets: int) -> None:
        """The rows, with the number where the effect carries it."""
        self.take(batch, offsets)
        if self.system.carried > 0:
            self.count(query, batch)

    def count(self, query: int, batch: int) -> None:
        assert self.number[query] == batch, "Q1: batches take effect one after the other"
        self.number[query] = batch + 1

    def record(self, query: int, place: int, batch: int) -> None:
        """Note the number of a batch that has taken effect, unless a later one stands there."""
        if self.number[query] <= batch:
            self.number[query] = batch + 1
            if not self.is_noted[query]:
                self.is_noted[query] = True
                self.noted_place[query] = place
            self.spoil_readings()

    def spoil_readings(self) -> None:
        for d in range(self.system.drivers):
            self.system.driver[d].spoil()

    def knows(self, query: int, batch: int) -> bool:
        """Return whether the batch is not the next one of the query, as the table knows it."""
        return self.number[query] != batch

    def write_note(self, query: int, place: int, batch: int, offsets: int) -> None:
        for q in range(self.system.queries):
            if q != query and self.is_noted[q] and self.noted_place[q] == place:
                self.is_noted[q] = False
        if batch == self.noted_batch[query] + 1:
            self.earlier_offsets[query] = self.noted_offsets[query]
        self.is_noted[query] = True
        self.noted_place[query] = place
        self.noted_batch[query] = batch
        self.noted_offsets[query] = offsets
        self.spoil_readings()

    def origin(self, query: int, place: int) -> int:
        """Compare a query of this id, at this place, with the one that has written before."""
        found = KNOWN
        if self.is_noted[query] and self.noted_place[query] != place:
            found = MOVED
        if not self.is_noted[query]:
            for q in range(self.system.queries):
                if q != query and self.is_noted[q] and self.noted_place[q] == place:
                    found = EMPTIED
        return found

    def differs(self, query: int, batch: int, offsets: int) -> int:
        """1: the batch was noted with other offsets."""
        is_other = self.is_noted[query] and (
            (self.noted_batch[query] == batch and self.noted_offsets[query] != offsets)
            or (self.noted_batch[query] == batch + 1 and self.earlier_offsets[query] != offsets)
        )
        return 1 if is_other else 0

    def sweep(self, batch: int) -> None:
        for b in range(self.system.K):
            if b <= batch:
                self.is_staged[b] = False

    def drop(self) -> None:
        self.shows_staged = False
        self.spoil_readings()
        for q in range(self.system.queries):
            self.number[q] = 0
            self.is_noted[q] = False
            self.noted_place[q] = 0
            self.noted_batch[q] = 0
            self.noted_offsets[q] = 0
            self.earlier_offsets[q] = 0
        for b in range(self.system.K):
            self.effects[b] = 0
            self.shown[b] = 0
            self.is_staged[b] = False


class User(Environment):
    """The user: what people do to checkpoint locations and tables, once; and how many failures
    there were.
    """

    STATES = ("there",)
    INITIAL = "there"

    system: StreamingQuery

    act: int = Int(5, names="COPIED, MOVED_AWAY, WIPED, SET_BACK, DROPPED")
    failures: int = Int("F")

    copy: Trigger
    move: Trigger
    wipe: Trigger
    set_back: Trigger
    drop: Trigger

    # fmt: off
    ROWS: ClassVar[tuple[Row, ...]] = (
        Row("copy",     "there", STAY, "may_act",
            "note_copy, take_copy",  "the checkpoint location is copied, and both are used"),
        Row("move",     "there", STAY, "may_act and is_quiet",
            "note_move, take_copy",  "it is moved, and the option says so"),
        Row("wipe",     "there", STAY, "may_act and is_quiet",
            "note_wipe, empty_it",   "it is emptied, and the query started as a new one"),
        Row("set_back", "there", STAY, "may_act and is_quiet",
            "note_set_back, age_it", "an older state of it is brought back"),
        Row("drop",     "there", STAY, "may_act",
            "note_drop, drop_table", "the table is dropped"),
    )
    # fmt: on

    def may_act(self) -> bool:
        return (
            self.system.acts > 0
            and self.act == 0
            and (self.system.location[0].planned > 0 or self.system.table.is_noted[0])
        )

    def is_quiet(self) -> bool:
        """No driver lives there, and no step that one has left behind."""
        return not self.system.has_driver_at(0) and not self.system.has_late_step()

    def home(self) -> int:
        """Return the place where the query is started."""
        return 1 if self.act == MOVED_AWAY else 0

    def note_copy(self) -> None:
        self.act = COPIED

    def note_move(self) -> None:
        self.act = MOVED_AWAY

    def note_wipe(self) -> None:
        self.act = WIPED

    def note_set_back(self) -> None:
        self.act = SET_BACK

    def note_drop(self) -> None:
        self.act = DROPPED

    def take_copy(self) -> None:
        self.system.location[1].planned = self.system.location[0].planned
        self.system.location[1].committed = self.system.location[0].committed
        self.system.location[1].history = 1
        for b in range(self.system.K):
            self.system.location[1].offsets[b] = self.system.location[0].offsets[b]

    def empty_it(self) -> None:
        self.system.location[0].query = 1
        self.system.location[0].planned = 0
        self.system.location[0].committed = 0
        self.system.location[0].history = 2

    def age_it(self) -> None:
        self.system.location[0].planned = 0
        self.system.location[0].committed = 0
        self.system.location[0].history = 3

    def drop_table(self) -> None:
        self.system.table.drop()
