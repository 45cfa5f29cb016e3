"""The users' part of a job that is played beside the closed systems of commits: what its subtasks
hand over, the target with its committer, and a store of which a command stands still.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from epochgate.runtime.api.committer import (
    CommitImpossible,
    Committables,
    Committer,
    FailedForKnownReason,
    RetryLater,
)
from epochgate.runtime.api.operator import Operator, Program, Work
from epochgate.runtime.store import CompletedCheckpoint, InMemoryCheckpointStore
from tests.playing.job_paused import PausedWork

if TYPE_CHECKING:
    from tests.playing.job_commits import CommitsBeside

Row = tuple[int, int]
"""Subtask and item of a committable."""


@dataclass
class Target:
    """The target of commits: it takes each checkpoint once, and only from the driver that has
    claimed it last.
    """

    epoch: int = 0
    last: int = 0
    shown: list[tuple[int, Committables]] = field(default_factory=list)
    left_out: set[int] = field(default_factory=set)
    """What it does not take, for a reason that it knows."""
    works: Counter[int] = field(default_factory=Counter)
    """How often the work of each checkpoint's commit was done."""

    def take(self, epoch: int, checkpoint: int, committables: Committables) -> bool:
        """Show a checkpoint; False if nothing was to be done."""
        if epoch != self.epoch or checkpoint <= self.last or checkpoint in self.left_out:
            return False
        self.shown.append((checkpoint, committables))
        self.last = checkpoint
        return True

    def withdraw(self, behind: int) -> None:
        """Take out what is newer than this checkpoint."""
        self.shown = [(number, held) for number, held in self.shown if number <= behind]
        self.last = max((number for number, _ in self.shown), default=0)
        self.left_out = {number for number in self.left_out if number <= behind}
        self.works = Counter({n: times for n, times in self.works.items() if n <= behind})

    def effects(self) -> Counter[Row]:
        """Return how often each committable has taken effect."""
        return Counter(row for _, held in self.shown for row in rows_of(held))


def rows_of(committables: Committables) -> list[Row]:
    """The committables that the schedule has let subtasks produce."""
    return [(s, i) for s, values in committables.items() for i in values if i >= 0]


class PlayedCommitter(Committer):
    """Commits to the target by the orders of the schedule."""

    def __init__(self, job: CommitsBeside) -> None:
        self._job, self.epoch = job, 0

    def open(self, run_id: str, restored: dict[int, Committables]) -> None:
        """Claim the target."""
        self._job.target.epoch = self.epoch = self._job.simulated_starts
        self._job.opened_with = sorted(restored)

    def commit(self, checkpoint_id: int, committables: Committables) -> bool:
        """Take effect when told to, and end when told to."""
        work = PausedWork.present()
        order = work.next_order()
        if order == "leave_out":
            work.done.append(checkpoint_id)
            self._job.target.left_out.add(checkpoint_id)
            raise FailedForKnownReason("it is left out by order of the schedule")
        if order == "apply":
            work.done.append(checkpoint_id)
            self._job.note_batch(checkpoint_id, committables)
            is_new = self._job.target.take(self.epoch, checkpoint_id, committables)
            order = work.next_order()
            if order in ("apply", "leave_out"):
                work.carry(order)
            if order in ("apply", "leave_out", "answer"):
                return is_new
        raise FAULTS[order](f"{order} by order of the schedule")


FAULTS: Mapping[str, type[Exception]] = {
    "put_off": RetryLater,
    "refuse": ValueError,
    "rule_out": CommitImpossible,
}


class Writer(Operator):
    """Hands over what it was told to produce, and again after a checkpoint that was aborted."""

    def __init__(self) -> None:
        self.produced: list[int] = []
        self._handed: dict[int, list[int]] = {}

    def prepare_commit(self, checkpoint_id: int) -> list[Any]:
        handed, self.produced = self.produced, []
        self._handed[checkpoint_id] = handed
        return [-1, *handed]

    def notify_checkpoint_complete(self, checkpoint_id: int) -> None:
        self._handed.clear()

    def notify_checkpoint_aborted(self, checkpoint_id: int) -> None:
        self.produced = self._handed.pop(checkpoint_id, []) + self.produced

    def written(self) -> set[int]:
        """Return what it has produced since the last completed checkpoint."""
        return {*self.produced, *(i for handed in self._handed.values() for i in handed)}

    def snapshot(self, checkpoint_id: int) -> bytes:
        return b""


class Writing(Program):
    """One writer, which never ends."""

    def __init__(self) -> None:
        self.writer = Writer()

    @property
    def operators(self) -> dict[str, Operator]:
        return {"writer": self.writer}

    def work(self) -> Work:
        return Work.IDLE


class HeldStore:
    """A store of which the command that gives up a commit stands still before it saves."""

    def __init__(self, store: InMemoryCheckpointStore) -> None:
        self._store = store
        self.held: CompletedCheckpoint | None = None

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    def save(self, checkpoint: CompletedCheckpoint) -> None:
        self.held = checkpoint

    def finish(self, is_saved: bool) -> None:
        """Let the command end, or die before it has saved."""
        if is_saved:
            assert self.held is not None
            self._store.save(self.held)
        self._store.close()
