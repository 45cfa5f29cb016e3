"""The splits of files that readers have read to their end, until the files' rows are durable, and
until the files may go.

Decides which checkpoint holds a split: the first one that completes of which the reader's snapshot
came after the split's end. A reader says of a split which snapshot it had taken last, and says
again after a restart what its state holds; what its predecessor said counts no more::

    reader       end of a | snapshot 4 | end of b          | snapshot 5
    checkpoints             4 completes: a is held           5 completes: b is held
    reader       end of a | fails | end of a, once more    | snapshot 5: a is held by 5

Also decides when a file may be removed from its source: once a checkpoint is committed to the
target that is not older than the one which holds its last split.

Leaves to the shell which splits a file has, when a file is old enough to go, and how it goes.
Runs under one lock, on the queue's thread and on that of the work after commits. Source: none; in
Apache Flink the file source forgets a file once its splits are assigned.
"""

from __future__ import annotations

from typing import ClassVar

from epochgate.fsm import (
    STAY,
    Channel,
    Fifo,
    Ignore,
    Int,
    Machine,
    Opaque,
    Port,
    Row,
    System,
    Trigger,
    machines,
    output,
)

HELD, OWED = "held", "owed"
KEPT, DUE = "kept", "due"


class RecordPort(Port):
    """The records of files."""

    def hold(self, split: Opaque, checkpoint: int) -> None:
        """All rows of the split are in this completed checkpoint, or in those before it."""


class FilePort(Port):
    """The files of the source."""

    def release(self, file: Opaque) -> None:
        """The target has all rows of the file: it may be removed from the source."""


class ReadSplits(Machine):
    """The splits that the reader of one subtask has read to their end."""

    INDEX = ("subtask",)
    STATES = (HELD, OWED)
    INITIAL = HELD

    system: SplitsRead
    subtask: int
    records: RecordPort = output(RecordPort)

    ended: Fifo[Opaque] = Channel("split", "splits")
    """Those that no complete checkpoint is known to hold."""
    ended_after: Fifo[int] = Channel("checkpoints", "splits")
    """For each of them, the newest checkpoint of which the reader had taken its snapshot."""
    newest_after: int = Int("checkpoints")
    """The newest of these."""

    end: Trigger
    complete: Trigger
    rejoin: Trigger

    # fmt: off
    ROWS: ClassVar[tuple[Row, ...]] = (
        Row("end",         (HELD, OWED), OWED, None,
            "remember",        "the reader has given all rows of the split to the sink"),

        Row("complete",    OWED,         HELD, "holds_all",
            "hold_covered",    "the reader's snapshot came after each of these ends"),
        Row("complete",    OWED,         STAY, "not holds_all",
            "hold_covered",    "a split has ended after the reader's snapshot"),
        Ignore("complete", HELD,               None,
                               "an earlier checkpoint holds every split that has ended"),

        Row("rejoin",      OWED,         HELD, None,
            "forget",          "the reader goes back, and says again what its state holds"),
        Ignore("rejoin",   HELD,               None,
                               "nothing that its predecessor said is open"),
    )
    # fmt: on

    def holds_all(self, checkpoint: int) -> bool:
        return self.newest_after < checkpoint

    def remember(self, split: Opaque, after: int) -> None:
        self.ended.push(split)
        self.ended_after.push(after)
        self.newest_after = after

    def hold_covered(self, checkpoint: int) -> None:
        for split in self.ended.take_all():
            after = self.ended_after.pop()
            if after < checkpoint:
                self.records.hold(split, checkpoint)
            else:
                self.ended.push(split)
                self.ended_after.push(after)

    def forget(self) -> None:
        self.ended.clear()
        self.ended_after.clear()


class FileRemoval(Machine):
    """The files that are to be removed once their rows are in the target."""

    STATES = (KEPT, DUE)
    INITIAL = KEPT

    system: SplitsRead
    files: FilePort = output(FilePort)

    held: Fifo[Opaque] = Channel("split", "splits")
    """The files whose rows complete checkpoints hold."""
    held_by: Fifo[int] = Channel("checkpoints", "splits")
    """For each of them, the checkpoint with its last rows."""
    newest_by: int = Int("checkpoints")
    """The newest of these."""

    hold: Trigger
    commit: Trigger

    # fmt: off
    ROWS: ClassVar[tuple[Row, ...]] = (
        Row("hold",      (KEPT, DUE), DUE,  None,
            "remember",          "its last rows are in a complete checkpoint, and not known to be committed"),

        Row("commit",    DUE,         KEPT, "covers_all",
            "release_covered",   "the target has the rows of every file"),
        Row("commit",    DUE,         STAY, "not covers_all",
            "release_covered",   "a later checkpoint has the last rows of a file"),
        Ignore("commit", KEPT,              None,
                                 "no file waits for it"),
    )
    # fmt: on

    def covers_all(self, checkpoint: int) -> bool:
        return self.newest_by <= checkpoint

    def remember(self, file: Opaque, checkpoint: int) -> None:
        self.held.push(file)
        self.held_by.push(checkpoint)
        if checkpoint > self.newest_by:
            self.newest_by = checkpoint

    def release_covered(self, checkpoint: int) -> None:
        for file in self.held.take_all():
            by = self.held_by.pop()
            if by <= checkpoint:
                self.files.release(file)
            else:
                self.held.push(file)
                self.held_by.push(by)


class SplitsRead(System):
    """The readers of one source of files, and the files."""

    INDEX_SETS: ClassVar[dict[str, str]] = {"subtask": "subtasks"}
    CONSTANTS: ClassVar[dict[str, int]] = {"subtasks": 0}

    subtasks: int

    reading: list[ReadSplits] = machines(ReadSplits)
    removal: FileRemoval = machines(FileRemoval)
