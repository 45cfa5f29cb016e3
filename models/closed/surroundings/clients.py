"""Clients of the job, and coordinators that they may ask: for an answer, and for a snapshot without
a checkpoint.

A coordinator may be asked once its start has returned, and its state may be handed over unless it
has failed the job since it was restored. That is claimed here, and that each request has an end.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from epochgate.fsm import STAY, Bool, Int, Opaque, Row, Trigger
from epochgate.fsm.closed import Environment
from epochgate.models.closed.surroundings.driver import Launch
from epochgate.models.closed.surroundings.user import User
from epochgate.models.holder import BROKEN, RESETTING

if TYPE_CHECKING:
    from epochgate.models.closed.asked import AskedJob

QUESTION, SNAPSHOT = 1, 2


class Client(Environment):
    """The clients of one coordinator: port `requester` of its batch snapshot."""

    INDEX = ("coordinator",)
    STATES = ("asking",)
    INITIAL = "asking"

    system: AskedJob
    coordinator: int

    questions: int = Int("asks")
    snapshots: int = Int("asks")
    awaits_answer: bool = Bool()
    awaits_snapshot: bool = Bool()

    ask: Trigger
    want: Trigger

    # fmt: off
    ROWS = (
        Row("ask",  "asking", STAY, "may_ask",
            "count_question, ask_holder", "a client asks the coordinator"),
        Row("want", "asking", STAY, "may_want",
            "count_snapshot, want_state", "a client wants a snapshot without a checkpoint"),
    )
    # fmt: on

    def may_ask(self) -> bool:
        return self.questions < self.system.asks and not self.awaits_answer

    def may_want(self) -> bool:
        return self.snapshots < self.system.asks and not self.awaits_snapshot

    def count_question(self) -> None:
        self.questions += 1
        self.awaits_answer = True

    def count_snapshot(self) -> None:
        self.snapshots += 1
        self.awaits_snapshot = True

    def ask_holder(self) -> None:
        self.system.holder[self.coordinator].client_request(QUESTION)

    def want_state(self) -> None:
        self.system.holder[self.coordinator].batch_snapshot(SNAPSHOT)

    def end(self, request: int) -> None:
        """The request is answered or refused."""
        if request == QUESTION:
            assert self.awaits_answer, "a client is answered once"
            self.awaits_answer = False
        else:
            assert request == SNAPSHOT, "what is answered was asked for"
            assert self.awaits_snapshot, "a client gets one snapshot for each request"
            self.awaits_snapshot = False

    # port `requester` of the batch snapshot

    def ask_coordinator(self, number: int) -> None:
        self.system.user[self.coordinator].future = number

    def keep(self, state: Opaque) -> None:
        pass

    def taken(self) -> None:
        assert self.system.user[self.coordinator].is_whole, (
            "the state that a client gets is that of a coordinator which has started"
        )
        assert not self.system.holder[self.coordinator].has_failed, (
            "the state that a client gets is not that of a coordinator which has failed the job"
        )
        self.end(SNAPSHOT)

    def failed(self) -> None:
        self.end(SNAPSHOT)

    def refused(self) -> None:
        self.end(SNAPSHOT)


class AskedUser(User):
    """A user's coordinator that clients ask."""

    system: AskedJob

    is_whole: bool = Bool()
    """Its start has returned."""
    is_from_batch: bool = Bool()
    """It has the state of the snapshot that the job was given, and is about to start."""
    future: int = Int("snapshots")
    """The snapshot without a checkpoint whose future it holds; 0 for none."""

    complete_future: Trigger

    # fmt: off
    ROWS = (
        *User.ROWS,
        Row("complete_future", "working", STAY, "has_future", "succeed_batch", "its future completes, perhaps late"),
    )
    # fmt: on

    def has_future(self) -> bool:
        return self.future > 0

    def succeed_batch(self) -> None:
        number = self.future
        self.future = 0
        self.system.batch_snapshot[self.coordinator].succeed(number, 0, 0)

    def report_start(self) -> None:
        self.starting = 0
        self.is_whole = True
        self.system.holder[self.coordinator].started()

    # port `user` of the holder

    def start(self) -> None:
        assert not self.system.holder[self.coordinator].has_failed, (
            "a coordinator that has failed the job is restored before it starts"
        )
        assert self.is_restored or self.system.checkpoint.completed == 0, (
            "a coordinator begins with its state in the last completed checkpoint"
        )
        is_given = (
            self.system.holder[self.coordinator].has_batch_snapshot
            and self.system.checkpoint.completed == 0
        )
        assert self.is_from_batch == is_given, (
            "a coordinator begins with the snapshot that its job was given, unless there is a "
            "checkpoint"
        )
        self.is_restored = False
        self.is_from_batch = False
        self.starting = 1

    def begin_again(self) -> None:
        self.starting = 0
        self.is_failing = False
        self.is_whole = False
        self.is_restored = False
        self.is_from_batch = False
        self.is_owed_an_end = False
        for s in range(self.system.subtasks):
            self.system.sender[self.coordinator, s].failed()

    def begin_from(self, checkpoint: int) -> None:
        assert checkpoint > 0 or not self.system.holder[self.coordinator].has_batch_snapshot, (
            "a coordinator goes back to the snapshot that its job was given"
        )
        self.is_restored = checkpoint > 0 and not self.is_in_use()
        self.go_back()

    def reset_to_batch_snapshot(self) -> None:
        assert self.system.checkpoint.completed == 0, (
            "a coordinator goes back to a completed checkpoint, if there is one"
        )
        self.is_from_batch = not self.is_in_use()
        self.go_back()
        self.answer_restore()

    def go_back(self) -> None:
        if self.system.holder[self.coordinator].state == RESETTING:
            assert not self.system.holder[self.coordinator].has_failed, (
                "a coordinator that is restored may fail the job again"
            )
            self.is_failing = False
        self.asked_for = 0
        self.is_owed_an_end = False
        self.system.batch_snapshot[self.coordinator].cancel()
        for s in range(self.system.subtasks):
            self.system.sender[self.coordinator, s].rewind()

    def close(self) -> None:
        self.is_closed = True
        self.is_owed_an_end = False
        self.system.batch_snapshot[self.coordinator].cancel()

    def cancel_batch_snapshot(self) -> None:
        self.system.batch_snapshot[self.coordinator].cancel()

    def client_request(self, request: int) -> None:
        assert self.is_whole, "a coordinator is asked once its start has returned"
        self.system.client[self.coordinator].end(request)

    def batch_snapshot(self, request: int) -> None:
        assert self.is_whole, "a coordinator is asked for its state once its start has returned"
        assert not self.system.holder[self.coordinator].has_failed, (
            "a coordinator that has failed the job is not asked for its state"
        )
        assert self.system.periodic == 0, "a job with periodic checkpoints takes no other snapshot"
        assert request == SNAPSHOT, "a client that asks a question gets no snapshot"
        self.system.batch_snapshot[self.coordinator].ask()

    def refuse_early(self, request: int) -> None:
        assert not self.is_whole, "a coordinator that has started is asked"
        self.refuse(request)

    def refuse_broken(self, request: int) -> None:
        assert not self.is_whole or self.system.holder[self.coordinator].state == BROKEN, (
            "a coordinator that has started is asked"
        )
        self.refuse(request)

    def refuse_failing(self, request: int) -> None:
        assert self.system.holder[self.coordinator].has_failed, (
            "a coordinator that has not failed the job is asked for its state"
        )
        self.refuse(request)

    def refuse(self, request: int) -> None:
        assert request == QUESTION or self.system.periodic == 0, (
            "a job with periodic checkpoints says so"
        )
        self.system.client[self.coordinator].end(request)

    def refuse_periodic(self, request: int) -> None:
        assert self.system.periodic > 0, "a job without periodic checkpoints takes the snapshot"
        self.system.client[self.coordinator].end(request)

    def refuse_late(self, request: int) -> None:
        self.system.client[self.coordinator].end(request)


class Adoption(Launch):
    """The driver begins, perhaps from a snapshot without a checkpoint that another job has left."""

    system: AskedJob

    adopt: Trigger

    # fmt: off
    ROWS = (
        *Launch.ROWS,

        Row("adopt", "before", "after", None,
            "adopt_snapshots, start", "the job was given a snapshot without a checkpoint"),
    )
    # fmt: on

    def adopt_snapshots(self) -> None:
        for c in range(self.system.coordinators):
            self.system.holder[c].adopt_batch_snapshot()
