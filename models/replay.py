"""The replay window of a streaming query: the sink has committed, the query's own log has not.

A driver plans a batch in its offset log, lets the sink write it, and notes it in its commit log. If
it dies between the last two, the next driver finds the batch planned and not committed, and plays
the same batch id again. A driver that is only believed dead, a zombie, may go on beside its
successor.

The sink that holds keeps a ledger keyed by query and batch, and writes rows and entry in one step.
A driver looks into the ledger first, and writes only if it is still the newest driver: the sink
knows the newest generation, the fence, from the start of each driver.

Source: Apache Spark's micro-batch execution: offsets are logged before a batch, its commit after
it, and a batch that is planned but not committed is run again with the same offsets.
"""

from __future__ import annotations

from typing import ClassVar

from epochgate.fsm import Array, Bool, Int, Machine, Row, Trigger
from epochgate.fsm.closed import ClosedSystem, Step, always, sometimes, terminal
from epochgate.fsm.system import machines

ABSENT, READY, PLANNED, LOOKED, WRITTEN = "absent", "ready", "planned", "looked", "written"
ENDED, DEAD = "ended", "dead"


class Driver(Machine):
    """One driver process; the next one in the index set starts when this one is believed dead."""

    INDEX = ("driver",)
    STATES = (ABSENT, READY, PLANNED, LOOKED, WRITTEN, ENDED, DEAD)
    INITIAL = ABSENT
    TERMINAL = (ENDED, DEAD)

    system: Replay
    driver: int

    batch: int = Int("B")
    """The batch that it is at."""
    is_replay: bool = Bool()
    """A driver before it has planned the batch too."""
    saw_entry: bool = Bool()

    start: Trigger
    plan: Trigger
    look: Trigger
    write: Trigger
    note: Trigger
    finish: Trigger
    die: Trigger

    # fmt: off
    ROWS: ClassVar[tuple[Row, ...]] = (
        Row("start",  ABSENT,  READY,   "is_next",                       "count_start, raise_fence", "the driver before it is believed dead"),

        Row("plan",   READY,   PLANNED, "has_batch",                     "take_batch",               "the next batch, or one planned and not committed"),
        Row("finish", READY,   ENDED,   "not has_batch",                 None,                       "all batches are committed"),

        Row("look",   PLANNED, LOOKED,  None,                            "look_up",                  "is the batch in the ledger?"),

        Row("write",  LOOKED,  WRITTEN, "not has_entry and may_write",     "write_batch",              "rows and entry in one step"),
        Row("write",  LOOKED,  ENDED,   "not has_entry and not may_write", None,                       "the sink refuses a driver that has a successor"),
        Row("write",  LOOKED,  WRITTEN, "has_entry",                     "skip_batch",               "a driver before it has written the batch"),

        Row("note",   WRITTEN, READY,   "may_note",                      "log_commit",               "the query's own commit log"),
        Row("note",   WRITTEN, ENDED,   "not may_note",                  None,                       "the log has the entry of another driver, which ends this one"),

        Row("die", (READY, PLANNED, LOOKED, WRITTEN), DEAD, "may_die",   "count_death",              "it is killed"),
    )
    # fmt: on

    def is_next(self) -> bool:
        return self.system.log.started == self.driver and self.system.log.may_start()

    def has_batch(self) -> bool:
        return self.system.log.committed < self.system.B

    def has_entry(self) -> bool:
        return self.saw_entry

    def may_write(self) -> bool:
        return self.system.sink.takes(self.driver)

    def may_note(self) -> bool:
        return self.system.log.committed == self.batch

    def may_die(self) -> bool:
        return self.system.log.deaths < self.system.deaths

    def count_start(self) -> None:
        self.system.log.started += 1

    def raise_fence(self) -> None:
        self.system.sink.raise_fence(self.driver)

    def take_batch(self) -> None:
        self.batch = self.system.log.committed
        self.is_replay = self.system.log.planned > self.batch
        self.system.log.planned = self.batch + 1

    def look_up(self) -> None:
        self.saw_entry = self.system.sink.has(self.batch, self.driver)

    def write_batch(self) -> None:
        self.system.sink.write(self.batch, self.driver)

    def skip_batch(self) -> None:
        pass

    def log_commit(self) -> None:
        assert self.system.sink.rows[self.batch] > 0, "what the query has committed is in the sink"
        self.system.log.committed += 1

    def count_death(self) -> None:
        self.system.log.deaths += 1

    def is_gone(self) -> bool:
        return self.state == ENDED or self.state == DEAD


class Log(Machine):
    """What outlives drivers: how many there were, and the query's offset and commit logs."""

    system: Replay

    started: int = Int("D")
    planned: int = Int("B")
    committed: int = Int("B")
    deaths: int = Int("deaths")

    def may_start(self) -> bool:
        """Whether the newest driver is believed dead: it is, or it is taken for it."""
        return (
            self.started == 0
            or self.system.zombies > 0
            or self.system.driver[self.started - 1].state == DEAD
        )


class Sink(Machine):
    """A sink with a ledger by query and batch, and a fence."""

    system: Replay

    rows: list[int] = Array(Int("D"), "B")
    """How often the rows of a batch are there."""
    has_entry: list[bool] = Array(Bool(), "B")
    fence: int = Int("D")

    def has(self, batch: int, driver: int) -> bool:
        return self.has_entry[batch]

    def takes(self, driver: int) -> bool:
        return driver == self.fence

    def raise_fence(self, driver: int) -> None:
        self.fence = driver

    def write(self, batch: int, driver: int) -> None:
        self.has_entry[batch] = True
        self.rows[batch] += 1


class Replay(ClosedSystem):
    """B batches, at most D drivers, of which `deaths` die; with `zombies` any may be taken for
    dead.
    """

    INDEX_SETS: ClassVar[dict[str, str]] = {"driver": "D"}
    CONSTANTS: ClassVar[dict[str, int]] = {"B": 2, "D": 3, "deaths": 2, "zombies": 1}
    STEPS: ClassVar[tuple[Step, ...]] = (
        Step("driver", "start"),
        Step("driver", "plan"),
        Step("driver", "look"),
        Step("driver", "write"),
        Step("driver", "note"),
        Step("driver", "finish"),
        Step("driver", "die", is_fair=False),
    )

    B: int
    D: int
    deaths: int
    zombies: int

    driver: list[Driver] = machines(Driver)
    log: Log = machines(Log)
    sink: Sink = machines(Sink)

    @sometimes("a driver dies in the window and the next one plays its batch again")
    def plays_again(self) -> bool:
        return self.driver[0].state == DEAD and self.driver[1].saw_entry

    @sometimes("a zombie is about to write a batch that its successor has written")
    def has_zombie(self) -> bool:
        return self.driver[0].state == LOOKED and self.driver[1].state == WRITTEN

    @sometimes("all batches are committed")
    def commits_all(self) -> bool:
        return self.log.committed == self.B

    @always("no batch is in the sink twice")
    def is_there_once(self) -> bool:
        return all(self.sink.rows[b] <= 1 for b in range(self.B))

    @terminal("every driver is gone, and all is committed unless the last driver has died")
    def is_over(self) -> bool:
        return all(
            self.driver[d].is_gone() or self.driver[d].state == ABSENT for d in range(self.D)
        ) and (self.log.committed == self.B or self.log.started == self.D)
