"""What is around the decisions for batches: Spark's two logs, and the drivers of one query."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from epochgate.fsm import ANY, STAY, Array, Bool, Int, Row, Trigger
from epochgate.fsm.closed import Environment
from epochgate.models.batch_decision import BatchDecision
from epochgate.models.created_once import IDLE

if TYPE_CHECKING:
    from epochgate.models.closed.steering import SteeredQuery

GONE, UP, DECIDING, RUNNING = "gone", "up", "deciding", "running"


class Decider(BatchDecision):
    """The machine that runs in production; the next process has another."""

    restart: Trigger

    # fmt: off
    ROWS: ClassVar[tuple[Row, ...]] = (
        *BatchDecision.ROWS,
        Row("restart", ANY, IDLE, None, "forget_all", "the next process knows nothing of this one"),
    )
    # fmt: on

    def forget_all(self) -> None:
        self.batch = 0
        self.has_maker = False
        self.behind = 0
        self.version = 0
        self.since = 0
        self.tries = 0


class Query(Environment):
    """Spark's offset log and commit log, the store of decisions, and what tasks have seen."""

    STATES = ("up",)
    INITIAL = "up"

    system: SteeredQuery

    planned: int = Int("batches")
    """The newest batch in the offset log; 0 for none."""
    committed: int = Int("batches")
    is_decided: list[bool] = Array(Bool(), "slots")
    """A decision for the batch lies in the store."""
    decided: list[int] = Array(Int("versions"), "slots")
    since: list[int] = Array(Int("batches"), "slots")
    """With which version, and since which batch."""
    newest: int = Int("batches")
    """The newest batch with a decision: it is never removed."""
    is_stray: list[bool] = Array(Bool(), "slots")
    """The decision was made after the batch was forgotten."""
    is_seen: list[bool] = Array(Bool(), "slots")
    """A task has run the batch."""
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
        """Whether there was none: then there is this one."""
        if self.is_decided[batch]:
            self.clashes = 1
            return False
        self.is_decided[batch] = True
        self.decided[batch] = version
        self.since[batch] = since
        self.is_stray[batch] = self.newest >= batch + self.system.retained
        if self.newest < batch:
            self.newest = batch
        return True

    def create_unheard(self, batch: int, version: int, since: int) -> None:
        if not self.is_decided[batch]:
            is_new = self.create(batch, version, since)
            assert is_new, "there was none"

    def remove(self, batch: int) -> None:
        if batch + self.system.retained >= self.newest:
            self.has_kept = False
        for b in range(self.system.slots):
            if b <= batch:
                self.is_decided[b] = False
                self.decided[b] = 0
                self.since[b] = 0
                self.is_stray[b] = False

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


class Driver(Environment):
    """A process that drives the query; two at once where one was taken for dead."""

    INDEX = ("driver",)
    STATES = (GONE, UP, DECIDING, RUNNING)
    INITIAL = GONE

    system: SteeredQuery
    driver: int

    batch: int = Int("batches")
    """The batch that it runs, or that it has committed."""
    version: int = Int("versions")
    """What the function was given."""
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

    def may_start(self) -> bool:
        return self.system.user.starts < self.system.R

    def has_planned(self) -> bool:
        return self.system.query.planned > self.system.query.committed

    def has_more(self) -> bool:
        return self.batch < self.system.batches

    def is_next(self) -> bool:
        return self.system.query.planned == self.batch

    def has_tasks(self) -> bool:
        return self.worked < self.system.tasks

    def is_first(self) -> bool:
        return self.system.query.committed < self.batch

    def may_fail(self) -> bool:
        return self.system.user.failures < self.system.F

    def count_start(self) -> None:
        self.system.user.starts += 1

    def read_committed(self) -> None:
        self.batch = self.system.query.committed

    def read_planned(self) -> None:
        self.batch = self.system.query.planned

    def plan_next(self) -> None:
        self.batch += 1
        self.system.query.remember(self.batch)

    def decide(self) -> None:
        self.system.batch_decision[self.driver].begin(self.batch)

    def note_version(self, version: int) -> None:
        self.version = version

    def run_task(self) -> None:
        self.worked += 1
        self.system.query.see(self.batch, self.told())

    def told(self) -> int:
        """The value that travels with a task."""
        return self.version

    def commit_batch(self) -> None:
        self.system.query.committed = self.batch
        self.worked = 0
        self.version = 0

    def restart(self) -> None:
        self.batch = 0
        self.version = 0
        self.worked = 0
        self.system.client[self.driver].cut()
        self.system.batch_decision[self.driver].restart()

    def spend_failure(self) -> None:
        self.system.user.failures += 1
