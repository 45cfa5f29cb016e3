"""Broken variants of read splits: what happens without one of the rules about when a file is
recorded, and when it may be removed.
"""

from __future__ import annotations

from typing import ClassVar

from epochgate.fsm import Ignore, Row, machines
from epochgate.models.closed.filing import FiledSource
from epochgate.models.closed.surroundings.filing import RenewedReading, RenewedRemoval
from epochgate.models.read_splits import DUE, HELD, KEPT, OWED


class HoldingAll(RenewedReading):
    """Counts each split that has ended with the next checkpoint that completes."""

    # fmt: off
    ROWS: ClassVar[tuple[Row, ...]] = (
        *(row for row in RenewedReading.ROWS if row.trigger != "complete"),
        Row("complete",    OWED, HELD, None,
            "hold_everything",          "a checkpoint is durable"),
        Ignore("complete", HELD,       None,
                                        "no split has ended"),
    )
    # fmt: on

    def hold_everything(self, checkpoint: int) -> None:
        self.ended_after.clear()
        for split in self.ended.take_all():
            self.records.hold(split, checkpoint)


class HeldTooEarly(FiledSource):
    """A split that has ended behind the reader's snapshot counts as held by the checkpoint."""

    reading: list[RenewedReading] = machines(HoldingAll)


class Believing(RenewedReading):
    """Goes on counting what a reader has said that has failed since."""

    # fmt: off
    ROWS: ClassVar[tuple[Row, ...]] = (
        *(row for row in RenewedReading.ROWS if row.trigger != "rejoin"),
        Ignore("rejoin", (HELD, OWED), None, "another reader of the subtask is there"),
    )
    # fmt: on


class Believed(FiledSource):
    """The words of a reader's predecessor count with the next checkpoint."""

    reading: list[RenewedReading] = machines(Believing)


class RemovingAtOnce(RenewedRemoval):
    """Removes a file when a complete checkpoint holds it."""

    # fmt: off
    ROWS: ClassVar[tuple[Row, ...]] = (
        *(row for row in RenewedRemoval.ROWS if row.trigger != "hold"),
        Row("hold", (KEPT, DUE), DUE, None,
            "let_go",   "its last rows are in a complete checkpoint"),
    )
    # fmt: on

    def let_go(self, file: int, checkpoint: int) -> None:
        self.files.release(file)


class RemovedBeforeTheCommit(FiledSource):
    """A file is removed before the checkpoint that holds it is committed."""

    removal: RenewedRemoval = machines(RemovingAtOnce)


class RemovingAll(RenewedRemoval):
    """Removes every file that waits when any checkpoint is committed."""

    # fmt: off
    ROWS: ClassVar[tuple[Row, ...]] = (
        *(row for row in RenewedRemoval.ROWS if row.trigger != "commit"),
        Row("commit",    DUE,  KEPT, None,
            "release_all",           "a checkpoint is visible"),
        Ignore("commit", KEPT,       None,
                                     "no file waits for it"),
    )
    # fmt: on

    def release_all(self, checkpoint: int) -> None:
        self.held_by.clear()
        for file in self.held.take_all():
            self.files.release(file)


class RemovedWithAnother(FiledSource):
    """A file is removed with the commit of a checkpoint before the one that holds it."""

    removal: RenewedRemoval = machines(RemovingAll)
