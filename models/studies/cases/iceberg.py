"""Iceberg Kafka Connect's coordinator: a watermark that goes back commits a data file twice.

Workers announce data files on the control topic. The coordinator buffers them, appends them to the
table, and stamps the snapshot with its offset in the topic; what lies below the stamp is filtered
out later. A rebalance makes the consumer read again from the group's committed offset::

    control topic    0: a    1: b
    consumer         0 1 | rebalance, back to 0 | 0       1
    watermark        1 2 |                        1       2
    table                                           {a, b} stamped 1    {b} again

Source: apache/iceberg issue 17340: `controlTopicOffsets.put(...)` takes the last offset for the
highest. Mended in pull request 17933: `merge(..., Long::max)`. One partition is enough. Left out:
which commit an announcement belongs to, and completeness of a commit.
"""

from __future__ import annotations

from typing import ClassVar

from epochgate.fsm import STAY, Array, Bool, Ignore, Int, Machine, Row, Trigger
from epochgate.fsm.closed import (
    ClosedSystem,
    Environment,
    Step,
    always,
    eventually,
    sometimes,
    terminal,
)
from epochgate.fsm.system import machines

UP = "up"


class Worker(Environment):
    """The workers: each data file is announced once, at the next offset of the control topic."""

    STATES = (UP,)
    INITIAL = UP

    system: IcebergConnect

    written: int = Int("E")

    write: Trigger

    # fmt: off
    ROWS: ClassVar[tuple[Row, ...]] = (
        Row("write", UP, STAY, "has_more", "announce", "a data file is complete: DataWritten"),
    )
    # fmt: on

    def has_more(self) -> bool:
        return self.written < self.system.E

    def announce(self) -> None:
        self.written += 1


class Consumer(Environment):
    """The coordinator's consumer of the control topic; it stays the same over a rebalance."""

    STATES = (UP,)
    INITIAL = UP

    system: IcebergConnect

    position: int = Int("E")
    committed: int = Int("E")
    """The offset that its group has committed."""
    rebalances: int = Int("F")

    poll: Trigger
    rebalance: Trigger
    commit: Trigger

    # fmt: off
    ROWS: ClassVar[tuple[Row, ...]] = (
        Row("poll",      UP, STAY, "has_more",      "read",        "the next DataWritten is read"),
        Row("rebalance", UP, STAY, "may_rebalance", "count, back", "it resumes from the group's committed offset"),
        Row("commit",    UP, STAY, None,            "note",        "the offset of its group is committed"),
    )
    # fmt: on

    def has_more(self) -> bool:
        return self.position < self.system.worker.written

    def may_rebalance(self) -> bool:
        return self.rebalances < self.system.F

    def read(self) -> None:
        self.position += 1
        self.system.coordinator.data_written(self.position - 1)

    def count(self) -> None:
        self.rebalances += 1

    def back(self) -> None:
        self.position = self.committed

    def note(self, offset: int) -> None:
        self.committed = offset


class Coordinator(Machine):
    """Buffers what was announced, and appends it to the table when the interval is over."""

    STATES = ("running",)
    INITIAL = "running"

    system: IcebergConnect

    watermark: int = Int("E")
    """controlTopicOffsets: behind the highest offset that was read."""
    buffered: list[bool] = Array(Bool(), "E")

    data_written: Trigger
    commit: Trigger

    # fmt: off
    ROWS: ClassVar[tuple[Row, ...]] = (
        Row("data_written", "running", STAY, "is_ahead",
            "buffer, track",                        "DataWritten, above everything that was read"),
        Row("data_written", "running", STAY, "not is_ahead",
            "buffer",                               "DataWritten, read once more"),
        Row("commit",       "running", STAY, "has_files",
            "append, stamp, commit_offsets, clear", "the commit interval is over"),
    )
    # fmt: on

    def is_ahead(self, offset: int) -> bool:
        return offset >= self.watermark

    def has_files(self) -> bool:
        return any(self.buffered[o] for o in range(self.system.E))

    def buffer(self, offset: int) -> None:
        self.buffered[offset] = True

    def track(self, offset: int) -> None:
        self.watermark = offset + 1

    def append(self) -> None:
        for o in range(self.system.E):
            if self.buffered[o]:
                self.system.table.append(o)

    def stamp(self) -> None:
        self.system.table.stamp(self.watermark)

    def commit_offsets(self) -> None:
        self.system.consumer.commit(self.watermark)

    def clear(self) -> None:
        for o in range(self.system.E):
            self.buffered[o] = False


