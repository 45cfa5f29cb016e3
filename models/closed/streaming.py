"""A closed system around the commit of batches: each batch of a query takes effect exactly once.

Spark writes the offsets of a batch before it runs, and its end after `commit`. A driver is killed
between any two steps, or is taken for dead and goes on beside the next one; the next one replays
the batch that has offsets and no end. Answers are lost, other writers of the table come before, and
attempts of tasks leave files. People copy, move or empty the checkpoint location, bring an older
state of it back, or drop the table::

    offsets   0: a          1: b                                 1: b
    driver    commit(0)     commit(1) ... X       the next one   commit(1)
    table     number 1, a                 number 2, b            2: skipped

`QueryBatch` is the machine that runs in production. That a batch takes effect with its number, and
only as the next one, is a property of the table, and one step here; `RecordedAfterwards` has a
function in the place of the table, whose effect is one step and whose record is another.
"""

from __future__ import annotations

from typing import ClassVar

from epochgate.fsm import machines
from epochgate.fsm.closed import ClosedSystem, Step, always, leads_to, sometimes, terminal
from epochgate.models.closed.surroundings.query_table import (
    COPIED,
    DROPPED,
    MOVED_AWAY,
    SET_BACK,
    WIPED,
    Location,
    Table,
    User,
)
from epochgate.models.closed.surroundings.streaming import (
    CALLED,
    DOWN,
    PLANNED,
    READY,
    Commit,
    Driver,
)
from epochgate.models.query_batch import FAILED, REFUSED


