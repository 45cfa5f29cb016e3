"""Eight hazards of the mechanism as Flink has it now, each in the smallest configuration that has it.

They were derived from the source and found in no report; each is a property that fails here with a
shortest trace, and docs/flink-hazards.md replays each in Flink. `StreamedFlink` holds within bounds
and is what some of them need: subtasks that are no sources. Their barriers come with records, so an
event may overtake a barrier or be overtaken, and a task that was told of an abort before the barrier
arrives does not acknowledge it.
"""

from __future__ import annotations

from typing import ClassVar

from epochgate.fsm import STAY, Array, Bool, Channel, Fifo, Machine, Row, Trigger
from epochgate.fsm.closed import Step, always
from epochgate.fsm.system import machines
from epochgate.models.studies.flink.holder import ABORT_TRIGGERING, FAILED, Snapshot
from epochgate.models.studies.flink.system import Flink
from epochgate.models.studies.flink.task import RUNNING, Task

FINISHED = "finished"
ALONE = {"K": 1, "F": 0, "refusals": 0, "concurrent": 1}
"""One checkpoint, and nothing fails."""


class StreamedTask(Task):
    """A subtask that is no source: its barrier comes with the records of one that is outside, in the
    same failover region. Its wire holds notices of aborts above events and barriers.
    """

    stream: Fifo[int] = Channel("barrier", "K")
    is_aborted: list[bool] = Array(Bool(), "K")
    """It was told that the checkpoint is aborted."""
    has_refused: list[bool] = Array(Bool(), "K")
    """The barrier came after that."""

    align: Trigger

    # fmt: off
    ROWS: ClassVar[tuple[Row, ...]] = (
        *Task.ROWS,

        Row("align", RUNNING, STAY, "has_barrier",
            "take_streamed_barrier", "the barrier arrives behind the records before it"),
    )
    # fmt: on

    def has_barrier(self) -> bool:
        return not self.stream.empty()

    def put_barrier(self, checkpoint: int) -> None:
        self.stream.push(checkpoint)

    def put_abort(self, checkpoint: int) -> None:
        if self.is_believed_to_run():
            self.wire.push(self.system.E + checkpoint)

    def take_streamed_barrier(self) -> None:
        checkpoint = self.stream.pop()
        if self.is_aborted[checkpoint]:
            self.has_refused[checkpoint] = True
        else:
            self.take_snapshot(checkpoint)

    def take_notice(self, checkpoint: int) -> None:
        self.is_aborted[checkpoint] = True

    def load(self) -> None:
        self.stream.clear()
        self.is_reported = False
        for k in range(self.system.K):
            self.is_aborted[k] = False
            self.has_refused[k] = False
        for e in range(self.system.E):
            self.handled[e] = self.completed[e]


class StreamedFlink(Flink):
    """Subtasks that are no sources, while nothing is aborted."""

    CONSTANTS: ClassVar[dict[str, int]] = {**Flink.CONSTANTS, "F": 0, "refusals": 0}
    STEPS = (*Flink.STEPS, Step("task", "align"))

    task: list[StreamedTask] = machines(StreamedTask)  # type: ignore[assignment]  # a Task too


class Refusal(Machine):
    """A second request, for instance a savepoint, that fails before it has marked anything."""

    STATES = ("possible", "refused")
    INITIAL = "possible"
    TERMINAL = ("refused",)

    system: Flink

    refuse: Trigger

    # fmt: off
    ROWS: ClassVar[tuple[Row, ...]] = (
        Row("refuse", "possible", "refused", "may_trigger",
            "post_abort", "its directory cannot be written, or a task does not run"),
    )
    # fmt: on

    def may_trigger(self) -> bool:
        return not any(self.system.pending[k].is_triggering() for k in range(self.system.K))

    def post_abort(self) -> None:
        self.system.main.post(ABORT_TRIGGERING, 0)


