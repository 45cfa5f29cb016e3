"""The surroundings of the plans of batches: the source with Spark's two logs, and the drivers of
one query.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from epochgate.fsm import STAY, Array, Int, Row, Trigger
from epochgate.models.batch_plan import BatchPlan
from epochgate.models.closed.surroundings import entries
from epochgate.models.closed.surroundings.entries import RESTART, Entries

if TYPE_CHECKING:
    from epochgate.models.closed.planning import PlannedQuery
    from epochgate.models.closed.surroundings.plan_store import Client

GONE, UP, ASKING, TOLD = "gone", "up", "asking", "told"
RUNNING, READING = "running", "reading"


class Planner(BatchPlan):
    """The machine that runs in production; the next process has another."""

    restart: Trigger

    ROWS: ClassVar[tuple[Row, ...]] = (*BatchPlan.ROWS, RESTART)

    def forget_all(self) -> None:
        self.batch = 0
        self.has_maker = False
        self.behind = 0
        self.version = 0
        self.tries = 0


class Stream(Entries):
    """The splits of the source, counted; the plans in the store; Spark's logs; and what was run.

    The splits of a plan are those behind `first` up to `last`, and the state that it holds is
    `last`: how many were given out. The filter that the plan holds prunes the first split of the
    source from its first version on, and no other: version 0 prunes none.
    """

    system: PlannedQuery

    there: int = Int("S")
    """How many splits can be found."""
    first: list[int] = Array(Int("S"), "slots")
    last: list[int] = Array(Int("S"), "slots")
    filtered: list[int] = Array(Int("versions"), "slots")
    """The version of the filter in the plan."""
    version: int = Int("versions")
    """The newest version of the filter."""
    logged: int = Int("batches")
    seen_first: list[int] = Array(Int("S"), "slots")
    seen_last: list[int] = Array(Int("S"), "slots")
    seen_version: list[int] = Array(Int("versions"), "slots")
    replays: int = Int(2)
    """1: a batch was run again; 2: one behind a change of the filter."""

    appear: Trigger
    update: Trigger
    note: Trigger

    # fmt: off
    ROWS: ClassVar[tuple[Row, ...]] = (
        Row("appear", "up", STAY, "has_more", "count_split", "the source has another split"),
        Row("update", "up", STAY, "may_update", "count_version", "the filter is changed"),
        Row("note",   "up", STAY, None,       "note_logged", "the offset of a batch is durable"),
    )
    # fmt: on

    def has_more(self) -> bool:
        return self.there < self.system.S

    def count_split(self) -> None:
        self.there += 1

    def may_update(self) -> bool:
        return self.version < self.system.versions

    def count_version(self) -> None:
        self.version += 1

    def is_matched(self, first: int, last: int, version: int) -> bool:
        """Return whether the filter leaves one of these splits."""
        return first > 0 or last > 1 or version == 0

    def note_logged(self, batch: int) -> None:
        self.logged = batch

    def create(self, batch: int, first: int, last: int, version: int, is_swept: bool) -> bool:
        """Return whether there was none: then there is this one."""
        is_new = self.add(batch)
        if is_new:
            self.first[batch] = first
            self.last[batch] = last
            self.filtered[batch] = version
            assert self.is_stray[batch] or not is_swept, "no plan refers to what was swept"
        return is_new

    def empty(self, batch: int) -> None:
        self.first[batch] = 0
        self.last[batch] = 0
        self.filtered[batch] = 0

    def see(self, batch: int) -> None:
        """The tasks of a batch read what its plan names."""
        if self.is_seen[batch]:
            assert self.seen_first[batch] == self.first[batch], (
                "two runs of one batch begin with the same split"
            )
            assert self.seen_last[batch] == self.last[batch], (
                "two runs of one batch end with the same split"
            )
            assert self.seen_version[batch] == self.version_for(batch), (
                "two runs of one batch are pruned by one filter"
            )
            self.count_replay(batch)
        self.is_seen[batch] = True
        self.seen_first[batch] = self.first[batch]
        self.seen_last[batch] = self.last[batch]
        self.seen_version[batch] = self.version_for(batch)

    def version_for(self, batch: int) -> int:
        """Of the filter by which the tasks of a batch read: that of its plan."""
        return self.filtered[batch]

    def count_replay(self, batch: int) -> None:
        if self.replays == 0:
            self.replays = 1
        if self.version > self.filtered[batch]:
            self.replays = 2


class Driver(entries.Driver):
    """Runs each batch by its plan; `version` is that of the newest filter when Spark asked for it."""

    STATES = (GONE, UP, ASKING, TOLD, RUNNING, READING)
    INITIAL = GONE

    system: PlannedQuery
    served: Planner
    client: Client
    entries: Stream
    PEERS: ClassVar[dict[str, str]] = {
        "served": "batch_plan",
        "entries": "stream",
        "client": "client",
    }

    start: Trigger
    ask: Trigger
    tell: Trigger
    tell_none: Trigger
    refuse: Trigger
    fail: Trigger
    log: Trigger
    work: Trigger
    withhold: Trigger
    commit: Trigger
    die: Trigger

    # fmt: off
    ROWS: ClassVar[tuple[Row, ...]] = (
        Row("start",     GONE,    UP,      "may_start and not has_logged",
            "count_start, read_committed, find_old", "all that was logged is committed"),
        Row("start",     GONE,    TOLD,    "may_start and has_logged",
            "count_start, read_committed, find_old", "the batch that is not committed is run again"),

        Row("ask",       UP,      ASKING,  "has_more",
            "ask_plan",                    "the trigger fires"),
        Row("tell",      ASKING,  TOLD,    None,
            "end_question",                "there is a batch"),
        Row("tell_none", ASKING,  UP,      None,
            "end_question",                "there is none now"),
        Row("refuse",    ASKING,  GONE,    None,
            "stop",                        "the query fails"),
        Row("fail",      ASKING,  UP,      None,
            "end_question",                "nothing was planned: Spark asks again, or the query fails"),

        Row("log",       TOLD,    RUNNING, "is_next",
            "log_next",                    "its offset is made durable"),
        Row("log",       TOLD,    RUNNING, "not is_next and is_mine",
            "take_up",                     "its offset was logged before"),
        Row("log",       TOLD,    GONE,    "not is_next and not is_mine",
            "stop",                        "another driver has gone on"),

        Row("work",      RUNNING, READING, None,
            "ask_splits",                  "the tasks read the splits"),
        Row("fail",      READING, GONE,    None,
            "stop",                        "the plan was not read: the query fails"),
        Row("withhold",  READING, GONE,    None,
            "stop",                        "the plan is forgotten: the batch was committed by another"),
        Row("commit",    READING, UP,      "has_read and is_first",
            "commit_batch",                "the batch is over"),
        Row("commit",    READING, GONE,    "has_read and not is_first",
            "stop",                        "another driver has committed this batch"),

        Row("die",       (UP, ASKING, TOLD, RUNNING, READING), GONE, "may_fail",
            "spend_failure, stop",         "the process is killed"),
    )
    # fmt: on

    def has_logged(self) -> bool:
        return self.entries.logged > self.entries.committed

    def is_next(self) -> bool:
        return self.entries.logged == self.batch

    def is_mine(self) -> bool:
        return (
            self.entries.logged == self.batch + 1
            and self.entries.committed == self.batch
            and not self.served.has_maker
        )

    def has_read(self) -> bool:
        return self.client.has_read

    def ask_plan(self) -> None:
        self.version = self.entries.version
        self.served.begin(self.batch + 1)

    def end_question(self) -> None:
        self.version = 0

    def log_next(self) -> None:
        self.batch += 1
        self.entries.note(self.batch)

    def find_old(self) -> None:
        for d in range(self.system.drivers):
            self.system.client[d].note_old()

    def take_up(self) -> None:
        self.batch += 1

    def ask_splits(self) -> None:
        self.served.run(self.batch)

    def commit_batch(self) -> None:
        self.client.has_read = False
        self.entries.committed = self.batch

    def wanted(self) -> int:
        return self.batch + 1 if self.state == ASKING else self.batch
