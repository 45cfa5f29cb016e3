"""RisingWave's coordinated sink: an empty pre-commit is acknowledged and not persisted.

Parallel writers read their log stores epoch by epoch, and ask the coordinator to commit each epoch.
It waits until all of them ask for the same one, pre-commits it, and acknowledges it; then each
writer truncates its log store, which becomes durable later, and not for all at the same moment.
After a recovery a writer begins behind the coordinator's newest persisted epoch and its own
truncation, whichever is newer::

    epoch            1: data    2: empty    recovery, the coordinator knows of 1
    writer 0         truncated  truncated   begins behind 2, asks for 3
    writer 1         truncated  not yet     begins behind 1, asks for 2

Both wait for ever, without an error, and each further restart comes to the same.

Source: risingwavelabs/risingwave issue 26492. Mended in pull request 26498, which restores what
holds for epochs with data: persist before acknowledging. Left out: the external commit, redistributed
parallelism, and more than one epoch for each commit.
"""

from __future__ import annotations

from typing import ClassVar

from epochgate.fsm import STAY, Int, Machine, Row, Trigger
from epochgate.fsm.closed import ClosedSystem, Environment, Step, eventually, sometimes, terminal
from epochgate.fsm.system import machines

READING, WAITING = "reading", "waiting"


class Writer(Machine):
    """A parallel sink writer with its log store."""

    INDEX = ("writer",)
    STATES = (READING, WAITING)
    INITIAL = READING

    system: RisingWave
    writer: int

    epoch: int = Int("K")
    """The newest that it has read."""
    acknowledged: int = Int("K")
    truncated: int = Int("K")
    """The log store durably holds nothing up to here."""

    request: Trigger
    acknowledge: Trigger
    flush: Trigger
    recover: Trigger

    # fmt: off
    ROWS: ClassVar[tuple[Row, ...]] = (
        Row("request",     READING,            WAITING, "has_more",
            "read",     "an epoch is read: it asks for its commit"),
        Row("acknowledge", WAITING,            READING, None,
            "note",     "the epoch is committed: the log store may be truncated"),
        Row("flush",       (READING, WAITING), STAY,    "has_to_truncate",
            "truncate", "the truncation becomes durable"),
        Row("recover",     (READING, WAITING), READING, None,
            "rewind",   "it begins where the coordinator says, or behind its own truncation"),
    )
    # fmt: on

    def has_more(self) -> bool:
        return self.epoch < self.system.K

    def has_to_truncate(self) -> bool:
        return self.truncated < self.acknowledged

    def read(self) -> None:
        self.epoch += 1

    def note(self, epoch: int) -> None:
        self.acknowledged = epoch

    def truncate(self) -> None:
        self.truncated = self.acknowledged

    def rewind(self, epoch: int) -> None:
        self.epoch = self.truncated if self.truncated > epoch else epoch
        self.acknowledged = self.epoch


class Coordinator(Machine):
    """CoordinatorWorker: pre-commits an epoch that all writers ask for, and acknowledges it."""

    STATES = ("running",)
    INITIAL = "running"

    system: RisingWave

    persisted: int = Int("K")
    """The newest epoch in pending_sink_state, which is the rewind epoch after a recovery."""
    committed: int = Int("K")
    """last_writer_acked_epoch."""

    pre_commit: Trigger
    pre_commit_nothing: Trigger
    recover: Trigger

    # fmt: off
    ROWS: ClassVar[tuple[Row, ...]] = (
        Row("pre_commit",         "running", STAY, "is_requested_by_all",
            "persist, acknowledge", "there is data: its metadata is persisted"),
        Row("pre_commit_nothing", "running", STAY, "is_requested_by_all",
            "persist, acknowledge", "there is no data: the epoch is persisted all the same"),
        Row("recover",            "running", STAY, None,
            "load, rewind",         "it loads what is persisted"),
    )
    # fmt: on

    def is_requested_by_all(self) -> bool:
        return all(
            self.system.writer[w].state == WAITING
            and self.system.writer[w].epoch == self.system.writer[0].epoch
            for w in range(self.system.N)
        )

    def persist(self) -> None:
        self.persisted = self.system.writer[0].epoch

    def acknowledge(self) -> None:
        self.committed = self.system.writer[0].epoch
        for w in range(self.system.N):
            self.system.writer[w].acknowledge(self.committed)

    def load(self) -> None:
        self.committed = self.persisted

    def rewind(self) -> None:
        start = self.persisted
        if start == 0:
            for w in range(self.system.N):
                if self.system.writer[w].truncated > start:
                    start = self.system.writer[w].truncated
        for w in range(self.system.N):
            self.system.writer[w].recover(start)