class EarlyReopening(StreamedFlink):
    """D1: the abort of another trigger names no checkpoint, and reopens what the first has closed."""

    CONSTANTS: ClassVar[dict[str, int]] = {**Flink.CONSTANTS, **ALONE}
    STEPS = (*StreamedFlink.STEPS, Step("refusal", "refuse", is_fair=False))

    refusal: Refusal = machines(Refusal)


class SurvivingSnapshot(Snapshot):
    """A handler that fails the checkpoint where the real one ends the process."""

    def check_none(self) -> None:
        pass


class SkippedReopening(StreamedFlink):
    """D2: a notice finds a gateway that was replaced inline, throws, and the others stay closed."""

    CONSTANTS: ClassVar[dict[str, int]] = {
        **Flink.CONSTANTS,
        **ALONE,
        "F": 1,
        "savepoints": 1,
        "periodic": 0,
    }

    snapshot: list[Snapshot] = machines(SurvivingSnapshot)

    @always("a gateway that will not be reopened is open")
    def is_reopened(self) -> bool:
        return all(self.is_reopened_at(s) for s in range(self.N))

    def is_reopened_at(self, s: int) -> bool:
        return not any(
            self.holder.has_outcome[k]
            and self.task[s].has_refused[k]
            and self.gateway[s, self.holder.current[s]].shut[k]
            for k in range(self.K)
        )


class MixedClose(Flink):
    """D3: a snapshot completes after one of the gateways was replaced, and the process ends."""

    CONSTANTS: ClassVar[dict[str, int]] = SkippedReopening.CONSTANTS


class Timer(Machine):
    """The timeout of each checkpoint, or a user who cancels it."""

    INDEX = ("checkpoint",)
    STATES = ("running",)
    INITIAL = "running"

    system: Flink
    checkpoint: int

    expire: Trigger

    # fmt: off
    ROWS: ClassVar[tuple[Row, ...]] = (
        Row("expire", "running", STAY, "is_pending", "abort", "it takes too long"),
    )
    # fmt: on

    def is_pending(self) -> bool:
        return self.system.pending[self.checkpoint].is_pending()

    def abort(self) -> None:
        self.system.pending[self.checkpoint].abort()


class TimedFlink(Flink):
    """Sources whose checkpoints may be aborted at any time: an event that is on its way when the next
    checkpoint begins is still before its barrier, as long as it is not lost.
    """

    STEPS = (*Flink.STEPS, Step("timer", "expire", is_fair=False))

    timer: list[Timer] = machines(Timer)


class ForgottenSends(StreamedFlink):
    """D4: a checkpoint is aborted while it waits for sends, and the next one does not know of them.

    No event is lost here: a barrier that overtakes one is enough.
    """

    CONSTANTS: ClassVar[dict[str, int]] = {**Flink.CONSTANTS, **ALONE, "N": 1, "K": 2}
    STEPS = (*StreamedFlink.STEPS, Step("timer", "expire", is_fair=False))

    timer: list[Timer] = machines(Timer)


class ForgottenAtFailover(StreamedFlink):
    """D4 without a timeout: the failure of another subtask aborts the checkpoint that waits."""

    CONSTANTS: ClassVar[dict[str, int]] = {**Flink.CONSTANTS, **ALONE, "K": 2, "F": 1}


class LossyTask(Task):
    """A source to which an event may be lost; the main thread learns of it later."""

    is_lost: list[bool] = Array(Bool(), "E")

    lose: Trigger
    notice: Trigger

    # fmt: off
    ROWS: ClassVar[tuple[Row, ...]] = (
        *Task.ROWS,

        Row("lose",   RUNNING, STAY, "has_event and may_vanish",
            "spend, lose_event", "the call that carries the oldest message does not arrive"),
        Row("notice", RUNNING, STAY, "has_lost",
            "report_lost",       "that call times out"),
    )
    # fmt: on

    def has_event(self) -> bool:
        return not self.wire.empty() and self.wire.head() < self.system.E

    def has_lost(self) -> bool:
        return any(self.is_lost[e] for e in range(self.system.E))

    def lose_event(self) -> None:
        event = self.wire.pop()
        self.is_lost[event] = True

    def report_lost(self) -> None:
        for e in range(self.system.E):
            if self.is_lost[e]:
                self.is_lost[e] = False
                self.system.main.post_lost(self.subtask, self.attempt, e)


