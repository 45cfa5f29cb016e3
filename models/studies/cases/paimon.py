"""Paimon's commit coordinator: END_INPUT and the notice of the final checkpoint have no order.

A bounded writer sends its last committables to the coordinator in an END_INPUT event, by an RPC
that waits for its answer, and acknowledges the final checkpoint by one that does not. The actor
system takes the two for different senders, so that the notice of the completed checkpoint may reach
the coordinator before the event::

    writer       END_INPUT ----------------------------------->  (of the attempt before: dropped)
                 acknowledge ---> complete
    coordinator                   notifyCheckpointComplete: not aligned, the job fails over

The job is restored from the final checkpoint, in which each writer is at the end of its input.

Source: Apache Paimon's pull request 8671, for PIP-30. Mended there in two ways, both of which are
needed: writers keep what they sent in their state and send it again when they are restored, and the
coordinator commits with the last END_INPUT, without waiting for a notice. Left out: writers that
fail before the final checkpoint, and checkpoints before it.
"""

from __future__ import annotations

from typing import ClassVar

from epochgate.fsm import STAY, Array, Bool, Channel, Fifo, Ignore, Machine, Row, Trigger
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

WRITING, ENDED, CHECKPOINTED = "writing", "ended", "checkpointed"
COLLECTING, COMMITTED = "collecting", "committed"
PENDING, COMPLETED = "pending", "completed"


class Writer(Machine):
    """A bounded writer: at the end of its input it flushes, and its last committables are sent."""

    INDEX = ("writer",)
    STATES = (WRITING, ENDED, CHECKPOINTED)
    INITIAL = WRITING
    TERMINAL = (CHECKPOINTED,)

    system: Paimon
    writer: int

    end_input: Trigger
    snapshot: Trigger
    restore: Trigger

    # fmt: off
    ROWS: ClassVar[tuple[Row, ...]] = (
        Row("end_input", WRITING,      ENDED,        None,
            "send",        "its input is at the end: it flushes, and sends END_INPUT"),
        Row("snapshot",  ENDED,        CHECKPOINTED, None,
            "acknowledge", "the barrier of the final checkpoint"),
        Row("restore",   CHECKPOINTED, STAY,         None,
            "send_again",  "its state holds what it sent: RestoredCommittableEvent"),
    )
    # fmt: on

    def send(self) -> None:
        self.system.link[self.writer].event.push(self.writer)

    def acknowledge(self) -> None:
        self.system.link[self.writer].acknowledgement.push(self.writer)

    def send_again(self) -> None:
        self.system.link[self.writer].event.push(self.writer)


class Link(Environment):
    """From one writer to the job manager: event and acknowledgement keep no mutual order."""

    INDEX = ("writer",)
    STATES = ("up",)
    INITIAL = "up"

    system: Paimon
    writer: int

    event: Fifo[int] = Channel("N", 1)
    """sendEventToCoordinator: END_INPUT with the last committables."""
    acknowledgement: Fifo[int] = Channel("N", 1)
    """acknowledgeCheckpoint."""

    deliver_event: Trigger
    deliver_acknowledgement: Trigger

    # fmt: off
    ROWS: ClassVar[tuple[Row, ...]] = (
        Row("deliver_event",           "up", STAY, "has_event",
            "bring_event",           "END_INPUT arrives"),
        Row("deliver_acknowledgement", "up", STAY, "has_acknowledgement",
            "bring_acknowledgement", "the acknowledgement arrives"),
    )
    # fmt: on

    def has_event(self) -> bool:
        return not self.event.empty()

    def has_acknowledgement(self) -> bool:
        return not self.acknowledgement.empty()

    def bring_event(self) -> None:
        self.system.coordinator.end_input(self.event.pop())

    def bring_acknowledgement(self) -> None:
        self.system.checkpoint.acknowledge(self.acknowledgement.pop())


class FinalCheckpoint(Environment):
    """The checkpoint that Flink takes once all inputs are at the end."""

    STATES = (PENDING, COMPLETED)
    INITIAL = PENDING
    TERMINAL = (COMPLETED,)

    system: Paimon

    has_acknowledged: list[bool] = Array(Bool(), "N")

    acknowledge: Trigger

    # fmt: off
    ROWS: ClassVar[tuple[Row, ...]] = (
        Row("acknowledge", PENDING, STAY,      "not is_last", "note",         "others are missing"),
        Row("acknowledge", PENDING, COMPLETED, "is_last",     "note, notify", "all writers have their part"),
    )
    # fmt: on

    def is_last(self, writer: int) -> bool:
        return all(w == writer or self.has_acknowledged[w] for w in range(self.system.N))

    def note(self, writer: int) -> None:
        self.has_acknowledged[writer] = True

    def notify(self, writer: int) -> None:
        self.system.coordinator.notify_checkpoint_complete()


