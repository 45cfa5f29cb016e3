"""A closed job around the snapshots without checkpoints: what is handed over is in the subtask.

A coordinator sends numbered events down one wire to its subtask and answers futures, in time or too
late; the subtask fails and begins again from nothing, and so does the coordinator when everything
goes back. The claim is that a snapshot which is handed over counts no event that the subtask has
not handled, and that everybody who asks for one is answered.
"""

from __future__ import annotations

from typing import ClassVar

from epochgate.fsm import STAY, Array, Bool, Int, Row, Trigger, machines
from epochgate.fsm.closed import (
    ClosedSystem,
    Environment,
    Step,
    always,
    leads_to,
    sometimes,
    terminal,
)
from epochgate.models.batch_snapshot import ASKED, CONFIRMING, IDLE, BatchSnapshot

UNUSED, OPEN, OVER = "unused", "open", "over"


class Answer(Environment):
    """The future of one snapshot, as the coordinator holds it; numbered as the snapshots are."""

    INDEX = ("answer",)
    STATES = (UNUSED, OPEN, OVER)
    INITIAL = UNUSED
    TERMINAL = (OVER,)

    system: BatchJob
    answer: int

    hand_out: Trigger
    complete: Trigger
    fail: Trigger

    # fmt: off
    ROWS: ClassVar[tuple[Row, ...]] = (
        Row("hand_out", UNUSED, OPEN, None, None,                "the coordinator is asked"),

        Row("complete", OPEN,   OVER, None, "count_and_succeed", "the moment of the snapshot"),
        Row("fail",     OPEN,   OVER, None, "report_failure",    "it is failed, cancelled or dropped"),
    )
    # fmt: on

    def count_and_succeed(self) -> None:
        self.system.world[0].upto[self.answer] = self.system.world[0].sent
        in_flight = self.system.world[0].sent - self.system.world[0].handled
        self.system.batch_snapshot[0].succeed(self.answer + 1, in_flight, self.system.world[0].sent)

    def report_failure(self) -> None:
        self.system.batch_snapshot[0].fail(self.answer + 1)


class World(Environment):
    """The coordinator's sends, its subtask, and those who want snapshots: port `requester`."""

    INDEX = ("coordinator",)
    STATES = ("up",)
    INITIAL = "up"

    system: BatchJob
    coordinator: int

    sent: int = Int("E")
    """Events sent since the subtask began."""
    handled: int = Int("E")
    upto: list[int] = Array(Int("E"), "S")
    """For each snapshot, the last event whose end it is told of; 0 when there is none."""
    kept: int = Int("E")
    """How many events the snapshot under way counts."""
    requests: int = Int("R")
    answered: int = Int("R")
    failures: int = Int("F")
    is_to_fail: bool = Bool()
    """The snapshot under way has to fail in this step; never so between two steps."""

    request: Trigger
    send: Trigger
    deliver: Trigger
    lose: Trigger
    go_back: Trigger
    spoil: Trigger
    hear_late: Trigger

    # fmt: off
    ROWS: ClassVar[tuple[Row, ...]] = (
        Row("request", "up", STAY, "may_request",
            "count_request",                 "a client requests a snapshot"),
        Row("send",    "up", STAY, "may_send",
            "count_send",                    "the coordinator sends"),
        Row("deliver", "up", STAY, "has_sends",
            "handle_next",                   "the subtask handles the next event"),
        Row("lose",    "up", STAY, "may_fail",
            "lose_all, begin_again",         "the subtask fails and begins again from nothing"),
        Row("go_back", "up", STAY, "may_fail",
            "cancel, lose_all, begin_again", "everything goes back to the beginning"),
        Row("spoil",   "up", STAY, "may_fail and is_under_way",
            "demand_failure, cancel",        "the coordinator finds its state wrong"),
        Row("hear_late", "up", STAY, "has_asked_once",
            "end_again",                     "what is over ends once more"),
    )
    # fmt: on

    def may_request(self) -> bool:
        return self.requests < self.system.R

    def may_send(self) -> bool:
        return self.sent < self.system.E

    def has_sends(self) -> bool:
        return self.handled < self.sent

    def has_asked_once(self) -> bool:
        """Return whether there is a snapshot, and something else may happen yet."""
        return self.system.batch_snapshot[self.coordinator].number > 0 and (
            self.may_request() or self.may_send() or self.has_sends()
        )

    def may_fail(self) -> bool:
        return self.failures < self.system.F

    def is_under_way(self) -> bool:
        return self.system.batch_snapshot[self.coordinator].state != IDLE

    def count_request(self) -> None:
        self.requests += 1
        self.system.batch_snapshot[self.coordinator].ask()

    def count_send(self) -> None:
        self.sent += 1

    def handle_next(self) -> None:
        self.handled += 1
        for n in range(self.system.S):
            if self.upto[n] >= self.handled:
                self.system.batch_snapshot[self.coordinator].confirm(n + 1)

    def demand_failure(self) -> None:
        self.failures += 1
        self.is_to_fail = True

    def cancel(self) -> None:
        self.system.batch_snapshot[self.coordinator].cancel()

    def lose_all(self) -> None:
        self.failures += 1
        for n in range(self.system.S):
            if self.upto[n] > self.handled:
                self.system.batch_snapshot[self.coordinator].lose(n + 1)

    def end_again(self) -> None:
        """End the futures and sends of earlier snapshots, and what is over of the present one."""
        is_asked = self.system.batch_snapshot[self.coordinator].state == ASKED
        is_confirming = self.system.batch_snapshot[self.coordinator].state == CONFIRMING
        number = self.system.batch_snapshot[self.coordinator].number
        for n in range(self.system.S):
            if n + 1 < number or (n + 1 == number and not is_asked):
                self.system.batch_snapshot[self.coordinator].succeed(n + 1, 0, 0)
                self.system.batch_snapshot[self.coordinator].succeed(n + 1, 1, 0)
                self.system.batch_snapshot[self.coordinator].fail(n + 1)
            if n + 1 < number or (n + 1 == number and not is_confirming):
                self.system.batch_snapshot[self.coordinator].confirm(n + 1)
                self.system.batch_snapshot[self.coordinator].lose(n + 1)

    def begin_again(self) -> None:
        self.sent = 0
        self.handled = 0
        for n in range(self.system.S):
            self.upto[n] = 0

    def ask_coordinator(self, number: int) -> None:
        self.system.answer[number - 1].hand_out()

    def keep(self, state: int) -> None:
        number = self.system.batch_snapshot[self.coordinator].number
        assert state == self.upto[number - 1], (
            "the state that is kept is the coordinator's when its future completed"
        )
        self.kept = state

    def taken(self) -> None:
        assert self.kept <= self.handled, "a snapshot counts what the subtask has handled"
        self.answered += 1

    def failed(self) -> None:
        self.answered += 1
        self.is_to_fail = False

    def refused(self) -> None:
        self.answered += 1


