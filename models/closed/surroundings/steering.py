"""The surroundings of the decisions for batches: Spark's two logs, and the drivers of one query."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from epochgate.fsm import STAY, Array, Bool, Int, Row, Trigger
from epochgate.models.batch_decision import BatchDecision
from epochgate.models.closed.surroundings import entries
from epochgate.models.closed.surroundings.entries import RESTART, Entries

if TYPE_CHECKING:
    from epochgate.models.closed.steering import SteeredQuery

GONE, UP, DECIDING, RUNNING = "gone", "up", "deciding", "running"


class Decider(BatchDecision):
    """The machine that runs in production; the next process has another."""

    restart: Trigger

    ROWS: ClassVar[tuple[Row, ...]] = (*BatchDecision.ROWS, RESTART)

    def forget_all(self) -> None:
        self.batch = 0
        self.has_maker = False
        self.behind = 0
        self.version = 0
        self.since = 0
        self.tries = 0


class Query(Entries):
    """Spark's offset log and commit log, the store of decisions, and what tasks have seen."""

    system: SteeredQuery

    planned: int = Int("batches")
    """The newest batch in the offset log; 0 for none."""
    decided: list[int] = Array(Int("versions"), "slots")
    since: list[int] = Array(Int("batches"), "slots")
    """With which version, and since which batch."""
    seen: list[int] = Array(Int("versions"), "slots")
    """With which version the first task has run it."""
    due: list[int] = Array(Int("versions"), "slots")
    """The newest version when the batch was planned, unless it was lost."""
    has_kept: bool = Bool()
    """What is forgotten was not removed: the next batch that is decided is to."""
    replays: int = Int(1)
    clashes: int = Int(1)

    remember: Trigger

    # fmt: off
    ROWS: ClassVar[tuple[Row, ...]] = (
        Row("remember", "up", STAY, None, "note_planned", "the offsets of a batch are durable"),
    )
    # fmt: on

    def note_planned(self, batch: int) -> None:
        self.planned = batch
        self.due[batch] = self.system.user.version

    def lower_dues(self, version: int) -> None:
        for b in range(self.system.slots):
            if self.due[b] > version:
                self.due[b] = version

    def create(self, batch: int, version: int, since: int) -> bool:
        """Return whether there was none: then there is this one."""
        is_new = self.add(batch)
        if is_new:
            self.decided[batch] = version
            self.since[batch] = since
        return is_new

    def empty(self, batch: int) -> None:
        self.decided[batch] = 0
        self.since[batch] = 0

    def see(self, batch: int, version: int) -> None:
        """A task runs the batch with this version."""
        assert not self.is_seen[batch] or self.seen[batch] == version, (
            "two runs of one batch see one version"
        )
        assert version >= self.due[batch], "a batch sees each update that was there before it"
        assert all(
            b == batch
            or not self.is_seen[b]
            or (self.seen[b] <= version) == (b < batch)
            or self.seen[b] == version
            for b in range(self.system.slots)
        ), "versions are seen in their order"
        if self.is_seen[batch]:
            self.replays = 1
        self.is_seen[batch] = True
        self.seen[batch] = version
        self.system.asker.hold_against(batch, version)


class Driver(entries.Driver):
    """Runs each batch with what is decided for it; `version` is what the function was given."""

    STATES = (GONE, UP, DECIDING, RUNNING)
    INITIAL = GONE

    system: SteeredQuery
    served: Decider
    entries: Query
    PEERS: ClassVar[dict[str, str]] = {
        "served": "batch_decision",
        "entries": "query",
        "client": "client",
    }

    worked: int = Int("tasks")
    """How many tasks of the batch have run."""

    start: Trigger
    plan: Trigger
    run: Trigger
    refuse: Trigger
    fail: Trigger
    work: Trigger
    commit: Trigger
    die: Trigger

    # fmt: off
    ROWS: ClassVar[tuple[Row, ...]] = (
        Row("start",  GONE,                    UP,       "may_start and not has_planned",
            "count_start, read_committed",  "all that was planned is committed"),
        Row("start",  GONE,                    DECIDING, "may_start and has_planned",
            "count_start, read_planned, decide", "the batch that is not committed is run again"),

        Row("plan",   UP,                      DECIDING, "has_more and is_next",
            "plan_next, decide",            "there is data: its offsets are made durable"),
        Row("plan",   UP,                      GONE,     "has_more and not is_next",
            "restart",                      "another driver has planned this batch"),

        Row("run",    DECIDING,                RUNNING,  None,
            "note_version",                 "the function is called"),
        Row("refuse", DECIDING,                GONE,     None,
            "restart",                      "the query fails"),
        Row("fail",   DECIDING,                GONE,     None,
            "restart",                      "the query fails"),

        Row("work",   RUNNING,                 STAY,     "has_tasks",
            "run_task",                     "a task sees the value that travels with it"),
        Row("commit", RUNNING,                 UP,       "not has_tasks and is_first",
            "commit_batch",                 "the batch is over"),
        Row("commit", RUNNING,                 GONE,     "not has_tasks and not is_first",
            "restart",                      "another driver has committed this batch"),

        Row("die",    (UP, DECIDING, RUNNING), GONE,     "may_fail",
            "spend_failure, restart",       "the process is killed"),
    )
    # fmt: on

    def has_planned(self) -> bool:
        return self.entries.planned > self.entries.committed

    def is_next(self) -> bool:
        return self.entries.planned == self.batch

    def has_tasks(self) -> bool:
        return self.worked < self.system.tasks

    def read_planned(self) -> None:
        self.batch = self.entries.planned

    def plan_next(self) -> None:
        self.batch += 1
        self.entries.remember(self.batch)

    def decide(self) -> None:
        self.served.begin(self.batch)

    def note_version(self, version: int) -> None:
        self.version = version

    def run_task(self) -> None:
        self.worked += 1
        self.entries.see(self.batch, self.told())

    def told(self) -> int:
        """The value that travels with a task."""
        return self.version

    def commit_batch(self) -> None:
        self.entries.committed = self.batch
        self.worked = 0
        self.version = 0

    def wanted(self) -> int:
        return self.batch

    def restart(self) -> None:
        self.worked = 0
        self.stop()
