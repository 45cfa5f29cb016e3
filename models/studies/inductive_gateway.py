"""The gateway by itself, whatever is around it: attempts, checkpoints, late and repeated messages.

What stands for the attempt and the coordinator's snapshot does anything that the gateway can be
told of, so that what is shown of the gateway holds in any job. Numbers of events, attempts and
checkpoints go up to 2**20; at most three events are held at a time.
"""

from __future__ import annotations

from typing import ClassVar

from epochgate.fsm import (
    STAY,
    Bool,
    Channel,
    Fifo,
    Int,
    Machine,
    Opaque,
    Row,
    Trigger,
    machines,
)
from epochgate.fsm.closed import ClosedSystem, Environment, Step, always, sometimes
from epochgate.models.gateway import CLOSED, MARKED, OPEN, Gateway

HERE, GONE = "here", "gone"


class NarrowGateway(Gateway):
    """The gateway that runs, with a bound of its own for what it holds."""

    held: Fifo[Opaque] = Channel("event", "held_max")


class PlainAttempt(Machine):
    """An attempt that can be reached or not."""

    INDEX, STATES, INITIAL = ("subtask",), (HERE, GONE), HERE

    identity: int = Int("attempts")

    fault: Trigger
    come: Trigger

    ROWS: ClassVar[tuple[Row, ...]] = (
        Row("fault", (HERE, GONE), GONE, None, "forget", "its process is gone"),
        Row("come", (HERE, GONE), HERE, None, None, "it has a process"),
    )

    def forget(self, reason: Opaque) -> None:
        self.identity = 0

    def is_reachable(self) -> bool:
        return self.state == HERE


class PlainSnapshot(Machine):
    """A coordinator's snapshot that is told of confirmations, and of events that are lost."""

    INDEX, STATES, INITIAL = ("coordinator",), ("any",), "any"

    confirm: Trigger
    lose: Trigger

    ROWS: ClassVar[tuple[Row, ...]] = (
        Row("confirm", "any", STAY, "is_some", None, "events of before it are handled"),
        Row("lose", "any", STAY, "is_of_any", None, "an event of before it is lost"),
    )

    def is_some(self, count: int) -> bool:
        return count > 0

    def is_of_any(self, checkpoint: int, reason: Opaque) -> bool:
        return checkpoint >= 0