class ForgottenLoss(Flink):
    """D4 for a source: the event that was forgotten is lost, and known to be only after the next
    checkpoint has completed.
    """

    CONSTANTS: ClassVar[dict[str, int]] = {**Flink.CONSTANTS, **ALONE, "N": 1, "K": 2, "F": 1}
    STEPS = (
        *(step for step in Flink.STEPS if step.trigger != "vanish"),
        Step("timer", "expire", is_fair=False),
        Step("task", "lose", is_fair=False),
        Step("task", "notice"),
    )

    task: list[Task] = machines(LossyTask)
    timer: list[Timer] = machines(Timer)


class AbandonedFuture(Flink):
    """D5: a gateway is replaced while it is closed, and what it holds is never sent nor failed."""

    CONSTANTS: ClassVar[dict[str, int]] = SkippedReopening.CONSTANTS

    snapshot: list[Snapshot] = machines(SurvivingSnapshot)

    @always("I4: a gateway that was replaced holds nothing")
    def has_sent_all(self) -> bool:
        return all(self.has_sent_all_to(s) for s in range(self.N))

    def has_sent_all_to(self, s: int) -> bool:
        return all(
            a == self.holder.current[s]
            or all(self.gateway[s, a].held[k].empty() for k in range(self.K))
            for a in range(self.A)
        )


class FinishingTask(Task):
    """A subtask that comes to the end of its input, unless a barrier is ahead; its gateway stays in
    the map.
    """

    STATES = (*Task.STATES, FINISHED)
    TERMINAL = (FINISHED,)

    finish: Trigger

    # fmt: off
    ROWS: ClassVar[tuple[Row, ...]] = (
        *Task.ROWS,
        Row("finish", RUNNING, FINISHED, "may_finish", "lose_sends", "it has reached the end of its input"),
    )
    # fmt: on

    def may_finish(self) -> bool:
        return (
            self.wire.empty()
            and self.subtask == self.system.N - 1
            and not any(self.system.pending[k].is_pending() for k in range(self.system.K))
        )

    def lets_checkpoints_begin(self) -> bool:
        return self.is_believed_to_run() or self.state == FINISHED


class UnreachedReopening(Flink):
    """D6: a finished subtask acknowledges no savepoint, whose completion is not announced: its gateway
    stays closed, and the next event to it holds up every checkpoint.
    """

    CONSTANTS: ClassVar[dict[str, int]] = {**Flink.CONSTANTS, **ALONE, "K": 2, "savepoints": 1}
    STEPS = (*Flink.STEPS, Step("task", "finish", is_fair=False))

    task: list[Task] = machines(FinishingTask)


class IntolerantCheckpoint(Flink):
    """D7: an event that may be lost goes to a finished subtask, and fails a checkpoint."""

    CONSTANTS: ClassVar[dict[str, int]] = {**Flink.CONSTANTS, **ALONE}
    STEPS = UnreachedReopening.STEPS

    task: list[Task] = machines(FinishingTask)

    @always("no checkpoint fails while nothing has failed")
    def fails_for_a_reason(self) -> bool:
        return not any(self.snapshot[k].state == FAILED for k in range(self.K))


class UntoldCoordinator(Flink):
    """D8: a checkpoint is aborted before it has marked the gateways: its notice throws at the first of
    them, and the coordinator is not told.
    """

    CONSTANTS: ClassVar[dict[str, int]] = {**Flink.CONSTANTS, **ALONE}
    STEPS = (*Flink.STEPS, Step("timer", "expire", is_fair=False))

    timer: list[Timer] = machines(Timer)

    @always("the coordinator is told how a checkpoint ends")
    def is_told(self) -> bool:
        return all(self.holder.is_told[k] or not self.holder.has_outcome[k] for k in range(self.K))
