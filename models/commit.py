"""Writers, committers and the global committer: commits in two phases, with retries and restores.

Each writer hands its committer one committable before the barrier. Told that the checkpoint is
completed, a committer commits what it holds up to it, and sends a summary for each checkpoint
downstream: how many committers will send one. The global committer, a single one, makes a checkpoint
visible when all of its summaries are there::

    writer 0, committer 0   | a | barrier 1 |   notice 1: commit a, summary 1 ->
    writer 1, committer 1   | b | barrier 1 |       notice 1: commit b, summary 1 ->
    global committer                        | barrier 1 |            both there: make 1 visible

The job dies at any time and is restored, at `Q` instead of `P` subtasks: committers commit what the
last completed checkpoint holds again, and send summaries of it again. Nothing is visible before its
checkpoint is completed, nothing is visible in part, and in the end all that is completed is visible.
Committing twice is the same as once, which is left to the sink.

Source: Apache Flink's writer, committer and global committer operators, with the collectors between
them. `GlobalCommitter` is the machine that runs in production. Checkpoints count from 0 here, and
from 1 there.
"""

from __future__ import annotations

from typing import ClassVar

from epochgate.fsm import ANY, STAY, Array, Bool, Channel, Fifo, Ignore, Int, Machine, Row, Trigger
from epochgate.fsm.closed import ClosedSystem, Step, sometimes, terminal
from epochgate.fsm.system import machines
from epochgate.models.commit_sink import COMMITTED, Committer, Lifecycle, Sink
from epochgate.models.committer import GIVEN_UP

ABSENT, RECEIVED = "absent", "received"
NONE, RUNNING, ALIGNED = "none", "running", "aligned"


class Committable(Machine):
    """What one writer has written for one checkpoint."""

    INDEX = ("checkpoint", "writer")
    STATES = (ABSENT, RECEIVED, COMMITTED)
    INITIAL = ABSENT

    system: Commit
    checkpoint: int
    writer: int

    is_in_snapshot: bool = Bool()
    """A committer holds it in its part of the checkpoint under way."""
    is_stored: bool = Bool()
    """It does in the last completed one."""

    write: Trigger
    commit: Trigger
    restore: Trigger

    # fmt: off
    ROWS: ClassVar[tuple[Row, ...]] = (
        Row("write",    ABSENT,   RECEIVED,  None,            None,           "the writer hands it over before the barrier"),
        Row("commit",   RECEIVED, COMMITTED, None,            None,           "its checkpoint is completed"),
        Row("restore",  ANY,      RECEIVED,  "has_copy",      None,           "the restored checkpoint holds it"),
        Row("restore",  ANY,      ABSENT,    "not has_copy and not is_over", None, "its checkpoint will never be completed"),
        Ignore("restore", ANY,               "not has_copy and is_over",       "it was committed before the restored checkpoint"),
    )
    # fmt: on

    def has_copy(self) -> bool:
        return self.is_stored

    def is_over(self) -> bool:
        return self.system.checkpoint.is_completed[self.checkpoint]

    def is_owned_by(self, subtask: int) -> bool:
        """Whether that committer holds it; a restore deals them out anew."""
        return self.state == RECEIVED and self.system.job.owner(self.writer) == subtask

    def enter_snapshot(self) -> None:
        self.is_in_snapshot = self.state == RECEIVED

    def store(self) -> None:
        self.is_stored = self.is_in_snapshot
        self.is_in_snapshot = False


