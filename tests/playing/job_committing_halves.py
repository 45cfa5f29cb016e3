"""The closed systems of commits in several steps, in which a commit that is put off has done a half
of its part. That is in no machine, and checked by no claim: it is what the shells have to keep.
"""

from __future__ import annotations

from epochgate.fsm import Array, Bool, machines
from epochgate.models.closed.committing import CommittingAgain, CommittingInSteps
from epochgate.models.closed.surroundings.committing_parts import BEFORE, COMMITTED, LEFT, Parts


class PartsInHalves(Parts):
    """The committables that each subtask has handed over, and of which a half is committed."""

    is_begun: list[bool] = Array(Bool(), "checkpoints")
    """A half of it is committed, for all that the attempt knows that runs."""
    kept_begun: list[bool] = Array(Bool(), "checkpoints")
    stored_begun: list[bool] = Array(Bool(), "checkpoints")
    durable_begun: list[bool] = Array(Bool(), "checkpoints")
    """So it is in the checkpoint that the driver knows as completed."""

    def renew(self) -> None:
        self.is_current = True
        for k in range(self.system.checkpoints):
            self.is_begun[k] = self.durable_begun[k]

    def hand_over(self, checkpoint: int) -> None:
        self.is_held[checkpoint - 1] = True
        for k in range(self.system.checkpoints):
            self.durable_begun[k] = self.stored_begun[k]

    def keep(self, checkpoint: int, earlier: int, tries: int) -> None:
        self.system.store.check_begun(checkpoint)
        assert tries == self.failed[earlier - 1], "a stored checkpoint counts the tries"
        if self.is_held[earlier - 1]:
            self.is_kept[earlier - 1] = True
            self.kept_tries[earlier - 1] = tries
            self.kept_begun[earlier - 1] = self.is_begun[earlier - 1]

    def note(self, checkpoint: int, outcome: int) -> None:
        tries = self.failed[checkpoint - 1] + 1
        self.is_begun[checkpoint - 1] = outcome == LEFT
        if outcome >= COMMITTED:
            self.failed[checkpoint - 1] = 0
        elif tries < self.system.tries:
            for k in range(self.system.checkpoints):
                self.failed[k] = 0
            self.failed[checkpoint - 1] = tries

    def store(self) -> None:
        for k in range(self.system.checkpoints):
            self.is_stored[k] = self.is_kept[k]
            self.stored_tries[k] = self.kept_tries[k]
            self.stored_seen[k] = self.snapshot_seen[k]
            self.stored_begun[k] = self.kept_begun[k]
        self.clear()

    def clear(self) -> None:
        for k in range(self.system.checkpoints):
            self.is_kept[k] = False
            self.kept_tries[k] = 0
            self.snapshot_seen[k] = False
            self.kept_begun[k] = False

    def forget(self) -> None:
        self.clear()
        self.pausing = 0
        self.pausing_tries = 0
        self.is_limited = False
        self.is_current = False
        for k in range(self.system.checkpoints):
            self.is_held[k] = (
                self.is_stored[k]
                or self.system.way.place[k] == BEFORE
                or self.system.way.completed == k + 1
            )
            self.failed[k] = self.stored_tries[k]
            self.has_seen[k] = self.stored_seen[k]
            self.has_come[k] = self.stored_seen[k]
            self.is_begun[k] = self.stored_begun[k]
            self.durable_begun[k] = self.stored_begun[k]


class InHalves(CommittingInSteps):
    """The job with two subtasks and one failure."""

    parts: list[PartsInHalves] = machines(PartsInHalves)  # type: ignore[assignment]  # of the same kind


class AgainInHalves(CommittingAgain):
    """The job with one subtask."""

    parts: list[PartsInHalves] = machines(PartsInHalves)  # type: ignore[assignment]  # of the same kind
