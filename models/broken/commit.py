"""Committers as they were before something was learnt, and what that did."""

from __future__ import annotations

from typing import ClassVar

from epochgate.fsm import STAY, Int, Row, Trigger
from epochgate.fsm.closed import Step
from epochgate.fsm.system import machines
from epochgate.models.commit import Checkpoint, Collector, Commit, Subtask

SMALL = {"checkpoints": 1, "commit_retries": 0, "postponements": 0}


class BoastingSubtask(Subtask):
    """A committer that announces as many summaries as there are committers now."""

    def announced(self, checkpoint: int) -> int:
        return self.system.job.parallelism()


class MissingSummaries(Commit):
    """After a restore at more subtasks fewer hold committables, and the global committer waits for
    summaries of the others for ever.
    """

    CONSTANTS: ClassVar[dict[str, int]] = {**Commit.CONSTANTS, **SMALL}

    subtask: list[Subtask] = machines(BoastingSubtask)


class ToldCollector(Collector):
    """A global committer that commits when it is told of a checkpoint, and not when summaries come."""

    notice: int = Int(1)

    hear_notice: Trigger

    # fmt: off
    ROWS: ClassVar[tuple[Row, ...]] = (
        *Collector.ROWS,
        Row("hear_notice", "collecting", STAY, "has_notice", "take_notice", "a checkpoint is completed"),
    )
    # fmt: on

    def has_notice(self) -> bool:
        return self.notice > 0

    def take_notice(self) -> None:
        self.notice = 0
        self.commit_complete()

    def on_summary(self) -> None:
        pass


class TellingCheckpoint(Checkpoint):
    """A checkpoint whose end the global committer is told of too."""

    system: LateCommit

    def tell(self) -> None:
        self.system.collector.notice = 1
        for w in range(self.system.W):
            if self.system.subtask[w].is_active():
                self.system.subtask[w].notice = self.number


class LateCommit(Commit):
    """The notice of the last checkpoint is there before its summaries, and no other notice comes."""

    CONSTANTS: ClassVar[dict[str, int]] = {**Commit.CONSTANTS, **SMALL, "Q": 1, "crashes": 0}
    STEPS = (*Commit.STEPS, Step("collector", "hear_notice"))

    collector: ToldCollector = machines(ToldCollector)
    checkpoint: Checkpoint = machines(TellingCheckpoint)


class HastyCollector(Collector):
    """A global committer that does not count summaries."""

    def is_complete(self, checkpoint: int) -> bool:
        return self.expected[checkpoint] > 0


class PartialCommit(Commit):
    """The first summary makes a checkpoint visible without what other committers hold of it."""

    CONSTANTS: ClassVar[dict[str, int]] = {**Commit.CONSTANTS, **SMALL, "P": 2, "crashes": 0}

    collector: Collector = machines(HastyCollector)


class HastySubtask(Subtask):
    """A committer that commits at the barrier, before the checkpoint is completed."""

    def send_barrier(self) -> None:
        self.commit_one(self.system.checkpoint.number - 1)
        self.stream.push(self.system.barrier)


class EarlyCommit(Commit):
    """What is committed becomes visible, and the checkpoint is never completed."""

    CONSTANTS: ClassVar[dict[str, int]] = {**Commit.CONSTANTS, **SMALL, "Q": 1, "crashes": 0}

    subtask: list[Subtask] = machines(HastySubtask)


class SecondSummary(Commit):
    """A committer had told the global committer of a checkpoint before the next barrier and another
    had not; restored at fewer subtasks, the first holds what the other had and sends a second summary.

    Derived from the rules of Flink's committers and found in no report; not replayed in Flink.
    """

    CONSTANTS: ClassVar[dict[str, int]] = {
        **Commit.CONSTANTS,
        "P": 2,
        "Q": 1,
        "commit_retries": 0,
        "postponements": 0,
        "late_notices": 1,
    }