class Subtask(Machine):
    """A writer and its committer. The stream to the global committer holds summaries, of a checkpoint
    and the number of committers that send one, and above these barriers.
    """

    INDEX = ("writer",)
    STATES = ("running",)
    INITIAL = "running"

    system: Commit
    writer: int

    stream: Fifo[int] = Channel("item", "stream")
    has_passed: bool = Bool()
    """The barrier of the checkpoint under way."""
    notice: int = Int("checkpoints")
    """The newest completed checkpoint it is being told of, counted from 1."""

    pass_barrier: Trigger
    hear_notice: Trigger
    arrive: Trigger

    # fmt: off
    ROWS: ClassVar[tuple[Row, ...]] = (
        Row("pass_barrier", "running", STAY, "is_at_barrier", "write, take_snapshot, send_barrier", "its part of the checkpoint"),
        Row("hear_notice",  "running", STAY, "has_notice",    "commit_all",                         "a checkpoint is completed, or restored"),
        Row("arrive",       "running", STAY, "has_summary",   "deliver_summary",                    "a summary arrives at the global committer"),
    )
    # fmt: on

    def is_active(self) -> bool:
        return self.writer < self.system.job.parallelism()

    def is_at_barrier(self) -> bool:
        return (
            self.is_active()
            and self.system.checkpoint.state == RUNNING
            and not self.has_passed
            and (self.notice == 0 or self.system.late_notices > 0)
        )

    def has_notice(self) -> bool:
        return self.notice > 0

    def has_summary(self) -> bool:
        return not self.stream.empty() and self.stream.head() < self.system.barrier

    def has_barrier(self) -> bool:
        return not self.stream.empty() and self.stream.head() >= self.system.barrier

    def write(self) -> None:
        number = self.system.checkpoint.number - 1
        self.system.committable[number, self.writer].write()
        self.system.job.written_by[number] = self.system.job.parallelism()

    def take_snapshot(self) -> None:
        self.has_passed = True
        for k in range(self.system.checkpoints):
            for w in range(self.system.W):
                if self.system.committable[k, w].is_owned_by(self.writer):
                    self.system.committable[k, w].enter_snapshot()

    def send_barrier(self) -> None:
        self.stream.push(self.system.barrier)

    def commit_all(self) -> None:
        for k in range(self.system.checkpoints):
            if k < self.notice:
                self.commit_one(k)
        self.notice = 0

    def commit_one(self, checkpoint: int) -> None:
        """Commit what it holds of one checkpoint, and say so downstream."""
        has_any = False
        for w in range(self.system.W):
            if self.system.committable[checkpoint, w].is_owned_by(self.writer):
                has_any = True
                self.system.committable[checkpoint, w].commit()
        if has_any:
            self.stream.push(checkpoint * self.system.W + self.announced(checkpoint) - 1)

    def announced(self, checkpoint: int) -> int:
        """How many committers send a summary of this checkpoint: no more than have written for it."""
        now = self.system.job.parallelism()
        then = self.system.job.written_by[checkpoint]
        return now if now < then else then

    def deliver_summary(self) -> None:
        summary = self.stream.pop()
        self.system.collector.take_summary(
            summary // self.system.W, self.writer, summary % self.system.W + 1
        )


