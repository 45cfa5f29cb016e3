"""Flink's sink with a global committer: the end of the data precedes the last committables.

A committer sends committables on when it is told that their checkpoint is completed. At the end of
its input it sends the end of the data at once, and what the writer flushed last belongs to the
final checkpoint, which completes afterwards. The global committer has finished by then, and its
task discards what comes behind the end of the data::

    writer     a |1        b, end of input  |2
    committer        1: a  END OF DATA          2: b
    global           a     finished             (discarded)

Source: FLINK-38614; `CommitterOperator.endInput` and `FinishedDataOutput` of Flink 2.3.0. Mended in
the draft of pull request 28476: the end of the data waits for the last committables. Left out:
failures, since what is discarded is in a completed checkpoint and comes from no later one.
"""

from __future__ import annotations

from typing import ClassVar

from epochgate.fsm import STAY, Array, Bool, Channel, Fifo, Int, Machine, Row, Trigger
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

RUNNING, ENDED, FINISHED = "running", "ended", "finished"
IDLE, COMPLETED = "idle", "completed"


class Committer(Machine):
    """Writer and CommitterOperator, in one chain: one committable for each checkpoint."""

    STATES = (RUNNING, ENDED, FINISHED)
    INITIAL = RUNNING
    TERMINAL = (FINISHED,)

    system: SinkV2

    output: Fifo[int] = Channel("items", "items")
    """To the global committer: committables, by their checkpoint, and 0 for the end of the data."""

    end_input: Trigger
    notify_checkpoint_complete: Trigger

    # fmt: off
    ROWS: ClassVar[tuple[Row, ...]] = (
        Row("end_input",                  RUNNING, ENDED,    None,
            None,                "the writer flushes for the final checkpoint; the end of the data waits"),
        Row("notify_checkpoint_complete", RUNNING, STAY,     None,
            "emit",              "the committables of this checkpoint are committed, and sent on"),
        Row("notify_checkpoint_complete", ENDED,   FINISHED, "is_final",
            "emit, end_of_data", "the last committables, and the end of the data behind them"),
        Row("notify_checkpoint_complete", ENDED,   STAY,     "not is_final",
            "emit",              "the notice of a checkpoint before the end of the input"),
    )
    # fmt: on

    def is_final(self, checkpoint: int) -> bool:
        return self.system.checkpoint.is_final

    def emit(self, checkpoint: int) -> None:
        self.output.push(checkpoint)

    def end_of_data(self) -> None:
        self.output.push(0)


class Checkpoint(Environment):
    """Flink's checkpoints, one at a time; the final one is that after the end of the input."""

    STATES = (IDLE, COMPLETED)
    INITIAL = IDLE

    system: SinkV2

    number: int = Int("K")
    is_final: bool = Bool()

    complete: Trigger
    notify: Trigger

    # fmt: off
    ROWS: ClassVar[tuple[Row, ...]] = (
        Row("complete", IDLE,      COMPLETED, "may_complete",
            "count", "all tasks have acknowledged it"),
        Row("notify",   COMPLETED, IDLE,      None,
            "tell",  "notifyCheckpointComplete reaches the committer"),
    )
    # fmt: on

    def may_complete(self) -> bool:
        return not self.is_final and (
            self.system.committer.state == ENDED or self.number + 1 < self.system.K
        )

    def count(self) -> None:
        self.number += 1
        self.is_final = self.system.committer.state == ENDED

    def tell(self) -> None:
        self.system.committer.notify_checkpoint_complete(self.number)


class GlobalCommitter(Machine):
    """GlobalCommitterOperator in its task: commits what arrives until the end of the data."""

    STATES = (RUNNING, FINISHED)
    INITIAL = RUNNING
    TERMINAL = (FINISHED,)

    system: SinkV2

    committed: list[bool] = Array(Bool(), "items")

    receive: Trigger

    # fmt: off
    ROWS: ClassVar[tuple[Row, ...]] = (
        Row("receive", RUNNING,  STAY,     "has_item and not has_end",
            "commit",  "all committables of a checkpoint: they are committed"),
        Row("receive", RUNNING,  FINISHED, "has_item and has_end",
            "take",    "the end of the data: the operator has finished"),
        Row("receive", FINISHED, STAY,     "has_item",
            "take",    "FinishedDataOutput: unexpected record, at log level DEBUG"),
    )
    # fmt: on

    def has_item(self) -> bool:
        return not self.system.committer.output.empty()

    def has_end(self) -> bool:
        return not self.system.committer.output.empty() and self.system.committer.output.head() == 0

    def commit(self) -> None:
        self.committed[self.system.committer.output.pop()] = True

    def take(self) -> None:
        self.system.committer.output.pop()


class SinkV2(ClosedSystem):
    """Flink's committers at the end of a bounded job: everything is committed globally."""

    IS_SEPARATED = False  # a design that does not run, told without ports
    CONSTANTS: ClassVar[dict[str, int]] = {"K": 3}
    DERIVED: ClassVar[dict[str, str]] = {"items": "K + 1"}
    STEPS: ClassVar[tuple[Step, ...]] = (
        Step("checkpoint", "complete"),
        Step("checkpoint", "notify"),
        Step("committer", "end_input"),
        Step("global_committer", "receive"),
    )
    UNTAKEN: ClassVar[dict[str, str]] = {
        "global_committer.receive": "nothing follows the end of the data that waits"
    }

    K: int

    committer: Committer = machines(Committer)
    checkpoint: Checkpoint = machines(Checkpoint)
    global_committer: GlobalCommitter = machines(GlobalCommitter)

    @always("what is committed is committed globally once the job has finished", when="has_ended")
    def commits_all(self) -> bool:
        return all(
            self.global_committer.committed[k + 1] or k >= self.checkpoint.number
            for k in range(self.K)
        )

    def has_ended(self) -> bool:
        return (
            self.committer.state == FINISHED
            and self.global_committer.state == FINISHED
            and self.committer.output.empty()
        )

    @eventually("the job finishes")
    def finishes(self) -> bool:
        return self.has_ended()

    @sometimes("the job finishes after a checkpoint before the end of its input")
    def had_another(self) -> bool:
        return self.has_ended() and self.checkpoint.number > 1

    @terminal("the job has finished")
    def is_over(self) -> bool:
        return self.has_ended()


class EndingCommitter(Committer):
    """A committer whose end of the data follows the end of its input."""

    # fmt: off
    ROWS: ClassVar[tuple[Row, ...]] = (
        Row("end_input",                  RUNNING, ENDED,    None,
            "end_of_data", "the writer flushes for the final checkpoint; the task sends the end of the data"),
        *(row for row in Committer.ROWS if row.trigger != "end_input" and row.dest != FINISHED),
        Row("notify_checkpoint_complete", ENDED,   FINISHED, "is_final",
            "emit",        "the committables of the final checkpoint are committed, and sent on"),
    )
    # fmt: on


class EarlyEnd(SinkV2):
    """Flink 2.3.0: the last committables come behind the end of the data."""

    UNTAKEN: ClassVar[dict[str, str]] = {}

    committer: Committer = machines(EndingCommitter)