class Cluster(Environment):
    """The causes of restarts of the sink: failures, and operators who see that nothing is
    committed.
    """

    STATES = ("up",)
    INITIAL = "up"

    system: RisingWave

    failures: int = Int("F")

    fail: Trigger
    restart: Trigger

    # fmt: off
    ROWS: ClassVar[tuple[Row, ...]] = (
        Row("fail",    "up", STAY, "may_fail", "count, recover", "the cluster recovers from a failure"),
        Row("restart", "up", STAY, "is_stuck", "recover",        "an operator restarts the sink, which commits nothing"),
    )
    # fmt: on

    def may_fail(self) -> bool:
        return self.failures < self.system.F

    def is_stuck(self) -> bool:
        return (
            any(self.system.writer[w].state == WAITING for w in range(self.system.N))
            and all(self.cannot_go_on(w) for w in range(self.system.N))
            and not self.system.coordinator.is_requested_by_all()
        )

    def cannot_go_on(self, w: int) -> bool:
        return (
            self.system.writer[w].state == WAITING or self.system.writer[w].epoch == self.system.K
        ) and self.system.writer[w].truncated == self.system.writer[w].acknowledged

    def count(self) -> None:
        self.failures += 1

    def recover(self) -> None:
        self.system.coordinator.recover()


class RisingWave(ClosedSystem):
    """RisingWave's coordinated sink commits each epoch, also when some of them are empty."""

    IS_SEPARATED = False  # a design that does not run, told without ports
    INDEX_SETS: ClassVar[dict[str, str]] = {"writer": "N"}
    CONSTANTS: ClassVar[dict[str, int]] = {"N": 2, "K": 3, "F": 2}
    STEPS: ClassVar[tuple[Step, ...]] = (
        Step("writer", "request"),
        Step("coordinator", "pre_commit"),
        Step("coordinator", "pre_commit_nothing"),
        Step("writer", "flush"),
        Step("cluster", "restart"),
        Step("cluster", "fail", is_fair=False),
    )
    UNTAKEN: ClassVar[dict[str, str]] = {"cluster.restart": "a sink that is mended is not stuck"}

    N: int
    K: int
    F: int

    writer: list[Writer] = machines(Writer)
    coordinator: Coordinator = machines(Coordinator)
    cluster: Cluster = machines(Cluster)

    @eventually("the sink commits every epoch that the log stores hold")
    def commits_all(self) -> bool:
        return all(
            self.writer[w].state == READING and self.writer[w].epoch == self.K
            for w in range(self.N)
        )

    @sometimes("only one writer's truncation is durable when the cluster recovers")
    def splits(self) -> bool:
        return self.cluster.failures > 0 and self.writer[0].truncated > self.writer[1].truncated

    @terminal("every epoch that the log stores hold is committed")
    def is_over(self) -> bool:
        return self.commits_all()


class ThriftyCoordinator(Coordinator):
    """A coordinator that persists what there is to commit."""

    # fmt: off
    ROWS: ClassVar[tuple[Row, ...]] = (
        *(row for row in Coordinator.ROWS if row.trigger != "pre_commit_nothing"),
        Row("pre_commit_nothing", "running", STAY, "is_requested_by_all",
            "acknowledge", "there is no data: nothing to persist"),
    )
    # fmt: on


class EmptyPreCommit(RisingWave):
    """RisingWave before: writers wait for different epochs for ever."""

    UNTAKEN: ClassVar[dict[str, str]] = {}

    coordinator: Coordinator = machines(ThriftyCoordinator)