class Collector(Machine):
    """The global committer's side: which summaries are there, and in the snapshots."""

    STATES = ("collecting",)
    INITIAL = "collecting"

    system: Commit

    expected: list[int] = Array(Int("W"), "checkpoints")
    arrived: list[list[bool]] = Array(Array(Bool(), "W"), "checkpoints")
    snapshot_expected: list[int] = Array(Int("W"), "checkpoints")
    snapshot_arrived: list[list[bool]] = Array(Array(Bool(), "W"), "checkpoints")
    stored_expected: list[int] = Array(Int("W"), "checkpoints")
    stored_arrived: list[list[bool]] = Array(Array(Bool(), "W"), "checkpoints")

    align: Trigger

    # fmt: off
    ROWS: ClassVar[tuple[Row, ...]] = (
        Row("align", "collecting", STAY, "has_barriers", "take_barriers, take_snapshot", "the barrier is there from all committers"),
    )
    # fmt: on

    def has_barriers(self) -> bool:
        return all(
            self.system.subtask[w].has_barrier() or not self.system.subtask[w].is_active()
            for w in range(self.system.W)
        )

    def take_barriers(self) -> None:
        for w in range(self.system.W):
            if self.system.subtask[w].is_active():
                self.system.subtask[w].stream.pop()

    def take_snapshot(self) -> None:
        for k in range(self.system.checkpoints):
            self.snapshot_expected[k] = self.expected[k]
            for w in range(self.system.W):
                self.snapshot_arrived[k][w] = self.arrived[k][w]
        self.system.checkpoint.align()

    def store(self) -> None:
        for k in range(self.system.checkpoints):
            self.stored_expected[k] = self.snapshot_expected[k]
            self.snapshot_expected[k] = 0
            for w in range(self.system.W):
                self.stored_arrived[k][w] = self.snapshot_arrived[k][w]
                self.snapshot_arrived[k][w] = False

    def restore(self) -> None:
        for k in range(self.system.checkpoints):
            self.expected[k] = self.stored_expected[k]
            self.snapshot_expected[k] = 0
            for w in range(self.system.W):
                self.arrived[k][w] = self.stored_arrived[k][w]
                self.snapshot_arrived[k][w] = False
        self.commit_complete()

    def take_summary(self, checkpoint: int, subtask: int, expected: int) -> None:
        assert not self.arrived[checkpoint][subtask], (
            "a committer sends one summary of a checkpoint"
        )
        self.arrived[checkpoint][subtask] = True
        self.expected[checkpoint] = expected
        self.on_summary()

    def on_summary(self) -> None:
        """What has arrived decides, not who is told first."""
        self.commit_complete()

    def is_complete(self, checkpoint: int) -> bool:
        count = 0
        for w in range(self.system.W):
            if self.arrived[checkpoint][w]:
                count += 1
        return count > 0 and count == self.expected[checkpoint]

    def commit_complete(self) -> None:
        """Commit up to the newest checkpoint that is there, with all those before it that began to
        arrive.
        """
        newest = 0
        is_stopped = False
        for k in range(self.system.checkpoints):
            if self.is_complete(k):
                if not is_stopped:
                    newest = k + 1
            elif self.expected[k] > 0:
                is_stopped = True
        if newest > self.system.committer.wanted:
            self.system.committer.due(newest)


class Checkpoint(Machine):
    """The one checkpoint at a time."""

    STATES = (NONE, RUNNING, ALIGNED)
    INITIAL = NONE

    system: Commit

    number: int = Int("checkpoints")
    is_completed: list[bool] = Array(Bool(), "checkpoints")

    begin: Trigger
    align: Trigger
    complete: Trigger
    forget: Trigger

    # fmt: off
    ROWS: ClassVar[tuple[Row, ...]] = (
        Row("begin",     NONE,               RUNNING, "has_more", "count",                   "the interval is over"),
        Row("align",     RUNNING,            ALIGNED, None,       None,                      "all parts are there"),
        Row("complete",  ALIGNED,            NONE,    None,       "store, clear, tell",      "it is durable"),
        Row("forget",    (RUNNING, ALIGNED), NONE,    None,       "clear",                   "the job is restored from the one before"),
        Ignore("forget", NONE,                        None,                                  "none was under way"),
    )
    # fmt: on

    def has_more(self) -> bool:
        return self.number < self.system.checkpoints and self.system.committer.state != GIVEN_UP

    def count(self) -> None:
        self.number += 1

    def store(self) -> None:
        self.is_completed[self.number - 1] = True
        self.system.collector.store()
        for k in range(self.system.checkpoints):
            for w in range(self.system.W):
                self.system.committable[k, w].store()

    def clear(self) -> None:
        for w in range(self.system.W):
            self.system.subtask[w].has_passed = False
            for k in range(self.system.checkpoints):
                self.system.committable[k, w].is_in_snapshot = False

    def tell(self) -> None:
        for w in range(self.system.W):
            if self.system.subtask[w].is_active():
                self.system.subtask[w].notice = self.number

    def tell_restored(self) -> None:
        newest = 0
        for k in range(self.system.checkpoints):
            if self.is_completed[k]:
                newest = k + 1
        for w in range(self.system.W):
            if self.system.subtask[w].is_active():
                self.system.subtask[w].notice = newest