class AnyJob(Environment):
    """A coordinator that sends, checkpoints, and attempts that fail: ports `wire` and `sender`."""

    INDEX, STATES, INITIAL = ("coordinator", "subtask"), ("up",), "up"

    system: AnyGateway
    coordinator: int
    subtask: int

    number: int = Int("attempts")
    """The newest attempt."""
    checkpoint: int = Int("checkpoints")
    """The newest checkpoint."""
    heard: int = Int("numbers")
    """What the next confirmation says."""
    last: int = Int("numbers")
    """The last event that got on the wire to this attempt."""
    on_the_wire: int = Int("numbers")
    """Events whose senders wait for the subtask."""
    waiting: int = Int("held_max")
    """Events whose senders wait for the gateway to open."""
    upto: int = Int("numbers")
    """The last event on the wire before the coordinator's snapshot."""
    is_sending: bool = Bool()
    """The sender of this step does not know yet where its event is."""

    send: Trigger
    send_late: Trigger
    mark: Trigger
    close: Trigger
    reopen: Trigger
    confirm: Trigger
    confirm_late: Trigger
    hear_more: Trigger
    hear_less: Trigger
    lose: Trigger
    lose_late: Trigger
    stop_waiting: Trigger
    fall: Trigger
    rise: Trigger
    disconnect: Trigger
    renew: Trigger

    # fmt: off
    ROWS: ClassVar[tuple[Row, ...]] = (
        Row("send",         "up", STAY, "has_room",      "send_event",     "an event for this attempt"),
        Row("send_late",    "up", STAY, "had_another",   "send_to_old",    "an event for an earlier attempt"),
        Row("mark",         "up", STAY, "may_mark",      "mark_gateway",   "a checkpoint is triggered"),
        Row("close",        "up", STAY, "may_close",     "close_gateway",  "the coordinator's snapshot is complete"),
        Row("reopen",       "up", STAY, None,            "reopen_gateway", "the barrier was passed, or it is over"),
        Row("confirm",      "up", STAY, None,            "confirm_events", "a confirmation comes, perhaps again"),
        Row("confirm_late", "up", STAY, "had_another",   "confirm_to_old", "it is from an earlier attempt"),
        Row("hear_more",    "up", STAY, "may_hear_more", "add_heard",      "it is of a later event"),
        Row("hear_less",    "up", STAY, "has_heard",     "forget_heard",   "it is of none"),
        Row("lose",         "up", STAY, None,            "lose_event",     "an event is lost on its way"),
        Row("lose_late",    "up", STAY, "had_another",   "lose_for_old",   "it was sent to an earlier attempt"),
        Row("stop_waiting", "up", STAY, None,            "wait_no_more",   "the snapshot is over"),
        Row("fall",         "up", STAY, None,            "fault_attempt",  "the process dies"),
        Row("rise",         "up", STAY, None,            "bring_attempt",  "another process speaks"),
        Row("disconnect",   "up", STAY, None,            "give_up",        "the attempt is over"),
        Row("renew",        "up", STAY, "may_renew",     "begin_attempt",  "the next attempt begins"),
    )
    # fmt: on

    def has_room(self) -> bool:
        return (
            self.system.gateway[self.coordinator, self.subtask].sent + self.system.held_max
            < self.system.numbers
            and self.system.gateway[self.coordinator, self.subtask].held.size()
            < self.system.held_max
        )

    def had_another(self) -> bool:
        return self.number > 0

    def may_mark(self) -> bool:
        return (
            self.checkpoint < self.system.checkpoints
            and self.system.gateway[self.coordinator, self.subtask].state == OPEN
        )

    def may_close(self) -> bool:
        return self.system.gateway[self.coordinator, self.subtask].state == MARKED

    def may_hear_more(self) -> bool:
        return self.heard < self.system.numbers

    def has_heard(self) -> bool:
        return self.heard > 0

    def may_renew(self) -> bool:
        return self.number < self.system.attempts

    def send_event(self) -> None:
        self.is_sending = True
        self.system.gateway[self.coordinator, self.subtask].send(self.number, 0)

    def send_to_old(self) -> None:
        self.is_sending = True
        self.system.gateway[self.coordinator, self.subtask].send(self.number - 1, 0)

    def mark_gateway(self) -> None:
        self.checkpoint += 1
        self.system.gateway[self.coordinator, self.subtask].mark(self.checkpoint)

    def close_gateway(self) -> None:
        self.upto = self.last
        self.system.gateway[self.coordinator, self.subtask].close(self.checkpoint)

    def reopen_gateway(self) -> None:
        self.system.gateway[self.coordinator, self.subtask].reopen(self.checkpoint)

    def confirm_events(self) -> None:
        self.system.gateway[self.coordinator, self.subtask].confirm(self.number, self.heard)

    def confirm_to_old(self) -> None:
        self.system.gateway[self.coordinator, self.subtask].confirm(self.number - 1, self.heard)

    def add_heard(self) -> None:
        self.heard += 1

    def forget_heard(self) -> None:
        self.heard = 0

    def lose_event(self) -> None:
        self.system.gateway[self.coordinator, self.subtask].lose(self.number, self.heard, 0)

    def lose_for_old(self) -> None:
        self.system.gateway[self.coordinator, self.subtask].lose(self.number - 1, self.heard, 0)

    def wait_no_more(self) -> None:
        self.system.gateway[self.coordinator, self.subtask].stop_waiting()

    def fault_attempt(self) -> None:
        self.system.attempt[self.subtask].fault(0)

    def bring_attempt(self) -> None:
        self.system.attempt[self.subtask].come()

    def give_up(self) -> None:
        self.last = 0
        self.upto = 0
        self.system.gateway[self.coordinator, self.subtask].disconnect(0)

    def begin_attempt(self) -> None:
        self.number += 1
        self.last = 0
        self.upto = 0
        self.system.gateway[self.coordinator, self.subtask].renew(self.number)

    # port `wire` of the gateway

    def event(self, identity: int, number: int, event: Opaque) -> None:
        assert number == self.last + 1, "I3: events get on the wire in the order of their numbers"
        self.last = number
        self.on_the_wire += 1
        self.learn()

    # port `sender` of the gateway

    def confirmed(self, count: int) -> None:
        assert 0 < count <= self.on_the_wire, "I4: what is confirmed is on the wire"
        self.on_the_wire -= count

    def lost(self, count: int, reason: Opaque) -> None:
        assert 0 < count <= self.on_the_wire, "I4: what is given up is on the wire"
        self.on_the_wire -= count

    def held(self, event: Opaque) -> None:
        assert self.is_sending, "I4: a sender is told of its event once"
        self.is_sending = False
        self.waiting += 1

    def turned_away(self, event: Opaque) -> None:
        self.learn()

    def learn(self) -> None:
        """The sender of this step, or one whose event was held, knows where it is."""
        assert self.is_sending or self.waiting > 0, "I4: a sender is told of its event once"
        if self.is_sending:
            self.is_sending = False
        else:
            self.waiting -= 1