class StreamingQuery(ClosedSystem):
    """A streaming query whose batches take effect with their numbers: each of them once.

    `acts`: 1 lets people copy, move, empty or set back the checkpoint location, or drop the table.
    """

    INDEX_SETS: ClassVar[dict[str, str]] = {"driver": "drivers", "place": "locations"}
    CONSTANTS: ClassVar[dict[str, int]] = {
        "drivers": 2,
        "locations": 2,
        "queries": 2,
        "K": 2,
        "F": 2,
        "acts": 1,
        "carried": 1,
        "accepts": 0,
        "batch_retries": 1,
    }
    DERIVED: ClassVar[dict[str, str]] = {"batches": "K + 0", "looks": "batch_retries + 1"}
    STEPS: ClassVar[tuple[Step, ...]] = (
        Step("driver", "start"),
        Step("driver", "start_copy", is_fair=False),
        Step("driver", "plan"),
        Step("driver", "run"),
        Step("driver", "step"),
        Step("driver", "answer"),
        Step("driver", "log"),
        Step("driver", "abort"),
        Step("driver", "spill", is_fair=False),
        Step("driver", "lose", is_fair=False),
        Step("driver", "unheard", is_fair=False),
        Step("driver", "fail", is_fair=False),
        Step("driver", "hang", is_fair=False),
        Step("driver", "arrive"),
        Step("driver", "die", is_fair=False),
        Step("user", "copy", is_fair=False),
        Step("user", "move", is_fair=False),
        Step("user", "wipe", is_fair=False),
        Step("user", "set_back", is_fair=False),
        Step("user", "drop", is_fair=False),
    )
    UNREAD: ClassVar[dict[str, str]] = {
        "table.is_staged": "a broken design, which trusts staged rows, reads it"
    }
    UNTAKEN: ClassVar[dict[str, str]] = {
        "query_batch.applied: nothing but the record tells that it took effect": (
            "explored in `recording`"
        ),
        "query_batch.recorded": "explored in `recording`",
        "query_batch.unsure: recording again changes nothing": "explored in `recording`",
    }
    WIRING: ClassVar[dict[str, str]] = {"query_batch.target": "driver"}

    drivers: int
    locations: int
    queries: int
    batches: int
    K: int
    F: int
    acts: int
    carried: int
    accepts: int
    batch_retries: int
    looks: int

    query_batch: list[Commit] = machines(Commit)
    driver: list[Driver] = machines(Driver)
    location: list[Location] = machines(Location)
    table: Table = machines(Table)
    user: User = machines(User)

    def has_driver_at(self, place: int) -> bool:
        """Return whether a driver lives there."""
        return any(
            self.driver[d].state != DOWN and self.driver[d].place == place
            for d in range(self.drivers)
        )

    def has_late_step(self) -> bool:
        """Return whether a step that hung may yet be done."""
        return any(self.driver[d].late > 0 for d in range(self.drivers))

    @always("Q2: rows are in the table once at most, whatever is replayed, copied or emptied")
    def shows_no_row_twice(self) -> bool:
        return all(self.table.effects[b] <= 1 for b in range(self.K))

    @always(
        "Q2: what Spark has logged as committed is in the table, with its offsets", when="has_table"
    )
    def shows_what_is_logged(self) -> bool:
        return all(
            b >= self.location[p].committed
            or (self.table.effects[b] > 0 and self.table.shown[b] == self.location[p].offsets[b])
            for p in range(self.locations)
            for b in range(self.K)
        )

    def has_table(self) -> bool:
        return self.user.act != DROPPED

    @always("Q3: what counts as committed is in the table, and stays", when="has_table")
    def undoes_nothing(self) -> bool:
        return all(
            b >= self.table.number[q] or self.table.effects[b] > 0
            for q in range(self.queries)
            for b in range(self.K)
        )

    @always("Q4: what an attempt that failed has staged is never shown")
    def hides_failed_attempts(self) -> bool:
        return not self.table.shows_staged

    @leads_to(
        "Q5: once failures stop, each batch of a query that is let go on ends", then="has_ended"
    )
    def is_under_way(self) -> bool:
        return not self.has_ended()

    def has_ended(self) -> bool:
        """Of a copy that was used first the query is the copy's, and the first location refused."""
        return (
            self.user.act == WIPED
            or self.user.act == SET_BACK
            or self.user.act == DROPPED
            or (self.user.act == COPIED and self.table.noted_place[0] == 1)
            or self.location[self.user.home()].committed == self.K
        )

    @sometimes("a driver that was taken for dead commits a batch beside the next driver")
    def has_a_zombie(self) -> bool:
        return (
            self.driver[0].state == CALLED
            and self.driver[1].state == CALLED
            and self.driver[0].place == self.driver[1].place
            and self.driver[0].batch == self.driver[1].batch
        )

    @sometimes("a batch is replayed that took effect before")
    def replays(self) -> bool:
        return any(
            self.driver[d].state == PLANNED
            and self.table.number[self.driver[d].query] == self.driver[d].batch + 1
            for d in range(self.drivers)
        )

    @sometimes("a commit fails for all that Spark knows, and its batch has taken effect")
    def fails_after_the_effect(self) -> bool:
        return any(
            self.query_batch[d].state == FAILED
            and self.table.number[self.driver[d].query] == self.query_batch[d].batch + 1
            for d in range(self.drivers)
        )

    @sometimes("a query on a copied checkpoint location is refused")
    def refuses_a_copy(self) -> bool:
        return self.user.act == COPIED and any(
            self.query_batch[d].state == REFUSED and self.driver[d].place == 1
            for d in range(self.drivers)
        )

    @sometimes("a query whose checkpoint location was moved goes on, as its option says")
    def goes_on_elsewhere(self) -> bool:
        return self.user.act == MOVED_AWAY and self.location[1].committed == self.K

    @sometimes("a query on an emptied checkpoint location is refused")
    def refuses_an_emptied_one(self) -> bool:
        return self.user.act == WIPED and any(
            self.query_batch[d].state == REFUSED for d in range(self.drivers)
        )

    @sometimes("a query on an older state of its checkpoint location is refused")
    def refuses_an_older_one(self) -> bool:
        return self.user.act == SET_BACK and any(
            self.query_batch[d].state == REFUSED for d in range(self.drivers)
        )

    @sometimes("a query whose table is gone is refused")
    def refuses_another_table(self) -> bool:
        return self.user.act == DROPPED and any(
            self.query_batch[d].state == REFUSED for d in range(self.drivers)
        )

    @terminal("no batch is under way, and every batch that may take effect has")
    def is_at_rest(self) -> bool:
        return self.has_ended() and all(
            self.driver[d].state == DOWN or self.driver[d].state == READY
            for d in range(self.drivers)
        )


class RecordedAfterwards(StreamingQuery):
    """A function whose batches are recorded afterwards: each takes effect at least once.

    What a driver that dies in between has written is written again by the next.
    """

    CONSTANTS: ClassVar[dict[str, int]] = {**StreamingQuery.CONSTANTS, "carried": 0}
    UNTAKEN: ClassVar[dict[str, str]] = {
        "query_batch.applied: the effect carries the number": "explored in `streaming`",
    }

    shows_no_row_twice = None  # type: ignore[assignment]  # at least once is what it gives

    @sometimes("a batch is written again whose driver has died before the record")
    def writes_again(self) -> bool:
        return any(self.table.effects[b] > 1 for b in range(self.K))