class Job(Machine):
    """The job as a whole, which dies and is restored at another parallelism."""

    STATES = ("running",)
    INITIAL = "running"

    system: Commit

    crashes: int = Int("crashes")
    written_by: list[int] = Array(Int("W"), "checkpoints")
    """How many writers each checkpoint had."""

    crash: Trigger

    # fmt: off
    ROWS: ClassVar[tuple[Row, ...]] = (
        Row("crash", "running", STAY, "may_crash", "count, forget, restore, tell", "it dies, and is restored from the last completed checkpoint"),
    )
    # fmt: on

    def may_crash(self) -> bool:
        return self.crashes < self.system.crashes

    def parallelism(self) -> int:
        return self.system.Q if self.crashes > 0 else self.system.P

    def owner(self, writer: int) -> int:
        """Which committer holds what a writer has written."""
        return writer % self.system.Q if self.crashes > 0 else writer

    def count(self) -> None:
        self.crashes += 1

    def forget(self) -> None:
        self.system.checkpoint.forget()
        self.system.committer.restart()
        self.system.sink.forget()
        for w in range(self.system.W):
            self.system.subtask[w].stream.clear()
            self.system.subtask[w].notice = 0

    def restore(self) -> None:
        for k in range(self.system.checkpoints):
            for w in range(self.system.W):
                self.system.committable[k, w].restore()
        self.system.collector.restore()

    def tell(self) -> None:
        self.system.checkpoint.tell_restored()


class Commit(ClosedSystem):
    """`checkpoints` of them, P writers and, once restored, Q; `commit_retries` for each commit, of which
    the sink postpones or refuses `postponements`. With `late_notices` a committer may pass a barrier
    before it hears of the checkpoint before.
    """

    INDEX_SETS: ClassVar[dict[str, str]] = {"writer": "W", "checkpoint": "checkpoints"}
    CONSTANTS: ClassVar[dict[str, int]] = {
        "P": 1,
        "Q": 2,
        "checkpoints": 2,
        "crashes": 1,
        "commit_retries": 1,
        "postponements": 2,
        "late_notices": 0,
    }
    DERIVED: ClassVar[dict[str, str]] = {
        "W": "max(P, Q)",
        "barrier": "checkpoints * max(P, Q)",
        "item": "checkpoints * max(P, Q)",
        "stream": "checkpoints + 1",
    }
    STEPS: ClassVar[tuple[Step, ...]] = (
        Step("checkpoint", "begin"),
        Step("subtask", "pass_barrier"),
        Step("subtask", "arrive"),
        Step("collector", "align"),
        Step("checkpoint", "complete"),
        Step("subtask", "hear_notice"),
        Step("sink", "accept"),
        Step("sink", "postpone", is_fair=False),
        Step("sink", "refuse", is_fair=False),
        Step("job", "crash", is_fair=False),
    )
    WIRING: ClassVar[dict[str, str]] = {"committer.sink": "sink"}

    P: int
    Q: int
    W: int
    checkpoints: int
    crashes: int
    postponements: int
    late_notices: int
    barrier: int

    committable: dict[tuple[int, int], Committable] = machines(Committable)
    subtask: list[Subtask] = machines(Subtask)
    collector: Collector = machines(Collector)
    committer: Committer = machines(Committer)
    sink: Sink = machines(Sink)
    checkpoint: Checkpoint = machines(Checkpoint)
    job: Job = machines(Job)
    lifecycle: Lifecycle = machines(Lifecycle)

    @sometimes("something is committed a second time, after a restore")
    def commits_again(self) -> bool:
        return self.job.crashes > 0 and self.sink.is_visible[0] and self.committer.wanted == 1

    @sometimes("everything becomes visible")
    def shows_all(self) -> bool:
        return all(self.sink.is_visible[k] for k in range(self.checkpoints))

    @terminal("what is completed is visible, unless the job has given up")
    def is_over(self) -> bool:
        return self.committer.state == GIVEN_UP or all(
            self.sink.is_visible[k] or not self.checkpoint.is_completed[k]
            for k in range(self.checkpoints)
        )