class Coordinator(Machine):
    """CommittingWriteOperatorCoordinator: aligns the committables of all writers, and commits."""

    STATES = (COLLECTING, COMMITTED)
    INITIAL = COLLECTING
    TERMINAL = (COMMITTED,)

    system: Paimon

    has_committables: list[bool] = Array(Bool(), "N")
    has_failed_over: bool = Bool()

    end_input: Trigger
    notify_checkpoint_complete: Trigger

    # fmt: off
    ROWS: ClassVar[tuple[Row, ...]] = (
        Row("end_input",                     COLLECTING, STAY,      "not is_last",
            "align",         "other writers have not reached the end"),
        Row("end_input",                     COLLECTING, COMMITTED, "is_last",
            "align",         "all have: the final commit waits for no notice"),
        Row("notify_checkpoint_complete",    COLLECTING, STAY,      None,
            "fail_over",     "committables are missing: the job fails over to this checkpoint"),
        Ignore("notify_checkpoint_complete", COMMITTED,             None,
                             "everything is committed"),
    )
    # fmt: on

    def is_last(self, writer: int) -> bool:
        return all(w == writer or self.has_committables[w] for w in range(self.system.N))

    def align(self, writer: int) -> None:
        self.has_committables[writer] = True

    def fail_over(self) -> None:
        self.has_failed_over = True
        for w in range(self.system.N):
            self.has_committables[w] = False
            self.system.link[w].event.clear()
            self.system.writer[w].restore()


class Paimon(ClosedSystem):
    """Paimon's coordinator commits the end of a bounded job, whatever comes first."""

    IS_SEPARATED = False  # a design that does not run, told without ports
    INDEX_SETS: ClassVar[dict[str, str]] = {"writer": "N"}
    CONSTANTS: ClassVar[dict[str, int]] = {"N": 2}
    STEPS: ClassVar[tuple[Step, ...]] = (
        Step("writer", "end_input"),
        Step("writer", "snapshot"),
        Step("link", "deliver_event"),
        Step("link", "deliver_acknowledgement"),
    )

    N: int

    writer: list[Writer] = machines(Writer)
    link: list[Link] = machines(Link)
    checkpoint: FinalCheckpoint = machines(FinalCheckpoint)
    coordinator: Coordinator = machines(Coordinator)

    @always("no committable of the completed final checkpoint is lost", when="is_completed")
    def loses_nothing(self) -> bool:
        return self.coordinator.state == COMMITTED or all(
            self.coordinator.has_committables[w] or not self.link[w].event.empty()
            for w in range(self.N)
        )

    def is_completed(self) -> bool:
        return self.checkpoint.state == COMPLETED

    @eventually("the end of the input is committed")
    def is_committed(self) -> bool:
        return self.coordinator.state == COMMITTED

    @sometimes("the notice overtakes END_INPUT")
    def overtakes(self) -> bool:
        return self.coordinator.has_failed_over

    @terminal("everything is committed, and the checkpoint is completed")
    def is_over(self) -> bool:
        return self.is_committed() and self.is_completed()


class ForgetfulWriter(Writer):
    """A writer whose state does not hold what it sent."""

    # fmt: off
    ROWS: ClassVar[tuple[Row, ...]] = (
        *(row for row in Writer.ROWS if row.trigger != "restore"),
        Row("restore", CHECKPOINTED, STAY, None, None, "its input is at the end: there is nothing to send"),
    )
    # fmt: on


class TwoMessages(Paimon):
    """Paimon before: the notice overtakes END_INPUT, and nothing is sent again."""

    writer: list[Writer] = machines(ForgetfulWriter)


class WaitingCoordinator(Coordinator):
    """A coordinator that commits at the notice of the final checkpoint."""

    # fmt: off
    ROWS: ClassVar[tuple[Row, ...]] = (
        Row("end_input",                  COLLECTING, STAY,      None,
            "align",     "it waits for the checkpoint"),
        Row("notify_checkpoint_complete", COLLECTING, COMMITTED, "is_aligned",
            None,        "all committables are there"),
        Row("notify_checkpoint_complete", COLLECTING, STAY,      "not is_aligned",
            "fail_over", "committables are missing: the job fails over to this checkpoint"),
    )
    # fmt: on

    def is_aligned(self) -> bool:
        return all(self.has_committables[w] for w in range(self.system.N))


class AtTheNotice(Paimon):
    """Half mended: restored writers send again, and no notice comes to commit at."""

    coordinator: Coordinator = machines(WaitingCoordinator)


class WholeAcknowledgement(Link):
    """A link whose acknowledgements carry the committables."""

    def bring_event(self) -> None:
        self.event.clear()

    def bring_acknowledgement(self) -> None:
        self.system.coordinator.end_input(self.writer)
        self.system.checkpoint.acknowledge(self.acknowledgement.pop())


class OneMessage(Paimon):
    """Committables travel with the acknowledgement: one message has no order."""

    UNTAKEN: ClassVar[dict[str, str]] = {
        "coordinator.notify_checkpoint_complete": "a completed checkpoint has its committables",
        "writer.restore": "no notice comes too early, so that the job does not fail over",
    }

    link: list[Link] = machines(WholeAcknowledgement)

    # In place of the claim that is not met: no notice overtakes anything.
    @sometimes("the final checkpoint is completed")
    def overtakes(self) -> bool:
        return self.is_completed()
