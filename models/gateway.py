"""The subtask gateway: the valve between one coordinator and one subtask.

Decides whether an event may go on the wire, has to wait, or cannot arrive any more. Between the
coordinator's snapshot and the subtask's acknowledgement of the barrier the gateway is closed, so an
event belongs to the checkpoint exactly when it was sent before the snapshot::

    coordinator   a  b  [snapshot N]   c  d
    gateway       open  | closed: c, d held      | open
    wire          a  b         barrier N          c  d
    subtask          a  b      [snapshot N, ack N]   c  d

Several checkpoints may be marked at once; each closed one keeps what was sent after its snapshot,
and opening one hands that to the wire or, when an older one is still closed, to the next older.
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
    Array,
    Bool,
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


class SenderPort(Port):
    """What the sender of events learns: each send ends in exactly one of these, in the order of the
    sends.
    """

    def confirmed(self, count: int) -> None:
        """The oldest `count` events on the wire were handled by the subtask."""

    def lost(self, count: int) -> None:
        """The oldest `count` events on the wire will never be handled by this attempt."""

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

    attempt: int = Int("attempts")
    """The attempt this gateway is bound to; sends for any other are turned away."""
    latest: int = Int("checkpoints")
    """The newest checkpoint marked since the gateway was bound."""
    sent: int = Int("numbers")
    """Events put on the wire; each carries its number, counted from 1."""
    confirmed: int = Int("numbers")
    """The number up to which the subtask has handled them."""
    awaited: list[int] = Array(Int("numbers"), "overlap")
    """For each snapshot lane: confirmations that its checkpoint still waits for."""
    marks: int = Int("overlap")
    """How many slots are in use; slots are ordered from the oldest checkpoint to the newest."""
    epoch: list[int] = Array(Int("checkpoints"), "overlap")
    shut: list[bool] = Array(Bool(), "overlap")
    held: list[Fifo[Opaque]] = Array(Channel("event", "numbers"), "overlap")

    send: Trigger
    mark: Trigger
    close: Trigger
    reopen: Trigger
    confirm: Trigger
    lose: Trigger
    disconnect: Trigger
    renew: Trigger

    # fmt: off
    ROWS: ClassVar[tuple[Row, ...]] = (
        Row("send",       (OPEN, MARKED),   STAY,   "is_bound and reaches_attempt",                              "put_on_wire",                                        "no snapshot lies between this event and the subtask"),
        Row("send",       (OPEN, MARKED),   STAY,   "is_bound and not reaches_attempt",                          "turn_away",                                          "the attempt has failed and its successor is not bound yet"),
        Row("send",       CLOSED,           STAY,   "is_bound",                                                  "hold",                                               "it belongs to the epoch after the snapshot and waits for the barrier"),
        Row("send",       ANY,              STAY,   "not is_bound",                                              "turn_away",                                          "it was meant for an earlier attempt"),

        Row("mark",       OPEN,             MARKED, "is_newer and has_room",                                     "remember",                                           "a checkpoint was triggered"),
        Row("mark",       (MARKED, CLOSED), STAY,   "is_newer and has_room",                                     "remember",                                           "a second checkpoint was triggered before the first has passed"),

        Row("close",      MARKED,           CLOSED, "is_marked",                                                 "shut_gate, await_in_flight",                         "the coordinator's snapshot is complete: later sends belong to the next epoch"),
        Row("close",      CLOSED,           STAY,   "is_marked",                                                 "shut_gate, await_in_flight",                         "the snapshot of a second checkpoint is complete too"),

        Row("reopen",     MARKED,           OPEN,   "is_marked and not is_marked_for_more",                      "unmark",                                             "the checkpoint is over before its snapshot was complete"),
        Row("reopen",     MARKED,           STAY,   "is_marked and is_marked_for_more",                          "unmark",                                             "another checkpoint is still marked"),
        Row("reopen",     CLOSED,           STAY,   "is_marked and stays_closed",                                "release, unmark",                                    "another checkpoint still keeps it closed"),
        Row("reopen",     CLOSED,           MARKED, "is_marked and not stays_closed and is_marked_for_more",     "release, unmark",                                    "the barrier has passed, and another checkpoint is marked"),
        Row("reopen",     CLOSED,           OPEN,   "is_marked and not stays_closed and not is_marked_for_more", "release, unmark",                                    "the barrier has passed this subtask, or the checkpoint is over"),
        Ignore("reopen",  ANY,                      "not is_marked",                                                                                                   "late, repeated, or for a checkpoint this gateway never saw"),

        Row("confirm",    ANY,              STAY,   "is_bound and is_news",                                      "settle",                                             "the subtask has handled events up to this number"),
        Ignore("confirm", ANY,                      "is_bound and not is_news",                                                                                        "a repeated or overtaken confirmation"),
        Ignore("confirm", ANY,                      "not is_bound",                                                                                                    "it comes from an earlier attempt"),

        Row("lose",       ANY,              STAY,   "is_bound",                                                  "fail_attempt, fail_waiting",                         "an event that may be in no state makes its attempt useless"),
        Ignore("lose",    ANY,                      "not is_bound",                                                                                                    "the attempt is gone already"),

        Row("disconnect", ANY,              STAY,   None,                                                        "give_up_in_flight",                                  "the attempt has ended: what is on the wire will not be handled"),

        Row("renew",      OPEN,             STAY,   None,                                                        "give_up_in_flight, rebind",                          "a new attempt takes the place of the old"),
        Row("renew",      (MARKED, CLOSED), OPEN,   None,                                                        "forget_marks, give_up_in_flight, drop_held, rebind", "a new attempt starts without marks; what was held was meant for the old"),
    )
    # fmt: on

    def is_bound(self, attempt: int) -> bool:
        return attempt == self.attempt

    def reaches_attempt(self) -> bool:
        return self.system.attempt[self.subtask].is_reachable()

    def is_newer(self, checkpoint: int) -> bool:
        return checkpoint > self.latest

    def has_room(self) -> bool:
        return self.marks < self.system.overlap

    def is_marked(self, checkpoint: int) -> bool:
        return any(
            i < self.marks and self.epoch[i] == checkpoint for i in range(self.system.overlap)
        )

    def is_marked_for_more(self) -> bool:
        return self.marks > 1

    def stays_closed(self, checkpoint: int) -> bool:
        return any(self.shut[i] and self.epoch[i] != checkpoint for i in range(self.system.overlap))

    def is_news(self, attempt: int, number: int) -> bool:
        return self.confirmed < number <= self.sent

    def in_flight(self) -> int:
        """Sends that are neither confirmed nor lost, held ones included."""
        count = self.sent - self.confirmed
        for i in range(self.system.overlap):
            count += self.held[i].size()
        return count

    def put_on_wire(self, attempt: int, event: Opaque) -> None:
        self.sent += 1
        self.system.attempt[self.subtask].task.event(self.coordinator, self.sent, event)

    def turn_away(self, attempt: int, event: Opaque) -> None:
        self.sender.turned_away(event)

    def hold(self, attempt: int, event: Opaque) -> None:
        newest = 0
        for i in range(self.system.overlap):
            if self.shut[i]:
                newest = i
        self.held[newest].push(event)

    def remember(self, checkpoint: int) -> None:
        self.epoch[self.marks] = checkpoint
        self.marks += 1
        self.latest = checkpoint

    def shut_gate(self, checkpoint: int) -> None:
        for i in range(self.system.overlap):
            if i < self.marks and self.epoch[i] == checkpoint:
                self.shut[i] = True

    def await_in_flight(self, checkpoint: int, lane: int) -> None:
        self.awaited[lane] = self.in_flight()

    def release(self, checkpoint: int) -> None:
        older = self.system.overlap
        for i in range(self.system.overlap):
            if self.shut[i] and self.epoch[i] == checkpoint:
                if older < self.system.overlap:
                    self.held[older].drain(self.held[i])
                else:
                    for event in self.held[i].take_all():
                        self.pass_on(event)
            if self.shut[i]:
                older = i

    def pass_on(self, event: Opaque) -> None:
        if self.reaches_attempt():
            self.put_on_wire(self.attempt, event)
        else:
            self.sender.turned_away(event)

    def unmark(self, checkpoint: int) -> None:
        moving = False
        for i in range(self.system.overlap - 1):
            moving = moving or self.epoch[i] == checkpoint
            if moving:
                self.epoch[i] = self.epoch[i + 1]
                self.shut[i] = self.shut[i + 1]
                self.held[i].drain(self.held[i + 1])
        self.marks -= 1
        self.epoch[self.marks] = 0
        self.shut[self.marks] = False

    def settle(self, attempt: int, number: int) -> None:
        count = number - self.confirmed
        self.confirmed = number
        self.sender.confirmed(count)
        for lane in range(self.system.overlap):
            if self.awaited[lane] > 0:
                covered = count if count < self.awaited[lane] else self.awaited[lane]
                self.awaited[lane] -= covered
                self.system.snapshot[self.coordinator, lane].confirm(covered)

    def fail_attempt(self, attempt: int) -> None:
        self.system.attempt[self.subtask].fault()

    def fail_waiting(self, attempt: int, number: int) -> None:
        for lane in range(self.system.overlap):
            if number - self.confirmed > 0 and number - self.confirmed <= self.awaited[lane]:
                self.system.snapshot[self.coordinator, lane].lose()

    def give_up_in_flight(self) -> None:
        count = self.sent - self.confirmed
        self.sent = 0
        self.confirmed = 0
        if count > 0:
            self.sender.lost(count)
        for lane in range(self.system.overlap):
            if self.awaited[lane] > 0:
                self.system.snapshot[self.coordinator, lane].lose()

    def forget_marks(self) -> None:
        for i in range(self.system.overlap):
            self.epoch[i] = 0
            self.shut[i] = False
        self.marks = 0

    def drop_held(self) -> None:
        for i in range(self.system.overlap):
            for event in self.held[i].take_all():
                self.sender.turned_away(event)

    def rebind(self, attempt: int) -> None:
        self.attempt = attempt
        self.latest = 0
