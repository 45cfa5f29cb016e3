"""A closed system around a file that is read by several readers: it is recorded once a complete
checkpoint holds all of it, and removed once the target has all its rows.

Two readers have a split of the file each. They tell of its end on a wire in order with what
acknowledges a checkpoint; processes die, the job goes back as a whole, the driver dies and another
one starts, a notice of a checkpoint is missed, and commits come late, and again after a start::

    reader 0     end | snapshot 1             | fails, goes back to 1, says it again
    reader 1         | snapshot 1 | end                       | snapshot 2
    checkpoints        1 completes                              2 completes: the file is recorded
    target                          has 1                         has 2: the file is removed

`ReadSplits` and `FileRemoval` are the machines that run in production. That each split is read by
one surviving history is claimed by `sources`, and left out here.
"""

from __future__ import annotations

from typing import ClassVar

from epochgate.fsm import machines
from epochgate.fsm.closed import ClosedSystem, Step, always, leads_to, sometimes, terminal
from epochgate.models.closed.surroundings.filing import (
    ENDED,
    FilingJob,
    RenewedReading,
    RenewedRemoval,
    SplitReader,
)
from epochgate.models.read_splits import OWED


class FiledSource(ClosedSystem):
    """A file of several splits in a job that fails is not removed too early."""

    CONSTANTS: ClassVar[dict[str, int]] = {"subtasks": 2, "K": 1, "F": 2}
    DERIVED: ClassVar[dict[str, str]] = {
        "checkpoints": "K + F + 2",
        "splits": "subtasks + F",
        "split": "subtasks + 0",
        "word": "2",
        "up_length": "K + F + 3",
    }
    INDEX_SETS: ClassVar[dict[str, str]] = {"subtask": "subtasks"}
    STEPS: ClassVar[tuple[Step, ...]] = (
        Step("reader", "read"),
        Step("reader", "barrier"),
        Step("reader", "hear"),
        Step("reader", "fail", is_fair=False),
        Step("reader", "reset"),
        Step("job", "take"),
        Step("job", "store"),
        Step("job", "store_unheard", is_fair=False),
        Step("job", "abort", is_fair=False),
        Step("job", "commit"),
        Step("job", "work"),
        Step("job", "go_back", is_fair=False),
        Step("job", "crash", is_fair=False),
    )
    WIRING: ClassVar[dict[str, str]] = {"reading.records": "reader", "removal.files": "job"}

    subtasks: int
    checkpoints: int
    up_length: int
    K: int
    F: int

    reading: list[RenewedReading] = machines(RenewedReading)
    removal: RenewedRemoval = machines(RenewedRemoval)
    reader: list[SplitReader] = machines(SplitReader)
    job: FilingJob = machines(FilingJob)

    @always("I13: no file is removed before the target has all its rows")
    def removes_what_is_committed(self) -> bool:
        return not self.job.is_removed or all(self.job.in_target[s] for s in range(self.subtasks))

    @always("a split is counted only if the newest complete checkpoint holds it")
    def counts_what_is_held(self) -> bool:
        return all(
            not self.job.counts[s] or self.reader[s].stored_end for s in range(self.subtasks)
        )

    @always("the record of a file names a complete checkpoint")
    def records_what_is_complete(self) -> bool:
        return self.job.recorded <= self.job.stored

    @sometimes("a split has ended after the snapshot of the checkpoint that completes")
    def holds_a_part(self) -> bool:
        return any(
            self.reading[s].state == OWED and self.job.stored > 0 for s in range(self.subtasks)
        )

    @sometimes("a file is recorded, and a start begins behind its record")
    def records_again(self) -> bool:
        return self.job.recorded > self.job.stored_recorded and self.job.failures == self.F

    @leads_to("the file is removed once failures stop", then="is_removed")
    def is_kept(self) -> bool:
        return not self.job.is_removed

    def is_removed(self) -> bool:
        return self.job.is_removed

    @terminal("the file is removed, and the readers have nothing to say")
    def is_at_rest(self) -> bool:
        return self.job.is_removed and all(
            self.reader[s].state == ENDED for s in range(self.subtasks)
        )