class BatchJob(ClosedSystem):
    """Snapshots without checkpoints: no send is lost between the snapshot and its answer."""

    INDEX_SETS: ClassVar[dict[str, str]] = {"coordinator": "coordinators", "answer": "S"}
    CONSTANTS: ClassVar[dict[str, int]] = {
        "coordinators": 1,
        "R": 3,
        "E": 3,
        "F": 2,
    }
    DERIVED: ClassVar[dict[str, str]] = {"S": "R + 0", "snapshots": "R + 0", "in_flight": "E + 0"}
    STEPS: ClassVar[tuple[Step, ...]] = (
        Step("world", "request", is_fair=False),
        Step("world", "send", is_fair=False),
        Step("world", "deliver"),
        Step("world", "lose", is_fair=False),
        Step("world", "go_back", is_fair=False),
        Step("world", "spoil", is_fair=False),
        Step("world", "hear_late", is_fair=False, is_stuttering=True),
        Step("answer", "complete"),
        Step("answer", "fail", is_fair=False),
    )
    WIRING: ClassVar[dict[str, str]] = {"batch_snapshot.requester": "world"}

    coordinators: int
    R: int
    E: int
    F: int
    S: int

    batch_snapshot: list[BatchSnapshot] = machines(BatchSnapshot)
    world: list[World] = machines(World)
    answer: list[Answer] = machines(Answer)

    @sometimes("a snapshot waits for events sent before it while later ones are sent")
    def waits(self) -> bool:
        return (
            self.batch_snapshot[0].state == CONFIRMING and self.world[0].sent > self.world[0].kept
        )

    @sometimes("a future of an earlier snapshot is open while another is taken")
    def is_late(self) -> bool:
        return self.answer[0].state == OPEN and self.batch_snapshot[0].number > 1

    @always("a snapshot that is cancelled has failed")
    def fails_at_once(self) -> bool:
        return not self.world[0].is_to_fail

    @always("no client is answered that has not asked")
    def is_asked(self) -> bool:
        return self.world[0].answered <= self.world[0].requests

    @leads_to("who asks is answered", then="has_answered")
    def has_asked(self) -> bool:
        return self.world[0].requests > 0

    def has_answered(self) -> bool:
        return self.world[0].answered == self.world[0].requests

    @terminal("no client waits, and no future is open")
    def is_at_rest(self) -> bool:
        return self.has_answered() and all(self.answer[n].state != OPEN for n in range(self.S))