class Table(Environment):
    """The Iceberg table: how often a snapshot holds each data file, and the stamp of the newest."""

    STATES = (UP,)
    INITIAL = UP

    system: IcebergConnect

    offsets: int = Int("E")
    """kafka.connect.offsets in the summary of the newest snapshot."""
    copies: list[int] = Array(Int(2), "E")

    append: Trigger
    stamp: Trigger

    # fmt: off
    ROWS: ClassVar[tuple[Row, ...]] = (
        Row("append",    UP, STAY, "is_new",     "add",  "a snapshot holds the file"),
        Ignore("append", UP,       "not is_new",         "it lies below the stamp: an earlier snapshot holds it"),
        Row("stamp",     UP, STAY, "is_higher",  "note", "the snapshot's summary says how far the topic was read"),
        Ignore("stamp",  UP,       "not is_higher",      "the stamp of the last snapshot is kept"),
    )
    # fmt: on

    def is_new(self, offset: int) -> bool:
        return offset >= self.offsets

    def is_higher(self, offset: int) -> bool:
        return offset > self.offsets

    def add(self, offset: int) -> None:
        self.copies[offset] += 1

    def note(self, offset: int) -> None:
        self.offsets = offset


class IcebergConnect(ClosedSystem):
    """Iceberg's sink for Kafka Connect commits each data file once."""

    IS_SEPARATED = False  # a design that does not run, told without ports
    CONSTANTS: ClassVar[dict[str, int]] = {"E": 3, "F": 2}
    STEPS: ClassVar[tuple[Step, ...]] = (
        Step("worker", "write"),
        Step("consumer", "poll"),
        Step("coordinator", "commit"),
        Step("consumer", "rebalance", is_fair=False),
    )

    E: int
    F: int

    worker: Worker = machines(Worker)
    consumer: Consumer = machines(Consumer)
    coordinator: Coordinator = machines(Coordinator)
    table: Table = machines(Table)

    @always("a data file is in the table once")
    def holds_each_once(self) -> bool:
        return all(self.table.copies[o] <= 1 for o in range(self.E))

    @always("what the group has committed is in the table")
    def keeps_what_it_passed(self) -> bool:
        return all(o >= self.consumer.committed or self.table.copies[o] > 0 for o in range(self.E))

    @eventually("each data file is in the table")
    def holds_all(self) -> bool:
        return all(self.table.copies[o] > 0 for o in range(self.E))

    @sometimes("a file that is in the table is announced again")
    def reads_again(self) -> bool:
        return any(self.coordinator.buffered[o] and self.table.copies[o] > 0 for o in range(self.E))

    @terminal("each data file is in the table")
    def is_over(self) -> bool:
        return self.holds_all()


class PuttingCoordinator(Coordinator):
    """A coordinator that takes the offset read last for the highest."""

    # fmt: off
    ROWS: ClassVar[tuple[Row, ...]] = (
        Row("data_written", "running", STAY, None, "buffer, track", "DataWritten"),
        *(row for row in Coordinator.ROWS if row.trigger != "data_written"),
    )
    # fmt: on


class LastOffset(IcebergConnect):
    """Iceberg's sink before: the stamp is below a file that its snapshot holds."""

    coordinator: Coordinator = machines(PuttingCoordinator)