class AnyGateway(ClosedSystem):
    """The gateway in any job: a million attempts, checkpoints and events, in any order."""

    INDEX_SETS: ClassVar[dict[str, str]] = {"coordinator": "coordinators", "subtask": "subtasks"}
    CONSTANTS: ClassVar[dict[str, int]] = {
        "coordinators": 1,
        "subtasks": 1,
        "attempts": 1 << 20,
        "checkpoints": 1 << 20,
        "numbers": 1 << 20,
        "held_max": 3,
        "event": 1,
    }
    UNREAD: ClassVar[dict[str, str]] = {
        "attempt.identity": "the wire of a job is told of it, and this one carries nothing",
    }
    STEPS: ClassVar[tuple[Step, ...]] = tuple(
        Step("job", trigger, is_fair=False)
        for trigger in (
            *("send", "send_late", "mark", "close", "reopen", "confirm", "confirm_late"),
            *(
                "hear_more",
                "hear_less",
                "lose",
                "lose_late",
                "stop_waiting",
                "fall",
                "rise",
                "disconnect",
                "renew",
            ),
        )
    )
    WIRING: ClassVar[dict[str, str]] = {"gateway.wire": "job", "gateway.sender": "job"}

    coordinators: int
    subtasks: int
    attempts: int
    checkpoints: int
    numbers: int
    held_max: int
    event: int

    gateway: dict[tuple[int, int], NarrowGateway] = machines(NarrowGateway)
    attempt: list[PlainAttempt] = machines(PlainAttempt)
    snapshot: list[PlainSnapshot] = machines(PlainSnapshot)
    job: dict[tuple[int, int], AnyJob] = machines(AnyJob)

    @always("I2: what is sent after the snapshot is not on the wire before the gateway reopens")
    def holds_back(self) -> bool:
        return self.gateway[0, 0].state != CLOSED or self.job[0, 0].last <= self.job[0, 0].upto

    @always("I4: who has sent knows at once: on the wire, held, or turned away")
    def tells_senders(self) -> bool:
        return not self.job[0, 0].is_sending

    @always("I4: what senders wait for is on the wire or held, and nothing else is")
    def knows_who_waits(self) -> bool:
        return (
            self.job[0, 0].on_the_wire == self.gateway[0, 0].in_flight()
            and self.job[0, 0].waiting == self.gateway[0, 0].held.size()
            and self.gateway[0, 0].confirmed <= self.gateway[0, 0].sent
        )

    @always("only a closed gateway holds events")
    def holds_while_closed(self) -> bool:
        return self.gateway[0, 0].state == CLOSED or self.gateway[0, 0].held.empty()

    @always("events are numbered as they get on the wire")
    def numbers_events(self) -> bool:
        return self.job[0, 0].last == self.gateway[0, 0].sent

    @always(
        "a gateway is bound to the newest attempt, and marked for the newest checkpoint at most"
    )
    def is_bound(self) -> bool:
        return (
            self.gateway[0, 0].attempt == self.job[0, 0].number
            and self.gateway[0, 0].latest <= self.job[0, 0].checkpoint
            and (
                self.gateway[0, 0].state == OPEN
                or self.gateway[0, 0].latest == self.job[0, 0].checkpoint
            )
        )

    @sometimes("an event is held that was sent after the snapshot")
    def holds_an_event(self) -> bool:
        return self.job[0, 0].waiting > 0
