"""The subtask gateway: the valve between one coordinator and one subtask.

Decides whether an event may go on the wire, has to wait, or cannot arrive any more. Between the
coordinator's snapshot and the subtask's acknowledgement of the barrier the gateway is closed, so an
event belongs to the checkpoint exactly when it was sent before the snapshot::

    coordinator   a  b  [snapshot N]   c  d
    gateway       open  | closed: c, d held      | open
    wire          a  b         barrier N          c  d
    subtask          a  b      [snapshot N, ack N]   c  d

One checkpoint at a time marks and closes a gateway, because a job takes one at a time.
Leaves to `CoordinatorSnapshot` when to mark and close, to `Checkpoint` when to reopen, and to
`Attempt` whether its subtask can be reached.

Source: Apache Flink's SubtaskGatewayImpl (rules G1 to G9 in docs/protocol.md), with three
differences: reopening for a checkpoint that was never marked is ignored instead of an error, a
gateway that is renewed fails what it still held, and sends on their way are counted for every
checkpoint that has to wait for them, not only for the first.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from epochgate.fsm import (
    ANY,
    STAY,
    Channel,
    Fifo,
    Ignore,
    Int,
    Machine,
    Opaque,
    Port,
    Row,
    Trigger,
    output,
)

if TYPE_CHECKING:
    from epochgate.models.job import Job

OPEN, MARKED, CLOSED = "open", "marked", "closed"


class WirePort(Port):
    """The wire to the process that speaks for the subtask."""

    def event(self, identity: int, number: int, event: Opaque) -> None:
        """Carry an event; what is told before it on any port reaches the process before it."""


class SenderPort(Port):
    """The sender of events: each send ends in exactly one of these, in the order of the sends."""

    def confirmed(self, count: int) -> None:
        """The oldest `count` events on the wire were handled by the subtask."""

    def lost(self, count: int, reason: Opaque) -> None:
        """The oldest `count` events on the wire will never be handled by this attempt."""

    def held(self, event: Opaque) -> None:
        """This event waits in front of the closed gateway."""

    def turned_away(self, event: Opaque) -> None:
        """This event did not get on the wire: its attempt is not there any more."""


class Gateway(Machine):
    """The gateway between one coordinator and one subtask."""

    INDEX = ("coordinator", "subtask")
    STATES = (OPEN, MARKED, CLOSED)
    INITIAL = OPEN

    system: Job
    coordinator: int
    subtask: int
    sender: SenderPort = output(SenderPort)
    wire: WirePort = output(WirePort)

    attempt: int = Int("attempts")
    """The attempt this gateway is bound to; sends for any other are turned away."""
    latest: int = Int("checkpoints")
    """The newest checkpoint marked since the gateway was bound; while it is not open, the one that
    it is marked for.
    """
    sent: int = Int("numbers")
    """Events put on the wire; each carries its number, counted from 1."""
    confirmed: int = Int("numbers")
    """The number up to which the subtask has handled them."""
    awaited: int = Int("numbers")
    """Confirmations that the coordinator's snapshot still waits for."""
    held: Fifo[Opaque] = Channel("event", "numbers")

    send: Trigger
    mark: Trigger
    close: Trigger
    reopen: Trigger
    confirm: Trigger
    lose: Trigger
    disconnect: Trigger
    stop_waiting: Trigger
    renew: Trigger

    # fmt: off
    ROWS: ClassVar[tuple[Row, ...]] = (
        Row("send",         (OPEN, MARKED),   STAY,   "is_bound and reaches_attempt",
            "put_on_wire",                        "no snapshot lies between this event and the subtask"),
        Row("send",         (OPEN, MARKED),   STAY,   "is_bound and not reaches_attempt",
            "turn_away",                          "the attempt has failed and its successor is not bound yet"),
        Row("send",         CLOSED,           STAY,   "is_bound",
            "hold",                               "the event is of the next epoch and waits for the barrier"),
        Row("send",         ANY,              STAY,   "not is_bound",
            "turn_away",                          "the event was meant for an earlier attempt"),

        Row("mark",         OPEN,             MARKED, "is_newer",
            "remember",                           "a checkpoint was triggered"),

        Row("close",        MARKED,           CLOSED, "is_marked",
            "await_in_flight",                    "the snapshot is complete: the next epoch begins"),

        Row("reopen",       MARKED,           OPEN,   "is_marked",
            None,                                 "the checkpoint is over before its snapshot was complete"),
        Row("reopen",       CLOSED,           OPEN,   "is_marked",
            "release",                            "the subtask passed the barrier, or the checkpoint is over"),
        Ignore("reopen",    ANY,                      "not is_marked",
                                                  "the gateway is not marked for this checkpoint"),

        Row("confirm",      ANY,              STAY,   "is_bound and is_news",
            "settle",                             "the subtask has handled events up to this number"),
        Ignore("confirm",   ANY,                      "is_bound and not is_news",
                                                  "a repeated or overtaken confirmation"),
        Ignore("confirm",   ANY,                      "not is_bound",
                                                  "the confirmation is from an earlier attempt"),

        Row("lose",         ANY,              STAY,   "is_bound",
            "fail_attempt, fail_waiting",         "an event may be in no state: its attempt must fail"),
        Ignore("lose",      ANY,                      "not is_bound",
                                                  "the attempt is gone already"),

        Row("disconnect",   ANY,              STAY,   None,
            "give_up_in_flight",                  "the attempt is over: its sends in flight are given up"),

        Row("stop_waiting", ANY,              STAY,   None,
            "forget_awaited",                     "the snapshot that waited for confirmations is over"),

        Row("renew",        OPEN,             STAY,   None,
            "give_up_for_new, rebind",            "a new attempt takes the place of the old"),
        Row("renew",        (MARKED, CLOSED), OPEN,   None,
            "give_up_for_new, drop_held, rebind", "a new attempt starts unmarked; held events were for the old"),
    )
    # fmt: on

    def is_bound(self, attempt: int) -> bool:
        return attempt == self.attempt

    def reaches_attempt(self) -> bool:
        return self.system.attempt[self.subtask].is_reachable()

    def is_newer(self, checkpoint: int) -> bool:
        return checkpoint > self.latest

    def may_mark(self, checkpoint: int) -> bool:
        return self.state == OPEN and self.is_newer(checkpoint)

    def is_marked(self, checkpoint: int) -> bool:
        return self.state != OPEN and checkpoint == self.latest

    def is_news(self, attempt: int, number: int) -> bool:
        return self.confirmed < number <= self.sent

    def in_flight(self) -> int:
        """Events on the wire that are neither confirmed nor lost; before it closes, all that were
        sent.
        """
        return self.sent - self.confirmed

    def put_on_wire(self, attempt: int, event: Opaque) -> None:
        self.sent += 1
        self.wire.event(self.system.attempt[self.subtask].identity, self.sent, event)

    def turn_away(self, attempt: int, event: Opaque) -> None:
        self.sender.turned_away(event)

    def hold(self, attempt: int, event: Opaque) -> None:
        self.held.push(event)
        self.sender.held(event)

    def remember(self, checkpoint: int) -> None:
        self.latest = checkpoint

    def await_in_flight(self) -> None:
        self.awaited = self.in_flight()

    def release(self) -> None:
        for event in self.held.take_all():
            self.pass_on(event)

    def pass_on(self, event: Opaque) -> None:
        if self.reaches_attempt():
            self.put_on_wire(self.attempt, event)
        else:
            self.sender.turned_away(event)

    def settle(self, attempt: int, number: int) -> None:
        count = number - self.confirmed
        self.confirmed = number
        self.sender.confirmed(count)
        if self.awaited > 0:
            covered = count if count < self.awaited else self.awaited
            self.awaited -= covered
            self.system.snapshot[self.coordinator].confirm(covered)

    def fail_attempt(self, attempt: int, number: int, reason: Opaque) -> None:
        self.system.attempt[self.subtask].fault(reason)

    def fail_waiting(self, attempt: int, number: int, reason: Opaque) -> None:
        if number - self.confirmed > 0 and number - self.confirmed <= self.awaited:
            self.system.snapshot[self.coordinator].lose(self.latest, reason)

    def give_up_in_flight(self, reason: Opaque) -> None:
        count = self.sent - self.confirmed
        self.sent = 0
        self.confirmed = 0
        if count > 0:
            self.sender.lost(count, reason)
        if self.awaited > 0:
            self.system.snapshot[self.coordinator].lose(self.latest, reason)

    def give_up_for_new(self) -> None:
        self.give_up_in_flight("a new attempt takes the place of the old")

    def forget_awaited(self) -> None:
        self.awaited = 0

    def drop_held(self) -> None:
        for event in self.held.take_all():
            self.sender.turned_away(event)

    def rebind(self, attempt: int) -> None:
        self.attempt = attempt
        self.latest = 0
